"""Units that several pairs of candidates stand on: in which places their candidates are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from evenhand.runs.imports.spool import Spool

_TABLES = {"pairs": ("no INTEGER PRIMARY KEY", "key", "low", "high", "first")}
_SEVERAL = "SELECT count(*) > count(DISTINCT key) FROM pairs"
_TOPICS = """
    CREATE TABLE topics AS
    SELECT key, name, row_number() OVER (PARTITION BY key ORDER BY min(shown)) AS place
    FROM (
        SELECT key, first AS name, 2 * no AS shown FROM pairs WHERE low<>high
        UNION ALL
        SELECT key, CASE WHEN first=low THEN high ELSE low END, 2 * no + 1
        FROM pairs WHERE low<>high
    )
    GROUP BY key, name
"""
"""The candidates of each unit, numbered in the order in which they are shown first."""
_PLACES = (
    "SELECT f.place, s.place FROM pairs p"
    " LEFT JOIN topics f ON f.key=p.key AND f.name=p.first LEFT JOIN topics s ON s.key=p.key"
    " AND s.name=CASE WHEN p.first=p.low THEN p.high ELSE p.low END ORDER BY p.no"
)


class TopicPair(NamedTuple):
    """A pair of candidates: the unit that it stands on, both in one order, who is shown first."""

    key: str
    low: str
    high: str
    first: str


class Topics:
    """The pairs of an import, by what they stand on."""

    def __init__(self) -> None:
        self._spool = Spool(_TABLES)
        self._size = 0

    def add(self, pairs: Iterable[TopicPair]) -> None:
        """Take in the next pairs."""
        numbered = [(number, *pair) for number, pair in enumerate(pairs, self._size + 1)]
        self._size += len(numbered)
        self._spool.write({"pairs": numbered})

    def places(self) -> Iterator[Sequence[int | None]] | None:
        """Of each pair the places of its two candidates; None where no unit has several pairs."""
        if not self._spool.names(_SEVERAL)[0]:
            return None
        self._spool.run(_TOPICS)
        self._spool.run("CREATE INDEX topics_by_name ON topics (key, name)")
        places: Iterator[Any] = self._spool.rows(_PLACES)
        return places

    def close(self) -> None:
        self._spool.close()
