"""Long texts, gone through a chunk at a time.

A regular expression that searches a text holds all threads until it has found something. Here no
step takes in more than a chunk: some milliseconds at the most, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

CHUNK_CHARS = 1 << 13
REACH_CHARS = 1 << 10
"""So much of what follows a chunk is seen with it. What is searched for ends or fails sooner."""

# What no letter before it can take in: a text may be cut here.
LETTER = re.compile(r"[^\W\u1160-\u11ff\ud7b0-\ud7ff]")
_BLANKS = re.compile(r"\s*")


def search(pattern: re.Pattern[str], text: str, at: int = 0) -> re.Match[str] | None:
    """As `pattern.search(text, at)`."""
    while len(text) - at > CHUNK_CHARS + REACH_CHARS:
        end = at + CHUNK_CHARS
        match = pattern.search(text, at, end + REACH_CHARS)
        if match is None or match.start() >= end:
            at = end
        elif match.end() <= end:
            return match
        elif whole := pattern.match(text, match.start()):
            return whole
        else:
            at = match.start() + 1
    return pattern.search(text, at)


def matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As `pattern.finditer(text)`, for a pattern that matches no empty stretch."""
    at = 0
    while match := search(pattern, text, at):
        yield match
        at = match.end()


def chunks(text: str) -> Iterator[tuple[int, int]]:
    """Where to cut a text so that no white space is cut, and no letter from its marks, if a letter
    comes in time."""
    start = 0
    while start < len(text):
        letter = LETTER.search(text, start + CHUNK_CHARS, start + 4 * CHUNK_CHARS)
        end = letter.start() if letter else start + 4 * CHUNK_CHARS
        if letter is None and text[end - 1 : end].isspace():
            end = cast("re.Match[str]", _BLANKS.match(text, end)).end()
        yield start, min(end, len(text))
        start = end
