"""Work that grows with a text is done beside the event loop: whatever else runs goes on."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from evenhand.engine.loop import offloader
from evenhand.exchange import Ask, Question, Reply
from evenhand.judgment import Judgment
from evenhand.kinds.conversation import JudgingContext
from evenhand.limits import ASIDE_CHARS
from tests.suites import pair_reply
from tests.unit.kinds import grading, material, pairing

LONG = ASIDE_CHARS + 1


async def turns_during(work: Awaitable[Any]) -> int:
    """How many turns another task gets while something is awaited."""
    turns, task = 0, asyncio.ensure_future(work)
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    await task
    return turns


def prose(size: int) -> str:
    sentence = "Мой “ответ”\nготов  и\u0306… " + "и далее по порядку, без конца и без края; " * 8
    return sentence * (size // len(sentence))


def always(text: str) -> Ask:
    async def ask(question: Question) -> Reply:
        return Reply(text=text)

    return ask


async def judge_sample(asking: Callable[[Ask], JudgingContext], size: int) -> Judgment:
    """Three replies with three quotes each that stand nowhere in the output word for word."""
    sample = replace(material.SAMPLE, model_output=prose(size))
    reply = material.good()
    reply["scores"]["correct"] |= {"evidence": ["ответ готов", '"ответ" готов', "nowhere"]}
    return await material.protocol(repairs=2).judge(sample, asking(always(json.dumps(reply))))


async def judge_pair(asking: Callable[[Ask], JudgingContext], size: int) -> Judgment:
    texts = (f"I am GPT-4. {prose(size // 10)}", prose(size // 10))
    pair = pairing.PAIR.with_texts(*texts)
    return await pairing.protocol(blind="mask").judge(pair, asking(always(pair_reply("tie"))))


async def judge_answer(asking: Callable[[Ask], JudgingContext], size: int) -> Judgment:
    rubric = f"{grading.FACT}- must_not_match: /x+y/\n"
    answer = grading.under(rubric, prose(size) + "\u200b")
    return await grading.protocol().judge(answer, asking(always(grading.said())))


JUDGED = [judge_sample, judge_pair, judge_answer]


@pytest.mark.parametrize("judge", JUDGED)
async def test_the_loop_goes_on_while_a_long_unit_is_judged(judge):
    aside = offloader()
    alone = await turns_during(judge(lambda ask: JudgingContext(ask=ask), 200_000))
    beside = await turns_during(
        judge(lambda ask: JudgingContext(ask=ask, offload=aside), 2_000_000)
    )
    assert alone < 20
    assert beside > 100


@pytest.mark.parametrize("judge", JUDGED)
async def test_a_judgment_is_the_same_wherever_it_is_worked_out(judge):
    aside = offloader()
    here = await judge(lambda ask: JudgingContext(ask=ask), 200_000)
    assert here == await judge(lambda ask: JudgingContext(ask=ask, offload=aside), 200_000)


async def test_short_work_is_done_here_and_long_work_elsewhere():
    aside, here = offloader(), threading.get_ident()
    assert await aside(threading.get_ident, ASIDE_CHARS) == here
    assert await aside(threading.get_ident, LONG) != here


async def test_short_work_of_several_is_done_step_by_step_for_all_of_them():
    aside, steps = offloader(), list[str]()

    async def judged(name: str) -> None:
        for step in range(3):
            await aside(lambda step=step: steps.append(f"{name}{step}"), 0)

    await asyncio.gather(*map(judged, "abc"))
    assert steps == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


async def test_long_work_is_done_one_after_the_other():
    aside = offloader()
    under_way, most = 0, 0

    def work() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        sum(range(100_000))
        under_way -= 1

    await asyncio.gather(*(aside(work, LONG) for _ in range(8)))
    assert (under_way, most) == (0, 1)


@pytest.mark.parametrize("size", [0, LONG])
async def test_what_goes_wrong_aside_goes_wrong_here(size):
    aside = offloader()
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 / 0, size)
    assert await aside(lambda: "next", size) == "next"
