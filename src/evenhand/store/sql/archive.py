"""What readers see of a store, through a session of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from evenhand.errors import StoreError
from evenhand.judgment import JudgmentText
from evenhand.limits import PAGE_ROWS
from evenhand.manifest import JudgingRecord, Manifest, read_judging, read_manifest
from evenhand.store.batches import BatchRow
from evenhand.store.codec import row_judgment
from evenhand.store.keys import unit_digest, unpriced_tokens
from evenhand.store.ports import (
    Browsed,
    CallPage,
    Changes,
    Counts,
    JudgmentPage,
    LedgerCall,
    PageRequest,
    RunRow,
    Scope,
    Sending,
    Spent,
    StoredJudgment,
    StoredUnit,
)
from evenhand.store.sql.batches import batch_rows
from evenhand.store.sql.browse import (
    JUDGMENT,
    LEDGER_CALL,
    UNIT,
    call_page,
    judgment_page,
    ledger_call,
    unit_of_call,
)
from evenhand.store.sql.session import Row, Session, bindings, bound

_RUN = "r.id, r.name, g.id, r.created, r.started, r.starts"
_RUNS = f"SELECT {_RUN} FROM runs r JOIN judgings g ON g.no=r.judging"
_NUMBER = "(SELECT no FROM runs WHERE id=:run)"
_JUDGING = "(SELECT judging FROM runs WHERE id=:run)"
_MANIFEST = (
    "SELECT r.manifest, g.id, g.record FROM runs r JOIN judgings g ON g.no=r.judging"
    " WHERE r.id=:run"
)
_UNITS = f"SELECT {UNIT} FROM run_units m CROSS JOIN units u ON u.no=m.unit WHERE "
_JUDGED = (
    "SELECT {} FROM run_units m CROSS JOIN judgments j ON j.judging=" + _JUDGING + " AND"
    " j.unit=m.unit"
)
_IN_ORDER = " ORDER BY m.position, j.judge, j.repeat"
_NAMED = (
    f"SELECT {UNIT} FROM units u CROSS JOIN run_units m ON m.unit=u.no AND m.run={_NUMBER}"
    " WHERE u.id=:name"
)
_BOTH = (
    f"SELECT {UNIT}, v.no, w.position, v.id, v.body FROM run_units m"
    " CROSS JOIN units u ON u.no=m.unit CROSS JOIN units v ON v.id=u.id"
    " CROSS JOIN run_units w ON w.unit=v.no AND w.run=(SELECT no FROM runs WHERE id=:beside)"
    f" WHERE m.run={_NUMBER} AND m.position>:after ORDER BY m.position LIMIT {PAGE_ROWS}"
)
_NEW = (
    "SELECT COUNT(*), COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM units v CROSS JOIN run_units w"
    " ON w.unit=v.no AND w.run=(SELECT no FROM runs WHERE id=:beside) WHERE v.id=u.id))"
    " FROM run_units m CROSS JOIN units u ON u.no=m.unit"
    f" WHERE m.run={_NUMBER} AND NOT EXISTS (SELECT 1 FROM run_units w"
    " WHERE w.unit=m.unit AND w.run=(SELECT no FROM runs WHERE id=:beside))"
)
"""Of the units that the other run has not: how many, and how many of them by another content."""
_KNOWN = (
    f"SELECT {JUDGMENT} FROM judgments j WHERE j.judging=(SELECT no FROM judgings WHERE"
    " id=:judging) AND j.unit=(SELECT no FROM units WHERE digest=:digest)"
    " ORDER BY j.judge, j.repeat"
)


def in_scope(session: Session, scope: Scope) -> str:
    """The condition that `m` is a row of the scope, which is bound by `scope_values`."""
    limited = " AND m.position<=:limit" if scope.limit is not None else ""
    named = "" if scope.positions is None else f" AND {session.among('m.position', 'positions')}"
    return f"m.run={_NUMBER}{limited}{named}"


def scope_values(session: Session, scope: Scope) -> dict[str, Any]:
    """What the condition `in_scope` is bound to."""
    values: dict[str, Any] = {"run": scope.run}
    if scope.limit is not None:
        values["limit"] = scope.limit
    if scope.positions is not None:
        values["positions"] = session.several(scope.positions)
    return values


_OPEN_POSITIONS = (
    "SELECT m.position FROM run_units m LEFT JOIN judgments j"
    " ON j.judging=(SELECT judging FROM runs WHERE id=:run) AND j.unit=m.unit"
    " AND (j.reason IS NULL OR j.reason NOT IN ({})) WHERE {}"
    " GROUP BY m.position HAVING COUNT(j.unit) < :planned ORDER BY m.position"
)
HALF = 32
"""Bits of a number that are summed by themselves, so that no sum overflows: SQLite would give up
where a store holds counts from before they were bounded."""


def _sum(number: str, where: str = "") -> str:
    """The sum of a number in two columns: of its upper and of its lower bits."""
    of = f" FILTER (WHERE {where})" if where else ""
    upper, lower = f"({number}) >> {HALF}", f"({number}) & {(1 << HALF) - 1}"
    return f"coalesce(SUM({upper}){of}, 0), coalesce(SUM({lower}){of}, 0)"


def _whole(halves: Sequence[int]) -> list[int]:
    """The sums of columns that `_sum` made."""
    pairs = zip(halves[::2], halves[1::2], strict=True)
    return [(int(upper) << HALF) + int(lower) for upper, lower in pairs]


_SPENT = ", ".join(
    [
        "SELECT COUNT(*) - COUNT(cost), COUNT(*)",
        *(_sum("cost"), _sum("input_tokens"), _sum("output_tokens")),
        _sum("cached_tokens"),
        _sum("coalesce(stored_tokens, 0)") + " FROM calls WHERE run=:run",
    ]
)
_RESERVED = f"SELECT {_sum('amount')} FROM reservations WHERE run=:run"
_UNPRICED = (
    f"SELECT judge, {_sum('coalesce(input_tokens, input_most)')},"
    f" {_sum('coalesce(output_tokens, output_most)')}"
    " FROM calls WHERE run=:run AND coalesce(cost, 0)=0 GROUP BY judge"
)
_UNPRICED_LOST = "SELECT attempt FROM reservations WHERE run=:run AND amount=0"


class SqlArchive:
    """All of an archive that statements can say. `is_claimed`, `state`, `freeze` and what else a
    database does in its own way are those of the class for that database."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._judgings: dict[str, JudgingRecord] = {}

    @property
    def session(self) -> Session:
        """What the archive reads through."""
        return self._session

    def _rows(self, sql: str, **values: Any) -> list[Any]:
        return self._session.rows(sql, values)

    def _scoped(self, sql: str, scope: Scope, **values: Any) -> list[Any]:
        """The rows of a statement that ends in a condition, within a scope."""
        return self._session.rows(sql, scope_values(self._session, scope) | values)

    def runs(self) -> list[RunRow]:
        return [RunRow._make(row) for row in self._rows(f"{_RUNS} ORDER BY r.starts DESC")]

    def last_run(self, name: str, judging: str = "") -> RunRow | None:
        of_judging = " AND g.id=:judging" if judging else ""
        last = f"{_RUNS} WHERE r.name=:name{of_judging} ORDER BY r.starts DESC LIMIT 1"
        rows = self._rows(last, name=name, **({"judging": judging} if judging else {}))
        return RunRow._make(rows[0]) if rows else None

    def manifest(self, run: str) -> Manifest:
        for text, ident, record in self._rows(_MANIFEST, run=run):
            if ident not in self._judgings:
                self._judgings[ident] = self._judging(record)
            return read_manifest(text, self._judgings[ident])
        raise StoreError(f"the store has no run {run}", where=self._session.where)

    def _judging(self, record: str) -> JudgingRecord:
        """A judging with its texts, each of which is kept once."""
        judging = read_judging(record)
        digests = list(judging.texts.values())
        sql = f"SELECT digest, text FROM texts WHERE digest IN ({bound('text', digests)})"
        texts = dict(self._rows(sql, **bindings("text", digests)))
        files = {name: texts[digest] for name, digest in judging.texts.items() if digest in texts}
        return replace(judging, texts=files)

    def changes(self, run: str, before: str) -> Changes:
        [(new, changed)] = self._rows(_NEW, run=run, beside=before)
        [(gone, _)] = self._rows(_NEW, run=before, beside=run)
        return Changes(added=new - changed, removed=gone - changed, changed=changed)

    def units(self, scope: Scope) -> Iterator[StoredUnit]:
        sql = f"{_UNITS}{in_scope(self._session, scope)} AND m.position>:after ORDER BY m.position"
        page = f"{sql} LIMIT {PAGE_ROWS}"
        for part in _parts(scope):
            after = 0
            while rows := self._scoped(page, part, after=after):
                yield from map(StoredUnit._make, rows)
                after = rows[-1][1]

    def unit_named(self, run: str, name: str) -> StoredUnit | None:
        rows = self._rows(_NAMED, run=run, name=name)
        return StoredUnit._make(rows[0]) if rows else None

    def units_of_both(
        self, run: str, beside: str, after: int = 0
    ) -> Iterator[tuple[StoredUnit, StoredUnit]]:
        while rows := self._rows(_BOTH, run=run, beside=beside, after=after):
            yield from ((StoredUnit._make(row[:4]), StoredUnit._make(row[4:])) for row in rows)
            after = rows[-1][1]

    def judgments(
        self, scope: Scope, unit: str | None = None
    ) -> Iterator[tuple[StoredUnit, StoredJudgment]]:
        if unit is not None:
            row = self.unit_named(scope.run, unit)
            if row is not None and scope.holds(row.position):
                yield from ((row, judgment) for judgment in self.of_unit(scope.run, row))
            return
        sql = _JUDGED.format(f"{UNIT}, {JUDGMENT}") + " CROSS JOIN units u ON u.no=m.unit"
        for rows in self._windows(sql, scope):
            for columns in rows:
                yield StoredUnit._make(columns[:4]), row_judgment(tuple(columns[4:]))

    def judged(self, scope: Scope) -> Iterator[tuple[int, int, int, JudgmentText]]:
        sql = _JUDGED.format("j.unit, j.judge, j.repeat, j.status, j.reason, j.body")
        for rows in self._windows(sql, scope):
            for unit, judge, repeat, status, reason, body in rows:
                yield unit, judge, repeat, JudgmentText(status, reason, body)

    def judged_units(self, scope: Scope) -> Iterator[tuple[str, JudgmentText]]:
        sql = _JUDGED.format("u.body, j.status, j.reason, j.body")
        for rows in self._windows(f"{sql} CROSS JOIN units u ON u.no=m.unit", scope):
            for unit, status, reason, body in rows:
                yield unit, JudgmentText(status, reason, body)

    def _windows(self, sql: str, scope: Scope) -> Iterator[Sequence[Row]]:
        """The rows of a statement over `m` and `j`, in their order, those of so many units at a
        time."""
        condition = in_scope(self._session, scope)
        bounds = f"SELECT MIN(m.position), MAX(m.position) FROM run_units m WHERE {condition}"
        # The last position says how far it goes: a limit beside it would be the one that SQLite
        # searches by, to the end of the scope in every window.
        within = in_scope(self._session, replace(scope, limit=None))
        window = f"{sql} WHERE {within} AND m.position>:low AND m.position<=:high{_IN_ORDER}"
        for part in _parts(scope):
            [(first, last)] = self._scoped(bounds, part)
            if first is None:
                continue
            rest = replace(part, limit=None)
            step = PAGE_ROWS if part.positions is None else last - first + 1
            for low in range(first - 1, last, step):
                yield self._scoped(window, rest, low=low, high=min(low + step, last))

    def of_unit(self, run: str, unit: StoredUnit) -> list[StoredJudgment]:
        sql = (
            f"SELECT {JUDGMENT} FROM judgments j WHERE j.judging={_JUDGING} AND j.unit=:unit"
            " ORDER BY j.judge, j.repeat"
        )
        return [row_judgment(tuple(row)) for row in self._rows(sql, run=run, unit=unit.no)]

    def known(self, judging: str, ident: str, body: str) -> list[StoredJudgment]:
        rows = self._rows(_KNOWN, judging=judging, digest=unit_digest(ident, body))
        return [row_judgment(tuple(row)) for row in rows]

    def open_positions(
        self, scope: Scope, judgments_per_unit: int, again: Sequence[str]
    ) -> list[int]:
        condition = in_scope(self._session, scope)
        sql = _OPEN_POSITIONS.format(bound("again", again), condition)
        values = {"planned": judgments_per_unit, **bindings("again", again)}
        return [position for (position,) in self._scoped(sql, scope, **values)]

    def counts(self, scope: Scope, judgments_per_unit: int) -> Counts:
        condition = in_scope(self._session, scope)
        [(units,)] = self._scoped(f"SELECT COUNT(*) FROM run_units m WHERE {condition}", scope)
        columns = "j.status, j.reason, COUNT(*), SUM(j.calls), SUM(j.reasks)"
        grouped = f"{_JUDGED.format(columns)} WHERE {condition} GROUP BY j.status, j.reason"
        rows = [(*row[:3], int(row[3]), int(row[4])) for row in self._scoped(grouped, scope)]
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
        [(unpriced, calls, *halves)] = self._rows(_SPENT, run=run)
        cost, *tokens = _whole(halves)
        (reserved,) = _whole(self._rows(_RESERVED, run=run)[0])
        read, written, cached, stored = tokens
        return Spent(
            *(cost, reserved, unpriced, calls, read, written, cached, stored),
            unpriced_tokens=self._unpriced_tokens(run),
        )

    def _unpriced_tokens(self, run: str) -> dict[str, tuple[int, int]]:
        tokens: dict[str, tuple[int, int]] = {}
        for judge, *halves in self._rows(_UNPRICED, run=run):
            read, written = _whole(halves)
            tokens[judge] = read, written
        for (attempt,) in self._rows(_UNPRICED_LOST, run=run):
            if (lost := unpriced_tokens(attempt)) is not None:
                read, written = tokens.get(lost.judge, (0, 0))
                tokens[lost.judge] = read + lost.input_tokens, written + lost.output_tokens
        return tokens

    def batches(self, run: str = "") -> list[BatchRow]:
        return batch_rows(self._session, run)

    def sendings(self, account: str) -> list[Sending]:
        sql = "SELECT name, account, at, tokens FROM sendings WHERE account=:account ORDER BY at"
        return [Sending._make(row) for row in self._rows(sql, account=account)]

    def judgment_page(self, run: str, browsed: Browsed, request: PageRequest) -> JudgmentPage:
        return judgment_page(self._session, run, browsed, request)

    def call_page(
        self, run: str, request: PageRequest, judge: str = "", text: str = ""
    ) -> CallPage:
        return call_page(self._session, run, judge, text, request)

    def calls(self, keys: Sequence[str]) -> dict[str, LedgerCall]:
        order = "ORDER BY aside IS NOT NULL DESC, no DESC"  # the one that answers comes last
        sql = f"SELECT {LEDGER_CALL} FROM calls WHERE {self._session.among('key', 'keys')} {order}"
        calls: dict[str, LedgerCall] = {}
        for call in map(ledger_call, self._rows(sql, keys=self._session.several(keys))):
            before = calls.get(call.call.key)
            if before is None or before.altered or not call.altered:
                calls[call.call.key] = call
        return calls

    def call(self, run: str, no: int) -> tuple[LedgerCall, str | None] | None:
        sql = f"SELECT {LEDGER_CALL} FROM calls WHERE no=:no AND run=:run"
        for row in self._rows(sql, no=no, run=run):
            call = ledger_call(row)
            return call, unit_of_call(self._session, run, call)
        return None

    def recent_calls(self, run: str, most: int) -> list[str]:
        sql = "SELECT at FROM calls WHERE run=:run ORDER BY no DESC LIMIT :most"
        return [at for (at,) in self._rows(sql, run=run, most=most)]


def _parts(scope: Scope) -> Iterator[Scope]:
    """A scope in parts that each name no more positions than a page has rows."""
    if scope.positions is None:
        yield scope
        return
    for start in range(0, len(scope.positions), PAGE_ROWS):
        yield replace(scope, positions=scope.positions[start : start + PAGE_ROWS])
