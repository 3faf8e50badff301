"""A judge that is down: nobody there from the beginning, or many calls in a row without an answer.
The run is then stopped, and what was not answered stays pending."""

from __future__ import annotations

from evenhand.engine.stop import Stop
from evenhand.engine.tally import Tally
from evenhand.errors import CallError, CallLost, StoppedEarly
from evenhand.limits import LOST_IN_A_ROW


class Breaker:
    """Counts the calls that one judge did not answer since it last did."""

    def __init__(self, stop: Stop, tally: Tally, judge: str) -> None:
        self._stop, self._tally, self._judge = stop, tally, judge
        self._lost_in_a_row, self._has_answered = 0, False

    def answered(self) -> None:
        """The judge is there, whatever it said."""
        self._lost_in_a_row, self._has_answered = 0, True
        self._tally.silent.pop(self._judge, None)

    def lost(self, loss: CallError) -> None:
        """One call is lost for good; throws the switch when it is one too many."""
        self._lost_in_a_row += 1
        if isinstance(loss, CallLost) and not self._has_answered:
            self._tally.silent[self._judge] = str(loss)
        if self._lost_in_a_row >= LOST_IN_A_ROW:
            self._stop.throw(
                StoppedEarly(
                    f"the judge seems to be down: {self._lost_in_a_row} calls in a row gave no"
                    f" answer (the last: {loss})",
                    advice="Mend that, or wait, and run the same command again: it continues where"
                    " it stopped.",
                )
            )

    def absent(self, loss: CallLost) -> None:
        """Nobody was there to connect to; throws the switch, unless the judge has answered before:
        it may be starting anew, and is given more time."""
        if self._has_answered:
            return
        self._stop.throw(
            StoppedEarly(
                f"the judge {self._judge} is not there: {loss}",
                advice="Start it or mend its address (base_url), and run the same command again: it"
                " continues where it stopped.",
            )
        )
