"""Pages of judgments and of calls, found, filtered and searched in the database.

A page is found by the place of the row before it, never by counting rows, so the last page of a
million is as near as the first. A filter that looks into texts looks at a bounded number of rows at
a time; the page then says where to look on.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from typing import Any, cast

from evenhand import jsontext
from evenhand.ledger.codec import CALL_COLUMNS, is_altered, row_call, row_judgment
from evenhand.ledger.ports import (
    Browsed,
    CallPage,
    Cursor,
    JudgmentPage,
    LedgerCall,
    PageRequest,
    StoredUnit,
)

LEDGER_CALL = f"no, at, aside, digest, {CALL_COLUMNS}"
UNIT = "u.no, m.position, u.id, u.body"
JUDGMENT = "j.unit, j.judge, j.repeat, j.status, j.reason, j.reasks, j.body"
_NO_JUDGMENT = ", ".join(["NULL"] * len(JUDGMENT.split(",")))
_HERE = "m.run=:run AND m.position BETWEEN :low AND :high"
_OF_UNIT = "j.judging=:judging AND j.unit=m.unit"
_BY_UNITS = (
    f"SELECT {UNIT}, {JUDGMENT} FROM run_units m CROSS JOIN units u ON u.no=m.unit"
    f" LEFT JOIN judgments j ON {_OF_UNIT} WHERE {_HERE}"
)
_FAILURES = (
    " FROM judgments j INDEXED BY judgments_failed"
    " CROSS JOIN run_units m ON m.unit=j.unit AND m.run=:run"
)
_FAILED = "j.judging=:judging AND j.reason IS NOT NULL"
_BY_FAILURES = (
    f"SELECT {UNIT}, {JUDGMENT}{_FAILURES} CROSS JOIN units u ON u.no=m.unit"
    f" WHERE {_FAILED} AND m.position BETWEEN :low AND :high"
)
_OPEN = (
    f"SELECT {UNIT}, {_NO_JUDGMENT} FROM run_units m CROSS JOIN units u ON u.no=m.unit"
    f" LEFT JOIN judgments j ON false WHERE {_HERE}"
    f" AND (SELECT COUNT(*) FROM judgments j WHERE {_OF_UNIT}) < :planned"
)
_NEXT_UNIT = (
    "SELECT position FROM run_units WHERE run=:run AND position{}:at"
    " ORDER BY position {} LIMIT 1 OFFSET :step"
)
_NEXT_FAILURE = (
    f"SELECT DISTINCT m.position{_FAILURES} WHERE {_FAILED} AND m.position{{}}:at"
    " ORDER BY m.position {} LIMIT 1 OFFSET :step"
)
_NEXT_CALL = "SELECT no FROM calls WHERE run=:run AND no{}:at ORDER BY no {} LIMIT 1 OFFSET :step"

_FLAG = "(f.value=:flag OR substr(f.value, 1, length(:flag) + 1)=:flag||':')"
_FILTERS = {
    "reason": "j.reason=:reason",
    "judge": "j.judge=:judge",
    "winner": "json_extract(j.body, '$.output.winner')=:winner",
    "confidence": "json_extract(j.body, '$.output.confidence')=:confidence",
    "tag": "EXISTS (SELECT 1 FROM json_each(j.body, '$.output.failure_tags') WHERE value=:letter)",
    "flag": "(EXISTS (SELECT 1 FROM json_each(j.body, '$.flags') f WHERE " + _FLAG + ") OR EXISTS"
    " (SELECT 1 FROM json_each(j.body, '$.passes') p, json_each(p.value, '$.flags') f"
    " WHERE " + _FLAG + "))",
    "candidate": "EXISTS (SELECT 1 FROM json_each(u.body, '$.candidates') c"
    " WHERE json_extract(c.value, '$.id')=:candidate)",
    "field": "EXISTS (SELECT 1 FROM json_each(u.body, '$.meta') m WHERE m.key=:field"
    " AND (CAST(m.value AS TEXT)=:value OR m.type=:value))",
    "text": "has_text(:needle, u.id, u.body, j.body)",
}
_DEEP = frozenset({"winner", "confidence", "tag", "flag", "candidate", "field", "text"})
"""Filters that look into texts."""
_MOST, _LAST = 2**62, 2**31


def prepare(connection: sqlite3.Connection) -> None:
    """Give a connection the function that searches texts in any script."""
    connection.create_function("has_text", 4, _has_text, deterministic=True)


_TEXT = re.compile(r'"((?:[^"\\]++|\\.)*+)"(:?)')
"""A text in a JSON body, and the colon that makes it a key."""
_AFTER_OUTPUT = ',"fixes":['
"""Where a judgment's own words end: what follows are codes, and passes that led to them."""


