"""Requests and replies of remote judges, in every wire format, against a real server."""

import asyncio
from datetime import date

import pytest

from evenhand.errors import CallLost, ProviderRefused, UsageError
from evenhand.exchange import Usage
from evenhand.store.rows import call_keys
from tests.dialects import anthropic_error, candidate, encoded, google_error, message
from tests.provider import (
    failing,
    never,
    refusing,
    refusing_schema,
    refusing_temperature,
    saying,
    sending,
    valid,
)
from tests.sentences import refused
from tests.unit.judges.questions import (
    KEY,
    KEYS,
    SCHEMA,
    ask,
    endpoint_of,
    opened,
    outcome,
    question,
    reply_of,
)

SAYING = {"openai": saying, "anthropic": message, "google": candidate}
FORMATS = list(SAYING)
CHAT = {
    "messages": [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": "Оцени 评分 \ud83d"},
        {"role": "assistant", "content": "no"},
        {"role": "user", "content": "Again."},
    ],
    "model": "some/m:1b",
    "max_tokens": 256,
    "temperature": 0.0,
    "seed": 7,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
    },
}
MESSAGES = {
    "system": "You judge.",
    "messages": CHAT["messages"][1:],
    "model": "some/m:1b",
    "max_tokens": 256,
    "temperature": 0.0,
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
}
CONTENTS = {
    "systemInstruction": {"parts": [{"text": "You judge."}]},
    "contents": [
        {"role": role, "parts": [{"text": text}]}
        for role, text in (("user", "Оцени 评分 \ud83d"), ("model", "no"), ("user", "Again."))
    ],
    "generationConfig": {
        "maxOutputTokens": 256,
        "temperature": 0.0,
        "seed": 7,
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
    },
}
BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("name", "path", "headers", "body"),
    [
        ("openai", "/chat/completions", BEARER, CHAT),
        ("openrouter", "/chat/completions", BEARER, CHAT),
        ("ollama", "/v1/chat/completions", BEARER, CHAT),
        ("azure", "/openai/v1/chat/completions", {"api-key": KEY}, CHAT),
        ("anthropic", "/v1/messages", {"x-api-key": KEY}, MESSAGES),
        ("google", "/v1beta/some/m:1b:generateContent", {"x-goog-api-key": KEY}, CONTENTS),
    ],
    ids=KEYS,
)
async def test_a_request_has_the_conversation_the_settings_the_schema_and_the_key_in_one_header(
    name, path, headers, body
):
    asked = [question("Оцени 评分 \ud83d").again("no", "Again."), question(schema=None, round=2)]
    replying = SAYING.get(name, saying)
    replies, endpoint = await ask(
        f"{name}/some/m:1b", sending_cookie(replying("we")), replying("well"), asked=asked
    )
    call, later = endpoint.calls
    assert endpoint.path() == path
    keys = {*BEARER, "api-key", "x-api-key", "x-goog-api-key"}
    assert {h: call.headers[h] for h in keys if h in call.headers} == headers
    assert call.body == body
    assert "Cookie" not in later.headers
    assert (call.headers.get("anthropic-version") == "2023-06-01") is (name == "anthropic")
    seeds = [{}, {}] if name == "anthropic" else [{"seed": 7}, {"seed": 8}]
    sampled = [{"temperature": t} | seed for t, seed in zip((0.0, 0.7), seeds, strict=True)]
    assert [reply.sampling for reply in replies] == sampled
    sent = later.body.get("generationConfig", later.body)
    assert sampled[1].items() <= sent.items()
    assert not {"output_config", "response_format", "responseMimeType"} & sent.keys()


def sending_cookie(behaviour):
    async def with_cookie(call):
        response = await behaviour(call)
        response.set_cookie("id", "1")
        return response

    return with_cookie


@pytest.mark.parametrize("name", FORMATS)
async def test_what_is_not_set_is_not_sent(name):
    reply, endpoint = await ask(
        name, SAYING[name]("well"), asked=[question(schema=None)], temperature=None, seed=None
    )
    sent = endpoint.calls[0].body
    assert reply[0].sampling == {}
    assert not {"temperature", "seed"} & {*sent, *sent.get("generationConfig", ())}


