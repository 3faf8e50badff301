"""`compare RUN --against RUN`: two runs paired by unit, whatever made the difference."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.suites import (
    GRADE_JUDGE,
    answers,
    pair_row,
    stored,
    write_answers,
    write_pairs,
    write_rows,
)
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.test_settle import FACT, JUDGE, PRIORITY_JUDGE, pairs_of_two


def test_grades_before_and_after_new_weights(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, answers(7))
    old = call("run", "--json").json["run"]
    (tmp_path / "weights.json").write_text(json.dumps({"fact": FACT}))
    new = call("settle", old, "--weights", "weights.json", "--json").json["run"]
    said = call("compare", new, "--against", old, "--json").json
    assert (said["by"], said["against"]) == ("run", old)
    assert said["baseline"].endswith(f" {old[:6]}")
    (row,) = [row for row in said["rows"] if row["dimension"] == "overall"]
    totals = [[r["output"]["total_score"] for r in stored(tmp_path, run)] for run in (new, old)]
    differences = [(now - before) / 100 for now, before in zip(*totals, strict=True)]
    assert row["n"] == 7
    assert row["difference"] == pytest.approx(sum(differences) / 7)
    assert row["baseline_mean"] == pytest.approx(sum(totals[1]) / 700)
    text = call("compare", new, "--against", old).out
    assert f"{new[:6]} against {said['baseline']}" in text
    told = re.search(r"([\d.]+) -> ([\d.]+) of 100", " ".join(text.split()))
    assert told and float(told[1]) == pytest.approx(sum(totals[1]) / 7, abs=0.05)
    assert float(told[2]) == pytest.approx(sum(totals[0]) / 7, abs=0.05)
    # The replies are the same: as shares of the points to be had no dimension differs.
    for row in said["rows"]:
        if row["dimension"] != "overall":
            assert row["difference"] == pytest.approx(0, abs=1e-12), row["dimension"]
            assert row["outcome"] == "not enough evidence"
        assert not row["more_questions"]
    (shares,) = [row for row in said["rows"] if row["dimension"] == "logic_and_fact"]
    assert shares["scale"] == [0, 1]
    assert "may be the judge" not in text
    assert "more questions" not in text
    assert "the same replies" in text


def test_weights_of_one_task_type_leave_the_other_as_it_was(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = answers(8)
    for row in rows[4:]:
        row["rubric"] = row["rubric"].replace("fact", "creative")
    write_answers(tmp_path, rows)
    old = call("run", "--json").json["run"]
    # The highest points on constraint_adherence, of any type, stay what they were.
    weights = {"logic_and_fact": 80, "constraint_adherence": 10, "helpfulness_and_creativity": 10}
    (tmp_path / "weights.json").write_text(json.dumps({"fact": weights}))
    new = call("settle", old, "--weights", "weights.json", "--json").json["run"]
    for row in call("compare", new, "--against", old, "--json").json["rows"]:
        if row["dimension"] != "overall":
            assert row["difference"] == pytest.approx(0, abs=1e-12), row["dimension"]


def test_pairs_before_and_after_another_priority(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, pairs_of_two(6), JUDGE, judge=PRIORITY_JUDGE)
    old = call("run", "--json").json["run"]
    new = call("settle", old, "--priority", "C2", "--json").json["run"]
    said = call("compare", new, "--against", old, "--json").json
    (row,) = said["rows"]
    assert row["dimension"] == "win rate of c1"
    assert (row["baseline_mean"], row["mean"], row["difference"]) == (0, 1, 1)
    assert row["n"] == 6


def test_rows_of_several_candidates_and_other_data(call: CallCommand, tmp_path: Path) -> None:
    rows = [pair_row(f"q{i}", 3, 2, 1, topic=f"T{i}?") for i in range(3)]
    write_pairs(tmp_path, rows)
    call("run")
    # One topic leaves, one comes, and the texts of another change places.
    rows = [pair_row("q0", 1, 2, 3, topic="T0?"), rows[1], pair_row("q9", 3, 2, 1, topic="T9?")]
    write_rows(tmp_path, rows, "pairs.jsonl")
    call("run")
    said = call("compare", "latest", "--against", "latest~1", "--json").json
    figures = {row["dimension"]: (row["n"], row["difference"]) for row in said["rows"]}
    # On two topics each candidate is in four pairs; c1 won both of those on q0, and loses them now.
    assert figures == {
        "win rate of c1": (4, -0.5),
        "win rate of c2": (4, 0.0),
        "win rate of c3": (4, 0.5),
    }


def test_grades_of_one_judge_of_a_panel_are_compared(call: CallCommand, tmp_path: Path) -> None:
    panel = ({"model": "python/judge:good"}, {"model": "python/judge:unsure"})
    write_answers(tmp_path, answers(4), *panel, name="before")
    old = call("run", "--json").json["run"]
    write_answers(tmp_path, answers(4), *panel, name="after", seed=3)
    new = call("run", "--json").json["run"]
    said = call("compare", new, "--against", old, "--judge", "python/judge:unsure", "--json").json
    assert {row["n"] for row in said["rows"]} == {4}
    assert {(count["scored"], count["pending"]) for count in said["missing"].values()} == {(4, 0)}


def test_what_cannot_be_compared_is_refused(call: CallCommand, tmp_path: Path) -> None:
    judge = PRIORITY_JUDGE + GRADE_JUDGE
    write_pairs(tmp_path, pairs_of_two(1), JUDGE, judge=judge)
    pairs_run = call("run", "--json").json["run"]
    write_answers(tmp_path, answers(1), judge=judge)
    grades_run = call("run", "--json").json["run"]
    write_answers(tmp_path, answers(1, 5), judge=judge)
    others_run = call("run", "--json").json["run"]
    assert "is compared with itself" in call("compare", pairs_run, "--against", pairs_run).err
    assert "Compare runs of one kind" in call("compare", pairs_run, "--against", grades_run).err
    assert "no unit in common" in call("compare", others_run, "--against", grades_run).err
    assert call("compare", others_run, "--against", grades_run, "--by", "model").code == 2
