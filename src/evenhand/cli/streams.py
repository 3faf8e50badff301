"""Robust stdout and stderr: whatever becomes of them, a command goes on to its end and leaves with
an exit code of its own.

A stream that is closed at the start leads nowhere. A reader that goes away is told no more; other
faults of stdout (a full disk) are remembered, and said at the end. What the locale's encoding does
not have is written as an escape; a locale that knows ASCII alone is taken for UTF-8.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, TextIO

_GONE = (BrokenPipeError, ConnectionError)


class _Lasting(io.FileIO):
    """A descriptor that takes whatever is written, and keeps the first fault."""

    fault: OSError | None = None

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        if self.fault is not None:
            return size
        try:
            while (written := super().write(data)) is None:  # it does not block, and is full
                select.select([], [self], [])
        except OSError as error:
            self.fault = error
            return size
        return written


def lasting_streams() -> None:
    """Replace the process's own stdout and stderr; those that somebody else has put there stay. A
    stdin that is closed is empty."""
    _fill_descriptors()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  for the process
    if sys.stdout is sys.__stdout__:
        sys.stdout = _lasting(sys.stdout, 1)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _lasting(sys.stderr, 2)


def lost_output() -> OSError | None:
    """Return what kept stdout from being written to its end, other than a reader who had enough."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    fault = raw.fault if isinstance(raw, _Lasting) else None
    return None if isinstance(fault, _GONE) else fault


def is_utf8(stream: TextIO) -> bool:
    """Return True if a stream can hold every text."""
    return (stream.encoding or "utf-8").lower().replace("-", "").startswith("utf")


def _fill_descriptors() -> None:
    """Open what is closed of stdin, stdout and stderr: a store would be opened in its place, and
    written over by what is printed."""
    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:
        number = os.dup(number)
    os.close(number)


def _lasting(stream: TextIO | None, number: int) -> TextIO:
    encoding = stream.encoding if stream is not None else "utf-8"
    if stream is not None:
        stream.flush()
    raw = _Lasting(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if _is_ascii(encoding) else encoding,
        errors="backslashreplace",
        line_buffering=number == 2 or raw.isatty(),
    )


def _is_ascii(encoding: str) -> bool:
    try:
        "é".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        # One that has other letters is somebody's choice.
        return encoding.lower().replace("-", "_") in ("ascii", "us_ascii", "ansi_x3.4_1968", "646")
    return False
