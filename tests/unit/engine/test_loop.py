"""The event loop that work runs in, and work that grows with a text, which is done beside it:
whatever else runs goes on."""

import asyncio
import json
import sys
import threading

import pytest
from msgspec.structs import replace

from evenhand.engine.loop import VARIABLE, offloader, run_in_loop
from evenhand.exchange import Reply
from evenhand.kinds.conversation import JudgingContext
from evenhand.limits import ASIDE_CHARS
from tests.suites import pair_reply
from tests.unit.kinds import grading, material, pairing

LONG = ASIDE_CHARS + 1


async def loop_module():
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def test_work_runs_in_uvloop_where_it_is_installed_unless_the_environment_says_asyncio(monkeypatch):
    assert run_in_loop(loop_module()) == "uvloop"
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, "asyncio")
        assert run_in_loop(loop_module()) == "asyncio"
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_in_loop(loop_module()) == "asyncio"


async def turns_during(work):
    """How many turns another task gets while something is awaited."""
    turns, task = 0, asyncio.ensure_future(work)
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    await task
    return turns


def prose(size):
    sentence = "Мой “ответ”\nготов  и\u0306… " + "и далее по порядку, без конца и без края; " * 8
    return sentence * (size // len(sentence))


def context_of(text, **rest):
    """A judge that always says this."""

    async def ask(question):
        return Reply(text=text)

    return JudgingContext(ask=ask, **rest)


async def judge_sample(size, **rest):
    """Three replies with three quotes each that stand nowhere in the output word for word."""
    sample = replace(material.SAMPLE, model_output=prose(size))
    reply = material.good()
    reply["scores"]["correct"] |= {"evidence": ["ответ готов", '"ответ" готов', "nowhere"]}
    context = context_of(json.dumps(reply), **rest)
    return await material.protocol(repairs=2).judge(sample, context)


async def judge_pair(size, **rest):
    text = prose(size // 10)
    pair = pairing.PAIR.with_texts(f"I am GPT-4. {text}", text)
    return await pairing.protocol(blind="mask").judge(pair, context_of(pair_reply("tie"), **rest))


async def judge_answer(size, **rest):
    rubric = f"{grading.FACT}- must_not_match: /x+y/\n"
    answer = grading.under(rubric, prose(size) + "\u200b")
    return await grading.protocol().judge(answer, context_of(grading.said(), **rest))


JUDGED = pytest.mark.parametrize("judge", [judge_sample, judge_pair, judge_answer])


@JUDGED
async def test_the_loop_goes_on_while_a_long_unit_is_judged(judge):
    assert await turns_during(judge(200_000)) < 20
    assert await turns_during(judge(600_000, offload=offloader())) > 100


@JUDGED
async def test_a_judgment_is_the_same_wherever_it_is_worked_out(judge):
    assert await judge(200_000) == await judge(200_000, offload=offloader())


async def test_short_work_is_done_here_and_long_work_elsewhere():
    offload, here = offloader(), threading.get_ident()
    assert await offload(threading.get_ident, ASIDE_CHARS) == here
    assert await offload(threading.get_ident, LONG) != here


async def test_short_work_of_several_is_done_step_by_step_for_all_of_them():
    offload, steps = offloader(), []

    async def work(name):
        for step in range(3):
            await offload(lambda step=step: steps.append(f"{name}{step}"), 0)

    await asyncio.gather(*map(work, "abc"))
    assert steps == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


async def test_long_work_is_done_one_after_the_other():
    offload, under_way, most = offloader(), 0, 0

    def work():
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        sum(range(100_000))
        under_way -= 1

    await asyncio.gather(*(offload(work, LONG) for _ in range(8)))
    assert (under_way, most) == (0, 1)


@pytest.mark.parametrize("size", [0, LONG])
async def test_what_goes_wrong_aside_goes_wrong_here(size):
    offload = offloader()
    with pytest.raises(ZeroDivisionError):
        await offload(lambda: 1 / 0, size)
    assert await offload(lambda: "next", size) == "next"
