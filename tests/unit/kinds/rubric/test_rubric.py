"""A rubric that parses is sound; one that does not says where."""

import copy
import datetime
import json

import pytest

from evenhand import jsontext
from evenhand.kinds.kind import RubricTextError
from evenhand.kinds.rubric.rubric import build_rubric, parse_rubric
from tests.cases import cases
from tests.sentences import refused
from tests.unit.kinds.contracts import assert_told, change

GOOD = {
    "dimensions": [
        {
            "id": name,
            "name": name.title(),
            "scale": "1-5",
            "definition": f"Is it {name}?",
            "bands": [{"score": 1, "criteria": "no"}, {"score": 5, "criteria": "yes"}],
        }
        for name in ("correct", "brief")
    ]
}
BAND = ("dimensions", 1, "bands", 1)
GONE = object()


def with_change(path, value):
    rubric = copy.deepcopy(GOOD)
    inner = rubric
    for step in path[:-1]:
        inner = inner[step]
    if value is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return rubric


def test_a_rubric_is_shown_with_ids_names_scales_definitions_and_bands():
    rubric = build_rubric(GOOD)
    assert rubric.text == (
        "- correct (Correct) [1-5]: Is it correct?\n  1: no\n  5: yes\n"
        "- brief (Brief) [1-5]: Is it brief?\n  1: no\n  5: yes"
    )
    assert [d.scores for d in rubric.dimensions] == [[1, 5], [1, 5]]


def test_a_scale_on_which_more_is_worse_is_told_and_turned_round():
    rubric = build_rubric(with_change(("dimensions", 1, "higher_is"), "worse"))
    assert rubric.text == build_rubric(GOOD).text and rubric != build_rubric(GOOD)
    assert "- brief (Brief) [1-5]: Is it brief? MORE IS WORSE\n" in rubric.tell("MORE IS WORSE")
    assert [dimension.ends for dimension in rubric.dimensions] == [(1, 5), (5, 1)]


def test_the_same_text_is_the_same_rubric():
    assert parse_rubric(json.dumps(GOOD)) is parse_rubric(json.dumps(GOOD))


def test_scores_are_shown_as_they_were_spelled():
    text = json.dumps(with_change((*BAND, "score"), 2.5)).replace("2.5", "2.50")
    assert "  2.50: yes" in parse_rubric(text).text


@pytest.mark.parametrize(("scale", "shown"), [([1, 5], "[[1,5]]"), (5, "[5]"), (GONE, ")")])
def test_a_scale_may_be_anything_that_can_be_shown(scale, shown):
    rubric = build_rubric(with_change(("dimensions", 0, "scale"), scale))
    assert f"(Correct){'' if scale is GONE else ' '}{shown.strip(')')}: Is" in rubric.text


@cases
def test_a_mistake_is_told_with_its_path(changes, at, told):
    with pytest.raises(RubricTextError) as caught:
        build_rubric(json.loads(change(GOOD, changes)))
    assert_told(caught.value, told)
    assert ".".join(map(str, caught.value.path)) == at


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("scale", datetime.date(2026, 1, 1), "no_json_value"),
        ("scale", [float("nan")], "no_json_value"),
        ("scale", ["\ud800"], "no_json_value"),
        ("definition", "a\ud800", "no_json_value"),
        ("\ud800", 1, "unknown_key \ud800"),
    ],
    ids=ascii,
)
def test_what_no_json_holds_is_no_rubric(path, value, told):
    first, second = GOOD["dimensions"]
    with pytest.raises(RubricTextError) as caught:
        build_rubric({"dimensions": [first, second | {path: value}]})
    assert_told(caught.value, told)
    assert caught.value.path[:2] == ("dimensions", 1)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_is_finite(score):
    with refused(RubricTextError, "kinds.no_score"):
        build_rubric(with_change((*BAND, "score"), score))


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_a_rubric_is_an_object(value):
    with refused(RubricTextError, "kinds.no_keys", "dimensions"):
        build_rubric(value)


def test_the_path_of_an_error_leads_to_its_line():
    text = json.dumps(with_change((*BAND, "score"), "five"), indent=2)
    with pytest.raises(RubricTextError) as caught:
        parse_rubric(text)
    line = jsontext.find_line(text, caught.value.path)
    assert '"five"' in text.splitlines()[line - 1]


def test_a_number_beyond_all_bounds_is_no_score():
    text = json.dumps(with_change((*BAND, "score"), 5)).replace('"score": 5', '"score": 1e999')
    with refused(RubricTextError, "kinds.no_score"):
        parse_rubric(text)
