"""Judgments read back from the store, in the forms that commands, exports and reports need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from evenhand.judgment import Verdict
from evenhand.kinds.kind import Kind, Voting
from evenhand.report.html.units import JudgedRow
from evenhand.report.terminal.tables import FailureDetail
from evenhand.results.only import Selector
from evenhand.results.questions import question_of
from evenhand.runs.recorded import Recorded
from evenhand.store.ports import Archive, Scope, StoredJudgment, StoredUnit


def verdicts_of(kind: Kind, store: Archive, scope: Scope) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of a scope, each with the text of its unit."""
    for unit, stored in store.judgments(scope):
        judgment = kind.read_judgment(stored.text)
        if isinstance(judgment, Verdict):
            yield unit.body, judgment


def failure_details(store: Archive, scope: Scope, kind: Kind) -> dict[str, FailureDetail]:
    """What the first failure of each reason says, and whether others say otherwise."""
    details: dict[str, str] = {}
    varied: set[str] = set()
    for _, stored in store.judgments(scope):
        reason = stored.text.reason
        if reason is None or reason in varied:
            continue
        detail = kind.read_judgment(stored.text).detail
        if details.setdefault(reason, detail) != detail:
            varied.add(reason)
    return {
        reason: FailureDetail(detail, is_instance=reason in varied)
        for reason, detail in details.items()
    }


def contract_objects(
    store: Archive,
    recorded: Recorded,
    is_wanted: Selector = lambda judgment: True,
    *,
    with_unit: bool = False,
) -> Iterator[Mapping[str, Any]]:
    """The contract's own objects of all verdicts, with the id of the unit before them if that is
    wanted. A pair that several judged has several, each with its judge's name; the forms of the
    other kinds are closed."""
    several = isinstance(recorded.kind.measure, Voting) and recorded.judgments_per_unit > 1
    for unit, stored in store.judgments(recorded.scope):
        judgment = recorded.judgment(stored)
        if judgment.output is None or not is_wanted(judgment):
            continue
        by = {"judge": full_name(recorded, stored), "repeat": stored.repeat} if several else {}
        yield {**({"unit": unit.id} if with_unit else {}), **judgment.output, **by}


def namesakes(store: Archive, recorded: Recorded) -> int:
    """How many units the contract's own objects call by a name that others have too."""
    if recorded.imported:
        return 0
    names: Counter[str] = Counter()
    for unit in store.units(recorded.scope):
        names.update(recorded.kind.unit_keys(recorded.kind.load(unit.body))[:1])
    return sum(number for number in names.values() if number > 1)


def full_rows(
    store: Archive, recorded: Recorded, is_wanted: Selector = lambda judgment: True
) -> Iterator[Mapping[str, Any]]:
    """Everything known about every judgment, failures included, and the question it is about: the
    id of a unit may be a hash of that."""
    for unit, stored in store.judgments(recorded.scope):
        if is_wanted(recorded.judgment(stored)):
            yield full_row(recorded, unit, stored)


def with_pass_columns(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Full rows for a table, where a list is one cell of JSON: what each order of each round said
    stands in columns of its own too, `pass.<round>.<order>`."""
    for row in rows:
        rounds: dict[str, dict[str, Any]] = {}
        for judged_pass in row["passes"]:
            if "criteria" in judged_pass:
                rounds.setdefault(str(judged_pass["round"]), {})[judged_pass["order"]] = {
                    name: judged_pass.get(name) for name in ("winner", "criteria", "explanation")
                }
        yield {**row, "pass": rounds} if rounds else row


def full_name(recorded: Recorded, stored: StoredJudgment) -> str:
    """Who judged."""
    return recorded.names[stored.judge]


def full_row(recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> dict[str, Any]:
    """One judgment as `export --full` writes it."""
    return asked_row(recorded, unit, stored).row


def asked_row(recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> JudgedRow:
    """A judgment, and the same as `export --full` writes it, with what was asked."""
    judgment, row = judged_row(recorded, unit, stored)
    question = question_of(recorded.kind.present(recorded.kind.load(unit.body), []).unit)
    return JudgedRow(judgment, row | {"question": question})


def judged_row(recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> JudgedRow:
    """A judgment, and the same as `export --full` writes it but for the question, which stands
    with the unit where units are shown."""
    judgment = recorded.judgment(stored)
    row: dict[str, Any] = {
        "unit": unit.id,
        "judge": full_name(recorded, stored),
        "repeat": stored.repeat,
        "status": judgment.status,
        "reason": judgment.reason,
        "detail": judgment.detail,
        "output": judgment.output,
        "evidence": [asdict(evidence) for evidence in judgment.evidence],
        "passes": [judged_pass.json() for judged_pass in judgment.passes],
        "fixes": [asdict(fix) for fix in judgment.fixes],
        "flags": list(judgment.flags),
        "calls": list(stored.calls),
    }
    return JudgedRow(judgment, row)
