"""Anthropic's messages: the part that all units share is marked for the provider's cache."""

from evenhand.exchange import Message, Question
from tests.cases import cases
from tests.dialects import message
from tests.provider import refusing
from tests.unit.judges.questions import ask


@cases
async def test_the_unchanging_part_is_marked_for_the_cache_where_it_ends(turns, system, content):
    asked = Question(messages=tuple(Message(*turn) for turn in turns), schema=None)
    _, endpoint = await ask("anthropic", message("{}"), asked=[asked])
    body = endpoint.calls[0].body
    assert body["system"] == system
    assert body["messages"] == [{"role": "user", "content": content}]


async def test_thinking_that_wants_no_temperature_gets_none():
    said = "`temperature` may only be set to 1 when thinking is enabled."
    picky = refusing("temperature", said, then=message("well"))
    params = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    [reply], endpoint = await ask("anthropic", picky, params=params)
    assert ["temperature" in call.body for call in endpoint.calls] == [True, False]
    assert reply.text == "well"
