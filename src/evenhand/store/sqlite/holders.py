"""Who keeps a store locked, where the system says so."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_LOCK = re.compile(r"\bWRITE +([0-9]+) +([0-9a-f]+):([0-9a-f]+):([0-9]+) ")


def holders(place: Path) -> list[str]:
    """The other processes that hold a store's file or its log for writing, each with its name;
    none where the system does not tell."""
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return []
    files = set(_files(place))
    processes = {
        int(pid)
        for pid, major, minor, inode in _LOCK.findall(locks)
        if (int(major, 16), int(minor, 16), int(inode)) in files
    }
    return [f"pid {pid}{_name(pid)}" for pid in sorted(processes - {os.getpid(), 0})]


def _files(place: Path) -> Iterator[tuple[int, int, int]]:
    for end in ("", "-shm"):
        try:
            status = Path(f"{place}{end}").stat()
        except OSError:
            continue
        yield os.major(status.st_dev), os.minor(status.st_dev), status.st_ino


def _name(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return f", {name}"
