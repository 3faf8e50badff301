"""Who wrote the candidates: a judge of the same family, and a text that names its model."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from evenhand.units import Candidate
from tests.suites import pair_reply
from tests.unit.kinds.pairing import PAIR, Judge, blocks, by_worth, context_of, protocol, steadily


def family_pair(first: str, second: str) -> Any:
    one, other = (
        Candidate(id=name, text=text)
        for name, text in zip((first, second), PAIR.texts, strict=True)
    )
    return replace(PAIR, first=one, second=other)


@pytest.mark.parametrize(
    ("judge", "flags"),
    [
        ("openai/gpt-4.1-mini", ["shares_family:A"]),
        ("anthropic/claude-sonnet-4-5", ["shares_family:B"]),
        ("google/gemini-2.5-pro", []),
        ("python/judge:content", []),
    ],
)
async def test_a_judge_of_a_candidate_s_family_is_flagged_or_left_out(judge, flags):
    pair = family_pair("gpt-4o", "claude-3-opus")
    flagged = await protocol().judge(pair, context_of(Judge(by_worth), judges=(judge,)))
    assert (flagged.status, list(flagged.flags)) == ("verdict", flags)
    asked = Judge(by_worth)
    strict = await protocol(no_self_judging=True).judge(pair, context_of(asked, judges=(judge,)))
    assert strict.status == ("left_out" if flags else "verdict")
    assert len(asked.asked) == (0 if flags else 2)


async def test_the_model_of_a_candidate_counts_before_its_id():
    pair = replace(PAIR, first=replace(PAIR.first, model="gpt-4o"))
    judged = await protocol().judge(pair, context_of(Judge(by_worth), judges=("openai/gpt-4.1",)))
    assert judged.flags == ("shares_family:A",)


async def test_a_relay_leaves_out_only_the_judge_that_shares_a_family():
    pair, names = family_pair("gpt-4o", "mine"), ("openai/gpt-4.1", "anthropic/claude-sonnet-4-5")
    judge = Judge(lambda question: pair_reply("A+"))
    seats = context_of(judge, judges=names, styles=("full", "full"))
    judgment = await protocol(no_self_judging=True).judge(pair, seats)
    assert {one.judge_index for one in judge.asked} == {1}
    assert judgment.flags == ()


async def test_a_candidate_that_names_its_model_is_flagged_or_masked():
    pair = PAIR.with_texts("As GPT-4, I say 9.", "It is 2.")
    for blind, is_shown in (("flag", True), ("mask", False)):
        judge = Judge(by_worth)
        judgment = await protocol(blind=blind).judge(pair, context_of(judge))
        flags = ["gives_itself_away:A"] if is_shown else ["masked:A", "gives_itself_away:A"]
        assert list(judgment.flags) == flags
        for question in judge.asked:
            sent = "".join(message.content for message in question.messages)
            assert ("GPT-4" in sent) is is_shown
        assert judgment.output["winner"] == "A"


async def test_texts_that_differ_only_by_their_model_s_name_are_equal_when_masked():
    pair = PAIR.with_texts("I am GPT-4. It is 9.", "I am Claude. It is 9.")
    masked = Judge(steadily("A+"))
    judgment = await protocol(blind="mask").judge(pair, context_of(masked))
    if masked.asked:
        texts = [blocks(question)["candidate_1"] for question in masked.asked]
        assert texts[0] != texts[1]
    else:
        assert "equal_text" in judgment.flags