async def test_each_question_is_sent_with_its_own_schema():
    titles = [str(number) for number in range(200)]
    asked = [question(schema={"type": "object", "title": title}) for title in titles]
    _, endpoint = await ask("openai", saying("well"), asked=asked)
    sent = [call.body["response_format"]["json_schema"]["schema"] for call in endpoint.calls]
    assert [schema["title"] for schema in sent] == titles


async def test_rounds_and_repeats_differ_in_their_seed():
    asked = [question(), question(round=2), question(round=3), question(repeat=1)]
    _, endpoint = await ask("openai", saying("well"), asked=asked)
    sent = [(call.body["temperature"], call.body["seed"]) for call in endpoint.calls]
    assert sent == [(0.0, 7), (0.7, 8), (0.7, 9), (0.0, 1007)]


# The identity


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("openai", {"base_url": "https://api.openai.com/v1", "seed": 7}),
        ("anthropic", {"base_url": "https://api.anthropic.com/v1"}),
    ],
)
def test_the_identity_holds_the_parameters_that_are_sent_and_never_the_key(name, more):
    expected = {"provider": name, "model": "m", "temperature": 0.0, "max_tokens": 256}
    assert opened(f"{name}/m").identity == expected | more


def test_without_a_seed_another_one_asks_nothing_anew_but_rounds_and_repeats_do():
    keys = [call_keys(opened("anthropic/m", seed=seed).identity) for seed in (7, 8, None)]
    asked = [question(), question(round=2), question(repeat=1)]
    assert len({key(one) for key in keys for one in asked}) == len(asked)


@pytest.mark.parametrize("name", ["openai", "anthropic", "google"])
async def test_the_official_host_is_not_asked_without_a_key(name):
    judge = opened(f"{name}/m", environment={})
    with refused(ProviderRefused, "judges.key_missing", KEYS[name]):
        await judge.answer(question())


async def test_loopback_needs_no_key_and_gets_none_of_another_service():
    _, endpoint = await ask("ollama", saying("well"), environment={"OPENAI_API_KEY": KEY})
    assert "Authorization" not in endpoint.calls[0].headers


def test_a_temperature_beyond_the_range_is_refused_at_opening():
    with refused(UsageError, "judges.too_hot", r" 0 .* 1,.* 1\.5"):
        opened("anthropic/m", temperature=1.5)


# Replies

GEMINI_BLOCKED = {
    "promptFeedback": {"blockReason": "SAFETY"},
    "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
}
TEXT_PARTS = [{"type": "text", "text": "we"}, {"type": "image"}, {"type": "text", "text": "ll"}]
THINKING = {"type": "thinking", "thinking": "hm", "signature": "x"}
BLOCKED = encoded(GEMINI_BLOCKED)


@pytest.mark.parametrize(
    ("name", "behaviour", "text", "finish", "reasoning"),
    [
        ("openai", saying("well", reasoning_content="hm"), "well", "stop", "hm"),
        ("openai", saying("well", reasoning="hm"), "well", "stop", "hm"),
        ("openai", saying(TEXT_PARTS), "well", "stop", ""),
        ("openai", saying("we", finish="length"), "we", "length", ""),
        ("openai", saying(None, finish="content_filter"), "", "filtered", ""),
        ("openai", saying("we", finish="eos"), "we", "stop", ""),
        ("openai", saying(None, refusal="I cannot."), "I cannot.", "refused", ""),
        ("openai", saying("half \ud83d"), "half \ufffd", "stop", ""),
        ("anthropic", message(THINKING, "we", "ll"), "well", "stop", "hm"),
        ("anthropic", message({"type": "redacted_thinking", "data": "x"}), "", "stop", ""),
        ("anthropic", message("we", stop="stop_sequence"), "we", "stop", ""),
        ("anthropic", message("we", stop="max_tokens"), "we", "length", ""),
        ("anthropic", message("we", stop="model_context_window_exceeded"), "we", "length", ""),
        ("anthropic", message(stop="refusal"), "", "refused", ""),
        ("anthropic", message("we", stop=None), "we", "stop", ""),
        ("google", candidate({"text": "hm", "thought": True}, "we", "ll"), "well", "stop", "hm"),
        ("google", candidate("we", finish="MAX_TOKENS"), "we", "length", ""),
        ("google", candidate("we", finish="SAFETY"), "we", "filtered", ""),
        ("google", candidate("we", finish="OTHER"), "we", "stop", ""),
        ("google", candidate("we", finish=None), "we", "stop", ""),
        ("google", candidate(content=None), "", "stop", ""),
        ("google", candidate(content={"role": "model"}), "", "stop", ""),
        ("google", BLOCKED, "", "filtered", ""),
    ],
)
async def test_a_reply_has_a_text_a_finish_and_its_reasoning_apart(
    name, behaviour, text, finish, reasoning
):
    reply = await reply_of(name, behaviour)
    assert (reply.text, reply.finish, reply.reasoning) == (text, finish, reasoning)


