"""Critical-fail conditions that code decides: `must_match`, `must_not_match`, `max_chars`,
`min_chars`.

A condition holds when the answer is to fail by it. `decide` never raises: a pattern that does not
end within its time is a value of its own, neither a pass nor a fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard
from unicodedata import normalize

from evenhand.errors import nearest, quoted
from evenhand.kinds.weighted.patterns import SEARCH_SECONDS, PatternError, check_pattern, search

MatchKind = Literal["must_match", "must_not_match"]
LengthKind = Literal["max_chars", "min_chars"]
KINDS = ("must_match", "must_not_match", "max_chars", "min_chars")
# More digits than any answer has characters.
LIMIT_DIGITS = 9


class ConditionError(ValueError):
    """What is wrong with a condition; `line` is known where two of them contradict."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern that must, or must not, be found in the answer."""

    kind: MatchKind
    pattern: str
    flags: str
    line: int

    @property
    def about(self) -> dict[str, str]:
        return {"pattern": f"/{self.pattern}/{self.flags}"}


@dataclass(frozen=True, slots=True)
class Length:
    """The most, or the fewest, characters of an answer: code points."""

    kind: LengthKind
    limit: int
    line: int

    @property
    def about(self) -> dict[str, str]:
        return {"limit": str(self.limit)}


Condition = Match | Length


@dataclass(frozen=True, slots=True)
class Hit:
    """The condition by which an answer fails; `about` fills the sentence that says so."""

    condition: Condition
    about: Mapping[str, str]
    """`pattern` and `found` (empty where nothing was), or `limit` and `length`."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A condition that could not be decided: its pattern did not end within the limit."""

    condition: Match


def decide(
    conditions: Iterable[Condition], answer: str, *, seconds: float = SEARCH_SECONDS
) -> Hit | TimedOut | None:
    """The first condition that holds, or that cannot be decided; None if no condition holds."""
    for condition in conditions:
        outcome = (
            _by_length(condition, answer)
            if isinstance(condition, Length)
            else _by_match(condition, answer, seconds)
        )
        if outcome is not None:
            return outcome
    return None


def _by_length(condition: Length, answer: str) -> Hit | None:
    length = len(answer)
    holds = length > condition.limit if condition.kind == "max_chars" else length < condition.limit
    return Hit(condition, {**condition.about, "length": str(length)}) if holds else None


def _by_match(condition: Match, answer: str, seconds: float) -> Hit | TimedOut | None:
    try:
        match = search(condition.pattern, condition.flags, answer, seconds)
    except TimeoutError:
        return TimedOut(condition)
    if (match is None) == (condition.kind == "must_not_match"):
        return None
    return Hit(condition, {**condition.about, "found": match or ""})


_KEYED = re.compile(r"[`*\s]*([^\W\d_]+(?:[_＿-][^\W\d_]+)+)[`*\s]*[:：=](.*)", re.DOTALL)


def find_condition(text: str) -> tuple[str, str] | None:
    """The key and value of an item that is written as a condition for code, whether or not the key
    is known. A hyphen is taken for the underscore of a known key only: "must-have: ..." is prose.
    """
    keyed = _KEYED.match(_unticked(text))
    if keyed is None:
        return None
    written = normalize("NFKC", keyed[1]).lower()
    key = written.replace("-", "_")
    if key in KINDS or ("-" not in written and written.startswith(("must_", "max_", "min_"))):
        return key, keyed[2].lstrip("*`").strip()
    return None


def build_condition(key: str, value: str, line: int) -> Condition:
    """The condition of a key and its value; raises ConditionError."""
    if _is_match(key):
        pattern, flags = _pattern(value)
        try:
            check_pattern(pattern, flags)
        except PatternError as error:
            raise ConditionError(f"{key}: {error}") from None
        return Match(key, pattern, flags, line)
    if _is_length(key):
        return Length(key, _limit(key, value), line)
    raise ConditionError(f"unknown condition {quoted(key)}; {_meant(key)}")


def _meant(key: str) -> str:
    """Return the advice for a key that is not known."""
    near = nearest(key, KINDS)
    return f"did you mean {near}?" if near else f"code decides {', '.join(KINDS)}"


def _is_match(key: str) -> TypeGuard[MatchKind]:
    return key in ("must_match", "must_not_match")


def _is_length(key: str) -> TypeGuard[LengthKind]:
    return key in ("max_chars", "min_chars")


_NOTE = r"(?:\s+(?:[#—–(（].*))?"
_SLASHED = re.compile(rf"`?/((?:\\.|[^/\\])*)/(\w*)`?{_NOTE}", re.DOTALL)
_QUOTES = {'"': '"', "'": "'", "«": "»", "“": "”", "「": "」"}


def _pattern(value: str) -> tuple[str, str]:
    """Pattern and flags of `/pattern/flags`, with a note after it or not, or of a bare pattern."""
    if value.startswith(("/", "`/")):
        slashed = _SLASHED.fullmatch(value)
        if slashed is None:
            raise ConditionError(
                f"{quoted(value)} is not /pattern/flags; inside the pattern write a slash as \\/"
            )
        return slashed[1], "".join(dict.fromkeys(slashed[2]))
    bare = _unticked(value)
    if len(bare) > 1 and _QUOTES.get(bare[0]) == bare[-1]:
        raise ConditionError(
            f"do the quotation marks of {quoted(bare)} belong to the pattern? Write it as /pattern/"
        )
    return bare, ""


_NUMBER = re.compile(rf"(\d{{1,{LIMIT_DIGITS}}}){_NOTE}", re.DOTALL)


def _limit(key: str, value: str) -> int:
    number = _NUMBER.fullmatch(normalize("NFKC", _unticked(value)))
    if number is None:
        raise ConditionError(f"{key} must be a whole number of characters, and is {quoted(value)}")
    return int(number[1])


def _unticked(text: str) -> str:
    """The text without the backticks around all of it."""
    bare = text.strip()
    ticked = len(bare) > 2 and bare[0] == bare[-1] == "`" and "`" not in bare[1:-1]
    return bare[1:-1].strip() if ticked else bare


def check_together(conditions: Iterable[Condition]) -> None:
    """Raise ConditionError if no answer at all could pass these conditions."""
    most: Length | None = None
    least: Length | None = None
    patterns: dict[tuple[str, str], Match] = {}
    for condition in conditions:
        if isinstance(condition, Match):
            other = patterns.setdefault((condition.pattern, condition.flags), condition)
            if other.kind != condition.kind:
                raise ConditionError(f"the opposite stands on line {other.line}", condition.line)
            continue
        if condition.kind == "max_chars":
            most = condition if most is None or condition.limit < most.limit else most
        else:
            least = condition if least is None or condition.limit > least.limit else least
        if most and least and least.limit > most.limit:
            clash = f"min_chars {least.limit} (line {least.line}) is more than max_chars "
            raise ConditionError(f"{clash}{most.limit} (line {most.line})", condition.line)
