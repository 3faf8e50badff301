"""Tidy tables: a row a vote, or a row a score. What a cell means is read here, for all layouts.

A label that nobody can read makes a failed judgment, never an error: it is kept with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from evenhand.data.layouts.rows import (
    JudgmentFile,
    NoScore,
    TidyRow,
    missing,
    object_of,
    require,
    text_of,
)
from evenhand.errors import DataError, quoted
from evenhand.jsontext import parse_lenient

Side = Literal["first", "second", "tie", ""]
Failed = Literal["schema", "out_of_range", "empty", ""]

VOTE_COLUMNS = frozenset(
    {"unit", "judge", "first", "second", "winner", "preference", "pass", "sample", "criterion"}
    | {"first_length", "second_length", "question", "first_answer", "second_answer"}
    | {"explanation", "meta"}
)
SCORE_COLUMNS = frozenset(
    {"unit", "judge", "dimension", "score", "repeat", "failure_tags", "question", "answer"}
    | {"evidence", "rationale", "meta"}
)
JUDGE_NAMES = ("name", "model", "model_name", "id")
"""What an object says of a judge is called by the first of these."""
LARGEST = 1e100
"""Of a score: sums and squares of larger ones would not be finite."""
_SIDES: dict[str, Side] = {"first": "first", "second": "second", "tie": "tie"}
_SECOND_PASS = frozenset({"2", "21", "ba", "second"})


def votes(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the rows of a table of votes; raises DataError where no row has a verdict's column."""
    has_verdict, row = False, None
    for row in file.table(("unit", "judge", "first", "second", "winner")):
        require(row, ("first", "second"), "votes")
        has_verdict = has_verdict or "winner" in row.value or "preference" in row.value
        yield TidyRow("votes", row.value, row.where)
    if row is not None and not has_verdict:
        raise missing("winner", row.value, file.name, "votes")


def scores(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the rows of a table of scores; raises DataError where no row has a score's column."""
    has_score, row = False, None
    for row in file.table(("unit", "judge", "dimension", "score")):
        has_score = has_score or "score" in row.value
        yield TidyRow("scores", row.value, row.where)
    if row is not None and not has_score:
        error = missing("score", row.value, file.name, "scores")
        error.advice += "; where each dimension has a column, see unpivot in docs/sql.md"
        raise error


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
    if named and share is None:
        return Vote(named, None, "", "")
    preference = number_of(share)
    if text_of(share) and (preference is None or not 0 <= preference <= 1):
        detail = f"preference {quoted(text_of(share))} is not a number from 0 to 1"
        return Vote("", None, "schema", detail)
    if winner and not named:
        detail = f"winner {quoted(winner)} is none of first, second, tie"
        return Vote("", None, "schema", detail)
    if preference is None:
        return Vote(named, None, "", "") if named else Vote("", None, "empty", "there is no winner")
    preferred: Side = "tie" if preference == 0.5 else "second" if preference > 0.5 else "first"
    if named and named != preferred:
        detail = f"winner {quoted(winner)} and preference {preference:g} contradict each other"
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
            f"the column {quoted(name)} holds a candidate called {quoted(candidate)}, a word that"
            " says who won",
            where=where,
            advice="rename the candidate, there and where it is the winner",
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
        tags=_tags(row.get("failure_tags")) if "failure_tags" in row else (),
        quotes=_quotes(row.get("evidence")) if "evidence" in row else (),
        rationale=text_of(row.get("rationale")),
    )


def _score(cell: object) -> tuple[float | None, Failed, str]:
    if isinstance(cell, NoScore):
        return None, *cell
    text, number = text_of(cell), float(cell) if isinstance(cell, bool) else number_of(cell)
    if not text:
        return None, "empty", "there is no score"
    if number is None:
        return None, "schema", f"score {quoted(text)} is not a number"
    if abs(number) > LARGEST:
        return None, "out_of_range", f"score {quoted(text)} is beyond {LARGEST:g}"
    return number, "", ""


def _tags(value: object) -> tuple[str, ...]:
    tags = value if isinstance(value, list) else text_of(value).replace(",", " ").split()
    return tuple(dict.fromkeys(text_of(tag) for tag in tags))


def _quotes(value: object) -> tuple[str, ...]:
    """Return a list of quotes, also one that a table holds as JSON; any other text is one quote."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError):
            value = parse_lenient(value)
    quotes: list[object] = value if isinstance(value, list) else [value]
    return tuple(text for text in map(text_of, quotes) if text)


def judge_of(row: Mapping[str, Any], where: str, kind: str, default: str) -> str:
    """Return who judged; raises DataError where neither the row nor anybody else says."""
    value = row.get("judge")
    if isinstance(value, dict):
        # An object would be another judge in every row that differs in anything it holds.
        value = next((value[name] for name in JUDGE_NAMES if text_of(value.get(name))), None)
    if judge := text_of(value) or default:
        return judge
    error = missing("judge", row, where, kind)
    error.advice += "; or name the judge once for all rows: --judge NAME"
    raise error


def unit_of(row: Mapping[str, Any], where: str, kind: str) -> str:
    """Return the unit of a row; raises DataError where there is none."""
    if unit := text_of(row.get("unit")):
        return unit
    raise _empty("unit", where) if "unit" in row else missing("unit", row, where, kind)


def _empty(name: str, where: str) -> DataError:
    what = f"the column {quoted(name)} is empty"
    return DataError(what, where=where, advice="name it in every row")


def judged_text(value: object) -> str:
    """Return a text that was judged as it is, since quotes are found in it by their places."""
    return value if isinstance(value, str) else text_of(value)


def meta_of(row: Mapping[str, Any], columns: frozenset[str]) -> dict[str, Any]:
    """Return the columns that a shape has no name for, and what stands under `meta`."""
    meta = dict(object_of(row["meta"])) if "meta" in row else {}
    for name, value in row.items():
        if name not in columns and value is not None and value != "":
            meta[name] = value
    return meta


def number_of(value: object) -> float | None:
    """Return a finite number, a whole one as such; from a text only if it is spelled as one."""
    if value is None or value == "" or isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if text.lstrip("+-").isdecimal() and len(text) < 16:  # exact as a fraction too
            return int(text)
        if "_" in text:
            return None
    try:
        number = float(value) if isinstance(value, float | str | int) else math.nan
    except (ValueError, OverflowError):
        return None
    return (value if isinstance(value, int) else number) if math.isfinite(number) else None


def lengths_of(row: Mapping[str, Any], answers: Sequence[str]) -> list[float | None]:
    """Return the lengths that a row gives of both answers, else those of the answers."""
    given = [number_of(row.get(name)) for name in ("first_length", "second_length")]
    return [
        len(answer) or None if length is None else length
        for length, answer in zip(given, answers, strict=True)
    ]
