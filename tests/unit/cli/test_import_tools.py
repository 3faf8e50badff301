"""`evenhand import` of what other tools wrote: their errors are failures, and never scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import NEWEST, CallCommand


def result(test: int, model: str, score: float, reason: str = "fine", **rest: Any) -> Any:
    """A result of promptfoo with one assertion that a model graded."""
    part = {"pass": score > 0.5, "score": score, "reason": reason}
    component = {**part, "assertion": {"type": "llm-rubric"}, **rest}
    grading = {**part, "componentResults": [component]}
    about = {"testIdx": test, "provider": model, "failureReason": int(score <= 0.5)}
    return {**about, "score": score, "success": score > 0.5, "gradingResult": grading}


def test_errors_of_graders_and_scores_off_the_scale_are_failures(
    tmp_path: Path, call: CallCommand
) -> None:
    results = [result(test, model, 0.5) for test in range(6) for model in ("new", "old")]
    results[0] = result(0, "new", 0, "HTTP 503", metadata={"graderError": True})
    results[2] = result(1, "new", 0, "Could not extract JSON from llm-rubric response")
    results[4] = result(2, "new", 85)
    results[6] = result(3, "new", 0, "It is rude.")
    results[8] = {"testIdx": 4, "provider": "new", "failureReason": 2, "error": "timeout"}
    (tmp_path / "results.json").write_text(json.dumps({"results": {"results": results}}))
    found = call("import", "results.json", "--kind", "promptfoo", "--json").json
    assert (found["planned"], found["verdicts"]) == (12, 8)
    assert found["failures"] == {"out_of_range": 1, "schema": 3}
    said = call("import", "results.json", "--kind", "promptfoo").out
    assert "1 x out_of_range: score 85 is off the scale from 0 to 1" in said
    assert "error: HTTP 503" in said
    compared = call("compare", NEWEST, "--by", "model", "--baseline", "old", "--json").json
    # On tests 3 and 5, which both have: 0 and 0.5 against 0.5, on a scale from 0 to 1.
    text = json.dumps(compared)
    assert "-0.25" in text, text


def log(folder: Path, name: str, scores: Sequence[str | None], **args: Any) -> str:
    """A log of Inspect; None is a sample that ended in an error."""
    samples = [
        {"id": number, "epoch": 1, "input": f"question {number}"}
        | ({"scores": {"match": {"value": value}}} if value else {"error": "out of memory"})
        for number, value in enumerate(scores)
    ]
    about = {"model": "m", "task": "sums", "task_args": args}
    (folder / name).write_text(json.dumps({"version": 2, "eval": about, "samples": samples}))
    return name


def test_logs_with_other_arguments_are_variants_and_an_errored_sample_failed(
    tmp_path: Path, call: CallCommand
) -> None:
    first = log(tmp_path, "a.json", "CCIC", shots=0, cot=True)
    second = log(tmp_path, "b.json", ["C", None, "C", "C"], shots=5, cot=True)
    found = call("import", first, second, "--kind", "inspect", "--json").json
    assert (found["units"], found["verdicts"], found["repeats"]) == (8, 7, 1)
    assert found["failures"] == {"schema": 1}
    assert found["key"] == ["unit", "model", "task", "task_args.shots"]
    compared = call("compare", NEWEST, "--by", "task_args.shots", "--baseline", "0")
    assert compared.code == 0 and "0.333" in compared.out, compared.err


@pytest.mark.parametrize("order", [("a.json", "b.json"), ("b.json", "a.json")])
def test_an_errored_sample_hides_in_no_repeat(
    tmp_path: Path, call: CallCommand, order: tuple[str, str]
) -> None:
    log(tmp_path, "a.json", "CC", shots=5)
    log(tmp_path, "b.json", ["C", None], shots=5)
    found = call("import", *order, "--kind", "inspect", "--json").json
    assert (found["units"], found["verdicts"], found["repeats"]) == (2, 3, 2)
    assert (found["failures"], found["key"]) == ({"schema": 1}, ["unit", "model", "task"])


def test_a_log_alone_is_called_as_before(tmp_path: Path, call: CallCommand) -> None:
    log(tmp_path, "a.json", "CI", shots=5)
    found = call("import", "a.json", "--kind", "inspect", "--json").json
    assert found["key"] == ["unit", "model", "task"]
