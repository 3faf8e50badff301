"""`run --until-decided`: it stops when the comparison is decided, says so, and can be continued."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from evenhand.manifest import Stopping
from evenhand.runs.early_stop import UntilDecided, stored_decision
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.crash.watching import DYING
from tests.suites import (
    TASK,
    evenhand,
    judged,
    pair_row,
    stored,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.unit.cli.conftest import CallCommand
from tests.unit.engine.pair_runs import interrupted

MARKING = """
import asyncio, json, pathlib, random, re

def scored(messages):
    text = "\\n".join(m["content"] for m in messages)
    mark = int(re.search(r"has mark (\\d)", text)[1])
    given = {"evidence": [], "rationale": "no evidence found", "score": mark}
    scores = {"correct": given, "clear": given | {"score": 3}}
    return json.dumps({"scores": scores, "failure_tags": [], "notes": ""})

async def marks(messages, schema, params):
    return scored(messages)

async def unsteady(messages, schema, params):
    for _ in range(random.randrange(20)):
        await asyncio.sleep(0)
    return scored(messages)

async def slow(messages, schema, params):
    await asyncio.sleep(0.01)
    return scored(messages)

def is_odd(messages):
    text = "\\n".join(m["content"] for m in messages)
    return re.search(r"Question \\d*[37]\\?", text)

async def failing(messages, schema, params):
    return "{}" if is_odd(messages) else scored(messages)

async def crashing(messages, schema, params):
    if is_odd(messages) and not pathlib.Path("mended").exists():
        raise RuntimeError("no luck")
    return scored(messages)
"""
COMPARE = {"by": "prompt_variant", "baseline": "v1"}
BETTER = {"v1": [4, 4, 2], "v2": [1, 3, 6]}
EQUAL = {"v1": [3, 4, 3], "v2": [3, 4, 3]}
QUESTIONS = 150


def rows(odds: Mapping[str, Sequence[int]], number: int = QUESTIONS, start: int = 0) -> list[Any]:
    """Questions, each answered by every variant; the mark of an answer stands in its text."""
    chance, made = random.Random(start), []
    for i in range(start, start + number):
        for variant, weights in odds.items():
            mark = chance.choices((1, 3, 5), weights)[0]
            meta = {"model": "m", "prompt_variant": variant, "question_id": f"q{i}"}
            text = f"The answer of {variant} has mark {mark}."
            made.append({"meta": meta, "question": f"Question {i}?", "model_output": text})
    return made


def write(folder: Path, given: list[Any], judge: str = "marks", **rest: Any) -> Path:
    limits = {"concurrency": 4} | rest.pop("limits", {})
    judges = [{"model": f"python/judge:{judge}", "repeats": rest.pop("repeats", 1)}]
    top = {"compare": COMPARE, "limits": limits} | rest
    return write_suite(folder, given, *judges, judge=MARKING, **top)


def judged_units(folder: Path) -> set[str]:
    return {row["unit"] for row in stored(folder)}


def decided_in(folder: Path) -> dict[str, Any]:
    """What a run in a folder decides, as it is printed."""
    test = asyncio.run(judged(folder)).decided
    assert test is not None
    return test.json()


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


def test_again_it_sends_nothing_and_says_the_same(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path, rows(BETTER))
    first, again = (call("run", "--until-decided", "--json").json for _ in range(2))
    assert (again["calls"], again["cached"]) == (0, first["calls"])
    assert again["decided"] == first["decided"]
    ahead = call("run", "--until-decided", "--dry-run", "--json").json
    assert (ahead["until_decided"], ahead["calls"]) == (True, {"least": 0, "most": 0})


def test_a_run_to_the_end_finishes_the_rest(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path, rows(BETTER), stop={"alpha": 0.1})
    first = call("run", "--json").json
    assert first["decided"]["alpha"] == 0.1
    whole = call("run", "--to-the-end", "--json").json
    assert (whole["run"], whole["pending"]) == (first["run"], 0)
    assert "decided" not in whole
    assert whole["calls"] == first["pending"]
    # The decision is the one that the order comes to, however much is judged.
    after = call("run", "--json").json["decided"]
    assert after["saved_units"] == 0
    assert {**after, "saved_units": 0, "comparisons": []} == {
        **first["decided"],
        "saved_units": 0,
        "comparisons": [],
    }


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


KEPT = ("outcome", "questions", "units", "low", "high", "estimate", "skipped")


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
                schedule.note(number, one.judge, one.repeat, run.judgment(one))
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


def test_what_failed_in_passing_is_tried_again_while_it_is_undecided(
    call: CallCommand, tmp_path: Path
) -> None:
    write(tmp_path, rows(EQUAL, 30), "crashing")
    found = call("run", "--until-decided", "--json").json
    assert (found["pending"], found["failures"]) == (0, {"judge_crash": 12})
    assert found["decided"]["skipped"] == 6
    (tmp_path / "mended").touch()
    again = call("run", "--until-decided", "--json").json
    assert (again["failures"], again["decided"]["skipped"]) == ({}, 0)
    assert again["decided"]["questions"] == 30


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


# pairs


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
    assert not any(unit.endswith("#2-3") for unit in judged_units(tmp_path))


# ends and continuations


def test_killed_and_run_again_it_comes_to_the_same_decision(tmp_path: Path) -> None:
    dying = """
