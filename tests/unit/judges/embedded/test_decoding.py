import json
import math
from itertools import pairwise

import pytest

from evenhand.exchange import Message
from evenhand.judges.embedded import decoding
from evenhand.judges.embedded.child import Answerer
from evenhand.judges.embedded.decoding import (
    BudgetSpentError,
    Choice,
    Draw,
    SchemaError,
    SchemaFiller,
    clean_prose,
    decide,
    find_choices,
    measure,
    subtract_prior,
)
from evenhand.judges.embedded.runtime import Completion
from tests.unit.judges.embedded.scripted import ScriptedRuntime, ScriptedSession

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
        "failure_tags": {"const": []},
        "notes": {"const": ""},
    },
}
SCORE = {"1": 0.1, "3": 0.2, "5": 0.7}


def filled(schema, table, *, writes=lambda _: 'Right."', budget=1000, prior=None):
    session = ScriptedSession(table, writes)
    choices = tuple(find_choices(schema))
    odds = measure(session, choices, {})
    odds = odds if prior is None else subtract_prior(odds, prior, choices)
    decided = {choice.path: decide(choice, odds[choice.path]) for choice in choices}
    return SchemaFiller(session, decided, budget).fill(schema), session


def table(text):
    if text.endswith("It is "):
        return {"b": 0.9, "P": 0.1}
    return SCORE


def test_every_choice_is_scored_on_its_path_alone():
    assert [choice.questions for choice in find_choices(SCHEMA)] == [
        (('{"scores": {"fact": {"score":', (" 1", " 3", " 5")),),
        (('{"scores": {"tone": {"score":', (" 1", " 5")),),
    ]


def test_the_reply_has_the_schemas_order_and_the_likeliest_options():
    value, _ = filled(SCHEMA, table)
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
    _, session = filled(SCHEMA, table)
    assert (
        '{"scores": {"fact": {"score": 5, "criteria": "fully right", '
        '"evidence": ["It is big."], "rationale": "'
    ) in session.asked


def test_the_prior_of_nothing_to_judge_is_taken_off():
    schema = {"type": "object", "properties": {"ok": {"enum": ["no", "yes"]}}}
    (choice,) = find_choices(schema)
    prior = {choice.path: (math.log(0.9), math.log(0.1))}
    value, _ = filled(schema, lambda _: {"n": 0.7, "y": 0.3}, prior=prior)
    assert value == {"ok": "yes"}
    assert filled(schema, lambda _: {"n": 0.7, "y": 0.3})[0] == {"ok": "no"}


def test_odds_less_the_prior_are_probabilities():
    choices = [Choice(("a",), (1, 2))]
    found = subtract_prior({("a",): (-1.0, -2.0)}, {("a",): (-0.1, -3.0)}, choices)
    assert math.fsum(map(math.exp, found["a",])) == pytest.approx(1)


def test_no_fragments_give_no_quotes():
    schema = {"type": "array", "items": {"enum": [], "x-quote": True}, "maxItems": 3}
    assert filled(schema, lambda _: {})[0] == []


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
        list(find_choices({"type": "object", "properties": {"x": schema}}))


def test_the_tokens_of_all_texts_together_are_bounded():
    with pytest.raises(BudgetSpentError):
        filled(SCHEMA, table, budget=7)


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


def compared_by(gap, lead=0.0, prior=None):
    session = ScriptedSession(taste_and(gap), lambda _: 'Right."')
    choices = tuple(find_choices(COMPARED))
    odds = measure(session, choices, {choices[0].versus: lead})
    odds = odds if prior is None else subtract_prior(odds, prior, choices)
    decided = {choice.path: decide(choice, odds[choice.path]) for choice in choices}
    return SchemaFiller(session, decided, 1000).fill(COMPARED), odds["winner",], session


@pytest.fixture
def even(monkeypatch):
    monkeypatch.setattr(decoding, "LEAN", 0.0)
    monkeypatch.setattr(decoding, "MARGIN", 0.3)


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
    assert compared_by(0.2, lead=0.2)[0]["winner"] == "A"
    assert compared_by(0.4, lead=-1.0)[0]["winner"] == "B"


