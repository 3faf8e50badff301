"""What a comparison is decided by: dimensions, points of answers, wins of pairs; and whose, where
there are repeats or several variants."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.suites import TASK, judged, pair_row, write_answers, write_pairs
from tests.unit.cli.deciding import BETTER, decided_in, judged_units, rows, write


def test_repeats_and_judges_make_one_value_a_question(tmp_path: Path) -> None:
    write(tmp_path, rows(BETTER), repeats=2, stop={})
    summary = asyncio.run(judged(tmp_path))
    assert summary.decided is not None
    assert summary.decided.json()["outcome"] == "better"
    judgments = summary.counts.planned - summary.counts.pending
    assert judgments >= 2 * summary.decided.json()["units"]
    assert summary.decided.json()["units"] == 2 * summary.decided.json()["questions"]


def test_several_variants_share_alpha_and_stop_one_by_one(tmp_path: Path) -> None:
    odds = {"v1": [5, 4, 1], "v2": [0, 1, 9], "v3": [4, 4, 2], "v4": [3, 4, 3]}
    write(tmp_path, rows(odds, 120), stop={}, limits={"concurrency": 1})
    summary = asyncio.run(judged(tmp_path))
    assert summary.decided is not None
    found = {one["variant"]: one for one in summary.decided.json()["comparisons"]}
    assert found.keys() == {"v2", "v3", "v4"}
    assert {one["alpha"] for one in found.values()} == {0.05 / 3}
    assert found["v2"]["outcome"] == "better"
    assert found["v2"]["questions"] < found["v3"]["questions"]
    units = judged_units(tmp_path)
    by = {name: sum(name in unit for unit in units) for name in odds}
    assert by["v2"] < by["v3"] <= by["v1"]
    assert summary.decided.json()["outcome"] is None
    alone = {"variant": "v2", "min_units": 60}
    write(tmp_path / "alone", rows(odds, 120), stop=alone)
    only = decided_in(tmp_path / "alone")
    assert (only["variant"], only["alpha"]) == ("v2", 0.05)
    assert 60 <= only["units"] <= 64
    assert not any("v3" in unit for unit in judged_units(tmp_path / "alone"))


def test_a_named_dimension_decides_on_its_own_scale(tmp_path: Path) -> None:
    write(tmp_path / "correct", rows(BETTER), stop={"dimension": "correct"})
    found = decided_in(tmp_path / "correct")
    assert (found["outcome"], found["dimension"]) == ("better", "correct")
    # About 1.4 of four points are planted; of one it would be a quarter.
    assert found["estimate"] > 0.7
    write(tmp_path / "clear", rows(BETTER, 20), stop={"dimension": "clear"})
    none = decided_in(tmp_path / "clear")
    assert (none["outcome"], none["estimate"], none["saved_units"]) == (
        "not enough evidence",
        0,
        0,
    )


GRADING = """
import json

async def graded(messages, schema, params):
    dimensions = schema["properties"]["score"]["properties"]
    points = 9 if "certain" in messages[-1]["content"] else 1
    reply = {
        "inferred_task_type": None,
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": dict.fromkeys(dimensions, "so it is"),
        "score": dict.fromkeys(dimensions, points),
        "confidence": "high",
    }
    return json.dumps(reply)
"""


@pytest.mark.parametrize(("dimension", "most"), [("overall", 1), ("logic_and_fact", 60)])
def test_answers_are_decided_by_their_points(tmp_path: Path, dimension: str, most: float) -> None:
    given = [
        {"task_name": f"t{i}", "prompt": f"Task {i}?", "answer": text, "meta": {"model": model}}
        | {"rubric": TASK}
        for i in range(100)
        for model, text in (("old", "It is so."), ("new", "It is certain."))
    ]
    write_answers(
        tmp_path,
        given,
        {"model": "python/judge:graded"},
        judge=GRADING,
        compare={"by": "model", "baseline": "old"},
        stop={"dimension": dimension},
    )
    found = decided_in(tmp_path)
    assert (found["outcome"], found["variant"]) == ("better", "new")
    assert found["estimate"] == pytest.approx(8 if most > 1 else 3 * 8 / 100)
    assert 0 <= found["low"] < found["estimate"] < found["high"] <= most


def pair_rows(number: int, wins: int) -> list[dict[str, Any]]:
    """Of ten topics, the second candidate wins so many; it stands first in every other row."""
    made = []
    for i in range(number):
        worths = (1, 9) if i * 7 % 10 < wins else (9, 1)
        row = pair_row(f"p{i}", *worths, topic=f"Topic {i}?")
        if i % 2:
            row["candidates"].reverse()
        made.append(row)
    return made


@pytest.mark.parametrize(("wins", "outcome"), [(9, "better"), (1, "worse")])
def test_pairs_are_decided_by_the_win_rate(tmp_path: Path, wins: int, outcome: str) -> None:
    write_pairs(tmp_path, pair_rows(200, wins), compare={"baseline": "c1"}, stop={})
    summary = asyncio.run(judged(tmp_path))
    assert summary.decided is not None
    found = summary.decided.json()
    assert (found["outcome"], found["variant"], found["measure"]) == (outcome, "c2", "win_rate")
    assert found["saved_units"] > 100
    assert (found["low"] > 0.5) == (outcome == "better")
    assert (found["high"] < 0.5) == (outcome == "worse")


def test_pairs_that_the_baseline_is_not_in_are_left_pending(tmp_path: Path) -> None:
    given = [pair_row(f"p{i}", 1, 9, 8, topic=f"Topic {i}?") for i in range(60)]
    write_pairs(tmp_path, given, compare={"baseline": "c1"}, stop={"dimension": "C1"})
    summary = asyncio.run(judged(tmp_path))
    assert summary.decided is not None
    assert [one["outcome"] for one in summary.decided.json()["comparisons"]] == ["better", "better"]
    assert not any(unit.endswith("#c2~c3") for unit in judged_units(tmp_path))
