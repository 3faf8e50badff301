"""What is still to be judged of a run, and failures that are to be judged again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evenhand.limits import PAGE_ROWS
from evenhand.store.codec import row_judgment
from evenhand.store.ports import Scope, StoredJudgment, StoredUnit
from evenhand.store.sql.archive import in_scope, scope_values
from evenhand.store.sql.browse import JUDGMENT, UNIT
from evenhand.store.sql.session import Session, bindings, bound

FORGET = "DELETE FROM judgments WHERE judging=? AND unit=? AND judge=? AND repeat=?"
_SET_ASIDE = "UPDATE calls SET aside=? WHERE key=? AND aside IS NULL"
_FAILED = (
    f"SELECT {JUDGMENT} FROM run_units m CROSS JOIN judgments j"
    " ON j.judging=:judging AND j.unit=m.unit WHERE {} AND j.reason NOT IN ({})"
)
_OPEN = (
    f"SELECT {UNIT} FROM run_units m LEFT JOIN judgments j"
    " ON j.judging=:judging AND j.unit=m.unit AND j.judge=:judge AND j.repeat=:repeat"
    " CROSS JOIN units u ON u.no=m.unit"
    " WHERE {} AND m.position>:after AND (j.unit IS NULL OR j.reason IN ({}))"
    f" ORDER BY m.position LIMIT {PAGE_ROWS}"
)


def judging_number(session: Session, run: str) -> int:
    """The number of a run's judging."""
    [(number,)] = session.rows("SELECT judging FROM runs WHERE id=:run", {"run": run})
    return int(number)


def open_units(
    session: Session, scope: Scope, judging: int, judge: int, repeat: int, again: Sequence[str]
) -> Callable[[int], list[StoredUnit]]:
    """A function from a position to the open units after it."""
    sql = _OPEN.format(in_scope(session, scope), bound("again", again))
    values = scope_values(session, scope) | bindings("again", again)
    values |= {"judging": judging, "judge": judge, "repeat": repeat}
    return lambda after: [
        StoredUnit._make(row) for row in session.rows(sql, values | {"after": after})
    ]


def set_aside(
    session: Session,
    scope: Scope,
    judging: int,
    kept: Sequence[str],
    bad_tries: Callable[[StoredJudgment], Iterable[str]],
    at: str,
) -> None:
    """Make failures pending whose reason is not one of `kept`, inside a transaction."""
    sql = _FAILED.format(in_scope(session, scope), bound("kept", kept))
    values = scope_values(session, scope) | bindings("kept", kept) | {"judging": judging}
    failures = [row_judgment(tuple(row)) for row in session.rows(sql, values)]
    keys = sorted({key for failure in failures for key in bad_tries(failure)})
    session.write(_SET_ASIDE, [(at, key) for key in keys])
    session.write(FORGET, [(judging, *failure[:3]) for failure in failures])
