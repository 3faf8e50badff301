"""Scores to judgments of samples: the dimensions of one judge on one unit are one judgment.

A score that is missing is left out and counted; a judgment without any score is a failure. Rows
that stand double after all are repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import Raw
from numpy.typing import NDArray
from pydantic_core import from_json

from evenhand import jsontext
from evenhand.data.foreign.chunks import Chunk
from evenhand.data.foreign.tidy import (
    SCORE_COLUMNS,
    SCORED_COLUMNS,
    meta_of,
    read_reasons,
    read_score,
    text_of,
    whole_text_of,
)
from evenhand.judgment import JudgmentText
from evenhand.kinds.rubric.unit import sample_text
from evenhand.kinds.shared.evidence import SearchText
from evenhand.ledger.ports import IncomingUnit
from evenhand.limits import BATCH_ROWS
from evenhand.packedfile import PackedFile
from evenhand.runs.imports.forms import BLANK, Forms
from evenhand.runs.imports.keys import Columns, Seen, find_key, key_values
from evenhand.runs.imports.memo import COLUMN_SETS, MEMO_ENTRIES, Memo, Vocabulary, in_turn
from evenhand.runs.imports.scored import JudgedAnswer, ScoreRow, judgments_of
from evenhand.runs.imports.spellings import Spellings
from evenhand.runs.imports.spool import Spool
from evenhand.runs.imports.tally import Tally
from evenhand.runs.imports.waiting_rows import NOTHING, JudgedRows, Numbers, WaitingRows
from evenhand.units import Sample

_TABLES = {
    "metas": ("no INTEGER PRIMARY KEY", "text"),
    "places": ("no INTEGER PRIMARY KEY", "key", "unit", "meta", "origin", "question", "answer"),
}
"""A place is a unit with one meta: the key, which may be found out only when all rows are there,
says which places are one unit."""
_BY_TEXT = "CREATE INDEX IF NOT EXISTS metas_by_text ON metas (text)"
_META = "SELECT no FROM metas WHERE text=?"
_BY_UNIT = "CREATE INDEX IF NOT EXISTS places_by_unit ON places (unit, meta)"
_PLACE = "SELECT no FROM places WHERE unit=? AND meta=?"
_OWNERS = (
    "CREATE TABLE owners AS SELECT no AS place, min(no) OVER (PARTITION BY key) AS owner"
    " FROM places ORDER BY no"
)
_UNITS = (
    "SELECT p.unit, m.text, p.origin, p.question, p.answer FROM owners o"
    " JOIN places p ON p.no=o.place JOIN metas m ON m.no=p.meta WHERE o.owner=o.place"
    " ORDER BY p.no"
)
_OWNER_OF = "SELECT owner FROM owners ORDER BY rowid"
_DIFFERING = (
    "SELECT o.place, m.text, f.text FROM owners o JOIN places p ON p.no=o.place"
    " JOIN places u ON u.no=o.owner JOIN metas m ON m.no=p.meta JOIN metas f ON f.no=u.meta"
    " WHERE o.owner<>o.place AND p.meta<>u.meta ORDER BY o.place"
)
"""The meta of places that do not have that of the first one of their unit."""

_BLANKS = (f'"{BLANK}"',)
"""What a judgment says of its unit: its meta."""
_BLANK_UNIT = JudgedAnswer(Raw(f'"{BLANK}"'), SearchText(""))


class _Reading(NamedTuple):
    """What cells say of a score beside its unit, its judge and its meta."""

    said: int | str
    """The words of the score, see `Vocabulary`: `ScoreRow` to its tags, but whether the score is a
    whole number in the place of it."""
    score: float | None
    spelled: tuple[str, str] | None
    unreadable: str
    is_noted: bool
    """Whether there is something to count in every row that says this."""


class _Meta(NamedTuple):
    """The fields of a row beside its score, and their number among those that wait."""

    fields: dict[str, Any]
    no: int


class _Memos(NamedTuple):
    """What rows with the same columns say."""

    reading: Memo[_Reading]
    meta: Memo[_Meta]


class ScoreRows:
    """The scores of one import."""

    shape: Literal["scores"] = "scores"

    def __init__(
        self, kind: str, key: tuple[str, ...], judge: str, opening: Sequence[str] = ("unit",)
    ) -> None:
        self.kind, self.key, self._opening = kind, key, opening
        """Without a key it is found out, and opens with these columns."""
        self.tally, self._columns, self._spool = Tally(), Columns(), Spool(_TABLES)
        self._seen = Seen(kind, judge, self._columns)
        self._waiting: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _TABLES}
        self._memos: dict[tuple[str, ...], _Memos] = {}
        self._metas: dict[str, int] = {}
        self._places: dict[tuple[str, int], int] = {}
        self._counts = Counter[str]()
        """How many metas and places there are."""
        self.criteria: list[str] = []
        self._spellings = Spellings()
        self._vocabulary = Vocabulary()
        self._scores, self._further = WaitingRows(), PackedFile()
        """The scores, and what they say beyond numbers."""
        self._dimensions: dict[str, None] = {}
        self._failing: set[int | str] = set()
        """Words of scores that are missing."""

    @property
    def judges(self) -> list[str]:
        return self._seen.judges

    def __enter__(self) -> ScoreRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def fill(self, chunks: Iterable[Chunk]) -> None:
        """Take in all rows, and settle what tells units apart; raises DataError."""
        spool, tally = self._spool, self.tally
        for chunk in chunks:
            in_turn(self._take, chunk)
            tally.rows += chunk.size
            if len(self._waiting["places"]) >= BATCH_ROWS:
                spool.write(self._waiting)
        spool.write(self._waiting)
        self._spellings.require_alike()
        if not self.key:
            counts = (self._distinct, self._doubles, self._spread)
            self.key = tuple(find_key(self._columns, *counts, self._opening))
            self._set_keys()
        self._columns.require(self.key)
        spool.run(_OWNERS)
        tally.repeats = [0] * len(self.judges)
        tally.names = list(self._dimensions)
        numbers = np.bincount(self._scores.rows()["unit"])
        for place, meta, first in spool.rows(_DIFFERING):
            tally.compare(meta, first, self.key, int(numbers[place]))

    def _take(self, chunk: Chunk) -> None:
        """Have the scores of some rows wait."""
        memos = self._memos_of(chunk)
        readings, metas = memos.reading.of(chunk), memos.meta.of(chunk)
        for reading in readings:
            if reading.is_noted:
                self._note(reading)
        # As long as the key is open, the unit stands for it.
        units = self._seen.units_of(chunk, self.key or ("unit",))
        keys = [(unit, meta.no) for unit, meta in zip(units, metas, strict=True)]
        places: list[Any] = list(map(self._places.get, keys))
        if None in places:
            for at, place in enumerate(places):
                if place is None:
                    place_no = self._places.get(keys[at])
                    places[at] = place_no or self._place(units[at], metas[at], chunk, at)
        judges = self._seen.judges_of(chunk)
        said = [_number(reading.said) for reading in readings]
        scores = [reading.score for reading in readings]
        further = self._further_of(chunk, readings)
        self._scores.add(places, judges, said, scores, further, chunk.size)

    def _further_of(self, chunk: Chunk, readings: Sequence[_Reading]) -> list[int]:
        """Where it is kept what scores say beyond numbers."""
        further = [NOTHING] * chunk.size
        columns = {n: c for n, c in chunk.columns.items() if n in ("evidence", "rationale")}
        for at, reading in enumerate(readings):
            spelled = reading.said if isinstance(reading.said, str) else None
            reasons = ("", "")
            if columns:
                reasons = read_reasons({name: column[at] for name, column in columns.items()})
            if spelled is not None or any(reasons):
                further[at] = self._further.add((spelled, *reasons))
        return further

    def _note(self, reading: _Reading) -> None:
        """Count what is told of the words of a row."""
        if reading.spelled:
            self.tally.spelled[reading.spelled] += 1
        if reading.unreadable:
            self.tally.note_unreadable(reading.unreadable)

    def _memos_of(self, chunk: Chunk) -> _Memos:
        """What rows with the columns of these share."""
        columns = tuple(chunk.columns)
        if memos := self._memos.get(columns):
            return memos
        if len(self._memos) >= COLUMN_SETS:
            self._memos.clear()
        rest = [n for n in columns if n not in SCORE_COLUMNS or n in ("meta", *self.key)]
        memos = _Memos(
            Memo(self._reading, [name for name in columns if name in SCORED_COLUMNS]),
            Memo(self._meta, [name for name in rest if name != "unit"]),
        )
        self._memos[columns] = memos
        return memos

    def _reading(self, row: Mapping[str, Any], where: str) -> _Reading:
        score, text = read_score(row), text_of(row.get("score"))
        words = (
            *(score.dimension, isinstance(score.score, int), score.failed, score.detail),
            *(score.repeat, ",".join(score.tags)),
        )
        said = self._vocabulary.number(words)
        if score.failed:
            self._failing.add(_number(said))
        if score.dimension is not None:
            self._dimensions.setdefault(score.dimension)
        self._spellings.note(score, text)
        return _Reading(
            said=said,
            score=score.score,
            spelled=(score.spelled, f"{score.score:g}") if score.spelled else None,
            unreadable=score.unreadable,
            is_noted=bool(score.spelled or score.unreadable),
        )

    def _meta(self, row: Mapping[str, Any], where: str) -> _Meta:
        fields = meta_of(row, SCORE_COLUMNS, self.key)
        unit = text_of(row.get("unit"))
        self._columns.see({"unit": unit, **fields} if unit else fields)
        text = jsontext.swift(fields)
        number = self._metas.get(text)
        if number is None:
            before = self._counts["metas"]
            number = self._number("metas", self._metas, _BY_TEXT, _META, (text,))
            self._metas[text] = number
            if number > before:
                self._waiting["metas"].append((number, text))
        return _Meta(fields, number)

    def _place(self, unit: str, meta: _Meta, chunk: Chunk, at: int) -> int:
        """The number of a place that is not at hand."""
        before = self._counts["places"]
        number = self._number("places", self._places, _BY_UNIT, _PLACE, (unit, meta.no))
        self._places[unit, meta.no] = number
        if number > before:
            ident, _ = key_values(self.key or ("unit",), unit, meta.fields)
            row = chunk.row(at)
            texts = (whole_text_of(row.get(name)) for name in ("question", "answer"))
            self._waiting["places"].append((number, ident, unit, meta.no, chunk.where(at), *texts))
        return number

    def _number(
        self,
        table: str,
        at_hand: dict[Any, int],
        index: str,
        query: str,
        values: tuple[Any, ...],
    ) -> int:
        """The number of a row of a table that is not at hand: the next, or one that waits on the
        disk."""
        if len(at_hand) >= MEMO_ENTRIES:
            at_hand.clear()
            self._spool.write(self._waiting)
            self._spool.run(index)
        if self._counts[table] >= MEMO_ENTRIES and (stored := self._spool.row(query, values)):
            return int(stored[0])
        self._counts[table] += 1
        return self._counts[table]

    def _distinct(self, key: Sequence[str]) -> int:
        columns = ", ".join(map(_column, key))
        return int(
            self._spool.names(
                f"SELECT count(*) FROM (SELECT DISTINCT {columns}"  # noqa: S608
                " FROM places JOIN metas ON metas.no=places.meta)"
            )[0]
        )

    def _doubles(self, key: Sequence[str]) -> int:
        columns = ", ".join(map(_column, key))
        owners = self._spool.names(
            f"SELECT min(places.no) OVER (PARTITION BY {columns}) FROM places"  # noqa: S608
            " JOIN metas ON metas.no=places.meta ORDER BY places.no"
        )
        rows = self._scores.rows()
        units = np.array([0, *owners], dtype=np.int64)[rows["unit"]]
        slots = self._slots(rows)
        distinct = np.unique((units * len(self.judges) + rows["judge"]) * (slots.max() + 1) + slots)
        return int(self.tally.rows - len(distinct))

    def _slots(self, rows: NDArray[Any]) -> Numbers:
        """The dimension and repeat of each row, as a number."""
        numbers: dict[tuple[Any, Any], int] = {}
        slots = np.array([_slot(numbers, words) for words in self._vocabulary], dtype=np.int64)
        slot_of: Numbers = np.append(slots, 0)[rows["said"]]
        for at in np.flatnonzero(rows["said"] == NOTHING).tolist():
            spelled, *_ = self._further.at(int(rows["further"][at]))
            slot_of[at] = _slot(numbers, self._vocabulary.words(spelled))
        return slot_of

    def _spread(self, name: str) -> float:
        ((number, units, values),) = self._spool.rows(
            "SELECT count(*), count(DISTINCT unit), count(DISTINCT value)"  # noqa: S608
            f" FROM (SELECT DISTINCT unit, {_column(name)} AS value"
            " FROM places JOIN metas ON metas.no=places.meta)"
        )
        return float(number / (units * values)) if units and values else 0.0

    def _set_keys(self) -> None:
        """The key of every place, now that its columns are known: only to group by, the ids are
        made from the values themselves."""
        if self.key != ("unit",):
            values = ", ".join(map(_column, self.key))
            self._spool.run(
                f"UPDATE places SET key=(SELECT json_array({values})"  # noqa: S608
                " FROM metas WHERE metas.no=places.meta)"
            )

    def units(self) -> Iterator[IncomingUnit]:
        """Every unit with its judgments."""
        forms = Forms(self.tally, _BLANKS)
        owners = np.array([0, *self._spool.names(_OWNER_OF)], dtype=np.uint32)
        by_unit = groupby(self._scores.judged(owners), key=itemgetter(0))
        for opening, (_, judged) in zip(self._spool.rows(_UNITS), by_unit, strict=True):
            unit, text, origin, question, answer = opening
            ident, fields = key_values(self.key, unit, from_json(text))
            sample = Sample(id=ident, question=question, model_output=answer, meta=fields)
            meta = jsontext.swift(fields)
            texts: list[tuple[int, int, JudgmentText]] = []
            for rows in judged:
                judgments = self._texts(forms, meta, answer, rows)
                texts += [(rows.judge, repeat, text) for repeat, text in enumerate(judgments)]
            self.tally.units += 1
            yield IncomingUnit(ident, origin, sample_text(sample), texts)
        forms.count()

    def _texts(self, forms: Forms, meta: str, answer: str, rows: JudgedRows) -> list[JudgmentText]:
        """The judgments of one judge on one unit."""
        if rows.further is None and self._failing.isdisjoint(rows.said):
            words = (tuple(rows.said), tuple(rows.numbers))
            texts = forms.filled(
                rows.judge,
                words,
                (meta,),
                lambda: judgments_of(self.tally, _BLANK_UNIT, self._read(rows)),
            )
            if texts is not None:
                return texts
        judged = JudgedAnswer(Raw(meta), SearchText(answer))
        return forms.written(rows.judge, judgments_of(self.tally, judged, self._read(rows)))

    def _read(self, rows: JudgedRows) -> list[ScoreRow]:
        """Scores as they were read."""
        read: list[ScoreRow] = []
        further = rows.further or [NOTHING] * len(rows.said)
        for said, number, start in zip(rows.said, rows.numbers, further, strict=True):
            spelled, quotes, rationale = (None, "", "") if start < 0 else self._further.at(start)
            dimension, is_whole, *words = self._vocabulary.words(spelled or said)
            score = int(number) if is_whole and number is not None else number
            read.append(ScoreRow._make((dimension, score, *words, quotes, rationale)))
        return read


def _number(said: int | str) -> int:
    """What stands for words in a row of numbers."""
    return said if isinstance(said, int) else NOTHING


def _slot(numbers: dict[tuple[Any, Any], int], words: Sequence[Any]) -> int:
    """The number of the dimension and the repeat among the words of a score."""
    dimension, _, _, _, repeat, _ = words
    return numbers.setdefault((dimension, repeat), len(numbers))


def _column(name: str) -> str:
    """A column of the key as SQL; meta columns stand in one JSON text."""
    if name == "unit":
        return "unit"
    path = f'$."{name}"'.replace("'", "''")
    return f"CAST(json_extract(metas.text, '{path}') AS TEXT)"
