"""Texts as PostgreSQL can hold them: the one character that it refuses, NUL, is written as two.

What holds neither NUL nor SUB is stored as it is; else NUL becomes SUB N and SUB becomes SUB S, so
that equal texts stay equal and every text comes back.
"""

from __future__ import annotations

_MARK = "\x1a"


def sealed(text: str) -> str:
    """A text to be stored."""
    if "\0" in text or _MARK in text:
        return text.replace(_MARK, f"{_MARK}S").replace("\0", f"{_MARK}N")
    return text


def unsealed(text: str) -> str:
    """The text that was stored."""
    if _MARK in text:
        return text.replace(f"{_MARK}N", "\0").replace(f"{_MARK}S", _MARK)
    return text
