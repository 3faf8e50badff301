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
from evenhand.data.foreign.tidy import (
    SCORE_COLUMNS,
    judge_of,
    meta_of,
    read_score,
    text_of,
    unit_of,
)
from evenhand.errors import DataError
from evenhand.judgment import (
    Evidence,
    Failure,
    Judgment,
    JudgmentText,
    Reason,
    Verdict,
    write_judgment,
)
from evenhand.kinds.rubric.unit import sample_text
from evenhand.kinds.rubric.verdict import DimensionScore, RubricVerdict
from evenhand.kinds.shared.evidence import SearchText
from evenhand.ledger.ports import IncomingUnit
from evenhand.limits import NOTES_CHARS
from evenhand.runs.imports.keys import Columns, find_key, key_values
from evenhand.runs.imports.spool import Spool
from evenhand.runs.imports.tally import Tally
from evenhand.units import Sample

_COLUMNS = (
    *("key", "unit", "judge", "dimension", "score", "failed", "detail", "repeat", "tags"),
    *("meta", "origin", "question", "answer", "quotes", "rationale"),
)
_UNITS = (
    "SELECT r.unit, r.meta, r.origin, r.question, r.answer"
    " FROM units u JOIN rows r ON r.no=u.no ORDER BY u.no"
)
_SCORES = (
    "SELECT p.unit, p.judge, r.dimension, r.score, r.failed, r.detail, r.repeat, r.tags, r.meta,"
    " r.quotes, r.rationale FROM placed p JOIN rows r ON r.no=p.row ORDER BY p.place"
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
    quotes: str
    """A list as JSON."""
    rationale: str


class _Judged(NamedTuple):
    """What the judgments of one unit share."""

    meta: Raw
    output: SearchText


class _Scored(NamedTuple):
    """The score on one dimension, and where its quotes stand."""

    dimension: str
    score: DimensionScore
    evidence: Sequence[Evidence]
    flags: Sequence[str]


class ScoreRows:
    """The scores of one import."""

    shape: Literal["scores"] = "scores"

    def __init__(self, kind: str, key: tuple[str, ...], judge: str) -> None:
        self.kind, self.key, self._judge = kind, key, judge
        self.tally, self._columns, self._spool = Tally(), Columns(), Spool(_COLUMNS)
        self.judges: list[str] = []
        self.criteria: list[str] = []
        self._letters: set[str] = set()
        """Letters that are no grade."""

    def __enter__(self) -> ScoreRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def fill(self, rows: Iterable[TidyRow]) -> None:
        """Take in all rows, and settle what tells units apart; raises DataError."""
        spool, tally = self._spool, self.tally
        tally.rows = spool.fill(map(self._row, rows))
        self._refuse_letters()
        if not self.key:
            key = find_key(self._columns, self._distinct, self._doubles, self._spread)
            self.key = tuple(key)
            self._set_keys()
        self._columns.require(self.key)
        spool.place(("key",))
        self.judges = spool.names("SELECT name FROM judges ORDER BY place")
        tally.repeats = [0] * len(self.judges)
        tally.names = spool.names(_DIMENSIONS)

    def _refuse_letters(self) -> None:
        """Letters of which some are no grades are none: C and I may be correct and incorrect."""
        grades = sorted(spelled for spelled, _ in self.tally.spelled if len(spelled) == 1)
        if grades and self._letters:
            letters = ", ".join([*grades, *sorted(self._letters)])
            raise DataError(
                f"scores are letters that are not all grades: {letters}",
                advice="Say what they mean: --value score:C=1,I=0",
            )

    def _row(self, source: TidyRow) -> tuple[Any, ...]:
        row, where = source.value, source.where
        score, meta = read_score(row), meta_of(row, SCORE_COLUMNS, self.key)
        # As long as the key is open, the unit stands for it.
        key = self.key or ("unit",)
        if score.failed and len(text := text_of(row.get("score"))) == 1 and text.isalpha():
            self._letters.add(text)
        if score.spelled:
            self.tally.spelled[score.spelled, f"{score.score:g}"] += 1
        self.tally.note_unreadable(score.unreadable)
        judge = judge_of(row, where, self.kind, self._judge)
        unit = unit_of(row, where, self.kind, key)
        self._columns.see({"unit": unit, **meta} if unit else meta)
        ident, _ = key_values(key, unit, meta)
        return (
            *(ident, unit, judge, score.dimension, score.score, score.failed, score.detail),
            *(score.repeat, ",".join(score.tags), jsontext.swift(meta), where),
            *(score.question, score.answer, jsontext.swift(score.quotes), score.rationale),
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
        for opening, (_, rows) in zip(self._spool.rows(_UNITS), by_unit, strict=True):
            unit, text, origin, question, answer = opening
            ident, meta = key_values(self.key, unit, from_json(text))
            sample = Sample(id=ident, question=question, model_output=answer, meta=meta)
            judged = _Judged(Raw(jsontext.swift(meta)), SearchText(answer))
            texts: list[tuple[int, int, JudgmentText]] = []
            for judge, group in groupby(rows, key=lambda row: row.judge):
                judgments = [
                    self._judgment(judged, scores)
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

    def _judgment(self, judged: _Judged, rows: Sequence[_Row]) -> Judgment:
        failed = [row for row in rows if row.failed]
        if len(failed) == len(rows):
            detail = "; ".join(dict.fromkeys(row.detail for row in failed))
            reasons = {row.failed for row in failed}
            reason = next(reason for reason in _TELLING if reason in reasons)
            return Failure(reason=reason, detail=detail)
        self.tally.missing.update(row.dimension for row in failed if row.dimension is not None)
        tags = dict.fromkeys(tag for row in rows for tag in row.tags.split(",") if tag)
        notes = "; ".join(f"{row.dimension or 'all'}: {row.detail}" for row in failed)
        scored = [self._scored(judged.output, row) for row in rows if row.score is not None]
        verdict = RubricVerdict(
            meta_json=judged.meta,
            scores={scores.dimension: scores.score for scores in scored if scores.dimension},
            failure_tags=tuple(tags),
            notes=notes[:NOTES_CHARS],
        )
        flags = ["scores_missing"] if failed else []
        flags += dict.fromkeys(flag for scores in scored for flag in scores.flags)
        evidence = tuple(place for scores in scored for place in scores.evidence)
        return Verdict(value=verdict, flags=tuple(flags), evidence=evidence)

    def _scored(self, output: SearchText, row: _Row) -> _Scored:
        """A score with the quotes of its row that stand in what was judged. The others are counted,
        and what they quote is no evidence."""
        dimension, fragments, places = row.dimension or "", list[str](), list[Evidence]()
        quotes: list[str] = from_json(row.quotes)
        for quote in quotes:
            if span := output.locate(quote):
                fragments.append(output.text[span.start : span.end])
                places.append(Evidence(dimension, span.start, span.end, span.match))
        self.tally.quotes += len(quotes)
        self.tally.quotes_found += len(places)
        assert row.score is not None
        return _Scored(
            dimension,
            DimensionScore(row.score, tuple(fragments), row.rationale),
            places,
            [f"quote_missing:{dimension}"] if len(places) < len(quotes) else [],
        )


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
