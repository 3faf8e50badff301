import json
import math
from itertools import pairwise

import pytest

from evenhand.exchange import Message
from evenhand.judges.embedded import decoding
from evenhand.judges.embedded.decoding import (
    BudgetSpentError,
    Choice,
    Draw,
    SchemaError,
    SchemaFiller,
    clean_prose,
    decide,
    find_choices,
    likeliest,
    likelihood_lead,
    log_odds,
    measure,
    subtract_prior,
)
from evenhand.judges.embedded.runtime import Completion
from tests.cases import cases
from tests.unit.judges.embedded.model import ScriptedSession

# The odds of options


@cases
def test_options_share_the_probability_that_the_model_gives_to_any_of_them(
    table, options, expected
):
    found = log_odds(ScriptedSession(table), "", options)
    assert list(map(math.exp, found)) == pytest.approx(expected)


def test_a_single_option_needs_no_model():
    session = ScriptedSession({})
    assert (log_odds(session, "lead ", ["only"]), session.asked) == ((0.0,), [])


@cases
def test_the_likeliest_is_read_only_until_it_is_clear(table, options, asked):
    session = ScriptedSession(table)
    assert (likeliest(session, "", options), session.asked) == (1, asked)


# Which of two texts the model would rather have written

TEXTS = ("It is Bern.", "It is Bonn.")


def knows_bern(text):
    """A model that goes on with Bern, and is sure of every other letter."""
    return {"e": 0.9, "o": 0.1} if text == "It is B" else dict.fromkeys("ernto. ", 0.5)


def test_the_likelier_text_is_favoured_by_what_differs_alone():
    session = ScriptedSession(knows_bern)
    found = likelihood_lead(session, *TEXTS)
    assert found == pytest.approx(-likelihood_lead(session, *TEXTS[::-1])) and found > 0
    assert session.asked[0] == "It is B", "what both have in common is not weighed"


def test_a_long_text_gains_nothing_by_its_length(monkeypatch):
    monkeypatch.setattr(decoding, "READ", 2)
    even = ScriptedSession({"a": 0.5, "b": 0.5})
    assert likelihood_lead(even, "abababab", "ba") == pytest.approx(0)
    assert len(even.asked) == 4


def test_an_unlisted_token_is_as_unlikely_as_the_last_listed_one():
    session = ScriptedSession({"a": 0.8, "b": 0.1})
    assert likelihood_lead(session, "a", "x") == pytest.approx(math.log(8))


@pytest.mark.parametrize("texts", [("Yes", "Yes, but"), ("Yes", " Yes\n"), ("", "Yes")])
def test_texts_that_nowhere_part_are_even(texts):
    assert likelihood_lead(ScriptedSession(knows_bern), *texts) == 0.0


def test_of_near_copies_only_the_end_they_share_is_read_again():
    session = ScriptedSession(knows_bern)
    likelihood_lead(session, "-" * 1000 + "e", "-" * 1000 + "o")
    assert session.asked == ["-" * decoding.SHARED] * 2


# Filling a schema

QUOTES = ["It is Paris.", "It is big."]
SCORE = {"1": 0.1, "3": 0.2, "5": 0.7}


def object_of(**properties):
    return {"type": "object", "properties": properties}


def dimension(scores):
    return object_of(
        evidence={"type": "array", "items": {"enum": QUOTES, "x-quote": True}},
        rationale={"type": "string", "maxLength": 40},
        score={"enum": scores, "x-labels": {"5": "fully right"}},
    )


SCHEMA = object_of(
    scores=object_of(fact=dimension([1, 3, 5]), tone=dimension([1, 5])),
    failure_tags={"const": []},
    notes={"const": ""},
)


def filled(schema, table, *, budget=1000, prior=None, leads=None):
    """The value of a schema, the odds of its choices, and the session."""
    session = ScriptedSession(table, 'Right."')
    choices = tuple(find_choices(schema))
    odds = measure(session, choices, leads or {})
    odds = odds if prior is None else subtract_prior(odds, prior, choices)
    decided = {choice.path: decide(choice, odds[choice.path]) for choice in choices}
    return SchemaFiller(session, decided, budget).fill(schema), odds, session


def table(text):
    return {"b": 0.9, "P": 0.1} if text.endswith("It is ") else SCORE


def test_every_choice_is_scored_on_its_path_alone():
    assert [choice.questions for choice in find_choices(SCHEMA)] == [
        (('{"scores": {"fact": {"score":', (" 1", " 3", " 5")),),
        (('{"scores": {"tone": {"score":', (" 1", " 5")),),
    ]


def test_the_reply_has_the_schemas_order_and_each_text_is_written_knowing_the_score_and_the_quote():
    value, _, session = filled(SCHEMA, table)
    given = {"evidence": ["It is big."], "rationale": "Right.", "score": 5}
    expected = {"scores": {"fact": given, "tone": given}, "failure_tags": [], "notes": ""}
    assert json.dumps(value) == json.dumps(expected)
    assert (
        '{"scores": {"fact": {"score": 5, "criteria": "fully right", '
        '"evidence": ["It is big."], "rationale": "'
    ) in session.asked


def test_the_prior_of_nothing_to_judge_is_taken_off_and_leaves_probabilities():
    schema = object_of(ok={"enum": ["no", "yes"]})
    prior = {("ok",): (math.log(0.9), math.log(0.1))}
    (plain, *_), (less, odds, _) = (
        filled(schema, {"n": 0.7, "y": 0.3}, prior=one) for one in (None, prior)
    )
    assert (plain, less) == ({"ok": "no"}, {"ok": "yes"})
    assert math.fsum(map(math.exp, odds["ok",])) == pytest.approx(1)


