"""Judgments read back from the store, in the forms that commands, exports and reports need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from evenhand.engine.run import BASIS, JudgeGroup, group_names
from evenhand.judgment import Judgment
from evenhand.kinds.pairwise.table import header, line
from evenhand.kinds.pairwise.unit import load_pair
from evenhand.kinds.weighted.unit import load_answer
from evenhand.ledger.store import Scope, Store, StoredJudgment, StoredUnit
from evenhand.runs.prepare import Recorded
from evenhand.stats.pairwise import (
    Front,
    Judged,
    PairFigures,
    pair_figures,
    panel_marks,
    panel_winner,
)


def score_values(store: Store, scope: Scope) -> dict[tuple[str, str], list[float]]:
    """All scores of a scope by (prompt variant, dimension)."""
    found: dict[tuple[str, str], list[float]] = {}
    for _, stored in store.judgments(scope, BASIS):
        output = stored.judgment.output
        if output is None:
            continue
        variant = str(output["meta"].get("prompt_variant", ""))
        for dimension, given in output["scores"].items():
            found.setdefault((variant, dimension), []).append(given["score"])
    return found


def grades(store: Store, scope: Scope) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """All grades of a scope by (model, task type)."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for unit, stored in store.judgments(scope, BASIS):
        output = stored.judgment.output
        if output is not None:
            model = str(load_answer(unit.body).meta.get("model", ""))
            found.setdefault((model, output["task_type"] or ""), []).append(output)
    return found


def judged_pairs(
    store: Store, scope: Scope, judge_groups: Sequence[JudgeGroup], unit: str | None = None
) -> Iterator[Judged]:
    """Every pair of a scope with all its judgments; one of them, if it is named."""
    names = group_names(judge_groups)
    found = store.judgments(scope, BASIS, unit)
    for _, group in groupby(found, key=lambda one: one[0].no):
        judgments = list(group)
        pair = load_pair(judgments[0][0].body)
        yield Judged(
            pair.row,
            pair.places,
            pair.of,
            (pair.first.id, pair.second.id),
            [(names[stored.judge], stored.judgment) for _, stored in judgments],
        )


def figures_of_pairs(store: Store, scope: Scope, judge_groups: Sequence[JudgeGroup]) -> PairFigures:
    """Wins, consistency and fronts of a scope of pairs."""
    pairs = judged_pairs(store, scope, judge_groups)
    return pair_figures(pairs, by_judge=len(judge_groups) > 1)


def verdict_lines(store: Store, recorded: Recorded) -> Iterator[str]:
    """The verdict table, one line a pair: what the majority says where several judged it."""
    criteria = recorded.criteria
    yield header(criteria)
    for pair in judged_pairs(store, Scope(recorded.row.id), recorded.judge_groups):
        if not (verdicts := pair.verdicts):
            continue
        notes = verdicts[0]["notes"] if len(verdicts) == 1 else ""
        yield line(verdicts[0]["pair_id"], panel_winner(pair), panel_marks(pair, criteria), notes)


def fronts_of(store: Store, recorded: Recorded) -> dict[str, Front]:
    """The fronts of every topic with more than two candidates."""
    return figures_of_pairs(store, Scope(recorded.row.id), recorded.judge_groups).fronts


def failure_details(store: Store, scope: Scope) -> dict[str, str]:
    """What the first failure of each reason says."""
    found: dict[str, str] = {}
    for _, stored in store.judgments(scope, BASIS):
        if stored.judgment.reason is not None:
            found.setdefault(stored.judgment.reason, stored.judgment.detail)
    return found


def contract_objects(
    store: Store, recorded: Recorded, wanted: Wanted = lambda judgment: True
) -> Iterator[Mapping[str, Any]]:
    """The contract's own objects of all verdicts. A pair that several judged has several, each with
    its judge's name; the forms of the other kinds are closed."""
    several = recorded.kind_name == "pairwise" and recorded.judgments_per_unit > 1
    for _, stored in store.judgments(Scope(recorded.row.id), BASIS):
        if stored.judgment.output is None or not wanted(stored.judgment):
            continue
        by = {"judge": full_name(recorded, stored), "repeat": stored.repeat} if several else {}
        yield {**stored.judgment.output, **by}


def full_rows(
    store: Store, recorded: Recorded, wanted: Wanted = lambda judgment: True
) -> Iterator[Mapping[str, Any]]:
    """Everything known about every judgment, failures included."""
    for unit, stored in store.judgments(Scope(recorded.row.id), BASIS):
        if wanted(stored.judgment):
            yield full_row(recorded, unit, stored)


Wanted = Callable[[Judgment], bool]


def full_name(recorded: Recorded, stored: StoredJudgment) -> str:
    """Who judged."""
    return recorded.names[stored.judge]


def full_row(recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> dict[str, Any]:
    """One judgment as `export --full` writes it."""
    judgment = stored.judgment
    return {
        "unit": unit.id,
        "judge": full_name(recorded, stored),
        "repeat": stored.repeat,
        "status": judgment.status,
        "reason": judgment.reason,
        "detail": judgment.detail,
        "output": judgment.output,
        "evidence": [asdict(evidence) for evidence in judgment.evidence],
        "passes": list(judgment.passes),
        "fixes": [asdict(fix) for fix in judgment.fixes],
        "flags": list(judgment.flags),
        "calls": list(stored.calls),
    }
