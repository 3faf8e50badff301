"""Is all well with a store: the file itself, and what its rows promise each other."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from evenhand import jsontext
from evenhand.ledger.keys import CALL_TAG, digest


def faults(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong, in words, most basic first."""
    for (line,) in connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"the file is damaged: {line}"
    yield from _altered_replies(connection)
    yield from _lost_calls(connection)
    yield from _count(
        connection,
        "SELECT COUNT(*) FROM units u LEFT JOIN runs r ON r.id=u.run WHERE r.id IS NULL",
        "units belong to no run",
    )
    yield from _count(
        connection,
        "SELECT COUNT(*) FROM judgments j LEFT JOIN units u ON u.no=j.unit WHERE u.no IS NULL",
        "judgments belong to no unit",
    )
    yield from _count(
        connection,
        "SELECT COUNT(*) FROM judgments WHERE (status='failure') <> (reason IS NOT NULL)",
        "judgments are neither a verdict nor a failure with a reason",
    )


def _altered_replies(connection: sqlite3.Connection) -> Iterator[str]:
    for key, reply, kept in connection.execute("SELECT key, reply, digest FROM calls"):
        if not key.startswith(CALL_TAG):
            yield f"call {key} has a key of an unknown form"
        if digest(reply) != kept:
            yield f"the reply of call {key} was altered"


def _lost_calls(connection: sqlite3.Connection) -> Iterator[str]:
    """Judgments whose replies are not in the ledger."""
    asked = "SELECT u.run, u.id, j.body FROM judgments j JOIN units u ON u.no=j.unit"
    for run, unit, body in connection.execute(asked):
        for key in jsontext.parse(body)["calls"]:
            if not connection.execute("SELECT 1 FROM calls WHERE key=?", (key,)).fetchone():
                yield f"run {run}, unit {unit}: call {key} is missing"


def _count(connection: sqlite3.Connection, sql: str, what: str) -> Iterator[str]:
    (number,) = connection.execute(sql).fetchone()
    if number:
        yield f"{number} {what}"
