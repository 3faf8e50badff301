"""Units in compact form: every text once, in one table, and blocks as numbers into it.

Ten thousand units share prompts, labels and verdicts; their own texts appear in the unit, in the
prompt and in the reply. Texts too long for the room there is are cut in the middle of what is not
marked; the store keeps them whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.jsontext import compact

Text = str | list[Any]
"""A text, or [head, characters left out, tail]."""
BYTES_MOST = 18_000_000
"""Of all texts together: the file around them stays below 25 MB."""
CUTS = (200_000, 50_000, 20_000, 10_000, 5_000, 3_000, 2_000, 1_200, 800, 500, 300, 200, 120)
"""Lengths in characters at which texts are cut, tried in turn."""
_CALL_SHARE = 2
"""The divisor of the length limit for texts that passed between program and judge; texts that were
judged may have the full length."""
_SHARED = 20
KINDS = ("text", "columns", "table", "items", "notice", "group", "section")


def cut(text: str, most: int) -> Text:
    """A text of at most so many characters: its beginning, how many were left out, its end."""
    if len(text) <= most + 40:  # a gap takes room too
        return text
    head, tail = most * 2 // 3, most - most * 2 // 3
    return [text[:head], len(text) - head - tail, text[len(text) - tail :]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """Something units are found by: its name among the words, and its values."""

    name: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedUnits:
    """Every unit of a report."""

    strings: Sequence[Text]
    facets: Sequence[Facet]
    units: Sequence[Sequence[Any]]
    """[id, who, result, text, [chips], [[places in the values of each facet]], blocks as JSON];
    texts are numbers into `strings`."""
    total: int
    """Of the run: more than there are here where it is very large."""
    was_cut: bool
    static_units: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]
    """Lines and blocks of the first units, for a page without scripts."""


class Packer:
    """Gathers units one by one."""

    def __init__(self, facets: Sequence[str], static: int) -> None:
        self._places: dict[str, int] = {}
        self._judged: set[int] = set()
        """Places of texts that were judged: they are cut less."""
        self._long: Counter[int] = Counter()
        """Texts that may be cut, with how often they are used."""
        self._facets: dict[str, dict[str, int]] = {name: {} for name in facets}
        self._units: list[list[Any]] = []
        self._static, self._static_units = static, list[tuple[Mapping[str, Any], list[Any]]]()

    def add(self, line: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]) -> None:
        """The next unit: its line with `who` and `chips`, a list of values for each facet, and
        its blocks."""
        facets = [
            [places.setdefault(value, len(places)) for value in line[name]]
            for name, places in self._facets.items()
        ]
        chips = [self._place(chip) for chip in line["chips"]]
        texts = [self._place(line[name]) for name in ("id", "who", "result", "text")]
        self._units.append(
            [*texts, chips, facets, compact([self._block(block) for block in blocks])]
        )
        if len(self._static_units) < self._static:
            self._static_units.append((line, [shortened(block) for block in blocks]))

    def packed(self, total: int) -> PackedUnits:
        """All of them, cut as far as the room asks for."""
        limit = self._limit(BYTES_MOST)
        strings: list[Text] = [
            cut(text, _allowed(limit, place in self._judged)) if self._may_cut(place) else text
            for text, place in self._places.items()
        ]
        return PackedUnits(
            strings=strings,
            facets=[Facet(name=n, values=list(places)) for n, places in self._facets.items()],
            units=self._units,
            total=total,
            was_cut=any(isinstance(text, list) for text in strings),
            static_units=self._static_units,
        )

    def _may_cut(self, place: int) -> bool:
        """Return True if a text may be cut. Text that many units share, such as the words around a
        prompt, is worth its room."""
        return 0 < self._long[place] < _SHARED

    def _limit(self, most: int) -> int:
        """The greatest length at which all texts fit."""
        fixed, sizes = 0, list[tuple[int, float, bool]]()
        for text, place in self._places.items():
            size = len(text.encode()) + text.count("\n") + text.count('"') + 3
            if self._may_cut(place) and len(text) > CUTS[-1] // _CALL_SHARE:
                sizes.append((len(text), size / len(text), place in self._judged))
            else:
                fixed += size
        fixed += sum(len(unit[5]) + 60 for unit in self._units)
        for limit in CUTS:
            if (
                fixed + sum(min(n, _allowed(limit, is_own) + 40) * b for n, b, is_own in sizes)
                <= most
            ):
                return limit
        return CUTS[-1]

    def _place(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))

    def _block(self, block: Mapping[str, Any]) -> list[Any]:
        """A block as numbers: the place of its kind, then what the kind has, in a fixed order."""
        kind, place = block["kind"], self._place
        if kind == "text":
            fields: list[Any] = [place(block[name]) for name in ("label", "note", "part")]
            is_own = block["part"] == "own"
            fields.append([self._segment(segment, is_own) for segment in block["segments"]])
        elif kind == "columns":
            fields = [[self._blocks(column) for column in block["columns"]]]
        elif kind == "table":
            rows = [[self._cell(*cell) for cell in row] for row in block["rows"]]
            fields = [place(block["label"]), [place(text) for text in block["head"]], rows]
        elif kind == "items":
            items = [[place(text) for text in item] for item in block["items"]]
            fields = [place(block["label"]), place(block["tone"]), items]
        elif kind == "notice":
            fields = [place(block["text"]), place(block["tone"])]
        else:
            fields = [place(block["label"]), self._blocks(block["blocks"])]
        return [KINDS.index(kind), *fields]

    def _blocks(self, blocks: Sequence[Mapping[str, Any]]) -> list[Any]:
        return [self._block(block) for block in blocks]

    def _cell(self, text: str, tone: str) -> Any:
        return [self._place(text), self._place(tone)] if tone else self._place(text)

    def _segment(self, segment: Sequence[str], is_own: bool) -> Any:
        place = self._place(segment[0])
        self._long[place] += 1
        if is_own:
            self._judged.add(place)
        return place if len(segment) == 1 else [place, *map(self._place, segment[1:])]


def _allowed(limit: int, is_own: bool) -> int:
    return limit if is_own else limit // _CALL_SHARE


_STATIC_OWN, _STATIC_CALL = 2_000, 800


def shortened(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block with its long texts cut, for a page without scripts."""
    short = dict(block)
    if short["kind"] == "text":
        most = _STATIC_OWN if short["part"] == "own" else _STATIC_CALL
        short["segments"] = [[cut(segment[0], most), *segment[1:]] for segment in short["segments"]]
    for name in ("blocks", "columns"):
        if name in short:
            short[name] = list(_shortened(short[name]))
    return short


def _shortened(inner: Sequence[Any]) -> Iterator[Any]:
    for block in inner:
        yield list(_shortened(block)) if isinstance(block, list) else shortened(block)
