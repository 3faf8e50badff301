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
        self._began, self._before = self.clock(), self.judged

    @property
    def judged(self) -> int:
        """Verdicts and failures."""
        return self.tally.verdicts + self.tally.failures

    @property
    def done(self) -> int:
        """What is settled; a judgment left out was counted as planned when the run began."""
        return self.judged + self.tally.left_out

    def line(self) -> str:
        """One line, without colour. What is left out is no longer counted as planned, as in the
        summary of the run."""
        tally = self.tally
        parts = [f"{self.judged}/{self.planned - tally.left_out} judged", self._rate()]
        if tally.cost:
            parts.append(f"${float(usd(tally.cost)):.4f}")
        if tally.failures:
            parts.append(f"{tally.failures} failed")
        if tally.reasks:
            parts.append(f"{tally.reasks} re-asked")
        parts.append(self._left())
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

    def _left(self) -> str:
        """Of what is open some will be left out, in no time, as of what is done."""
        speed, open_ = self._speed(self.done), self.planned - self.done
        return f"{_span(open_ / speed)} left" if speed and open_ > 0 else ""

    def _speed(self, number: int) -> float:
        passed = self.clock() - self._began
        return (number - self._before) / passed if passed > 0 else 0.0


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