def _has_text(needle: str, name: str, unit: str | None, judgment: str | None) -> bool:
    """Whether a name, or a text of the two JSON bodies, holds what is looked for; the case of
    letters does not matter, and keys are no text."""
    if needle.casefold() in name.casefold():
        return True
    written = jsontext.compact(needle)[1:-1].casefold()
    # The whole body is looked at first: most hold nothing, and need not be taken apart.
    if unit is not None and written in unit.casefold() and _is_text(written, unit):
        return True
    if judgment is None or written not in judgment.casefold():
        return False
    end = judgment.rfind(_AFTER_OUTPUT)
    return _is_text(written, judgment[: end if end > 0 else None])


def _is_text(written: str, body: str) -> bool:
    texts = (text for text, colon in _TEXT.findall(body) if not colon)
    return written in "\n".join(texts).casefold()


def judgment_page(
    connection: sqlite3.Connection, run: str, browsed: Browsed, request: PageRequest
) -> JudgmentPage:
    """The judgments of a run that are wanted, from one place on. A unit that nobody has judged yet
    is a row without a judgment."""
    values = _values(browsed) | _numbers(connection, run)
    conditions = [_FILTERS[name] for name in _named(browsed)]
    sql, step = _BY_UNITS, _NEXT_UNIT
    if browsed.status == "pending":
        sql = _OPEN
    elif browsed.status == "failure" or browsed.reason:
        conditions.append("j.reason IS NOT NULL")
        if _few_failures(connection, values):
            sql, step = _BY_FAILURES, _NEXT_FAILURE
    if browsed.status in ("verdict", "left_out"):
        conditions.append("j.status=:status")
    reader = _Reader(connection, sql, step, values, request, is_deep=bool(_DEEP & _named(browsed)))
    sign, order = (">", "") if request.forward else ("<", " DESC")
    conditions.append(
        f"(m.position{sign}:unit OR m.position=:unit AND"
        f" (ifnull(j.judge, -1), ifnull(j.repeat, -1)){sign}(:from_judge, :from_repeat))"
    )
    rows, more, stopped = reader.page(
        conditions, f"m.position{order}, j.judge{order}, j.repeat{order}", request.place
    )
    judgments = [
        (StoredUnit(*row[:4]), None if row[4] is None else row_judgment(row[4:])) for row in rows
    ]
    return JudgmentPage(judgments, more, _on(stopped, request))


def _numbers(connection: sqlite3.Connection, run: str) -> dict[str, int | None]:
    """The numbers of a run and of its judging in the store; none of a run that is not there."""
    row = connection.execute("SELECT no, judging FROM runs WHERE id=?", (run,)).fetchone()
    return dict(zip(("run", "judging"), row or (None, None), strict=True))


_DENSE = 8
"""Where one judgment in so many has failed, failures are found quickly among all units."""


def _few_failures(connection: sqlite3.Connection, values: Mapping[str, Any]) -> bool:
    (units,) = connection.execute(
        "SELECT ifnull(MAX(position), 0) FROM run_units WHERE run=:run", values
    ).fetchone()
    (failed,) = connection.execute(
        f"SELECT COUNT(*) FROM judgments j INDEXED BY judgments_failed WHERE {_FAILED}", values
    ).fetchone()
    return bool(failed * _DENSE < units)


def _on(stopped: int | None, request: PageRequest) -> Cursor | None:
    """The place from which a search goes on: all judgments of the next unit are still to come."""
    if stopped is None:
        return None
    return Cursor(stopped, -2, -2) if request.forward else Cursor(stopped, _LAST, _LAST)


def _named(browsed: Browsed) -> set[str]:
    """The filters that are set."""
    return {name for name in _FILTERS if getattr(browsed, name) not in (None, "")}


def _values(browsed: Browsed) -> dict[str, Any]:
    names = ("status", "reason", "judge", "winner", "confidence", "flag", "candidate", "planned")
    values = {name: getattr(browsed, name) for name in (*names, "field", "value")}
    return values | {"letter": browsed.tag, "needle": browsed.text}


