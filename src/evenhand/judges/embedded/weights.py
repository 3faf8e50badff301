"""Weights on disk: where they lie and what their bytes hash to.

A hash of a gigabyte is taken once and remembered beside the cache by the file's size and time of
change; a file that changed is hashed again. Nothing here reaches the network.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

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
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def remembered_sha256(path: Path, notify: Notify = lambda message: None) -> str:
    """The SHA-256 of a file, from its stamp while size and time of change are the same. `notify`
    is told when the file has to be read, which takes seconds."""
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
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _read(stamp: Path) -> dict[str, Any]:
    try:
        value: Any = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
