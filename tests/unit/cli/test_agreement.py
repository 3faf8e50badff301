"""`evenhand agreement`: of judges with labels, with each other, and with themselves."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from evenhand.words import words
from tests.sentences import is_told
from tests.suites import stored, write_suite
from tests.unit.cli.weekly import mean


def vote(unit, judge, first, second, winner, **rest):
    names = {"first": first, "second": second, "winner": winner}
    return {"unit": unit, "judge": judge, **names, **rest}


def score(unit, judge, dimension, value):
    return {"unit": unit, "judge": judge, "dimension": dimension, "score": value}


class Sides(NamedTuple):
    judged: str
    labels: str


@pytest.fixture
def sides(call):
    """Two judges on sixty pairs of two candidates, and labels of thirty."""
    said = ("old", "new", "tie")
    judged = [
        vote(f"q{k}", judge, "old", "new", said[k * step % 7 % 3], area="xy"[k % 2])
        for k in range(60)
        for judge, step in (("a", 1), ("b", 2))
    ]
    labels = [vote(f"q{k}", "human/ann", "new", "old", said[k % 7 % 3]) for k in range(0, 60, 2)]
    return Sides(call.take("votes", judged, "judged"), call.take("votes", labels, "labels"))


def test_against_labels(call, sides):
    asked = f"agreement {sides.judged} --against {sides.labels} --by area"
    found = call.json(asked)
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
    size = {"dimension": "winner", "judges": 2}
    assert is_told(call(asked).text, "agreement.row_together", **size)
    assert is_told(call(f"{asked} --majority").text, "agreement.row_majority", **size)
    said = call(f"{asked} --json")
    assert said.json == found and "NaN" not in said.out and "Infinity" not in said.out
    call.narrow()
    printed = call(asked)
    assert printed.width <= 80
    for part in ("Cohen's kappa", "corrected", "30 of 60"):
        assert part in printed.out


def test_judges_of_one_run(call, sides):
    run = sides.judged
    found = call.json(f"agreement {run}")
    (row,) = found["rows"]
    assert (found["against"], row["judge"], row["other"], row["n"]) == (None, "a", "b", 60)
    for name in (":b", f"{run}:b"):
        found = call.json(f"agreement {run} --against {name}")
        assert found["against"] == f"{run}:b"
        assert found["rows"][0]["n"] == 60 and found["rows"][0]["verdict"]
    rows = [vote(f"q{k}", judge, "x", "y", "x") for k in range(3) for judge in ("v:1", "v:2")]
    run = call.take("votes", rows)
    found = call.json(f"agreement {run} --against {run[:6]}:v:1")
    assert (found["against"], found["rows"][0]["n"]) == (f"{run}:v:1", 3)
    said = call.ok(f"agreement {sides.labels}")
    assert is_told(said.out, "agreement.alone") and "Note" not in said.out


def test_scores_of_many_dimensions_with_wide_names_fit(call):
    call.narrow()
    names = ["事実の正確さと論理の一貫性", "полнота ответа на вопрос", "tone", "\x1b[31mred"]
    for name, judge, step in (("one", "j", 1), ("other", "人間", 3)):
        rows = [score(f"u{k}", judge, d, k * step % 5 + 1) for k in range(30) for d in names]
        call.take("scores", rows, name)
    asked = "agreement one --against other"
    said = call.ok(asked)
    assert said.width <= 80 and "\x1b[31m" not in said.out
    assert [row["dimension"] for row in call.json(asked)["rows"]] == [*names, "overall"]


def test_a_judged_run_against_imported_labels_of_one_dimension(call):
    write_suite(Path(), 4)
    run = call.run()
    units = [row["unit"] for row in stored(Path())][:3]
    call.take("scores", [score(unit, "ann", "correct", 5) for unit in units])
    found = call.json(f"agreement {run} --against rows")
    assert found["units"] == {"matched": 3, "only_run": 1, "only_against": 0}
    assert {row["dimension"] for row in found["rows"]} == {"correct"}
    assert found["rows"][0]["bias"]["value"] == -2.0
    assert found["corrected"][0]["labels_alone"] == 5.0
    assert is_told(found["notes"][0], "agreement.only_one_side", dimensions='"clear"')


def test_what_is_refused(call, sides):
    call.take("scores", [score("u", "j", "fit", 1)], "scores")
    call.take("votes", [vote("elsewhere", "ann", "old", "new", "new")], "other")
    call.take("votes", [vote("q0", "ann", "p", "r", "p")], "renamed")
    call.take("votes", [vote("q0", "ann", "old", "new", "?"), vote("s", *"jxyx")], "unread")
    for flags, key, *told in (
        ("--against :c", "stats.no_judge", '"c"'),
        (f"--against {sides.judged}", "agreement.same_run"),
        ("--against ffffff", "runs.unknown_run", '"ffffff"'),
        ("--against scores", "agreement.two_kinds"),
        (f"--against {sides.labels} --by aera", "stats.no_such_field", '"area"'),
        ("--judge z", "stats.no_judge", '"z"'),
        ("--majority", "agreement.majority_alone"),
        ("--against other", "agreement.join_by_id", '"q0"', '"elsewhere"'),
        ("--against renamed", "agreement.other_candidates", '"q0"', "old", "new", "p", "r"),
        ("--against unread", "agreement.no_verdict_on_both", '"q0"'),
    ):
        call.refused(f"agreement {sides.judged} {flags}", key=key, says=told)
    call.refused(f"agreement {sides.judged} --level 1", says=["--level"])
    for flags in ("--ties drop", "--on-conflict tie"):
        call.refused(f"agreement scores {flags}")


def test_each_judge_leans_or_not_to_a_position(call):
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
    asked = f"agreement {call.take('votes', rows)} --against :human/ann"
    leans = {lean["judge"]: lean for lean in call.json(asked)["positions"]}
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
    said = call(asked)
    assert said.width <= 80 and is_told(said.text, "agreement.lean_first", judge="poor")
    for judge, outcome in (("good", "usable"), ("poor", "not usable")):
        told = words("en")("agreement.verdict", outcome=outcome, reason="")
        assert is_told(said.text, "agreement.of_judge", judge=judge, text=told)
