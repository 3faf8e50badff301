"""Scores to judgments of samples: the dimensions of one judge on one unit are one judgment.

A score that is missing is left out and counted; a judgment without any score is a failure. Rows
that stand double after all are repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Literal, NamedTuple, cast

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
from evenhand.judgment import Judgment, JudgmentText
from evenhand.kinds.evidence import SearchText
from evenhand.kinds.rubric.unit import sample_text
from evenhand.runs.imports.answers import Answers, Opening, PlaceKey
from evenhand.runs.imports.forms import BLANK, Forms
from evenhand.runs.imports.keys import Columns, Seen, find_key, key_values
from evenhand.runs.imports.memo import COLUMN_SETS, Memo, Vocabulary, in_turn
from evenhand.runs.imports.scored import JudgedAnswer, ScoreRow, judgments_of
from evenhand.runs.imports.spellings import Spellings
from evenhand.runs.imports.tally import Tally
from evenhand.runs.imports.waiting_rows import NOTHING, JudgedRows, Numbers, WaitingRows
from evenhand.store.ports import IncomingUnit
from evenhand.units import Sample

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
    """The fields of a row beside its score, as JSON too, and their number among those that wait."""

    fields: dict[str, Any]
    text: str
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
        self.tally, self._columns, self._answers = Tally(), Columns(), Answers()
        self._seen = Seen(kind, judge, self._columns)
        self._memos: dict[tuple[str, ...], _Memos] = {}
        self._owners: Numbers = np.zeros(1, dtype=np.uint32)
        """By the number of each place that of the first one of its unit."""
        self.criteria: list[str] = []
        self._spellings = Spellings()
        self._vocabulary = Vocabulary()
        self._scores = WaitingRows()
        self._further: list[tuple[str | None, str, str]] = []
        """The scores, and what they say beyond numbers."""
        self._dimensions: dict[str, None] = {}
        self._failing: set[int | str] = set()
        """Words of scores that are missing."""

    @property
    def judges(self) -> list[str]:
        return self._seen.judges

    def fill(self, chunks: Iterable[Chunk]) -> None:
        """Take in all rows, and settle what tells units apart; raises DataError."""
        answers, tally = self._answers, self.tally
        for chunk in chunks:
            in_turn(self._take, chunk)
            tally.rows += chunk.size
        self._spellings.require_alike()
        if self.key:
            self._owners = answers.owners()
        else:
            counts = (self._distinct, self._doubles, self._spread)
            self.key = tuple(find_key(self._columns, *counts, self._opening))
            self._owners = answers.owners(self.key)
        self._columns.require(self.key)
        tally.repeats = [0] * len(self.judges)
        tally.names = list(self._dimensions)
        numbers = np.bincount(self._scores.rows()["unit"])
        for meta, first, rows in answers.differing(self._owners, numbers):
            tally.compare(meta, first, self.key, rows)

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
        places = self._answers.places(keys)
        if None in places:
            new: dict[PlaceKey, int] = {}
            for at, place in enumerate(places):
                if place is None:
                    new.setdefault(keys[at], at)
            opened = self._opened(new, metas, chunk)
            places = [place or opened[key] for place, key in zip(places, keys, strict=True)]
        judges = self._seen.judges_of(chunk)
        said = [_number(reading.said) for reading in readings]
        scores = [reading.score for reading in readings]
        further = self._further_of(chunk, readings)
        units_at = cast("list[int]", places)
        self._scores.add(units_at, judges, said, scores, further, chunk.size)

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
                further[at] = len(self._further)
                self._further.append((spelled, *reasons))
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
        text = jsontext.dumps_lossy(fields)
        return _Meta(fields, text, self._answers.meta(text))

    def _opened(
        self, new: Mapping[PlaceKey, int], metas: Sequence[_Meta], chunk: Chunk
    ) -> dict[PlaceKey, int]:
        """The numbers of the answers that begin at places of a chunk."""
        blank = [""] * chunk.size
        questions, answers = (chunk.columns.get(name, blank) for name in ("question", "answer"))
        opened: dict[PlaceKey, tuple[str, Opening]] = {}
        for key, at in new.items():
            unit, meta = key[0], metas[at]
            ident, _ = key_values(self.key or ("unit",), unit, meta.fields)
            texts = whole_text_of(questions[at]), whole_text_of(answers[at])
            opened[key] = ident, Opening(unit, meta.text, chunk.where(at), *texts)
        return self._answers.add(opened)

    def _distinct(self, key: Sequence[str]) -> int:
        return int(self._answers.groups(key).max(initial=-1)) + 1

    def _doubles(self, key: Sequence[str]) -> int:
        rows = self._scores.rows()
        slots, units = self._slots(rows), self._answers.groups(key)
        keys = units[rows["unit"].astype(np.int64) - 1] * len(self.judges) + rows["judge"]
        keys *= slots.max() + 1
        keys += slots
        keys.sort()
        return int(np.count_nonzero(keys[1:] == keys[:-1]))

    def _slots(self, rows: NDArray[Any]) -> Numbers:
        """The dimension and repeat of each row, as a number."""
        numbers: dict[tuple[Any, Any], int] = {}
        slots = np.array([_slot(numbers, words) for words in self._vocabulary], dtype=np.int64)
        slot_of: Numbers = np.append(slots, 0)[rows["said"]]
        for at in np.flatnonzero(rows["said"] == NOTHING).tolist():
            spelled, *_ = self._further[int(rows["further"][at])]
            slot_of[at] = _slot(numbers, self._vocabulary.words(spelled or NOTHING))
        return slot_of

    def _spread(self, name: str) -> float:
        units, values = (self._answers.values(column) for column in ("unit", name))
        number = self._distinct(("unit", name))
        crossed = len(np.unique(units)) * len(np.unique(values[values > 0]))
        return number / crossed if crossed else 0.0

    def units(self) -> Iterator[IncomingUnit]:
        """Every unit with its judgments."""
        forms = Forms(self.tally, _BLANKS)
        are_first = (self._owners[1:] == np.arange(1, len(self._owners))).tolist()
        openings = compress(self._answers.openings, are_first)
        for opening, judged in zip(openings, self._scores.judged(self._owners), strict=True):
            unit, text, origin, question, answer = opening
            ident, fields = key_values(self.key, unit, from_json(text))
            sample = Sample(id=ident, question=question, model_output=answer, meta=fields)
            meta = jsontext.dumps_lossy(fields)
            texts = [
                (rows.judge, repeat, judgment)
                for rows in judged
                for repeat, judgment in enumerate(self._texts(forms, meta, answer, rows))
            ]
            self.tally.units += 1
            yield IncomingUnit(ident, origin, sample_text(sample), texts)
        forms.count()

    def _texts(self, forms: Forms, meta: str, answer: str, rows: JudgedRows) -> list[JudgmentText]:
        """The judgments of one judge on one unit."""
        if rows.further is None and self._failing.isdisjoint(rows.said):
            texts = forms.filled(rows, (meta,), self._blank)
            if texts is not None:
                return texts
        judged = JudgedAnswer(Raw(meta), SearchText(answer))
        return forms.written(rows.judge, judgments_of(self.tally, judged, self._read(rows)))

    def _blank(self, rows: JudgedRows) -> list[Judgment]:
        return judgments_of(self.tally, _BLANK_UNIT, self._read(rows))

    def _read(self, rows: JudgedRows) -> list[ScoreRow]:
        """Scores as they were read."""
        read: list[ScoreRow] = []
        further = rows.further or [NOTHING] * len(rows.said)
        for said, number, start in zip(rows.said, rows.numbers, further, strict=True):
            spelled, quotes, rationale = (None, "", "") if start < 0 else self._further[start]
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
