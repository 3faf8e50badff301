"""What an Anthropic judge sends, and how it reads what comes back, against a real server."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused, UsageError
from evenhand.exchange import Message, Question, Role, Usage
from evenhand.store.rows import call_keys
from tests.dialects import Endpoint, anthropic_error, encoded, message
from tests.provider import EMPTY, HTML, Behaviour, redirecting
from tests.unit.judges.conftest import KEY, SCHEMA, OpenJudge, answered, question

NAME = "anthropic/claude-test"
ENV = {"ANTHROPIC_API_KEY": KEY}
INVALID = "invalid_request_error"


async def outcome(opened: OpenJudge, *script: Behaviour) -> Exception:
    """What the last call of a script raises; those before it are answered."""
    async with Endpoint(list(script)) as endpoint:
        judge = opened(NAME, endpoint.url, environment=ENV)
        for _ in script[:-1]:
            await answered(judge)
        with pytest.raises((CallError, ProviderRefused)) as raised:
            await answered(judge)
    assert KEY not in str(raised.value)
    return raised.value


async def test_the_request_is_a_message_with_system_schema_and_key(opened: OpenJudge) -> None:
    async with Endpoint(message("{}")) as endpoint:
        judge = opened(NAME, endpoint.url, environment=ENV)
        reply = await answered(judge, question("Оцени 评分 \ud83d").again("no", "Again."))
    call = endpoint.calls[0]
    assert endpoint.path() == "/v1/messages"
    assert call.headers["x-api-key"] == KEY
    assert call.headers["anthropic-version"] == "2023-06-01"
    assert "Authorization" not in call.headers
    assert call.body == {
        "system": "You judge.",
        "messages": [
            {"role": "user", "content": "Оцени 评分 \ud83d"},
            {"role": "assistant", "content": "no"},
            {"role": "user", "content": "Again."},
        ],
        "model": "claude-test",
        "max_tokens": 256,
        "temperature": 0.0,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
    assert reply.sampling == {"temperature": 0.0}


def fixed_question(*turns: tuple[Role, str, int]) -> Question:
    """A question whose messages begin with so many characters of the suite's own."""
    return Question(messages=tuple(Message(*turn) for turn in turns), schema=None)


MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("turns", "system", "content"),
    [
        (
            [("system", "Judge.", 6), ("user", "Rubric.\nAnswer.", 8)],
            "Judge.",
            [{"type": "text", "text": "Rubric.\n", **MARK}, {"type": "text", "text": "Answer."}],
        ),
        (
            [("system", "Judge.", 6), ("user", "Answer.", 0)],
            [{"type": "text", "text": "Judge.", **MARK}],
            "Answer.",
        ),
        (
            [("system", "Judge this: x", 12), ("user", "Fixed", 5)],
            [{"type": "text", "text": "Judge this: ", **MARK}, {"type": "text", "text": "x"}],
            "Fixed",
        ),
        ([("system", "Judge.", 0), ("user", "Fixed", 5)], "Judge.", "Fixed"),
        ([("system", "Judge. ", 6), ("user", "Answer.", 0)], "Judge. ", "Answer."),
    ],
    ids=["rubric", "instructions", "inserted", "nothing alike", "only a space left"],
)
async def test_the_unchanging_part_is_marked_for_the_cache_where_it_ends(
    opened: OpenJudge, turns: list[tuple[Role, str, int]], system: Any, content: Any
) -> None:
    async with Endpoint(message("{}")) as endpoint:
        await answered(opened(NAME, endpoint.url, environment=ENV), fixed_question(*turns))
    body = endpoint.calls[0].body
    assert body["system"] == system
    assert body["messages"] == [{"role": "user", "content": content}]


async def test_later_rounds_are_hotter_and_say_so(opened: OpenJudge) -> None:
    async with Endpoint(message("{}")) as endpoint:
        reply = await answered(opened(NAME, endpoint.url), question(round=2, schema=None))
    assert endpoint.calls[0].body["temperature"] == 0.7
    assert "output_config" not in endpoint.calls[0].body
    assert reply.sampling == {"temperature": 0.7}


async def test_the_identity_is_without_the_seed_that_is_never_sent(opened: OpenJudge) -> None:
    assert opened(NAME, environment=ENV).identity == {
        "provider": "anthropic",
        "base_url": "https://api.anthropic.com/v1",
        "model": "claude-test",
        "temperature": 0.0,
        "max_tokens": 256,
    }


async def test_another_seed_asks_nothing_anew_but_rounds_and_repeats_do(opened: OpenJudge) -> None:
    keys = [call_keys(opened(NAME, environment=ENV, seed=seed).identity) for seed in (7, 8, None)]
    asked = [question(), question(round=2), question(repeat=1)]
    assert len({key(one) for key in keys for one in asked}) == len(asked)


@pytest.mark.parametrize(
    ("given", "environment", "base"),
    [
        (None, {}, "https://api.anthropic.com/v1"),
        (None, {"ANTHROPIC_BASE_URL": "https://gate.test/anthropic/"}, "/anthropic/v1"),
        ("https://gate.test/v1/messages", {"ANTHROPIC_BASE_URL": "x"}, "https://gate.test/v1"),
        ("https://gate.test", {}, "https://gate.test/v1"),
    ],
)
async def test_the_address(
    opened: OpenJudge, given: str | None, environment: dict[str, str], base: str
) -> None:
    assert str(opened(NAME, given, environment=environment).identity["base_url"]).endswith(base)


