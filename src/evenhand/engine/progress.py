"""How far a run is, as one line: done, rate, cost, failures, time left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from evenhand.engine.prices import usd
from evenhand.engine.tally import Tally


@dataclass(slots=True)
class Progress:
    """Reads a tally against the clock; the rate is that of this command alone."""

    tally: Tally
    planned: int
    clock: Callable[[], float] = monotonic
    _began: float = field(init=False)
    _before: int = field(init=False)

    def __post_init__(self) -> None:
        self._began, self._before = self.clock(), self.done

    @property
    def done(self) -> int:
        """What is settled; a judgment left out was counted as planned when the run began."""
        return self.tally.verdicts + self.tally.failures + self.tally.left_out

    def line(self) -> str:
        """One line, without colour."""
        tally = self.tally
        parts = [f"{self.done}/{self.planned} judged", self._rate()]
        if tally.cost:
            parts.append(f"${float(usd(tally.cost)):.4f}")
        if tally.failures:
            parts.append(f"{tally.failures} failed")
        if tally.left_out:
            parts.append(f"{tally.left_out} left out")
        if tally.reasks:
            parts.append(f"{tally.reasks} re-asked")
        if tally.workers > 1:
            parts.append(f"{tally.workers} workers")
        parts.append(self._left())
        return ", ".join(part for part in parts if part)

    def _speed(self) -> float:
        passed = self.clock() - self._began
        return (self.done - self._before) / passed if passed > 0 else 0.0

    def _rate(self) -> str:
        speed = self._speed()
        if not speed:
            return ""
        return f"{speed:.1f}/s" if speed >= 1 else f"{60 * speed:.1f}/min"

    def _left(self) -> str:
        speed, open_ = self._speed(), self.planned - self.done
        return f"{_span(open_ / speed)} left" if speed and open_ > 0 else ""


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
