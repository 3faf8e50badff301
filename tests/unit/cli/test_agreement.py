"""`evenhand agreement`: of judges with labels, with each other, and with themselves."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.suites import stored, write_suite
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.weekly import mean


def vote(unit: str, judge: str, first: str, second: str, winner: str, **rest: Any) -> Any:
    names = {"first": first, "second": second, "winner": winner}
    return {"unit": unit, "judge": judge, **names, **rest}


def score(unit: str, judge: str, dimension: str, value: float) -> dict[str, Any]:
    return {"unit": unit, "judge": judge, "dimension": dimension, "score": value}


class Sides(NamedTuple):
    judged: str
    labels: str


@pytest.fixture
def sides(call: CallCommand) -> Sides:
    """Two judges on sixty pairs of two candidates, and labels of thirty."""
    said = ("old", "new", "tie")
    judged = [
        vote(f"q{k}", judge, "old", "new", said[k * step % 7 % 3], area="xy"[k % 2])
        for k in range(60)
        for judge, step in (("a", 1), ("b", 2))
    ]
    labels = [vote(f"q{k}", "human/ann", "new", "old", said[k % 7 % 3]) for k in range(0, 60, 2)]
    return Sides(call.take("votes", judged, "judged"), call.take("votes", labels, "labels"))


def test_against_labels(call: CallCommand, sides: Sides) -> None:
    asked = ("agreement", sides.judged, "--against", sides.labels, "--by", "area")
    found = call.json(*asked)
    assert [found[key] for key in ("run", "against", "ties")] == [*sides, "keep"]
    assert found["units"] == {"matched": 30, "only_run": 30, "only_against": 0}
    assert found["failures"] == {"run": 0, "against": 0}
    assert [(row["judge"], row["variant"], row["n"]) for row in found["rows"]] == [
        (None, None, 60),
        ("a", None, 30),
        ("b", None, 30),
        (None, "x", 60),
        (None, "y", 0),
    ]
    row = found["rows"][1]
    assert row["agreement"] == {
        "value": 1.0,
        "low": pytest.approx(0.87, abs=0.02),
        "high": 1.0,
        "n": 30,
        "why": "",
    }
    assert row["confusion"]["labels"] == ["new", "old", "tie"]
    names = {"candidate", "variant", "naive", "corrected", "low", "high", "labels", "judged"}
    assert names <= set(found["corrected"][0])
    assert {row["candidate"] for row in found["corrected"]} == {"new", "old"}
    said = call(*asked, "--json")
    assert said.json == found and "NaN" not in said.out and "Infinity" not in said.out
    call.narrow()
    printed = call(*asked)
    assert printed.width <= 80
    for part in ("Cohen's kappa", "run \\ other", "corrected", "30 of 60"):
        assert part in printed.out


def test_judges_of_one_run(call: CallCommand, sides: Sides) -> None:
    run = sides.judged
    found = call.json("agreement", run)
    (row,) = found["rows"]
    assert (found["against"], row["judge"], row["other"], row["n"]) == (None, "a", "b", 60)
    for name in (":b", f"{run}:b"):
        found = call.json("agreement", run, "--against", name)
        assert found["against"] == f"{run}:b"
        assert found["rows"][0]["n"] == 60 and found["rows"][0]["verdict"]
    rows = [vote(f"q{k}", judge, "x", "y", "x") for k in range(3) for judge in ("v:1", "v:2")]
    run = call.take("votes", rows)
    found = call.json("agreement", run, "--against", f"{run[:6]}:v:1")
    assert (found["against"], found["rows"][0]["n"]) == (f"{run}:v:1", 3)
    said = call("agreement", sides.labels)
    assert said.code == 0 and "no unit was rated twice" in said.out
    assert "undefined" not in said.out and "Note" not in said.out


def test_scores_of_many_dimensions_with_wide_names_fit(call: CallCommand) -> None:
    call.narrow()
    names = ["事実の正確さと論理の一貫性", "полнота ответа на вопрос", "tone", "\x1b[31mred"]
    for name, judge, step in (("one", "j", 1), ("other", "人間", 3)):
        rows = [score(f"u{k}", judge, d, k * step % 5 + 1) for k in range(30) for d in names]
        call.take("scores", rows, name)
    asked = ("agreement", "one", "--against", "other")
    said = call(*asked)
    assert said.code == 0 and said.width <= 80 and "\x1b[31m" not in said.out
    assert [row["dimension"] for row in call.json(*asked)["rows"]] == [*names, "overall"]


def test_a_judged_run_against_imported_labels_of_one_dimension(call: CallCommand) -> None:
    write_suite(Path(), 4)
    run = call.run()
    units = [row["unit"] for row in stored(Path())][:3]
    call.take("scores", [score(unit, "ann", "correct", 5) for unit in units])
    found = call.json("agreement", run, "--against", "rows")
    assert found["units"] == {"matched": 3, "only_run": 1, "only_against": 0}
    assert {row["dimension"] for row in found["rows"]} == {"correct"}
    assert found["rows"][0]["bias"]["value"] == -2.0
    assert found["corrected"][0]["labels_alone"] == 5.0
    assert "only one side has: clear" in found["notes"]


def test_what_is_refused(call: CallCommand, sides: Sides) -> None:
    call.take("scores", [score("u", "j", "fit", 1)], "scores")
    call.take("votes", [vote("elsewhere", "ann", "old", "new", "new")], "other")
    call.take("votes", [vote("q0", "ann", "p", "r", "p")], "renamed")
    call.take("votes", [vote("q0", "ann", "old", "new", "?"), vote("s", *"jxyx")], "unread")
    for flags, *told in (
        (("--against", ":c"), 'no judge "c"'),
        (("--against", sides.judged), "against itself"),
        (("--against", "ffffff"), "no run begins"),
        (("--against", "scores"), "of scores"),
        (("--against", sides.labels, "--by", "aera"), 'Did you mean "area"'),
        (("--judge", "z"), 'no judge "z"'),
        (("--majority",), "--against"),
        (("--level", "1"), "--level"),
        (("--against", "other"), '"q0"', '"elsewhere"'),
        (("--against", "renamed"), '"q0" compares "old" and "new" here, "p" and "r" there'),
        (("--against", "unread"), 'Both sides have "q0", but no unit has a verdict on both'),
    ):
        error = call.refused("agreement", sides.judged, *flags)
        assert all(part in error for part in told), error
    for flags in (("--ties", "drop"), ("--on-conflict", "tie")):
        call.refused("agreement", "scores", *flags)


def test_each_judge_leans_or_not_to_a_position(call: CallCommand) -> None:
    """Labels of one person, and two judges in both orders, against a count by hand: `good` is
    mostly right, `poor` often says what it is shown first."""
    chance, rows = random.Random(5), []
    for number in range(14):
        unit, truth = f"q{number}", chance.choice("ab")
        rows.append(vote(unit, "human/ann", "a", "b", truth))
        for judge, right, lean in (("good", 0.95, 0.0), ("poor", 0.5, 0.7)):
            opinion = truth if chance.random() < right else "ab".replace(truth, "")
            for first, second in ("ab", "ba"):
                winner = first if chance.random() < lean else opinion
                rows.append(vote(unit, judge, first, second, winner))
    asked = ("agreement", call.take("votes", rows), "--against", ":human/ann")
    leans = {lean["judge"]: lean for lean in call.json(*asked)["positions"]}
    # The person saw each pair in one order, which says nothing of position.
    assert list(leans) == ["good", "poor"]
    for judge, lean in leans.items():
        passes = [row for row in rows if row["judge"] == judge]
        firsts = [row["winner"] == row["first"] for row in passes]
        assert lean["first_slot"]["value"] == pytest.approx(mean(firsts))
        assert lean["first_slot"]["n"] == len(passes) == 2 * lean["first_rounds"]
        both = zip(passes[::2], passes[1::2], strict=True)
        alike = [one["winner"] == other["winner"] for one, other in both]
        assert lean["consistency"]["value"] == pytest.approx(mean(alike))
        assert lean["p"] <= lean["p_adjusted"]
    assert [lean["outcome"] for lean in leans.values()] == ["not enough evidence", "first"]
    assert leans["poor"]["first_slot"]["low"] > 0.5
    call.narrow()
    said = call(*asked)
    assert said.width <= 80 and "poor leans to the answer shown first (" in said.text
    assert "good: Usable" in said.text and "poor: Not usable" in said.text
