"""The tokens of a reply as a provider counts them, believed where they can be true.

Total: whatever a provider puts in the place of a count, the result is a `Usage` that a store can
hold and that a sum can be made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.exchange import Usage
from evenhand.limits import TOKENS_MOST

DIGITS_TOLD = 24


def usage_of(read: Sequence[Any], written: Sequence[Any], cached: Any = None) -> Usage:
    """The usage of a reply, from the decoded counts that make up its input and its output, and the
    part of the input that was cached. A count that is missing leaves its sum unknown. Where one
    cannot be true none of them is believed."""
    claims = {"input": read, "output": written, "cached": [cached]}
    if not all(_is_possible(count) for counts in claims.values() for count in counts):
        return Usage(claimed=_told(claims))
    input_tokens, output_tokens = _sum(read), _sum(written)
    if (cached or 0) > (input_tokens or 0):
        return Usage(claimed=_told(claims))
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, cached_tokens=cached or 0)


def _is_possible(count: Any) -> bool:
    return count is None or (type(count) is int and 0 <= count <= TOKENS_MOST)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _told(claims: dict[str, Sequence[Any]]) -> str:
    """The claims in words. Of what is no number only its type is told: it may repeat the key."""
    return ", ".join(
        f"{name} {' + '.join(map(_word, counts))}"
        for name, counts in claims.items()
        if any(count is not None for count in counts)
    )


def _word(count: Any) -> str:
    if not isinstance(count, int | float):
        return type(count).__name__
    text = str(count)
    return text if len(text) <= DIGITS_TOLD else f"a number of {len(text)} digits"
