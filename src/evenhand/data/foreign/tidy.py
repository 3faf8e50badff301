"""Tidy tables: a row a vote, or a row a score. What a cell means is read here, for all layouts.

A label that nobody can read makes a failed judgment, never an error: it is kept with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evenhand.data.foreign.chunks import Chunk
from evenhand.data.foreign.decimals import DecimalCommas
from evenhand.data.foreign.rows import NoScore, TidyRow, missing, object_of, require, table
from evenhand.data.foreign.shaping import Shaping
from evenhand.data.foreign.spellings import Side, spelled_score, spelled_side
from evenhand.errors import DataError, quoted
from evenhand.jsontext import as_text, dumps_lossy, parse_lenient

Failed = Literal["schema", "out_of_range", "empty", ""]

_VERDICT_COLUMNS = frozenset(
    {"first", "second", "winner", "preference", "first_length", "second_length"}
)
_TEXT_COLUMNS = frozenset(
    {"question", "first_answer", "second_answer", "explanation", "answer", "evidence", "rationale"}
)
"""What was judged, and what was said of it. Where the key names one it is a field as any other."""
VOTE_COLUMNS = (
    frozenset({"unit", "judge", "pass", "sample", "criterion", "meta"})
    | frozenset({"question", "first_answer", "second_answer", "explanation"})
    | _VERDICT_COLUMNS
)
READ_COLUMNS = frozenset({"first", "second", "winner", "preference", "pass", "sample", "criterion"})
"""Columns that say what a vote says."""
SHOWN_COLUMNS = frozenset(
    {"first_length", "second_length", "question", "first_answer", "second_answer"}
)
"""Columns that say what was shown."""
SCORE_COLUMNS = frozenset(
    {"unit", "judge", "dimension", "score", "repeat", "failure_tags", "meta"}
) | frozenset({"question", "answer", "evidence", "rationale"})
SCORED_COLUMNS = frozenset({"dimension", "score", "repeat", "failure_tags"})
"""Columns that say what a score says; the others say why, and what was scored."""
_WORDS: dict[str, Side] = {"first": "first", "second": "second", "tie": "tie"}
_EXACT = 2**53
"""Up to here a fraction holds every whole number."""
LARGEST = 1e100
"""Of a score: sums and squares of larger ones would not be finite."""
_SECOND_PASS = frozenset({"2", "21", "ba", "second"})


def votes(path: Path, shaping: Shaping) -> Iterator[TidyRow]:
    """The rows of a table of votes; raises DataError where no row has a verdict's column."""
    has_verdict, row = False, None
    for row in table(path, shaping, "winner"):
        require(row, ("first", "second"), "votes")
        has_verdict = has_verdict or "winner" in row.value or "preference" in row.value
        yield TidyRow("votes", row.value, row.where)
    if row is not None and not has_verdict:
        raise missing("winner", row.value, str(path), "votes")


def scores(path: Path, shaping: Shaping) -> Iterator[TidyRow]:
    """The rows of a table of scores; raises DataError where no row has a score's column."""
    has_score, row = False, None
    commas = DecimalCommas(path, shaping)
    for row in table(path, shaping, "score"):
        has_score = has_score or "score" in row.value
        yield TidyRow("scores", commas.read(row.value), row.where)
    if row is not None and not has_score:
        error = missing("score", row.value, str(path), "scores")
        numbers = [name for name, value in row.value.items() if _is_score(name, value)]
        if numbers:
            error.advice += f"; or a column per dimension: --wide dimension={','.join(numbers)}"
        raise error


def _is_score(name: str, value: object) -> bool:
    return name not in SCORE_COLUMNS and _number(value) is not None


class Vote(NamedTuple):
    """One vote, as it was shown: the first candidate stood first."""

    first: str
    second: str
    side: Side
    preference: float | None
    failed: Failed
    detail: str
    spelled: str
    """How the winner is spelled where it is read as such a word is usually meant."""
    unreadable: str
    """What stands in the place of a winner and names none."""
    turned: bool
    """Whether it is the second pass by its column `pass`: all that tells the orders apart where a
    candidate meets itself."""
    sample: str
    criterion: str


class Shown(NamedTuple):
    """What was shown to who voted: lengths and answers are of the first and the second, nothing
    where the row leaves them out."""

    lengths: tuple[float | None, float | None]
    question: str
    answers: tuple[str, str]


