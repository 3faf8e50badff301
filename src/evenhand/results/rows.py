"""Judgments read back from the store, in the forms that commands, exports and reports need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from msgspec import to_builtins
from msgspec.structs import asdict

from evenhand.engine.group import JudgeGroup, group_names
from evenhand.judgment import Judgment, Verdict, VerdictValue
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Kind
from evenhand.kinds.pairwise.measure import voted
from evenhand.kinds.pairwise.table import header, line
from evenhand.kinds.pairwise.unit import load_pair
from evenhand.kinds.pairwise.verdict import READER as PAIRS
from evenhand.kinds.pairwise.verdict import PairVerdict
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.kinds.weighted.unit import load_answer
from evenhand.kinds.weighted.verdict import Grade
from evenhand.ledger.ports import Archive, Scope, StoredJudgment, StoredUnit
from evenhand.measures import Rule
from evenhand.runs.recorded import Recorded
from evenhand.stats.pairwise import (
    Front,
    Judged,
    PairFigures,
    pair_figures,
    panel_marks,
    panel_winner,
    under,
)


def score_values(store: Archive, scope: Scope) -> dict[tuple[str, str], list[float]]:
    """All scores of a scope by (prompt variant, dimension)."""
    values: dict[tuple[str, str], list[float]] = {}
    for verdict in _values(store, scope, KINDS["rubric"], RubricVerdict):
        variant = str(verdict.meta.get("prompt_variant", ""))
        for dimension, given in verdict.scores.items():
            values.setdefault((variant, dimension), []).append(given.score)
    return values


V = TypeVar("V", bound=VerdictValue)


def _values(store: Archive, scope: Scope, kind: Kind, wanted: type[V]) -> Iterator[V]:
    """What the verdicts of a scope say."""
    for _, stored in store.judgments(scope):
        judgment = kind.read_judgment(stored.text)
        if isinstance(judgment, Verdict) and isinstance(judgment.value, wanted):
            yield judgment.value


def grades(store: Archive, scope: Scope) -> dict[tuple[str, str], list[Grade]]:
    """All grades of a scope by (model, task type)."""
    groups: dict[tuple[str, str], list[Grade]] = {}
    for unit, stored in store.judgments(scope):
        judgment = KINDS["weighted"].read_judgment(stored.text)
        if isinstance(judgment, Verdict) and isinstance(judgment.value, Grade):
            model = str(load_answer(unit.body).meta.get("model", ""))
            groups.setdefault((model, judgment.value.task_type or ""), []).append(judgment.value)
    return groups


class _PairPlace(msgspec.Struct):
    """Of a pair's text, which row it is of, and which of the row's candidates it holds."""

    row: str
    places: tuple[int, int]


_places = msgspec.json.Decoder(_PairPlace)


def row_sizes(store: Archive, run: str) -> dict[str, int]:
    """How many candidates each row of a run of pairs has, judged or not."""
    sizes: dict[str, int] = {}
    for unit in store.units(Scope(run)):
        pair = _places.decode(unit.body)
        sizes[pair.row] = max(sizes.get(pair.row, 2), *pair.places)
    return sizes


def judged_pairs(
    store: Archive,
    scope: Scope,
    judge_groups: Sequence[JudgeGroup],
    rule: Rule,
    unit: str | None = None,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Judged]:
    """Every pair of a scope with all its judgments under the rule for conflicts; one of them, if it
    is named. `sizes` are those of the rows, for whoever needs them."""
    for _, _, pair in _judged_pairs(store, scope, judge_groups, rule, unit, sizes):
        yield pair


def _judged_pairs(
    store: Archive,
    scope: Scope,
    judge_groups: Sequence[JudgeGroup],
    rule: Rule,
    unit: str | None = None,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[tuple[str, list[Judgment], Judged]]:
    """The same with the ids of the pairs and the judgments themselves."""
    names = group_names(judge_groups)
    rows = store.judgments(scope, unit)
    for _, group in groupby(rows, key=lambda row: row[0].no):
        units, kept = zip(*group, strict=True)
        pair, judgments = load_pair(units[0].body), [PAIRS.read(stored.text) for stored in kept]
        votes = [
            (names[stored.judge], under(rule, voted(judgment)))
            for stored, judgment in zip(kept, judgments, strict=True)
        ]
        candidates, size = (pair.first.id, pair.second.id), sizes.get(pair.row, 2)
        yield pair.id, judgments, Judged(pair.row, pair.places, size, candidates, votes)


def figures_of_pairs(
    store: Archive, scope: Scope, judge_groups: Sequence[JudgeGroup], rule: Rule = "uncertain"
) -> PairFigures:
    """Wins, consistency and fronts of a scope of pairs, under the rule for conflicts."""
    pairs = judged_pairs(store, scope, judge_groups, rule, sizes=row_sizes(store, scope.run))
    return pair_figures(pairs, by_judge=len(judge_groups) > 1)


def verdict_lines(store: Archive, recorded: Recorded) -> Iterator[str]:
    """The verdict table, one line a pair: what the majority says where several judged it."""
    criteria, scope = recorded.criteria, recorded.scope
    yield header(criteria)
    for name, judgments, pair in _judged_pairs(store, scope, recorded.judge_groups, "uncertain"):
        values = [one.value for one in judgments if isinstance(one, Verdict)]
        verdicts = [value for value in values if isinstance(value, PairVerdict)]
        if verdicts:
            notes = verdicts[0].notes if len(verdicts) == 1 else ""
            yield line(name, panel_winner(pair), panel_marks(pair, criteria), notes)


def fronts_of(store: Archive, recorded: Recorded, rule: Rule) -> dict[str, Front]:
    """The fronts of every topic with more than two candidates."""
    return figures_of_pairs(store, recorded.scope, recorded.judge_groups, rule).fronts


def failure_details(store: Archive, scope: Scope, kind: Kind) -> dict[str, str]:
    """What the first failure of each reason says."""
    details: dict[str, str] = {}
    for _, stored in store.judgments(scope):
        if stored.text.reason is not None and stored.text.reason not in details:
            details[stored.text.reason] = kind.read_judgment(stored.text).detail
    return details


def contract_objects(
    store: Archive, recorded: Recorded, wanted: Wanted = lambda judgment: True
) -> Iterator[Mapping[str, Any]]:
    """The contract's own objects of all verdicts. A pair that several judged has several, each with
    its judge's name; the forms of the other kinds are closed."""
    several = recorded.kind_name == "pairwise" and recorded.judgments_per_unit > 1
    for _, stored in store.judgments(recorded.scope):
        judgment = recorded.judgment(stored)
        if judgment.output is None or not wanted(judgment):
            continue
        by = {"judge": full_name(recorded, stored), "repeat": stored.repeat} if several else {}
        yield {**judgment.output, **by}


def full_rows(
    store: Archive, recorded: Recorded, wanted: Wanted = lambda judgment: True
) -> Iterator[Mapping[str, Any]]:
    """Everything known about every judgment, failures included."""
    for unit, stored in store.judgments(recorded.scope):
        if wanted(recorded.judgment(stored)):
            yield full_row(recorded, unit, stored)


Wanted = Callable[[Judgment], bool]


def full_name(recorded: Recorded, stored: StoredJudgment) -> str:
    """Who judged."""
    return recorded.names[stored.judge]


def full_row(recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> dict[str, Any]:
    """One judgment as `export --full` writes it."""
    judgment = recorded.judgment(stored)
    return {
        "unit": unit.id,
        "judge": full_name(recorded, stored),
        "repeat": stored.repeat,
        "status": judgment.status,
        "reason": judgment.reason,
        "detail": judgment.detail,
        "output": judgment.output,
        "evidence": [asdict(evidence) for evidence in judgment.evidence],
        "passes": [to_builtins(one) for one in judgment.passes],
        "fixes": [asdict(fix) for fix in judgment.fixes],
        "flags": list(judgment.flags),
        "calls": list(stored.calls),
    }
