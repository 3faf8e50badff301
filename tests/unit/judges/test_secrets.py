"""A key appears nowhere but in the one header it is sent in."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import pickle
import traceback
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import CallError, EvenhandError, UsageError
from evenhand.judges.secrets import MASK, PLACEHOLDERS, Secret, key_from
from tests.provider import (
    Behaviour,
    Provider,
    completion,
    echoing_key,
    failing,
    flooding,
    never,
    out_of_quota,
    redirecting,
    resetting,
    saying,
    sending,
)
from tests.unit.judges.conftest import KEY, MakeJudge, OpenJudge, question

ORIGIN = "http://host.test"


def secret(value: str = KEY) -> Secret:
    return Secret("OPENAI_API_KEY", value, ORIGIN)


def everything_about(error: BaseException) -> Iterator[str]:
    """All that a log, a crash reporter or a debugger would print."""
    yield str(error)
    yield repr(error)
    yield repr(vars(error))
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    yield "".join(shown.format(chain=True))
    for linked in (error.__cause__, error.__context__):
        if linked is not None:
            yield from everything_about(linked)


def leaks(text: str, key: str = KEY) -> bool:
    packed = base64.b64encode(f"Bearer {key}".encode()).decode()
    return any(form in text for form in (key, key[8:24], quote(key, safe=""), packed[12:30]))


# In errors and replies


@pytest.mark.parametrize(
    "behaviour",
    [
        echoing_key(400),
        echoing_key(401),
        echoing_key(404),
        echoing_key(429),
        echoing_key(500),
        echoing_key(200),
        failing(503),
        flooding(9),
        out_of_quota(),
        redirecting(f"http://elsewhere.test/?key={quote(KEY, safe='')}"),
        resetting(),
        sending(KEY.encode(), status=502),
        sending(("x" * 190 + KEY).encode(), status=502),
        sending(KEY.encode()),
        sending(b"x", headers={"Content-Encoding": KEY}),
        sending(json.dumps({"error": KEY}).encode()),
        sending(json.dumps({"detail": [{"loc": [KEY], "msg": KEY}]}).encode(), status=422),
    ],
)
async def test_no_error_shows_the_key(judge: MakeJudge, behaviour: Behaviour) -> None:
    async with Provider(behaviour) as provider:
        with pytest.raises((CallError, EvenhandError)) as raised:
            await judge(provider.url).answer(question())
    assert provider.calls[0].key == KEY
    assert not any(leaks(text) for text in everything_about(raised.value))


async def test_an_answer_that_never_comes_shows_no_key(judge: MakeJudge) -> None:
    async with Provider(never()) as provider:
        with pytest.raises(CallError) as raised:
            await judge(provider.url, attempt_seconds=0.2).answer(question())
    assert not any(leaks(text) for text in everything_about(raised.value))


async def test_an_error_carries_no_cause_that_holds_headers(judge: MakeJudge) -> None:
    async with Provider(resetting()) as provider:
        with pytest.raises(CallError) as raised:
            await judge(provider.url).answer(question())
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


async def test_a_reply_that_repeats_the_key_is_stored_without_it(judge: MakeJudge) -> None:
    packed = base64.b64encode(f"x Bearer {KEY} y".encode()).decode()
    body = json.loads(completion(f"My key is {KEY}, or {packed}.")) | {"model": KEY}
    async with Provider(sending(json.dumps(body).encode())) as provider:
        reply = await judge(provider.url).answer(question())
    assert not leaks(repr(reply))
    assert reply.text.startswith(f"My key is {MASK}, or ")


async def test_a_refusal_that_repeats_the_key_is_stored_without_it(judge: MakeJudge) -> None:
    async with Provider(saying(None, refusal=f"No, {KEY}!")) as provider:
        reply = await judge(provider.url).answer(question())
    assert reply.text == f"No, {MASK}!"


async def test_a_judge_shows_no_key_in_a_repr_or_a_pickle(judge: MakeJudge) -> None:
    asked = judge("http://127.0.0.1:9/v1")
    shown = repr(asked) + repr(vars(asked)) + json.dumps(dict(asked.identity))
    assert not leaks(shown)
    with pytest.raises(TypeError, match="not written anywhere"):
        pickle.dumps(asked)


async def test_the_locals_of_a_running_call_show_no_key(judge: MakeJudge) -> None:
    """Not even those of aiohttp, where the headers are."""
    async with Provider(never()) as provider:
        waiting = asyncio.create_task(judge(provider.url).answer(question()))
        while not provider.calls:
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await waiting
    assert not any(leaks(text) for text in everything_about(raised.value))


# The class itself


def test_a_secret_masks_itself() -> None:
    shown = f"{secret()} {secret()!r} {[secret()]} {secret().header(ORIGIN, 'Bearer ')!r}"
    assert not leaks(shown)
    assert "Secret(OPENAI_API_KEY)" in shown


def test_a_secret_is_not_pickled_or_copied() -> None:
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            write(secret())


def test_a_key_is_given_out_for_its_own_origin_only() -> None:
    assert secret().header(ORIGIN, "Bearer ") == f"Bearer {KEY}"
    for other in ("http://host.test:8080", "https://host.test", "http://host.test.evil.test"):
        with pytest.raises(ValueError, match="meant for"):
            secret().header(other)


@given(
    key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=80),
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
)
def test_no_plain_encoding_of_a_key_survives(key: str, before: bytes, after: bytes) -> None:
    if key.lower() in PLACEHOLDERS:
        return
    inside = before + key.encode() + after
    texts = [key, quote(key, safe=""), key.encode().hex(), key.encode().hex().upper()]
    texts += [base64.b64encode(inside).decode(), base64.urlsafe_b64encode(inside).decode()]
    for text in texts:
        assert MASK in secret(key).scrub(f"<{text}>")


@pytest.mark.parametrize("word", ["EMPTY", "ollama", "none", "x", "12345"])
def test_a_placeholder_is_a_word_and_no_secret(word: str) -> None:
    text = f"An {word} answer."
    assert secret(word).scrub(text) == text


# Where it comes from


def test_a_key_comes_from_the_environment_without_the_blanks_around_it() -> None:
    found = key_from({"OPENAI_API_KEY": f" {KEY}\n"}, "OPENAI_API_KEY", ORIGIN)
    assert found is not None
    assert found.header(ORIGIN) == KEY


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": ""}, {"OPENAI_API_KEY": "  "}])
def test_an_absent_key_is_none(environment: dict[str, str]) -> None:
    assert key_from(environment, "OPENAI_API_KEY", ORIGIN) is None


@pytest.mark.parametrize("value", ["sk-a\r\nX-Evil: 1", "sk-ключ", "sk a", "sk-a\x00b"])
def test_a_key_that_no_header_takes_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as raised:
        key_from({"OPENAI_API_KEY": value}, "OPENAI_API_KEY", ORIGIN)
    assert value not in str(raised.value)


# In accounts, by which rates are shared


def test_judges_share_an_account_where_provider_address_and_key_are_the_same(
    opened: OpenJudge,
) -> None:
    keys = {"OPENAI_API_KEY": KEY, "OPENROUTER_API_KEY": KEY}
    first = opened("openai/one", environment=keys).account
    assert first == opened("openai/two", temperature=0.5, environment=keys).account
    assert first == opened("openai/two", "https://api.openai.com/v1/", environment=keys).account
    others = [
        opened("openai/one", environment={"OPENAI_API_KEY": KEY + "x"}),
        opened("openai/one", "https://host.test/v1", environment=keys),
        opened("openrouter/one", "https://api.openai.com/v1", environment=keys),
        opened("openai/one", environment={}),
    ]
    assert len({first, *(judge.account for judge in others)}) == 5


def test_an_account_shows_no_key(opened: OpenJudge) -> None:
    judge = opened("openai/one", environment={"OPENAI_API_KEY": KEY})
    assert not leaks(repr(judge.account))
    assert not leaks(str(judge.account))
    assert not leaks(repr(judge.identity))
    assert str(hash(judge.account)) not in repr(judge.account)
