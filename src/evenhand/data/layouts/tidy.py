"""Files of judgments as tidy rows: a row a vote, or a row a score. The cells of all layouts are
read here.

A label that nobody can read makes a failed judgment, never an error: it is kept with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from evenhand.data.columns import Row, Rows, copy_fields, remove_field, require_sources
from evenhand.data.files import LISTED
from evenhand.data.read import read_rows
from evenhand.data.recognise import judgment_columns
from evenhand.errors import DataError, UsageError, nearest, quote
from evenhand.jsontext import as_text, parse_lenient
from evenhand.words import Sentence, few

Shape = Literal["", "votes", "scores", "grades"]
Side = Literal["first", "second", "tie", ""]
Failed = Literal["schema", "out_of_range", "empty", ""]

ORDER_UNKNOWN = "order_unknown"
"""Of a verdict that does not say which candidate was shown first: it tells nothing of positions."""
VOTE_COLUMNS = frozenset(
    {"unit", "judge", "first", "second", "winner", "preference", "pass", "sample", "criterion"}
    | {"first_length", "second_length", "question", "first_answer", "second_answer"}
    | {"explanation", "meta"}
)
SCORE_COLUMNS = frozenset(
    {"unit", "judge", "dimension", "score", "repeat", "failure_tags", "question", "answer"}
    | {"evidence", "rationale", "meta"}
)
LARGEST = 1e100
"""Of a score: sums and squares of larger ones would not be finite."""
_SIDES: dict[str, Side] = {"first": "first", "second": "second", "tie": "tie"}
_SECOND_PASS = frozenset({"2", "21", "ba", "second"})


class TidyRow(NamedTuple):
    """A tidy row. `flag` is what a layout says of the judgment beyond its columns."""

    shape: Shape
    value: Mapping[str, Any]
    where: str
    flag: str = ""


class NoScore(NamedTuple):
    """A missing score, where a layout knows the reason."""

    reason: Literal["schema", "out_of_range"]
    detail: str


@dataclass(kw_only=True)
class JudgmentFile:
    """A file of judgments, or rows that no file holds."""

    path: Path | None = None
    memory: Rows | None = None
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """New names of columns to old ones."""
    recognised: dict[str, str] = field(default_factory=dict[str, str])
    """The columns that were found by their usual names, once rows were read: field to column."""

    @property
    def name(self) -> str:
        return str(self.path) if self.memory is None else self.memory.name

    def table(self, usual: Sequence[str] = ()) -> Iterator[Row]:
        """Yield the rows with columns renamed: as the user says, and those of the fields in `usual`
        that go by another usual name. NaN is a missing number. Raises DataError."""
        rows = self.memory
        if rows is None:
            rows = read_rows(cast("Path", self.path), lenient=True)
        there = {*next(rows.values()), *self.columns} - set(self.columns.values())
        self.recognised = judgment_columns(there, [name for name in usual if name not in there])
        columns = {**self.recognised, **self.columns}
        require_sources(columns, rows.values(), rows.name, "--map")
        moved = set(columns.values()) - columns.keys()
        for row in rows:
            if columns:
                copy_fields(row.value, columns, row.where)
                for name in moved:
                    remove_field(row.value, name)
            yield row

    def require_path(self, kind: str) -> Path:
        """Return the path of a log; raises UsageError for rows that are no file, or columns that it
        does not have."""
        if self.path is None or self.columns:
            raise UsageError(Sentence("data.no_table_kind", kind=kind))
        return self.path


def require(row: Row, names: Iterable[str], kind: str) -> None:
    """Raise DataError for a row without one of these columns."""
    for name in names:
        if name not in row.value:
            raise missing(name, row.value, row.where, kind)


def missing(
    name: str, there: Iterable[str], where: str, kind: str, key: str = "data.no_column"
) -> DataError:
    """Return the error for a column that is not there, with the flag that would name it."""
    columns = [str(column) for column in there]
    near = nearest(name, columns)
    # The nearest in spelling is often not the one meant, so all of them are shown.
    names = few(sorted(columns, key=lambda column: column != near), LISTED)
    return DataError(Sentence(key, name=name, kind=kind, names=names), where=where)


def votes(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the rows of a table of votes; raises DataError where no row has a verdict's column."""
    usual = ("unit", "judge", "first", "second", "winner")
    return _read_table(file, "votes", usual, ("first", "second"), ("winner", "preference"))


