"""From an input row to a sample, or the sentence that says what is wrong with the row."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import jsontext
from evenhand.files.protocols import find_protocol
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.kind import ReadyKind, Terms
from evenhand.kinds.rows import RowError
from evenhand.kinds.rubric.kind import KIND, load_sample, read_sample, sample_text
from tests.unit.kinds.contracts import change
from tests.unit.kinds.material import RUBRIC_TEXT, Scripted, good
from tests.unit.kinds.tables import cells

RUBRIC = json.loads(RUBRIC_TEXT)
ROW = {
    "meta": {
        "run_id": "r1",
        "model": "m",
        "prompt_variant": "v1",
        "eval_set_variant": "e",
        "question_id": "q1",
    },
    "question": "Why?",
    "model_output": "Because.",
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def row(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(ROW) | changes


def test_a_row_of_the_contract_is_a_sample():
    sample = read_sample(row(rubric=RUBRIC), has_rubric=False)
    assert sample.id == "r1/m/v1/e/q1"
    assert (sample.question, sample.model_output) == ("Why?", "Because.")
    assert (sample.meta, sample.rubric) == (ROW["meta"], RUBRIC)
    assert (sample.language, sample.extras) == (None, {})


IDS = """
id = "own" => own
id = 7 => 7
id = null => r1/m/v1/e/q1
id = "" => r1/m/v1/e/q1
meta = {} => 000f579acf
meta = null => 000f579acf
meta = {"model": "a/b", "question_id": "50%"} => a%2Fb/50%25
meta = {"prompt_variant": "v1", "question_id": "q01"} => v1/q01
meta = {"run_id": 3, "model": null, "other": "x"} => 3
meta = {"run_id": "", "model": "%2F"} => %252F
"""


@pytest.mark.parametrize(("changes", "ident"), cells(IDS))
def test_the_id_is_given_or_made_of_the_meta_fields_that_are_there(changes, ident):
    assert read_sample(json.loads(change(ROW, changes)), has_rubric=True).id == ident


WRONG_ROWS = r"""
question = " " => "question" is empty
question = 5 => "question" must be a text, and is a number
model_output = null => "model_output" must be a text, and is null
model_output = ["x"] => "model_output" must be a text, and is a list
meta = "x" => "meta" must be an object, and is a text
meta = [1] => "meta" must be an object, and is a list
id = true => "id" must be a text, and is true or false
id = 1.5 => "id" must be a text, and is a number
id = {} => "id" must be a text, and is an object
language = 5 => "language" must be a text such as "en", and is a number
rubric = "{" => "rubric" is a text that is not JSON
rubric = [] => rubric: the rubric must be an object with dimensions
rubric = {"dimensions": []} => rubric.dimensions: "dimensions" must be a list
rubric = {"dimensions": [5]} => rubric.dimensions.0: a dimension must be an object
"""


@pytest.mark.parametrize(("changes", "said"), cells(WRONG_ROWS))
def test_a_bad_row_gets_its_sentence(changes, said):
    with pytest.raises(RowError) as caught:
        read_sample(json.loads(change(ROW, changes)), has_rubric=True)
    assert said in str(caught.value)


def test_a_field_that_is_missing_is_told_with_the_columns_that_there_are():
    with pytest.raises(RowError) as caught:
        read_sample({"question": "Why?", "output": "Because."}, has_rubric=True)
    assert str(caught.value) == (
        '"model_output" is missing; there are "question", "output".'
        ' Map one: [columns] model_output = "COLUMN"'
    )


def test_of_very_many_columns_a_few_are_listed():
    with pytest.raises(RowError) as caught:
        read_sample({f"c{number}": number for number in range(500)}, has_rubric=True)
    assert '"c19" and 480 more' in str(caught.value)


def test_a_rubric_stands_in_the_row_or_in_the_suite():
    assert read_sample(row(), has_rubric=True).rubric is None
    assert read_sample(row(rubric=RUBRIC_TEXT), has_rubric=False).rubric == RUBRIC
    with pytest.raises(RowError, match='no "rubric", neither in this row nor in the suite'):
        read_sample(row(), has_rubric=False)


def test_an_empty_cell_is_absent_but_an_empty_output_is_judged():
    cells = row(meta="", rubric="", language="", reference="", model_output="")
    sample = read_sample(cells, has_rubric=True)
    assert (sample.meta, sample.rubric, sample.language, sample.extras) == ({}, None, None, {})
    assert sample.model_output == ""


def test_extras_are_kept_and_null_ones_are_not():
    sample = read_sample(
        row(reference="r", context=None, messages=[{"role": "user"}]), has_rubric=True
    )
    assert sample.extras == {"reference": "r", "messages": [{"role": "user"}]}


@given(TEXTS.filter(str.strip), TEXTS, st.dictionaries(TEXTS, TEXTS | st.integers()))
def test_what_the_store_keeps_reads_back_as_the_same_sample(question, output, meta):
    given_row = row(question=question, model_output=output, meta=meta, rubric=RUBRIC, context="c")
    sample = read_sample(given_row, has_rubric=False)
    assert load_sample(sample_text(sample)) == sample


def test_the_store_keeps_the_spelling_of_numbers_in_meta():
    spelled = '{"b":1.50,"a":[1e3,-0]}'
    sample = read_sample(row(meta=jsontext.parse(spelled)), has_rubric=True)
    assert jsontext.dump(load_sample(sample_text(sample)).meta) == spelled


def ready(*languages: str) -> ReadyKind:
    settings = {"expose_meta": False, "repairs": 0, "use": []}
    terms = Terms("en", languages, 0, RUBRIC, settings)
    return ReadyKind(KIND, find_protocol("rubric"), terms)


async def test_a_unit_is_judged_in_its_own_language():
    judging = ready("en", "ja")
    for language, phrase in (("ja", "該当する根拠なし"), (None, "no evidence found")):
        [unit] = judging.read(row(language=language))
        reply = good()
        for scored in reply["scores"].values():
            scored |= {"evidence": [], "rationale": phrase}
        judgment = await judging.judge(
            judging.load(unit.body), JudgingContext(ask=Scripted([json.dumps(reply)]))
        )
        assert (unit.id, judgment.status) == ("r1/m/v1/e/q1", "verdict")


def test_a_language_that_the_protocol_does_not_speak_is_told_at_once():
    with pytest.raises(RowError, match='the protocol speaks en, and "language" is ja'):
        ready("en").read(row(language="ja"))
