"""Check a store: its file, every row against its digest, and what rows promise each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, islice

from evenhand import jsontext
from evenhand.errors import StoreError
from evenhand.limits import PAGE_ROWS
from evenhand.manifest import read_judging
from evenhand.store.archive import Archive
from evenhand.store.intake import run_digest
from evenhand.store.rows import (
    CALL_COLUMNS,
    CALL_TAG,
    JUDGMENT_COLUMNS,
    content_of,
    digest,
    is_altered,
    row_digest,
    run_id,
    unit_digest,
)
from evenhand.store.session import Session

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
    "items belong to no batch": (
        "SELECT COUNT(*) FROM batch_items i LEFT JOIN batches b ON b.name=i.batch"
        " WHERE b.name IS NULL"
    ),
    "items wait for batches that have ended": (
        "SELECT COUNT(*) FROM batch_items i JOIN batches b ON b.name=i.batch"
        " WHERE i.state='open' AND b.stage IN ('ended', 'void')"
    ),
    "items are answered by no call": (
        "SELECT COUNT(*) FROM batch_items i WHERE i.state='answered'"
        " AND NOT EXISTS (SELECT 1 FROM calls c WHERE c.key=i.key)"
    ),
    "judgments are neither a verdict nor a failure with a reason": (
        "SELECT COUNT(*) FROM judgments WHERE (status='failure') <> (reason IS NOT NULL)"
    ),
}
"""Rows that belong to nothing, and the statements that count them."""


def verify(archive: Archive) -> list[str]:
    """Return what is wrong with a store, in words, most basic first; nothing if all is well."""
    try:
        archive.set_frozen(True)
        return list(chain(archive.session.check_file(), _problems(archive.session)))
    except StoreError as error:
        return [f"the store is damaged: {error.what}"]
    finally:
        archive.set_frozen(False)


def _problems(session: Session) -> Iterator[str]:
    for check in (
        _altered_calls,
        _altered_judgments,
        _altered_contents,
        _altered_judgings,
        _altered_runs,
        _lost_calls,
    ):
        try:
            yield from check(session)
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            # A value of another type than was ever written: nothing after it can be looked at.
            yield f"the store holds what cannot be read: {error}"
    for what, sql in _LOST.items():
        [(number,)] = session.rows(sql)
        if number:
            yield f"{number} {what}"


def _altered_calls(session: Session) -> Iterator[str]:
    every = f"SELECT digest, at, {CALL_COLUMNS} FROM calls"
    for stored, at, *columns in session.stream(every):
        key = columns[0]
        if not str(key).startswith(CALL_TAG):
            yield f"call {key} has a key of an unknown form"
        if is_altered(columns, stored, at):
            yield f"the reply of call {key} was altered"


def _altered_judgments(session: Session) -> Iterator[str]:
    columns = ", ".join(f"j.{name}" for name in JUDGMENT_COLUMNS.split(", "))
    every = (
        f"SELECT u.id, g.id, j.digest, {columns} FROM judgments"
        " j LEFT JOIN units u ON u.no=j.unit LEFT JOIN judgings g ON g.no=j.judging"
    )
    for unit, judging, stored, *row in session.stream(every):
        if row_digest(*row) != stored:
            of, judged = judging or row[0], unit or row[1]
            yield f"judging {of}, unit {judged}: the judgment by judge {row[2]} was altered"


def _altered_contents(session: Session) -> Iterator[str]:
    """Find units and texts that differ from their digests."""
    for stored, ident, body in session.stream("SELECT digest, id, body FROM units"):
        if unit_digest(ident, body) != stored:
            yield f"unit {ident} was altered"
    for stored, text in session.stream("SELECT digest, text FROM texts"):
        if digest(text) != stored:
            yield f"text {stored} was altered"


def _altered_judgings(session: Session) -> Iterator[str]:
    """Find judgings that differ from their ids, or lack texts."""
    texts = {stored for (stored,) in session.rows("SELECT digest FROM texts")}
    for ident, record in session.stream("SELECT id, record FROM judgings"):
        try:
            judging = read_judging(record)
        except StoreError as error:
            yield f"judging {ident}: {error.what}"
            continue
        if judging.id != ident:
            yield f"judging {ident} was altered"
        for name, stored in judging.texts.items():
            if stored not in texts:
                yield f"judging {ident}: the text of {name} is missing"


def _altered_runs(session: Session) -> Iterator[str]:
    """Find runs that are not about the units that they began with."""
    of_run = (
        "SELECT u.digest FROM run_units m JOIN units u ON u.no=m.unit WHERE m.run=:run ORDER BY 1"
    )
    every = (
        "SELECT r.no, r.id, r.name, r.digest, g.id FROM runs r JOIN judgings g ON g.no=r.judging"
    )
    for number, ident, name, stored, judging in session.rows(every):
        content = content_of(unit for (unit,) in session.stream(of_run, {"run": number}))
        if run_id(name, judging, content) != ident:
            yield f"run {ident}: its name or its units are not those that it began with"
        elif run_digest(session, number) != stored:
            yield f"run {ident}: what it says of itself, or the order of its units, was altered"


def _lost_calls(session: Session) -> Iterator[str]:
    """Find judgments whose replies are not recorded."""
    every = (
        "SELECT g.id, u.id, j.body FROM judgments j JOIN units u ON u.no=j.unit"
        " JOIN judgings g ON g.no=j.judging"
    )
    rows = session.stream(every)
    while batch := list(islice(rows, PAGE_ROWS)):
        rests = [(judging, unit, _calls(body)) for judging, unit, body in batch]
        recorded = _find_recorded(session, {key for *_, keys in rests for key in keys or ()})
        for judging, unit, keys in rests:
            place = f"judging {judging}, unit {unit}"
            if keys is None:
                yield f"{place}: the judgment cannot be read"
            yield from (
                f"{place}: call {key} is missing" for key in keys or () if key not in recorded
            )


def _calls(body: str) -> list[str] | None:
    """Return the keys of a judgment's calls; None if it cannot be read."""
    try:
        keys = jsontext.loads_trusted(body)["calls"]
    except (ValueError, TypeError, LookupError):
        return None
    return keys if isinstance(keys, list) and all(isinstance(key, str) for key in keys) else None


def _find_recorded(session: Session, keys: Collection[str]) -> set[str]:
    """Return those of some keys under which there is a call."""
    sql = "SELECT key FROM calls WHERE key IN (SELECT value FROM json_each(:keys))"
    return {key for (key,) in session.rows(sql, {"keys": list(keys)})}