def test_the_lean_to_the_first_place_is_taken_off(even, monkeypatch):
    monkeypatch.setattr(decoding, "LEAN", 0.5)
    assert compared_by(0.4)[0]["winner"] == "tie"
    assert compared_by(0.1)[0]["winner"] == "B"


def test_neither_is_as_likely_as_the_better_one_at_the_margin(even):
    first, second, neither = compared_by(0.3)[1]
    assert math.fsum(map(math.exp, (first, second, neither))) == pytest.approx(1)
    assert first == pytest.approx(neither)
    assert first - second == pytest.approx(0.3)


def test_a_comparison_is_not_held_against_a_prior(even):
    prior = {choice.path: (-9.0, -0.1, -3.0) for choice in find_choices(COMPARED)}
    assert compared_by(0.4, prior=prior)[1] == compared_by(0.4)[1]


def test_a_drawn_choice_follows_its_probability_and_neither_stands_between():
    (choice,) = find_choices({"enum": ["A", "B", "tie"], "x-versus": VERSUS})
    odds = [math.log(p) for p in (0.5, 0.3, 0.2)]
    points = (0.0, 0.49, 0.51, 0.69, 0.71, 0.999)
    drawn = [decide(choice, odds, Draw(1.0, point)) for point in points]
    assert drawn == ["A", "A", "tie", "tie", "B", "B"]


SAID = (Message("user", "Compare."),)


def test_a_draw_belongs_to_its_prompt_and_seed():
    one = Draw.of(SAID, 0.7, 3)
    assert Draw.of(SAID, 0.7, 3) == one
    assert Draw.of(SAID, 0.7, 4).point != one.point
    assert Draw.of((Message("user", "Compare!"),), 0.7, 3).point != one.point
    assert Draw.of((Message("system", "Compare."),), 0.7, 3).point != one.point


def test_points_fill_the_line_evenly():
    points = sorted(Draw.of(SAID, 1.0, seed).point for seed in range(500))
    assert 0 <= points[0] < points[-1] < 1
    assert max(later - earlier for earlier, later in pairwise(points)) < 0.05


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.8), (0.5, 16 / 17), (2.0, 2 / 3)])
def test_a_low_temperature_favours_the_likely(temperature, share):
    odds = [math.log(0.8), math.log(0.2)]
    assert Draw(temperature, share - 0.001).pick(odds) == 0
    assert Draw(temperature, share + 0.001).pick(odds) == 1


def test_an_option_that_is_impossible_in_practice_is_no_error():
    assert Draw(0.1, 0.999).pick([0.0, -900.0]) == 0
    assert Draw(0.1, 0.0).pick([-900.0, 0.0]) == 1


def test_half_a_surrogate_pair_can_be_drawn_for():
    assert 0 <= Draw.of((Message("user", "\ud800"),), 0.7, 1).point < 1


def test_a_text_that_came_to_its_end_is_kept_whole():
    assert clean_prose(Completion('He said \\"yes\\"."', 9, True), 100) == 'He said "yes".'


def test_a_text_stays_on_one_line():
    assert clean_prose(Completion('one\\n  two"', 5, True), 100) == "one two"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("It is right. It is so. And al", "It is right. It is so."),
        ("It is 2.5 metres lo", "It is 2.5 metres"),
        ("答案正确。因为它", "答案正确。"),
        ("答案正确因为它", "答案正确因为它"),
        ("答案正确因为\ufffd", "答案正确因为"),
        ("It says so \\", "It says"),
    ],
)
def test_a_text_that_broke_off_is_cut_at_a_sentence_or_a_word(written, kept):
    assert clean_prose(Completion(written, 9, False), 100) == kept


def test_a_text_is_never_longer_than_allowed():
    assert clean_prose(Completion('one two three"', 5, True), 9) == "one two"


def test_an_escaped_quote_at_the_break_does_not_end_the_text():
    assert clean_prose(Completion('He said \\"', 4, False), 99) == "He said"


