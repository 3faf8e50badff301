"""One process a run, by a lock on a file: the system lets go of it however the process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from evenhand.errors import StoreBusy


@contextlib.contextmanager
def only_process(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path`; raises StoreBusy naming the process that holds it."""
    handle = _lock(path)
    if handle is None:
        raise StoreBusy(
            f"{what} is being judged by another process (pid {_holder(path)})",
            where=str(path.parent),
            advice="Wait until it has ended, or stop it; then run this command again.",
        )
    try:
        os.truncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def is_held(path: Path) -> bool:
    """Whether the process that noted itself in the lock file `path` lives. The lock itself is not
    tried: somebody about to take it would be refused."""
    try:
        os.kill(int(path.read_text(encoding="utf-8")), 0)
    except (FileNotFoundError, ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _lock(path: Path) -> int | None:
    """A handle that holds the lock; None if another does."""
    while True:
        try:
            path.parent.mkdir(exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except (FileNotFoundError, FileExistsError):
            if not path.parent.parent.is_dir() or path.parent.is_file():
                raise
            continue  # whoever held a lock before has just removed the folder
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        if _still_there(handle, path):
            return handle
        os.close(handle)


def _holder(path: Path) -> str:
    """The process that holds the lock, unless it has ended meanwhile."""
    try:
        return path.read_text(encoding="utf-8") or "unknown"
    except FileNotFoundError:
        return "unknown"


def _still_there(handle: int, path: Path) -> bool:
    """Whoever held the lock before may have removed the file just now."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
