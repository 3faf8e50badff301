"""Runs that a process holds: advisory locks of the server, which end with the session that took
them, however it ends."""

from __future__ import annotations

from hashlib import blake2b

HOLD = "SELECT pg_try_advisory_lock($1)"
LET_GO = "SELECT pg_advisory_unlock($1)"
HOLDER = (
    "SELECT a.application_name FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid=l.pid"
    " WHERE l.locktype='advisory' AND l.granted AND l.objsubid=1"
    " AND l.database=(SELECT oid FROM pg_database WHERE datname=current_database())"
    " AND l.classid::bigint=:high AND l.objid::bigint=:low"
)
"""Who holds the lock whose number is in these two halves."""


def lock_number(schema: str, name: str) -> int:
    """The number of the lock of a run, or of a step that one process at a time may take."""
    text = f"{schema}/{name}".encode()
    return int.from_bytes(
        blake2b(text, digest_size=8, person=b"evenhand-lock").digest(), signed=True
    )


def halves(number: int) -> dict[str, int]:
    """A lock's number as the server lists it."""
    return {"high": (number >> 32) & 0xFFFFFFFF, "low": number & 0xFFFFFFFF}
