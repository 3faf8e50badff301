"""Two small files beside a store, for what its own file cannot tell or take.

`-tally` is how many calls were recorded. What was recorded last lies in the write-ahead log, and a
log that is lost would take it along in silence; the tally says that something is missing. It is
there only while there is something in the log alone.

`-unrecorded` holds replies that could not be written: they are paid for, and the next to open the
store takes them in. A line of it that is no such reply goes to `-unrecorded.bad`, where it hinders
nobody. A file by one of these names that is not ours is left as it is.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder, encode

from evenhand.errors import StoreError
from evenhand.limits import BUSY_LOOK_SECONDS, BUSY_MILLISECONDS
from evenhand.store.codec import CallRow, is_altered

LOCAL_DISK = (
    "Wait until nobody else uses it, then run the same command again. If nobody does, the file"
    " system does not keep locks: put the store on a disk of this machine, --store sqlite:FILE"
)
_TALLY = re.compile(rb"evenhand: ([0-9]{20}) calls\n")
_TALLY_BYTES = 37
_PLAIN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_UNRECORDED = b"evenhand: unrecorded replies\n"


class LockRefusedError(OSError):
    """A file cannot be locked: the system refuses, or somebody never lets go of it."""


class Tally:
    """The tally of a store, for whoever records calls."""

    def __init__(self, place: Path) -> None:
        self._path = Path(f"{place}-tally")
        self._descriptor: int | None = None

    def note(self, calls: int) -> None:
        """Note that so many calls are durable. What cannot be noted is not: the tally is a help,
        and no reason to stop a run."""
        if not calls:
            return
        with suppress(OSError):
            if self._descriptor is None or not os.fstat(self._descriptor).st_nlink:
                self.close()
                self._descriptor = _own(self._path, _TALLY, _TALLY_BYTES)
            if self._descriptor is not None and _number(self._descriptor) < calls:
                os.pwrite(self._descriptor, b"evenhand: %020d calls\n" % calls, 0)

    def drop(self) -> None:
        """Remove the tally: all that it counts is in the store's own file."""
        with suppress(OSError):
            if tallied_calls(self._path):
                self._path.unlink()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def path(self) -> Path:
        return self._path

    def read(self) -> int:
        """How many calls were noted; 0 where there is no tally."""
        return tallied_calls(self._path)


def tallied_calls(path: Path) -> int:
    """How many calls a tally counts; 0 where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _PLAIN)
    except OSError:
        return 0
    try:
        return _number(descriptor)
    except OSError:
        return 0
    finally:
        os.close(descriptor)


def _number(descriptor: int) -> int:
    text = _TALLY.fullmatch(os.pread(descriptor, _TALLY_BYTES + 1, 0))
    return int(text[1]) if text else 0


def _own(path: Path, form: re.Pattern[bytes], size: int) -> int | None:
    """A file to write to, which is made where there is none; None where it is not ours."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o600)
    head = b""
    is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
    if is_plain:
        head = os.pread(descriptor, size, 0)
    if is_plain and (not head or form.fullmatch(head)):
        return descriptor
    os.close(descriptor)
    return None


class _WaitingCall(Struct, array_like=True, tag="call", forbid_unknown_fields=True):
    """A reply that waits."""

    row: CallRow


class _WaitingRelease(Struct, array_like=True, tag="release", forbid_unknown_fields=True):
    """The key and the attempt of a reservation that is no longer needed."""

    row: tuple[str, str]


_line = Decoder(_WaitingCall | _WaitingRelease)
WaitingRow = tuple[str, tuple[Any, ...]]
"""The name of a statement, and its row."""


