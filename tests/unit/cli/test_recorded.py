"""A recorded run asks the questions that its suite file asks now."""

from __future__ import annotations

import pytest

import evenhand
from evenhand.errors import UsageError
from tests.sentences import is_told
from tests.suites import samples, write_suite
from tests.unit.cli.conftest import put

GOOD = {"model": "python/judge:good"}


def suite(folder, **rest):
    """Eight samples with two fields to compare by, judged by a function."""
    rows = samples(8)
    for number, row in enumerate(rows):
        question, variant = divmod(number, 2)
        row["meta"] = {"prompt_variant": f"v{variant + 1}", "area": "ab"[variant]}
        row["meta"] |= {"question_id": f"q{question}"}
        del row["id"]
    write_suite(folder, rows, GOOD, **rest)


BY_VARIANT = {"by": "prompt_variant", "baseline": "v1"}


BY_AREA = {"by": "area", "baseline": "b"}


BROKEN = {"no_worse_then": 0.1}


@pytest.mark.parametrize("command", ["compare", "gate", "report"])
def test_a_broken_suite_file_is_an_error_also_where_the_store_is_named(call, tmp_path, command):
    suite(tmp_path, compare=BY_VARIANT, gate={"max_failure_rate": 0.5})
    call.ok("run")
    suite(tmp_path, compare=BY_VARIANT, gate=BROKEN)
    for store in ("", "--store sqlite:evenhand.db"):
        call.refused(f"{command} latest {store}", says=["evenhand.toml:", "no_worse_then"])
    suite(tmp_path, name="another", gate=BROKEN)
    said = call.ok("compare test --store sqlite:evenhand.db --json")
    assert said.json["baseline"] == "v1"


@pytest.mark.parametrize("command", ["show", "export", "agreement", "leaderboard"])
def test_a_broken_suite_file_stops_nobody_who_asks_it_nothing(call, tmp_path, command):
    suite(tmp_path)
    call.ok("run")
    put("evenhand.toml", 'name = "test"\n[limits\n')
    rest = ("-o", "out.jsonl") if command == "export" else ()
    said = call(command, "latest", *rest, "--store", "sqlite:evenhand.db")
    assert "evenhand.toml" in said.err and is_told(said.err, "kinds.not_toml")
    assert said.code == (2 if command == "leaderboard" else 0)  # a run of samples has no votes


def test_python_answers_the_question_that_the_suite_asks_now(call, tmp_path, monkeypatch):
    suite(tmp_path, compare=BY_VARIANT)
    assert is_told(call("run").out, "answer.none_overall", variant="v2", baseline="v1")
    run = evenhand.open("latest")
    assert run.compare().by == "prompt_variant"
    suite(tmp_path, compare=BY_VARIANT | {"baseline": "v2"})
    assert is_told(call("run").out, "answer.none_overall", variant="v1", baseline="v2")
    suite(tmp_path, compare=BY_AREA)
    assert (run.compare().by, run.compare().baseline) == ("area", "b")
    assert call.json("compare")["by"] == "area"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert evenhand.open("latest", store="sqlite:../evenhand.db").compare(**BY_VARIANT)
    monkeypatch.chdir(tmp_path)
    assert "area" in run.report("report.html").read_text("utf-8")
    suite(tmp_path, gate=BROKEN)
    with pytest.raises(UsageError, match="no_worse_then"):
        run.compare()


def test_a_run_of_a_suite_elsewhere_reads_the_file_of_its_own_folder(tmp_path, monkeypatch):
    suite(tmp_path / "mine", compare=BY_VARIANT)
    monkeypatch.chdir(tmp_path)
    run = evenhand.run("mine")
    suite(tmp_path / "mine", compare=BY_AREA)
    assert run.compare().by == "area"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
