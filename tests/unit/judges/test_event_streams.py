"""Replies that come by server-sent events: joined to what the same reply is in one piece, asked for
where an endpoint answers only so, and lost where they break off."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from evenhand.errors import AskAgain, CallError, CallLost, ProviderRefused
from evenhand.exchange import Reply, Usage
from tests.dialects import Endpoint
from tests.provider import Behaviour, Call, failing, sending
from tests.security.byte_mutants import byte_mutant
from tests.unit.judges.conftest import OpenJudge, answered, question

Events = list[Any]
SAID = '{"score": 2, "rationale": "Да, 好"}'
THOUGHT = "Let me see.\nPerhaps 1? No."


def chat_events(**last: Any) -> Events:
    def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "1", "object": "chat.completion.chunk", "model": "m-1", "choices": [choice]}

    usage = {"prompt_tokens": 900, "completion_tokens": 200}
    return [
        chunk(role="assistant", content=""),
        *(chunk(reasoning_content=part) for part in (THOUGHT[:5], THOUGHT[5:])),
        *(chunk(content=part) for part in SAID),
        chunk("stop"),
        {"id": "1", "model": "m-1", "choices": [], "usage": usage, **last},
        "[DONE]",
    ]


def message_events() -> Events:
    start = {"model": "m-1", "content": [], "usage": {"input_tokens": 900, "output_tokens": 1}}

    def delta(index: int, name: str, text: str) -> dict[str, Any]:
        inner = {"type": f"{name}_delta", name: text}
        return {"type": "content_block_delta", "index": index, "delta": inner}

    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {"type": "ping"},
        *(delta(0, "thinking", part) for part in (THOUGHT[:5], THOUGHT[5:])),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        *(delta(1, "text", part) for part in SAID),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
        | {"usage": {"output_tokens": 200}},
        {"type": "message_stop"},
    ]


def candidate_events() -> Events:
    def event(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        candidate = {"index": 0, "content": {"parts": list(parts)}, **more}
        return {"candidates": [candidate], "modelVersion": "m-1"}

    usage = {"promptTokenCount": 900, "candidatesTokenCount": 150, "thoughtsTokenCount": 50}
    return [
        event({"text": THOUGHT, "thought": True}),
        *(event({"text": part}) for part in SAID),
        event(finishReason="STOP") | {"usageMetadata": usage},
    ]


STREAMS = {"openai": chat_events(), "anthropic": message_events(), "google": candidate_events()}
NAMES = list(STREAMS)


def sse(events: Events, ending: str = "\n") -> bytes:
    """Events as they are sent, with comments between them."""
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    lines = [f": PROCESSING{ending}{ending}event: x{ending}data: {text}{ending}" for text in texts]
    return ending.join([*lines, ""]).encode()


def streaming(data: bytes) -> Behaviour:
    return sending(data, content_type="text/event-stream; charset=utf-8")


async def reply_to(opened: OpenJudge, name: str, behaviour: Behaviour, **rest: Any) -> Reply:
    async with Endpoint(behaviour) as endpoint:
        judge = opened(f"{name}/m", endpoint.url, **{"stream": True, **rest})
        return await judge.answer(question())


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", NAMES)
async def test_events_are_joined_to_one_reply(opened: OpenJudge, name: str, ending: str) -> None:
    reply = await reply_to(opened, name, streaming(sse(STREAMS[name], ending)))
    assert (reply.text, reply.reasoning, reply.finish) == (SAID, THOUGHT, "stop")
    assert reply.usage == Usage(input_tokens=900, output_tokens=200)
    assert reply.model == "m-1"


async def test_content_that_comes_as_a_list_of_parts_is_joined_too(opened: OpenJudge) -> None:
    def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    parts = [{"type": "text", "text": "we"}, {"type": "image"}, {"type": "text", "text": "ll"}]
    events = [chunk(content=parts), chunk(content=" said"), chunk("stop"), "[DONE]"]
    reply = await reply_to(opened, "openai", streaming(sse(events)))
    assert reply.text == "well said"


async def test_a_stream_is_asked_for_in_each_protocols_way(opened: OpenJudge) -> None:
    asked: dict[str, tuple[str, Any, Any]] = {}
    for name in NAMES:
        async with Endpoint(streaming(sse(STREAMS[name]))) as endpoint:
            await opened(f"{name}/m", endpoint.url, stream=True).answer(question())
        body = endpoint.calls[0].body
        asked[name] = (endpoint.path(), body.get("stream"), body.get("stream_options"))
    assert asked == {
        "openai": ("/chat/completions", True, {"include_usage": True}),
        "anthropic": ("/v1/messages", True, None),
        "google": ("/v1beta/models/m:streamGenerateContent?alt=sse", None, None),
    }


@pytest.mark.parametrize("name", NAMES)
async def test_a_stream_that_breaks_off_is_lost_wherever_it_does(
    opened: OpenJudge, name: str
) -> None:
    events = STREAMS[name]
    # The last events of a chat count tokens: without them the reply is whole.
    needed = len(events) - (2 if name == "openai" else 0)
    for end in range(1, needed):
        with pytest.raises(CallLost, match="broke off") as lost:
            await reply_to(opened, name, streaming(sse(events[:end])))
        assert (lost.value.reason, lost.value.billed) == ("transport", True)


@pytest.mark.parametrize("name", NAMES)
async def test_a_stream_that_breaks_off_within_an_event_is_lost(
    opened: OpenJudge, name: str
) -> None:
    whole = sse(STREAMS[name][:6])
    with pytest.raises(CallLost) as lost:
        await reply_to(opened, name, streaming(whole[: len(whole) - 9]))
    assert lost.value.billed


ERRORS: dict[str, Any] = {
    "openai": {"error": {"message": "Overloaded", "code": 503}},
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "google": {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}},
}


@pytest.mark.parametrize("name", NAMES)
async def test_an_error_within_a_stream_is_lost_and_may_be_billed(
    opened: OpenJudge, name: str
) -> None:
    events = [*STREAMS[name][:6], ERRORS[name]]
    with pytest.raises(CallLost, match="Overloaded") as lost:
        await reply_to(opened, name, streaming(sse(events)))
    assert lost.value.billed


async def test_an_error_before_a_stream_begins_keeps_its_status(opened: OpenJudge) -> None:
    with pytest.raises(CallLost, match="Overloaded") as lost:
        await reply_to(opened, "openai", streaming(sse([ERRORS["openai"]])))
    assert lost.value.is_busy and not lost.value.billed


@pytest.mark.parametrize("name", NAMES)
async def test_a_stream_that_nobody_asked_for_is_read_too(opened: OpenJudge, name: str) -> None:
    reply = await reply_to(opened, name, streaming(sse(STREAMS[name])), stream=False)
    assert reply.text == SAID


STREAM_ONLY = [
    "This model only support stream mode, please enable the stream parameter to access the model.",
    "parameter.enable_thinking must be set to false for non-streaming calls",
    "Stream must be set to true",
    "Streaming is required for this model.",
    "Only supports streaming requests",
    'This endpoint requires "stream": true'.replace('": ', '" = '),
]


@pytest.mark.parametrize("said", STREAM_ONLY)
async def test_an_endpoint_that_answers_by_stream_only_is_asked_so_and_remembered(
    opened: OpenJudge, said: str
) -> None:
    async def behaviour(call: Call) -> Any:
        is_streamed = call.body.get("stream")
        return await (streaming(sse(chat_events())) if is_streamed else failing(400, said))(call)

    async with Endpoint(behaviour) as endpoint:
        judge = opened("openai/qwen3", endpoint.url)
        identity = dict(judge.identity)
        replies = [await answered(judge) for _ in range(3)]
    assert [reply.text for reply in replies] == [SAID] * 3
    assert [call.body.get("stream") for call in endpoint.calls] == [None, True, True, True]
    assert judge.identity == identity and "stream" not in identity


async def test_an_endpoint_that_refuses_even_streams_is_an_error(opened: OpenJudge) -> None:
    async with Endpoint(failing(400, STREAM_ONLY[0])) as endpoint:
        with pytest.raises(ProviderRefused, match="stream mode"):
            await answered(opened("openai/m", endpoint.url))
    assert len(endpoint.calls) == 2


async def test_a_refused_count_of_tokens_is_left_out(opened: OpenJudge) -> None:
    async def behaviour(call: Call) -> Any:
        refusal = failing(400, "Unknown parameter: 'stream_options'.", param="stream_options")
        picky = refusal if "stream_options" in call.body else streaming(sse(chat_events()))
        return await picky(call)

    async with Endpoint(behaviour) as endpoint:
        assert (await answered(opened("openai/m", endpoint.url, stream=True))).text == SAID


@pytest.mark.parametrize("name", NAMES)
async def test_bytes_of_a_stream_may_go_wrong_in_any_way(opened: OpenJudge, name: str) -> None:
    """Whatever comes is a reply or an error of a call."""
    whole = sse(STREAMS[name])
    number = 0

    async def behaviour(call: Call) -> Any:
        nonlocal number
        number += 1
        return await streaming(byte_mutant([whole], number))(call)

    async with Endpoint(behaviour) as endpoint:
        judge = opened(f"{name}/m", endpoint.url, stream=True)
        for _ in range(300):
            with suppress(AskAgain, CallError, ProviderRefused):
                assert isinstance(await judge.answer(question()), Reply)
