"""Units of one task are told apart by their meta, and exports can be joined with the data."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from tests.suites import TASK, pairs, samples, write_answers, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand


def variants() -> list[dict[str, Any]]:
    """One task, two prompt variants, three runs of each."""
    return [
        {"task_name": "capital", "prompt": "Capital?", "answer": f"It is certain, {run}."}
        | {"rubric": TASK, "meta": {"run_id": run, "model": "m", "prompt_variant": variant}}
        for variant in ("v1", "v2")
        for run in ("r1", "r2", "r3")
    ]


def test_variants_and_runs_of_one_task_have_ids_of_their_own(
    call: CallCommand, tmp_path: Path
) -> None:
    write_answers(tmp_path, variants())
    assert call("run", "--json").json["verdicts"] == 6
    said = call("compare", "--by", "prompt_variant", "--json").json
    assert {row["n"] for row in said["rows"]} == {3}
    (judgment,) = call("show", "latest", "capital/r2/m/v2", "--json").json["judgments"]
    assert judgment["unit"] == "capital/r2/m/v2"


def test_the_contract_export_can_be_joined(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, variants())
    call("run")
    bare = call("export", "latest", "-o", "bare.jsonl")
    assert "6 units share the name of another" in bare.err
    assert "--with-unit" in bare.err
    assert "evenhand export latest --people -o bare.xlsx" in bare.err
    told = call("export", "latest", "--with-unit", "-o", "grades.jsonl")
    assert "--with-unit" not in told.err
    rows = [json.loads(line) for line in (tmp_path / "grades.jsonl").read_text().splitlines()]
    plain = [json.loads(line) for line in (tmp_path / "bare.jsonl").read_text().splitlines()]
    assert [next(iter(row)) for row in rows] == ["unit"] * 6
    assert [{k: v for k, v in row.items() if k != "unit"} for row in rows] == plain
    assert rows[0]["unit"] == "capital/r1/m/v1"
    call("export", "latest", "--with-unit", "-o", "grades.csv")
    with (tmp_path / "grades.csv").open() as file:
        assert [row["unit"] for row in csv.DictReader(file)] == [row["unit"] for row in rows]


def test_what_names_its_unit_is_checked(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, variants())
    call("run")
    call("export", "latest", "-o", "bare.jsonl")
    call("export", "latest", "--with-unit", "-o", "grades.jsonl")
    options = ("check", "--protocol", "weighted", "--units", "answers.jsonl", "--replies")
    bare = call(*options, "bare.jsonl")
    assert bare.code == 3
    assert "6 units are called" in bare.err
    checked = call(*options, "grades.jsonl", "--json")
    assert (checked.code, checked.json["ok"]) == (0, 6)


def test_every_kind_has_it(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path / "samples", samples(2))
    write_pairs(tmp_path / "pairs", pairs(2))
    for folder, unit in (("samples", "u0"), ("pairs", "p0")):
        store = ("--store", f"sqlite:{folder}/evenhand.db")
        assert call("run", folder).code == 0
        plain = call("export", "latest", "-o", "-", *store)
        # The samples have ids that their meta does not tell.
        assert ("--with-unit" in plain.err) == (folder == "samples")
        rows = call("export", "latest", "--with-unit", "-o", "-", *store).out.splitlines()
        assert json.loads(rows[0])["unit"] == unit
    for more in ("--full", "--fronts"):
        said = call("export", "latest", "--with-unit", more, "-o", "x.jsonl", *store)
        assert said.code == 2
    assert call("export", "latest", "--with-unit", "-o", "x.txt", *store).code == 2
