"""Which of two texts a model would rather write itself, given their topic and nothing else.

What a model takes for true shows in what it writes: the likelier text is the one it believes. No
text stands before the other here, so neither gains by its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.judges.embedded.options import Session, Tokens

# Tokens of each text that are read from where the two part; what a text claims comes early.
READ = 24
# Tokens before that place that are read again; more would take minutes where texts are near copies.
SHARED = 256
# Pairs remembered: the other order and later rounds of a pair ask again.
KEPT = 1024


@dataclass(slots=True)
class Favours:
    """What one model favours, remembered. Texts are read in one order whichever is asked first."""

    known: dict[tuple[str, str, str], float] = field(default_factory=dict[Any, float])

    def of(self, topic: str, texts: tuple[str, str], session: Callable[[], Session]) -> float:
        """By how much the first of the texts is favoured."""
        one, other = sorted(texts)
        if (topic, one, other) not in self.known:
            if len(self.known) >= KEPT:
                self.known.clear()
            self.known[topic, one, other] = favour(session(), one, other)
        found = self.known[topic, one, other]
        return found if texts == (one, other) else -found


def favour(session: Session, one: str, other: str) -> float:
    """By how much, per token, `one` is likelier than `other`; 0 where one only goes on further."""
    first, second = (session.tokens(text.strip()) for text in (one, other))
    parting = _parting(first, second)
    if parting in (len(first), len(second)):
        return 0.0
    start = max(0, parting - SHARED)
    mine, theirs = (_likelihood(session, text[start:], parting - start) for text in (first, second))
    return mine - theirs


def _likelihood(session: Session, text: Tokens, start: int) -> float:
    """The mean log-probability of the tokens from `start` on; one too unlikely to be listed gets
    that of the last."""
    found: list[float] = []
    for place in range(start, min(len(text), start + READ)):
        known = {one.token: one.logprob for one in session.following(text[:place])}
        found.append(known.get(text[place], min(known.values(), default=0.0)))
    return math.fsum(found) / len(found)


def _parting(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
