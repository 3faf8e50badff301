"""Money that is held open, from one store into another.

An attempt that a source holds money for is known in the target by its name and the source's mark:
what the source has let go since is let go there too by a later copy, and what the target itself or
another source holds stays. In doubt money stays held: too much is counted rather than too little.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from evenhand.store.sql.session import Session

_HELD = "SELECT key, attempt, run, amount FROM reservations"
_KEEP = "INSERT INTO reservations VALUES (?,?,?,?) ON CONFLICT (key, attempt) DO NOTHING"
_DROP = "DELETE FROM reservations WHERE key=? AND attempt=?"
_CALLS = "SELECT run, COUNT(*) FROM calls GROUP BY run"
_SIGN = "@"


class _Reservation(NamedTuple):
    key: str
    attempt: str
    run: str
    amount: int

    @property
    def place(self) -> tuple[str, str]:
        """By which it is known in every store: key and attempt, without a mark."""
        return self.key, self.attempt.partition(_SIGN)[0]


def copy_reservations(source: Session, target: Session, mark: str) -> None:
    """Copy after all calls; `mark` is the source's."""
    batches = {name for (name,) in source.rows("SELECT name FROM batches")}
    rows = [_Reservation(*row) for row in source.rows(_HELD)]
    places = {row.place for row in rows}
    with target.transaction():
        there = [_Reservation(*row) for row in target.rows(_HELD)]
        whole = _whole_runs(source, target)
        released = [
            row
            for row in there
            if row.place not in places
            and (
                row.attempt in batches or (row.attempt.endswith(_SIGN + mark) and row.run in whole)
            )
        ]
        target.write(_DROP, [(row.key, row.attempt) for row in released])
        there_places = {row.place for row in there}
        fresh = (row for row in rows if row.place not in there_places)
        target.write(_KEEP, list(_marked(fresh, batches, mark)))


def _whole_runs(source: Session, target: Session) -> set[str]:
    """The runs of which the source has all calls that the target has: not those that the target
    judged further, nor those of a source that was put back to an earlier state."""
    numbers = dict(target.rows(_CALLS))
    return {run for run, number in source.rows(_CALLS) if number >= numbers.get(run, 0)}


def _marked(rows: Iterable[_Reservation], batches: set[str], mark: str) -> Iterable[_Reservation]:
    """What is held for a batch is known by the batch, and what was copied before by its mark."""
    for row in rows:
        if row.attempt in batches or _SIGN in row.attempt:
            yield row
        else:
            yield row._replace(attempt=f"{row.attempt}{_SIGN}{mark}")
