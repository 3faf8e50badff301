"""The files that a command may write over: nothing, or an earlier output of its own.

A report or an export that takes the place of the store, the suite or the data would destroy what
was paid for. Whether a file is an output is seen from what it holds, not from its name.
"""

from __future__ import annotations

from pathlib import Path

from evenhand.data.files import ending_of
from evenhand.data.read import rows
from evenhand.errors import DataError, NoRows, UsageError
from evenhand.words import Sentence

HEAD_BYTES = 1 << 16
_REPORT = b'<meta name="generator" content="Evenhand">'
_GATE = b'<testsuite name="evenhand gate'
_TABLE = b"pair_id | winner | "
_ROWS = (
    {"unit", "judge", "repeat", "status"},
    {"scores", "failure_tags", "notes"},
    {"meta", "criteria", "score", "pass", "notes"},
    {"pair_id", "winner", "settled"},
    {"task_name", "total_score", "critical_fail", "reasoning"},
    {"question", "model", "repeat", "finish"},
)
"""The columns that tell the rows of exports from all others, with what stands behind a dot left
out."""


def check_output(path: Path, *, force: bool = False) -> None:
    """Refuse to write over a file that is no output of ours, unless forced; raises UsageError."""
    if force or not path.is_file() or not path.stat().st_size or is_output(path):
        return
    raise UsageError(Sentence("files.not_an_output", path=path))


def is_output(path: Path) -> bool:
    """Return True if a file is a report, the outcome of a gate, or an export."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(Sentence("data.unreadable", path=path, reason=reason)) from None
    if _REPORT in head or _GATE in head or (ending_of(path) == ".txt" and head.startswith(_TABLE)):
        return True
    try:
        first = rows(path)[0]
    except NoRows:
        # An export of nothing; a table with a header, or with another sheet, is somebody's.
        return path.name.removesuffix(".gz").endswith((".json", ".parquet"))
    except (DataError, UsageError):
        return False
    names = {name.partition(".")[0] for name in first.value}
    return any(signature <= names for signature in _ROWS)