async def dying(messages, schema, params):
    if count() in (9, 30) and len(list(pathlib.Path().glob("dead*"))) < 2:
        pathlib.Path(f"dead{count()}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return scored(messages)
"""
    given, rest = rows(BETTER), {"compare": COMPARE, "stop": {}, "limits": {"concurrency": 4}}
    judge = {"model": "python/judge:dying"}
    write_suite(tmp_path / "killed", given, judge, judge=MARKING + DYING + dying, **rest)
    codes = [evenhand("run", cwd=tmp_path / "killed").returncode for _ in range(2)]
    assert codes == [-9, -9]
    told = evenhand("run", "--json", cwd=tmp_path / "killed")
    assert told.returncode == 0, told.stderr
    whole = asyncio.run(judged(write(tmp_path / "whole", given, stop={})))
    assert whole.decided is not None
    found = json.loads(told.stdout)["decided"]
    assert {k: found[k] for k in KEPT} == {k: whole.decided.json()[k] for k in KEPT}
    assert found["saved_units"] > QUESTIONS / 2


def test_interrupted_it_decides_nothing_and_the_next_run_goes_on(tmp_path: Path) -> None:
    """Stopped by something else: it is the same run to the end."""
    given = rows(EQUAL, 60)
    folder = write(tmp_path / "stopped", given, stop={})
    first, again = asyncio.run(interrupted(folder, 33))
    assert first.decided is not None
    assert first.decided.json()["at_end"] is False
    assert first.decided.json()["questions"] == 16
    assert first.decided.json()["saved_units"] == 120 - 33
    whole = asyncio.run(judged(write(tmp_path / "whole", given, stop={})))
    assert again.decided == whole.decided


def test_units_that_are_added_come_after_the_others(tmp_path: Path) -> None:
    """An undecided run is continued with more units: what was judged stays first in the order, and
    what was kept back is bet on the rest."""
    folder = write(tmp_path, rows(EQUAL, 30), stop={})
    first = asyncio.run(judged(folder))
    assert first.decided is not None
    standing = first.decided.json()
    assert (standing["outcome"], standing["at_end"]) == ("not enough evidence", True)
    write_rows(folder, rows(EQUAL, 30) + rows({"v1": [9, 1, 0], "v2": [0, 1, 9]}, 60, start=30))
    second = asyncio.run(judged(folder))
    assert second.decided is not None
    assert second.decided.json()["outcome"] == "better"
    assert 30 < second.decided.json()["questions"] < 80
    store = open_archive("sqlite:evenhand.db", folder)
    try:
        run = find_run(store, "latest")
        assert [wave.limit for wave in run.manifest.waves] == [None]
        assert stored_decision(store, run) == second.decided
    finally:
        store.close()
    again = asyncio.run(judged(folder))
    assert (again.decided, again.tally.sent) == (second.decided, 0)


def test_a_decision_at_the_end_outlives_added_units(tmp_path: Path) -> None:
    """Seven of seven are enough because no more were planned: they are tested at their end."""
    clear = {"v1": [1, 0, 0], "v2": [0, 0, 1]}
    folder = write(tmp_path, rows(clear, 7), stop={"dimension": "correct"})
    first = decided_in(folder)
    assert (first["outcome"], first["at_end"], first["questions"]) == ("better", True, 7)
    write_rows(folder, rows(clear, 7) + rows(EQUAL, 50, start=7))
    again = asyncio.run(judged(folder))
    assert again.decided is not None
    assert (again.decided.json()["outcome"], again.decided.json()["questions"]) == ("better", 7)
    assert again.tally.sent == 0


def test_a_dry_run_says_at_most_how_many(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path, rows(BETTER, 20))
    ahead = call("run", "--until-decided", "--dry-run", "--json").json
    assert ahead["calls"] == {"least": 0, "most": 3 * 40}
    out = call("run", "--until-decided", "--dry-run").out
    assert "as many calls as it takes to decide, at most 120 with every re-ask" in out
    assert call("run", "--dry-run", "--json").json["calls"] == {"least": 40, "most": 120}
    assert not (tmp_path / "evenhand.db").exists()


# what cannot be decided


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
