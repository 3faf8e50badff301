"""Runs that start: their units on the way into the store, and what is still to be judged.

Units, and judgments made of them elsewhere, wait in temporary tables of the session, so that nobody
waits for a slow reader; then they join their run in one transaction, all of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

from evenhand.errors import DataError, StoreError, quote
from evenhand.judgment import JudgmentText
from evenhand.limits import BATCH_ROWS, PAGE_ROWS
from evenhand.manifest import (
    JudgingRecord,
    Manifest,
    judging_json,
    manifest_json,
    read_manifest,
)
from evenhand.store.ports import IncomingUnit, Scope, StoredJudgment, StoredUnit
from evenhand.store.rows import (
    JUDGMENT,
    SETTLE,
    UNIT,
    content_of,
    digest,
    now,
    row_digest,
    row_judgment,
    text_row,
    unit_digest,
)
from evenhand.store.session import Session
from evenhand.words import Code, Sentence

REPEATED_IDS_SHOWN = 5
_TABLES = {
    "incoming": (
        "(position INTEGER PRIMARY KEY, id TEXT, origin TEXT, digest TEXT, body TEXT,"
        " subject TEXT, opponent TEXT, fields TEXT)"
    ),
    "incoming_judgments": (
        "(position INTEGER, judge INTEGER, repeat INTEGER, status TEXT, reason TEXT, body TEXT,"
        " observations TEXT)"
    ),
}
_TWICE = "SELECT id FROM incoming GROUP BY id HAVING COUNT(*) > 1"
_KEEP_UNITS = (
    "INSERT INTO units (digest, id, body, subject, opponent, fields)"
    " SELECT digest, id, body, subject, opponent, fields FROM incoming WHERE true"
    " ORDER BY position"
    " ON CONFLICT (digest) DO NOTHING"
)
JOIN_RUN = (
    "INSERT INTO run_units SELECT r.no, i.position, u.no FROM incoming i"
    " CROSS JOIN units u ON u.digest=i.digest CROSS JOIN runs r ON r.no=:run ORDER BY i.position"
)
_JUDGED = (
    "SELECT r.judging, m.unit, i.judge, i.repeat, i.status, i.reason, i.body, i.observations"
    " FROM incoming_judgments i CROSS JOIN runs r ON r.no=:run"
    " CROSS JOIN run_units m ON m.run=r.no AND m.position=i.position"
)
_RUN = "SELECT no, manifest FROM runs WHERE id=:run"
_JUDGING = "SELECT no FROM judgings WHERE id=:judging"
_START = (
    "INSERT INTO runs (id, name, judging, manifest, created, started, starts)"
    " VALUES (?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET"
    " manifest=excluded.manifest, started=excluded.started, starts=excluded.starts"
)
STAMP = "UPDATE runs SET digest=? WHERE no=?"
KEEP_TEXT = "INSERT INTO texts VALUES (?,?) ON CONFLICT (digest) DO NOTHING"
KEEP_JUDGING = "INSERT INTO judgings (id, record) VALUES (?,?) ON CONFLICT (id) DO NOTHING"
_KEEP_JUDGE = "INSERT INTO judges VALUES (?,?,?) ON CONFLICT (judging, judge) DO NOTHING"
FORGET = "DELETE FROM judgments WHERE judging=? AND unit=? AND judge=? AND repeat=?"
_SET_ASIDE = "UPDATE calls SET aside=? WHERE key=? AND aside IS NULL"
_FAILED = (
    f"SELECT {JUDGMENT} FROM run_units m CROSS JOIN judgments j"
    " ON j.judging=:judging AND j.unit=m.unit WHERE {}"
    " AND j.reason NOT IN (SELECT value FROM json_each(:kept))"
)
_OPEN = (
    f"SELECT {UNIT} FROM run_units m LEFT JOIN judgments j"
    " ON j.judging=:judging AND j.unit=m.unit AND j.judge=:judge AND j.repeat=:repeat"
    " CROSS JOIN units u ON u.no=m.unit WHERE {} AND m.position>:after"
    " AND (j.unit IS NULL OR j.reason IN (SELECT value FROM json_each(:again)))"
    f" ORDER BY m.position LIMIT {PAGE_ROWS}"
)


class WaitingUnits:
    """The units and judgments that wait in one session for their run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.size, self._judgments = 0, 0
        self.content = ""
        """The hash of all units, once `finish` has read them."""
        for name, columns in _TABLES.items():
            session.rows(f"DROP TABLE IF EXISTS {name}")
            session.rows(f"CREATE TEMP TABLE {name} {columns}")

    def add(self, units: Sequence[IncomingUnit]) -> None:
        """Let units wait."""
        rows, judgments = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
        for unit in units:
            self.size += 1
            hashed = unit_digest(unit.id, unit.body)
            rows.append((self.size, unit.id, unit.origin, hashed, unit.body, *unit.description))
            judgments += [(self.size, *place, *text) for *place, text in unit.judgments]
        with self._session.transaction():
            self._session.write("INSERT INTO incoming VALUES (?,?,?,?,?,?,?,?)", rows)
            self._session.write("INSERT INTO incoming_judgments VALUES (?,?,?,?,?,?,?)", judgments)
        self._judgments += len(judgments)

    def finish(self) -> None:
        """Hash all units; raise DataError if ids repeat."""
        with self._session.transaction():
            if self._session.rows(f"{_TWICE} LIMIT 1"):
                twice = f"SELECT id, origin FROM incoming WHERE id IN ({_TWICE}) ORDER BY position"
                raise repeated_ids(self._session.stream(twice))
            digests = self._session.stream("SELECT digest FROM incoming ORDER BY digest")
            self.content = content_of(hashed for (hashed,) in digests)

    def join(self, run: int) -> None:
        """Make these the units of a run, within a transaction."""
        self._session.rows(_KEEP_UNITS)
        self._session.rows(JOIN_RUN, {"run": run})
        if self._judgments:
            judged = self._session.stream(_JUDGED, {"run": run})
            while page := list(islice(judged, BATCH_ROWS)):
                rows = [text_row(tuple(row[:4]), JudgmentText(*row[4:])) for row in page]
                self._session.write(SETTLE, rows)


