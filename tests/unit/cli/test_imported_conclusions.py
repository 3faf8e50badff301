"""What is concluded from imported tables: no figure is made of what is not one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evenhand.cli.main import cli
from evenhand.data.write import write


def call(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    assert result.exit_code in (0, 1, 3), result.output
    told: dict[str, Any] = json.loads(result.stdout)
    return told


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def take(name: str, kind: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Import rows as a run of this name, and return the name."""
    write(Path(f"{name}.jsonl"), rows)
    call("import", f"{name}.jsonl", "--kind", kind, "--name", name)
    return name


def overall(told: Mapping[str, Any]) -> dict[str, Any]:
    (row,) = [row for row in told["rows"] if row["dimension"] == "overall"]
    return dict(row)


def scores(number: int, plus: int = 0, **more: Any) -> list[dict[str, Any]]:
    return [
        {"unit": f"q{i}", "judge": "j", "dimension": name, "score": 1 + (i + at) % 3 + plus, **more}
        for i in range(number)
        for at, name in enumerate(("acc", "style"))
    ]


def test_two_runs_without_a_stated_scale_are_compared_on_one() -> None:
    before, after = take("before", "scores", scores(12)), take("after", "scores", scores(12, 2))
    row = overall(call("compare", after, "--against", before))
    assert row["difference"] == pytest.approx(0.5) and row["outcome"] == "better"


def test_a_failure_tag_is_no_score() -> None:
    rows = [
        row | {"unit": f"{row['unit']}-{model}", "question_id": row["unit"], "model": model} | tags
        for model, tags in (("old", {}), ("new", {"failure_tags": "A"}))
        for row in scores(12)
    ]
    told = call("compare", take("tags", "scores", rows), "--by", "model", "--baseline", "old")
    assert overall(told)["difference"] == 0


def test_labels_of_one_dimension_are_compared_on_that_one() -> None:
    judged = take("judged", "scores", scores(12))
    labels = take("people", "scores", [row for row in scores(12) if row["dimension"] == "style"])
    told = call("agreement", judged, "--against", labels)
    assert {row["dimension"] for row in told["rows"]} == {"style"}


def votes(topics: Sequence[int], winner: str = "new", **more: Any) -> list[dict[str, Any]]:
    """So many pairs on each topic."""
    return [
        {
            "unit": f"t{topic}-{pair}",
            "question_id": f"t{topic}",
            "judge": "j",
            "first": "old",
            "second": "new",
            "winner": winner if size == 1 else "old",
            **more,
        }
        for topic, size in enumerate(topics)
        for pair in range(size)
    ]


def test_a_gate_says_that_topics_weigh_alike_and_nothing_is_missing() -> None:
    run = take("unequal", "votes", votes([1] * 60 + [200]))
    told = call("gate", run, "--candidate", "new", "--min-win-rate", "0.6")
    assert "topics weighing alike" in told["reasons"][0]
    told = call("gate", run, "--baseline", "old", "--no-worse-than", "0.1")
    assert "missing" not in told["reasons"][0]


def test_what_a_judge_was_never_to_judge_is_not_pending() -> None:
    rows = votes([1] * 40)
    rows = [row | {"judge": "ann" if at % 2 else "bob"} for at, row in enumerate(rows)]
    run = take("two", "votes", rows)
    told = call("compare", run, "--baseline", "old", "--judge", "ann")
    count = told["missing"]["new"]
    assert (count["units"], count["planned"], count["pending"]) == (40, 20, 0)
    assert overall(told)["bounds"] == [1, 1]
    assert (
        call("gate", run, "--baseline", "old", "--judge", "ann", "--better")["outcome"] == "better"
    )


def test_scores_paired_by_a_field_called_topic_are_no_win_rates() -> None:
    rows = [
        row | {"model": model, "topic": row["unit"], "unit": f"{row['unit']}-{model}"}
        for plus, model in enumerate(("m1", "m2"))
        for row in scores(12, plus)
    ]
    run = take("topics", "scores", rows)
    result = CliRunner().invoke(cli, ["compare", run, "--by", "model", "--pair-by", "topic"])
    assert result.exit_code == 0 and "wins" not in result.stdout


def test_a_column_called_topic_is_no_question_of_votes() -> None:
    run = take("named", "votes", votes([1] * 30, topic="law"))
    assert overall(call("compare", run, "--baseline", "old"))["clusters"] == 30


def test_a_column_called_length_is_no_length() -> None:
    rows = [row | {"length": "long" if at % 2 else "short"} for at, row in enumerate(scores(6))]
    run = take("lengths", "scores", rows)
    assert CliRunner().invoke(cli, ["report", run, "-o", "report.html"]).exit_code == 0
    assert CliRunner().invoke(cli, ["agreement", run]).exit_code in (0, 2)


def test_a_candidate_against_itself_says_nothing_of_positions() -> None:
    both = [("old", "new"), ("new", "old")]
    rows = [
        {"unit": f"u{i}", "judge": "j", "first": first, "second": second, "winner": "new"}
        for i in range(10)
        for first, second in both
    ]
    itself = [
        {"unit": f"s{i}", "judge": "j", "first": "old", "second": "old", "winner": "first"}
        for i in range(10)
    ]
    told = call("leaderboard", take("itself", "votes", [*rows, *itself]))
    assert (told["first_rounds"], told["consistency"]) == (10, 1.0)
