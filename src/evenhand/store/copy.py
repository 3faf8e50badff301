"""Copy all of one store into another, whatever databases are behind them.

Everything is known by its content (texts, judgings, units, runs) or by its digest (calls): a copy
that was cut off goes on where it stopped, one that is made again brings what is new, and the target
may hold runs of its own. Every row is held against its digest on the way; one that does not fit
ends the copy before it is written. A run is there whole or not at all. Others may be at work in
the target: each transaction waits for what they write to its table, then writes there alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from evenhand.errors import StoreError
from evenhand.limits import BATCH_ROWS
from evenhand.manifest import copied_manifest_json, read_judging
from evenhand.store.batches import RELEASE
from evenhand.store.intake import KEEP_JUDGING, KEEP_TEXT, STAMP, keep_judges, run_digest
from evenhand.store.rows import (
    JUDGMENT_COLUMNS,
    SETTLE,
    STORED_CALL,
    digest,
    is_altered,
    row_digest,
    unit_digest,
)
from evenhand.store.session import Session
from evenhand.words import Sentence

_UNIT = "digest, id, body, subject, opponent, fields"
_KEEP_UNIT = f"INSERT INTO units ({_UNIT}) VALUES (?,?,?,?,?,?) ON CONFLICT (digest) DO NOTHING"
_RUNS = (
    "SELECT r.no, r.id, r.name, g.id, r.manifest, r.created, r.started FROM runs r"
    " JOIN judgings g ON g.no=r.judging ORDER BY r.starts"
)
_RUN = "SELECT no FROM runs WHERE id=:run"
_KEEP_RUN = (
    "INSERT INTO runs (id, name, judging, manifest, created, started, starts)"
    " VALUES (?,?,?,?,?,?,?)"
)
_PLACES = (
    "SELECT m.position, u.digest FROM run_units m JOIN units u ON u.no=m.unit WHERE m.run=:run"
    " ORDER BY m.position"
)
_KEEP_PLACE = "INSERT INTO run_units VALUES (?,?,?)"
_JUDGMENT = ", ".join(f"j.{name}" for name in JUDGMENT_COLUMNS.split(", "))
_JUDGMENTS = (
    f"SELECT g.id, u.digest, j.digest, {_JUDGMENT} FROM judgments j"
    " JOIN judgings g ON g.no=j.judging JOIN units u ON u.no=j.unit"
)
_KEEP_JUDGMENT = f"{SETTLE} WHERE judgments.reason IS NOT NULL"
"""A judgment that is there stays, unless it is a failure."""
_CALLS = f"SELECT {STORED_CALL}, aside FROM calls ORDER BY no"
_KEEP_CALL = (
    f"INSERT INTO calls ({STORED_CALL}, aside) VALUES"
    f" ({','.join('?' * (STORED_CALL.count(',') + 2))}) ON CONFLICT (key, digest)"
    " DO UPDATE SET aside=coalesce(calls.aside, excluded.aside)"
)
_BATCH = "name, run, judge, place, ident, stage, status, created, ended"
_KEEP_BATCH = f"INSERT INTO batches ({_BATCH}) VALUES (?,?,?,?,?,?,?,?,?)"
_ITEM = "batch, line, key, tokens, sampling, state, detail"
_ITEMS = f"SELECT {_ITEM} FROM batch_items WHERE batch=:batch ORDER BY line"
_KEEP_ITEM = f"INSERT INTO batch_items ({_ITEM}) VALUES (?,?,?,?,?,?,?)"

_RESERVATIONS = (
    "SELECT key, attempt, run, amount, judge, input_tokens, output_tokens, origin FROM reservations"
)
_KEEP_RESERVATION = (
    "INSERT INTO reservations (key, attempt, run, amount, judge, input_tokens, output_tokens,"
    " origin) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (key, attempt) DO NOTHING"
)
_CALLS_OF_RUNS = "SELECT run, COUNT(*) FROM calls GROUP BY run"

Progress = Callable[[str, int, int], None]
"""Called with the name of a table, the rows of it that are done, and how many there are."""


class Copied(NamedTuple):
    """The numbers of rows that were written; those that the target had are not counted."""

    units: int
    runs: int
    judgments: int
    calls: int


class Copy:
    """A copy from one session, in a frozen state, into another."""

    def __init__(self, source: Session, target: Session, mark: str, progress: Progress) -> None:
        """`mark` is the source's: the same at every copy, and no other store's."""
        self._source, self._target, self._mark, self._progress = source, target, mark, progress

    def make(self) -> Copied:
        """Copy all; raises StoreError."""
        before = self._counts()
        self._table("texts", "SELECT digest, text FROM texts ORDER BY digest", self._texts)
        self._table("judgings", "SELECT id, record FROM judgings ORDER BY no", self._judgings)
        self._table("units", f"SELECT {_UNIT} FROM units ORDER BY no", self._units)
        self._runs()
        self._table("calls", _CALLS, self._calls)
        self._table("judgments", _JUDGMENTS, self._judgments)
        self._reservations()
        self._batches()
        return Copied(*(now - then for now, then in zip(self._counts(), before, strict=True)))

    def _counts(self) -> list[int]:
        tables = ("units", "runs", "judgments", "calls")
        return [self._target.rows(f"SELECT COUNT(*) FROM {name}")[0][0] for name in tables]

    def _table(self, what: str, sql: str, take_in: Callable[[list[Any]], None]) -> None:
        """Take in the rows of a table of the source, so many at a time, each batch in a transaction
        of the target."""
        [(total,)] = self._source.rows(f"SELECT COUNT(*) FROM {what}")
        rows, done = self._source.stream(sql), 0
        self._progress(what, done, total)
        while batch := list(islice(rows, BATCH_ROWS)):
            with self._target.transaction():
                self._target.lock_table(what)
                take_in(batch)
            done += len(batch)
            self._progress(what, done, total)

    def _texts(self, batch: list[Any]) -> None:
        for stored, text in batch:
            self._require(digest(text) == stored, f"text {stored}")
        self._target.write(KEEP_TEXT, [tuple(row) for row in batch])

    def _judgings(self, batch: list[Any]) -> None:
        self._target.write(KEEP_JUDGING, [tuple(row) for row in batch])
        numbers = self._judging_numbers()
        for ident, record in batch:
            keep_judges(self._target, numbers[ident], read_judging(record))

    def _units(self, batch: list[Any]) -> None:
        for stored, ident, body, *_ in batch:
            self._require(unit_digest(ident, body) == stored, f"unit {ident}")
        self._target.write(_KEEP_UNIT, [tuple(row) for row in batch])

    def _runs(self) -> None:
        runs = self._source.rows(_RUNS)
        for done, (number, ident, *columns) in enumerate(runs):
            self._progress("runs", done, len(runs))
            with self._target.transaction():
                self._target.lock_table("runs")
                if not self._target.rows(_RUN, {"run": ident}):
                    self._run(number, ident, *columns)
        self._progress("runs", len(runs), len(runs))

    def _run(
        self, source: int, ident: str, name: str, judging: str, manifest: str, *times: str
    ) -> None:
        """Copy one run with its units, within a transaction."""
        [(last,)] = self._target.rows("SELECT coalesce(MAX(starts), 0) FROM runs")
        number = self._judging_numbers()[judging]
        copied = copied_manifest_json(manifest).decode()
        self._target.write(_KEEP_RUN, [(ident, name, number, copied, *times, last + 1)])
        [(run,)] = self._target.rows(_RUN, {"run": ident})
        places = self._source.stream(_PLACES, {"run": source})
        while batch := list(islice(places, BATCH_ROWS)):
            numbers = self._unit_numbers([stored for _, stored in batch])
            rows = [(run, position, numbers[stored]) for position, stored in batch]
            self._target.write(_KEEP_PLACE, rows)
        self._target.write(STAMP, [(run_digest(self._target, run), run)])

    def _judging_numbers(self) -> dict[str, int]:
        return dict(map(tuple, self._target.rows("SELECT id, no FROM judgings")))

    def _unit_numbers(self, digests: Sequence[str]) -> dict[str, int]:
        sql = "SELECT digest, no FROM units WHERE digest IN (SELECT value FROM json_each(:digests))"
        return dict(map(tuple, self._target.rows(sql, {"digests": digests})))

    def _judgments(self, batch: list[Any]) -> None:
        judgings = self._judging_numbers()
        units = self._unit_numbers([row[1] for row in batch])
        rows = []
        for judging, unit, stored, *columns in batch:
            self._require(row_digest(*columns) == stored, f"a judgment of judging {judging}")
            row = (judgings[judging], units[unit], *columns[2:])
            rows.append((*row, row_digest(*row)))
        self._target.write(_KEEP_JUDGMENT, rows)

    def _calls(self, batch: list[Any]) -> None:
        for *columns, stored, at, _ in batch:
            self._require(not is_altered(columns, stored, at), f"call {columns[0]}")
        self._target.write(_KEEP_CALL, [tuple(row) for row in batch])

    def _reservations(self) -> None:
        """Copy money that is held open, after all calls.

        What the source has released since an earlier copy is released in the target too; what the
        target itself or another source holds stays. In doubt money stays held: too much is counted
        rather than too little.
        """
        batches = {name for (name,) in self._source.rows("SELECT name FROM batches")}
        ended = self._ended_batches()
        held = [tuple(row) for row in self._source.rows(_RESERVATIONS) if row[1] not in ended]
        keys = {row[:2] for row in held}
        with self._target.transaction():
            whole = self._whole_runs()
            released = [
                (key, attempt)
                for key, attempt, run, *_, origin in self._target.rows(_RESERVATIONS)
                if (key, attempt) not in keys
                and (attempt in batches or (origin == self._mark and run in whole))
            ]
            self._target.write(RELEASE, released)
            self._target.write(
                _KEEP_RESERVATION, [(*row[:-1], row[-1] or self._mark) for row in held]
            )

    def _whole_runs(self) -> set[str]:
        """Return the runs of which the source has all calls that the target has: not those that
        the target judged further, nor those of a source that was put back to an earlier state."""
        there = dict(map(tuple, self._target.rows(_CALLS_OF_RUNS)))
        return {
            run for run, calls in self._source.rows(_CALLS_OF_RUNS) if calls >= there.get(run, 0)
        }

    def _ended_batches(self) -> set[str]:
        """Return the batches that have ended in the target: their answers are taken in there."""
        sql = "SELECT name FROM batches WHERE stage IN ('ended', 'void')"
        return {name for (name,) in self._target.rows(sql)}

    def _batches(self) -> None:
        """Copy batches with their items, as the source has them, unless the target is ahead."""
        ended = self._ended_batches()
        for name, *rest in self._source.rows(f"SELECT {_BATCH} FROM batches ORDER BY name"):
            if name in ended:
                continue
            items = self._source.stream(_ITEMS, {"batch": name})
            with self._target.transaction():
                self._target.write("DELETE FROM batch_items WHERE batch=?", [(name,)])
                self._target.write("DELETE FROM batches WHERE name=?", [(name,)])
                self._target.write(_KEEP_BATCH, [(name, *rest)])
                while part := list(islice(items, BATCH_ROWS)):
                    self._target.write(_KEEP_ITEM, [tuple(row) for row in part])

    def _require(self, is_whole: bool, what: str) -> None:
        if not is_whole:
            raise StoreError(Sentence("store.copy_altered", what=what), where=self._source.where)
