"""Wins, losses, ties and what is uncertain are counted once: by the verdict of the panel on each
pair, the same in every command."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evenhand.results.report import ReportOptions, make_report
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.suites import pair_row, write_pairs, write_rows
from tests.unit.cli.conftest import NEWEST, CallCommand

COUNTED = ("wins", "losses", "ties", "uncertain")
# What each says of five pairs: a majority for either side, for a tie, for uncertain, and none.
SAID = {
    "ann": ["A", "B", "tie", "uncertain", "A"],
    "bob": ["A", "B", "tie", "uncertain", "B"],
    "cyd": ["B", "tie", "A", "A", "tie"],
}
PANEL = {"c1": (1, 1, 1, 2), "c2": (1, 1, 1, 2)}


def votes() -> list[dict[str, Any]]:
    rows = []
    for judge, verdicts in SAID.items():
        for place, winner in enumerate(verdicts):
            for order in (("c1", "c2"), ("c2", "c1")):
                name = {"A": "c1", "B": "c2", "tie": "tie", "uncertain": order[0]}[winner]
                both = {"first": order[0], "second": order[1], "winner": name}
                rows.append({"unit": f"p{place}", "judge": judge, **both})
    return rows


def of_show(call: CallCommand) -> dict[str, tuple[int, ...]]:
    found = call("show", NEWEST, "--json").json["pairwise"]["candidates"]
    return {name: tuple(one[key] for key in COUNTED) for name, one in found.items()}


def of_leaderboard(call: CallCommand, *more: str) -> dict[str, tuple[int, ...]]:
    rows = call("leaderboard", NEWEST, *more, "--json").json["rows"]
    assert all(sum(row[key] for key in COUNTED) == row["pairs"] for row in rows)
    return {row["candidate"]: tuple(row[key] for key in COUNTED) for row in rows}


def of_report(folder: Path) -> dict[str, tuple[int, ...]]:
    with closing(open_archive(f"sqlite:{folder / 'evenhand.db'}")) as store:
        (row,) = store.runs()
        report = make_report(store, find_run(store, row.id), ReportOptions(summary=True))
    return {row.candidate: tuple(getattr(row, key) for key in COUNTED) for row in report.board.rows}


def test_three_judges_are_counted_alike_by_every_command(call: CallCommand, tmp_path: Path) -> None:
    write_rows(tmp_path, votes(), "votes.jsonl")
    assert call("import", "votes.jsonl", "--kind", "votes").code == 0
    assert of_show(call) == of_leaderboard(call) == of_report(tmp_path) == PANEL
    assert call("export", NEWEST, "-o", "v.txt").code == 0
    lines = (tmp_path / "v.txt").read_text().splitlines()[1:]
    winners = [line.split("|")[1].strip() for line in lines]
    assert winners == ["A", "B", "tie", "uncertain", "uncertain"]
    shown = call("show", NEWEST).out
    assert re.search(r"c1\s+1\s+1\s+1\s+2\n", shown)


@pytest.mark.parametrize("rule", ["tie", "uncertain", "drop", "split"])
def test_the_rule_of_an_import_holds_in_every_command(
    call: CallCommand, tmp_path: Path, rule: str
) -> None:
    write_rows(tmp_path, votes(), "votes.jsonl")
    assert call("import", "votes.jsonl", "--kind", "votes", "--on-conflict", rule).code == 0
    assert of_show(call) == of_leaderboard(call) == of_report(tmp_path)
    assert (of_show(call) == PANEL) == (rule in ("uncertain", "split"))


def test_judged_panels_with_repeats_are_counted_alike(call: CallCommand, tmp_path: Path) -> None:
    judges = [{"model": f"python/judge:{name}"} for name in ("content", "first", "late", "bad")]
    judges[2]["repeats"] = 3  # type: ignore[assignment]
    worths = [(9, 2), (1, 7), (4, 4), (3, 8), (6, 5)]
    write_pairs(tmp_path, [pair_row(f"p{i}", *both) for i, both in enumerate(worths)], *judges)
    ran = call("run", "--json").json["pairwise"]["candidates"]
    counts = {name: tuple(one[key] for key in COUNTED) for name, one in ran.items()}
    assert counts == of_show(call) == of_leaderboard(call) == of_report(tmp_path)
    assert sum(counts["c1"]) == len(worths)
