"""Gates of runs that were to stop once they were decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.suites import pair_row, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.gates import judged, samples

pytestmark = pytest.mark.usefixtures("no_ci")


def test_a_run_that_stopped_early_keeps_its_decision(call: CallCommand, tmp_path: Path) -> None:
    rest = {
        "compare": {"by": "prompt_variant", "baseline": "v1"},
        "gate": {"better": True, "no_worse_than": 0.05},
        "stop": {"until_decided": True},
    }
    judged(call, tmp_path, rest, v1="1" * 200, v2="35" * 100)
    assert call("show", "--json").json["pending"] > 200
    said = call("gate", "--json")
    assert said.code == 0, said.json
    assert all(one["n"] < 100 for one in said.json["conditions"])
    assert "sequential test" in said.json["notes"][-1]
    # What the sequential test was not asked is open while so much is missing.
    assert call("gate", "--dimension", "correct").code == 7
    mean = call("gate", "--min-mean", "0.6", "--json")
    assert mean.code == 7
    assert "evenhand run --to-the-end" in mean.json["reasons"][-1]
    assert "(evenhand run;" not in mean.out


ALPHA = {"until_decided": True, "dimension": "correct", "alpha": 0.4}


def test_a_decision_at_a_larger_error_is_not_the_gates_own(
    call: CallCommand, tmp_path: Path
) -> None:
    rest = {"compare": {"by": "prompt_variant", "baseline": "v1"}, "stop": ALPHA}
    judged(call, tmp_path, rest, v1="1" * 200, v2="35" * 100)
    asked = ("gate", "--better", "--no-worse-than", "0", "--dimension", "correct", "--json")
    said = call(*asked)
    assert (said.code, said.json["level"]) == (7, 0.95)
    for one in said.json["conditions"]:
        assert (one["outcome"], one["low"], one["high"]) == ("not enough evidence", None, None)
        assert "error of 0.4 and this gate asks for 0.05" in one["reason"]
        assert "smaller alpha under [stop], or give --level 0.6" in one["reason"]
    lower = call(*asked, "--level", "0.6")
    assert (lower.code, lower.json["level"]) == (0, 0.6)
    assert "sequential test at level 0.6," in lower.json["notes"][-1]
    assert call(*asked, "--level", "0.61").code == 7
    rest["stop"] = ALPHA | {"alpha": 0.05}
    judged(call, tmp_path, rest, v1="1" * 200, v2="35" * 100)
    smaller = call(*asked)
    assert smaller.code == 0, smaller.json
    assert "sequential test at level 0.95," in smaller.json["notes"][-1]


def test_what_a_decided_run_leaves_is_no_failure(call: CallCommand, tmp_path: Path) -> None:
    rest = {
        "compare": {"by": "prompt_variant", "baseline": "v1"},
        "gate": {"no_worse_than": 0.05, "max_failure_rate": 0.02},
        "stop": {"until_decided": True},
    }
    judged(call, tmp_path, rest, v1="1" * 200, v2="35" * 100)
    shown = call("show", "--json").json
    assert shown["pending"] > 200
    said = call("gate", "--json")
    assert said.code == 0, said.json
    assert said.json["conditions"][-1]["n"] == shown["verdicts"]
    assert call("gate", "--judge", "python/judge:good", "--max-failure-rate", "0").code == 7
    only = ("--max-failure-rate", "0", "--json")
    (judge,) = call("gate", "--judge", "python/judge:good", *only).json["conditions"][1:]
    assert (judge["outcome"], judge["n"]) == ("better", shown["verdicts"])


def test_what_an_undecided_run_has_not_judged_can_still_fail(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = samples(v1="1" * 40, v2="1" * 40)
    given = {"evidence": [], "rationale": "no evidence found", "score": 3}
    reply = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    rest = {
        "compare": {"by": "prompt_variant", "baseline": "v1"},
        "gate": {"max_failure_rate": 0.02},
        "stop": {"until_decided": True},
    }
    write_suite(tmp_path, rows, {"model": "replay/replies.jsonl"}, **rest)
    ids = [f"{v}/q{q}" for v in ("v1", "v2") for q in range(30)]
    replies = [{"unit": name, "reply": json.dumps(reply)} for name in ids]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies))
    assert call("run", "--json").json["pending"] > 0
    said = call("gate", "--json")
    assert said.code == 7
    assert "pending: evenhand run" in said.json["reasons"][0]


def test_a_stopped_run_of_pairs_passes_its_gate(call: CallCommand, tmp_path: Path) -> None:
    rows = [pair_row(f"p{i}", 2, 9, topic=f"T{i}?") for i in range(80)]
    write_pairs(tmp_path, rows, compare={"baseline": "c1"}, stop={"until_decided": True})
    assert call("run").code == 0
    asked = ("gate", "--better", "--max-failure-rate", "0", "--json")
    assert call(*asked).code == 0
    named = call(*asked, "--by", "candidate")
    assert (named.code, "sequential test at level 0.95" in named.json["notes"][-1]) == (0, True)
    other = call("gate", "--candidate", "c2", "--judge", "python/judge:content", *asked[1:])
    assert other.code == 7
    assert "evenhand run --to-the-end" in other.json["reasons"][0]
    assert call("gate", "--candidate", "nobody", "--max-failure-rate", "0").code == 2
