"""Requests and replies of remote judges, in every wire format, against a real server."""

import asyncio
import json
from datetime import date
from pathlib import Path

import pytest

from evenhand.errors import CallLost, ProviderRefused, UsageError
from evenhand.exchange import Usage
from evenhand.store.rows import call_keys
from tests.cases import cases
from tests.dialects import candidate, encoded, google_error, message
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
    ask,
    endpoint_of,
    opened,
    outcome,
    question,
    reply_of,
)

SAYING = {"openai": saying, "anthropic": message, "google": candidate}
FORMATS = list(SAYING)
DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""What each provider is sent, and parameters of its own."""


@pytest.mark.parametrize("name", DATA["requests"])
async def test_a_request_has_the_conversation_the_settings_the_schema_and_the_key_in_one_header(
    name,
):
    asked = [question("Оцени 评分 \ud83d").again("no", "Again."), question(schema=None, round=2)]
    replying, expected = SAYING.get(name, saying), DATA["requests"][name]
    replies, endpoint = await ask(
        f"{name}/some/m:1b", sending_cookie(replying("we")), replying("well"), asked=asked
    )
    call, later = endpoint.calls
    keys = {h: v.replace(KEY, "KEY") for h, v in call.headers.items() if KEY in v}
    assert {"path": endpoint.path(), "headers": keys, "body": call.body} == expected
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


@cases
async def test_a_reply_has_a_text_a_finish_and_its_reasoning_apart(
    name, text, finish, reasoning, body
):
    reply = await reply_of(name, sending(body.encode()))
    assert (reply.text, reply.finish, reply.reasoning) == (text, finish, reasoning)


@cases
async def test_usage_is_counted_with_all_its_parts_or_unknown(name, usage, body):
    assert (await reply_of(name, sending(body.encode()))).usage == Usage(**usage)


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


@cases
async def test_a_part_of_the_request_that_is_refused_is_left_out_and_remembered(
    name, then, status, body
):
    refusal = sending(body.replace("LONG", "x" * 9999).encode(), status=status)
    replying = SAYING.get(name, saying)("well")
    replies, endpoint = await ask(name, refusal, replying, asked=[None, None])
    assert forms(endpoint)[1:] == [tuple(then)] * 2
    assert [("temperature" in reply.sampling, "seed" in reply.sampling) for reply in replies] == [
        tuple(then[1:])
    ] * 2


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("openai", failing(400, "'messages' must contain 'json' to use 'response_format'.")),
        (
            "google",
            google_error(400, "INVALID_ARGUMENT", "JSON mode is not enabled for models/gemma-test"),
        ),
    ],
)
async def test_a_refused_schema_leads_to_json_then_to_plain_text(name, refusal):
    _, endpoint = await ask(name, refusal, refusal, SAYING[name]("well"))
    assert forms(endpoint) == [ALL, AS_JSON, AS_TEXT]


@cases
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


def holds(body, params):
    """Whether a body has all of the params, and more."""
    if not isinstance(params, dict):
        return body == params
    return all(name in body and holds(body[name], value) for name, value in params.items())


@pytest.mark.parametrize("name", FORMATS)
async def test_params_go_into_the_body_beside_what_is_sent_anyway(name):
    _, plain = await ask(name, SAYING[name]("well"))
    _, given = await ask(name, SAYING[name]("well"), params=DATA["params"][name])
    sent = given.calls[0].body
    assert holds(sent, DATA["params"][name]) and holds(sent, plain.calls[0].body)


def test_params_are_part_of_the_identity():
    given = [{}, {"top_p": 0.9}, {"top_p": 0.8}]
    identities = [opened("openai/m", params=params).identity for params in given]
    assert [identity.get("params", {}) for identity in identities] == given
    assert "params" not in identities[0]


@cases
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