SCORED = {
    "type": "object",
    "properties": {
        "why": {"type": "string", "maxLength": 40},
        "score": {"enum": [1, 5]},
    },
}


def asked(text, **rest):
    question = {
        "messages": [{"role": "user", "content": text}],
        "neutral": [{"role": "user", "content": "N/A"}],
        "schema": SCORED,
        "max_tokens": 100,
        "temperature": 0.0,
        "seed": 1,
        "drawn": False,
    }
    return {**question, **rest}


def test_a_choice_is_what_the_content_adds_to_the_prior_which_is_measured_once():
    runtime = ScriptedRuntime()
    answerer = Answerer(runtime)
    good, bad = (answerer.answer(asked(text)) for text in ("good one", "bad one"))
    assert json.loads(good.text) == {"why": "So it is.", "score": 5}
    assert json.loads(bad.text) == {"why": "So it is.", "score": 1}
    assert good.odds["score"]["5"] > good.odds["score"]["1"]
    assert (good.usage.input_tokens, good.usage.output_tokens) == (8, 10)
    assert [text for text, *_ in runtime.sessions] == ["N/A", "good one", "bad one"]


def test_another_neutral_prompt_or_choice_has_its_own_prior():
    runtime = ScriptedRuntime()
    answerer = Answerer(runtime)
    other = {"type": "object", "properties": {"score": {"enum": [1, 4, 5]}}}
    for rest in ({}, {"neutral": [{"role": "user", "content": "-"}]}, {"schema": other}):
        answerer.answer(asked("good", **rest))
    assert [text for text, *_ in runtime.sessions if text != "good"] == ["N/A", "-", "N/A"]


def test_without_a_neutral_prompt_the_raw_probabilities_decide():
    reply = Answerer(ScriptedRuntime()).answer(asked("bad one", neutral=[]))
    assert json.loads(reply.text)["score"] == 5


def test_the_prior_does_not_depend_on_how_texts_are_drawn():
    runtime = ScriptedRuntime()
    Answerer(runtime).answer(asked("good", temperature=0.7, seed=9))
    assert runtime.sessions == [("N/A", 0.0, 0), ("good", 0.7, 9)]


def test_a_reply_that_would_be_too_long_says_so():
    reply = Answerer(ScriptedRuntime()).answer(asked("good", max_tokens=0))
    assert (reply.text, reply.finish) == ("", "length")


def test_without_a_schema_the_model_writes_freely():
    answerer = Answerer(ScriptedRuntime())
    whole = answerer.answer(asked("good", schema=None))
    cut = answerer.answer(asked("good", schema=None, max_tokens=3))
    assert (whole.text, whole.finish) == ('So it is."', "stop")
    assert (cut.text, cut.finish) == ("So ", "length")


def test_a_drawn_reply_can_come_out_otherwise_and_the_same_seed_gives_the_same():
    answerer = Answerer(ScriptedRuntime())

    def scores(**rest):
        asks = [asked("good one", temperature=2.0, seed=seed, **rest) for seed in range(40)]
        return [json.loads(answerer.answer(one).text)["score"] for one in asks]

    assert set(scores()) == {5}
    assert set(scores(drawn=True)) == {1, 5}
    assert scores(drawn=True) == scores(drawn=True)


def test_two_texts_are_also_read_as_answers_to_their_topic_alone():
    versus = {
        "names": ["A", "B"],
        "texts": ["5", "1"],
        "topic": "What is good?",
        "better": "better",
        "worse": "worse",
    }
    schema = {"enum": ["A", "B", "tie"], "x-versus": versus}
    runtime = ScriptedRuntime()
    answerer = Answerer(runtime)
    question = asked("A: 5, B: 1", schema=schema, neutral=[])
    reply = answerer.answer(question)
    turned = {**schema, "x-versus": {**versus, "texts": ["1", "5"]}}
    other = answerer.answer({**question, "schema": turned})
    assert (json.loads(reply.text), json.loads(other.text)) == ("A", "B")
    asked_for = [text for text, *_ in runtime.sessions]
    assert asked_for == ["What is good?", "A: 5, B: 1", "A: 5, B: 1"]
