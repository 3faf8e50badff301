"""Pages of judgments and of calls: found by the database, filtered by it or by their texts.

A page is found by the place of the row before it, never by counting rows, so the last page of a
million is as near as the first. A filter that looks into texts looks at a bounded number of rows at
a time; the page then says where to look on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from evenhand import jsontext
from evenhand.limits import PAGE_ROWS
from evenhand.store.ports import (
    Browsed,
    CallPage,
    Cursor,
    JudgmentPage,
    LedgerCall,
    PageRequest,
    StoredUnit,
)
from evenhand.store.rows import JUDGMENT, LEDGER_CALL, UNIT, ledger_call, row_judgment
from evenhand.store.session import Session

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

_CONDITIONS = {"reason": "j.reason=:reason", "judge": "j.judge=:judge"}
"""Columns, which the database filters by."""
_MOST, _LAST = 2**62, 2**31


def judgment_page(
    session: Session, run: str, browsed: Browsed, request: PageRequest
) -> JudgmentPage:
    """Return the wanted judgments of a run from one place on. A unit that nobody has judged yet is
    a row without a judgment."""
    values = _values(browsed) | _numbers(session, run)
    conditions = [sql for name, sql in _CONDITIONS.items() if _is_set(browsed, name)]
    sql, step = _BY_UNITS, _NEXT_UNIT
    if browsed.status == "pending":
        sql = _OPEN
    elif browsed.status == "failure" or browsed.reason:
        conditions.append("j.reason IS NOT NULL")
        if _few_failures(session, values):
            sql, step = _BY_FAILURES, _NEXT_FAILURE
    if browsed.status in ("verdict", "left_out"):
        conditions.append("j.status=:status")
    reader = _Reader(session, sql, step, values, request, judgment_filter(browsed))
    sign, order = (">", "") if request.forward else ("<", " DESC")
    conditions.append(
        f"(m.position{sign}:unit OR m.position=:unit AND"
        f" (coalesce(j.judge, -1), coalesce(j.repeat, -1)){sign}(:from_judge, :from_repeat))"
    )
    rows, more, stopped = reader.page(
        conditions, f"m.position{order}, j.judge{order}, j.repeat{order}", request.place
    )
    judgments = [
        (StoredUnit(*row[:4]), None if row[4] is None else row_judgment(row[4:])) for row in rows
    ]
    return JudgmentPage(judgments, more, _on(stopped, request))


def _numbers(session: Session, run: str) -> dict[str, int | None]:
    """Return the numbers of a run and of its judging; None for a run that is not there."""
    rows = session.rows("SELECT no, judging FROM runs WHERE id=:run", {"run": run})
    return dict(zip(("run", "judging"), rows[0] if rows else (None, None), strict=True))


_DENSE = 8
"""If one judgment in so many has failed, failures are found quickly among all units."""


def _few_failures(session: Session, values: Mapping[str, Any]) -> bool:
    last = "SELECT coalesce(MAX(position), 0) FROM run_units WHERE run=:run"
    [(units,)] = session.rows(last, values)
    count = f"SELECT COUNT(*) FROM judgments j INDEXED BY judgments_failed WHERE {_FAILED}"
    [(failed,)] = session.rows(count, values)
    return bool(failed * _DENSE < units)


def _on(stopped: int | None, request: PageRequest) -> Cursor | None:
    """Return the place where a search goes on: all judgments of the next unit are still to come."""
    if stopped is None:
        return None
    return Cursor(stopped, -2, -2) if request.forward else Cursor(stopped, _LAST, _LAST)


def _is_set(browsed: Browsed, name: str) -> bool:
    return getattr(browsed, name) not in (None, "")


def _values(browsed: Browsed) -> dict[str, Any]:
    return {name: getattr(browsed, name) for name in ("status", "reason", "judge", "planned")}


def call_page(session: Session, run: str, judge: str, text: str, request: PageRequest) -> CallPage:
    """Return the calls that a run paid for, from one place on, in the order of their coming."""
    values = {"run": run, "judge_name": judge}
    sql = f"SELECT {LEDGER_CALL} FROM calls WHERE run=:run AND no BETWEEN :low AND :high"
    sign, order = (">", "") if request.forward else ("<", " DESC")
    conditions = [f"no{sign}:unit"]
    conditions += ["judge=:judge_name"] if judge else []
    fits = (lambda row: has_text(text, row[_REPLY])) if text else None
    reader = _Reader(session, sql, _NEXT_CALL, values, request, fits)
    rows, more, stopped = reader.page(conditions, f"no{order}", request.place)
    if stopped is not None:
        stopped += -1 if request.forward else 1  # that call itself is still to come
    return CallPage([ledger_call(row) for row in rows], more, stopped)


_REPLY = LEDGER_CALL.split(", ").index("reply")
_RESTING = (
    f"SELECT u.id FROM run_units m CROSS JOIN judgments j ON {_OF_UNIT}"
    f" CROSS JOIN units u ON u.no=m.unit WHERE {_HERE} AND instr(j.body, :key) > 0 LIMIT 1"
)
_AROUND = 5_000


def unit_of_call(session: Session, run: str, call: LedgerCall) -> str | None:
    """Return the id of the unit whose judgment rests on a call. Units are judged about in their
    order, so it is looked for first near the same share of the units, then everywhere."""
    numbers = _numbers(session, run)
    of_units = "SELECT MIN(position), MAX(position) FROM run_units WHERE run=:run"
    [(first, last)] = session.rows(of_units, numbers)
    if first is None:
        return None
    of_calls = "SELECT MIN(no), MAX(no) FROM calls WHERE run=:run"
    [(lowest, highest)] = session.rows(of_calls, {"run": run})
    share = (call.no - lowest) / max(1, highest - lowest)
    near = first + round(share * (last - first))
    for low, high in ((near - _AROUND, near + _AROUND), (first, last)):
        values = numbers | {"low": low, "high": high, "key": call.call.key}
        for (ident,) in session.rows(_RESTING, values):
            return str(ident)
    return None


class _Reader:
    """One statement, run over a window of rows after the other until the page is full. `fits` looks
    into the texts of a row."""

    def __init__(
        self,
        session: Session,
        sql: str,
        step: str,
        values: Mapping[str, Any],
        request: PageRequest,
        fits: Callable[[Any], bool] | None,
    ) -> None:
        self._session, self._sql, self._request, self._fits = session, sql, request, fits
        self._step = step.format(*((">=", "ASC") if request.forward else ("<=", "DESC")))
        self._values = dict(values)
        # What is looked into has to come here: less at a time, for a page is often soon full.
        self._window_rows = min(request.window, PAGE_ROWS) if fits else request.window
        # What is in columns of its own is read faster than what is in texts.
        reach = request.reach if fits else 2 * request.reach
        self._windows = max(1, reach // self._window_rows)

    def page(
        self, conditions: list[str], order: str, place: Cursor | None
    ) -> tuple[list[Any], bool, int | None]:
        """Return the rows in their order; True if there are more; and the number that the search
        would go on with, if it stopped before the page was full."""
        request = self._request
        start = place or (Cursor(0) if request.forward else Cursor(_MOST))
        where = "".join(f" AND {condition}" for condition in conditions)
        sql = f"{self._sql}{where} ORDER BY {order}"
        self._values |= {"unit": start.unit, "from_judge": start.judge, "from_repeat": start.repeat}
        rows: list[Any] = []
        at: int | None = start.unit
        for _ in range(self._windows):
            low, high, at = self._window(cast("int", at))
            rows += self._rows(sql, {"low": low, "high": high}, request.limit + 1 - len(rows))
            if at is None or len(rows) > request.limit:
                break
        more = len(rows) > request.limit
        rows = rows[: request.limit]
        stopped = None if more else at
        return (rows if request.forward else rows[::-1]), more, stopped

    def _rows(self, sql: str, window: Mapping[str, int], most: int) -> list[Any]:
        """Return the rows of a window, as many as are needed."""
        if self._fits is None:
            limited = {**self._values, **window, "limit": most}
            return self._session.rows(f"{sql} LIMIT :limit", limited)
        rows = self._session.rows(sql, {**self._values, **window})
        return list(islice(filter(self._fits, rows), most))

    def _window(self, at: int) -> tuple[int, int, int | None]:
        """Return the bounds of the window that begins at `at`, and where the next one begins."""
        values = self._values | {"at": at, "step": self._window_rows}
        rows = self._session.rows(self._step, values)
        row = rows[0] if rows else None
        if self._request.forward:
            return at, row[0] - 1 if row else _MOST, row[0] if row else None
        return row[0] + 1 if row else 0, at, row[0] if row else None


_UNIT_ID, _UNIT_BODY, _JUDGMENT_BODY = 2, 3, 10
"""The indexes of texts in a row of a unit and its judgment."""
Predicate = Callable[[Any], bool]


class _Output(Struct):
    """The fields of a verdict that filters ask for."""

    winner: Any = None
    confidence: Any = None
    failure_tags: Any = None


class _Pass(Struct):
    flags: list[str] = []


class _Judgment(Struct):
    output: _Output | None = None
    flags: list[str] = []
    passes: list[_Pass] = []


class _Candidate(Struct):
    id: Any = None


class _Unit(Struct):
    candidates: list[_Candidate] = []
    meta: dict[str, Raw] | None = None


_judgment = msgspec.json.Decoder(_Judgment)
_unit = msgspec.json.Decoder(_Unit)


def judgment_filter(browsed: Browsed) -> Predicate | None:
    """Return a predicate of a row of a unit and its judgment that looks into their texts; None if
    no text is asked for."""
    predicates = list(_predicates(browsed))
    if not predicates:
        return None
    return lambda row: all(fits(row) for fits in predicates)


def _predicates(browsed: Browsed) -> Iterator[Predicate]:
    if browsed.winner or browsed.confidence or browsed.tag or browsed.flag:
        yield lambda row: _is_wanted_judgment(browsed, row[_JUDGMENT_BODY])
    if browsed.candidate or browsed.field:
        yield lambda row: _is_wanted_unit(browsed, row[_UNIT_BODY])
    if browsed.text:
        yield lambda row: has_text(
            browsed.text, row[_UNIT_ID], row[_UNIT_BODY], row[_JUDGMENT_BODY]
        )


def _is_wanted_judgment(browsed: Browsed, body: str | None) -> bool:
    try:
        judgment = _judgment.decode(body) if body is not None else None
    except ValueError:
        return False
    if judgment is None:
        return False
    output = judgment.output or _Output()
    tags = output.failure_tags if isinstance(output.failure_tags, list) else ()
    return (
        (not browsed.winner or output.winner == browsed.winner)
        and (not browsed.confidence or output.confidence == browsed.confidence)
        and (not browsed.tag or browsed.tag in tags)
        and (not browsed.flag or _has_flag(judgment, browsed.flag))
    )


def _has_flag(judgment: _Judgment, flag: str) -> bool:
    """Return True if a judgment or one of its passes has a flag, whatever follows its colon."""
    flags = [*judgment.flags, *(name for one in judgment.passes for name in one.flags)]
    return any(name == flag or name.startswith(f"{flag}:") for name in flags)


def _is_wanted_unit(browsed: Browsed, body: str) -> bool:
    try:
        unit = _unit.decode(body)
    except ValueError:
        return False
    if browsed.candidate and all(item.id != browsed.candidate for item in unit.candidates):
        return False
    if not browsed.field:
        return True
    value = (unit.meta or {}).get(browsed.field)
    return value is not None and browsed.value in _spellings(bytes(value).decode())


def _spellings(value: str) -> set[str]:
    """Return the forms in which a value may be asked for: a text as it is, all else as JSON."""
    if value.startswith('"'):
        return {msgspec.json.decode(value, type=str)}
    return {value, jsontext.compact(jsontext.loads_trusted(value))}


_TEXT = re.compile(r'"((?:[^"\\]++|\\.)*+)"(:?)')
"""A text in a JSON body, and the colon that makes it a key."""
_AFTER_OUTPUT = ',"fixes":['
"""The end of a judgment's own words: codes follow, and the passes that led to them."""


def has_text(needle: str, name: str, unit: str | None = None, judgment: str | None = None) -> bool:
    """Return True if a name, or a text of the two JSON bodies, holds the needle; the case of
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
