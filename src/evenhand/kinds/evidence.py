"""Quotes and their places in the judged text.

A quote is matched exactly first, then after NFC and white-space folding, then with quotation marks,
dashes and ellipses unified. Last, harmless changes are undone: quotation marks put around the
quote, an ellipsis after it, spaces between CJK and other writing, punctuation of the other width;
then the quote must stand at exactly one place. Offsets are code points of the original text,
half-open.

A text is folded once, however many quotes are sought in it, in time linear in its length.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple
from unicodedata import combining, is_normalized, normalize

from msgspec import Struct

from evenhand.judgment import Match

CLUSTER_MOST = 64
"""Marks on one letter. More are no writing, and to sort them takes the square of their number."""
CUTS_MOST = 1000
"""Places looked at that would cut a cluster. No writing has more."""

_STRETCH = re.compile(r"\s+|\S+")
_QUOTES = "\"'`´«»“”„‟‘’‚‛‹›「」『』〝〞〟＂＇"
_UNIFIED = str.maketrans({**dict.fromkeys(_QUOTES, '"'), **dict.fromkeys("‐‑‒–−", "-")})
_ELLIPSIS = re.compile(r"(?:[…⋯]|\.{3})[…⋯.]*+")
_CJK = r"\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK_LETTER = re.compile(f"[{_CJK}]")
_CJK_SPACE = re.compile(rf"(?<=[{_CJK}]) (?=[^\s{_CJK}])|(?<=[^\s{_CJK}]) (?=[{_CJK}])")
_NARROW = str.maketrans("，。、；：！？（）［］｛｝％～＝＋－／＜＞", ",.,;:!?()[]{}%~=+-/<>")
_AROUND = re.compile(f"[{_QUOTES}](.*)[{_QUOTES}]", re.DOTALL)


class Span(Struct, frozen=True):
    """A stretch of the original text."""

    start: int
    end: int
    match: Match


class SearchText:
    """A text in which quotes are sought; folded when the first one does not stand in it exactly."""

    def __init__(self, text: str) -> None:
        self.text = text

    def locate(self, quote: str) -> Span | None:
        """Return the place of `quote`; None if it has none, or is blank."""
        if not quote.strip():
            return None
        at = self.text.find(quote)
        if at >= 0:
            return Span(at, at + len(quote), "exact")
        sought = SearchText(quote)
        if found := self.folded.locate(sought.folded.text.strip()):
            return Span(*found, "folded")
        if found := self.unified.locate(sought.unified.text.strip()):
            return Span(*found, "unified")
        core = _strip_quote(quote)
        if not any(map(str.isalnum, core)):
            return None
        loosened = SearchText(core).loosened.text.strip()
        if self.loosened.text.find(loosened) != self.loosened.text.rfind(loosened):
            return None
        found = self.loosened.locate(loosened)
        return Span(*found, "unified") if found else None

    @cached_property
    def folded(self) -> FoldedText:
        """The text in NFC, with white space as single spaces."""
        return _fold(self.text)

    @cached_property
    def unified(self) -> FoldedText:
        """The folded text with one sort of quotation marks and of ellipses."""
        plain = self.folded._replace(text=self.folded.text.translate(_UNIFIED))
        return plain.substitute(_ELLIPSIS, "...")

    @cached_property
    def loosened(self) -> FoldedText:
        """The unified text with punctuation of one width, and no space between CJK and other
        writing."""
        spaced = self.unified.substitute(_CJK_SPACE, "")
        return spaced._replace(text=spaced.text.translate(_NARROW))


class FoldedText(NamedTuple):
    """A folded text, and the stretch of the original that each of its characters comes from."""

    text: str
    starts: array[int]
    ends: array[int]

    def locate(self, sought: str) -> tuple[int, int] | None:
        """Return the first stretch of the original text that is folded to `sought`."""
        at = self.text.find(sought) if sought else -1
        for _ in range(CUTS_MOST):
            end = at + len(sought)
            if at < 0 or not (self._cuts(at) or self._cuts(end)):
                break
            at = self.text.find(sought, at + 1)
        else:
            return None
        return None if at < 0 else (self.starts[at], self.ends[end - 1])

    def _cuts(self, at: int) -> bool:
        """Return True if an offset stands between characters of one stretch."""
        return 0 < at < len(self.text) and self.starts[at - 1] == self.starts[at]

    def substitute(self, pattern: re.Pattern[str], text: str) -> FoldedText:
        """Return the folded text with `text` in the place of every match."""
        if pattern.search(self.text) is None:
            return self
        pieces, starts, ends, done = list[str](), array("I"), array("I"), 0
        for match in pattern.finditer(self.text):
            start, end = match.span()
            pieces += (self.text[done:start], text)
            starts += self.starts[done:start]
            starts.extend([self.starts[start]] * len(text))
            ends += self.ends[done:start]
            ends.extend([self.ends[end - 1]] * len(text))
            done = end
        pieces.append(self.text[done:])
        return FoldedText("".join(pieces), starts + self.starts[done:], ends + self.ends[done:])


def _fold(text: str) -> FoldedText:
    """Return a text with white space as one space, and letters with their marks in NFC."""
    pieces, starts, ends = list[str](), array("I"), array("I")
    for stretch in _STRETCH.finditer(text):
        start, end = stretch.span()
        if stretch[0].isspace():
            pieces.append(" ")
            starts.append(start)
            ends.append(end)
        elif is_normalized("NFC", stretch[0]):
            pieces.append(stretch[0])
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        else:
            for first, after in _find_clusters(text, start, end):
                pieces.append(normalize("NFC", text[first:after]))
                starts.extend([first] * len(pieces[-1]))
                ends.extend([after] * len(pieces[-1]))
    return FoldedText("".join(pieces), starts, ends)


def _find_clusters(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield each letter with the characters that NFC may join to it."""
    for at in range(start + 1, end + 1):
        if at == end or not _joins(text[start:at], text[at]):
            yield start, at
            start = at


