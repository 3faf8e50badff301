"""Quotes and where they stand in the judged text.

A quote is matched exactly first, then after NFC and white-space folding, then with quotation
marks and ellipses unified. Whatever is found is a stretch of the original text: offsets are its
code points, half-open, of the first occurrence. Last, harmless changes are undone: quotation marks
put around the quote, an ellipsis after it, spaces between CJK and other writing, punctuation of the
other width, Markdown's marks of emphasis and code; then it must stand at exactly one place.

A text is folded once, however many quotes are sought in it, in time linear in its length.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from evenhand.judgment import Match
from evenhand.kinds.shared.scan import chunks, matches
from evenhand.regexp import regexp

_nfc, _nfd = partial(unicodedata.normalize, "NFC"), partial(unicodedata.normalize, "NFD")

CLUSTER_MOST = 64
"""Marks on one letter. More are no writing, and to sort them takes the square of their number."""

CLUSTER_USUAL = 4
"""Letters and marks of nearly every cluster there is."""

MARKS_MOST = 3
"""The longest row of marks that Markdown reads as emphasis or code."""

CUTS_MOST = 1000
"""Places looked at that would cut a cluster. No writing has more."""


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
        """Where `quote` stands; None if it does not, or is blank."""
        if not quote.strip():
            return None
        at = self.text.find(quote)
        if at >= 0:
            return Span(at, at + len(quote), "exact")
        sought = SearchText(quote)
        if place := self.folded.locate(sought.folded.text.strip()):
            return Span(*place, "folded")
        if place := self.unified.locate(sought.unified.text.strip()):
            return Span(*place, "unified")
        core = _core(quote)
        if not any(map(str.isalnum, core)):
            return None
        place = self.loosened.only(SearchText(core).loosened.text.strip())
        return Span(*self._trimmed(*place), "unified") if place else None

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        """A stretch without the white space that folding took away at its ends."""
        while self.text[start].isspace():
            start += 1
        while self.text[end - 1].isspace():
            end -= 1
        return start, end

    @cached_property
    def folded(self) -> _Folding:
        """In NFC, with white space as single spaces."""
        return _Folding(self.text, _composed(self.text))

    @cached_property
    def unified(self) -> _Folding:
        """The same with one sort of quotation marks and of ellipses."""
        return _unified(self.folded)

    @cached_property
    def loosened(self) -> _Folding:
        """The same without marks of emphasis and code, with punctuation of one width, and no space
        between CJK and other writing."""
        marks = list(_emphasis(self.folded.text))
        bare = _Folding(self.folded.text, marks, self.folded) if marks else None
        unified = _unified(bare) if bare else self.unified
        text = unified.text
        spaces = (_Edit(*space.span(), "") for space in matches(_LOOSE_SPACE, text))
        narrow = "".join(text[start:end].translate(_NARROW) for start, end in chunks(text))
        return _Folding(narrow, spaces, unified)


class _Edit(NamedTuple):
    """A stretch that stands for one thing, and what it is folded to."""

    start: int
    end: int
    folded: str


class _Folding:
    """A text with every edit made, and the way back: through `inner` where it was folded before."""

    def __init__(self, text: str, edits: Iterable[_Edit], inner: _Folding | None = None) -> None:
        self.inner = inner
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.edits: list[_Edit] = []
        pieces: list[str] = []
        at = done = 0
        for edit in edits:
            pieces += (text[done : edit.start], edit.folded)
            at += edit.start - done
            self.starts.append(at)
            at, done = at + len(edit.folded), edit.end
            self.ends.append(at)
            self.edits.append(edit)
        self.text = "".join([*pieces, text[done:]]) if pieces else text

    def locate(self, sought: str) -> tuple[int, int] | None:
        """The first stretch of the original text that is folded to `sought`."""
        at = self.text.find(sought) if sought else -1
        for _ in range(CUTS_MOST):
            if at < 0:
                break
            start, end = self.original(at), self.original(at + len(sought))
            if start is not None and end is not None:
                return start, end
            at = self.text.find(sought, self._after(at))
        return None

    def only(self, sought: str) -> tuple[int, int] | None:
        """The one stretch of the original text that is folded to `sought`; None if there are
        several."""
        place = self.locate(sought)
        if place is None or self.text.find(sought, self.text.find(sought) + 1) >= 0:
            return None
        return place

    def original(self, at: int) -> int | None:
        """A place of the folded text in the original one; None in the middle of an edit."""
        number = bisect_right(self.starts, at) - 1
        if number >= 0:
            start, end, edit = self.starts[number], self.ends[number], self.edits[number]
            if start < at < end:
                return None
            at = edit.start if at == start else edit.end + at - end
        return self.inner.original(at) if self.inner else at

    def _after(self, at: int) -> int:
        """The next place at which an edit or a character begins."""
        number = bisect_right(self.starts, at) - 1
        return self.ends[number] if number >= 0 and at < self.ends[number] else at + 1


def _unified(inner: _Folding) -> _Folding:
    """Return a folded text with one sort of quotation marks and of ellipses."""
    text = inner.text
    plain = "".join(_QUOTATION.sub('"', text[start:end]) for start, end in chunks(text))
    ellipses = (_Edit(*ellipsis.span(), "...") for ellipsis in matches(_ELLIPSIS, plain))
    return _Folding(plain, ellipses, inner)


def _emphasis(text: str) -> Iterator[_Edit]:
    """Yield Markdown's marks of emphasis and code: not one that stands alone, as a bullet does, nor
    within a word or a product, as in snake_case and 3*4."""
    for run in matches(_MARKS, text):
        start, end = run.span()
        before, after = text[start - 1 : start], text[end : end + 1]
        is_alone = not before.strip() and not after.strip()
        is_inside = before.isascii() and after.isascii() and (before + after).isalnum()
        if end - start <= MARKS_MOST and run[0] != "~" and not is_alone and not is_inside:
            yield _Edit(start, end, "")


_BLANK = regexp(r"\s{2,}|[^\S ]")
# All but what NFC leaves as it is, whatever stands before it; and the letter before that.
_ODD = regexp(
    r"\s{2,}|[^\S ]|\S?[^\s\x00-\u02ff\u0400-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e"
    r"\u3001-\u3029\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3\uff01-\uffee]+"
)
_QUOTATION = regexp("[\"'`´«»“”„‟‘’‚‛‹›「」『』〝〞〟＂＇]")
_ELLIPSIS = regexp(r"(?:[…⋯]|\.{3})[…⋯.]*+")
_MARKS = regexp(r"([*_~`])\1*+")
_CJK = r"\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LOOSE_SPACE = regexp(rf"(?<=[{_CJK}]) (?=[^\s{_CJK}])|(?<=[^\s{_CJK}]) (?=[{_CJK}])")
_NARROW = str.maketrans("，。、；：！？（）［］｛｝％～＝＋－／＜＞", ",.,;:!?()[]{}%~=+-/<>")
_AROUND = regexp(rf"(?:{_QUOTATION.pattern})(.*)(?:{_QUOTATION.pattern})", re.DOTALL)


def _core(quote: str) -> str:
    """A quote without the quotation marks around it, and without an ellipsis after it."""
    core = quote.strip()
    for _ in range(3):
        if around := _AROUND.fullmatch(core):
            core = around[1].strip()
        core = _unended(core)
    return core


def _unended(text: str) -> str:
    """A text without the ellipses at its end: from there, for a pattern would try every dot of a
    long row as the beginning of the last."""
    end = len(text)
    while text.endswith(("…", "⋯", "..."), 0, end):
        end -= 3 if text[end - 1] == "." else 1
    return text[:end].rstrip()


_CJK_LETTER = regexp(f"[{_CJK}]")
SUBSTANTIAL_WEIGHT = 4
"""What a quote must weigh: a CJK character counts for two, any other but white space for one."""


def is_substantial_quote(quote: str, text: str) -> bool:
    """Whether a quote can show anything: it has a letter or digit, and 2 CJK or 4 other characters,
    unless it is the whole of the text."""
    if len(quote) >= SUBSTANTIAL_WEIGHT and quote[:SUBSTANTIAL_WEIGHT].isalnum():
        return True  # as most do: they begin with a word
    bare = "".join(quote.split())
    if not any(map(str.isalnum, bare)):
        return False
    if len(bare) >= SUBSTANTIAL_WEIGHT:
        return True
    weight = len(bare) + len(_CJK_LETTER.findall(bare))
    return weight >= SUBSTANTIAL_WEIGHT or quote.strip() == text.strip()


def _composed(text: str) -> Iterator[_Edit]:
    """White space as one space, and letters with their marks in NFC."""
    joins: dict[str, bool] = {}
    for start, end in chunks(text):
        is_normal = unicodedata.is_normalized("NFC", text[start:end])
        for stretch in (_BLANK if is_normal else _ODD).finditer(text, start, end):
            if stretch[0].isspace():
                yield _Edit(*stretch.span(), " ")
            else:
                yield from _clusters(text, *stretch.span(), joins)


def _clusters(text: str, start: int, end: int, joins: dict[str, bool]) -> Iterator[_Edit]:
    """The stretch cut where NFC cannot reach across; of single letters only those it alters."""
    starts = [start]
    for index in range(start + 1, end):
        if not _joins(text[starts[-1] : index + 1], joins):
            starts.append(index)
    for first, last in pairwise([*starts, end]):
        composed = _nfc(text[first:last])
        if last - first > 1 or composed != text[first]:
            yield _Edit(first, last, composed)


def _joins(cluster: str, joins: dict[str, bool]) -> bool:
    """Whether the last character belongs to the others; `joins` remembers usual clusters."""
    is_joined = joins.get(cluster)
    if is_joined is None:
        is_joined = len(cluster) <= CLUSTER_MOST and (
            unicodedata.combining(_nfd(cluster[-1])[0]) > 0
            or _nfc(cluster) != _nfc(cluster[:-1]) + _nfc(cluster[-1])
        )
        if len(cluster) <= CLUSTER_USUAL:
            joins[cluster] = is_joined
    return is_joined


_SENTENCE = regexp(r"[^.!?。！？…\n]+[.!?。！？…]*[»”\"』」)]*|[.!?。！？…]+")
_CLAUSE = regexp(r"[^,;:，、；：—]+[,;:，、；：—]*")
FRAGMENTS_MOST, FRAGMENT_CHARS = 24, 160


def fragments(text: str) -> list[str]:
    """Sentences of `text`, long ones cut at clauses: quotes that are verbatim by construction."""
    different: dict[str, None] = {}
    for part in _parts(text):
        if is_substantial_quote(part, text):
            different[part] = None
        if len(different) == FRAGMENTS_MOST:
            break
    return list(different)


def _parts(text: str) -> Iterator[str]:
    for sentence in matches(_SENTENCE, text):
        is_short = len(sentence[0]) <= FRAGMENT_CHARS
        parts = [sentence[0]] if is_short else _CLAUSE.findall(sentence[0])
        yield from (part.strip()[:FRAGMENT_CHARS].strip() for part in parts)
