"""Answers under a rubric without a task type, read by every command."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evenhand.results.report import ReportOptions, make_report
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from evenhand.stats.comparison import OVERALL
from tests.suites import GRADE_JUDGE, TASK, write_answers
from tests.unit.cli.conftest import put
from tests.unit.web.serving import served

UNTYPED = TASK.removeprefix("task_type: fact\n\n")


GOOD, FORBIDDEN = "It is certain.", "It is Forbidden."


def rows(*texts):
    """A task each, answered by two models."""
    return [
        {"task_name": f"t{place}", "prompt": "Task?", "answer": text, "rubric": UNTYPED}
        | {"meta": {"model": model}}
        for place, both in enumerate(texts)
        for model, text in zip(("old", "new"), both, strict=True)
    ]


SOME = rows((GOOD, GOOD), (FORBIDDEN, GOOD), (GOOD, FORBIDDEN), (FORBIDDEN, GOOD))


ALL = rows(*[(FORBIDDEN, FORBIDDEN)] * 3)


@pytest.fixture(params=[SOME, ALL], ids=["some", "all"])
def judged(request, call, tmp_path):
    judges = ({"model": "python/judge:good"}, {"model": "python/judge:unsure"})
    write_answers(tmp_path, request.param, *judges, compare={"by": "model", "baseline": "old"})
    call.ok("run")
    return request.param


def means(units):
    """Of the totals: 21 of 100 by the judge, 0 by code."""
    totals = {"old": [], "new": []}
    for unit in units:
        totals[unit["meta"]["model"]].append(0.21 if unit["answer"] == GOOD else 0.0)
    return {model: sum(given) / len(given) for model, given in totals.items()}


def test_every_command_that_reads_takes_them(call, tmp_path, judged):
    expected = means(judged)
    compared = call.ok("compare --json")
    overall = next(row for row in compared.json["rows"] if row["dimension"] == OVERALL)
    assert overall["mean"] == pytest.approx(expected["new"])
    assert overall["baseline_mean"] == pytest.approx(expected["old"])
    gate = call("gate --max-critical-fails 0 --json")
    assert (gate.code, gate.json["outcome"]) == (1, "worse"), gate.err
    reading = (
        ["agreement", "latest", "--json"],
        ["show"],
        ["show", "latest", "t1/new"],
        ["export", "-o", "out.csv"],
    )
    assert {call(*arguments).code for arguments in reading} == {0}
    call.ok("report -o report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Forbidden" in page
    with closing(open_archive("sqlite:evenhand.db")) as store:
        report = make_report(store, find_run(store, "latest"), ReportOptions(summary=True))
    totals = {mean.variant: mean.mean for mean in report.means if mean.dimension == OVERALL}
    assert totals == pytest.approx({name: 100 * mean for name, mean in expected.items()})
    if judged is ALL:
        return
    # The units that changed most are told out of 100, as the answer is.
    text, told = call("compare --worst 1").out, call("compare --worst 1 --json")
    assert "worst 1: -21" in text and "old: 21" in text
    (worst,) = told.json["changed"]["worst"]
    assert worst["difference"] == pytest.approx(-0.21)
    assert 'data-difference="-21.0"' in page
    with served(tmp_path / "evenhand.db") as site:
        assert site.get("/runs/latest").status_code == 200
        run = site.get("/").text.split("/runs/")[1].split('"')[0]
        changes = site.get(f"/runs/{run}/changes").text
    assert "overall (of 100)" in changes and "21.00" in changes


TYPED_BY_JUDGE = """
from graded import said

async def typed(messages, schema, params):
    "Creative where the task asks for a poem, if the rubric names no type."
    if "enum" not in schema["properties"]["inferred_task_type"]:
        return said(schema)
    is_poem = "A poem?" in messages[-1]["content"]
    return said(schema, inferred_task_type="creative" if is_poem else "speculative")
"""


def test_the_type_of_a_task_is_a_field_given_or_inferred(call, tmp_path):
    rubrics = {"poem": UNTYPED, "idea": UNTYPED, "date": TASK}
    types = {"poem": "creative", "idea": "speculative", "date": "fact"}
    units = [
        {"task_name": f"{name}{i}", "prompt": f"A {name}?", "answer": GOOD, "rubric": rubric}
        | {"meta": {"model": model}}
        for name, rubric in rubrics.items()
        for i in range(3)
        for model in ("old", "new")
    ]
    put("graded.py", GRADE_JUDGE)
    write_answers(tmp_path, units, "typed", judge=TYPED_BY_JUDGE)
    run = call.run()
    with closing(sqlite3.connect("evenhand.db")) as store:
        sql = "SELECT unit, value FROM unit_fields WHERE run = ? AND field = 'task_type'"
        found = dict(store.execute(sql, [run]).fetchall())
    assert len(found) == len(units)
    assert all(types[unit[:4]] == value for unit, value in found.items())
    by_type = call("compare --by task_type --pair-by model --json")
    variants = {row["variant"] for row in by_type.json["rows"]} | {by_type.json["baseline"]}
    assert variants == set(types.values())
    assert not {row["dimension"] for row in by_type.json["rows"]} & {"task_type:creative"}
    for selected in ("fact", "creative"):
        one = call(f"compare --by model --where task_type={selected} --json")
        assert {row["n"] for row in one.json["rows"]} == {3}
    within = call("compare --by model --within task_type --json")
    assert {block["value"] for block in within.json["within"]["blocks"]} == set(types.values())
