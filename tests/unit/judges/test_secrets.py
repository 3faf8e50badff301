"""A key appears nowhere but in the one header it is sent in."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import pickle
import re
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import CallError, EvenhandError, UsageError
from evenhand.judges.credentials import MASK, PLACEHOLDERS, WITHHELD, Secret, key_from
from evenhand.text import CONTROLS, INVISIBLE
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
    """Not even those of the client, where the headers are."""
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


def _json_escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


ESCAPES: dict[str, Callable[[str], str]] = {
    "first letter": lambda key: _json_escaped(key[0]) + key[1:],
    "every letter": _json_escaped,
    "every other": lambda key: "".join(
        _json_escaped(letter) if at % 2 else letter for at, letter in enumerate(key)
    ),
    "upper case": lambda key: _json_escaped(key).replace("\\u00", "\\u00").upper(),
    "escaped twice": lambda key: _json_escaped(key).replace("\\", "\\\\"),
    "escaped thrice": lambda key: _json_escaped(key).replace("\\", "\\\\\\\\"),
    "slash": lambda key: key.replace("/", "\\/"),
    "bytes": lambda key: "".join(f"\\x{ord(letter):02x}" for letter in key),
    "braces": lambda key: "".join(f"\\u{{{ord(letter):x}}}" for letter in key),
    "percent": lambda key: "".join(f"%{ord(letter):02X}" for letter in key),
    "one percent": lambda key: f"%{ord(key[0]):02x}{key[1:]}",
    "percent twice": lambda key: "".join(f"%25{ord(letter):02X}" for letter in key),
    "decimal": lambda key: "".join(f"&#{ord(letter)};" for letter in key),
    "hexadecimal": lambda key: "".join(f"&#x{ord(letter):x};" for letter in key),
    "zero width": "\u200b".join,
    "soft hyphen": lambda key: f"{key[:9]}\u00ad{key[9:]}",
    "zero width in JSON": "\\u200b".join,
    "zero width in braces": "\\u{200b}".join,
    "zero width in HTML": "&#8203;".join,
    "zero width in hexadecimal": "&#x200b;".join,
    "tags in JSON": "\\udb40\\udc61".join,
    "eight digits": lambda key: "".join(f"\\U{ord(letter):08x}" for letter in key),
    "base64 in JSON": lambda key: _json_escaped(base64.b64encode(key.encode()).decode()),
    "percent in JSON": lambda key: _json_escaped("".join(f"%{ord(c):02x}" for c in key)),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_a_text_with_the_key_under_escapes_is_withheld(name: str) -> None:
    """Whoever reads the text decodes it."""
    text = f'{{"notes": "é {ESCAPES[name](KEY)} and 100 % more\\n"}}'
    assert secret().scrub(text) == WITHHELD


HIDDEN = "\u034f\u180e\ufe0f\u2066\u202e\u115f\u3164\u206a\ufff9\x00\x08\x7f\U000e0061\u061c"


@pytest.mark.parametrize("letter", HIDDEN)
def test_a_key_is_found_with_unseen_characters_between(letter: str) -> None:
    assert secret().scrub(f"It is {letter.join(KEY)}, is it?") == WITHHELD


def test_a_long_reply_takes_little_more_than_itself() -> None:
    text = "%41" + "a reply of many words " * 50_000
    tracemalloc.start()
    try:
        assert secret().scrub(text) == text
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    finally:
        tracemalloc.stop()


def test_a_run_of_backslashes_is_read_once() -> None:
    """Counted in sizes: sixteen times the length may cost a hundred times the work of the
    processor, never the 256 times of reading the run again from each of its characters."""
    assert _work("%41" + "\\" * 48_000) < 100 * _work("%41" + "\\" * 3_000)


def _work(text: str) -> float:
    start = time.process_time()
    for _ in range(3):
        assert secret().scrub(text) == text
    return time.process_time() - start


@given(st.text(st.sampled_from("sk-Z8/\\u0073%&#;x{}é\u200b\n"), max_size=60))
def test_what_holds_no_key_is_left_as_it_is(text: str) -> None:
    assert secret().scrub(text) == text


async def test_a_reply_that_escapes_the_key_is_stored_without_it(judge: MakeJudge) -> None:
    inside = json.dumps({"notes": "KEY"}).replace("KEY", _json_escaped(KEY))
    body = json.loads(completion(inside)) | {"model": _json_escaped(KEY)}
    async with Provider(sending(json.dumps(body).encode())) as provider:
        reply = await judge(provider.url).answer(question())
    assert (reply.text, reply.model) == (WITHHELD, WITHHELD)


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


def test_every_unseen_character_within_the_key_is_seen_through() -> None:
    hidden = re.compile(f"[{CONTROLS}{INVISIBLE}]")
    unseen = [letter for letter in map(chr, range(0x10000)) if hidden.match(letter)]
    assert "\x1b" in unseen and "\u200b" in unseen
    for letter in unseen:
        assert secret().scrub(f"{KEY[:9]}{letter}{KEY[9:]}") == WITHHELD


@pytest.mark.parametrize(
    "password", ["geheim\u00fc\u00f6\u00e41", "geheim\x0112345", "пароль-дом", "ge\u200bheim12"]
)
@pytest.mark.parametrize("letter", ["\u200b", "\x02", "\u00ad", ""])
def test_a_password_of_any_characters_is_seen_through_unseen_ones(
    password: str, letter: str
) -> None:
    """Of a proxy: its password is percent-decoded, and need not be ASCII."""
    secret = Secret("the password of the proxy", password, "")
    repeated = f"{password[:3]}{letter}{password[3:]}"
    for text in (repeated, json.dumps(repeated)[1:-1]):
        assert secret.scrub(f"407 for {text}.") in (f"407 for {MASK}.", WITHHELD)


async def test_a_model_that_is_named_as_before_is_shown_as_before(judge: MakeJudge) -> None:
    names = ["a", "a", KEY, KEY, "b", "half \ud83d", "b", f"a {KEY}", "a"]
    bodies = [json.loads(completion("well")) | {"model": name} for name in names]
    async with Provider([sending(json.dumps(body).encode()) for body in bodies]) as provider:
        asked = judge(provider.url)
        models = [(await asked.answer(question())).model for _ in names]
    assert models == ["a", "a", MASK, MASK, "b", "half \ufffd", "b", f"a {MASK}", "a"]
    assert not leaks(repr(vars(asked)))
