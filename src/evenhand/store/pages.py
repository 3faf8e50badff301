"""Pages of judgments, by keyset pagination.

A page is found by the row before it, never by counting rows, so the last page of a million is as
near as the first. A filter that looks into texts reads a bounded number of rows; the page then says
where to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from evenhand.jsontext import StoredText, as_text, stored_object
from evenhand.limits import PAGE_ROWS
from evenhand.observation import read_pass
from evenhand.store.ports import Browsed, Cursor, JudgmentPage, PageRequest, StoredUnit
from evenhand.store.rows import JUDGMENT, UNIT, row_judgment
from evenhand.store.session import Session

_NUMBER = "(SELECT no FROM runs WHERE id=:run)"
_OF_UNIT = "j.judging=(SELECT judging FROM runs WHERE id=:run) AND j.unit=m.unit"
_ROWS = (
    f"SELECT {UNIT}, {JUDGMENT} FROM run_units m LEFT JOIN judgments j ON {{}}"
    f" CROSS JOIN units u ON u.no=m.unit WHERE m.run={_NUMBER}"
)
_CONDITIONS = {
    "reason": "j.reason=:reason",
    "judge": "j.judge=:judge",
    "verdict": "j.status=:status",
    "failure": "j.status=:status",
    "left_out": "j.status=:status",
    "pending": f"(SELECT COUNT(*) FROM judgments j WHERE {_OF_UNIT}) < :planned",
}
"""Filters of columns, by their names; those of the status by its value."""
_AFTER = (
    "m.position>=:unit AND (m.position>:unit OR"
    " (coalesce(j.judge, -1), coalesce(j.repeat, -1))>(:from_judge, :from_repeat))"
    " ORDER BY m.position, j.judge, j.repeat LIMIT :limit"
)
_BEFORE = (
    "m.position<=:unit AND (m.position<:unit OR"
    " (coalesce(j.judge, -1), coalesce(j.repeat, -1))<(:from_judge, :from_repeat))"
    " ORDER BY m.position DESC, j.judge DESC, j.repeat DESC LIMIT :limit"
)
_END = 2**62
Predicate = Callable[[Any], bool]


def judgment_page(
    session: Session, run: str, browsed: Browsed, request: PageRequest
) -> JudgmentPage:
    """Return the wanted judgments of a run from one place on. A unit that nobody has judged yet is
    a row without a judgment."""
    values = {name: getattr(browsed, name) for name in ("status", "reason", "judge", "planned")}
    filters = [name for name in ("reason", "judge") if values[name] not in (None, "")]
    filters += [browsed.status] if browsed.status else []
    conditions = [_CONDITIONS[name] for name in filters]
    conditions.append(_AFTER if request.forward else _BEFORE)
    joined = "false" if browsed.status == "pending" else _OF_UNIT
    sql = f"{_ROWS.format(joined)} AND {' AND '.join(conditions)}"

    def read(place: Cursor, limit: int) -> list[Any]:
        unit, judge, repeat = place
        start = {"unit": unit, "from_judge": judge, "from_repeat": repeat, "limit": limit}
        return session.rows(sql, {"run": run, **values, **start})

    def place(row: Any) -> Cursor:
        return Cursor(row[1]) if row[4] is None else Cursor(row[1], row[5], row[6])

    rows, more, stopped = _fill(request, read, place, list(_predicates(browsed)))
    judgments = [
        (StoredUnit(*row[:4]), None if row[4] is None else row_judgment(row[4:])) for row in rows
    ]
    return JudgmentPage(judgments, more, stopped)


def _fill(
    request: PageRequest,
    read: Callable[[Cursor, int], list[Any]],
    place: Callable[[Any], Cursor],
    predicates: list[Predicate],
) -> tuple[list[Any], bool, Cursor | None]:
    """Return the rows of a page in their order; True if there are more; and the place of the last
    row that was read, if the search stopped before the page was full."""
    at = request.place or Cursor(0 if request.forward else _END)
    size = min(PAGE_ROWS, request.reach) if predicates else request.limit + 1
    rows: list[Any] = []
    stopped: Cursor | None = None
    left = request.reach
    while len(rows) <= request.limit:
        found = read(at, size)
        rows += [row for row in found if all(fits(row) for fits in predicates)]
        if len(found) < size:
            break
        at, left = place(found[-1]), left - size
        if predicates and left <= 0:
            stopped = at
            break
    more = len(rows) > request.limit
    rows = rows[: request.limit]
    return (rows if request.forward else rows[::-1]), more, None if more else stopped


_UNIT_ID, _UNIT_BODY, _JUDGMENT_BODY, _OBSERVATIONS = 2, 3, 10, 11
"""The indexes of texts in a row of a unit and its judgment."""
_judgment: StoredText[dict[str, Any]] = StoredText(dict[str, Any], "a judgment")
_unit: StoredText[dict[str, Any]] = StoredText(dict[str, Any], "a unit")


def _predicates(browsed: Browsed) -> Iterator[Predicate]:
    """Yield the filters that look into the texts of a unit and its judgment."""
    if browsed.winner or browsed.confidence or browsed.tag or browsed.flag:
        yield (
            lambda row: row[_JUDGMENT_BODY] is not None and _is_wanted(browsed, row[_JUDGMENT_BODY])
        )
    if browsed.passed:
        yield (
            lambda row: (
                row[_OBSERVATIONS] is not None
                and read_pass(row[_OBSERVATIONS]) is (browsed.passed == "true")
            )
        )
    if wanted := {browsed.candidate, browsed.opponent} - {""}:
        yield (
            lambda row: (
                wanted
                <= {
                    candidate.get("id")
                    for candidate in _unit.read(row[_UNIT_BODY]).get("candidates", ())
                }
            )
        )
    if browsed.field:
        yield lambda row: _has_field(row[_UNIT_BODY], browsed.field, browsed.value)
    if browsed.text:
        yield lambda row: _has_text(
            browsed.text, row[_UNIT_ID], row[_UNIT_BODY], row[_JUDGMENT_BODY]
        )


def _is_wanted(browsed: Browsed, body: str) -> bool:
    judgment = _judgment.read(body)
    output = judgment.get("output") or {}
    parts = [judgment, *judgment.get("passes", ())]
    flags = [flag for part in parts for flag in part.get("flags", ())]
    return (
        (not browsed.winner or output.get("winner") == browsed.winner)
        and (not browsed.confidence or output.get("confidence") == browsed.confidence)
        and (not browsed.tag or browsed.tag in (output.get("failure_tags") or ()))
        # Of a flag with details, such as `masked:2`, the name is asked for.
        and (not browsed.flag or browsed.flag in {flag.partition(":")[0] for flag in flags})
    )


def _has_field(body: str, name: str, value: str) -> bool:
    """Return True if a unit's meta field has a value: a text as it is, all else as JSON."""
    meta = stored_object(body, "a unit").get("meta") or {}
    return name in meta and as_text(meta[name]) == value


def _has_text(needle: str, ident: str, unit: str, judgment: str | None) -> bool:
    """Return True if a unit's id, its texts or a judgment's own words hold a text."""
    words = [ident, *_unit.read(unit).values()]
    if judgment is not None:
        read = _judgment.read(judgment)
        words += [read.get(name) for name in ("output", "detail", "evidence")]
    return _holds(needle, words)


def _holds(needle: str, value: Any) -> bool:
    """Return True if a text, or one within lists and objects, holds another; the case of letters
    does not matter, and keys are no text."""
    if isinstance(value, str):
        return needle.casefold() in value.casefold()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(needle, item) for item in inner)
