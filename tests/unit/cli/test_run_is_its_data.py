"""A run is its data: what happens to runs, figures and bills when the data file changes."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand import manifest
from tests.suites import (
    pair_row,
    pairs,
    samples,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.unit.cli.conftest import CallCommand

REPLY = {
    "scores": {
        name: {"evidence": [], "rationale": "no evidence found", "score": 3}
        for name in ("correct", "clear")
    },
    "failure_tags": [],
    "notes": "",
}


def exported(call: CallCommand, run: str = "latest") -> dict[str, Any]:
    """Everything that a run says of its units, by unit."""
    assert call("export", run, "--full", "-o", "out.jsonl").code == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    return {row["unit"]: row for row in rows}


def totals(found: dict[str, Any]) -> tuple[int, int, int]:
    failed = sum(found["failures"].values())
    assert found["planned"] == found["verdicts"] + failed + found["pending"]
    return found["planned"], found["verdicts"], found["pending"]


def test_a_deleted_row_is_in_no_figure(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 5)
    first = call("run", "--json").json
    assert "changed" not in first
    write_rows(tmp_path, samples(5)[:3] + samples(5)[4:])
    second = call("run", "--json").json
    assert second["run"] != first["run"]
    assert (second["calls"], second["cached"], totals(second)) == (0, 4, (4, 4, 0))
    assert second["changed"] == {"added": 0, "removed": 1, "changed": 0}
    assert "u3" not in call("show").out
    assert exported(call).keys() == {"u0", "u1", "u2", "u4"}
    assert exported(call, first["run"]).keys() == {f"u{i}" for i in range(5)}


def test_a_deleted_row_is_in_no_comparison(call: CallCommand, tmp_path: Path) -> None:
    rows = [
        row | {"id": f"q{i}-{v}", "meta": {"prompt_variant": v, "question_id": f"q{i}"}}
        for i, row in enumerate(samples(6))
        for v in ("v1", "v2")
    ]
    compare = ("compare", "--by", "prompt_variant", "--pair-by", "question_id", "--json")
    write_suite(tmp_path, rows)
    call("run")
    assert {row["n"] for row in call(*compare).json["rows"]} == {6}
    write_rows(tmp_path, rows[:-1])
    assert call("run", "--json").json["calls"] == 0
    assert {row["n"] for row in call(*compare).json["rows"]} == {5}


def test_a_changed_row_is_judged_anew_and_the_old_run_keeps_its_judgment(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 3)
    call("run")
    before = exported(call)
    rows = samples(3)
    rows[1]["model_output"] = "Quite another answer than there was."
    write_rows(tmp_path, rows)
    said = call("run", "--json")
    assert (said.json["calls"], totals(said.json)) == (1, (3, 3, 0))
    assert said.json["changed"] == {"added": 0, "removed": 0, "changed": 1}
    assert "+0, -0, 1 changed" in said.err
    after = exported(call)
    assert exported(call, "latest~1") == before
    assert {unit for unit in before if before[unit] != after[unit]} == {"u1"}
    quotes = [
        json.dumps(exported(call, run)["u1"]["output"]) for run in ("latest~1", "latest", "test")
    ]
    assert "Answer number 1" in quotes[0]
    assert "Quite another" in quotes[1]
    assert quotes[1] == quotes[2]
    assert call("store", "verify").code == 0


def test_a_changed_field_that_no_judge_sees_costs_nothing_and_is_told(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 3)
    call("run")
    rows = samples(3)
    rows[0]["meta"]["model"] = "renamed"
    write_rows(tmp_path, rows)
    found = call("run", "--json").json
    assert (found["calls"], found["verdicts"], found["changed"]["changed"]) == (0, 3, 1)


@pytest.mark.parametrize("write", [write_suite, write_pairs, write_answers])
def test_other_file_order_is_the_same_run(call: CallCommand, tmp_path: Path, write: Any) -> None:
    write(tmp_path, 9)
    first = call("run", "--json").json
    (file,) = [*tmp_path.glob("samples.jsonl"), *tmp_path.glob("pairs.jsonl")] or [
        tmp_path / "answers.jsonl"
    ]
    lines = file.read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    file.write_text("".join(lines))
    again = call("run", "--json").json
    assert (again["run"], again["calls"]) == (first["run"], 0)
    assert "changed" not in again
    assert len(call("runs", "--json").json["runs"]) == 1


def test_another_data_file_under_the_same_name_is_another_run(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 3)
    first = call("run", "--json").json
    write_rows(tmp_path, samples(3, start=10), "other.jsonl")
    write_suite(tmp_path, 3, data=["other.jsonl"])
    other = call("run", "--json").json
    assert other["run"] != first["run"]
    assert other["changed"] == {"added": 3, "removed": 3, "changed": 0}
    assert exported(call).keys() == {"u10", "u11", "u12"}
    # The same rows from another file are the same data.
    write_rows(tmp_path, samples(3, start=10), "moved.jsonl")
    write_suite(tmp_path, 3, data=["moved.jsonl"])
    assert call("run", "--json").json["run"] == other["run"]
    back = call("run", "--json").json
    assert "changed" not in back


def test_of_a_seventh_candidate_only_its_pairs_are_paid(call: CallCommand, tmp_path: Path) -> None:
    def rows(number: int) -> list[dict[str, Any]]:
        return [pair_row(f"t{i}", *range(1, number + 1), topic=f"Topic {i}?") for i in range(2)]

    write_pairs(tmp_path, rows(6))
    first = call("run", "--json").json
    assert (first["calls"], first["verdicts"]) == (2 * 2 * 15, 2 * 15)
    before = exported(call)
    write_pairs(tmp_path, rows(7))
    second = call("run", "--json").json
    assert (second["calls"], second["verdicts"]) == (2 * 2 * 6, 2 * 21)
    assert second["changed"] == {"added": 2 * 6, "removed": 0, "changed": 0}
    assert {unit: row for unit, row in exported(call).items() if unit in before} == before
    fronts = second["pairwise"]["fronts"]
    assert fronts["t0"]["candidates"] == [f"c{i}" for i in range(1, 8)]
    assert fronts["t0"]["front"] == ["c7"]
    assert first["pairwise"]["fronts"]["t0"]["front"] == ["c6"]


def test_candidates_exchanged_in_the_file_cost_nothing(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 6, {"model": "python/judge:late"})
    call("run")
    before = exported(call)
    rows = pairs(6)
    for row in rows:
        row["candidates"].reverse()
    write_rows(tmp_path, rows, "pairs.jsonl")
    found = call("run", "--json").json
    assert found["calls"] == 0
    assert found["changed"] == {"added": 0, "removed": 0, "changed": 6}
    turned = {"A": "B", "B": "A", "tie": "tie"}
    for unit, row in exported(call).items():
        old, new = before[unit], row
        assert new["output"]["winner"] == turned[old["output"]["winner"]]
        assert new["calls"] == old["calls"]
        assert [one["order"] for one in new["passes"]] == [
            {"12": "21", "21": "12"}[one["order"]] for one in old["passes"]
        ]


def test_recorded_replies_are_still_found_by_unit_and_order(
    call: CallCommand, tmp_path: Path
) -> None:
    write_pairs(tmp_path, 2, {"model": "replay/replies.jsonl"})
    winner = json.dumps(
        {
            "criteria": {
                f"C{i}": {
                    "first_meets": True,
                    "second_meets": False,
                    "comment": "so",
                    "mark": "A+",
                }
                for i in range(1, 6)
            },
            "explanation": "x",
            "winner": "A",
        }
    )
    turned = winner.replace("A+", "B+").replace('"winner": "A"', '"winner": "B"')
    (tmp_path / "replies.jsonl").write_text(
        "".join(
            json.dumps({"unit": f"p{i}", "order": order, "reply": reply}) + "\n"
            for i in range(2)
            for order, reply in (("12", winner), ("21", turned))
        )
    )
    assert call("run", "--json").json["verdicts"] == 2
    assert {row["output"]["winner"] for row in exported(call).values()} == {"A"}


def test_a_limit_judges_the_first_units_and_the_run_holds_all(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 5, {"model": "python/judge:good", "repeats": 2})
    first = call("run", "--limit", "2", "--json").json
    assert (first["calls"], totals(first)) == (4, (4, 4, 0))
    shown = call("show", "--json").json
    assert totals(shown) == (10, 4, 6)
    (listed,) = call("runs", "--json").json["runs"]
    assert totals(listed) == (10, 4, 6)
    assert exported(call).keys() == {"u0", "u1"}
    rest = call("run", "--json").json
    assert (rest["run"], rest["calls"], totals(rest)) == (first["run"], 6, (10, 10, 0))
    ahead = call("run", "--limit", "3", "--dry-run", "--json").json
    assert (ahead["run"], ahead["planned"], ahead["done"]) == (first["run"], 6, 6)
    changed = call("run", "--limit", "1", "--json").json
    assert totals(changed) == (2, 2, 0)


def test_runs_are_named_in_several_ways(call: CallCommand, tmp_path: Path) -> None:
    names = {}
    for number, name in ((2, "alpha"), (3, "alpha"), (2, "beta"), (4, "alpha")):
        write_suite(tmp_path, number, name=name)
        names[name, number] = call("run", "--json").json["run"]

    def found(run: str) -> str:
        return str(call("show", run, "--json").json["run"])

    assert found("latest") == found("alpha") == names["alpha", 4]
    assert found("latest~1") == found("alpha~1") == names["alpha", 3]
    assert found("latest~2") == names["alpha", 2]
    assert found("beta") == names["beta", 2]
    assert found(names["beta", 2][:6]) == names["beta", 2]
    assert found(f"{names['alpha', 3]}~1") == names["alpha", 2]
    # Started again, a run is the latest.
    write_suite(tmp_path, 2, name="beta")
    call("run")
    assert found("latest") == names["beta", 2]
    for wrong in ("gamma", "latest~3", "alpha~7"):
        told = call("show", wrong)
        assert told.code == 2
        assert names["alpha", 4] in told.err or names["beta", 2] in told.err
        assert "alpha" in told.err or "beta" in told.err


def test_a_store_of_another_version_is_refused(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 1)
    assert call("run").code == 0
    with sqlite3.connect(tmp_path / "evenhand.db") as other:
        other.execute("UPDATE store SET version=99")
    other.close()
    for command in ("run", "show", "runs"):
        told = call(command)
        assert told.code == 6
        assert "another version of evenhand" in told.err
        assert "--store" in told.err


class Counted:
    """How many statements, rows and bytes a store was asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def size(self) -> int:
        with sqlite3.connect(self.path) as beside:
            beside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        beside.close()
        return self.path.stat().st_size


