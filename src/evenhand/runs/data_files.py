"""The data files of a suite: the units in them, and whether they are those of an earlier start.

Units follow from the bytes of the files, how columns are read, and the judging. Where all of that
is what an earlier start of the same judging noted, its run has these units, and the files need not
be read through again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b, file_digest
from importlib.metadata import version
from io import BufferedReader
from pathlib import Path
from typing import cast

import msgspec

from evenhand.data.tables import Source, Tables
from evenhand.errors import UsageError
from evenhand.files.rubrics import TableUnits
from evenhand.folders import open_plain
from evenhand.kinds import KINDS
from evenhand.kinds.kind import ReadyKind
from evenhand.kinds.protocol import Protocol
from evenhand.manifest import DataRecord
from evenhand.store.ports import IncomingUnit
from evenhand.suite import Suite

READING = 5
"""How rows become units: a change of that changes this number, and all files are read again."""


class DataFiles:
    """Files to be read for one suite."""

    def __init__(
        self,
        suite: Suite,
        sources: Sequence[Source],
        protocol: Protocol,
        notify: Callable[[str], None],
    ) -> None:
        self._suite, self._sources, self._protocol = suite, sources, protocol
        self._notify, self._remarks = notify, list[str]()
        self._units = self._open()

    def _open(self) -> TableUnits:
        suite, protocol = self._suite, self._protocol
        sources = [replace(source) for source in self._sources]  # each keeps the rows it has read
        form = KINDS[protocol.kind].table_form
        tables = Tables(sources, suite.file.columns, form, self._tell, use=suite.file.use)
        language = suite.file.language
        return TableUnits(tables, protocol, suite.folder, language, notice=self._notify)

    def units(self, judging: ReadyKind) -> Iterator[IncomingUnit]:
        """Yield the units of the files, checked; raise DataError with file:line."""
        return self._units.read(judging)

    def _tell(self, remark: str) -> None:
        if remark not in self._remarks:
            self._remarks.append(remark)
            self._notify(remark)

    def fingerprint(self) -> str:
        """Return a hash of the files and of how they are read; empty where nothing can stand for
        them: rows in memory, a file that cannot be opened."""
        hashed = blake2b(digest_size=16, person=b"evenhand-data-1")
        columns = dict(self._suite.file.columns)
        hashed.update(_encode((READING, version("evenhand"), columns)))
        try:
            for source in self._sources:
                if source.memory is not None:
                    return ""
                form = (str(source.path), source.constants, source.encoding, source.sheet)
                hashed.update(_encode(form) + _hash_file(source.path, source.root))
                if source.join is not None:
                    hashed.update(_hash_file(source.join.path, None))
        except (OSError, UsageError, TypeError):
            return ""
        return hashed.hexdigest()

    def record(self, fingerprint: str) -> DataRecord | None:
        """Return the record of the files for a start that has read them; None where they changed
        meanwhile, nothing can stand for them, or rows name files of their own."""
        if not fingerprint or self._units.has_more_files or self.fingerprint() != fingerprint:
            return None
        return DataRecord(fingerprint=fingerprint, remarks=tuple(self._remarks))

    def release(self) -> None:
        """Drop the rows that were read; whoever asks for units again reads the files again."""
        self._units = self._open()

    def recall(self, record: DataRecord) -> None:
        """Tell what was told when the files were read."""
        for remark in record.remarks:
            self._tell(remark)


def _hash_file(path: Path, root: Path | None) -> bytes:
    with open_plain(path, root) as file:
        return file_digest(cast("BufferedReader", file), "blake2b").digest()


_encode = msgspec.json.encode
"""Not with sorted keys: the order of columns and constants is that of `meta` in a unit."""
