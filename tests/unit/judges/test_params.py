"""`[judges.params]`: handed through as they are, part of the identity, never over what the contract
needs; and the reasoning that they may ask for, kept apart from the reply."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from evenhand.errors import UsageError
from tests.dialects import Endpoint, candidate, message
from tests.provider import Behaviour, refusing, saying, valid
from tests.unit.judges.conftest import OpenJudge, answered, question

REPLYING: dict[str, Behaviour] = {
    "openai": saying("well"),
    "anthropic": message("well"),
    "google": candidate("well"),
}
PARAMS: dict[str, Any] = {
    "openai": {"reasoning_effort": "high", "top_p": 0.9, "reasoning": {"max_tokens": 2000}},
    "anthropic": {
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"effort": "low"},
    },
    "google": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}, "labels": ["a", 1]},
}


def holds(body: Any, params: Any) -> bool:
    """Whether a body has all of the params, and more."""
    if not isinstance(params, dict):
        return bool(body == params)
    return all(name in body and holds(body[name], value) for name, value in params.items())


@pytest.mark.parametrize("name", PARAMS)
async def test_params_go_into_the_body_beside_what_is_sent_anyway(
    opened: OpenJudge, name: str
) -> None:
    async with Endpoint(REPLYING[name]) as endpoint:
        await answered(opened(f"{name}/m", endpoint.url))
        await answered(opened(f"{name}/m", endpoint.url, params=PARAMS[name]))
    plain, with_params = (call.body for call in endpoint.calls)
    assert holds(with_params, PARAMS[name]) and holds(with_params, plain)


def test_params_are_part_of_the_identity(opened: OpenJudge) -> None:
    identities = [
        opened("openai/m", "http://127.0.0.1:9", params=params).identity
        for params in ({}, {"top_p": 0.9}, {"top_p": 0.8})
    ]
    assert "params" not in identities[0]
    assert [identity.get("params") for identity in identities[1:]] == [
        {"top_p": 0.9},
        {"top_p": 0.8},
    ]


@pytest.mark.parametrize(
    ("name", "params", "field"),
    [
        ("openai", {"model": "other"}, "model"),
        ("openai", {"messages": []}, "messages"),
        ("openai", {"stream": True}, "stream"),
        ("openai", {"max_completion_tokens": 1}, "max_completion_tokens"),
        ("openai", {"response_format": {"type": "text"}}, "response_format"),
        ("anthropic", {"system": "Be kind."}, "system"),
        ("anthropic", {"output_config": {"format": {}}}, "output_config.format"),
        ("anthropic", {"output_config": 1}, "output_config.format"),
        (
            "google",
            {"generationConfig": {"maxOutputTokens": 1}},
            "generationConfig.maxOutputTokens",
        ),
        ("google", {"generationConfig": []}, "generationConfig.maxOutputTokens"),
    ],
)
def test_what_the_contract_needs_is_refused(
    opened: OpenJudge, name: str, params: dict[str, Any], field: str
) -> None:
    with pytest.raises(UsageError, match="may not be set here") as refused:
        opened(f"{name}/m", "http://127.0.0.1:9", params=params)
    assert f'"{field}"' in str(refused.value)
    assert refused.value.where == f"[judges.params] of {name}/m"


@pytest.mark.parametrize("value", [date(2026, 1, 1), float("nan"), float("inf"), [{"a": {1}}]])
def test_what_is_no_json_is_refused(opened: OpenJudge, value: Any) -> None:
    with pytest.raises(UsageError, match="not all of this is JSON"):
        opened("openai/m", "http://127.0.0.1:9", params={"a": {"b": value}})


@pytest.mark.parametrize(
    "setting", [{"params": {"a": 1}}, {"stream": True}, {"proxy": "http://p:1"}]
)
def test_judges_that_send_nothing_take_none_of_it(opened: OpenJudge, setting: Any) -> None:
    with pytest.raises(UsageError, match="no judge over HTTP"):
        opened("python/json:dumps", **setting)


async def test_thinking_that_wants_no_temperature_gets_none(opened: OpenJudge) -> None:
    said = "`temperature` may only be set to 1 when thinking is enabled."
    async with Endpoint(refusing("temperature", said, then=message("well"))) as endpoint:
        judge = opened("anthropic/m", endpoint.url, params=PARAMS["anthropic"])
        assert (await answered(judge)).text == "well"
    assert ["temperature" in call.body for call in endpoint.calls] == [True, False]


# Reasoning


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_of_a_chat_is_kept_apart(opened: OpenJudge, field: str) -> None:
    async with Endpoint(saying("well", **{field: '{"score": 1}'})) as endpoint:
        reply = await answered(opened("openai/m", endpoint.url))
    assert (reply.text, reply.reasoning) == ("well", '{"score": 1}')


async def test_thinking_blocks_and_thoughts_are_kept_apart(opened: OpenJudge) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    redacted = {"type": "redacted_thinking", "data": "x"}
    async with Endpoint(message(thinking, redacted, "well")) as endpoint:
        reply = await answered(opened("anthropic/m", endpoint.url))
    assert (reply.text, reply.reasoning) == ("well", "Hm.")
    thought = {"text": "Hm.", "thought": True}
    async with Endpoint(candidate(thought, "well")) as endpoint:
        reply = await answered(opened("google/m", endpoint.url))
    assert (reply.text, reply.reasoning) == ("well", "Hm.")


async def test_without_reasoning_there_is_none(opened: OpenJudge) -> None:
    async with Endpoint(valid()) as endpoint:
        assert (await opened("openai/m", endpoint.url).answer(question())).reasoning == ""
