"""From a row to an answer and back, and what is wrong with a row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.kinds.rows import RowError
from evenhand.kinds.weighted.kind import (
    answer_text,
    load_answer,
    read_answer,
)
from tests.unit.kinds.contracts import change
from tests.unit.kinds.grading import FACT, PLAIN, WEIGHTS
from tests.unit.kinds.tables import cells

TYPES = tuple(WEIGHTS)
ROW: dict[str, Any] = {
    "task_name": "capital",
    "prompt": "Which?",
    "answer": "Paris.",
    "rubric": FACT,
}


def read(row: dict[str, Any], *, has_rubric: bool = False) -> Any:
    return read_answer(row, TYPES, has_rubric=has_rubric)


def test_a_row_is_read_whole():
    row = ROW | {"meta": {"model": "m"}, "language": "ja", "reference": "R", "more": 1}
    answer = read(row)
    assert (answer.id, answer.task_name, answer.prompt) == ("capital/m", "capital", "Which?")
    assert (answer.answer, answer.rubric, answer.meta) == ("Paris.", FACT, {"model": "m"})
    assert (answer.language, answer.extras) == ("ja", {"reference": "R"})


def test_the_id_is_the_rows_own_else_the_tasks_with_the_model():
    assert read(ROW).id == "capital"
    assert read(ROW | {"id": 7}).id == "7"
    assert read(ROW | {"meta": {"model": "m"}, "id": "x"}).id == "x"


def test_an_answer_may_be_empty_and_other_empty_cells_are_absent():
    answer = read(
        ROW | {"answer": "", "id": "", "meta": "", "language": "", "rubric": ""}, has_rubric=True
    )
    assert (answer.answer, answer.id, answer.rubric, answer.language) == ("", "capital", None, None)


WRONG = [
    ({"task_name": " "}, '"task_name" is empty'),
    ({"task_name": 5}, '"task_name" must be a text, and is a number'),
    ({"prompt": ...}, '"prompt" is missing'),
    ({"prompt": ""}, '"prompt" is empty'),
    ({"prompt": ..., "promt": "x"}, '"prompt" is missing; there are'),
    ({"answer": ...}, '"answer" is missing'),
    ({"answer": None}, '"answer" must be a text, and is null'),
    ({"rubric": ...}, 'there is no "rubric", neither in this row nor in the suite'),
    (
        {"rubric": {"dimensions": []}},
        '"rubric" must be a text or the name of a file, and is an obj',
    ),
    ({"rubric": "\n \n"}, '"rubric", line 1: the rubric is empty'),
    ({"rubric": "\ntask_type: poetry\n"}, '"rubric", line 2: unknown task_type'),
    ({"rubric": "task_type: fact\ntask_type: creative\n"}, '"rubric", line 2: task_type is'),
    (
        {"rubric": "# Critical Fail Conditions\n\n- must_match: /(/\n"},
        '"rubric", line 3: the pattern',
    ),
    ({"meta": [1]}, '"meta" must be an object'),
    ({"id": True}, '"id" must be a text'),
    ({"language": 5}, '"language" must be a text such as "en"'),
]


WRONG_ROWS = r"""
task_name = " " => "task_name" is empty
task_name = 5 => "task_name" must be a text, and is a number
prompt gone => "prompt" is missing
prompt = "" => "prompt" is empty
prompt gone & promt = "x" => "prompt" is missing; there are
answer gone => "answer" is missing
answer = null => "answer" must be a text, and is null
rubric gone => there is no "rubric", neither in this row nor in the suite
rubric = {"dimensions": []} => "rubric" must be a text or the name of a file, and is an obj
rubric = "\n \n" => "rubric", line 1: the rubric is empty
rubric = "\ntask_type: poetry\n" => "rubric", line 2: unknown task_type
rubric = "task_type: fact\ntask_type: creative\n" => "rubric", line 2: task_type is
rubric = "# Critical Fail Conditions\n\n- must_match: /(/\n" => "rubric", line 3: the pattern
meta = [1] => "meta" must be an object
id = true => "id" must be a text
language = 5 => "language" must be a text such as "en"
"""


@pytest.mark.parametrize(("changes", "said"), cells(WRONG_ROWS))
def test_what_is_wrong_with_a_row_is_said(changes, said):
    with pytest.raises(RowError) as error:
        read(json.loads(change(ROW, changes)))
    assert str(error.value).startswith(said)


def test_a_rubric_of_the_suite_will_do():
    row = {key: value for key, value in ROW.items() if key != "rubric"}
    assert read(row, has_rubric=True).rubric is None


def test_a_type_is_one_of_the_protocols():
    row = ROW | {"rubric": "task_type: soup\n\n- tasty\n"}
    assert read_answer(row, ("soup",), has_rubric=False).rubric == row["rubric"]
    with pytest.raises(RowError, match='unknown task_type "fact"'):
        read_answer(ROW, ("soup",), has_rubric=False)


@given(
    st.text(min_size=1).filter(str.strip),
    st.text(),
    st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none())),
)
def test_an_answer_comes_back_as_it_was_stored(prompt, text, meta):
    row = ROW | {"prompt": prompt, "answer": text, "meta": meta, "rubric": PLAIN, "context": "C"}
    answer = read(row)
    assert load_answer(answer_text(answer)) == answer
