"""What a judge tells beside its reply: the odds of its winner, and how the reply was drawn."""

from __future__ import annotations

from math import log

import pytest

from evenhand.exchange import Question, Reply
from tests.suites import pair_reply
from tests.unit.kinds.pairing import PAIR, Judge, by_worth, context_of, of_candidates, protocol


def with_odds(question: Question, mark: str, odds: dict[str, float]) -> Reply:
    told = {f'"{name}"': log(value) for name, value in odds.items()}
    return Reply(text=pair_reply(of_candidates(question, mark)), odds={"winner": told})


async def test_odds_are_mapped_back_and_their_mean_is_kept() -> None:
    def reply(question: Question) -> Reply:
        straight = question.order == "12"
        odds = {"A": 0.7, "B": 0.2, "tie": 0.1} if straight else {"A": 0.3, "B": 0.6, "tie": 0.1}
        return with_odds(question, "A+", odds)

    judgment = await protocol().judge(PAIR, context_of(Judge(reply)))
    assert judgment.output is not None
    assert judgment.output["odds"] == pytest.approx({"A": 0.65, "B": 0.25, "tie": 0.1})
    assert judgment.flags == ()
    turned = judgment.passes[1].odds["winner"]
    assert turned == pytest.approx({"A": log(0.6), "B": log(0.3), "tie": log(0.1)})


async def test_odds_that_hardly_decide_are_flagged() -> None:
    judge = Judge(lambda question: with_odds(question, "A+", {"A": 0.4, "B": 0.38, "tie": 0.22}))
    judgment = await protocol().judge(PAIR, context_of(judge))
    assert "low_margin" in judgment.flags


async def test_a_judge_that_tells_odds_in_one_order_only_gets_no_mean() -> None:
    def reply(question: Question) -> Reply | str:
        if question.order == "12":
            return with_odds(question, "A+", {"A": 0.9, "B": 0.05, "tie": 0.05})
        return by_worth(question)

    judgment = await protocol().judge(PAIR, context_of(Judge(reply)))
    assert judgment.output is not None
    assert "odds" not in judgment.output


async def test_what_was_really_drawn_is_recorded_with_the_pass() -> None:
    def reply(question: Question) -> Reply:
        drawn = {"temperature": 0.7, "seed": 8.0} if question.round > 1 else {}
        return Reply(text=pair_reply("A+"), sampling=drawn)

    judgment = await protocol(max_rounds=2).judge(PAIR, context_of(Judge(reply)))
    assert [one.sampling for one in judgment.passes] == [
        *({}, {}),
        *({"temperature": 0.7, "seed": 8.0},) * 2,
    ]
