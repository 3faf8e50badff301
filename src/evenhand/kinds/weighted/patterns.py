"""Regular expressions written by others: bounded when compiled, limited in time when searched.

The `regex` package takes a time limit for a search but none for compiling, and it copies a
repeated group out as often as its minimum says: a pattern of a hundred characters can ask for all
memory. So the size to which a pattern unfolds is bounded from above before it is compiled.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# A list of forbidden words fits; compiling stays well under a tenth of a second.
PATTERN_CHARS = 10_000
# Some 600 bytes a part: 30 MB at most.
PATTERN_PARTS = 50_000
# What a search may take, in seconds. A sound pattern takes a thousandth of it.
SEARCH_SECONDS = 0.5

FLAGS = "imsx"

_QUANTIFIER = r"(?:\+|\{\s*(\d*)\s*(,?)\s*\d*\s*\})"
_ESCAPE = re.compile(r"\\[^\n]")
_REPEAT = re.compile(_QUANTIFIER)
# In an `x` pattern white space and a comment may stand between a group and its quantifier.
_GROUP_REPEAT = re.compile(rf"\)(?=(?:\s|#[^\n]*\n)*+{_QUANTIFIER})")
# A recursive call fills memory far faster than the time limit can end it.
_RECURSION = re.compile(r"\(\?(?:R|&|P>|[+-]?\d)")


class PatternError(ValueError):
    """Why a regular expression cannot be used."""


def check_pattern(pattern: str, flags: str = "") -> None:
    """Raise PatternError unless the pattern compiles within its bounds."""
    unknown = sorted(set(flags) - set(FLAGS))
    if unknown:
        raise PatternError(f"unknown flag {unknown[0]}; the flags are {', '.join(FLAGS)}")
    if not pattern:
        raise PatternError("the pattern is empty")
    if len(pattern) > PATTERN_CHARS:
        raise PatternError(f"the pattern is longer than {PATTERN_CHARS} characters")
    bare = _ESCAPE.sub("a", pattern)
    if _RECURSION.search(bare):
        raise PatternError("the pattern calls itself, which is not supported")
    if unfolded(bare) > PATTERN_PARTS:
        raise PatternError("the pattern repeats too much; lower its counts, or nest fewer groups")
    _compile(pattern, flags)


def unfolded(bare: str) -> int:
    """A bound on the parts of a compiled pattern whose escapes were taken out."""
    size = len(bare) + sum(_copies(*repeat.groups()) for repeat in _REPEAT.finditer(bare))
    for repeat in _GROUP_REPEAT.finditer(bare):
        size *= _copies(*repeat.groups())
    return size


def _copies(least: str | None, comma: str | None) -> int:
    """How often what is repeated is written out: `+` is once and a loop, `{3}` thrice."""
    if least is None:
        return 2
    # A count of many digits is a mistake or an attack, and a number of them takes its time.
    count = int(least[:9] or "0")
    return max(count + bool(comma), 1)


def search(pattern: str, flags: str, text: str, seconds: float = SEARCH_SECONDS) -> str | None:
    """What the pattern finds first, or None; raises TimeoutError after the limit."""
    match = _searched(pattern, flags, text, seconds)
    if isinstance(match, TimeoutError):
        raise TimeoutError
    return match


# Several judges, repeats and a forecast ask the same of one answer.
@lru_cache(maxsize=256)
def _searched(pattern: str, flags: str, text: str, seconds: float) -> str | TimeoutError | None:
    try:
        # Concurrent: other threads go on meanwhile.
        match = _compile(pattern, flags).search(text, timeout=seconds, concurrent=True)
    except (MemoryError, TimeoutError):
        return TimeoutError()
    return None if match is None else str(match[0])


@lru_cache(maxsize=256)
def _compile(pattern: str, flags: str) -> Any:
    import regex  # type: ignore[import-untyped]  # here: it takes longer to load than all else

    joined = regex.V0
    for flag in flags:
        joined |= getattr(regex, flag.upper())
    try:
        return regex.compile(pattern, joined)
    except (regex.error, ValueError, OverflowError, RecursionError, LookupError) as error:
        raise PatternError(f"the pattern is not a regular expression: {error}") from None
