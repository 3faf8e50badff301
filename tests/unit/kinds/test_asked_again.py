"""What a judge is told in a re-ask: the place, what it wrote there, and what may stand there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.judgment import Problem
from evenhand.kinds.protocol import LANGUAGES
from tests.suites import pair_reply
from tests.unit.kinds import grading, material, pairing


def problems(kind: str, reply: str, language: str) -> tuple[Problem, ...]:
    """What is wrong with a reply."""
    if kind == "pairwise":
        return pairing.protocol(language).check(reply).problems
    if kind == "weighted":
        return grading.protocol(language).check(reply, grading.ANSWER).problems
    return material.protocol(language).check(reply, material.SAMPLE).problems


GOOD: dict[str, Any] = {
    "pairwise": json.loads(pair_reply("A+")),
    "rubric": material.good(),
    "weighted": grading.reply(50, 20, 5),
}
PLACES = {
    "pairwise": ["criteria.C2.first_meets", "criteria.C2.comment", "criteria.C2", "explanation"],
    "rubric": ["failure_tags", "notes", "scores.correct.rationale", "scores"],
    "weighted": ["critical_fail", "reasoning.logic_and_fact", "reasoning"],
}


def changed(kind: str, path: str, to: Any) -> str:
    """A good reply with another value at a place."""
    value = json.loads(json.dumps(GOOD[kind]))
    *way, last = path.split(".")
    holder = value
    for step in way:
        holder = holder[step]
    holder[last] = to
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind, paths in PLACES.items() for path in paths]
)
def test_a_value_of_the_wrong_type_is_told_with_its_place(
    kind: str, path: str, language: str
) -> None:
    [problem] = problems(kind, changed(kind, path, 17), language)
    assert (problem.code, problem.path) == ("schema", path)
    for text in (problem.message, problem.wording):
        assert path in text
        assert "17" in text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        ({"zh": "好"}, '{"zh":"好"}'),
        (["x" * 500], '["' + "x" * 57 + "…"),
        ([], "[]"),
    ],
)
def test_what_stands_there_is_told_as_it_was_written_and_cut_where_it_is_long(
    value: Any, written: str
) -> None:
    [problem] = problems("pairwise", changed("pairwise", "explanation", value), "en")
    assert problem.message == f"explanation: {written} is of the wrong type. This must be a string."


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", ["NaN", "-Infinity"])
def test_a_number_that_json_has_not_is_told_with_its_place(number: str, language: str) -> None:
    reply = changed("weighted", "score.logic_and_fact", "¤").replace('"¤"', number)
    [problem] = problems("weighted", reply, language)
    assert problem.code == "not_json"
    for text in (problem.message, problem.wording):
        assert f'"logic_and_fact": {number}'[-20:] in text


REASONS = {
    "pairwise": ["explanation", "criteria.C2.comment"],
    "rubric": ["scores.correct.rationale"],
    "weighted": ["reasoning.logic_and_fact"],
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\u3000\n",
        "\u200b",
        " \u200b\ufeff \u2060",
        "\u00ad",
        "\u3164",
        "\u2800\u2800",
        "\u2066\u2069",
        "...",
        "。",
        "……",
        ". . .",
        "—",
        "___ *** 、",
        "？！✓\u200b",
        "👍",
    ],
)
@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind, paths in REASONS.items() for path in paths]
)
def test_a_reason_without_a_letter_or_digit_is_asked_again(kind: str, path: str, text: str) -> None:
    [problem] = problems(kind, changed(kind, path, text), "en")
    assert (problem.code, problem.path) == ("schema", path)


@pytest.mark.parametrize("text", ["\u200bso", "无\u200b", "+5", "A ≻ B."])
def test_a_reason_with_hidden_characters_beside_others_is_a_reason(text: str) -> None:
    for kind, paths in REASONS.items():
        assert problems(kind, changed(kind, paths[0], text), "en") == ()


BROKEN = {
    "a comma too many": (', "end": 1,}', "1,}"),
    "a comment": (', // as asked\n "end": 1}', "// as asked"),
    "a comma too few": (' "end": 1}', '"end": 1}'),
    "single quotation marks": (", 'end': 1}", "'end': 1}"),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("mistake", BROKEN)
def test_the_place_from_which_a_reply_is_no_json_is_told(
    mistake: str, kind: str, language: str
) -> None:
    ending, near = BROKEN[mistake]
    reply = json.dumps(GOOD[kind], ensure_ascii=False)[:-1] + ending
    [problem] = problems(kind, reply, language)
    assert problem.code == "not_json"
    for text in (problem.message, problem.wording):
        assert near in text
        assert len(text) < 200


@pytest.mark.parametrize("kind", GOOD)
def test_a_reply_without_an_object_is_told_by_its_beginning(kind: str) -> None:
    [problem] = problems(kind, "Both answers name the same facts, so it is hard to say.", "en")
    assert '"Both answers name th…"' in problem.wording