def test_no_fragments_give_no_quotes():
    schema = {"type": "array", "items": {"enum": [], "x-quote": True}, "maxItems": 3}
    assert filled(schema, {})[0] == []


@cases
def test_a_number_is_the_median_and_the_lower_one_in_doubt(probabilities, score):
    odds = [math.log(p) if p else -700.0 for p in probabilities]
    assert decide(Choice(("x",), (1, 2, 3, 4, 5)), odds) == score
    assert decide(Choice(("x",), (5, 4, 3, 2, 1)), odds[::-1]) == score


def test_numbers_keep_their_spelling_and_strings_their_escapes():
    choice = Choice(("a",), (1, 2.5, 'say "x"', None))
    assert choice.questions == (('{"a":', (" 1", " 2.5", ' "say \\"x\\"', " null")),)


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
        list(find_choices(object_of(x=schema)))


def test_the_tokens_of_all_texts_together_are_bounded():
    with pytest.raises(BudgetSpentError):
        filled(SCHEMA, table, budget=7)


# Comparisons

VERSUS = {
    "names": ["A", "B"],
    "texts": ["Bern.", "Bonn."],
    "topic": "Which city?",
    "better": "better answer",
    "worse": "worse answer",
}
COMPARED = object_of(
    mark={"enum": ["A+", "B+", "tie"], "x-versus": VERSUS},
    why={"type": "string"},
    winner={"enum": ["A", "B", "tie"], "x-versus": VERSUS},
)


def compared_by(gap, lead=0.0, prior=None):
    """The verdict of a model that likes to write A, and finds the first better by `gap`."""

    def letters(text):
        lean = 3.0 - gap if "worse" in text else 3.0 + gap
        return {"A": math.exp(lean) / (1 + math.exp(lean)), "B": 1 / (1 + math.exp(lean))}

    versus = next(iter(find_choices(COMPARED))).versus
    return filled(COMPARED, letters, prior=prior, leads={versus: lead})


@pytest.fixture
def even(monkeypatch):
    monkeypatch.setattr(decoding, "LEAN", 0.0)
    monkeypatch.setattr(decoding, "MARGIN", 0.3)


@pytest.mark.parametrize(
    ("gap", "winner"), [(0.4, "A"), (-0.4, "B"), (0.2, "tie"), (-0.2, "tie"), (0.0, "tie")]
)
def test_of_two_the_one_named_better_and_not_worse_wins_whatever_the_taste(even, gap, winner):
    value, _, session = compared_by(gap)
    mark = {"A": "A+", "B": "B+"}.get(winner, winner)
    assert (value["winner"], value["mark"]) == (winner, mark)
    assert session.asked[:2] == ['{"better answer": "', '{"worse answer": "']
    assert len(session.asked) == 3, "a comparison that two fields hold is made once"
    assert f'"winner": "{winner}"' in session.asked[-1]


def test_what_the_model_would_rather_have_written_is_added(even):
    assert compared_by(0.2, lead=0.2)[0]["winner"] == "A"
    assert compared_by(0.4, lead=-1.0)[0]["winner"] == "B"


def test_the_lean_to_the_first_place_is_taken_off(even, monkeypatch):
    monkeypatch.setattr(decoding, "LEAN", 0.5)
    assert [compared_by(gap)[0]["winner"] for gap in (0.4, 0.1)] == ["tie", "B"]


def test_neither_is_as_likely_as_the_better_one_at_the_margin(even):
    first, second, neither = compared_by(0.3)[1]["winner",]
    assert math.fsum(map(math.exp, (first, second, neither))) == pytest.approx(1)
    assert (first, first - second) == (pytest.approx(neither), pytest.approx(0.3))


def test_a_comparison_is_not_held_against_a_prior(even):
    prior = {choice.path: (-9.0, -0.1, -3.0) for choice in find_choices(COMPARED)}
    assert compared_by(0.4, prior=prior)[1] == compared_by(0.4)[1]


# Draws


def test_a_drawn_choice_follows_its_probability_and_neither_stands_between():
    (choice,) = find_choices({"enum": ["A", "B", "tie"], "x-versus": VERSUS})
    odds = [math.log(p) for p in (0.5, 0.3, 0.2)]
    points = (0.0, 0.49, 0.51, 0.69, 0.71, 0.999)
    drawn = [decide(choice, odds, Draw(1.0, point)) for point in points]
    assert drawn == ["A", "A", "tie", "tie", "B", "B"]


def point_of(content, seed=3, role="user"):
    return Draw.of((Message(role, content),), 0.7, seed).point


def test_a_draw_belongs_to_its_prompt_and_seed_and_points_fill_the_line_evenly():
    assert point_of("Compare.") == point_of("Compare.")
    others = point_of("Compare!"), point_of("Compare.", role="system"), point_of("\ud800")
    assert len({point_of("Compare."), point_of("Compare.", 4), *others}) == 5
    points = sorted(point_of("Compare.", seed) for seed in range(500))
    assert 0 <= points[0] < points[-1] < 1
    assert max(later - earlier for earlier, later in pairwise(points)) < 0.05


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.8), (0.5, 16 / 17), (2.0, 2 / 3)])
def test_a_low_temperature_favours_the_likely(temperature, share):
    odds = [math.log(0.8), math.log(0.2)]
    picked = [Draw(temperature, share + step).pick(odds) for step in (-0.001, 0.001)]
    assert picked == [0, 1]


def test_an_option_that_is_impossible_in_practice_is_no_error():
    assert Draw(0.1, 0.999).pick([0.0, -900.0]) == 0
    assert Draw(0.1, 0.0).pick([-900.0, 0.0]) == 1


# Texts


@cases
def test_a_text_is_one_line_cut_at_a_sentence_or_a_word(written, ended, most, kept):
    assert clean_prose(Completion(written, 9, ended), most) == kept
