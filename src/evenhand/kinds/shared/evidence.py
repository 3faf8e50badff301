"""Quotes and where they stand in the judged text.

A quote is matched exactly first, then after NFC and white-space folding, then with quotation
marks and ellipses unified. Whatever is found is a stretch of the original text: offsets are its
code points, half-open, of the first occurrence.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from evenhand.judgment import Match

_MARKS = dict.fromkeys(map(ord, "\"'`´«»“”„‟‘’‚‛‹›「」『』〝〞〟＂＇"), '"')
_ELLIPSES = {ord("…"): "...", ord("⋯"): "..."}
_nfc, _nfd = partial(unicodedata.normalize, "NFC"), partial(unicodedata.normalize, "NFD")

CLUSTER_MOST = 64
"""Marks on one letter. More are no writing, and to sort them takes the square of their number."""

CUTS_MOST = 1000
"""Places looked at that would cut a cluster. Only endless rows of ellipses have more."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the original text."""

    start: int
    end: int
    match: Match


def locate(quote: str, text: str) -> Span | None:
    """Where `quote` stands in `text`; None if it does not, or is blank."""
    if not quote.strip():
        return None
    at = text.find(quote)
    if at >= 0:
        return Span(at, at + len(quote), "exact")
    if place := _folded_place(quote, text, {}):
        return Span(*place, "folded")
    if place := _folded_place(quote, text, _MARKS | _ELLIPSES):
        return Span(*place, "unified")
    return None


def _folded_place(quote: str, text: str, table: dict[int, str]) -> tuple[int, int] | None:
    sought = _Folded(quote, table).text.strip()
    folded = _Folded(text, table)
    at = folded.text.find(sought) if sought else -1
    for _ in range(CUTS_MOST):
        if at < 0:
            break
        if place := folded.original(at, at + len(sought)):
            return place
        at = folded.text.find(sought, folded.after(at))
    return None


class _Folded:
    """A text folded cluster by cluster, with the way back to the original."""

    def __init__(self, text: str, table: dict[int, str]) -> None:
        parts: list[str] = []
        self.owners: list[int] = []
        self.starts: list[int] = []
        for start, cluster in _clusters(text):
            folded = _fold(cluster, table)
            if folded == " " and parts and parts[-1] == " ":
                continue
            parts.append(folded)
            self.owners.extend([len(self.starts)] * len(folded))
            self.starts.append(start)
        self.text = "".join(parts)
        self.length = len(text)

    def original(self, start: int, end: int) -> tuple[int, int] | None:
        """The stretch whose folded form is [start, end); None if it would cut a cluster."""
        first, last = self.owners[start], self.owners[end - 1]
        cut_before = start > 0 and self.owners[start - 1] == first
        cut_after = end < len(self.owners) and self.owners[end] == last
        if cut_before or cut_after:
            return None
        stop = self.starts[last + 1] if last + 1 < len(self.starts) else self.length
        return self.starts[first], stop

    def after(self, at: int) -> int:
        """Where the cluster after the one at `at` begins."""
        return bisect_right(self.owners, self.owners[at])


def _clusters(text: str) -> list[tuple[int, str]]:
    """The text cut where NFC cannot reach across."""
    if unicodedata.is_normalized("NFC", text):
        return [(m.start(), m[0]) for m in re.finditer(r"\s+|\S", text)]
    starts = [0]
    for index in range(1, len(text)):
        if not _joins(text, starts[-1], index):
            starts.append(index)
    return [(start, text[start:stop]) for start, stop in pairwise([*starts, len(text)])]


def _joins(text: str, start: int, index: int) -> bool:
    """Whether the character at `index` belongs to the cluster that begins at `start`."""
    char, before = text[index], text[index - 1]
    if char.isspace() or before.isspace():
        return char.isspace() and before.isspace()
    if char.isascii() or index - start >= CLUSTER_MOST:
        return False
    if unicodedata.combining(_nfd(char)[0]):
        return True
    return _nfc(text[start : index + 1]) != _nfc(text[start:index]) + _nfc(char)


def _fold(cluster: str, table: dict[int, str]) -> str:
    if cluster.isspace():
        return " "
    return _nfc(cluster).translate(table)


_SENTENCE = re.compile(r"[^.!?。！？…\n]+[.!?。！？…]*[»”\"』」)]*|[.!?。！？…]+")
_CLAUSE = re.compile(r"[^,;:，、；：—]+[,;:，、；：—]*")
FRAGMENTS_MOST, FRAGMENT_CHARS = 24, 160


def fragments(text: str) -> list[str]:
    """Sentences of `text`, long ones cut at clauses: quotes that are verbatim by construction."""
    found: dict[str, None] = {}
    for sentence in _SENTENCE.findall(text):
        parts = [sentence] if len(sentence) <= FRAGMENT_CHARS else _CLAUSE.findall(sentence)
        found.update(dict.fromkeys(part.strip()[:FRAGMENT_CHARS].strip() for part in parts))
    return [part for part in found if any(map(str.isalnum, part))][:FRAGMENTS_MOST]
