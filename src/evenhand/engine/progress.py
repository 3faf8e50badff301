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
    from evenhand.words import Words


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
    is_answering: bool = False
    """True where answers are made that are judged later."""
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

    def line(self, say: Words) -> str:
        """Return one line, without colour. What is left out no longer counts as planned."""
        tally = self.tally
        counts = {
            "failed": tally.failures,
            "reasked": tally.reasks,
            "left_out": tally.left_out,
        }
        parts = [
            say(
                "runs.answered" if tally.is_answering else "runs.judged",
                n=self.judged,
                of=self.planned - tally.left_out,
            ),
            self._rate(say),
            say.money(float(usd(tally.cost))) if tally.cost else "",
            *(say(f"runs.{name}", n=n) for name, n in counts.items() if n),
            self._time_left(say),
        ]
        if tally.actors:
            what = say.join(map(say.message, tally.actors), between="semicolon")
            parts.append(say("runs.actors", n=len(tally.actors), what=what))
        return say.join(filter(None, parts))

    def _rate(self, say: Words) -> str:
        speed = self._speed(self.judged)
        if not speed:
            return ""
        if speed >= 1:
            return say("runs.per_second", rate=speed)
        return say("runs.per_minute", rate=60 * speed)

    def _time_left(self, say: Words) -> str:
        """Of what is open some will be left out, in no time, as of what is done."""
        speed, open_ = self._speed(self.done), self.planned - self.done
        if not speed or open_ <= 0:
            return ""
        minutes, seconds = divmod(round(open_ / speed), 60)
        hours, minutes = divmod(minutes, 60)
        unit = "hours" if hours else "minutes" if minutes else "seconds"
        return say(f"runs.{unit}_left", hours=hours, minutes=minutes, seconds=seconds)

    def _speed(self, number: int) -> float:
        passed = self.clock() - self._began
        return (number - self._before) / passed if passed > 0 else 0.0
