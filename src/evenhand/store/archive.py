"""The archive of a store, the port that readers use: by anybody at any time, through a session of
their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from evenhand.errors import StoreError
from evenhand.limits import PAGE_ROWS
from evenhand.manifest import JudgingRecord, Manifest, read_judging, read_manifest
from evenhand.store.batches import BatchRow, batch_rows
from evenhand.store.intake import in_scope, scope_values
from evenhand.store.pages import judgment_page
from evenhand.store.ports import (
    Browsed,
    Changes,
    Counts,
    JudgmentPage,
    LedgerCall,
    ObservedRow,
    PageRequest,
    RunRow,
    Scope,
    SentRequest,
    Spent,
    StoredJudgment,
    StoredUnit,
)
from evenhand.store.rows import JUDGMENT, LEDGER_CALL, UNIT, ledger_call, row_judgment, unit_digest
from evenhand.store.session import Row, Session
from evenhand.words import Sentence

_RUNS = (
    "SELECT r.id, r.name, g.id, r.created, r.started, r.starts"
    " FROM runs r JOIN judgings g ON g.no=r.judging"
)
_NUMBER = "(SELECT no FROM runs WHERE id=:run)"
_JUDGING = "(SELECT judging FROM runs WHERE id=:run)"
_MANIFEST = (
    "SELECT r.manifest, g.id, g.record FROM runs r JOIN judgings g ON g.no=r.judging"
    " WHERE r.id=:run"
)
_TEXTS = "SELECT digest, text FROM texts WHERE digest IN (SELECT value FROM json_each(:digests))"
_UNITS = f"SELECT {UNIT} FROM run_units m CROSS JOIN units u ON u.no=m.unit WHERE "
_JUDGED = (
    "SELECT {} FROM run_units m CROSS JOIN judgments j ON j.judging=" + _JUDGING + " AND"
    " j.unit=m.unit"
)
_OBSERVED = (
    "SELECT m.position, u.id, u.subject, u.opponent, u.fields, j.judge, j.repeat, j.status,"
    " j.reason, j.observations FROM run_units m CROSS JOIN units u ON u.no=m.unit"
    f" LEFT JOIN judgments j ON j.judging={_JUDGING} AND j.unit=m.unit"
)
_NAMED = (
    f"SELECT {UNIT} FROM units u CROSS JOIN run_units m ON m.unit=u.no AND m.run={_NUMBER}"
    " WHERE u.id=:name"
)
_OF_UNIT = (
    f"SELECT {JUDGMENT} FROM judgments j WHERE j.judging={_JUDGING} AND j.unit=:unit"
    " ORDER BY j.judge, j.repeat"
)
_OTHER = "(SELECT no FROM runs WHERE id=:other)"
# Of the units that the other run lacks: how many, and how many of them it has by another content.
_NEW = (
    "SELECT COUNT(*), COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM units v CROSS JOIN run_units w"
    f" ON w.unit=v.no AND w.run={_OTHER} WHERE v.id=u.id))"
    " FROM run_units m CROSS JOIN units u ON u.no=m.unit"
    f" WHERE m.run={_NUMBER} AND NOT EXISTS (SELECT 1 FROM run_units w"
    f" WHERE w.unit=m.unit AND w.run={_OTHER})"
)
_KNOWN = (
    f"SELECT {JUDGMENT} FROM judgments j WHERE j.judging=(SELECT no FROM judgings WHERE"
    " id=:judging) AND j.unit=(SELECT no FROM units WHERE digest=:digest)"
    " ORDER BY j.judge, j.repeat"
)
_OPEN_POSITIONS = (
    f"SELECT m.position FROM run_units m LEFT JOIN judgments j ON j.judging={_JUDGING}"
    " AND j.unit=m.unit"
    " AND (j.reason IS NULL OR j.reason NOT IN (SELECT value FROM json_each(:again)))"
    " WHERE {} GROUP BY m.position HAVING COUNT(j.unit) < :planned ORDER BY m.position"
)
_SPENT = (
    "SELECT COUNT(*) - COUNT(cost), COUNT(*), SUM(cost), SUM(input_tokens), SUM(output_tokens),"
    " SUM(cached_tokens), SUM(cache_write_tokens) FROM calls WHERE run=:run"
)
_RESERVED = "SELECT SUM(amount) FROM reservations WHERE run=:run"
_UNPRICED = (
    "SELECT judge, SUM(coalesce(input_tokens, input_bound)),"
    " SUM(coalesce(output_tokens, output_bound))"
    " FROM calls WHERE run=:run AND coalesce(cost, 0)=0 GROUP BY judge"
)
_UNPRICED_LOST = (
    "SELECT judge, SUM(input_tokens), SUM(output_tokens) FROM reservations"
    " WHERE run=:run AND judge<>'' GROUP BY judge"
)
_CALLS = (
    f"SELECT {LEDGER_CALL} FROM calls WHERE key IN (SELECT value FROM json_each(:keys))"
    " ORDER BY aside IS NOT NULL DESC, no DESC"  # the one that answers comes last
)


class Archive:
    """Reads a store."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._judgings: dict[str, JudgingRecord] = {}

    def _rows(self, sql: str, **values: Any) -> list[Any]:
        return self.session.rows(sql, values)

    def _rows_in(self, sql: str, scope: Scope, **values: Any) -> list[Any]:
        return self.session.rows(sql, scope_values(scope) | values)

    def runs(
        self, name: str | None = None, judging: str | None = None, limit: int | None = None
    ) -> list[RunRow]:
        """Return the runs, of a name or a judging if one is given, the one started last first; at
        most `limit` of them."""
        wanted = {"r.name=:name": name, "g.id=:judging": judging}
        conditions = [sql for sql, value in wanted.items() if value is not None]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        most = "" if limit is None else " LIMIT :limit"
        values = {"name": name, "judging": judging, "limit": limit}
        rows = self.session.rows(f"{_RUNS}{where} ORDER BY r.starts DESC{most}", values)
        return [RunRow._make(row) for row in rows]

    def manifest(self, run: str) -> Manifest:
        """Return what a run recorded of itself, the texts of its protocol included."""
        for text, ident, record in self._rows(_MANIFEST, run=run):
            if ident not in self._judgings:
                self._judgings[ident] = self._judging(record)
            return read_manifest(text, self._judgings[ident])
        raise StoreError(Sentence("store.no_run", run=run), where=self.session.where)

    def _judging(self, record: str) -> JudgingRecord:
        """Return a judging with its texts, each of which is kept once."""
        judging = read_judging(record)
        texts = dict(map(tuple, self._rows(_TEXTS, digests=list(judging.texts.values()))))
        files = {name: texts[digest] for name, digest in judging.texts.items() if digest in texts}
        return replace(judging, texts=files)

    def changes(self, run: str, before: str) -> Changes:
        """Return how the units of a run differ from those of a run before it."""
        [(new, changed)] = self._rows(_NEW, run=run, other=before)
        [(gone, _)] = self._rows(_NEW, run=before, other=run)
        return Changes(added=new - changed, removed=gone - changed, changed=changed)

    def units(self, scope: Scope, name: str | None = None) -> Iterator[StoredUnit]:
        """Yield the units of a scope in their order, page by page; or the one of that name."""
        if name is not None:
            named = map(StoredUnit._make, self._rows(_NAMED, run=scope.run, name=name))
            yield from (unit for unit in named if scope.holds(unit.position))
            return
        page = f"{_UNITS}{in_scope(scope)} AND m.position>:after"
        for part in _parts(scope):
            after = 0
            while rows := self._rows_in(
                f"{page} ORDER BY m.position LIMIT {PAGE_ROWS}", part, after=after
            ):
                yield from map(StoredUnit._make, rows)
                after = rows[-1][1]

    def judgments(
        self, scope: Scope, unit: str | None = None
    ) -> Iterator[tuple[StoredUnit, StoredJudgment]]:
        """Yield the judgments in the order of the units; or those of the unit of that name."""
        if unit is not None:
            for found in self.units(scope, unit):
                for row in self._rows(_OF_UNIT, run=scope.run, unit=found.no):
                    yield found, row_judgment(row)
            return
        sql = _JUDGED.format(f"{UNIT}, {JUDGMENT}") + " CROSS JOIN units u ON u.no=m.unit"
        for rows in self._windows(sql, scope):
            for row in rows:
                yield StoredUnit._make(row[:4]), row_judgment(row[4:])

    def observations(self, scope: Scope) -> Iterator[ObservedRow]:
        """Yield what the judgments of a scope say in numbers, in the order of the units; of a unit
        without a judgment a row that has no status."""
        for rows in self._windows(_OBSERVED, scope):
            yield from map(ObservedRow._make, rows)

    def _windows(self, sql: str, scope: Scope) -> Iterator[Sequence[Row]]:
        """Yield the rows of a statement over `m` and `j`, in their order, a page of units at a
        time."""
        bounds = f"SELECT MIN(m.position), MAX(m.position) FROM run_units m WHERE {in_scope(scope)}"
        # The last position says how far it goes: SQLite would search by a limit beside it, to the
        # end of the scope in every window.
        within = in_scope(replace(scope, limit=None))
        window = f"{sql} WHERE {within} AND m.position>:low AND m.position<=:high"
        for part in _parts(scope):
            [(first, last)] = self._rows_in(bounds, part)
            if first is None:
                continue
            rest = replace(part, limit=None)
            step = PAGE_ROWS if part.positions is None else last - first + 1
            for low in range(first - 1, last, step):
                yield self._rows_in(
                    f"{window} ORDER BY m.position, j.judge, j.repeat",
                    rest,
                    low=low,
                    high=min(low + step, last),
                )

    def known(self, judging: str, ident: str, body: str) -> list[StoredJudgment]:
        """Return the judgments of a unit, found by its content, under a judging in any run."""
        rows = self._rows(_KNOWN, judging=judging, digest=unit_digest(ident, body))
        return [row_judgment(row) for row in rows]

    def open_positions(
        self, scope: Scope, judgments_per_unit: int, again: Sequence[str]
    ) -> list[int]:
        """Return the positions of units that lack a judgment, or have failed for one of the
        reasons `again`, in order."""
        sql = _OPEN_POSITIONS.format(in_scope(scope))
        rows = self._rows_in(sql, scope, planned=judgments_per_unit, again=again)
        return [position for (position,) in rows]

    def counts(self, scope: Scope, judgments_per_unit: int) -> Counts:
        """Return the judgments of a scope by outcome."""
        condition = in_scope(scope)
        [(units,)] = self._rows_in(f"SELECT COUNT(*) FROM run_units m WHERE {condition}", scope)
        columns = "j.status, j.reason, COUNT(*), SUM(j.calls), SUM(j.reasks)"
        grouped = f"{_JUDGED.format(columns)} WHERE {condition} GROUP BY j.status, j.reason"
        rows = [(*row[:3], int(row[3]), int(row[4])) for row in self._rows_in(grouped, scope)]
        left_out = sum(number for status, _, number, *_ in rows if status == "left_out")
        return Counts(
            planned=units * judgments_per_unit - left_out,
            verdicts=sum(number for status, _, number, *_ in rows if status == "verdict"),
            failures={reason: number for _, reason, number, *_ in rows if reason is not None},
            calls=sum(row[3] for row in rows),
            reasks=sum(row[4] for row in rows),
            left_out=left_out,
            failed_calls={reason: calls for _, reason, _, calls, _ in rows if reason is not None},
        )

    def spent(self, run: str) -> Spent:
        """Return what a run has spent and reserved."""
        [(unpriced, calls, *sums)] = self._rows(_SPENT, run=run)
        cost, read, written, cached, stored = (int(number or 0) for number in sums)
        [(reserved,)] = self._rows(_RESERVED, run=run)
        unpriced_tokens: dict[str, tuple[int, int]] = {}
        for sql in (_UNPRICED, _UNPRICED_LOST):
            for judge, *more in self._rows(sql, run=run):
                before = unpriced_tokens.get(judge, (0, 0))
                unpriced_tokens[judge] = (
                    before[0] + int(more[0] or 0),
                    before[1] + int(more[1] or 0),
                )
        return Spent(
            *(cost, int(reserved or 0), unpriced, calls, read, written, cached, stored),
            unpriced_tokens=unpriced_tokens,
        )

    def batches(self, run: str = "") -> list[BatchRow]:
        """Return the batches of a run, or all, the last first."""
        return batch_rows(self.session, "run=:run", run=run) if run else batch_rows(self.session)

    def sent_requests(self, account: str) -> list[SentRequest]:
        """Return the requests of an account that are still noted, the oldest first."""
        sql = (
            "SELECT name, account, at, tokens FROM sent_requests WHERE account=:account ORDER BY at"
        )
        return [SentRequest._make(row) for row in self._rows(sql, account=account)]

    def judgment_page(self, run: str, browsed: Browsed, request: PageRequest) -> JudgmentPage:
        """Return a page of a run's judgments and of its units without one."""
        return judgment_page(self.session, run, browsed, request)

    def call_times(self, run: str, most: int) -> list[str]:
        """Return when the last calls that a run paid for came, the last first."""
        sql = "SELECT at FROM calls WHERE run=:run ORDER BY no DESC LIMIT :most"
        return [at for (at,) in self._rows(sql, run=run, most=most)]

    def calls(self, keys: Sequence[str]) -> dict[str, LedgerCall]:
        """Return the calls under keys: the reply that answers, else one that was set aside."""
        calls: dict[str, LedgerCall] = {}
        for call in map(ledger_call, self._rows(_CALLS, keys=keys)):
            before = calls.get(call.call.key)
            if before is None or before.altered or not call.altered:
                calls[call.call.key] = call
        return calls

    def is_claimed(self, run: str) -> bool:
        """Return True if a process judges the run now."""
        return self.session.lock_holder(run) is not None

    def state(self) -> int | None:
        """Return a number that changes when somebody else changes the store; None if the store
        that was opened is not there any more."""
        return self.session.state()

    def set_frozen(self, frozen: bool) -> None:
        """Read the store as it is now, whatever others write, or as it changes again. Not to be
        held longer than one command takes: what is being read cannot be cleared away."""
        self.session.set_frozen(frozen)

    def close(self) -> None:
        """Close the session."""
        self.session.close()


def _parts(scope: Scope) -> Iterator[Scope]:
    """Yield a scope in parts that each name no more positions than a page has rows."""
    if scope.positions is None:
        yield scope
        return
    for start in range(0, len(scope.positions), PAGE_ROWS):
        yield replace(scope, positions=scope.positions[start : start + PAGE_ROWS])