async def test_the_reply_is_its_text_blocks_with_all_input_counted(opened: OpenJudge) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    async with Endpoint(message(thought, "we", "ll")) as endpoint:
        reply = await answered(opened(NAME, endpoint.url))
    assert (reply.text, reply.finish, reply.model) == ("well", "stop", "claude-test-20260101")
    assert reply.usage == Usage(
        input_tokens=900, output_tokens=200, cached_tokens=128, cache_write_tokens=16
    )


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        (None, "stop"),
    ],
)
async def test_the_finish_is_told(opened: OpenJudge, stop: str | None, finish: str) -> None:
    async with Endpoint(message("we", stop=stop)) as endpoint:
        assert (await answered(opened(NAME, endpoint.url))).finish == finish


async def test_a_refusal_without_a_word_is_an_empty_reply(opened: OpenJudge) -> None:
    async with Endpoint(message(stop="refusal")) as endpoint:
        reply = await answered(opened(NAME, endpoint.url))
    assert (reply.text, reply.finish) == ("", "refused")


@pytest.mark.parametrize(
    ("usage", "claimed"),
    [
        (None, ""),
        ([], ""),
        (
            {"input_tokens": "9", "output_tokens": -1},
            "input str + 0 + 0, output -1, cached 0, stored 0",
        ),
    ],
)
async def test_odd_usage_is_unknown(opened: OpenJudge, usage: Any, claimed: str) -> None:
    async with Endpoint(message("well", usage=usage)) as endpoint:
        assert (await answered(opened(NAME, endpoint.url))).usage == Usage(implausible=claimed)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("output_config: Extra inputs are not permitted", "output_config"),
        ("'claude-test' does not support output format.", "output_config"),
        ("output_config.format.schema: For 'object' type, x is not supported", "output_config"),
        ("The compiled grammar is too large", "output_config"),
        ("`temperature` is deprecated for this model.", "temperature"),
    ],
)
async def test_what_the_model_does_not_take_is_left_out_and_remembered(
    opened: OpenJudge, said: str, field: str
) -> None:
    script = [anthropic_error(400, INVALID, said), message("well")]
    async with Endpoint(script) as endpoint:
        judge = opened(NAME, endpoint.url)
        replies = [await answered(judge), await answered(judge)]
    assert [field in call.body for call in endpoint.calls] == [True, False, False]
    assert [("temperature" in r.sampling) for r in replies] == [field != "temperature"] * 2


@pytest.mark.parametrize(
    ("behaviour", "pause"),
    [
        (anthropic_error(529, "overloaded_error", "Overloaded"), None),
        (anthropic_error(429, "rate_limit_error", "Slow down", retry_after="17"), 17.0),
        (anthropic_error(500, "api_error", "Internal server error"), None),
        (anthropic_error(504, "timeout_error", "Timed out"), None),
        (encoded({"type": "error", "error": {"type": "api_error", "message": "odd"}}), None),
        (encoded({"content": None}), None),
        (encoded({"content": [{"type": "text"}]}), None),
        (encoded([]), None),
        (HTML, None),
        (EMPTY, None),
    ],
)
async def test_what_is_worth_another_attempt(
    opened: OpenJudge, behaviour: Behaviour, pause: float | None
) -> None:
    error = await outcome(opened, behaviour)
    assert isinstance(error, CallLost)
    assert (error.reason, error.retry_after) == ("transport", pause)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (anthropic_error(401, "authentication_error", "invalid x-api-key"), "ANTHROPIC_API_KEY"),
        (anthropic_error(403, "permission_error", "no access"), "ANTHROPIC_API_KEY"),
        (anthropic_error(404, "not_found_error", "model: claude-test"), "no such model"),
        (anthropic_error(402, "billing_error", "pay first"), "pay"),
        (anthropic_error(400, INVALID, "Your credit balance is too low"), "quota"),
        (
            anthropic_error(400, INVALID, "You have reached your specified API usage limits"),
            "quota",
        ),
        (anthropic_error(400, INVALID, "max_tokens: 9 > 8, the maximum allowed"), "max_tokens: 9"),
        (redirecting("http://elsewhere.test/"), "redirects"),
    ],
)
async def test_what_ends_the_run(opened: OpenJudge, behaviour: Behaviour, words: str) -> None:
    error = await outcome(opened, behaviour)
    assert isinstance(error, ProviderRefused)
    assert words in str(error)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (anthropic_error(400, INVALID, "prompt is too long: 9 tokens > 8"), "context_overflow"),
        (anthropic_error(413, "request_too_large", "Request too large"), "context_overflow"),
        (
            anthropic_error(400, INVALID, "input length and `max_tokens` exceed context limit: 1"),
            "context_overflow",
        ),
        (
            anthropic_error(400, INVALID, "Output blocked by content filtering policy"),
            "filtered",
        ),
    ],
)
async def test_what_concerns_one_question(
    opened: OpenJudge, behaviour: Behaviour, reason: str
) -> None:
    error = await outcome(opened, message("well"), behaviour)
    assert isinstance(error, CallRejected)
    assert error.reason == reason


async def test_the_official_host_is_not_asked_without_a_key(opened: OpenJudge) -> None:
    with pytest.raises(ProviderRefused, match="Set ANTHROPIC_API_KEY"):
        await answered(opened(NAME))


def test_a_temperature_beyond_one_is_refused_at_opening(opened: OpenJudge) -> None:
    with pytest.raises(UsageError, match=r"0 to 1, not 1\.5"):
        opened(NAME, temperature=1.5)
