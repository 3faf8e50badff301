"""Is all well with a store: the file itself, and what its rows promise each other."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from evenhand import jsontext
from evenhand.ledger.keys import CALL_TAG, content_of, digest, run_id, unit_digest
from evenhand.manifest import read_judging

_LOST = {
    "units belong to no run": (
        "SELECT COUNT(*) FROM units u WHERE NOT EXISTS"
        " (SELECT 1 FROM run_units m WHERE m.unit=u.no)"
    ),
    "places of runs hold no unit": (
        "SELECT COUNT(*) FROM run_units m LEFT JOIN units u ON u.no=m.unit WHERE u.no IS NULL"
    ),
    "places belong to no run": (
        "SELECT COUNT(*) FROM run_units m LEFT JOIN runs r ON r.no=m.run WHERE r.no IS NULL"
    ),
    "runs belong to no judging": (
        "SELECT COUNT(*) FROM runs r LEFT JOIN judgings g ON g.no=r.judging WHERE g.no IS NULL"
    ),
    "judgments belong to no unit": (
        "SELECT COUNT(*) FROM judgments j LEFT JOIN units u ON u.no=j.unit WHERE u.no IS NULL"
    ),
    "judgments belong to no judging": (
        "SELECT COUNT(*) FROM judgments j LEFT JOIN judgings g ON g.no=j.judging WHERE g.no IS NULL"
    ),
    "judgments are neither a verdict nor a failure with a reason": (
        "SELECT COUNT(*) FROM judgments WHERE (status='failure') <> (reason IS NOT NULL)"
    ),
}
"""Rows that hang in the air, and how they are counted."""


def faults(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong, in words, most basic first."""
    for (line,) in connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"the file is damaged: {line}"
    yield from _altered_replies(connection)
    yield from _altered_contents(connection)
    yield from _altered_judgings(connection)
    yield from _altered_runs(connection)
    yield from _lost_calls(connection)
    for what, sql in _LOST.items():
        (number,) = connection.execute(sql).fetchone()
        if number:
            yield f"{number} {what}"


def _altered_replies(connection: sqlite3.Connection) -> Iterator[str]:
    for key, reply, stored in connection.execute("SELECT key, reply, digest FROM calls"):
        if not key.startswith(CALL_TAG):
            yield f"call {key} has a key of an unknown form"
        if digest(reply) != stored:
            yield f"the reply of call {key} was altered"


def _altered_contents(connection: sqlite3.Connection) -> Iterator[str]:
    """Units and texts that are not what their digests say."""
    for stored, ident, body in connection.execute("SELECT digest, id, body FROM units"):
        if unit_digest(ident, body) != stored:
            yield f"unit {ident} was altered"
    for stored, text in connection.execute("SELECT digest, text FROM texts"):
        if digest(text) != stored:
            yield f"text {stored} was altered"


def _altered_judgings(connection: sqlite3.Connection) -> Iterator[str]:
    """Judgings that are not what their ids say, or whose texts are missing."""
    texts = {stored for (stored,) in connection.execute("SELECT digest FROM texts")}
    for ident, record in connection.execute("SELECT id, record FROM judgings"):
        try:
            judging = read_judging(record)
        except ValueError as error:
            yield f"judging {ident} cannot be read: {error}"
            continue
        if judging.id != ident:
            yield f"judging {ident} was altered"
        for name, stored in judging.texts.items():
            if stored not in texts:
                yield f"judging {ident}: the text of {name} is missing"


def _altered_runs(connection: sqlite3.Connection) -> Iterator[str]:
    """Runs that are not about the units that they began with."""
    of_run = "SELECT u.digest FROM run_units m JOIN units u ON u.no=m.unit WHERE m.run=? ORDER BY 1"
    every = "SELECT r.no, r.id, r.name, g.id FROM runs r JOIN judgings g ON g.no=r.judging"
    for number, ident, name, judging in connection.execute(every).fetchall():
        content = content_of(stored for (stored,) in connection.execute(of_run, (number,)))
        if run_id(name, judging, content) != ident:
            yield f"run {ident}: its name or its units are not those that it began with"


def _lost_calls(connection: sqlite3.Connection) -> Iterator[str]:
    """Judgments whose replies are not in the ledger."""
    every = (
        "SELECT g.id, u.id, j.body FROM judgments j JOIN units u ON u.no=j.unit"
        " JOIN judgings g ON g.no=j.judging"
    )
    for judging, unit, body in connection.execute(every):
        for key in jsontext.parse(body)["calls"]:
            if not connection.execute("SELECT 1 FROM calls WHERE key=?", (key,)).fetchone():
                yield f"judging {judging}, unit {unit}: call {key} is missing"