def repeated_ids(units: Iterable[tuple[str, str]]) -> DataError:
    """Return the error for units, given by id and place in their order, of which ids repeat."""
    first: dict[str, str] = {}
    twice: dict[str, str] = {}
    for ident, origin in units:
        if ident not in first:
            first[ident] = origin
        elif ident not in twice:
            twice[ident] = origin
    places = [
        f"{quote(ident)} ({', '.join(dict.fromkeys((first[ident], origin)))})"
        for ident, origin in islice(twice.items(), REPEATED_IDS_SHOWN)
    ]
    is_same_file = any(first[ident] == origin for ident, origin in twice.items())
    key = "store.file_twice" if is_same_file else "store.repeated_ids"
    return DataError(Sentence(key, ids=Code("; ".join(places)), n=len(twice)))


def start_run(
    session: Session, run: str, name: str, manifest: Manifest, waiting: WaitingUnits | None
) -> None:
    """Start a run in one transaction, with the units that wait unless it has its own; raises
    StoreError if it has none and none wait."""
    with session.transaction():
        session.lock_table("runs")
        known = session.rows(_RUN, {"run": run})
        for _, before in known:
            manifest = manifest.keep_labels(read_manifest(before, manifest.judging))
        [(last,)] = session.rows("SELECT coalesce(MAX(starts), 0) FROM runs")
        judging, record = _keep_judging(session, manifest.judging), manifest_json(manifest).decode()
        at = now()
        session.write(_START, [(run, name, judging, record, at, at, last + 1)])
        [(number, _)] = session.rows(_RUN, {"run": run})
        if not known:
            if waiting is None:
                raise StoreError(Sentence("store.run_gone", run=run))
            waiting.join(number)
        session.write(STAMP, [(run_digest(session, number), number)])


