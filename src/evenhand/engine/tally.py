"""What one command has done so far, counted as it happens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.judgment import Reason


@dataclass(slots=True)
class Tally:
    """Calls, money and judgments of one command."""

    sent: int = 0
    cached: int = 0
    reasks: int = 0
    cost: int = 0
    unpriced: int = 0
    verdicts: int = 0
    failures: int = 0
    left_out: int = 0
    actors: list[str] = field(default_factory=list[str])
    """What each actor on a cluster does now, in words; empty where this process judges."""
    silent: dict[str, str] = field(default_factory=dict[str, str])
    """Judges that lost calls and answered none, by name, with the last loss in words."""
    outcomes: dict[int, Counter[Reason | None]] = field(
        default_factory=dict[int, Counter["Reason | None"]]
    )
    """Judgments that this command made, by the judge's index: why they failed; None: verdicts."""
    last_failures: dict[int, str] = field(default_factory=dict[int, str])
    """By the judge's index, the last reply of a failure; where there is none, its detail."""
    unrecorded: Counter[str] = field(default_factory=Counter[str])
    """Judgments that judges of recorded replies have none for, by the judge's name."""