def _joins(cluster: str, char: str) -> bool:
    """Return True if NFC may join a character to those before it."""
    if char < "\u0300" or len(cluster) >= CLUSTER_MOST:
        return False
    if combining(normalize("NFD", char)[0]):
        return True
    return not is_normalized("NFC", normalize("NFC", cluster) + normalize("NFC", char))


def _strip_quote(quote: str) -> str:
    """Return a quote without the quotation marks around it and the ellipsis after it, whichever
    stands outside."""
    core = quote.strip()
    for _ in range(2):
        core = core.rstrip("…⋯") if not core.endswith("...") else core.rstrip("….⋯")
        if around := _AROUND.fullmatch(core.strip()):
            core = around[1]
        core = core.strip()
    return core


QUOTE_WEIGHT = 4
"""The least weight of a quote: a CJK character counts for two, others but white space for one."""


def is_substantial_quote(quote: str, text: str) -> bool:
    """Return True if a quote can show something: it has a letter or digit, and 2 CJK or 4 other
    characters, unless it is the whole of the text."""
    bare = "".join(quote.split())
    if not any(map(str.isalnum, bare)):
        return False
    weight = len(bare) + len(_CJK_LETTER.findall(bare))
    return weight >= QUOTE_WEIGHT or quote.strip() == text.strip()


_SENTENCE = re.compile(r"[^.!?。！？…\n]+[.!?。！？…]*[»”\"』」)]*|[.!?。！？…]+")
_CLAUSE = re.compile(r"[^,;:，、；：—]+[,;:，、；：—]*")
FRAGMENTS_MOST, FRAGMENT_CHARS = 24, 160


def fragments(text: str) -> list[str]:
    """Return sentences of `text`, long ones cut at clauses: quotes that are verbatim by
    construction."""
    found: dict[str, None] = {}
    for sentence in _SENTENCE.finditer(text):
        is_short = len(sentence[0]) <= FRAGMENT_CHARS
        for part in [sentence[0]] if is_short else _CLAUSE.findall(sentence[0]):
            fragment = part.strip()[:FRAGMENT_CHARS].strip()
            if is_substantial_quote(fragment, text):
                found[fragment] = None
            if len(found) == FRAGMENTS_MOST:
                return list(found)
    return list(found)
