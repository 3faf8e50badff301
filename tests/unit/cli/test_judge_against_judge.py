"""Judge against judge on the same labels, and who leans to a position, each against a count by
hand."""

from __future__ import annotations

import csv
import random
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.cells import cell_len

from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.weekly import mean
from tests.unit.stats.twin import naive, naive_difference


class Vote(NamedTuple):
    """A row of the table, with the topic that the pair belongs to."""

    unit: str
    judge: str
    first: str
    second: str
    winner: str


def votes(units: int = 14) -> list[Vote]:
    """Labels of one person, and two judges in both orders: `good` is mostly right, `poor` often
    says what it is shown first."""
    chance = random.Random(5)
    rows: list[Vote] = []
    for number in range(units):
        unit, truth = f"q{number}", chance.choice("ab")
        rows.append(Vote(unit, "human/ann", "a", "b", truth))
        for judge, right, lean in (("good", 0.95, 0.0), ("poor", 0.5, 0.7)):
            opinion = truth if chance.random() < right else "ab".replace(truth, "")
            for shown in (("a", "b"), ("b", "a")):
                winner = shown[0] if chance.random() < lean else opinion
                rows.append(Vote(unit, judge, *shown, winner))
    return rows


def imported(call: CallCommand, folder: Path, name: str, rows: list[Any]) -> str:
    with (folder / name).open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(rows[0]._fields)
        table.writerows(rows)
    kind = "votes" if "winner" in rows[0]._fields else "scores"
    run: str = call("import", name, "--kind", kind, "--json").json["run"]
    return run


def said(rows: list[Vote], unit: str, judge: str) -> str:
    """What both orders of a judge come to: their winner, or nothing that they agree on."""
    winners = {row.winner for row in rows if (row.unit, row.judge) == (unit, judge)}
    return winners.pop() if len(winners) == 1 else "tie"


