"""What is seen to after each commit: that the store is still where its name leads, and that little
of it lies in the log alone.

A file that is removed or moved while it is open goes on to be written, and nobody would find what
was written. So a run hears of it with the next commit, and is told where everything is: a file that
was removed is written once more beside its old place, from what is still open.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from evenhand.errors import StoreError
from evenhand.limits import CHECKPOINT_SECONDS
from evenhand.store.beside import LOCAL_DISK, Tally, Unrecorded, sync_folder
from evenhand.store.sqlite.connection import (
    LOG,
    MEND,
    StoreConnection,
    StoreFile,
    is_lock_error,
)
from evenhand.store.sqlite.holders import holders
from evenhand.store.sqlite.inode import Identity, identity_of
from evenhand.store.sqlite.writer import Write

_CALLS = "SELECT coalesce(MAX(no), 0) FROM calls"


class Upkeep:
    """Sees to a store through the connection that writes, in the thread that writes."""

    def __init__(
        self, file: StoreFile, connection: StoreConnection, paid: Mapping[str, str]
    ) -> None:
        """`paid` are the statements whose rows must not be lost, each with its name."""
        self._file, self._connection, self._inode = file, connection, connection.inode
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        ends = ("-wal", "-shm") if mode == LOG else ()
        self._companions: dict[Path, Identity | None] = {
            Path(f"{file.place}{end}"): None for end in ends
        }
        self._tally, self._unrecorded, self._paid = Tally(file.place), Unrecorded(file.place), paid
        self._moved_at = monotonic()
        self._trouble: StoreError | None = None
        self._rescued: tuple[Path, int] | None = None

    def require_whole(self) -> None:
        """Refuse a store that has lost recorded replies with its log; raises StoreError."""
        if loss := lost_replies(self._file.place, self._connection):
            raise StoreError(
                loss,
                where=str(self._file.path),
                advice="Put back what was removed, if you have it. To go on without, and ask for"
                f" the missing ones again, remove the file {self._tally.path.name}.",
            )

    def refused(self, group: Sequence[Write], error: Exception) -> StoreError:
        """Keep the replies of a group that could not be written beside the store, and say what is
        wrong."""
        rows = [(self._paid[write.sql], write.row) for write in group if write.sql in self._paid]
        advice = f"{LOCAL_DISK}." if is_lock_error(error) else MEND
        if rows and not self._file.fleeting:
            try:
                self._unrecorded.keep(rows)
                advice += f" Replies that came too late are kept in {self._unrecorded.path.name}:"
                advice += " it takes them in, and pays for none of them again."
            except OSError as reason:
                advice += f" Replies that came too late could not be kept beside it: {reason}."
        by = " and ".join(holders(self._file.place)) if is_lock_error(error) else ""
        what = f"the store cannot be written: {error}{f' by {by}' if by else ''}"
        return StoreError(what, where=str(self._file.path), advice=advice)

    def after_commit(self) -> StoreError | None:
        """Why nothing more should be asked, if there is a reason; all is seen to."""
        if self._file.fleeting:
            return None
        self._tally.note(self._calls())
        if self._trouble is None:
            self._trouble = self._displacement()
        elif self._is_log_lost():
            self._move()
        if monotonic() - self._moved_at >= CHECKPOINT_SECONDS:
            self._move()
        return self._trouble

    def finish(self) -> None:
        """The last commit is made: move all of the log into the file, and save what came since a
        file was found removed."""
        if self._file.fleeting:
            return
        with suppress(sqlite3.Error, OSError):
            is_whole = self._move()
            if self._rescued and self._rescued[1] < self._calls():
                self._save(self._rescued[0])
            if is_whole or self._rescued:
                if self._tally.read() <= self._calls():
                    self._tally.drop()
                if not self._inode.is_at(self._file.place):
                    self._drop_log()
        self._tally.close()

    def _drop_log(self) -> None:
        """Remove a log that has no store any more, and is needed by none: SQLite leaves it there,
        and would play it back into whatever store takes the place."""
        for path, before in self._companions.items():
            if before is not None and identity_of(path) == before:
                path.unlink(missing_ok=True)

    def _calls(self) -> int:
        return _recorded_calls(self._connection)

    def _move(self) -> bool:
        """Move what is in the log into the file, as far as no reader needs it there; whether that
        was all. What a lost log held is moved from the log that is still open."""
        self._moved_at = monotonic()
        if not self._companions:
            return True
        busy, pages, moved = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return not busy and pages == moved

    def _displacement(self) -> StoreError | None:
        if not self._inode.is_at(self._file.place):
            return self._removed() if self._is_removed() else self._moved_away()
        return self._lost_log() if self._is_log_lost() else None

    def _is_removed(self) -> bool:
        return self._inode.names == 0

    def _is_log_lost(self) -> bool:
        """Whether the log, or the index of it that processes share, is not what it was."""
        for path, before in self._companions.items():
            identity = identity_of(path)
            if before is None:
                self._companions[path] = identity
            elif identity != before:
                return True
        return False

    def _lost_log(self) -> StoreError:
        is_safe = self._move()
        kept = "what was recorded is in the store" if is_safe else "not all of it could be saved"
        return StoreError(
            f"the log of the store was removed while the run used it; {kept}",
            where=str(self._file.path),
            advice="Run the same command again; it continues where it stopped.",
        )

    def _moved_away(self) -> StoreError:
        place = self._inode.whereabouts()
        named = f"to {place}" if place else "to another name"
        flag = f"--store sqlite:{place}" if place else "--store sqlite:FILE"
        return StoreError(
            f"the store was moved {named} while the run used it; all that was recorded is there",
            where=str(self._file.path),
            advice=f"Move it back, or name it with {flag}; then run the same command again.",
        )

    def _removed(self) -> StoreError:
        what = "the store was removed while the run used it"
        reason = ""
        for path in self._free_names():
            try:
                self._save(path)
            except (sqlite3.Error, OSError) as error:
                reason = f", and could not be saved: {error}"
                continue
            self._rescued = path, self._calls()
            return StoreError(
                f"{what}; all that it held was saved to {path}",
                where=str(self._file.path),
                advice=f"To go on with it: mv {path} {self._file.place}; then the same command.",
            )
        return StoreError(f"{what}{reason}", where=str(self._file.path))

    def _free_names(self) -> Iterator[Path]:
        """Names that are free, beside the store or, where its folder is gone, elsewhere."""
        for folder in (self._file.place.parent, Path(tempfile.gettempdir())):
            for number in range(1, 1000):
                end = f"-{number}" if number > 1 else ""
                path = folder / f"{self._file.place.name}.rescued{end}"
                if not path.exists() and not path.is_symlink():
                    yield path
                    break

    def _save(self, path: Path) -> None:
        """Write all that the store holds to a file, which is there when it is whole."""
        part = Path(f"{path}.part")
        part.unlink(missing_ok=True)
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            # As bytes: the name of a folder need not be UTF-8.
            self._connection.execute("VACUUM INTO CAST(? AS TEXT)", (os.fsencode(part),))
            descriptor = os.open(part, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            part.replace(path)
            sync_folder(path)
        finally:
            part.unlink(missing_ok=True)


def _recorded_calls(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute(_CALLS).fetchone()
    return int(number)


def lost_replies(place: Path, connection: sqlite3.Connection) -> str:
    """What a store has lost by what is noted beside it, in words; empty if nothing."""
    tallied = Tally(place).read()
    missing = tallied - _recorded_calls(connection) if tallied else 0
    if missing <= 0:
        return ""
    return (
        f"{missing} recorded replies are missing: the store holds {tallied - missing}, and"
        f" {tallied} were noted beside it. Its log (-wal) was lost after a process had been"
        " killed, or an older copy has taken its place"
    )
