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
from evenhand.words import Sentence

_LOST = {
    "lost_units": (
        "SELECT COUNT(*) FROM units u WHERE NOT EXISTS"
        " (SELECT 1 FROM run_units m WHERE m.unit=u.no)"
    ),
    "empty_places": (
        "SELECT COUNT(*) FROM run_units m LEFT JOIN units u ON u.no=m.unit WHERE u.no IS NULL"
    ),
    "lost_places": (
        "SELECT COUNT(*) FROM run_units m LEFT JOIN runs r ON r.no=m.run WHERE r.no IS NULL"
    ),
    "lost_runs": (
        "SELECT COUNT(*) FROM runs r LEFT JOIN judgings g ON g.no=r.judging WHERE g.no IS NULL"
    ),
    "lost_judgments": (
        "SELECT COUNT(*) FROM judgments j LEFT JOIN units u ON u.no=j.unit WHERE u.no IS NULL"
    ),
    "lost_judgings": (
        "SELECT COUNT(*) FROM judgments j LEFT JOIN judgings g ON g.no=j.judging WHERE g.no IS NULL"
    ),
    "lost_items": (
        "SELECT COUNT(*) FROM batch_items i LEFT JOIN batches b ON b.name=i.batch"
        " WHERE b.name IS NULL"
    ),
    "waiting_items": (
        "SELECT COUNT(*) FROM batch_items i JOIN batches b ON b.name=i.batch"
        " WHERE i.state='open' AND b.stage IN ('ended', 'void')"
    ),
    "unanswered_items": (
        "SELECT COUNT(*) FROM batch_items i WHERE i.state='answered'"
        " AND NOT EXISTS (SELECT 1 FROM calls c WHERE c.key=i.key)"
    ),
    "no_status": (
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
        return [Sentence("store.damaged", reason=error.what)]
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
            yield Sentence("store.unreadable_value", reason=str(error))
    for key, sql in _LOST.items():
        [(number,)] = session.rows(sql)
        if number:
            yield Sentence(f"store.{key}", n=number)


def _altered_calls(session: Session) -> Iterator[str]:
    every = f"SELECT digest, at, {CALL_COLUMNS} FROM calls"
    for stored, at, *columns in session.stream(every):
        key = columns[0]
        if not str(key).startswith(CALL_TAG):
            yield Sentence("store.unknown_key", key=str(key))
        if is_altered(columns, stored, at):
            yield Sentence("store.altered_reply", key=str(key))


def _altered_judgments(session: Session) -> Iterator[str]:
    columns = ", ".join(f"j.{name}" for name in JUDGMENT_COLUMNS.split(", "))
    every = (
        f"SELECT u.id, g.id, j.digest, {columns} FROM judgments"
        " j LEFT JOIN units u ON u.no=j.unit LEFT JOIN judgings g ON g.no=j.judging"
    )
    for unit, judging, stored, *row in session.stream(every):
        if row_digest(*row) != stored:
            yield Sentence(
                "store.altered_judgment",
                judging=str(judging or row[0]),
                unit=str(unit or row[1]),
                judge=str(row[2]),
            )


def _altered_contents(session: Session) -> Iterator[str]:
    """Find units and texts that differ from their digests."""
    for stored, ident, body in session.stream("SELECT digest, id, body FROM units"):
        if unit_digest(ident, body) != stored:
            yield Sentence("store.altered_unit", unit=ident)
    for stored, text in session.stream("SELECT digest, text FROM texts"):
        if digest(text) != stored:
            yield Sentence("store.altered_text", text=stored)


def _altered_judgings(session: Session) -> Iterator[str]:
    """Find judgings that differ from their ids, or lack texts."""
    texts = {stored for (stored,) in session.rows("SELECT digest FROM texts")}
    for ident, record in session.stream("SELECT id, record FROM judgings"):
        try:
            judging = read_judging(record)
        except StoreError as error:
            yield Sentence("store.judging_problem", judging=ident, reason=error.what)
            continue
        if judging.id != ident:
            yield Sentence("store.altered_judging", judging=ident)
        for name, stored in judging.texts.items():
            if stored not in texts:
                yield Sentence("store.missing_text", judging=ident, name=name)


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
            yield Sentence("store.altered_run", run=ident)
        elif run_digest(session, number) != stored:
            yield Sentence("store.altered_record", run=ident)


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
            place = {"judging": judging, "unit": unit}
            if keys is None:
                yield Sentence("store.unreadable_judgment", **place)
            for key in keys or ():
                if key not in recorded:
                    yield Sentence("store.missing_call", **place, key=key)


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
