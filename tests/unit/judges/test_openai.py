"""What an OpenAI judge sends, and how it reads what comes back, against a real server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from evenhand.errors import CallLost, CallRejected, ProviderRefused
from evenhand.exchange import Judge, Message, Question, Usage
from tests.provider import (
    Call,
    Provider,
    completion,
    failing,
    never,
    refusing,
    refusing_schema,
    refusing_temperature,
    refusing_to_judge,
    saying,
    sending,
    surrogate,
    valid,
)
from tests.unit.judges.conftest import KEY, SCHEMA, MakeJudge, question

# The request


async def test_the_request_carries_the_conversation_the_settings_and_the_schema(
    judge: MakeJudge,
) -> None:
    async with Provider() as provider:
        asked = judge(provider.url, seed=7)
        await asked.answer(question("Оцени это. 评分"))
    call = provider.calls[0]
    assert call.headers["Authorization"] == f"Bearer {KEY}"
    assert call.body == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "You judge."},
            {"role": "user", "content": "Оцени это. 评分"},
        ],
        "max_tokens": 256,
        "temperature": 0.0,
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
        },
    }


async def test_what_is_not_set_is_not_sent(judge: MakeJudge) -> None:
    async with Provider(saying("well")) as provider:
        await judge(provider.url, temperature=None).answer(question(schema=None))
    assert set(provider.calls[0].body) == {"model", "messages", "max_tokens"}


def titled(title: str) -> dict[str, Any]:
    return {"type": "object", "title": title}


def sent_titles(provider: Provider) -> list[str]:
    formats = [call.body["response_format"]["json_schema"]["schema"] for call in provider.calls]
    return [schema["title"] for schema in formats]


async def test_each_question_is_sent_with_its_own_schema(judge: MakeJudge) -> None:
    names = [str(number) for number in range(200)]
    async with Provider() as provider:
        asked = judge(provider.url)
        for name in names:
            await asked.answer(question(schema=titled(name)))
    assert sent_titles(provider) == names


async def test_a_schema_at_the_address_of_one_that_is_gone_is_another(judge: MakeJudge) -> None:
    async with Provider() as provider:
        asked = judge(provider.url)
        gone = titled("gone")
        address = id(gone)
        await asked.answer(question(schema=gone))
        del gone
        new = [titled("new") for _ in range(9999)]
        at_the_address = next((schema for schema in new if id(schema) == address), new[0])
        await asked.answer(question(schema=at_the_address))
    assert sent_titles(provider) == ["gone", "new"]


async def test_later_rounds_and_repeats_can_come_out_differently(judge: MakeJudge) -> None:
    async with Provider() as provider:
        asked = judge(provider.url, seed=7)
        await asked.answer(question(round=1))
        await asked.answer(question(round=2))
        await asked.answer(question(round=3))
        await asked.answer(question(repeat=1))
    bodies = [call.body for call in provider.calls]
    assert [body["temperature"] for body in bodies] == [0.0, 0.7, 0.7, 0.0]
    assert len({body["seed"] for body in bodies}) == 4


async def test_a_lone_surrogate_in_the_judged_text_is_sent_as_its_escape(judge: MakeJudge) -> None:
    async with Provider() as provider:
        await judge(provider.url).answer(question("half \ud83d of a pair"))
    assert provider.calls[0].body["messages"][1]["content"] == "half \ud83d of a pair"


@pytest.mark.parametrize("model", ["o3", "o4-mini", "gpt-5", "gpt-5-mini", "openai/o1", "gpt-12"])
async def test_reasoning_models_get_max_completion_tokens(judge: MakeJudge, model: str) -> None:
    async with Provider() as provider:
        await judge(provider.url, model=model).answer(question())
    assert provider.calls[0].body["max_completion_tokens"] == 256


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "gpt-oss-120b", "olmo-2", "qwen3"])
async def test_other_models_get_max_tokens(judge: MakeJudge, model: str) -> None:
    async with Provider() as provider:
        await judge(provider.url, model=model).answer(question())
    assert provider.calls[0].body["max_tokens"] == 256


async def test_cookies_are_not_kept(judge: MakeJudge) -> None:
    body = completion("well")
    async with Provider(sending(body, headers={"Set-Cookie": "id=1; Path=/"})) as provider:
        asked = judge(provider.url.replace("127.0.0.1", "localhost"))
        await asked.answer(question())
        await asked.answer(question())
    assert "Cookie" not in provider.calls[1].headers


async def test_many_questions_at_once_each_get_their_own_reply(judge: MakeJudge) -> None:
    async def echo(call: Call) -> Any:
        return await saying(call.body["messages"][1]["content"])(call)

    async with Provider(echo) as provider:
        asked = judge(provider.url)
        replies = await asyncio.gather(*(asked.answer(question(f"text {i}")) for i in range(200)))
    assert [reply.text for reply in replies] == [f"text {i}" for i in range(200)]


# Where it goes, and as whom


async def test_the_base_url_comes_from_the_suite_then_the_environment(judge: MakeJudge) -> None:
    environment = {"OPENAI_BASE_URL": "https://gateway.test/v1/", "OPENAI_API_KEY": KEY}
    assert judge(environment=environment).identity["base_url"] == "https://gateway.test/v1"
    chosen = judge("https://suite.test/v1", environment=environment)
    assert chosen.identity["base_url"] == "https://suite.test/v1"
    assert judge().identity["base_url"] == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    "url", ["HTTPS://Host.test:443/v1", "https://host.test/v1/chat/completions"]
)
async def test_spellings_of_one_base_url_are_one_identity(judge: MakeJudge, url: str) -> None:
    assert judge(url).identity == judge("https://host.test/v1/").identity


async def test_the_identity_holds_the_parameters_and_never_the_key(judge: MakeJudge) -> None:
    made: Judge = judge(seed=7)
    assert made.identity == {
        "provider": "openai",
        "base_url": "https://api.openai.com/v1",
        "model": "test-model",
        "temperature": 0.0,
        "max_tokens": 256,
        "seed": 7,
    }


async def test_loopback_needs_no_key_and_gets_no_authorization(judge: MakeJudge) -> None:
    async with Provider() as provider:
        await judge(provider.url, environment={}).answer(question())
    assert "Authorization" not in provider.calls[0].headers


async def test_the_official_host_is_not_asked_without_a_key(judge: MakeJudge) -> None:
    with pytest.raises(ProviderRefused, match="OPENAI_API_KEY"):
        await judge(environment={}).answer(question())


async def test_another_service_has_its_own_address_and_key(judge: MakeJudge) -> None:
    async with Provider() as provider:
        environment = {"OLLAMA_BASE_URL": provider.url, "OPENAI_API_KEY": KEY}
        made = judge(environment=environment, provider="ollama")
        await made.answer(question())
    assert made.identity["provider"] == "ollama"
    assert "Authorization" not in provider.calls[0].headers


# The reply


async def test_a_reply_has_text_finish_usage_and_model(judge: MakeJudge) -> None:
    async with Provider(saying("well", reasoning_content="hm")) as provider:
        reply = await judge(provider.url).answer(question())
    assert (reply.text, reply.finish, reply.model) == ("well", "stop", "test-model")
    assert reply.usage == Usage(input_tokens=900, output_tokens=200, cached_tokens=128)


async def test_parts_of_text_are_joined(judge: MakeJudge) -> None:
    parts = [{"type": "text", "text": "we"}, {"type": "image"}, {"type": "text", "text": "ll"}]
    async with Provider(saying(parts)) as provider:
        assert (await judge(provider.url).answer(question())).text == "well"


@pytest.mark.parametrize(
    ("said", "finish"),
    [("length", "length"), ("content_filter", "filtered"), ("eos", "stop"), (None, "stop")],
)
async def test_the_finish_is_told(judge: MakeJudge, said: Any, finish: str) -> None:
    async with Provider(saying("we", finish=said)) as provider:
        assert (await judge(provider.url).answer(question())).finish == finish


async def test_a_refusal_is_a_reply_with_its_text(judge: MakeJudge) -> None:
    async with Provider(refusing_to_judge()) as provider:
        reply = await judge(provider.url).answer(question())
    assert (reply.text, reply.finish) == ("I cannot judge this.", "refused")


async def test_a_reply_without_content_is_an_empty_text(judge: MakeJudge) -> None:
    async with Provider(saying(None, finish="content_filter")) as provider:
        reply = await judge(provider.url).answer(question())
    assert (reply.text, reply.finish) == ("", "filtered")


async def test_usage_that_is_missing_or_odd_is_unknown(judge: MakeJudge) -> None:
    body = json.loads(completion("well"))
    odd: list[Any] = [
        None,
        [],
        {"prompt_tokens": "9", "completion_tokens": -1, "prompt_tokens_details": 3},
    ]
    script = [sending(json.dumps({**body, "usage": usage}).encode()) for usage in odd]
    async with Provider(script) as provider:
        asked = judge(provider.url)
        replies = [await asked.answer(question()) for _ in script]
    assert [reply.usage for reply in replies] == [
        *(Usage(), Usage()),
        Usage(implausible="input str, output -1"),
    ]


async def test_a_lone_surrogate_in_a_reply_becomes_storable(judge: MakeJudge) -> None:
    async with Provider(valid(surrogate)) as provider:
        reply = await judge(provider.url).answer(question())
    assert json.loads(reply.text)["notes"] == "\ufffd"


async def test_a_byte_order_mark_does_no_harm(judge: MakeJudge) -> None:
    async with Provider(sending(b"\xef\xbb\xbf" + completion("well"))) as provider:
        assert (await judge(provider.url).answer(question())).text == "well"


# Adapting to the endpoint


def formats(provider: Provider) -> list[str | None]:
    return [call.body.get("response_format", {}).get("type") for call in provider.calls]


async def test_a_refused_schema_is_followed_by_json_object_and_remembered(
    judge: MakeJudge,
) -> None:
    async with Provider(refusing_schema()) as provider:
        asked = judge(provider.url)
        for _ in range(2):
            assert json.loads((await asked.answer(question())).text)["score"] == 2
    assert formats(provider) == ["json_schema", "json_object", "json_object"]


@pytest.mark.parametrize(
    "message",
    [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported",
        "This response_format type is unavailable now",
        "This model does not support response format `json_schema`.",
        "'response_format.type' must be 'json_schema' or 'text'",
        "Failed to parse grammar",
        "guided_json is not compatible with this backend",
        "Structured outputs are not available for this model",
        "Unknown name \"additionalProperties\" at 'generation_config.response_schema'",
        "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'.",
    ],
)
async def test_all_wordings_of_a_refused_format_lead_to_plain_text(
    judge: MakeJudge, message: str
) -> None:
    async with Provider(refusing("response_format", message)) as provider:
        await judge(provider.url).answer(question())
    assert formats(provider) == ["json_schema", "json_object", None]


async def test_a_validation_error_of_a_gateway_is_read_by_its_location(judge: MakeJudge) -> None:
    detail = {"loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": "x" * 9999}
    refusal = sending(json.dumps({"detail": [detail]}).encode(), status=422)
    async with Provider([refusal, valid()]) as provider:
        await judge(provider.url, seed=1).answer(question())
    assert "seed" in provider.calls[0].body
    assert "seed" not in provider.calls[1].body
    assert formats(provider) == ["json_schema", "json_schema"]


async def test_a_refused_temperature_is_dropped_and_remembered(judge: MakeJudge) -> None:
    async with Provider(refusing_temperature()) as provider:
        asked = judge(provider.url)
        await asked.answer(question())
        await asked.answer(question(round=2))
    assert ["temperature" in call.body for call in provider.calls] == [True, False, False]


async def test_a_temperature_out_of_range_is_the_users_to_mend(judge: MakeJudge) -> None:
    message = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2."
    async with Provider(refusing("temperature", message)) as provider:
        with pytest.raises(ProviderRefused, match="above maximum"):
            await judge(provider.url, temperature=3.0).answer(question())


async def test_a_refused_max_tokens_is_renamed(judge: MakeJudge) -> None:
    message = "Unsupported parameter: 'max_tokens' is not supported with this model. "
    message += "Use 'max_completion_tokens' instead."
    async with Provider(refusing("max_tokens", message)) as provider:
        await judge(provider.url).answer(question())
    assert provider.calls[1].body["max_completion_tokens"] == 256
    assert "max_tokens" not in provider.calls[1].body


async def test_an_endpoint_that_takes_neither_name_of_max_tokens_is_refused(
    judge: MakeJudge,
) -> None:
    one = refusing("max_completion_tokens", "Unknown parameter: 'max_completion_tokens'.")
    async with Provider(refusing("max_tokens", "Unknown: 'max_tokens'.", then=one)) as provider:
        with pytest.raises(ProviderRefused, match="max_completion_tokens"):
            await judge(provider.url).answer(question())
    assert len(provider.calls) == 2


async def test_several_refusals_are_learned_one_after_the_other(judge: MakeJudge) -> None:
    picky = refusing_temperature(then=refusing("seed", "Unknown parameter: 'seed'."))
    async with Provider(refusing_schema(then=picky)) as provider:
        asked = judge(provider.url, seed=1)
        await asked.answer(question())
        await asked.answer(question())
    assert len(provider.calls) == 5


async def test_what_calls_side_by_side_learn_is_joined(judge: MakeJudge) -> None:
    async with Provider(refusing_schema(then=refusing_temperature())) as provider:
        asked = judge(provider.url)
        await asyncio.gather(*(asked.answer(question()) for _ in range(20)))
        before = len(provider.calls)
        await asked.answer(question())
    assert len(provider.calls) == before + 1
    assert formats(provider)[-1] == "json_object"


async def test_different_lessons_of_calls_side_by_side_are_both_kept(judge: MakeJudge) -> None:
    both = asyncio.Barrier(2)

    async def behaviour(call: Call) -> Any:
        if call.number > 1:
            return await valid()(call)
        await both.wait()
        name = ("temperature", "response_format")[call.number]
        return await failing(400, f"Unsupported parameter: '{name}'", param=name)(call)

    async with Provider(behaviour) as provider:
        asked = judge(provider.url)
        await asyncio.gather(asked.answer(question()), asked.answer(question()))
        await asked.answer(question())
    assert "temperature" not in provider.calls[-1].body
    assert formats(provider)[-1] == "json_object"


async def test_the_dialect_is_no_part_of_the_identity(judge: MakeJudge) -> None:
    async with Provider(refusing_schema()) as provider:
        asked = judge(provider.url)
        before = dict(asked.identity)
        await asked.answer(question())
    assert asked.identity == before


async def test_a_refusal_inside_a_200_is_adapted_to_as_well(judge: MakeJudge) -> None:
    error = {"error": {"code": 400, "message": "response_format is not supported"}}
    async with Provider([sending(json.dumps(error).encode()), valid()]) as provider:
        await judge(provider.url).answer(question())
    assert formats(provider) == ["json_schema", "json_object"]


async def test_a_prompt_that_speaks_of_response_format_changes_nothing(judge: MakeJudge) -> None:
    said = "This model's maximum context length is 10. response_format was json_schema."
    async with Provider(failing(400, said)) as provider:
        with pytest.raises(CallRejected, match="does not fit"):
            await judge(provider.url).answer(question())
    assert len(provider.calls) == 1


# Life and death


async def test_a_closed_judge_opens_again(judge: MakeJudge) -> None:
    async with Provider() as provider:
        asked = judge(provider.url)
        await asked.answer(question())
        await asked.close()
        await asked.close()
        await asked.answer(question())


async def test_a_cancelled_question_leaves_the_judge_usable(judge: MakeJudge) -> None:
    async with Provider([never(), valid()]) as provider:
        asked = judge(provider.url)
        waiting = asyncio.create_task(asked.answer(question()))
        while not provider.calls:
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asked.answer(question())


async def test_a_judge_is_used_with_several_messages(judge: MakeJudge) -> None:
    again = question().again("first reply", "that was wrong")
    async with Provider() as provider:
        await judge(provider.url).answer(again)
    roles = [message["role"] for message in provider.calls[0].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


async def test_calls_to_a_stopped_provider_are_lost_not_refused(judge: MakeJudge) -> None:
    async with Provider() as provider:
        asked = judge(provider.url)
        await asked.answer(question())
    with pytest.raises(CallLost) as lost:
        await asked.answer(Question(messages=(Message("user", "Hello"),)))
    assert lost.value.reason == "transport"
