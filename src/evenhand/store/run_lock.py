"""The lock by which one process at a time judges a run."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class RunLock:
    """A lock on a file that holds the id of the process, and is removed when it is released."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def take(self) -> bool:
        """Lock the file, without waiting; return False if another holds it. Raises OSError."""
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not self._is_at(descriptor):
                    os.close(descriptor)  # whoever held it has just removed it
                    continue
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
            return True

    def _is_at(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        with suppress(OSError):
            if self._is_at(self._descriptor):
                self.path.unlink()
        os.close(self._descriptor)

    def holder(self) -> str | None:
        """Return the process that holds the lock; None if nobody does, or it is not told."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"pid {os.pread(descriptor, 20, 0).decode('ascii', 'replace').strip()}"
        except OSError:
            return None
        else:
            return None
        finally:
            os.close(descriptor)