def test_a_question_on_a_store_reads_and_adds_no_more_however_many_went_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that are parsed, steps of the database, and bytes on the disk: not time."""
    steps = parsed = 0
    connect = sqlite3.connect

    def step() -> None:
        nonlocal steps
        steps += 1

    def watched(*values: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*values, **named)
        connection.set_progress_handler(step, 50)
        return connection

    read_judging = manifest.read_judging

    def counted(text: bytes | str) -> manifest.JudgingRecord:
        nonlocal parsed
        parsed += 1
        return read_judging(text)

    monkeypatch.setattr("evenhand.store.sqlite.sqlite3.connect", watched)
    monkeypatch.setattr("evenhand.store.archive.read_judging", counted)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text(
        "import json\n"
        f"async def good(messages, schema, params):\n    return json.dumps({REPLY!r})\n"
    )
    store = Counted(tmp_path / "scores.db")
    rubric = json.loads((write_suite(tmp_path / "suite", 1) / "rubric.json").read_text())

    def ask(number: int) -> None:
        evenhand.score(
            f"Question {number}?",
            f"Answer {number}.",
            rubric=rubric,
            judge="python/judge:good",
            store=f"sqlite:{store.path}",
            meta={"n": number},
        )

    def measured(start: int) -> tuple[int, int, int]:
        nonlocal steps, parsed
        before, steps, parsed = store.size(), 0, 0
        for number in range(start, start + 20):
            ask(number)
        return steps, parsed, store.size() - before

    ask(0)
    early = measured(1)
    for number in range(100, 220):
        ask(number)
    late = measured(300)
    assert late[0] <= 1.5 * early[0]
    assert late[1] <= early[1]
    assert late[2] <= 20 * 8_000
