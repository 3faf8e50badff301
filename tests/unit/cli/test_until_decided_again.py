"""`run --until-decided` again: after its end, after a kill or an interrupt, and with more units."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from evenhand.runs.early_stop import stored_decision
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.crash.watching import DYING
from tests.suites import evenhand, judged, write_rows, write_suite
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.deciding import (
    BETTER,
    COMPARE,
    EQUAL,
    KEPT,
    MARKING,
    QUESTIONS,
    decided_in,
    rows,
    write,
)
from tests.unit.engine.pair_runs import interrupted


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
