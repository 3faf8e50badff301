"""Repeats that a judge has still to give are pending, of one judge as of all: of samples too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evenhand.cli.main import cli
from tests.suites import write_suite

REPLAY = "replay/replies.jsonl"


def call(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def samples() -> list[dict[str, Any]]:
    return [
        {"id": f"{variant}/q{i}", "question": f"Question {i}?", "model_output": "worth 5 points"}
        | {"meta": {"prompt_variant": variant, "question_id": f"q{i}"}}
        for variant in ("v1", "v2")
        for i in range(3)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A judge that has a reply to the first repeat of every sample."""
    monkeypatch.chdir(tmp_path)
    given = {"evidence": ["worth 5"], "rationale": "so", "score": 5}
    reply = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    replies = [{"unit": row["id"], "reply": json.dumps(reply)} for row in samples()]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in replies))
    return tmp_path


def pending(comparison: dict[str, Any]) -> dict[str, tuple[int, int]]:
    counts = comparison["missing"].items()
    return {name: (count["scored"], count["pending"]) for name, count in counts}


def test_unfinished_repeats_of_one_judge_are_pending(folder: Path) -> None:
    write_suite(folder, samples(), {"model": REPLAY, "repeats": 3}, {"model": "python/judge:good"})
    call("run", ".")
    by = ("latest", "--by", "prompt_variant", "--baseline", "v1")
    assert pending(call("compare", *by)) == {"v1": (6, 6), "v2": (6, 6)}
    judged = call("compare", *by, "--judge", REPLAY)
    assert pending(judged) == {"v1": (3, 6), "v2": (3, 6)}
    assert judged["rows"][0]["bounds"] == pytest.approx([-8 / 3, 8 / 3])
    judged = call("compare", *by, "--judge", "python/judge:good")
    assert pending(judged) == {"v1": (3, 0), "v2": (3, 0)}


def test_unfinished_repeats_of_one_judge_are_pending_between_two_runs(folder: Path) -> None:
    write_suite(folder, samples(), {"model": REPLAY}, name="before")
    before = call("run", ".")["run"]
    write_suite(folder, samples(), {"model": REPLAY, "repeats": 3}, name="after")
    after = call("run", ".")["run"]
    judged = call("compare", after, "--against", before, "--judge", REPLAY)
    assert pending(judged) == {"before": (6, 0), "after": (6, 12)}


def test_two_runs_of_which_nothing_is_judged_are_not_said_to_have_other_dimensions(
    folder: Path,
) -> None:
    write_suite(folder, samples(), {"model": REPLAY}, name="before")
    before = call("run", ".")["run"]
    write_suite(folder, samples(), {"model": "python/judge:bad"}, name="after")
    after = json.loads(CliRunner().invoke(cli, ["run", ".", "--json"]).stdout)["run"]
    result = CliRunner().invoke(cli, ["compare", after, "--against", before])
    assert f"no unit of run {after} has a verdict: 6 failed, 0 pending" in str(result.exception)
