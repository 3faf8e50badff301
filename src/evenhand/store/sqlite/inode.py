"""The file of a store as the system knows it, whatever name leads to it.

Runs are claimed by locks on the store's own file, far behind its last byte, so that a link, another
spelling of the path or another mount of the folder leads to the same locks, and nothing beside the
store holds them. The system lets go of them however a process ends. The length of a lock is the
process id of its holder and one, so that whoever is refused can say by whom.

SQLite's locks on the file belong to the process, and the system drops all of them as soon as the
process closes any descriptor of the file. So there is one descriptor per process and file, which is
closed after SQLite's last connection and never before.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

_LOCKS = 2**62
"""Where locks begin: SQLite's own and all data lie before it."""
_RUN_BITS, _PROCESS_BITS = 36, 23
"""Runs that are told apart, and the room that each has for a process id."""
_TRY = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_LOOK = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)
_BUSY = (errno.EAGAIN, errno.EACCES)
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


class Identity(NamedTuple):
    """By which a file is told from all others."""

    device: int
    inode: int


def identity_of(path: Path) -> Identity | None:
    """The file that a path leads to; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Identity(status.st_dev, status.st_ino)


class Inode:
    """The file of a store, open for as long as a connection of this process is."""

    def __init__(self, descriptor: int, *, is_writable: bool) -> None:
        self.descriptor, self.is_writable = descriptor, is_writable
        status = os.fstat(descriptor)
        self.identity = Identity(status.st_dev, status.st_ino)
        self.users = 0
        self.spare: list[int] = []
        """Further descriptors of the file, which cannot be closed before the first."""
        self._guard = threading.Lock()
        self._claims: set[str] = set()

    def head(self, size: int) -> bytes:
        """The first bytes of the file."""
        return os.pread(self.descriptor, size, 0)

    @property
    def names(self) -> int:
        """How many names the file has; none after it was removed."""
        return os.fstat(self.descriptor).st_nlink

    def is_at(self, path: Path) -> bool:
        """Whether a path leads to the file."""
        return identity_of(path) == self.identity

    def whereabouts(self) -> Path | None:
        """Where the file is now, if the system says so."""
        try:
            path = Path(f"/proc/self/fd/{self.descriptor}").readlink()
        except OSError:
            return None
        return path if self.is_at(path) else None

    def claim(self, run: str) -> bool:
        """Hold a run for whoever asks; False if it is held, by this process or by another."""
        with self._guard:
            if run in self._claims:
                return False
            try:
                fcntl.fcntl(self.descriptor, _TRY, _lock(fcntl.F_WRLCK, run, os.getpid() + 1))
            except OSError as error:
                if error.errno in _BUSY:
                    return False
                raise
            self._claims.add(run)
            return True

    def release(self, run: str) -> None:
        """Let go of a run."""
        with self._guard:
            self._claims.discard(run)
            with suppress(OSError):  # it ends with the process at the latest
                fcntl.fcntl(self.descriptor, _TRY, _lock(fcntl.F_UNLCK, run, os.getpid() + 1))

    def holder(self, run: str) -> int | None:
        """Return the process that holds a run; None if nobody does, or the system does not tell.
        Nothing is tried: somebody about to claim it is not refused for that."""
        with self._guard:
            if run in self._claims:
                return os.getpid()
        try:
            answer = fcntl.fcntl(self.descriptor, _LOOK, _lock(fcntl.F_WRLCK, run, 1))
        except OSError:
            return None
        kind, length = _read_lock(answer)
        return None if kind == fcntl.F_UNLCK else length - 1


_LINUX = sys.platform == "linux"
_FORM = "hhqqi4x" if _LINUX else "qqihh4x"
"""How the system writes a lock: kind, origin, start, length, process; elsewhere start first."""


def _lock(kind: int, run: str, length: int) -> bytes:
    number = int.from_bytes(blake2b(run.encode(), digest_size=8).digest()) % 2**_RUN_BITS
    start = _LOCKS + (number << _PROCESS_BITS)
    if _LINUX:
        return struct.pack(_FORM, kind, os.SEEK_SET, start, length, 0)
    return struct.pack(_FORM, start, length, 0, kind, os.SEEK_SET)


def _read_lock(answer: bytes) -> tuple[int, int]:
    """Kind and length of a lock."""
    fields = struct.unpack(_FORM, answer)
    return (fields[0], fields[3]) if _LINUX else (fields[3], fields[1])


# What SQLite's locks rest on is the process's, and so is this.
_guard = threading.Lock()
_inodes: dict[Identity, Inode] = {}


def use(path: Path) -> Inode:
    """The file at a path, to be let go of by `leave`; raises OSError."""
    with _guard:
        identity = identity_of(path)
        inode = _inodes.get(identity) if identity else None
        if inode is None:
            inode = _add(*_open(path))
        inode.users += 1
        return inode


def leave(inode: Inode) -> None:
    """Let go of a file; the last to do so closes it."""
    with _guard:
        inode.users -= 1
        if inode.users == 0:
            del _inodes[inode.identity]
            for descriptor in (inode.descriptor, *inode.spare):
                os.close(descriptor)


def create(path: Path) -> None:
    """Make an empty file that its owner alone may read, unless there is a file; raises OSError."""
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
    except FileExistsError:
        return


def _open(path: Path) -> tuple[int, bool]:
    flags = os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return os.open(path, os.O_RDWR | flags), True
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
        return os.open(path, os.O_RDONLY | flags), False


def _add(descriptor: int, is_writable: bool) -> Inode:
    inode = Inode(descriptor, is_writable=is_writable)
    known = _inodes.setdefault(inode.identity, inode)
    if known is not inode:  # the path was led to it just now
        known.spare.append(descriptor)
    return known
