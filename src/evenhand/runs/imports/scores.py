"""Scores to judgments of samples: the dimensions of one judge on one unit are one judgment.

A score that is missing is left out and counted; a judgment without any score is a failure. Rows
that stand double after all are repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from msgspec import Raw
from pydantic_core import from_json

from evenhand import jsontext
from evenhand.data.foreign import TidyRow
from evenhand.data.foreign.tidy import SCORE_COLUMNS, judge_of, meta_of, read_score, unit_of
from evenhand.judgment import (
    Failure,
    Judgment,
    JudgmentText,
    Reason,
    Verdict,
    write_judgment,
)
from evenhand.kinds.rubric.unit import sample_text
from evenhand.kinds.rubric.verdict import DimensionScore, RubricVerdict
from evenhand.ledger.ports import IncomingUnit
from evenhand.limits import NOTES_CHARS
from evenhand.runs.imports.keys import Columns, find_key, key_values
from evenhand.runs.imports.spool import Spool
from evenhand.runs.imports.tally import Tally
from evenhand.units import Sample

_COLUMNS = (
    *("key", "unit", "judge", "dimension", "score", "failed", "detail", "repeat", "tags"),
    *("meta", "origin"),
)
_UNITS = "SELECT r.unit, r.meta, r.origin FROM units u JOIN rows r ON r.no=u.no ORDER BY u.no"
_SCORES = (
    "SELECT p.unit, p.judge, r.dimension, r.score, r.failed, r.detail, r.repeat, r.tags, r.meta"
    " FROM placed p JOIN rows r ON r.no=p.row ORDER BY p.place"
)
_DIMENSIONS = (
    "SELECT dimension FROM rows WHERE dimension IS NOT NULL GROUP BY dimension ORDER BY min(no)"
)

_TELLING: tuple[Reason, ...] = ("schema", "out_of_range", "empty")
"""Of several reasons the first one of these is given."""


class _Row(NamedTuple):
    """A score as it waits."""

    unit: int
    judge: int
    dimension: str | None
    score: float | None
    failed: str
    detail: str
    repeat: str
    tags: str
    meta: str


class ScoreRows:
    """The scores of one import."""

    shape: Literal["scores"] = "scores"

    def __init__(self, kind: str, key: tuple[str, ...], judge: str) -> None:
        self.kind, self.key, self._judge = kind, key, judge
        self.tally, self._columns, self._spool = Tally(), Columns(), Spool(_COLUMNS)
        self.judges: list[str] = []
        self.criteria: list[str] = []

    def __enter__(self) -> ScoreRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def fill(self, rows: Iterable[TidyRow]) -> None:
        """Take in all rows, and settle what tells units apart; raises DataError."""
        spool, tally = self._spool, self.tally
        tally.rows = spool.fill(map(self._row, rows))
        if not self.key:
            key = find_key(self._columns, self._distinct, self._doubles, self._spread)
            self.key = tuple(key)
            self._set_keys()
        self._columns.require(self.key)
        spool.place(("key",))
        self.judges = spool.names("SELECT name FROM judges ORDER BY place")
        tally.repeats = [0] * len(self.judges)
        tally.names = spool.names(_DIMENSIONS)

    def _row(self, source: TidyRow) -> tuple[Any, ...]:
        row, where = source.value, source.where
        score, meta = read_score(row), meta_of(row, SCORE_COLUMNS)
        # As long as the key is open, the unit stands for it.
        key = self.key or ("unit",)
        judge = judge_of(row, where, self.kind, self._judge)
        unit = unit_of(row, where, self.kind, key)
        self._columns.see({"unit": unit, **meta} if unit else meta)
        ident, _ = key_values(key, unit, meta)
        return (
            *(ident, unit, judge, score.dimension, score.score, score.failed, score.detail),
            *(score.repeat, ",".join(score.tags), jsontext.swift(meta), where),
        )

    def _distinct(self, key: Sequence[str], *further: str) -> int:
        columns = ", ".join([*further, *map(_column, key)])
        counted = f"SELECT count(*) FROM (SELECT DISTINCT {columns} FROM rows)"  # noqa: S608
        return int(self._spool.names(counted)[0])

    def _doubles(self, key: Sequence[str]) -> int:
        return self.tally.rows - self._distinct(key, "judge", "dimension", "repeat")

    def _spread(self, name: str) -> float:
        ((number, units, values),) = self._spool.rows(
            "SELECT count(*), count(DISTINCT unit), count(DISTINCT value)"  # noqa: S608
            f" FROM (SELECT DISTINCT unit, {_column(name)} AS value FROM rows)"
        )
        return float(number / (units * values)) if units and values else 0.0

    def _set_keys(self) -> None:
        """The key of every row, now that its columns are known: only to group by, the ids are made
        from the values themselves."""
        if self.key != ("unit",):
            values = ", ".join(map(_column, self.key))
            self._spool.run(f"UPDATE rows SET key=json_array({values})")  # noqa: S608

    def units(self) -> Iterator[IncomingUnit]:
        """Every unit with its judgments."""
        scores = map(_Row._make, self._spool.rows(_SCORES))
        by_unit = groupby(scores, key=lambda row: row.unit)
        for (unit, text, origin), (_, rows) in zip(self._spool.rows(_UNITS), by_unit, strict=True):
            ident, meta = key_values(self.key, unit, from_json(text))
            sample = Sample(id=ident, question="", model_output="", meta=meta)
            raw_meta = Raw(jsontext.swift(meta))
            texts: list[tuple[int, int, JudgmentText]] = []
            for judge, group in groupby(rows, key=lambda row: row.judge):
                judgments = [
                    self._judgment(raw_meta, scores)
                    for scores in repeats(self._compared(group, text))
                ]
                self.tally.count(judge, judgments)
                for repeat, judgment in enumerate(judgments):
                    texts.append((judge, repeat, write_judgment(judgment)))
            self.tally.units += 1
            yield IncomingUnit(ident, origin, sample_text(sample), texts)

    def _compared(self, rows: Iterable[_Row], first: str) -> Iterator[_Row]:
        """The rows, held against the meta of the first one of their unit."""
        for row in rows:
            self.tally.compare(row.meta, first, self.key)
            yield row

    def _judgment(self, meta: Raw, rows: Sequence[_Row]) -> Judgment:
        failed = [row for row in rows if row.failed]
        if len(failed) == len(rows):
            detail = "; ".join(dict.fromkeys(row.detail for row in failed))
            reasons = {row.failed for row in failed}
            reason = next(reason for reason in _TELLING if reason in reasons)
            return Failure(reason=reason, detail=detail)
        self.tally.missing.update(row.dimension for row in failed if row.dimension is not None)
        tags = dict.fromkeys(tag for row in rows for tag in row.tags.split(",") if tag)
        notes = "; ".join(f"{row.dimension or 'all'}: {row.detail}" for row in failed)
        verdict = RubricVerdict(
            meta_json=meta,
            scores={
                row.dimension: DimensionScore(row.score, (), "")
                for row in rows
                if row.dimension is not None and row.score is not None
            },
            failure_tags=tuple(tags),
            notes=notes[:NOTES_CHARS],
        )
        return Verdict(value=verdict, flags=("scores_missing",) if failed else ())


def repeats(rows: Iterable[_Row]) -> list[list[_Row]]:
    """The rows of each judgment: by the repeat that they name, and where a dimension stands twice
    in one, by the order in which they come."""
    judgments_of: dict[str, list[list[_Row]]] = {}
    counts: dict[tuple[str, str | None], int] = {}
    for row in rows:
        judgments, place = judgments_of.setdefault(row.repeat, []), (row.repeat, row.dimension)
        number = counts[place] = counts.get(place, -1) + 1
        if number == len(judgments):
            judgments.append([])
        judgments[number].append(row)
    return [judgment for judgments in judgments_of.values() for judgment in judgments]


def _column(name: str) -> str:
    """A column of the key as SQL; meta columns stand in one JSON text."""
    if name == "unit":
        return "unit"
    path = f'$."{name}"'.replace("'", "''")
    return f"CAST(json_extract(meta, '{path}') AS TEXT)"
