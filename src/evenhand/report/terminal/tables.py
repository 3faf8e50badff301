"""Results as text for a terminal: tables that align with wide characters, at 80 columns and less.

All judged text is hostile: control characters and direction marks are made visible, and nothing
in it is read as markup.
"""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from evenhand.text import visible


def safe(text: object) -> str:
    """Text with characters that could steer a terminal shown as escapes."""
    return visible(text)


def cut(text: object, most: int) -> str:
    """One line of at most so many columns of a terminal."""
    line = " ".join(safe(text).split())
    return line if cell_len(line) <= most else set_cell_size(line, most - 1).rstrip() + "…"


def cut_start(text: object, most: int) -> str:
    """The end of a line, in at most so many columns: what a chain of errors comes to."""
    line = " ".join(safe(text).split())
    if cell_len(line) <= most:
        return line
    start = len(line)
    while start and cell_len(line[start - 1 :]) < most:
        start -= 1
    return f"…{line[start:].lstrip()}"
