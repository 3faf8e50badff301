"""A rubric that parses is sound; one that does not says where."""

from __future__ import annotations

import copy
import datetime
import json
from typing import Any

import pytest

from evenhand import jsontext
from evenhand.kinds.kind import RubricTextError
from evenhand.kinds.rubric.rubric import build_rubric, parse_rubric

GOOD: dict[str, Any] = {
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


def with_change(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    rubric: Any = copy.deepcopy(GOOD)
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


def test_the_same_text_is_the_same_rubric():
    assert parse_rubric(json.dumps(GOOD)) is parse_rubric(json.dumps(GOOD))


def test_scores_are_shown_as_they_were_spelled():
    text = json.dumps(with_change((*BAND, "score"), 2.5)).replace("2.5", "2.50")
    assert "  2.50: yes" in parse_rubric(text).text


@pytest.mark.parametrize(("scale", "shown"), [([1, 5], "[[1,5]]"), (5, "[5]"), (GONE, ")")])
def test_a_scale_may_be_anything_that_can_be_shown(scale, shown):
    rubric = build_rubric(with_change(("dimensions", 0, "scale"), scale))
    assert f"(Correct){'' if scale is GONE else ' '}{shown.strip(')')}: Is" in rubric.text


@pytest.mark.parametrize(
    ("path", "value", "at", "said"),
    [
        (("dimensions",), GONE, ("dimensions",), '"dimensions" must be a list with at least one'),
        (("dimensions",), [], ("dimensions",), '"dimensions" must be a list with at least one'),
        (("dimensions",), {}, ("dimensions",), '"dimensions" must be a list'),
        (("dimension",), [], ("dimension",), 'no key "dimension"; did you mean "dimensions"?'),
        (("zzz",), 1, ("zzz",), 'no key "zzz"; it has dimensions'),
        (("dimensions", 1), "x", ("dimensions", 1), "a dimension must be an object with bands,"),
        (("dimensions", 1, "id"), "correct", None, 'two dimensions have the id "correct"'),
        (("dimensions", 1, "id"), "overall", None, "overall is the name of a figure"),
        (("dimensions", 1, "id"), " ", None, '"id" must be a text that is not empty'),
        (("dimensions", 1, "id"), 7, None, '"id" must be a text'),
        (("dimensions", 1, "definition"), GONE, None, '"definition" must be a text'),
        (("dimensions", 1, "name"), None, None, '"name" must be a text'),
        (
            ("dimensions", 1, "scale"),
            datetime.date(2026, 1, 1),
            BAND[:2],
            "a dimension holds what is no text",
        ),
        (("dimensions", 1, "scale"), [float("nan")], BAND[:2], "a dimension holds what is no text"),
        (("dimensions", 1, "bandz"), [], None, 'no key "bandz"; did you mean "bands"?'),
        (("dimensions", 1, "bands"), [], None, '"bands" must be a list'),
        (("dimensions", 1, "bands"), GOOD["dimensions"][0]["bands"][:1], None, "at least two"),
        ((*BAND, "score"), 1, None, "two bands have the score 1"),
        ((*BAND, "score"), 1.0, None, "two bands have the score 1.0"),
        ((*BAND, "score"), "5", None, "a band's score must be a number"),
        ((*BAND, "score"), True, None, "a band's score must be a number"),
        ((*BAND, "score"), GONE, None, "a band's score must be a number"),
        ((*BAND, "score"), float("nan"), None, "a band's score must be a number"),
        ((*BAND, "score"), float("inf"), None, "a band's score must be a number"),
        ((*BAND, "criteria"), "a\ud800", BAND[:2], "a dimension holds what is no text"),
        (("dimensions", 1, "scale"), ["\ud800"], BAND[:2], "a dimension holds what is no text"),
        (("dimensions", 1, "\ud800"), 1, None, 'no key "\\ud800"'),
        ((*BAND, "criteria"), "", None, '"criteria" must be a text that is not empty'),
        ((*BAND, "score_"), 1, None, 'a band has no key "score_"; did you mean "score"?'),
    ],
)
def test_what_is_wrong_is_told_with_its_path(path, value, at, said):
    with pytest.raises(RubricTextError) as caught:
        build_rubric(with_change(path, value))
    assert said in str(caught.value)
    assert caught.value.path == (at or path)


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_a_rubric_is_an_object(value):
    with pytest.raises(RubricTextError, match="the rubric must be an object with dimensions"):
        build_rubric(value)


def test_the_path_of_an_error_leads_to_its_line():
    text = json.dumps(with_change((*BAND, "score"), "five"), indent=2)
    with pytest.raises(RubricTextError) as caught:
        parse_rubric(text)
    line = jsontext.find_line(text, caught.value.path)
    assert '"five"' in text.splitlines()[line - 1]


def test_a_number_beyond_all_bounds_is_no_score():
    text = json.dumps(with_change((*BAND, "score"), 5)).replace('"score": 5', '"score": 1e999')
    with pytest.raises(RubricTextError, match="must be a number"):
        parse_rubric(text)
