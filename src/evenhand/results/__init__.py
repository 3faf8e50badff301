"""What reads a run: columns, rows, figures, pages, reports, gates."""
