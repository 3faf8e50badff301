"""Judgments read back from the store, in the forms that commands, exports and reports need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from evenhand.app import Recorded
from evenhand.engine.run import BASIS
from evenhand.ledger.store import Scope, Store, StoredJudgment, StoredUnit


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


def failure_details(store: Store, scope: Scope) -> dict[str, str]:
    """What the first failure of each reason says."""
    found: dict[str, str] = {}
    for _, stored in store.judgments(scope, BASIS):
        if stored.judgment.reason is not None:
            found.setdefault(stored.judgment.reason, stored.judgment.detail)
    return found


def contract_objects(store: Store, run: str) -> Iterator[Mapping[str, Any]]:
    """The contract's own objects of all verdicts."""
    for _, stored in store.judgments(Scope(run), BASIS):
        if stored.judgment.output is not None:
            yield stored.judgment.output


def full_rows(store: Store, recorded: Recorded) -> Iterator[Mapping[str, Any]]:
    """Everything known about every judgment, failures included."""
    for unit, stored in store.judgments(Scope(recorded.row.id), BASIS):
        yield full_row(recorded, unit, stored)


def full_row(recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> dict[str, Any]:
    """One judgment as `export --full` writes it."""
    judgment = stored.judgment
    return {
        "unit": unit.id,
        "judge": recorded.judges[stored.judge]["name"],
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