COUNTED = {"input_tokens": 900, "output_tokens": 200, "cached_tokens": 128}


def chat_usage(usage):
    return encoded({"choices": [{"message": {"content": "x"}}], "usage": usage})


def gemini_usage(usage):
    return encoded({"candidates": [{"content": {}}], "usageMetadata": usage})


@pytest.mark.parametrize(
    ("name", "behaviour", "usage"),
    [
        ("openai", saying("x"), Usage(**COUNTED)),
        ("openai", chat_usage(None), Usage()),
        ("openai", chat_usage([]), Usage()),
        (
            "openai",
            chat_usage({"prompt_tokens": "9", "completion_tokens": -1}),
            Usage(implausible="input str, output -1"),
        ),
        ("openai", chat_usage({"prompt_tokens_details": 3}), Usage()),
        ("anthropic", message("x"), Usage(**COUNTED, cache_write_tokens=16)),
        ("anthropic", message("x", usage=[]), Usage()),
        (
            "anthropic",
            message("x", usage={"input_tokens": "9", "output_tokens": -1}),
            Usage(implausible="input str + 0 + 0, output -1, cached 0, stored 0"),
        ),
        ("google", candidate("x"), Usage(**COUNTED)),
        ("google", BLOCKED, Usage(input_tokens=9, output_tokens=0)),
        ("google", gemini_usage([]), Usage()),
        (
            "google",
            gemini_usage({"promptTokenCount": "9"}),
            Usage(implausible="input str, output 0 + 0"),
        ),
        (
            "google",
            gemini_usage({"promptTokenCount": 9, "thoughtsTokenCount": 4}),
            Usage(input_tokens=9, output_tokens=4),
        ),
    ],
)
async def test_usage_is_counted_with_all_its_parts_or_unknown(name, behaviour, usage):
    assert (await reply_of(name, behaviour)).usage == usage


@pytest.mark.parametrize(
    ("name", "behaviour", "model"),
    [
        ("openai", saying("x"), "test-model"),
        ("anthropic", message("x"), "claude-test-20260101"),
        ("google", candidate("x"), "gemini-test-001"),
        ("openrouter", encoded({"choices": [], "provider": "X"}), None),
    ],
)
async def test_the_model_that_answered_is_told(name, behaviour, model):
    assert getattr(await reply_of(name, behaviour), "model", None) == model


async def test_many_questions_at_once_each_get_their_own_reply():
    async def echo(call):
        return await saying(call.body["messages"][1]["content"])(call)

    async with endpoint_of("openai", echo) as (judge, _):
        asked = [question(f"text {number}") for number in range(200)]
        replies = await asyncio.gather(*map(judge.answer, asked))
    assert [reply.text for reply in replies] == [f"text {number}" for number in range(200)]


# Adapting to the endpoint


def forms(endpoint):
    """The form of structured output, the temperature and the seed that each call has."""
    found = []
    for call in endpoint.calls:
        body = call.body.get("generationConfig", call.body)
        form = body.get("response_format", {}).get("type", "")
        form += "schema" * ("responseJsonSchema" in body or "output_config" in body)
        form += "json" * ("responseMimeType" in body and not form)
        form = {"json_schema": "schema", "json_object": "json"}.get(form, form)
        found.append((form, *("temperature" in body, "seed" in body)))
    return found


ALL, NO_HEAT, NO_SEED = ("schema", True, True), ("schema", False, True), ("schema", True, False)
AS_JSON, AS_TEXT = ("json", True, True), ("", True, True)
BAD = "invalid_request_error", "INVALID_ARGUMENT"
LOC = {"loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": "x" * 9999}
RAW = {"raw": "response_format json_schema is not supported", "provider_name": "X"}
PLAIN = "Invalid parameter: 'response_format' of type 'json_schema' is not supported"


