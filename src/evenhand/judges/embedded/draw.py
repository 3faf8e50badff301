"""Drawing a choice by its probabilities, as later rounds do so that they can come out differently.

Nothing here is random: the point at which an option is taken is a function of the seed and of the
prompt, so both orders of a pair, and every pair, are drawn apart, and a run can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from evenhand import jsontext
from evenhand.exchange import Message


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw for a whole reply: choices that say the same fall on the same side."""

    temperature: float
    point: float
    """From 0 up to 1: where on the line of all options, each as long as it is likely."""

    @classmethod
    def of(cls, messages: Iterable[Message], temperature: float, seed: int) -> Draw:
        """The draw that belongs to a prompt and a seed."""
        prompt = jsontext.compact([seed, *([turn.role, turn.content] for turn in messages)])
        digest = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=6).digest()
        return cls(temperature, int.from_bytes(digest, "big") / 2**48)

    def taken(self, odds: Sequence[float]) -> int:
        """Which option stands at the point, given their log-probabilities in the line's order."""
        lengths = [math.exp((value - max(odds)) / self.temperature) for value in odds]
        left = self.point * math.fsum(lengths)
        for option, length in enumerate(lengths):
            left -= length
            if left < 0:
                return option
        return len(odds) - 1
