"""`run --until-decided`: it stops when the comparison is decided, and says so."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from evenhand.manifest import Stopping
from evenhand.runs.early_stop import UntilDecided
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.suites import judged
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.deciding import BETTER, EQUAL, KEPT, QUESTIONS, judged_units, rows, write


def test_it_stops_as_soon_as_it_is_decided(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path, rows(BETTER))
    said = call("run", "--until-decided", "--json")
    assert said.code == 0
    found, decided = said.json, said.json["decided"]
    assert (decided["outcome"], decided["variant"], decided["baseline"]) == ("better", "v2", "v1")
    assert (decided["alpha"], decided["dimension"], decided["sequential"]) == (
        0.05,
        "overall",
        True,
    )
    assert decided["of"] == found["planned"] == 2 * QUESTIONS
    assert decided["units"] == 2 * decided["questions"] < QUESTIONS
    assert decided["saved_units"] == found["pending"] > QUESTIONS
    assert found["calls"] == found["verdicts"] == found["planned"] - found["pending"]
    assert 0 <= decided["low"] < decided["estimate"] < decided["high"] < 1
    # Both sides of a question are judged together.
    halves = [unit.replace("v1", "v2") for unit in judged_units(tmp_path) if "v1" in unit]
    assert len(judged_units(tmp_path) - set(halves)) - len(halves) <= 4


def test_people_read_what_was_decided_and_saved(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path, rows(BETTER))
    out = call("run", "--until-decided").out
    assert "Decided: v2 is better than v1," in out
    assert "% confidence sequence)" in out
    assert "Sequential test, looked at after every question; error at most 0.05." in out
    assert "units were not judged" in out


def test_the_seed_draws_the_order(tmp_path: Path) -> None:
    units = {}
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        folder = write(tmp_path / name, rows(BETTER), seed=seed, limits={"concurrency": 1}, stop={})
        asyncio.run(judged(folder))
        units[name] = judged_units(folder)
    assert units["one"] == units["same"]
    assert len(units["one"] & units["other"]) < 0.8 * len(units["one"])


def test_where_nothing_differs_everything_is_judged(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path, rows(EQUAL, 60))
    found = call("run", "--until-decided", "--json").json
    assert found["pending"] == found["decided"]["saved_units"] == 0
    assert found["decided"]["outcome"] == "not enough evidence"
    assert found["decided"]["low"] < 0 < found["decided"]["high"]
    assert "Not enough evidence: v2 against v1," in call("run", "--until-decided").out


def test_units_that_finish_out_of_order_change_nothing(tmp_path: Path) -> None:
    """The same decision, from the same questions, however many are under way."""
    decisions = []
    for judge, width in (("marks", 1), ("unsteady", 3), ("unsteady", 32)):
        folder = tmp_path / f"{judge}{width}"
        write(folder, rows(BETTER), judge, limits={"concurrency": width}, stop={})
        summary = asyncio.run(judged(folder))
        assert summary.decided is not None
        assert summary.counts.pending > QUESTIONS / 2
        decisions.append({k: v for k, v in summary.decided.json().items() if k in KEPT})
    assert decisions[0] == decisions[1] == decisions[2]


def test_notes_in_any_order_come_to_one_decision(tmp_path: Path) -> None:
    """The schedule itself: what ends first does not enter first."""
    folder = write(tmp_path, rows(BETTER, 60), stop={})
    asyncio.run(judged(folder, environ={"EVENHAND_STOP__UNTIL_DECIDED": "false"}))
    store = open_archive("sqlite:evenhand.db", folder)
    try:
        run = find_run(store, "latest")
        scope = run.scope
        manifest = structs.replace(run.manifest, stop=Stopping())
        known = [(unit.no, one) for unit, one in store.judgments(scope)]
        found = []
        for seed in range(5):
            random.Random(seed).shuffle(known)
            schedule = UntilDecided(store, scope, run.judging, run.judge_groups, manifest)
            for number, one in known:
                schedule.note(number, one.judge, one.repeat, one.text)
            found.append({k: schedule.result().json()[k] for k in KEPT})
    finally:
        store.close()
    assert found[0]["outcome"] == "better"
    assert all(one == found[0] for one in found)


def test_no_more_is_under_way_than_twice_what_has_ended(tmp_path: Path) -> None:
    folder = write(tmp_path, rows(BETTER), "slow", limits={"concurrency": 250}, stop={})
    summary = asyncio.run(judged(folder))
    assert summary.decided is not None
    done = summary.counts.planned - summary.counts.pending
    assert done <= 2 * (2 * summary.decided.json()["questions"] + 8)


@pytest.mark.parametrize(("judge", "reason"), [("failing", "schema"), ("crashing", "judge_crash")])
def test_failures_are_left_out_and_told(
    call: CallCommand, tmp_path: Path, judge: str, reason: str
) -> None:
    write(tmp_path, rows(BETTER), judge)
    found = call("run", "--until-decided", "--json").json
    decided = found["decided"]
    assert decided["outcome"] == "better"
    assert found["failures"][reason] > 0
    assert decided["skipped"] > 0
    assert any("left out" in note for note in decided["notes"])
    again = call("run", "--until-decided", "--json").json
    assert (again["calls"], again["decided"]) == (0, decided)


def test_a_dry_run_says_at_most_how_many(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path, rows(BETTER, 20))
    ahead = call("run", "--until-decided", "--dry-run", "--json").json
    assert ahead["calls"] == {"least": 0, "most": 3 * 40}
    out = call("run", "--until-decided", "--dry-run").out
    assert "as many calls as it takes to decide, at most 120 with every re-ask" in out
    assert call("run", "--dry-run", "--json").json["calls"] == {"least": 40, "most": 120}
    assert not (tmp_path / "evenhand.db").exists()


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ({"compare": {"by": ["prompt_varient"], "baseline": "v1"}}, 'mean "prompt_variant"'),
        ({"compare": {"by": ["prompt_variant"], "baseline": "v9"}}, 'called "v9"'),
        ({"compare": {"baseline": "v1"}}, "what is to be decided"),
        ({"stop": {"dimension": "corect"}}, 'mean "correct"'),
        ({"stop": {"variant": "v7"}}, 'called "v7"'),
        ({"stop": {"alpha": 0.7}}, "stop.alpha"),
        ({"compare": {"by": ["model"], "baseline": "m"}}, "nothing is paired"),
    ],
)
def test_what_cannot_be_decided_is_said_before_anything_is_sent(
    call: CallCommand, tmp_path: Path, rest: dict[str, Any], said: str
) -> None:
    write(tmp_path, rows(BETTER, 3), **rest)
    told = call("run", "--until-decided")
    assert told.code == 2
    assert said in told.err
    # Nothing is left behind, not even an empty run.
    has_store = (tmp_path / "evenhand.db").exists()
    assert not has_store or call("runs", "--json").json == {"runs": []}


def test_after_a_wrong_name_the_right_one_runs(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path, rows(BETTER, 60), compare={"by": ["prompt_variant"], "baseline": "v9"})
    assert call("run", "--until-decided").code == 2
    write(tmp_path, rows(BETTER, 60))
    assert call("run", "--until-decided", "--json").json["decided"]["outcome"] == "better"


def test_without_a_baseline_the_first_variant_is_taken_and_told(
    call: CallCommand, tmp_path: Path
) -> None:
    write(tmp_path, rows(BETTER), compare={"by": ["prompt_variant"]})
    decided = call("run", "--until-decided", "--json").json["decided"]
    assert decided["baseline"] == "v1"
    assert any("baseline" in note for note in decided["notes"])