def chat(said, **error):
    return failing(400, said, **error)


@pytest.mark.parametrize(
    ("name", "refusal", "then"),
    [
        *(
            ("openai", chat(said), AS_JSON)
            for said in (
                PLAIN,
                "This response_format type is unavailable now",
                "This model does not support response format `json_schema`.",
                "Failed to parse grammar",
                "guided_json is not compatible with this backend",
                "Structured outputs are not available for this model",
                "Unknown name \"additionalProperties\" at 'generation_config.response_schema'",
            )
        ),
        ("openai", encoded({"error": {"code": 400, "message": PLAIN}}), AS_JSON),
        ("openai", encoded({"detail": [LOC]}, 422), NO_SEED),
        ("openai", chat("No: 'temperature' does not support 0.", param="temperature"), NO_HEAT),
        ("openrouter", chat("Provider returned error", metadata=RAW), AS_JSON),
        *(
            ("anthropic", anthropic_error(400, BAD[0], said), ("", True, False))
            for said in (
                "output_config: Extra inputs are not permitted",
                "'claude-test' does not support output format.",
                "output_config.format.schema: For 'object' type, x is not supported",
                "The compiled grammar is too large",
            )
        ),
        (
            "anthropic",
            anthropic_error(400, BAD[0], "`temperature` is deprecated for this model."),
            ("schema", False, False),
        ),
        *(
            ("google", google_error(400, BAD[1], said), AS_JSON)
            for said in (
                "Invalid JSON payload. Unknown name \"responseJsonSchema\" at 'generation_config'",
                "A schema in GenerationConfig exceeds the maximum allowed nesting depth.",
                "The specified schema produces a constraint that has too many states.",
                "JSON mode is not enabled for models/gemma-test",
            )
        ),
        (
            "google",
            google_error(400, BAD[1], "Unknown name \"seed\" at 'generation_config'"),
            NO_SEED,
        ),
    ],
)
async def test_a_part_of_the_request_that_is_refused_is_left_out_and_remembered(
    name, refusal, then
):
    replying = SAYING.get(name, saying)("well")
    replies, endpoint = await ask(name, refusal, replying, asked=[None, None])
    assert forms(endpoint)[1:] == [then] * 2
    assert [("temperature" in reply.sampling, "seed" in reply.sampling) for reply in replies] == [
        then[1:]
    ] * 2


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("openai", chat("'messages' must contain 'json' to use 'response_format'.")),
        ("google", google_error(400, BAD[1], "JSON mode is not enabled for models/gemma-test")),
    ],
)
async def test_a_refused_schema_leads_to_json_then_to_plain_text(name, refusal):
    _, endpoint = await ask(name, refusal, refusal, SAYING[name]("well"))
    assert forms(endpoint) == [ALL, AS_JSON, AS_TEXT]


@pytest.mark.parametrize(
    ("model", "is_renamed"),
    [
        *(("o3", True), ("gpt-5-mini", True), ("openai/o1", True), ("gpt-12", True)),
        *(("gpt-4o", False), ("gpt-oss-120b", False), ("olmo-2", False), ("qwen3", False)),
    ],
)
async def test_reasoning_models_get_max_completion_tokens(model, is_renamed):
    _, endpoint = await ask(f"openai/{model}", saying("well"))
    assert ("max_completion_tokens" in endpoint.calls[0].body) is is_renamed


async def test_a_refused_max_tokens_is_renamed_once():
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    again = refusing("max_completion_tokens", "Unknown parameter: 'max_completion_tokens'.")
    for then, ends in ((valid(), "text"), (again, "advice")):
        [ended], endpoint = await ask("openai", refusing("max_tokens", said, then=then))
        sent = [sorted(name for name in call.body if "max" in name) for call in endpoint.calls]
        assert sent == [["max_tokens"], ["max_completion_tokens"]]
        assert hasattr(ended, ends)


