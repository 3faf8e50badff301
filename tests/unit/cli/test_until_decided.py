"""`run --until-decided`: it stops when the comparison is decided, and says so."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from evenhand.runs.early_stop import stored_decision
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.crash.watching import DYING
from tests.sentences import is_told
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
from tests.unit.cli.conftest import values
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
KEPT = ("outcome", "questions", "units", "low", "high", "estimate", "skipped")
"""What a decision says whatever else was judged beside its questions."""


def rows(odds, number=QUESTIONS, start=0):
    """Questions, each answered by every variant; the mark of an answer stands in its text."""
    chance, made = random.Random(start), []
    for i in range(start, start + number):
        for variant, weights in odds.items():
            mark = chance.choices((1, 3, 5), weights)[0]
            meta = {"model": "m", "prompt_variant": variant, "question_id": f"q{i}"}
            text = f"The answer of {variant} has mark {mark}."
            made.append({"meta": meta, "question": f"Question {i}?", "model_output": text})
    return made


def write(folder, given, judge="marks", **rest):
    limits = {"concurrency": 4} | rest.pop("limits", {})
    judges = [{"model": f"python/judge:{judge}", "repeats": rest.pop("repeats", 1)}]
    top = {"compare": COMPARE, "limits": limits} | rest
    return write_suite(folder, given, *judges, judge=MARKING, **top)


def judged_units(folder):
    return {row["unit"] for row in stored(folder)}


def decided_in(folder):
    """What a run in a folder decides, as it is printed."""
    test = asyncio.run(judged(folder)).decided
    return test.json()


def until_decided(call, options=""):
    return call.json(f"run --until-decided {options}")


def kept(decided):
    return {key: decided[key] for key in KEPT}


def test_it_stops_as_soon_as_it_is_decided_and_sends_nothing_again(call, tmp_path):
    write(tmp_path, rows(BETTER))
    found = until_decided(call)
    decided = found["decided"]
    assert values(decided, "outcome variant baseline") == ["better", "v2", "v1"]
    assert values(decided, "alpha dimension") == [0.05, "overall"]
    assert decided["sequential"] is True
    assert decided["of"] == found["planned"] == 2 * QUESTIONS
    assert decided["units"] == 2 * decided["questions"] < QUESTIONS
    assert decided["saved_units"] == found["pending"] > QUESTIONS
    assert found["calls"] == found["verdicts"] == found["planned"] - found["pending"]
    assert 0 <= decided["low"] < decided["estimate"] < decided["high"] < 1
    # Both sides of a question are judged together.
    halves = [unit.replace("v1", "v2") for unit in judged_units(tmp_path) if "v1" in unit]
    assert len(judged_units(tmp_path) - set(halves)) - len(halves) <= 4
    again = until_decided(call)
    assert values(again, "calls cached decided") == [0, found["calls"], decided]
    ahead = until_decided(call, "--dry-run")
    assert values(ahead, "until_decided calls") == [True, {"least": 0, "most": 0}]
    out = call("run --until-decided").out
    assert is_told(out, "answer.stopped_better", variant="v2", baseline="v1", level="95%")
    saved = {"n": decided["saved_units"], "of": decided["of"]}
    assert is_told(out, "terminal.saved", alpha=0.05, **saved)


def test_the_seed_draws_the_order(tmp_path):
    units = []
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        folder = write(tmp_path / name, rows(BETTER), seed=seed, limits={"concurrency": 1}, stop={})
        asyncio.run(judged(folder))
        units.append(judged_units(folder))
    assert units[0] == units[1]
    assert len(units[0] & units[2]) < 0.8 * len(units[0])


def test_units_that_finish_out_of_order_change_nothing(tmp_path):
    """The same decision, from the same questions, however many are under way; and no more is
    under way than twice what has ended."""
    decisions = []
    for name, width in (("marks", 1), ("unsteady", 3), ("unsteady", 32), ("slow", 250)):
        folder = write(
            tmp_path / f"{name}{width}", rows(BETTER), name, limits={"concurrency": width}, stop={}
        )
        summary = asyncio.run(judged(folder))
        decisions.append(kept(summary.decided.json()))
        done = summary.counts.planned - summary.counts.pending
        assert done <= 2 * (2 * decisions[0]["questions"] + 8) < QUESTIONS * 1.5
    assert all(one == decisions[0] for one in decisions)


@pytest.mark.parametrize(("judge", "reason"), [("failing", "schema"), ("crashing", "judge_crash")])
def test_failures_are_left_out_and_told(call, tmp_path, judge, reason):
    write(tmp_path, rows(BETTER), judge)
    found = until_decided(call)
    decided = found["decided"]
    assert decided["outcome"] == "better" and decided["skipped"] > 0
    assert found["failures"][reason] > 0
    assert any("left out" in note for note in decided["notes"])
    again = until_decided(call)
    assert values(again, "calls decided") == [0, decided]


def test_a_dry_run_says_at_most_how_many(call, tmp_path):
    write(tmp_path, rows(BETTER, 20))
    assert until_decided(call, "--dry-run")["calls"] == {"least": 0, "most": 120}
    out = call("run --until-decided --dry-run").out
    assert is_told(out, "cli.dry_calls_open", most=120)
    assert call.json("run --dry-run")["calls"] == {"least": 40, "most": 120}
    assert not Path("evenhand.db").exists()


def test_what_cannot_be_decided_is_said_before_anything_is_sent(call, tmp_path):
    given = rows(BETTER, 20)
    by = {"by": ["prompt_variant"]}
    for rest, told in (
        ({"compare": {"by": ["prompt_varient"], "baseline": "v1"}}, '"prompt_variant"?'),
        ({"compare": {**by, "baseline": "v9"}}, '"v9"'),
        ({"stop": {"dimension": "corect"}}, '"correct"'),
        ({"stop": {"variant": "v7"}}, '"v7"'),
        ({"stop": {"alpha": 0.7}}, "stop.alpha"),
    ):
        write(tmp_path, given, **rest)
        call.refused("run --until-decided", says=[told])
    for compare, key in (
        ({"baseline": "v1"}, "runs.nothing_to_decide"),
        ({"by": ["model"], "baseline": "m"}, "runs.nothing_paired"),
    ):
        write(tmp_path, given, compare=compare)
        call.refused("run --until-decided", key=key)
    # Nothing is left behind, not even an empty run.
    if Path("evenhand.db").exists():
        assert call.json("runs") == {"runs": []}
    # Without a baseline the first variant is taken.
    write(tmp_path, given, compare=by)
    decided = until_decided(call)["decided"]
    assert decided["baseline"] == "v1"
    assert any("baseline" in note for note in decided["notes"])


# Again: to the end, after a kill or an interrupt, and with more units


def test_a_run_to_the_end_finishes_the_rest(call, tmp_path):
    write(tmp_path, rows(BETTER), stop={"alpha": 0.1})
    first = call.json("run")
    assert first["decided"]["alpha"] == 0.1
    whole = call.json("run --to-the-end")
    assert values(whole, "run pending") == [first["run"], 0]
    assert "decided" not in whole and whole["calls"] == first["pending"]
    # The decision is the one that the order comes to, however much is judged.
    after = call.json("run")["decided"]
    assert after["saved_units"] == 0
    for decided in (after, first["decided"]):
        decided |= {"saved_units": 0, "comparisons": []}
    assert after == first["decided"]


def test_what_failed_in_passing_is_tried_again_while_it_is_undecided(call, tmp_path):
    write(tmp_path, rows(EQUAL, 30), "crashing")
    found = until_decided(call)
    assert values(found, "pending failures") == [0, {"judge_crash": 12}]
    decided = found["decided"]
    assert values(decided, "skipped saved_units") == [6, 0]
    assert decided["outcome"] == "not enough evidence"
    assert decided["low"] < 0 < decided["high"]
    Path("mended").touch()
    again = until_decided(call)
    assert (again["failures"], again["decided"]["skipped"]) == ({}, 0)
    assert again["decided"]["questions"] == 30


def test_killed_and_run_again_it_comes_to_the_same_decision(tmp_path):
    dying = """
