"""Many calls in a row without an answer mean that a judge is down: the run is stopped."""

from __future__ import annotations

from evenhand.engine.stop import Stop
from evenhand.errors import CallError, StoppedEarly
from evenhand.limits import LOST_IN_A_ROW


class Breaker:
    """Counts the calls that one judge did not answer since it last did."""

    def __init__(self, stop: Stop) -> None:
        self._stop, self._lost_in_a_row = stop, 0

    def answered(self) -> None:
        """The judge is there, whatever it said."""
        self._lost_in_a_row = 0

    def lost(self, loss: CallError) -> None:
        """One call is lost for good; throws the switch when it is one too many."""
        self._lost_in_a_row += 1
        if self._lost_in_a_row >= LOST_IN_A_ROW:
            self._stop.throw(
                StoppedEarly(
                    f"the judge seems to be down: {self._lost_in_a_row} calls in a row gave no"
                    f" answer (the last: {loss})",
                    advice="Mend that, or wait, and run the same command again: it continues where"
                    " it stopped.",
                )
            )