async def test_several_refusals_are_learned_one_after_the_other_and_change_no_identity():
    picky = refusing_temperature(then=refusing("seed", "Unknown parameter: 'seed'."))
    async with endpoint_of("openai", refusing_schema(then=picky)) as (judge, endpoint):
        before = dict(judge.identity)
        for _ in range(2):
            await outcome(judge)
        assert judge.identity == before
    assert forms(endpoint) == [
        ALL,
        AS_JSON,
        *[("json", False, True)],
        *[("json", False, False)] * 2,
    ]


async def test_different_lessons_of_calls_side_by_side_are_both_kept():
    both = asyncio.Barrier(2)

    async def behaviour(call):
        if call.number > 1:
            return await valid()(call)
        await both.wait()
        name = ("temperature", "response_format")[call.number]
        return await failing(400, f"Unsupported parameter: '{name}'", param=name)(call)

    async with endpoint_of("openai", behaviour) as (judge, endpoint):
        await asyncio.gather(outcome(judge), outcome(judge))
        await outcome(judge)
    assert forms(endpoint)[-1] == ("json", False, True)


@pytest.mark.parametrize(
    "said",
    [
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2.",
        "This model's maximum context length is 10. response_format was json_schema.",
    ],
)
async def test_a_value_that_is_wrong_is_not_left_out(said):
    [error], endpoint = await ask("openai", failing(400, said, param="temperature"))
    assert "HTTP 400" in str(error) and len(endpoint.calls) == 1


# Params

PARAMS = {
    "openai": {"reasoning_effort": "high", "top_p": 0.9, "reasoning": {"max_tokens": 2000}},
    "anthropic": {
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"effort": "low"},
    },
    "google": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}, "labels": ["a", 1]},
}


def holds(body, params):
    """Whether a body has all of the params, and more."""
    if not isinstance(params, dict):
        return body == params
    return all(name in body and holds(body[name], value) for name, value in params.items())


@pytest.mark.parametrize("name", FORMATS)
async def test_params_go_into_the_body_beside_what_is_sent_anyway(name):
    _, plain = await ask(name, SAYING[name]("well"))
    _, given = await ask(name, SAYING[name]("well"), params=PARAMS[name])
    sent = given.calls[0].body
    assert holds(sent, PARAMS[name]) and holds(sent, plain.calls[0].body)


def test_params_are_part_of_the_identity():
    given = [{}, {"top_p": 0.9}, {"top_p": 0.8}]
    identities = [opened("openai/m", params=params).identity for params in given]
    assert [identity.get("params", {}) for identity in identities] == given
    assert "params" not in identities[0]


@pytest.mark.parametrize(
    ("name", "params", "field"),
    [
        ("openai", {"stream": True}, "stream"),
        ("openai", {"max_completion_tokens": 1}, "max_completion_tokens"),
        ("anthropic", {"output_config": {"format": {}}}, "output_config.format"),
        ("anthropic", {"output_config": 1}, "output_config.format"),
        ("google", {"generationConfig": {"seed": 1}}, "generationConfig.seed"),
        ("google", {"generationConfig": []}, "generationConfig.maxOutputTokens"),
    ],
)
def test_params_never_replace_what_the_contract_needs(name, params, field):
    with refused(UsageError, "judges.reserved_param") as caught:
        opened(f"{name}/m", params=params)
    assert f'"{field}"' in str(caught.value)
    assert caught.value.where == f"[judges.params] {name}/m"


@pytest.mark.parametrize("value", [date(2026, 1, 1), float("nan"), [{"a": {1}}]])
def test_params_that_are_no_json_are_refused(value):
    with refused(UsageError, "judges.params_not_json"):
        opened("openai/m", params={"a": {"b": value}})


# Life and death


async def test_a_judge_that_was_closed_or_cancelled_answers_again():
    async with endpoint_of("openai", never(), valid()) as (judge, endpoint):
        waiting = asyncio.create_task(judge.answer(question()))
        while not endpoint.calls:
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        for _ in range(2):
            assert (await judge.answer(question())).text
            await judge.close()
            await judge.close()
        await endpoint.stop()
        with pytest.raises(CallLost) as lost:
            await judge.answer(question())
    assert (lost.value.reason, lost.value.billed) == ("transport", False)


async def test_a_byte_order_mark_does_no_harm():
    body = b'\xef\xbb\xbf{"choices": [{"message": {"content": "well"}}]}'
    assert (await reply_of("openai", sending(body))).text == "well"
