"""The units of tables, held to what their kind takes: what a run reads, and what whoever writes a
suite or checks replies reads beforehand, so that no two of them refuse different rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from evenhand.data.tables import Tables
from evenhand.files.rubrics import with_rubric_text
from evenhand.kinds.kind import ReadyKind
from evenhand.kinds.protocol import Protocol
from evenhand.kinds.rows import RowError
from evenhand.limits import ROWS_A_NOTICE
from evenhand.store.ports import IncomingUnit


class TableUnits:
    """Tables to be read as the units of one protocol. The rubric of a row may be a file in the
    folder, or else beside its table; of a table that is to be copied, in the folder `copied_to`.
    `notice` hears how far a long reading is."""

    def __init__(
        self,
        tables: Tables,
        protocol: Protocol,
        folder: Path | None = None,
        language: str = "en",
        *,
        copied_to: Path | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        self._tables, self._protocol, self._copied_to = tables, protocol, copied_to
        self._folder, self._language, self._notice = folder, language, notice
        self.rows = 0
        """The number of rows read so far."""
        self.has_more_files = False
        """True if rows name files of their own."""

    def read(self, judging: ReadyKind) -> Iterator[IncomingUnit]:
        """The units, each with the place of its row; raises DataError with file:line."""
        self.rows = 0
        for path, row in self._tables.rows:
            self.rows += 1
            if self._notice and self.rows % ROWS_A_NOTICE == 0:
                self._notice(f"{self.rows:,} rows read")
            data = self._copied_to / path.name if self._copied_to else path
            value = with_rubric_text(row, data, self._protocol, self._folder, self._language)
            self.has_more_files |= value is not row.value
            try:
                texts = judging.read(value)
            except RowError as error:
                raise self._tables.row_error(error, row.where) from None
            for unit in texts:
                yield IncomingUnit(unit.id, row.where, unit.body, description=unit.description)
