"""Readers of a run: columns, rows, figures, pages, reports, gates."""
