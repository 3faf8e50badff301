"""Checklists as they are written, and what is wrong with one."""

import json

import pytest

from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import rubric_in, rubric_of_text, rubric_of_value
from evenhand.kinds.checklist.criteria import build_checklist, read_given
from evenhand.kinds.kind import RubricTextError
from tests.cases import cases
from tests.unit.kinds.tables import cells

C1, C2 = {"id": "c1", "text": "Is it polite?"}, {"id": "c2", "text": "Does it cite a source?"}
BOTH = [C1["text"], C2["text"]]


@cases
def test_sentences_and_objects_are_the_same_checklist(value):
    assert build_checklist(value).value == {"criteria": [C1, C2]}
    assert read_given(value if isinstance(value, str) else json.dumps(value))["criteria"][1] == C2


def test_what_code_weighs_is_kept_and_not_told_to_the_judge():
    fault = {"id": "rude", "text": "It is rude.", "points": -2.5, "must": True}
    checklist = build_checklist([C1, fault])
    assert checklist.value == {"criteria": [C1, fault]}
    assert checklist.tell(" (fault)") == "- c1: Is it polite?\n- rude (fault): It is rude."


def test_a_file_a_sentence_and_a_list_are_taken_for_a_rubric(tmp_path):
    protocol, expected = find_protocol("checklist"), {"criteria": [C1, C2]}
    texts = {
        "c.json": json.dumps(BOTH),
        "c.txt": "\n".join(BOTH),
        "c.toml": f'criteria = ["{BOTH[0]}", {{ text = "{BOTH[1]}" }}]',
    }
    for name, text in texts.items():
        assert rubric_in(tmp_path / name, text, protocol) == expected
    assert rubric_of_value(BOTH, protocol) == expected
    assert rubric_of_text(BOTH[0], protocol, "ja", "suite") == {"criteria": [C1]}


WRONG = r"""
[] => criteria: "criteria" must be a list with at least one entry
5 => : This must be an object with the keys: criteria
{"criterion": []} => criterion: Unknown key "criterion". Did you mean "criteria"?
[{"id": "a"}] => 0.text: "text" must be a text that is not empty
[" "] => 0.text: "text" must be a text that is not empty
{"criteria": [5]} => criteria.0: This must be an object with the keys: id, text, points, must
[{"text": "a", "point": 1}] => 0.point: Unknown key "point". Did you mean "points"?
[{"text": "a", "points": 0}] => 0.points: "points" must be a number other than 0
[{"text": "a", "points": true}] => 0.points: "points" must be a number other than 0
[{"text": "a", "must": 1}] => 0.must: "must" must be true or false
[{"text": "a", "id": "pass"}] => 0.id: "pass" is the name of a figure in reports
[{"text": "a", "id": "c2"}, "b"] => 1.id: Two entries have the same id: "c2"
"""


@pytest.mark.parametrize(("text", "said"), cells(WRONG))
def test_what_is_wrong_is_told_with_its_place(text, said):
    with pytest.raises(RubricTextError) as caught:
        build_checklist(json.loads(text))
    assert f"{'.'.join(map(str, caught.value.path))}: {caught.value}".startswith(said)
