"""Weights on disk: where they lie and what their bytes hash to.

What a file is called by before it is loaded is a hash that was taken once and is remembered by the
file's size, times and place on the disk. What is loaded is hashed again, from the descriptor it is
loaded by (`Opened`), so that nothing is judged by bytes that the judge's identity does not name.
Nothing here reaches the network.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, cast

CHUNK = 1 << 22
Notify = Callable[[str], None]


def cache_home() -> Path:
    """The user's cache folder of Evenhand."""
    setting = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(setting) if Path(setting).is_absolute() else Path.home() / ".cache"
    return base / "evenhand"


def models_home() -> Path:
    """The folder of the fetched models; EVENHAND_MODELS overrides it."""
    setting = os.environ.get("EVENHAND_MODELS", "")
    return Path(setting).expanduser() if setting else cache_home() / "models"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, read to its end."""
    with path.open("rb") as file:
        return _sha256(file)


class Opened:
    """A file of weights that is open for loading, and is hashed meanwhile by a thread of its own.

    Close it when the model is no longer used, and not before it is loaded."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._state = _state_of(os.fstat(self._file.fileno()))
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._sha256 = self._pool.submit(_sha256, self._file)
        by_descriptor = Path(f"/proc/self/fd/{self._file.fileno()}")
        self.path = by_descriptor if by_descriptor.exists() else path
        """Where to load it from: on Linux this very file, whatever its name leads to by now."""

    def sha256(self) -> str:
        """What its bytes hash to, when they have all been read."""
        return self._sha256.result()

    def changed(self) -> bool:
        """Whether it was written to since it was opened, as far as the file system tells."""
        return _state_of(os.fstat(self._file.fileno())) != self._state

    def close(self) -> None:
        self._pool.shutdown()
        self._file.close()


def _sha256(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := file.read(CHUNK):
        digest.update(block)
    return digest.hexdigest()


def remembered_sha256(path: Path, notify: Notify = lambda message: None) -> str:
    """The SHA-256 of a file, from its stamp while it is the same file of the same size and times.
    `notify` is told when the file has to be read, which takes seconds."""
    stamp, state = _stamp(path), _state(path)
    record = _read(stamp)
    if record.get("state") == state and isinstance(record.get("sha256"), str):
        return str(record["sha256"])
    notify(f"checking {path.name}")
    return remember(path, sha256_of(path))


def remember(path: Path, sha256: str) -> str:
    """Stamp a file with the hash it was found to have; an unwritable cache is no error."""
    with contextlib.suppress(OSError):
        write_whole(_stamp(path), json.dumps({"state": _state(path), "sha256": sha256}))
    return sha256


def forget(path: Path) -> None:
    """Have a file hashed again the next time, after it was found to be another than its stamp."""
    with contextlib.suppress(OSError):
        _stamp(path).unlink()


def write_whole(path: Path, text: str) -> None:
    """Write a small file so that no reader ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _stamp(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    return cache_home() / "stamps" / f"{name}.json"


def _state(path: Path) -> list[int]:
    return _state_of(path.stat())


def _state_of(status: os.stat_result) -> list[int]:
    """What changes when a file does. The time of the last change of its entry (ctime) is the one
    that no program can set back."""
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _read(stamp: Path) -> dict[str, Any]:
    try:
        value: Any = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
