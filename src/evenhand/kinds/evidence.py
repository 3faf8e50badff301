"""Quotes and their places in the judged text.

A quote is matched exactly first, then after NFC and white-space folding, then with quotation marks
and ellipses unified. Last, harmless changes are undone: quotation marks put around the quote, an
ellipsis after it, spaces between CJK and other writing, punctuation of the other width, Markdown's
marks of emphasis and code; then the quote must stand at exactly one place. Offsets are code points
of the original text, half-open.

A text is folded once, however many quotes are sought in it, in time linear in its length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple
from unicodedata import combining, is_normalized, normalize

from msgspec import Struct

from evenhand.judgment import Match

CLUSTER_MOST = 64
"""Marks on one letter. More are no writing, and to sort them takes the square of their number."""
MARKS_MOST = 3
"""The longest row of marks that Markdown reads as emphasis or code."""
CUTS_MOST = 1000
"""Places looked at that would cut a cluster. No writing has more."""

_STRETCH = re.compile(r"\s+|\S+")
_QUOTES = "\"'`´«»“”„‟‘’‚‛‹›「」『』〝〞〟＂＇"
_UNIFIED = str.maketrans(dict.fromkeys(_QUOTES, '"'))
_ELLIPSIS = re.compile(r"(?:[…⋯]|\.{3})[…⋯.]*+")
_MARKS = re.compile(r"([*_~`])\1*+")
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
        if place := self.folded.locate(sought.folded.text.strip()):
            return Span(*place, "folded")
        if place := self.unified.locate(sought.unified.text.strip()):
            return Span(*place, "unified")
        core = _strip_quote(quote)
        if not any(map(str.isalnum, core)):
            return None
        place = self.loosened.locate_only(SearchText(core).loosened.text.strip())
        return Span(*self._trim(*place), "unified") if place else None

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        """Return a stretch without the white space at its ends."""
        found = self.text[start:end]
        return end - len(found.lstrip()), start + len(found.rstrip())

    @cached_property
    def folded(self) -> _Folding:
        """The text in NFC, with white space as single spaces."""
        return _Folding(self.text, _compose(self.text))

    @cached_property
    def unified(self) -> _Folding:
        """The folded text with one sort of quotation marks and of ellipses."""
        return _unify(self.folded)

    @cached_property
    def loosened(self) -> _Folding:
        """The unified text without marks of emphasis and code, with punctuation of one width, and
        no space between CJK and other writing."""
        folded = self.folded
        unified = _unify(_Folding(folded.text, _find_emphasis(folded.text), folded))
        spaces = (_Edit(*space.span(), "") for space in _CJK_SPACE.finditer(unified.text))
        return _Folding(unified.text.translate(_NARROW), spaces, unified)


class _Edit(NamedTuple):
    """A stretch of a text and what takes its place."""

    start: int
    end: int
    folded: str


class _Folding:
    """A text with every edit made, and the way back to the text that `inner` was made of."""

    def __init__(self, text: str, edits: Iterable[_Edit], inner: _Folding | None = None) -> None:
        self.inner, self.edits = inner, list(edits)
        self.starts: list[int] = []
        self.ends: list[int] = []
        pieces: list[str] = []
        at = done = 0
        for edit in self.edits:
            pieces += (text[done : edit.start], edit.folded)
            at += edit.start - done
            self.starts.append(at)
            at, done = at + len(edit.folded), edit.end
            self.ends.append(at)
        self.text = "".join([*pieces, text[done:]])

    def locate(self, sought: str) -> tuple[int, int] | None:
        """Return the first stretch of the original text that is folded to `sought`."""
        at = self.text.find(sought) if sought else -1
        for _ in range(CUTS_MOST):
            if at < 0:
                break
            start, end = self.original(at), self.original(at + len(sought))
            if start is not None and end is not None:
                return start, end
            at = self.text.find(sought, self._next(at))
        return None

    def locate_only(self, sought: str) -> tuple[int, int] | None:
        """Return the one stretch of the original text that is folded to `sought`; None if there
        are several."""
        place = self.locate(sought)
        is_repeated = self.text.find(sought, self.text.find(sought) + 1) >= 0
        return None if is_repeated else place

    def original(self, at: int) -> int | None:
        """Return the offset in the original text; None in the middle of an edit."""
        index = bisect_right(self.starts, at) - 1
        if index >= 0:
            start, end, edit = self.starts[index], self.ends[index], self.edits[index]
            if start < at < end:
                return None
            at = edit.start if at == start else edit.end + at - end
        return self.inner.original(at) if self.inner else at

    def _next(self, at: int) -> int:
        """Return the next offset at which an edit or a character begins."""
        index = bisect_right(self.starts, at) - 1
        return self.ends[index] if index >= 0 and at < self.ends[index] else at + 1


def _compose(text: str) -> Iterator[_Edit]:
    """Yield white space as one space, and letters with their marks in NFC."""
    for stretch in _STRETCH.finditer(text):
        if stretch[0].isspace():
            if stretch[0] != " ":
                yield _Edit(*stretch.span(), " ")
        elif not is_normalized("NFC", stretch[0]):
            yield from _find_clusters(text, *stretch.span())


def _find_clusters(text: str, start: int, end: int) -> Iterator[_Edit]:
    """Yield each letter with its marks, and what else NFC changes."""
    for at in range(start + 1, end + 1):
        if at < end and _joins(text[start:at], text[at]):
            continue
        composed = normalize("NFC", text[start:at])
        if at - start > 1 or composed != text[start]:
            yield _Edit(start, at, composed)
        start = at


def _joins(cluster: str, char: str) -> bool:
    """Return True if NFC may join a character to those before it."""
    if char < "\u0300" or len(cluster) >= CLUSTER_MOST:
        return False
    if combining(normalize("NFD", char)[0]):
        return True
    return not is_normalized("NFC", normalize("NFC", cluster) + normalize("NFC", char))


def _unify(inner: _Folding) -> _Folding:
    plain = inner.text.translate(_UNIFIED)
    ellipses = (_Edit(*ellipsis.span(), "...") for ellipsis in _ELLIPSIS.finditer(plain))
    return _Folding(plain, ellipses, inner)


def _find_emphasis(text: str) -> Iterator[_Edit]:
    """Yield Markdown's marks of emphasis and code: not one that stands alone, as a bullet does, nor
    within a word or a product, as in snake_case and 3*4."""
    for run in _MARKS.finditer(text):
        start, end = run.span()
        before, after = text[start - 1 : start], text[end : end + 1]
        is_alone = not before.strip() and not after.strip()
        is_inside = before.isascii() and after.isascii() and (before + after).isalnum()
        if end - start <= MARKS_MOST and run[0] != "~" and not is_alone and not is_inside:
            yield _Edit(start, end, "")


def _strip_quote(quote: str) -> str:
    """Return a quote without the quotation marks around it and the ellipsis after it."""
    core = quote.strip()
    for _ in range(3):
        if around := _AROUND.fullmatch(core):
            core = around[1].strip()
        end = len(core)
        while core.endswith(("…", "⋯", "..."), 0, end):
            end -= 3 if core[end - 1] == "." else 1
        core = core[:end].rstrip()
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
