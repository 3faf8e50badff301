import math

import pytest

from evenhand.judges.embedded import alone
from evenhand.judges.embedded.alone import Favours, favour
from tests.unit.judges.embedded.scripted import ScriptedSession

TEXTS = ("It is Bern.", "It is Bonn.")


def knows_bern(text):
    """A model that goes on with Bern, and is sure of every other letter."""
    if text == "It is B":
        return {"e": 0.9, "o": 0.1}
    return dict.fromkeys("ernto. ", 0.5)


def test_the_likelier_text_is_favoured_by_what_differs_alone():
    session = ScriptedSession(knows_bern)
    found = favour(session, *TEXTS)
    assert found > 0
    assert found == pytest.approx(-favour(session, *TEXTS[::-1]))
    assert session.asked[0] == "It is B", "what both have in common is not weighed"


def test_a_long_text_gains_nothing_by_its_length(monkeypatch):
    monkeypatch.setattr(alone, "READ", 2)
    even = ScriptedSession(lambda _: {"a": 0.5, "b": 0.5})
    assert favour(even, "abababab", "ba") == pytest.approx(0)
    assert len(even.asked) == 4


def test_an_unlisted_token_is_as_unlikely_as_the_last_listed_one():
    session = ScriptedSession(lambda _: {"a": 0.8, "b": 0.1})
    assert favour(session, "a", "x") == pytest.approx(math.log(8))


@pytest.mark.parametrize("texts", [("Yes", "Yes, but"), ("Yes", " Yes\n"), ("", "Yes")])
def test_texts_that_nowhere_part_are_even(texts):
    assert favour(ScriptedSession(knows_bern), *texts) == 0.0


def test_of_near_copies_only_the_end_they_share_is_read_again():
    session = ScriptedSession(knows_bern)
    favour(session, "-" * 1000 + "e", "-" * 1000 + "o")
    assert session.asked == ["-" * alone.SHARED] * 2


def test_a_pair_is_read_once_in_either_order_and_each_topic_for_itself(monkeypatch):
    made = []

    def session():
        made.append(ScriptedSession(knows_bern))
        return made[-1]

    favours = Favours()
    one = favours.of("Where?", TEXTS, session)
    assert favours.of("Where?", TEXTS[::-1], session) == -one
    assert len(made) == 1
    favours.of("Why?", TEXTS, session)
    assert len(made) == 2
    monkeypatch.setattr(alone, "KEPT", 2)
    favours.of("When?", TEXTS, session)
    assert len(favours.known) == 1
