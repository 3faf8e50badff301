"""Critical-fail conditions that code decides: `must_match`, `must_not_match`, `max_chars`,
`min_chars`.

A condition holds when the answer is to fail by it. `decide` never raises: a pattern that does not
end within its time is a value of its own, neither a pass nor a fail.

Patterns are written by others. The `regex` package takes a time limit for a search but none for
compiling, and it copies a repeated group out as often as its minimum says: a pattern of a hundred
characters can ask for all memory. So the size to which a pattern unfolds is bounded from above
before it is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from unicodedata import normalize

from evenhand.kinds.prompt import unknown
from evenhand.words import Code, Sentence

KINDS = ("must_match", "must_not_match", "max_chars", "min_chars")
FLAGS = "imsx"
PATTERN_CHARS = 10_000
"""A list of forbidden words fits; compiling stays well under a tenth of a second."""
PATTERN_PARTS = 50_000
"""Some 600 bytes a part: 30 MB at most."""
SEARCH_SECONDS = 0.5
"""The time that a search may take. A sound pattern takes a thousandth of it."""


class ConditionError(ValueError):
    """A condition that cannot be decided as it is written."""


class CodeCondition(NamedTuple):
    """A pattern that must, or must not, be found in the answer; or its most, or fewest, code
    points."""

    kind: str
    line: int
    pattern: str = ""
    flags: str = ""
    limit: int = 0

    @property
    def written(self) -> str:
        """The value as a rubric writes it."""
        return f"/{self.pattern}/{self.flags}" if self.pattern else str(self.limit)


class Hit(NamedTuple):
    """The condition by which an answer fails; `about` fills the sentence that says so."""

    condition: CodeCondition
    about: Mapping[str, str]
    """`pattern` and `found` (empty where nothing was), or `limit` and `length`."""


class TimedOut(NamedTuple):
    """A condition that could not be decided: its pattern did not end within the limit."""

    condition: CodeCondition


def decide(
    conditions: Iterable[CodeCondition], answer: str, *, seconds: float = SEARCH_SECONDS
) -> Hit | TimedOut | None:
    """Return the first condition that holds, or that cannot be decided; None if none holds."""
    for condition in conditions:
        if condition.pattern:
            try:
                # Concurrent: other threads go on meanwhile.
                match = _compile(condition.pattern, condition.flags).search(
                    answer, timeout=seconds, concurrent=True
                )
            except (MemoryError, TimeoutError):
                return TimedOut(condition)
            if (match is None) == (condition.kind == "must_match"):
                found = match[0] if match else ""
                return Hit(condition, {"pattern": condition.written, "found": found})
        else:
            excess = len(answer) - condition.limit
            if excess > 0 if condition.kind == "max_chars" else excess < 0:
                return Hit(condition, {"limit": condition.written, "length": str(len(answer))})
    return None


_KEYED = re.compile(
    r"[`*\s]*((?:must|max|min)_[a-z_]+)[`*\s]*[:：=](.*)", re.DOTALL | re.IGNORECASE
)
_SLASHED = re.compile(r"/((?:\\.|[^/\\\n])*)/(\w*)`?(?:[ \t]+[#—–(（].*)?")
_NUMBER = re.compile(r"(\d{1,9})(?:[ \t]+[#—–(（].*)?")


def parse_condition(entry: str, line: int) -> CodeCondition | None:
    """Return the condition for code that an entry of a rubric is; None if only the judge can tell.
    Raise ConditionError."""
    keyed = _KEYED.match(entry)
    if keyed is None:
        return None
    key, value = keyed[1].lower(), keyed[2].strip("*` \t")
    if key not in KINDS:
        raise ConditionError(unknown("condition", key, KINDS))
    if key in ("max_chars", "min_chars"):
        number = _NUMBER.fullmatch(normalize("NFKC", value))
        if number is None:
            raise ConditionError(Sentence("kinds.no_limit", name=key, value=value))
        return CodeCondition(key, line, limit=int(number[1]))
    slashed = _SLASHED.fullmatch(value)
    if slashed is None:
        raise ConditionError(Sentence("kinds.no_pattern", name=key, value=value))
    check_pattern(slashed[1], slashed[2])
    return CodeCondition(key, line, slashed[1], slashed[2])


_QUANTIFIER = r"(?:\+|\{\s*(\d*)\s*(,?)\s*\d*\s*\})"
_ESCAPE = re.compile(r"\\[^\n]")
_REPEAT = re.compile(_QUANTIFIER)
# In an `x` pattern white space and a comment may stand between a group and its quantifier.
_GROUP_REPEAT = re.compile(rf"\)(?=(?:\s|#[^\n]*\n)*+{_QUANTIFIER})")
# A recursive call fills memory far faster than the time limit can end it.
_RECURSION = re.compile(r"\(\?(?:R|&|P>|[+-]?\d)")


def check_pattern(pattern: str, flags: str = "") -> None:
    """Raise ConditionError unless the pattern compiles within its bounds."""
    others = sorted(set(flags) - set(FLAGS))
    if others:
        raise ConditionError(Sentence("kinds.unknown_flag", name=others[0], flags=Code(FLAGS)))
    if not pattern:
        raise ConditionError(Sentence("kinds.empty_pattern"))
    if len(pattern) > PATTERN_CHARS:
        raise ConditionError(Sentence("kinds.long_pattern", most=PATTERN_CHARS))
    bare = _ESCAPE.sub("a", pattern)
    if _RECURSION.search(bare):
        raise ConditionError(Sentence("kinds.recursive_pattern"))
    if count_parts(bare) > PATTERN_PARTS:
        raise ConditionError(Sentence("kinds.huge_pattern"))
    _compile(pattern, flags)


def count_parts(bare: str) -> int:
    """Return a bound on the parts of a compiled pattern whose escapes were taken out."""
    size = len(bare) + sum(_copies(*repeat.groups()) for repeat in _REPEAT.finditer(bare))
    for repeat in _GROUP_REPEAT.finditer(bare):
        size *= _copies(*repeat.groups())
    return size


def _copies(least: str | None, comma: str | None) -> int:
    """Return how often what is repeated is written out: `+` is once and a loop, `{3}` thrice."""
    # A count of many digits is a mistake or an attack, and a number of them takes its time.
    return 2 if least is None else max(int(least[:9] or "0") + bool(comma), 1)


@lru_cache(maxsize=256)
def _compile(pattern: str, flags: str) -> Any:
    import regex  # type: ignore[import-untyped]  # here: it takes longer to load than all else

    joined = regex.V0
    for flag in flags:
        joined |= getattr(regex, flag.upper())
    try:
        return regex.compile(pattern, joined)
    except (regex.error, ValueError, OverflowError, RecursionError, LookupError) as error:
        raise ConditionError(Sentence("kinds.not_regex", error=error)) from None
