import json
import math

import pytest

from evenhand.judges.embedded import walk
from evenhand.judges.embedded.draw import Draw
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


VERSUS = {
    "names": ["A", "B"],
    "texts": ["Bern.", "Bonn."],
    "topic": "Which city?",
    "better": "better answer",
    "worse": "worse answer",
}
COMPARED = {
    "type": "object",
    "properties": {
        "mark": {"enum": ["A+", "B+", "tie"], "x-versus": VERSUS},
        "why": {"type": "string"},
        "winner": {"enum": ["A", "B", "tie"], "x-versus": VERSUS},
    },
}


def taste_and(gap):
    """A model that likes to write A, and finds the first better by `gap`."""

    def letters(text):
        lean = 3.0 - gap if "worse" in text else 3.0 + gap
        return {"A": math.exp(lean) / (1 + math.exp(lean)), "B": 1 / (1 + math.exp(lean))}

    return letters


def compared_by(gap, favour=0.0, prior=None):
    session = ScriptedSession(taste_and(gap), lambda _: 'Right."')
    wanted = tuple(choices(COMPARED))
    found = measured(session, wanted, {wanted[0].versus: favour})
    odds = corrected(found, prior, wanted)
    return Walk(session, odds, 1000).value(COMPARED), odds["winner",], session


@pytest.fixture
def even(monkeypatch):
    monkeypatch.setattr(walk, "LEAN", 0.0)
    monkeypatch.setattr(walk, "MARGIN", 0.3)


@pytest.mark.parametrize(
    ("gap", "winner"), [(0.4, "A"), (-0.4, "B"), (0.2, "tie"), (-0.2, "tie"), (0.0, "tie")]
)
def test_of_two_the_one_named_better_and_not_worse_wins_whatever_the_taste(even, gap, winner):
    value, _, session = compared_by(gap)
    assert value["winner"] == winner
    assert value["mark"] == {"A": "A+", "B": "B+"}.get(winner, winner)
    assert session.asked[:2] == ['{"better answer": "', '{"worse answer": "']
    assert len(session.asked) == 3, "a comparison that two fields hold is made once"
    assert f'"winner": "{winner}"' in session.asked[-1]


def test_what_the_model_would_rather_have_written_is_added(even):
    assert compared_by(0.2, favour=0.2)[0]["winner"] == "A"
    assert compared_by(0.4, favour=-1.0)[0]["winner"] == "B"


def test_the_lean_to_the_first_place_is_taken_off(even, monkeypatch):
    monkeypatch.setattr(walk, "LEAN", 0.5)
    assert compared_by(0.4)[0]["winner"] == "tie"
    assert compared_by(0.1)[0]["winner"] == "B"


def test_neither_is_as_likely_as_the_better_one_at_the_margin(even):
    first, second, neither = compared_by(0.3)[1]
    assert math.fsum(map(math.exp, (first, second, neither))) == pytest.approx(1)
    assert first == pytest.approx(neither)
    assert first - second == pytest.approx(0.3)


def test_a_comparison_is_not_held_against_a_prior(even):
    prior = {choice.path: (-9.0, -0.1, -3.0) for choice in choices(COMPARED)}
    assert compared_by(0.4, prior=prior)[1] == compared_by(0.4)[1]


@pytest.mark.parametrize(
    "broken",
    [
        {"enum": ["A", "B"]},
        {"x-versus": {**VERSUS, "names": ["A"]}},
        {"x-versus": {**VERSUS, "texts": ["Bern.", "Bonn.", "Ulm."]}},
        {"x-versus": {"names": ["A", "B"], "texts": ["Bern.", "Bonn."]}},
    ],
)
def test_a_comparison_is_between_two_and_neither(broken):
    schema = {"enum": ["A", "B", "tie"], "x-versus": VERSUS, **broken}
    with pytest.raises(SchemaError):
        list(choices(schema))


def test_a_drawn_choice_follows_its_probability_and_neither_stands_between():
    (choice,) = choices({"enum": ["A", "B", "tie"], "x-versus": VERSUS})
    odds = [math.log(p) for p in (0.5, 0.3, 0.2)]
    points = (0.0, 0.49, 0.51, 0.69, 0.71, 0.999)
    drawn = [decided(choice, odds, {}, Draw(1.0, point)) for point in points]
    assert drawn == ["A", "A", "tie", "tie", "B", "B"]