def _keep_judging(session: Session, judging: JudgingRecord) -> int:
    """Return the number of a judging, which is kept with its texts unless it is there."""
    rows = session.rows(_JUDGING, {"judging": judging.id})
    if not rows:
        digests = {name: digest(text) for name, text in judging.texts.items()}
        texts = {digests[name]: text for name, text in judging.texts.items()}
        session.write(KEEP_TEXT, list(texts.items()))
        session.write(KEEP_JUDGING, [(judging.id, judging_json(judging, digests).decode())])
        rows = session.rows(_JUDGING, {"judging": judging.id})
        keep_judges(session, int(rows[0][0]), judging)
    return int(rows[0][0])


def keep_judges(session: Session, judging: int, record: JudgingRecord) -> None:
    """Keep the names of a judging's judges, for whoever reads the store with SQL."""
    rows = [(judging, index, name) for index, name in enumerate(record.group_names)]
    session.write(_KEEP_JUDGE, rows)


def run_digest(session: Session, number: int) -> str:
    """Return the digest of a run's row and of its units in their order."""
    row = "SELECT id, name, judging, manifest, created, started, starts FROM runs WHERE no=:run"
    [columns] = session.rows(row, {"run": number})
    places = blake2b(digest_size=12)
    units = "SELECT position, unit FROM run_units WHERE run=:run ORDER BY position"
    for position, unit in session.stream(units, {"run": number}):
        places.update(b"%d:%d," % (position, unit))
    return row_digest(*columns, places.hexdigest())


def in_scope(scope: Scope) -> str:
    """Return the condition that `m` is a row of the scope, bound to `scope_values`."""
    limited = " AND m.position<=:limit" if scope.limit is not None else ""
    named = " AND m.position IN (SELECT value FROM json_each(:positions))"
    of_run = "m.run=(SELECT no FROM runs WHERE id=:run)"
    return f"{of_run}{limited}{'' if scope.positions is None else named}"


def scope_values(scope: Scope) -> dict[str, Any]:
    """Return the values that `in_scope` is bound to."""
    values: dict[str, Any] = {"run": scope.run}
    if scope.limit is not None:
        values["limit"] = scope.limit
    if scope.positions is not None:
        values["positions"] = scope.positions
    return values


def judging_number(session: Session, run: str) -> int:
    """Return the number of a run's judging."""
    [(number,)] = session.rows("SELECT judging FROM runs WHERE id=:run", {"run": run})
    return int(number)


def open_units(
    session: Session, scope: Scope, judge: int, repeat: int, again: Sequence[str], after: int
) -> list[StoredUnit]:
    """Return a page of the units after a position that wait for a judgment."""
    values = scope_values(scope) | {"judging": judging_number(session, scope.run)}
    values |= {"judge": judge, "repeat": repeat, "again": again, "after": after}
    return [StoredUnit._make(row) for row in session.rows(_OPEN.format(in_scope(scope)), values)]


def set_aside(
    session: Session,
    scope: Scope,
    kept: Sequence[str],
    bad_tries: Callable[[StoredJudgment], Iterable[str]],
) -> None:
    """Make failures pending, except those with a reason in `kept`, in one transaction."""
    with session.transaction():
        judging = judging_number(session, scope.run)
        values = scope_values(scope) | {"kept": kept, "judging": judging}
        failures = [
            row_judgment(row) for row in session.rows(_FAILED.format(in_scope(scope)), values)
        ]
        keys = sorted({key for failure in failures for key in bad_tries(failure)})
        at = now()
        session.write(_SET_ASIDE, [(at, key) for key in keys])
        session.write(FORGET, [(judging, *failure[:3]) for failure in failures])
