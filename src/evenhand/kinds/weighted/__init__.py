"""The kind `weighted`: one answer out of 100, weights by type of task."""
