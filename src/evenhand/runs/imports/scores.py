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

from msgspec import Raw
from pydantic_core import from_json

from evenhand import jsontext
from evenhand.data.foreign import TidyRow
from evenhand.data.foreign.tidy import (
    SCORE_COLUMNS,
    SCORED_COLUMNS,
    meta_of,
    read_reasons,
    read_score,
    text_of,
    whole_text_of,
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
from evenhand.limits import BATCH_ROWS, NOTES_CHARS
from evenhand.runs.imports.forms import BLANK, Forms
from evenhand.runs.imports.keys import Columns, Seen, find_key, key_values
from evenhand.runs.imports.memo import COLUMN_SETS, MEMO_ENTRIES, Memo
from evenhand.runs.imports.spool import Spool
from evenhand.runs.imports.tally import Tally
from evenhand.units import Sample

_TABLES = {
    "metas": ("no INTEGER PRIMARY KEY", "text"),
    "places": ("no INTEGER PRIMARY KEY", "key", "unit", "meta", "origin", "question", "answer"),
    "scores": (
        *("place", "judge", "dimension", "score", "failed", "detail", "repeat", "tags"),
        *("quotes", "rationale"),
    ),
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
_SCORES = (
    "SELECT o.owner, s.judge, s.dimension, s.score, s.failed, s.detail, s.repeat, s.tags,"
    " s.quotes, s.rationale FROM scores s JOIN owners o ON o.rowid=s.place"
    " ORDER BY o.owner, s.judge, s.rowid"
)
_DIFFERING = (
    "SELECT m.text, f.text, count(*) FROM owners o JOIN places p ON p.no=o.place"
    " JOIN places u ON u.no=o.owner JOIN metas m ON m.no=p.meta JOIN metas f ON f.no=u.meta"
    " JOIN scores s ON s.place=o.place WHERE o.owner<>o.place AND p.meta<>u.meta"
    " GROUP BY o.place ORDER BY min(s.rowid)"
)
"""The meta of rows that do not have that of the first one of their unit, and how many they are."""
_DIMENSIONS = (
    "SELECT dimension FROM scores WHERE dimension IS NOT NULL"
    " GROUP BY dimension ORDER BY min(rowid)"
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
    quotes: str
    """A list as JSON; nothing where there are none."""
    rationale: str


_WORDS = slice(2, 8)
"""Of a score, what decides what it comes to where nothing is quoted and no reason given."""


class _Judged(NamedTuple):
    """What the judgments of one unit share."""

    meta: Raw
    output: SearchText


_BLANKS = (f'"{BLANK}"',)
"""What a judgment says of its unit: its meta."""
_BLANK_UNIT = _Judged(Raw(f'"{BLANK}"'), SearchText(""))


class _Reading(NamedTuple):
    """What cells say of a score beside its unit, its judge and its meta."""

    words: tuple[Any, ...]
    """`dimension` to `tags` of a waiting score."""
    spelled: tuple[str, str] | None
    unreadable: str
    letter: str
    """A letter that is no grade."""


class _Meta(NamedTuple):
    """The fields of a row beside its score, and their number among those that wait."""

    fields: dict[str, Any]
    no: int


class _Memos(NamedTuple):
    """What rows with the same columns say."""

    reading: Memo[_Reading]
    meta: Memo[_Meta]
    has_reasons: bool


class _Scored(NamedTuple):
    """The score on one dimension, and where its quotes stand."""

    dimension: str
    score: DimensionScore
    evidence: Sequence[Evidence]
    flags: Sequence[str]


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
        self._letters: set[str] = set()
        """Letters that are no grade."""

    @property
    def judges(self) -> list[str]:
        return self._seen.judges

    def __enter__(self) -> ScoreRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def fill(self, rows: Iterable[TidyRow]) -> None:
        """Take in all rows, and settle what tells units apart; raises DataError."""
        spool, tally, scores = self._spool, self.tally, self._waiting["scores"]
        for row in rows:
            scores.append(self._score(row))
            tally.rows += 1
            if len(scores) >= BATCH_ROWS:
                spool.write(self._waiting)
        spool.write(self._waiting)
        self._refuse_letters()
        if not self.key:
            counts = (self._distinct, self._doubles, self._spread)
            self.key = tuple(find_key(self._columns, *counts, self._opening))
            self._set_keys()
        self._columns.require(self.key)
        spool.run(_OWNERS)
        tally.repeats = [0] * len(self.judges)
        tally.names = spool.names(_DIMENSIONS)
        for meta, first, number in spool.rows(_DIFFERING):
            tally.compare(meta, first, self.key, number)

    def _refuse_letters(self) -> None:
        """Letters of which some are no grades are none: C and I may be correct and incorrect."""
        grades = sorted(spelled for spelled, _ in self.tally.spelled if len(spelled) == 1)
        if grades and self._letters:
            letters = ", ".join([*grades, *sorted(self._letters)])
            raise DataError(
                f"scores are letters that are not all grades: {letters}",
                advice="Say what they mean: --value score:C=1,I=0",
            )

    def _score(self, source: TidyRow) -> tuple[Any, ...]:
        row, where = source.value, source.where
        memos = self._memos.get(tuple(row)) or self._new_memos(row)
        reading, meta = memos.reading(row, where), memos.meta(row, where)
        if reading.letter:
            self._letters.add(reading.letter)
        if reading.spelled:
            self.tally.spelled[reading.spelled] += 1
        if reading.unreadable:
            self.tally.note_unreadable(reading.unreadable)
        # As long as the key is open, the unit stands for it.
        unit = self._seen.unit(row, where, self.key or ("unit",))
        place = self._places.get((unit, meta.no)) or self._place(unit, meta, source)
        return (
            *(place, self._seen.judge(row, where), *reading.words),
            *(read_reasons(row) if memos.has_reasons else ("", "")),
        )

    def _new_memos(self, row: Mapping[str, Any]) -> _Memos:
        """What rows with the columns of this one share."""
        if len(self._memos) >= COLUMN_SETS:
            self._memos.clear()
        read = [name for name in row if name in SCORED_COLUMNS]
        rest = [name for name in row if name not in SCORE_COLUMNS or name in ("meta", *self.key)]
        memos = _Memos(
            Memo(_reading, read),
            Memo(self._meta, [name for name in rest if name != "unit"]),
            "evidence" in row or "rationale" in row,
        )
        self._memos[tuple(row)] = memos
        return memos

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

    def _place(self, unit: str, meta: _Meta, source: TidyRow) -> int:
        """The number of a place that is not at hand."""
        before = self._counts["places"]
        number = self._number("places", self._places, _BY_UNIT, _PLACE, (unit, meta.no))
        self._places[unit, meta.no] = number
        if number > before:
            ident, _ = key_values(self.key or ("unit",), unit, meta.fields)
            texts = (whole_text_of(source.value.get(name)) for name in ("question", "answer"))
            self._waiting["places"].append((number, ident, unit, meta.no, source.where, *texts))
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
        (distinct,) = self._spool.names(
            "SELECT count(*) FROM (SELECT DISTINCT owner, judge, dimension, repeat"  # noqa: S608
            " FROM (SELECT places.no AS place, min(places.no) OVER"
            f" (PARTITION BY {columns}) AS owner FROM places JOIN metas ON metas.no=places.meta) k"
            " JOIN scores ON scores.place=k.place)"
        )
        return int(self.tally.rows - distinct)

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
        by_unit = groupby(map(_Row._make, self._spool.rows(_SCORES)), key=itemgetter(0))
        for opening, (_, rows) in zip(self._spool.rows(_UNITS), by_unit, strict=True):
            unit, text, origin, question, answer = opening
            ident, fields = key_values(self.key, unit, from_json(text))
            sample = Sample(id=ident, question=question, model_output=answer, meta=fields)
            meta = jsontext.swift(fields)
            texts: list[tuple[int, int, JudgmentText]] = []
            for judge, group in groupby(rows, key=itemgetter(1)):
                judged = self._texts(forms, meta, answer, judge, list(group))
                texts += [(judge, repeat, judgment) for repeat, judgment in enumerate(judged)]
            self.tally.units += 1
            yield IncomingUnit(ident, origin, sample_text(sample), texts)
        forms.count()

    def _texts(
        self, forms: Forms, meta: str, answer: str, judge: int, rows: list[_Row]
    ) -> list[JudgmentText]:
        """The judgments of one judge on one unit."""
        if not any(row.quotes or row.rationale or row.failed for row in rows):
            # 4 and 4.0 are the same words, and written otherwise.
            words = tuple([(row[_WORDS], type(row.score)) for row in rows])
            texts = forms.filled(judge, words, (meta,), lambda: self._judgments(_BLANK_UNIT, rows))
            if texts is not None:
                return texts
        judgments = self._judgments(_Judged(Raw(meta), SearchText(answer)), rows)
        self.tally.count(judge, judgments)
        return [write_judgment(judgment) for judgment in judgments]

    def _judgments(self, judged: _Judged, rows: list[_Row]) -> list[Judgment]:
        return [self._judgment(judged, scores) for scores in repeats(rows)]

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
        quotes: list[str] = from_json(row.quotes) if row.quotes else []
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


def _reading(row: Mapping[str, Any], where: str) -> _Reading:
    score, text = read_score(row), text_of(row.get("score"))
    return _Reading(
        words=(
            *(score.dimension, score.score, score.failed, score.detail, score.repeat),
            ",".join(score.tags),
        ),
        spelled=(score.spelled, f"{score.score:g}") if score.spelled else None,
        unreadable=score.unreadable,
        letter=text if score.failed and len(text) == 1 and text.isalpha() else "",
    )


def _column(name: str) -> str:
    """A column of the key as SQL; meta columns stand in one JSON text."""
    if name == "unit":
        return "unit"
    path = f'$."{name}"'.replace("'", "''")
    return f"CAST(json_extract(metas.text, '{path}') AS TEXT)"