async def dying(messages, schema, params):
    if count() in (9, 30) and len(list(pathlib.Path().glob("dead*"))) < 2:
        pathlib.Path(f"dead{count()}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return scored(messages)
"""
    given, rest = rows(BETTER), {"compare": COMPARE, "stop": {}, "limits": {"concurrency": 4}}
    judge = {"model": "python/judge:dying"}
    folder = write_suite(tmp_path / "killed", given, judge, judge=MARKING + DYING + dying, **rest)
    assert [evenhand("run", cwd=folder).returncode for _ in range(2)] == [-9, -9]
    told = evenhand("run", "--json", cwd=folder)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)["decided"]
    assert kept(found) == kept(decided_in(write(tmp_path / "whole", given, stop={})))
    assert found["saved_units"] > QUESTIONS / 2


def test_interrupted_it_decides_nothing_and_the_next_run_goes_on(tmp_path):
    """Stopped by something else: it is the same run to the end."""
    given = rows(EQUAL, 60)
    first, again = asyncio.run(interrupted(write(tmp_path / "stopped", given, stop={}), 33))
    assert first.decided is not None and again.decided is not None
    found = first.decided.json()
    assert [found[key] for key in ("at_end", "questions", "saved_units")] == [False, 16, 120 - 33]
    assert again.decided.json() == decided_in(write(tmp_path / "whole", given, stop={}))


def test_units_that_are_added_come_after_the_others(tmp_path):
    """An undecided run is continued with more units: what was judged stays first in the order, and
    what was kept back is bet on the rest."""
    folder = write(tmp_path, rows(EQUAL, 30), stop={})
    first = decided_in(folder)
    assert values(first, "outcome at_end") == ["not enough evidence", True]
    write_rows(folder, rows(EQUAL, 30) + rows({"v1": [9, 1, 0], "v2": [0, 1, 9]}, 60, start=30))
    second = asyncio.run(judged(folder))
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


def test_a_decision_at_the_end_outlives_added_units(tmp_path):
    """Seven of seven are enough because no more were planned: they are tested at their end."""
    clear = {"v1": [1, 0, 0], "v2": [0, 0, 1]}
    folder = write(tmp_path, rows(clear, 7), stop={"dimension": "correct"})
    first = decided_in(folder)
    assert values(first, "outcome at_end questions") == ["better", True, 7]
    write_rows(folder, rows(clear, 7) + rows(EQUAL, 50, start=7))
    again = asyncio.run(judged(folder))
    assert again.decided is not None and again.tally.sent == 0
    found = again.decided.json()
    assert values(found, "outcome questions") == ["better", 7]


# What a comparison is decided by


def test_repeats_and_judges_make_one_value_a_question(tmp_path):
    write(tmp_path, rows(BETTER), repeats=2, stop={})
    summary = asyncio.run(judged(tmp_path))
    found = summary.decided.json()
    assert found["outcome"] == "better" and found["units"] == 2 * found["questions"]
    assert summary.counts.planned - summary.counts.pending >= 2 * found["units"]


def test_several_variants_share_alpha_and_stop_one_by_one(tmp_path):
    odds = {"v1": [5, 4, 1], "v2": [0, 1, 9], "v3": [4, 4, 2], "v4": [3, 4, 3]}
    write(tmp_path, rows(odds, 120), stop={}, limits={"concurrency": 1})
    decided = decided_in(tmp_path)
    found = {one["variant"]: one for one in decided["comparisons"]}
    assert found.keys() == {"v2", "v3", "v4"} and decided["outcome"] is None
    assert {one["alpha"] for one in found.values()} == {0.05 / 3}
    assert found["v2"]["outcome"] == "better"
    assert found["v2"]["questions"] < found["v3"]["questions"]
    units = judged_units(tmp_path)
    by = {name: sum(name in unit for unit in units) for name in odds}
    assert by["v2"] < by["v3"] <= by["v1"]
    alone = write(tmp_path / "alone", rows(odds, 120), stop={"variant": "v2", "min_units": 60})
    only = decided_in(alone)
    assert values(only, "variant alpha") == ["v2", 0.05]
    assert 60 <= only["units"] <= 64
    assert not any("v3" in unit for unit in judged_units(alone))


def test_a_named_dimension_decides_on_its_own_scale(tmp_path):
    found = decided_in(write(tmp_path / "correct", rows(BETTER), stop={"dimension": "correct"}))
    assert values(found, "outcome dimension") == ["better", "correct"]
    # About 1.4 of four points are planted; of one it would be a quarter.
    assert found["estimate"] > 0.7
    none = decided_in(write(tmp_path / "clear", rows(BETTER, 20), stop={"dimension": "clear"}))
    keys = ("outcome", "estimate", "saved_units")
    assert [none[key] for key in keys] == ["not enough evidence", 0, 0]


GRADING = """
import json
from pathlib import Path

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
def test_answers_are_decided_by_their_points(tmp_path, dimension, most):
    given = [
        {"task_name": f"t{i}", "prompt": f"Task {i}?", "answer": text, "meta": {"model": model}}
        | {"rubric": TASK}
        for i in range(100)
        for model, text in (("old", "It is so."), ("new", "It is certain."))
    ]
    compare, stop = {"by": "model", "baseline": "old"}, {"dimension": dimension}
    judge = {"model": "python/judge:graded"}
    write_answers(tmp_path, given, judge, judge=GRADING, compare=compare, stop=stop)
    found = decided_in(tmp_path)
    assert values(found, "outcome variant") == ["better", "new"]
    assert found["estimate"] == pytest.approx(8 if most > 1 else 3 * 8 / 100)
    assert 0 <= found["low"] < found["estimate"] < found["high"] <= most


@pytest.mark.parametrize(("wins", "outcome"), [(9, "better"), (1, "worse")])
def test_pairs_are_decided_by_the_win_rate(tmp_path, wins, outcome):
    """Of ten topics the second candidate wins so many; it stands first in every other row."""
    given = []
    for i in range(200):
        worths = (1, 9) if i * 7 % 10 < wins else (9, 1)
        given.append(pair_row(f"p{i}", *worths, topic=f"Topic {i}?"))
        given[-1]["candidates"].sort(key=lambda one: one["id"], reverse=i % 2 > 0)
    found = decided_in(write_pairs(tmp_path, given, compare={"baseline": "c1"}, stop={}))
    assert values(found, "outcome variant measure") == [outcome, "c2", "win_rate"]
    assert found["saved_units"] > 100
    assert (found["low"] > 0.5, found["high"] < 0.5) == (wins == 9, wins == 1)


def test_pairs_that_the_baseline_is_not_in_are_left_pending(tmp_path):
    given = [pair_row(f"p{i}", 1, 9, 8, topic=f"Topic {i}?") for i in range(60)]
    found = decided_in(
        write_pairs(tmp_path, given, compare={"baseline": "c1"}, stop={"dimension": "C1"})
    )
    assert [one["outcome"] for one in found["comparisons"]] == ["better", "better"]
    assert not any(unit.endswith("#c2~c3") for unit in judged_units(tmp_path))
