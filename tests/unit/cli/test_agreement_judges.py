"""Verdicts of `evenhand agreement` judge by judge, and who leans to a position, against a count by
hand."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.cells import cell_len

from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.weekly import mean


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


def test_each_judge_leans_or_not_to_a_position(call: CallCommand, tmp_path: Path) -> None:
    rows = votes()
    run = imported(call, tmp_path, "votes.csv", rows)
    leans = {
        lean["judge"]: lean
        for lean in call("agreement", run, "--against", ":human/ann", "--json").json["positions"]
    }
    # The person saw each pair in one order, which says nothing of position.
    assert list(leans) == ["good", "poor"]
    for judge, lean in leans.items():
        passes = [row for row in rows if row.judge == judge]
        firsts = [row.winner == row.first for row in passes]
        assert lean["first_slot"]["value"] == pytest.approx(mean(firsts))
        assert lean["first_slot"]["n"] == len(passes) == 2 * lean["first_rounds"]
        units = list(dict.fromkeys(row.unit for row in passes))
        alike = [said(rows, unit, judge) != "tie" for unit in units]
        assert lean["consistency"]["value"] == pytest.approx(mean(alike))
        assert lean["p"] <= lean["p_adjusted"]
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
    assert "poor leans to the answer shown first (" in text
    assert "not enough evidence of a lean of good" in text
    assert "good: Usable" in text and "poor: Not usable" in text
