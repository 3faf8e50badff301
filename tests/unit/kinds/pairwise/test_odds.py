"""What a judge tells beside its reply: the odds of its winner, and how the reply was drawn."""

from __future__ import annotations

from math import log

import pytest

from evenhand.exchange import Question, Reply
from tests.suites import pair_reply
from tests.unit.kinds.pairing import PAIR, Judge, context_of, of_candidates, protocol


def with_odds(question: Question, mark: str, odds: dict[str, float]) -> Reply:
    told = {f'"{name}"': log(value) for name, value in odds.items()}
    return Reply(text=pair_reply(of_candidates(question, mark)), odds={"winner": told})


async def test_odds_are_mapped_back_to_the_candidates():
    def reply(question):
        straight = question.order == "12"
        odds = {"A": 0.7, "B": 0.2, "tie": 0.1} if straight else {"A": 0.3, "B": 0.6, "tie": 0.1}
        return with_odds(question, "A+", odds)

    judgment = await protocol().judge(PAIR, context_of(Judge(reply)))
    assert judgment.flags == ()
    turned = judgment.passes[1].odds["winner"]
    assert turned == pytest.approx({"A": log(0.6), "B": log(0.3), "tie": log(0.1)})


async def test_what_was_really_drawn_is_recorded_with_the_pass():
    def reply(question):
        drawn = {"temperature": 0.7, "seed": 8.0} if question.round > 1 else {}
        return Reply(text=pair_reply("A+"), sampling=drawn)

    judgment = await protocol(max_rounds=2).judge(PAIR, context_of(Judge(reply)))
    assert [one.sampling for one in judgment.passes] == [
        *({}, {}),
        *({"temperature": 0.7, "seed": 8.0},) * 2,
    ]
