"""Units that several pairs of candidates stand on."""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.runs.imports.spool import Spool

_TABLES = {"pairs": ("key",)}
_SEVERAL = "SELECT count(*) > count(DISTINCT key) FROM pairs"


class Topics:
    """What the pairs of an import stand on."""

    def __init__(self) -> None:
        self._spool = Spool(_TABLES)

    def add(self, keys: Iterable[str]) -> None:
        """Take in what the next pairs stand on."""
        self._spool.write({"pairs": [(key,) for key in keys]})

    def repeat(self) -> bool:
        """Return True if several pairs stand on one unit."""
        return bool(self._spool.names(_SEVERAL)[0])

    def close(self) -> None:
        self._spool.close()