def read_shown(row: Mapping[str, Any], where: str) -> Shown:
    """What a row of votes says of the texts."""
    return Shown(
        (_number(row.get("first_length")), _number(row.get("second_length"))),
        whole_text_of(row.get("question")),
        (whole_text_of(row.get("first_answer")), whole_text_of(row.get("second_answer"))),
    )


def read_candidates(row: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Whom a row of votes compares, as they were shown; raises DataError where it does not say."""
    return _candidate(row, "first", where), _candidate(row, "second", where)


def are_winners_words(chunk: Chunk) -> bool:
    """Whether no winner of some votes is called like a candidate of any, in whatever case: then
    what they say does not depend on whom they compare."""
    cells = [set[str | None](), set[str | None]()]
    for place, name in ((0, "winner"), (1, "first"), (1, "second")):
        if name not in chunk.columns:
            continue
        if not chunk.types(name) <= {str, type(None)}:
            return False
        cells[place].update(chunk.columns[name])
    winners, names = ({text_of(cell).lower() for cell in each} for each in cells)
    return winners.isdisjoint(names)


def read_vote(row: Mapping[str, Any], where: str) -> Vote:
    """What a row of votes says; raises DataError where it does not say whom it compares."""
    first, second = read_candidates(row, where)
    winner = text_of(row.get("winner"))
    named = _side(winner, first, second) if winner else ""
    side, preference, failed, detail = _verdict(winner, named, row.get("preference"))
    is_plain = winner.lower() in _WORDS or winner in (first, second)
    return Vote(
        first=first,
        second=second,
        side=side,
        preference=preference,
        failed=failed,
        detail=detail,
        spelled="" if is_plain or not side else winner,
        unreadable="" if named else winner,
        turned=text_of(row.get("pass")).lower() in _SECOND_PASS,
        sample=text_of(row.get("sample")),
        criterion=text_of(row.get("criterion")),
    )


def _verdict(winner: str, named: Side, value: object) -> tuple[Side, float | None, Failed, str]:
    """What a winner, the side that it names, and a preference say together."""
    share, preference = text_of(value), _number(value)
    if share and (preference is None or not 0 <= preference <= 1):
        return "", None, "schema", f"preference {quoted(share)} is not a number from 0 to 1"
    if winner:
        if not named:
            return "", None, "schema", f"winner {quoted(winner)} is none of first, second, tie"
        if preference is not None and named != _preferred(preference):
            detail = f"winner {quoted(winner)} and preference {preference:g} contradict each other"
            return "", None, "schema", detail
        return named, preference, "", ""
    if preference is None:
        return "", None, "empty", "there is no winner"
    return _preferred(preference), preference, "", ""


def _side(winner: str, first: str, second: str) -> Side:
    """No candidate is called like a word for a side; names are told apart from them by case, and
    go before what a text usually means."""
    if winner in _WORDS:
        return _WORDS[winner]
    if winner in (first, second):
        return "first" if winner == first else "second"
    if winner.lower() in (first.lower(), second.lower()):
        return ""  # a name in another case may mean the candidate or the side
    return _WORDS.get(winner.lower()) or spelled_side(winner)


def _preferred(preference: float) -> Side:
    return "tie" if preference == 0.5 else "second" if preference > 0.5 else "first"


class Score(NamedTuple):
    """One score on one dimension; without a dimension, the word that there is none at all."""

    dimension: str | None
    score: float | None
    failed: Failed
    detail: str
    spelled: str
    """How a score is spelled that is no number but read as one."""
    unreadable: str
    """What stands in the place of a score and is none."""
    repeat: str
    tags: list[str]


def read_score(row: Mapping[str, Any]) -> Score:
    """What a row of scores says."""
    cell, dimension = row.get("score"), row.get("dimension", "score")
    text, number = "", None
    score: float | None = None
    failed: Failed
    if isinstance(cell, NoScore):
        failed, detail = cell
    else:
        text, number = text_of(cell), _number(cell)
        score, failed, detail = _score(text, number)
    return Score(
        dimension=None if dimension is None else text_of(dimension) or "score",
        score=score,
        failed=failed,
        detail=detail,
        spelled="" if score is None or number is not None else text,
        unreadable=text if failed == "schema" else "",
        repeat=text_of(row.get("repeat")),
        tags=_tags(row.get("failure_tags")),
    )


def read_reasons(row: Mapping[str, Any]) -> tuple[str, str]:
    """What a judge quoted from the answer, as a list in JSON or nothing, and why it scored so."""
    quotes = _quotes(row.get("evidence"))
    return dumps_lossy(quotes) if quotes else "", text_of(row.get("rationale"))


def _score(text: str, number: float | None) -> tuple[float | None, Failed, str]:
    """What a cell says, by its text and the number that it is spelled as."""
    if not text:
        return None, "empty", "there is no score"
    if number is None:
        number = spelled_score(text)
    if number is None:
        return None, "schema", f"score {quoted(text)} is not a number"
    if abs(number) > LARGEST:
        return None, "out_of_range", f"score {quoted(text)} is beyond {LARGEST:g}"
    return number, "", ""


def _tags(value: object) -> list[str]:
    tags = value if isinstance(value, list) else text_of(value).replace(",", " ").split()
    return list(dict.fromkeys(text_of(tag) for tag in tags))


def _quotes(value: object) -> list[str]:
    """A list of quotes, also one that a table holds as JSON; any other text is one quote."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError):
            value = parse_lenient(value)
    quotes: list[object] = value if isinstance(value, list) else [value]
    return [text for text in map(text_of, quotes) if text]


JUDGE_NAMES = ("name", "model", "model_name", "id")
"""What an object says of a judge is called by the first of these."""


def judge_of(row: Mapping[str, Any], where: str, kind: str, default: str) -> str:
    """Who judged; raises DataError where neither the row nor anybody else says."""
    value = row.get("judge")
    if isinstance(value, Mapping):
        # An object would be another judge in every row that differs in anything it holds.
        value = next((value[name] for name in JUDGE_NAMES if text_of(value.get(name))), None)
    judge = text_of(value) or default
    if judge:
        return judge
    error = missing("judge", row, where, kind)
    error.advice += "; or name the judge once for all rows: --judge NAME"
    raise error


def unit_of(row: Mapping[str, Any], where: str, kind: str, key: Sequence[str]) -> str:
    """The unit of a row; raises DataError where the key needs one that is not there."""
    unit = text_of(row.get("unit"))
    if not unit and "unit" in key:
        if "unit" not in row:
            error = missing("unit", row, where, kind)
            error.advice += "; or say what tells units apart: --key COLUMN,COLUMN"
            raise error
        return _name(row, "unit", where)
    return unit


def _name(row: Mapping[str, Any], name: str, where: str) -> str:
    text = text_of(row.get(name))
    if not text:
        raise DataError(
            f"the column {quoted(name)} is empty", where=where, advice="name it in every row"
        )
    return text


def _candidate(row: Mapping[str, Any], name: str, where: str) -> str:
    candidate = _name(row, name, where)
    if candidate in _WORDS:
        raise DataError(
            f"the column {quoted(name)} holds a candidate called {quoted(candidate)}, a word that"
            " says who won",
            where=where,
            advice="rename the candidate, there and where it is the winner",
        )
    return candidate


def text_of(value: object) -> str:
    """A cell as text without white space around it; nothing for null."""
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else as_text(value)


def whole_text_of(value: object) -> str:
    """A text that was judged: as it is, since quotes are found in it by their places."""
    return value if isinstance(value, str) else text_of(value)


def meta_of(
    row: Mapping[str, Any], columns: frozenset[str], key: Sequence[str] = ()
) -> dict[str, Any]:
    """The columns that the shape has no name for or that the key names, and what stands under
    `meta`."""
    meta = dict(object_of(row.get("meta"))) if "meta" in row else {}
    taken = columns - _TEXT_COLUMNS.intersection(key)
    for name, value in row.items():
        if name not in taken and value is not None and value != "":
            meta[name] = value
    return meta


def _number(value: object) -> float | None:
    """A finite number, whole ones as such; from a text only if it is spelled as one."""
    if value is None or value == "" or isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) < _EXACT:
        return value
    try:
        number = float(value) if isinstance(value, float | str | int) else math.nan
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number) or (isinstance(value, str) and "_" in value):
        return None
    is_whole = isinstance(value, str) and value.strip().lstrip("+-").isdecimal()
    return int(number) if is_whole and abs(number) < _EXACT else number
