"""Prose on lines of a terminal: wide characters count two columns, and Chinese and Japanese may be
broken between any two letters, but no line begins with a mark that closes."""

from __future__ import annotations

import re
from itertools import islice

from rich.cells import cell_len

from evenhand.report.terminal.tables import safe

_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_PIECE = re.compile(rf"[「『（“]*[{_WIDE}][、。，；：！？）」』”]*\s*|[^\s{_WIDE}]+\s*")


def wrapped(text: object, width: int) -> list[str]:
    """The text on lines of at most `width` columns, without blanks at their ends."""
    lines, line = list[str](), ""
    for match in _PIECE.finditer(" ".join(safe(text).split())):
        for piece in _pieces(match[0], width):
            if line and cell_len(line) + cell_len(piece.rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(piece: str, width: int) -> list[str]:
    """A piece that is wider than a line, cut where it must be."""
    if cell_len(piece.rstrip()) <= width:
        return [piece]
    letters, parts = iter(piece), list[str]()
    while part := "".join(islice(letters, max(1, width // 2))):
        parts.append(part)
    return parts


def beginning(text: object, width: int, lines: int) -> list[str]:
    """The first lines of a text, with an ellipsis where there are more."""
    whole = wrapped(text, width)
    if len(whole) <= lines:
        return whole
    last = whole[lines - 1]
    while cell_len(last) > width - 1:
        last = last[:-1]
    return [*whole[: lines - 1], f"{last.rstrip()}…"]


def ending(text: object, width: int, lines: int) -> list[str]:
    """The last lines of a text, with an ellipsis where there are more."""
    whole = wrapped(text, width)
    if len(whole) <= lines:
        return whole
    rest = " ".join(safe(text).split())[-lines * width :]
    while len(last := wrapped(f"…{rest}", width)) > lines:
        rest = rest[1:].lstrip()
    return last