class Unrecorded:
    """Replies that wait beside a store."""

    def __init__(self, place: Path) -> None:
        self.path = Path(f"{place}-unrecorded")

    def keep(self, rows: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """Keep rows, each with the name of its statement, and bring them to the disk; raises
        OSError."""
        data = b"".join(encode((name, tuple(row))) + b"\n" for name, row in rows)
        with self._locked(os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
            size = os.fstat(descriptor).st_size
            # A crash may have cut the last line short: what follows is not to be lost with it.
            is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            start = b"\n" if is_cut else b"" if size else _UNRECORDED
            _write_all(descriptor, start + data)
            os.fsync(descriptor)
            if not size:
                sync_folder(self.path)

    @contextmanager
    def waiting(self) -> Iterator[list[WaitingRow]]:
        """The rows that wait; they are dropped when they have been taken in without an error."""
        with ExitStack() as stack:
            try:
                descriptor = stack.enter_context(self._locked(os.O_RDWR))
                size = os.fstat(descriptor).st_size
                lines = os.pread(descriptor, size, 0).split(b"\n")[1:]
            except LockRefusedError as error:
                raise StoreError(
                    f"replies that wait there cannot be taken in: {error}",
                    where=str(self.path),
                    advice=LOCAL_DISK,
                ) from None
            except OSError:
                lines = []  # there is none, or none of ours
            rows, bad = _sorted(filter(None, lines))
            yield rows
            if lines and self._set_aside(bad):
                self.path.unlink(missing_ok=True)

    def _set_aside(self, bad: Sequence[bytes]) -> bool:
        """Put lines that are no replies of ours out of the way, and say so; whether they are."""
        if not bad:
            return True
        aside, number = Path(f"{self.path}.bad"), f"{len(bad)} line{'s' * (len(bad) > 1)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _PLAIN
        try:
            descriptor = os.open(aside, flags, 0o600)
            try:
                _write_all(descriptor, b"".join(line + b"\n" for line in bad))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            sync_folder(aside)
        except OSError as error:
            sys.stderr.write(
                f"{number} of {self.path.name} cannot be taken in, and {aside.name} cannot be"
                f" written: {error.strerror}\n"
            )
            return False
        sys.stderr.write(
            f"{number} of {self.path.name} cannot be taken in, and lie now in {aside.name}\n"
        )
        return True

    @contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        """The file, held against others who write or take in; raises OSError."""
        while True:
            descriptor = os.open(self.path, flags | _PLAIN, 0o600)
            try:
                _lock(descriptor)
                if not os.fstat(descriptor).st_nlink:
                    continue  # whoever held it has just taken it in
                _require_own(descriptor)
                yield descriptor
                return
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock a file, waiting for whoever holds it, but not for ever; raises LockRefusedError."""
    patience = monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() >= patience:
                raise LockRefusedError("another process keeps the file locked") from None
        except OSError as error:
            raise LockRefusedError(f"the file system refuses a lock ({error.strerror})") from None
        sleep(BUSY_LOOK_SECONDS)


def _require_own(descriptor: int) -> None:
    """Refuse a file of somebody else's; raises OSError."""
    is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
    head = os.pread(descriptor, len(_UNRECORDED), 0) if is_plain else b"?"
    if head not in (b"", _UNRECORDED):
        raise OSError("another program's file is in the way")


def _sorted(lines: Iterable[bytes]) -> tuple[list[WaitingRow], list[bytes]]:
    """The rows that lines hold, and the lines that hold none: cut short, or altered."""
    rows: list[WaitingRow] = []
    bad: list[bytes] = []
    for line in lines:
        try:
            write = _line.decode(line)
        except ValueError:
            bad.append(line)
            continue
        if isinstance(write, _WaitingRelease):
            rows.append(("release", write.row))
        elif is_altered(write.row[:-2], write.row.digest, write.row.at):
            bad.append(line)
        else:
            rows.append(("call", write.row))
    return rows, bad


def sync_folder(path: Path) -> None:
    """Bring the name of a new file to the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all or, on any error, nothing."""
    end = os.fstat(descriptor).st_size
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.ftruncate(descriptor, end)
        raise
