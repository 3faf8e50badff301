"""The tokens of a reply as a provider counts them, believed where they can be true.

Total: whatever a provider puts in the place of a count, the result is a `Usage` that a store can
hold and that a sum can be made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from evenhand.exchange import Usage
from evenhand.limits import TOKENS_MOST

DIGITS_TOLD = 24


def usage_of(
    read: Sequence[Any], written: Sequence[Any], cached: Any = None, stored: Any = None
) -> Usage:
    """The usage of a reply, from the decoded counts that make up its input and its output, and the
    parts of the input that were read from a cache and stored in one. A count that is missing leaves
    its sum unknown. Where one cannot be true none of them is believed."""
    if all(map(_is_possible, (*read, *written, cached, stored))):
        input_tokens, output_tokens = _sum(read), _sum(written)
        cached, stored = cached or 0, stored or 0
        if cached + stored <= (input_tokens or 0):
            return Usage(
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cached_tokens=cached,
                stored_tokens=stored,
            )
    claims = {"input": read, "output": written, "cached": [cached], "stored": [stored]}
    return Usage(claimed=_told(claims))


def _is_possible(count: Any) -> bool:
    return count is None or (type(count) is int and 0 <= count <= TOKENS_MOST)


def _sum(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(cast("Sequence[int]", counts))


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