def call_page(
    connection: sqlite3.Connection, run: str, judge: str, text: str, request: PageRequest
) -> CallPage:
    """The calls that a run paid for, from one place on, in the order in which they came."""
    values = {"run": run, "judge_name": judge, "needle": text}
    sql = f"SELECT {LEDGER_CALL} FROM calls WHERE run=:run AND no BETWEEN :low AND :high"
    sign, order = (">", "") if request.forward else ("<", " DESC")
    conditions = [f"no{sign}:unit"]
    conditions += ["judge=:judge_name"] if judge else []
    conditions += ["has_text(:needle, reply, NULL, NULL)"] if text else []
    reader = _Reader(connection, sql, _NEXT_CALL, values, request, is_deep=bool(text))
    rows, more, stopped = reader.page(conditions, f"no{order}", request.place)
    if stopped is not None:
        stopped += -1 if request.forward else 1  # that call itself is still to come
    return CallPage([ledger_call(row) for row in rows], more, stopped)


def ledger_call(row: tuple[Any, ...]) -> LedgerCall:
    """The call of a row of LEDGER_CALL."""
    no, at, aside, stored, *columns = row
    call = row_call(tuple(columns))
    return LedgerCall(no, at, aside is not None, call, is_altered(columns, stored, at))


_RESTING = (
    f"SELECT u.id FROM run_units m CROSS JOIN judgments j ON {_OF_UNIT}"
    f" CROSS JOIN units u ON u.no=m.unit WHERE {_HERE} AND instr(j.body, :key) LIMIT 1"
)
_AROUND = 5_000


def unit_of_call(connection: sqlite3.Connection, run: str, call: LedgerCall) -> str | None:
    """The unit whose judgment rests on a call. Units are judged about in their order, so it is
    looked for first where the calls before this one end, then everywhere."""
    numbers = _numbers(connection, run)
    of_units = "SELECT MIN(position), MAX(position) FROM run_units WHERE run=:run"
    first, last = connection.execute(of_units, numbers).fetchone()
    if first is None:
        return None
    of_calls = "SELECT MIN(no), MAX(no) FROM calls WHERE run=?"
    lowest, highest = connection.execute(of_calls, (run,)).fetchone()
    share = (call.no - lowest) / max(1, highest - lowest)
    near = first + round(share * (last - first))
    for low, high in ((near - _AROUND, near + _AROUND), (first, last)):
        values = numbers | {"low": low, "high": high, "key": call.call.key}
        row = connection.execute(_RESTING, values).fetchone()
        if row:
            return str(row[0])
    return None


class _Reader:
    """One statement, run over a window of rows after the other until the page is full."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        sql: str,
        step: str,
        values: Mapping[str, Any],
        request: PageRequest,
        *,
        is_deep: bool,
    ) -> None:
        self._connection, self._sql, self._request = connection, sql, request
        self._step = step.format(*((">=", "ASC") if request.forward else ("<=", "DESC")))
        self._values = dict(values)
        # What is in columns of its own is read faster than what is in texts.
        self._windows = max(1, (request.reach if is_deep else 2 * request.reach) // request.window)

    def page(
        self, conditions: list[str], order: str, place: Cursor | None
    ) -> tuple[list[Any], bool, int | None]:
        """The rows in their order; whether there are more; and the number that the search would
        go on with, if it stopped before the page was full."""
        request = self._request
        start = place or (Cursor(0) if request.forward else Cursor(_MOST))
        where = "".join(f" AND {condition}" for condition in conditions)
        sql = f"{self._sql}{where} ORDER BY {order} LIMIT :limit"
        self._values |= {"unit": start.unit, "from_judge": start.judge, "from_repeat": start.repeat}
        rows: list[Any] = []
        at: int | None = start.unit
        for _ in range(self._windows):
            low, high, at = self._window(cast("int", at))
            limit = request.limit + 1 - len(rows)
            window = {"low": low, "high": high, "limit": limit}
            rows += self._connection.execute(sql, self._values | window).fetchall()
            if at is None or len(rows) > request.limit:
                break
        more = len(rows) > request.limit
        rows = rows[: request.limit]
        stopped = None if more else at
        return (rows if request.forward else rows[::-1]), more, stopped

    def _window(self, at: int) -> tuple[int, int, int | None]:
        """The bounds of the window that begins at `at`, and where the next one begins."""
        values = self._values | {"at": at, "step": self._request.window}
        row = self._connection.execute(self._step, values).fetchone()
        if self._request.forward:
            return at, row[0] - 1 if row else _MOST, row[0] if row else None
        return row[0] + 1 if row else 0, at, row[0] if row else None
