"""What a model answers when there is nothing to judge, remembered.

A prior is a function of the weights, the runtime, the walk and the neutral prompt with its choices;
all of them are in its key. It is kept in memory and as a small file in the user's cache; a file
that is not what it should be is measured again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.exchange import Message
from evenhand.judges.embedded import weights
from evenhand.judges.embedded.walk import VERSION, Choice, Odds


@dataclass(slots=True)
class Priors:
    """The priors of one model."""

    model: str
    """What tells this model from others: the hash of its weights and the runtime's version."""
    folder: Path
    known: dict[str, Odds] = field(default_factory=dict[str, Odds])

    def of(
        self, neutral: Sequence[Message], choices: Sequence[Choice], measure: Callable[[], Odds]
    ) -> Odds:
        """The prior of these choices, measured only if it never was."""
        key = self._key(neutral, choices)
        if key not in self.known:
            file = self.folder / f"{key}.json"
            self.known[key] = _read(file, choices) or _remembered(file, choices, measure())
        return self.known[key]

    def _key(self, neutral: Sequence[Message], choices: Sequence[Choice]) -> str:
        turns = [[message.role, message.content] for message in neutral]
        questions = [choice.questions for choice in choices]
        text = json.dumps([self.model, VERSION, turns, questions])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _remembered(file: Path, choices: Sequence[Choice], odds: Odds) -> Odds:
    with contextlib.suppress(OSError):  # a cache that cannot be written is no error
        weights.write_whole(file, json.dumps([odds[choice.path] for choice in choices]))
    return odds


def _read(file: Path, choices: Sequence[Choice]) -> Odds | None:
    try:
        rows: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(rows, list) or len(rows) != len(choices):
        return None
    if not all(_fits(row, choice) for row, choice in zip(rows, choices, strict=True)):
        return None
    return {choice.path: tuple(row) for row, choice in zip(rows, choices, strict=True)}


def _fits(row: Any, choice: Choice) -> bool:
    return (
        isinstance(row, list)
        and len(row) == len(choice.options)
        and all(isinstance(x, float) and math.isfinite(x) for x in row)
    )
