"""The work of a command so far, and the line that shows it: done, rate, cost, time left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from evenhand.engine.prices import usd

if TYPE_CHECKING:
    from evenhand.judgment import Reason


@dataclass(slots=True)
class Tally:
    """Calls, money and judgments of one command, counted as they happen."""

    sent: int = 0
    cached: int = 0
    reasks: int = 0
    cost: int = 0
    unpriced: int = 0
    verdicts: int = 0
    failures: int = 0
    left_out: int = 0
    actors: list[str] = field(default_factory=list[str])
    """The present work of each actor on a cluster, in words; empty where this process judges."""
    silent: dict[str, str] = field(default_factory=dict[str, str])
    """Judges that lost calls and answered none, by name, with the last loss in words."""
    outcomes: dict[int, Counter[Reason | None]] = field(
        default_factory=dict[int, Counter["Reason | None"]]
    )
    """Paid judgments by the judge's index and the reason of the failure; None: verdicts."""
    last_failures: dict[int, str] = field(default_factory=dict[int, str])
    """By the judge's index, the last reply of a failure; without a reply, its detail."""
    unrecorded: Counter[str] = field(default_factory=Counter[str])
    """Judgments for which a judge of recorded replies has none, by the judge's name."""

    def count_judgment(self, status: str) -> None:
        """Count a judgment by its status."""
        self.verdicts += status == "verdict"
        self.failures += status == "failure"
        self.left_out += status == "left_out"


@dataclass(slots=True)
class Progress:
    """Reads a tally against the clock; the rate is that of this command alone."""

    tally: Tally
    planned: int
    clock: Callable[[], float] = monotonic
    _began: float = field(init=False)
    _before: int = field(init=False)

    def __post_init__(self) -> None:
        self._began, self._before = self.clock(), self.judged

    @property
    def judged(self) -> int:
        """Return the number of verdicts and failures."""
        return self.tally.verdicts + self.tally.failures

    @property
    def done(self) -> int:
        """Return the number of judgments made or left out."""
        return self.judged + self.tally.left_out

    def line(self) -> str:
        """Return one line, without colour. What is left out no longer counts as planned."""
        tally = self.tally
        parts = [f"{self.judged}/{self.planned - tally.left_out} judged", self._rate()]
        if tally.cost:
            parts.append(f"${float(usd(tally.cost)):.4f}")
        if tally.failures:
            parts.append(f"{tally.failures} failed")
        if tally.reasks:
            parts.append(f"{tally.reasks} re-asked")
        parts.append(self._time_left())
        if tally.left_out:
            parts.append(f"{tally.left_out} left out by no_self_judging")
        if tally.actors:
            parts.append(f"{len(tally.actors)} actors ({'; '.join(tally.actors)})")
        return ", ".join(part for part in parts if part)

    def _rate(self) -> str:
        speed = self._speed(self.judged)
        if not speed:
            return ""
        return f"{speed:.1f}/s" if speed >= 1 else f"{60 * speed:.1f}/min"

    def _time_left(self) -> str:
        """Of what is open some will be left out, in no time, as of what is done."""
        speed, open_ = self._speed(self.done), self.planned - self.done
        return f"{_format_seconds(open_ / speed)} left" if speed and open_ > 0 else ""

    def _speed(self, number: int) -> float:
        passed = self.clock() - self._began
        return (number - self._before) / passed if passed > 0 else 0.0


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