def scores(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the rows of a table of scores; raises DataError where no row has a score's column."""
    return _read_table(file, "scores", ("unit", "judge", "dimension", "score"), (), ("score",))


def _read_table(
    file: JudgmentFile,
    shape: Shape,
    usual: Sequence[str],
    needed: Sequence[str],
    verdicts: Sequence[str],
) -> Iterator[TidyRow]:
    has_verdict, row = False, None
    for row in file.table(usual):
        require(row, needed, shape)
        has_verdict = has_verdict or any(name in row.value for name in verdicts)
        yield TidyRow(shape, row.value, row.where)
    if row is not None and not has_verdict:
        raise missing(verdicts[0], row.value, file.name, shape, "data.no_verdict_column")


class Vote(NamedTuple):
    """One vote, as it was shown: the first candidate stood first."""

    side: Side
    preference: float | None
    failed: Failed
    detail: str


def read_vote(row: Mapping[str, Any], first: str, second: str) -> Vote:
    """Return what a row says of these candidates, shown in this order."""
    winner, share = text_of(row.get("winner")), row.get("preference")
    named: Side = _SIDES.get(winner, "")
    if winner in (first, second):
        named = "first" if winner == first else "second"
    preference = number_of(share)
    if text_of(share) and (preference is None or not 0 <= preference <= 1):
        detail = f"preference {quote(text_of(share))} is not a number from 0 to 1"
        return Vote("", None, "schema", detail)
    if winner and not named:
        detail = f"winner {quote(winner)} is none of first, second, tie"
        return Vote("", None, "schema", detail)
    if preference is None:
        return Vote(named, None, "", "") if named else Vote("", None, "empty", "there is no winner")
    preferred: Side = "tie" if preference == 0.5 else "second" if preference > 0.5 else "first"
    if named and named != preferred:
        detail = f"winner {quote(winner)} and preference {preference:g} contradict each other"
        return Vote("", None, "schema", detail)
    return Vote(preferred, preference, "", "")


def read_candidate(row: Mapping[str, Any], name: str, where: str) -> str:
    """Return the candidate in a column; raises DataError where there is none, or one whose name
    says who won."""
    candidate = text_of(row.get(name))
    if not candidate:
        raise _empty(name, where)
    if candidate in _SIDES:
        raise DataError(
            Sentence("data.candidate_is_verdict", name=name, candidate=candidate), where=where
        )
    return candidate


def is_second_pass(row: Mapping[str, Any]) -> bool:
    """Return True if the column `pass` says so: all that tells the orders apart where a candidate
    meets itself."""
    return text_of(row.get("pass")).lower() in _SECOND_PASS


class Score(NamedTuple):
    """One score on one dimension; without a dimension, the word that there is none at all."""

    dimension: str | None
    score: float | None
    failed: Failed
    detail: str
    repeat: str = ""
    tags: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    rationale: str = ""


def read_score(row: Mapping[str, Any]) -> Score:
    """Return what a row of scores says."""
    dimension = row.get("dimension", "score")
    return Score(
        None if dimension is None else text_of(dimension) or "score",
        *_score(row.get("score")),
        repeat=text_of(row.get("repeat")),
        tags=_tags(row.get("failure_tags")),
        quotes=_quotes(row.get("evidence")),
        rationale=text_of(row.get("rationale")),
    )


def _score(cell: object) -> tuple[float | None, Failed, str]:
    if isinstance(cell, NoScore):
        return None, *cell
    text, number = text_of(cell), float(cell) if isinstance(cell, bool) else number_of(cell)
    if not text:
        return None, "empty", "there is no score"
    if number is None:
        return None, "schema", f"score {quote(text)} is not a number"
    if abs(number) > LARGEST:
        return None, "out_of_range", f"score {quote(text)} is beyond {LARGEST:g}"
    return number, "", ""


def _tags(value: object) -> tuple[str, ...]:
    tags = value if isinstance(value, list) else text_of(value).replace(",", " ").split()
    return tuple(dict.fromkeys(map(text_of, tags)))


def _quotes(value: object) -> tuple[str, ...]:
    """Return a list of quotes, also one that a table holds as JSON; any other text is one quote."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError):
            value = parse_lenient(value)
    quotes: list[object] = value if isinstance(value, list) else [value]
    return tuple(filter(None, map(text_of, quotes)))


def judge_of(row: Mapping[str, Any], where: str, kind: str, default: str) -> str:
    """Return who judged; raises DataError where neither the row nor anybody else says. An object
    names nobody: it would be another judge in every row that differs in anything it holds."""
    value = row.get("judge")
    if judge := ("" if isinstance(value, dict) else text_of(value)) or default:
        return judge
    if "judge" in row:
        raise _empty("judge", where)
    raise missing("judge", row, where, kind, "data.no_judge_column")


def unit_of(row: Mapping[str, Any], where: str, kind: str) -> str:
    """Return the unit of a row; raises DataError where there is none."""
    if unit := text_of(row.get("unit")):
        return unit
    raise _empty("unit", where) if "unit" in row else missing("unit", row, where, kind)


def _empty(name: str, where: str) -> DataError:
    return DataError(Sentence("data.cell_empty", name=name), where=where)


def meta_of(row: Mapping[str, Any], columns: frozenset[str]) -> dict[str, Any]:
    """Return the columns that a shape has no name for, and what stands under `meta`."""
    meta = dict(object_of(row.get("meta")))
    for name, value in row.items():
        if name not in columns and value is not None and value != "":
            meta[name] = value
    return meta


def lengths_of(row: Mapping[str, Any], answers: Sequence[str]) -> list[float | None]:
    """Return the lengths that a row gives of both answers, else those of the answers."""
    given = [number_of(row.get(name)) for name in ("first_length", "second_length")]
    return [
        len(answer) or None if length is None else length
        for length, answer in zip(given, answers, strict=True)
    ]


def number_of(value: object) -> float | None:
    """Return a finite number, a whole one as such; from a text only if it is spelled as one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return None
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal() and len(value) < 16:
        return int(value)  # exact as a fraction too
    try:
        number = math.nan if "_" in str(value) else float(value)
    except (ValueError, OverflowError):
        return None
    return (value if isinstance(value, int) else number) if math.isfinite(number) else None


def on_scale(score: Any, low: float, high: float, name: str) -> Any:
    """Return a score as it is, or a NoScore where it is a number off its scale."""
    number = number_of(score)
    if number is None or low <= number <= high:
        return score
    return NoScore("out_of_range", f"{name} {number:g} is off the scale from {low:g} to {high:g}")


def text_of(value: object) -> str:
    """Return a cell as text without white space around it; empty for null."""
    if isinstance(value, str):
        return value.strip()
    return "" if value is None else as_text(value)


def judged_text(value: object) -> str:
    """Return a text that was judged as it is, since quotes are found in it by their places."""
    return value if isinstance(value, str) else text_of(value)


def object_of(value: object) -> Mapping[str, Any]:
    """Return an object as it is, anything else as an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []


def non_null(**columns: Any) -> dict[str, Any]:
    """Return the columns that have a value."""
    return {name: value for name, value in columns.items() if value is not None}


def short_hash(text: str) -> str:
    """Return a name for a text that is too long to be one."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def begin(text: str, most: int = 80) -> str:
    """Return the start of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
