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
        first, second = sorted(texts)
        if (topic, first, second) not in self.known:
            if len(self.known) >= KEPT:
                self.known.clear()
            self.known[topic, first, second] = favour(session(), first, second)
        lead = self.known[topic, first, second]
        return lead if texts == (first, second) else -lead


def favour(session: Session, text: str, against: str) -> float:
    """By how much, per token, a text is likelier than another; 0 where one only goes on further."""
    first, second = (session.tokens(each.strip()) for each in (text, against))
    parting = _parting(first, second)
    if parting in (len(first), len(second)):
        return 0.0
    start = max(0, parting - SHARED)
    mine, theirs = (
        _likelihood(session, tokens[start:], parting - start) for tokens in (first, second)
    )
    return mine - theirs


def _likelihood(session: Session, text: Tokens, start: int) -> float:
    """The mean log-probability of the tokens from `start` on; one too unlikely to be listed gets
    that of the last."""
    logprobs: list[float] = []
    for place in range(start, min(len(text), start + READ)):
        listed = {item.token: item.logprob for item in session.following(text[:place])}
        logprobs.append(listed.get(text[place], min(listed.values(), default=0.0)))
    return math.fsum(logprobs) / len(logprobs)


def _parting(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two texts have in common at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
