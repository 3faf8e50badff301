"""Units of one task are told apart by their meta, and so are replies that name their unit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.suites import TASK, write_answers
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


def test_what_names_its_unit_is_checked(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, variants())
    call("run")
    call("export", "latest", "-o", "bare.jsonl")
    call("export", "latest", "--full", "-o", "full.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "full.jsonl").read_text().splitlines()]
    named = [json.dumps({"unit": row["unit"]} | row["output"]) for row in rows]
    (tmp_path / "grades.jsonl").write_text("\n".join(named))
    options = ("check", "--protocol", "weighted", "--units", "answers.jsonl", "--replies")
    bare = call(*options, "bare.jsonl")
    assert bare.code == 3
    assert "6 units are called" in bare.err
    checked = call(*options, "grades.jsonl", "--json")
    assert (checked.code, checked.json["ok"]) == (0, 6)
