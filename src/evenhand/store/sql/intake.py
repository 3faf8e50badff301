"""Units on their way into the store, and judgments that were made of them elsewhere.

Units wait in a table of the session's own and judgments in a file, so that nobody waits for a slow
reader; then they join the run in one transaction, all of them or none. A unit that the store holds
already waits without its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from evenhand.limits import BATCH_ROWS
from evenhand.store.codec import JUDGMENT_COLUMNS
from evenhand.store.keys import content_of, row_digest, unit_digest
from evenhand.store.packedfile import PackedFile
from evenhand.store.ports import IncomingUnit
from evenhand.store.repeated_ids import repeated_ids
from evenhand.store.sql.session import Session, bindings, bound

_CLEAR = "DROP TABLE IF EXISTS incoming"
_OPEN = (
    "CREATE TEMP TABLE incoming"
    " (position INTEGER PRIMARY KEY, id TEXT, origin TEXT, digest BLOB, body TEXT)"
)
_TAKE_IN = "INSERT INTO incoming VALUES (?,?,?,?,?)"
_TWICE = "SELECT id FROM incoming GROUP BY id HAVING COUNT(*) > 1"
_PLACES = f"SELECT id, origin FROM incoming WHERE id IN ({_TWICE}) ORDER BY position"
_KEEP = (
    "INSERT INTO units (digest, id, body)"
    " SELECT digest, id, body FROM incoming WHERE body IS NOT NULL ORDER BY position"
    " ON CONFLICT (digest) DO NOTHING"
)
_JOIN = (
    "INSERT INTO run_units SELECT r.no, i.position, u.no FROM incoming i"
    " CROSS JOIN units u ON u.digest=i.digest CROSS JOIN runs r ON r.no=:run ORDER BY i.position"
)
_PLACED = "SELECT position, unit FROM run_units WHERE run=:run ORDER BY position"
_IN_ITS_PLACE = (
    " ON CONFLICT (judging, unit, judge, repeat) DO UPDATE SET status=excluded.status,"
    " reason=excluded.reason, calls=excluded.calls, reasks=excluded.reasks, body=excluded.body,"
    " digest=excluded.digest"
)
_INSERT = f"INSERT INTO judgments ({JUDGMENT_COLUMNS}, digest) VALUES"
SETTLE = f"{_INSERT} (?,?,?,?,?,?,?,?,?,?){_IN_ITS_PLACE}"
"""Keep a judgment, in the place of the one before."""
_SETTLE_VERDICT = f"{_INSERT} (?,?,?,?,'verdict',NULL,0,0,?,?){_IN_ITS_PLACE}"
"""The same for a verdict without calls: what all of them hold need not be handed over each time."""


class WaitingUnits:
    """The units and judgments that wait in one session."""

    def __init__(self, session: Session) -> None:
        self._session, self._units = session, 0
        self._judgments = PackedFile()
        self.content = ""
        """The hash of all units, once they are counted up."""
        self.clear()
        session.rows(_OPEN)
        self._has_stored = bool(session.rows("SELECT 1 FROM units LIMIT 1"))

    @property
    def size(self) -> int:
        """How many units were added."""
        return self._units

    @property
    def has_judgments(self) -> bool:
        """Whether judgments made elsewhere wait with their units."""
        return bool(self._judgments)

    def clear(self) -> None:
        """Drop what waits."""
        self._session.rows(_CLEAR)
        self._judgments.clear()

    def add(self, batch: Sequence[IncomingUnit]) -> None:
        """Have some units wait."""
        with self._session.transaction():
            self._session.write(_TAKE_IN, self._rows(batch))
        judgments = [
            (position, *judgment)
            for position, unit in enumerate(batch, start=self._units + 1)
            for judgment in unit.judgments
        ]
        if judgments:
            self._judgments.add(judgments)
        self._units += len(batch)

    def _rows(self, batch: Sequence[IncomingUnit]) -> list[tuple[Any, ...]]:
        digests = [unit_digest(unit.id, unit.body) for unit in batch]
        stored = self._stored(digests) if self._has_stored else frozenset[bytes]()
        numbered = zip(batch, digests, strict=True)
        return [
            (position, unit.id, unit.origin, digest, None if digest in stored else unit.body)
            for position, (unit, digest) in enumerate(numbered, start=self._units + 1)
        ]

    def _stored(self, digests: Sequence[bytes]) -> frozenset[bytes]:
        """Those of some units that the store holds."""
        sql = f"SELECT digest FROM units WHERE digest IN ({bound('unit', digests)})"
        rows = self._session.rows(sql, bindings("unit", digests))
        return frozenset(bytes(row[0]) for row in rows)

    def count_up(self) -> None:
        """All units are there: note the hash of them; raises DataError where ids repeat."""
        with self._session.transaction():
            if self._session.rows(f"{_TWICE} LIMIT 1"):
                raise repeated_ids(self._session.stream(_PLACES))
            digests = self._session.stream("SELECT digest FROM incoming ORDER BY digest")
            self.content = content_of(bytes(row[0]) for row in digests)

    def join(self, run: int) -> None:
        """Make these the units of a run, and what was judged of them elsewhere judgments of its
        judging, inside a transaction."""
        self._session.rows(_KEEP)
        self._session.rows(_JOIN, {"run": run})
        if self._judgments:
            self._settle(run)

    def _settle(self, run: int) -> None:
        [(judging,)] = self._session.rows("SELECT judging FROM runs WHERE no=:run", {"run": run})
        places = iter(self._session.stream(_PLACED, {"run": run}))
        position = unit = 0
        for batch in self._judgments:
            verdicts, others = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
            for place, judge, repeat, (status, reason, body) in batch:
                while position < place:
                    position, unit = next(places)
                key = (judging, unit, judge, repeat)
                digest = row_digest(*key, status, reason, 0, 0, body)
                if status == "verdict":
                    verdicts.append((*key, body, digest))
                else:
                    others.append((*key, status, reason, 0, 0, body, digest))
            self._session.write(_SETTLE_VERDICT, verdicts)
            self._session.write(SETTLE, others)


def batches(units: Iterable[IncomingUnit]) -> Iterator[list[IncomingUnit]]:
    """Units, so many at a time as are written at once."""
    source = iter(units)
    while batch := list(islice(source, BATCH_ROWS)):
        yield batch
