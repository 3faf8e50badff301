import json
import math

import pytest

from evenhand.judges.embedded.walk import (
    Choice,
    SchemaError,
    SpentError,
    Walk,
    choices,
    corrected,
    decided,
    measured,
)
from tests.unit.judges.embedded.scripted import ScriptedSession

QUOTES = ["It is Paris.", "It is big."]


def dimension(scores):
    return {
        "type": "object",
        "properties": {
            "evidence": {"type": "array", "items": {"enum": QUOTES, "x-quote": True}},
            "rationale": {"type": "string", "maxLength": 40},
            "score": {"enum": scores, "x-labels": {"5": "fully right"}},
        },
    }


SCHEMA = {
    "type": "object",
    "properties": {
        "scores": {
            "type": "object",
            "properties": {"fact": dimension([1, 3, 5]), "tone": dimension([1, 5])},
        },
        "failure_tags": {"type": "array", "items": {"enum": ["A", "B"]}},
        "notes": {"const": ""},
    },
}
SCORE = {"1": 0.1, "3": 0.2, "5": 0.7}


def walked(schema, table, *, writes=lambda _: 'Right."', budget=1000, prior=None):
    session = ScriptedSession(table, writes)
    wanted = tuple(choices(schema))
    odds = corrected(measured(session, wanted), prior, wanted)
    return Walk(session, odds, budget).value(schema), session


def table(text):
    if text.endswith("It is "):
        return {"b": 0.9, "P": 0.1}
    return {"]": 0.8, '"': 0.2, **SCORE} if text.endswith("[") else SCORE


def test_every_choice_is_scored_on_its_path_alone():
    assert [choice.lead for choice in choices(SCHEMA)] == [
        '{"scores": {"fact": {"score":',
        '{"scores": {"tone": {"score":',
        '{"failure_tags":',
    ]


def test_the_reply_has_the_schemas_order_and_the_likeliest_options():
    value, _ = walked(SCHEMA, table)
    assert json.dumps(value) == json.dumps(
        {
            "scores": {
                "fact": {"evidence": ["It is big."], "rationale": "Right.", "score": 5},
                "tone": {"evidence": ["It is big."], "rationale": "Right.", "score": 5},
            },
            "failure_tags": [],
            "notes": "",
        }
    )


def test_a_rationale_is_written_knowing_the_score_what_it_means_and_the_quote():
    _, session = walked(SCHEMA, table)
    assert (
        '{"scores": {"fact": {"score": 5, "criteria": "fully right", '
        '"evidence": ["It is big."], "rationale": "'
    ) in session.asked


def test_the_prior_of_nothing_to_judge_is_taken_off():
    schema = {"type": "object", "properties": {"ok": {"enum": ["no", "yes"]}}}
    (choice,) = choices(schema)
    prior = {choice.path: (math.log(0.9), math.log(0.1))}
    value, _ = walked(schema, lambda _: {"n": 0.7, "y": 0.3}, prior=prior)
    assert value == {"ok": "yes"}
    assert walked(schema, lambda _: {"n": 0.7, "y": 0.3})[0] == {"ok": "no"}


def test_corrected_odds_are_probabilities():
    wanted = [Choice(("a",), (1, 2))]
    found = corrected({("a",): (-1.0, -2.0)}, {("a",): (-0.1, -3.0)}, wanted)
    assert math.fsum(map(math.exp, found["a",])) == pytest.approx(1)


def test_a_quote_is_never_given_twice():
    schema = {
        "type": "array",
        "items": {"enum": ["a", "b", "a"], "x-quote": True},
        "minItems": 3,
        "maxItems": 3,
    }
    value, _ = walked(schema, lambda _: {"a": 0.9, "b": 0.1})
    assert value == ["a", "b"]


def test_no_fragments_give_no_quotes():
    schema = {"type": "array", "items": {"enum": [], "x-quote": True}, "maxItems": 3}
    assert walked(schema, lambda _: {})[0] == []


def test_a_list_holds_the_items_that_are_likelier_than_none():
    choice = Choice(("tags",), ("A", "B", "C"), several=True)
    assert choice.options == (" []", ' ["A', ' ["B', ' ["C')
    assert decided(choice, [-2.0, -3.0, -1.0, -1.5], {}) == ["B", "C"]
    assert decided(choice, [-2.0, -3.0, -1.0, -1.5], {"maxItems": 1}) == ["B"]
    assert decided(choice, [0.0, -3.0, -4.0, -5.0], {"minItems": 1}) == ["A"]


@pytest.mark.parametrize(
    ("probabilities", "score"),
    [
        ((0.4, 0.1, 0.1, 0.1, 0.3), 2),
        ((0.3, 0.0, 0.1, 0.1, 0.5), 4),
        ((0.5, 0.0, 0.0, 0.0, 0.5), 1),
        ((0.0, 0.0, 0.0, 0.0, 1.0), 5),
    ],
)
def test_a_number_is_the_median_and_the_lower_one_in_doubt(probabilities, score):
    odds = [math.log(p) if p else -700.0 for p in probabilities]
    assert decided(Choice(("x",), (1, 2, 3, 4, 5)), odds, {}) == score
    assert decided(Choice(("x",), (5, 4, 3, 2, 1)), odds[::-1], {}) == score


def test_yes_and_no_are_choices_too():
    schema = {"type": "object", "properties": {"fail": {"type": "boolean"}}}
    assert walked(schema, lambda _: {"t": 0.2, "f": 0.8})[0] == {"fail": False}


def test_numbers_keep_their_spelling_and_strings_their_escapes():
    choice = Choice(("a",), (1, 2.5, 'say "x"', None))
    assert choice.options == (" 1", " 2.5", ' "say \\"x\\"', " null")
    assert choice.labels == ("1", "2.5", '"say \\"x\\""', "null")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object"},
        {"anyOf": []},
    ],
)
def test_a_schema_beyond_the_subset_is_refused(schema):
    with pytest.raises(SchemaError):
        list(choices({"type": "object", "properties": {"x": schema}}))


def test_the_tokens_of_all_texts_together_are_bounded():
    with pytest.raises(SpentError):
        walked(SCHEMA, table, budget=7)