def test_the_closer_of_two_judges_is_found_on_the_same_labels(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = votes()
    run = imported(call, tmp_path, "votes.csv", rows)
    agreed = call("agreement", run, "--against", ":human/ann", "--json").json
    (contrast,) = agreed["judges"]
    units = list(dict.fromkeys(row.unit for row in rows))
    hits = {
        judge: [said(rows, unit, judge) == said(rows, unit, "human/ann") for unit in units]
        for judge in ("good", "poor")
    }
    gaps = [float(good) - poor for good, poor in zip(hits["good"], hits["poor"], strict=True)]
    assert (contrast["dimension"], contrast["figure"]) == ("winner", "agreement")
    assert (contrast["judge"], contrast["other"], contrast["n"]) == ("good", "poor", len(units))
    assert contrast["value"] == pytest.approx(mean(hits["good"]))
    assert contrast["other_value"] == pytest.approx(mean(hits["poor"]))
    assert contrast["difference"] == pytest.approx(mean(gaps))
    oracle = naive_difference([[gap] for gap in gaps], 1.0)
    assert (contrast["low"], contrast["high"], contrast["p"]) == pytest.approx(oracle)
    assert contrast["p"] == contrast["p_adjusted"]
    assert contrast["low"] <= contrast["difference"] <= contrast["high"]
    assert contrast["outcome"] == "better"
    of_judges = {row["judge"]: row["agreement"]["value"] for row in agreed["rows"] if row["judge"]}
    assert of_judges == {"good": contrast["value"], "poor": contrast["other_value"]}


def test_each_judge_leans_or_not_to_a_position(call: CallCommand, tmp_path: Path) -> None:
    rows = votes()
    run = imported(call, tmp_path, "votes.csv", rows)
    leans = {
        lean["judge"]: lean
        for lean in call("agreement", run, "--against", ":human/ann", "--json").json["positions"]
    }
    # The person saw each pair in one order, which says nothing of position.
    assert list(leans) == ["good", "poor"]
    ps = []
    for judge, lean in leans.items():
        passes = [row for row in rows if row.judge == judge]
        firsts = [row.winner == row.first for row in passes]
        assert lean["first_slot"]["value"] == pytest.approx(mean(firsts))
        assert lean["first_slot"]["n"] == len(passes) == 2 * lean["first_rounds"]
        units = list(dict.fromkeys(row.unit for row in passes))
        alike = [said(rows, unit, judge) != "tie" for unit in units]
        assert lean["consistency"]["value"] == pytest.approx(mean(alike))
        firsts_of = [
            [float(row.winner == row.first) for row in passes if row.unit == unit] for unit in units
        ]
        if (
            len({mean(firsts) for firsts in firsts_of}) == 1
        ):  # it never leans, which shows no spread
            assert lean["p"] == 1
            ps.append(lean["p"])
            continue
        low, high, p = naive(firsts_of, (0.0, 1.0), (0.0, 1.0), 0.95)
        assert (lean["first_slot"]["low"], lean["first_slot"]["high"]) == pytest.approx((low, high))
        assert lean["p"] == pytest.approx(p)
        ps.append(lean["p"])
    assert leans["poor"]["p_adjusted"] == pytest.approx(2 * min(ps))
    assert leans["poor"]["outcome"] == "first"
    assert leans["poor"]["first_slot"]["low"] > 0.5
    assert leans["good"]["outcome"] == "not enough evidence"


def test_it_is_said_in_sentences_that_fit_the_terminal(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run = imported(call, tmp_path, "votes.csv", votes())
    out = call("agreement", run, "--against", ":human/ann").out
    assert max(map(cell_len, out.splitlines())) <= 80
    text = " ".join(out.split())
    assert "good is closer to human/ann than poor: agreement " in text
    assert "Position: poor leans to the answer shown first (" in text
    assert "not enough evidence of a lean of good." in text


class Score(NamedTuple):
    """A row of the table of scores."""

    unit: str
    judge: str
    dimension: str
    score: int


def scores() -> list[Score]:
    chance = random.Random(2)
    rows: list[Score] = []
    for number, dimension in product(range(12), ("true", "kind")):
        truth = chance.randint(2, 4)
        near, far = truth + chance.choice((0, 0, 1)), truth + chance.choice((-1, 0, 1, 1))
        for judge, score in (("human/ann", truth), ("near", near), ("far", far)):
            rows.append(Score(f"q{number}", judge, dimension, score))
    return rows


def test_scores_are_compared_by_agreement_and_by_error(call: CallCommand, tmp_path: Path) -> None:
    rows = scores()
    run = imported(call, tmp_path, "scores.csv", rows)
    agreed = call("agreement", run, "--against", ":human/ann", "--json").json
    contrasts = {(c["dimension"], c["figure"]): c for c in agreed["judges"]}
    values = {(row.unit, row.judge, row.dimension): row.score for row in rows}
    units = [f"q{number}" for number in range(12)]
    for dimension in ("true", "kind"):
        errors = {
            judge: [
                abs(values[unit, judge, dimension] - values[unit, "human/ann", dimension])
                for unit in units
            ]
            for judge in ("near", "far")
        }
        error = contrasts[dimension, "mae"]
        first, second = error["judge"], error["other"]
        assert {first, second} == {"near", "far"}
        gaps = [a - b for a, b in zip(errors[first], errors[second], strict=True)]
        assert error["value"] == pytest.approx(mean(errors[first]))
        assert error["difference"] == pytest.approx(mean(gaps))
        assert error["p"] == pytest.approx(naive_difference([[g] for g in gaps], 4.0)[2], rel=0.01)
        same = contrasts[dimension, "agreement"]
        assert same["value"] == pytest.approx(mean([e == 0 for e in errors[first]]))
    # A smaller error is closer.
    ps = [contrasts[dimension, "mae"]["p"] for dimension in ("true", "kind")]
    adjusted = [contrasts[dimension, "mae"]["p_adjusted"] for dimension in ("true", "kind")]
    assert min(adjusted) == pytest.approx(min(1, 2 * min(ps)))


def test_one_judge_has_nobody_beside_it(call: CallCommand, tmp_path: Path) -> None:
    rows = [vote for vote in votes() if vote.judge != "poor"]
    run = imported(call, tmp_path, "votes.csv", rows)
    agreed = call("agreement", run, "--against", ":human/ann", "--json").json
    assert agreed["judges"] == [] and len(agreed["positions"]) == 1
