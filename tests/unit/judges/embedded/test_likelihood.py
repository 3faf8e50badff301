import math

import pytest

from evenhand.judges.embedded import decoding
from evenhand.judges.embedded.child import Answerer
from evenhand.judges.embedded.decoding import Versus, likeliest, likelihood_lead, log_odds
from tests.unit.judges.embedded.scripted import ScriptedSession


def probabilities(session, lead, options):
    return [math.exp(value) for value in log_odds(session, lead, options)]


def test_options_share_the_probability_that_the_model_gives_to_any_of_them():
    session = ScriptedSession(lambda _: {"1": 0.3, "2": 0.1, "x": 0.6})
    assert probabilities(session, "score: ", ["1", "2"]) == pytest.approx([0.75, 0.25])


def test_an_option_of_many_tokens_counts_every_point_where_others_part_from_it():
    table = {"": {"a": 0.5, "c": 0.5}, "a": {"b": 0.2, "d": 0.8}}
    session = ScriptedSession(lambda text: table[text])
    found = probabilities(session, "", ["abz", "adz", "czz"])
    assert found == pytest.approx([0.1, 0.4, 0.5])


def test_one_and_ten_are_told_apart_by_what_follows_the_one():
    table = {"": {"1": 0.9, "2": 0.1}, "1": {"0": 0.3, ",": 0.4, "}": 0.3, "7": 5.0}}
    session = ScriptedSession(lambda text: table[text])
    assert probabilities(session, "", ["1", "2", "10"]) == pytest.approx([0.63, 0.1, 0.27])


def test_a_quote_that_begins_another_one_ends_at_its_closing_mark():
    table = {'"ab': {'"': 0.8, " ": 0.1, "c": 0.1}}
    session = ScriptedSession(lambda text: table[text])
    assert probabilities(session, "", ['"ab', '"abc']) == pytest.approx([0.9, 0.1])


def test_an_option_that_is_not_listed_is_as_unlikely_as_the_last_that_is():
    session = ScriptedSession(lambda _: {"1": 0.6, "2": 0.2})
    assert probabilities(session, "", ["1", "9"]) == pytest.approx([0.75, 0.25])


def test_equal_options_share_alike_and_all_sum_to_one():
    session = ScriptedSession(lambda _: {"1": 0.6, "2": 0.2})
    assert probabilities(session, "", ["1", "1", "2"]) == pytest.approx([0.375, 0.375, 0.25])


def test_a_single_option_needs_no_model():
    session = ScriptedSession(lambda _: {})
    assert log_odds(session, "lead ", ["only"]) == (0.0,)
    assert session.asked == []


def test_the_likeliest_is_read_only_until_it_is_clear():
    session = ScriptedSession(lambda _: {"T": 0.2, "A": 0.7, "o": 0.1})
    options = ["The first sentence.", "A second one.", "oddly, a third"]
    assert likeliest(session, "[", options) == 1
    assert session.asked == ["["]


def test_the_likeliest_follows_shared_beginnings():
    table = {"The ": {"c": 0.1, "d": 0.9}}
    session = ScriptedSession(lambda text: table[text])
    assert likeliest(session, "", ["The cat", "The dog"]) == 1


def test_the_likeliest_may_be_the_one_that_ends_where_another_goes_on():
    session = ScriptedSession(lambda _: {'"': 0.9, "s": 0.1})
    assert likeliest(session, "", ["dogs", "dog"]) == 1


TEXTS = ("It is Bern.", "It is Bonn.")


def knows_bern(text):
    """A model that goes on with Bern, and is sure of every other letter."""
    if text == "It is B":
        return {"e": 0.9, "o": 0.1}
    return dict.fromkeys("ernto. ", 0.5)


def test_the_likelier_text_is_favoured_by_what_differs_alone():
    session = ScriptedSession(knows_bern)
    found = likelihood_lead(session, *TEXTS)
    assert found > 0
    assert found == pytest.approx(-likelihood_lead(session, *TEXTS[::-1]))
    assert session.asked[0] == "It is B", "what both have in common is not weighed"


def test_a_long_text_gains_nothing_by_its_length(monkeypatch):
    monkeypatch.setattr(decoding, "READ", 2)
    even = ScriptedSession(lambda _: {"a": 0.5, "b": 0.5})
    assert likelihood_lead(even, "abababab", "ba") == pytest.approx(0)
    assert len(even.asked) == 4


def test_an_unlisted_token_is_as_unlikely_as_the_last_listed_one():
    session = ScriptedSession(lambda _: {"a": 0.8, "b": 0.1})
    assert likelihood_lead(session, "a", "x") == pytest.approx(math.log(8))


@pytest.mark.parametrize("texts", [("Yes", "Yes, but"), ("Yes", " Yes\n"), ("", "Yes")])
def test_texts_that_nowhere_part_are_even(texts):
    assert likelihood_lead(ScriptedSession(knows_bern), *texts) == 0.0


def test_of_near_copies_only_the_end_they_share_is_read_again():
    session = ScriptedSession(knows_bern)
    likelihood_lead(session, "-" * 1000 + "e", "-" * 1000 + "o")
    assert session.asked == ["-" * decoding.SHARED] * 2


def test_a_pair_is_read_once_in_either_order_and_each_topic_for_itself():
    made = []

    class Runtime:
        def session(self, messages):
            made.append(messages[0].content)
            return ScriptedSession(knows_bern)

    def versus(topic, texts):
        return Versus(("A", "B"), texts, topic, "better", "worse")

    answerer = Answerer(Runtime())
    one = answerer.lead(versus("Where?", TEXTS))
    assert answerer.lead(versus("Where?", TEXTS[::-1])) == -one
    assert made == ["Where?"]
    assert answerer.lead(versus("Why?", TEXTS)) == one
    assert made == ["Where?", "Why?"]
