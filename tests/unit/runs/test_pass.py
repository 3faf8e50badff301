"""What passes: marks of a rubric, a protocol and a suite, and what they change in a run."""

from __future__ import annotations

import json

import pytest

from evenhand.kinds.kind import RubricTextError
from evenhand.kinds.rubric.rubric import build_rubric
from tests.suites import RUBRIC, evenhand_here, write_answers, write_pairs, write_suite

WORSE = {"higher_is": "worse"}
ONE = RUBRIC["dimensions"][0]


def rubric(**changes):
    """The rubric of two dimensions, with changes of each by its id."""
    dimensions = [each | changes.get(each["id"], {}) for each in RUBRIC["dimensions"]]
    return {"dimensions": dimensions}


def write_rubric(folder, **changes):
    (folder / "rubric.json").write_text(json.dumps(rubric(**changes)))


def observed(folder, measure="pass", run="latest"):
    """The values of one measure, in the order of the units."""
    out = evenhand_here(f"export {run} --observations -o -", cwd=folder).stdout
    rows = map(json.loads, out.splitlines())
    return [row["value"] for row in rows if row["measure"] == measure]


def judge(folder, *more):
    return json.loads(evenhand_here("run --json", *more, cwd=folder).stdout)


@pytest.mark.parametrize(
    ("changes", "table", "passes"),
    [
        ({}, {}, None),
        ({"correct": {"pass": 3}}, {}, True),
        ({"correct": {"pass": 3}, "clear": {"pass": 5}}, {}, False),
        ({"correct": {"pass": 3} | WORSE}, {}, True),
        ({"correct": {"pass": 1} | WORSE}, {}, False),
        ({"correct": {"pass": 5}}, {"all": False}, None),
        ({"correct": {"pass": 5}}, {"all": False, "min_overall": 0.5}, True),
        ({"correct": {"pass": 3}}, {"min_overall": 0.51}, False),
    ],
)
def test_every_dimension_with_a_mark_and_the_overall_score_must_reach_it(
    tmp_path, changes, table, passes
):
    write_suite(tmp_path, 1, **({"pass": table} if table else {}))
    write_rubric(tmp_path, **changes)
    assert judge(tmp_path)["verdicts"] == 1
    assert observed(tmp_path) == ([] if passes is None else [float(passes)])


def test_a_weighted_total_passes_by_its_score_unless_it_is_a_critical_fail(tmp_path):
    # 21 points each; the third answer is failed by code.
    write_answers(tmp_path, 3, settings={"pass_score": 21})
    judge(tmp_path)
    assert observed(tmp_path) == [1, 1, 0]
    write_answers(tmp_path, 3, settings={"pass_score": 0}, **{"pass": {"min_overall": 0}})
    assert judge(tmp_path)["calls"] == 0
    assert observed(tmp_path) == [1, 1, 0]


def test_marks_change_what_is_concluded_and_cost_no_call(tmp_path):
    rows = [{"id": "own", "question": "Q?", "model_output": "An answer that can be quoted."}]
    write_suite(tmp_path, [rows[0] | {"rubric": rubric(clear={"pass": 5})}, *rows_without(2)])
    first = judge(tmp_path)
    assert (first["calls"], observed(tmp_path)) == (3, [0])
    write_rubric(tmp_path, correct={"pass": 3})
    second = judge(tmp_path)
    assert (second["calls"], second["run"] == first["run"]) == (0, False)
    assert observed(tmp_path) == [0, 1, 1]
    suite = tmp_path / "evenhand.toml"
    suite.write_text(suite.read_text() + "[pass]\nmin_overall = 0.6\n")
    said = evenhand_here(f"settle {first['run']} --suite . --json", cwd=tmp_path)
    settled = json.loads(said.stdout)
    assert settled["rules"]["pass"] == {"old": None, "new": {"all": True, "min_overall": 0.6}}
    assert (settled["verdicts"], settled["pending"], settled["calls"]) == (3, 0, 0)
    assert observed(tmp_path, run=settled["run"]) == [0, 0, 0]
    assert observed(tmp_path, run=first["run"]) == [0]
    assert judge(tmp_path)["run"] == settled["run"], "as the suite would be judged"


def rows_without(number):
    return [
        {"id": f"u{i}", "question": f"{i}?", "model_output": f"Answer {i}, to be quoted."}
        for i in range(number)
    ]


def test_a_judge_is_not_told_the_mark():
    marked, plain = (build_rubric(rubric(clear=change)) for change in ({"pass": 3}, {}))
    assert marked.told_value == plain.told_value == plain.value
    assert (marked.text, marked.tell("!")) == (plain.text, plain.tell("!"))


@pytest.mark.parametrize("mark", [0, 5.5, True, "3"])
def test_a_mark_lies_on_the_scale(mark):
    with pytest.raises(RubricTextError) as caught:
        build_rubric({"dimensions": [ONE | {"pass": mark}]})
    assert caught.value.path == ("dimensions", 0, "pass")


def test_pairs_have_no_marks(tmp_path):
    write_pairs(tmp_path, 1, **{"pass": {"all": True}})
    said = evenhand_here("run", cwd=tmp_path)
    assert (said.returncode, "evenhand.toml:" in said.stderr) == (2, True)
