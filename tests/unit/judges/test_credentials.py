"""A key appears nowhere but in the one header it is sent in."""

import asyncio
import base64
import copy
import json
import pickle
import re
import time
import traceback
import tracemalloc
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenhand.errors import UsageError
from evenhand.judges.credentials import MASK, PLACEHOLDERS, WITHHELD, Secret, key_from
from evenhand.text import CONTROLS, INVISIBLE
from tests.cases import cases
from tests.provider import (
    completion,
    echoing_key,
    flooding,
    never,
    redirecting,
    resetting,
    saying,
    sending,
)
from tests.sentences import refused
from tests.unit.judges.questions import KEY, ask, endpoint_of, opened, question

ORIGIN = "http://host.test"
SECRET = Secret("OPENAI_API_KEY", KEY, ORIGIN)


def everything_about(error):
    """All that a log, a crash reporter or a debugger would print."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    yield f"{error} {error!r} {vars(error)!r} {''.join(shown.format(chain=True))}"
    for linked in (error.__cause__, error.__context__):
        if linked is not None:
            yield from everything_about(linked)


def leaks(text):
    packed = base64.b64encode(f"Bearer {KEY}".encode()).decode()
    return any(form in text for form in (KEY, KEY[8:24], quote(KEY, safe=""), packed[12:30]))


def sending_json(body, **rest):
    return sending(json.dumps(body).encode(), **rest)


# In errors and replies


@pytest.mark.parametrize(
    "behaviour",
    [
        *map(echoing_key, (200, 400, 401, 404, 429, 500)),
        flooding(9),
        redirecting(f"http://elsewhere.test/?key={quote(KEY, safe='')}"),
        resetting(),
        never(),
        sending(("x" * 190 + KEY).encode(), status=502),
        sending(KEY.encode()),
        sending(b"x", headers={"Content-Encoding": KEY}),
        sending_json({"error": KEY}),
        sending_json({"detail": [{"loc": [KEY], "msg": KEY}]}, status=422),
    ],
)
async def test_no_error_shows_the_key(behaviour):
    [error], endpoint = await ask("openai", behaviour, attempt_seconds=0.5)
    assert endpoint.calls[0].key == KEY
    assert not any(map(leaks, everything_about(error)))
    assert error.__cause__ is error.__context__ is None


async def test_a_reply_that_repeats_the_key_is_stored_without_it():
    packed = base64.b64encode(f"x Bearer {KEY} y".encode()).decode()
    said = saying(f"My key is {KEY}, or {packed}.", reasoning=KEY)
    refused = saying(None, refusal=f"No, {KEY}!")
    escaped = saying(json.dumps({"notes": "KEY"}).replace("KEY", json_escaped(KEY)))
    (told, refusal, hidden), _ = await ask("openai", said, refused, escaped, asked=[None] * 3)
    assert not leaks(repr(told)) and told.text.startswith(f"My key is {MASK}, or ")
    assert (refusal.text, hidden.text) == (f"No, {MASK}!", WITHHELD)


async def test_a_model_that_is_named_as_before_is_shown_as_before():
    names = ["a", "a", KEY, KEY, "b", "half \ud83d", f"a {KEY}", json_escaped(KEY), "a"]
    script = [sending_json(json.loads(completion("well")) | {"model": name}) for name in names]
    async with endpoint_of("openai", *script) as (judge, _):
        models = [(await judge.answer(question())).model for _ in names]
        assert not leaks(repr(vars(judge)))
    assert models == ["a", "a", MASK, MASK, "b", "half \ufffd", f"a {MASK}", WITHHELD, "a"]


def test_a_judge_shows_no_key_in_a_repr_or_a_pickle():
    judge = opened("openai/m")
    assert not leaks(
        f"{judge!r} {vars(judge)!r} {judge.identity} {judge.account} {judge.account!r}"
    )
    assert str(hash(judge.account)) not in repr(judge.account)
    with pytest.raises(TypeError, match="not written anywhere"):
        pickle.dumps(judge)


async def test_the_locals_of_a_running_call_show_no_key():
    """Not even those of the client, where the headers are."""
    async with endpoint_of("openai", never()) as (judge, endpoint):
        waiting = asyncio.create_task(judge.answer(question()))
        while not endpoint.calls:
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError) as raised:
            await waiting
    assert not any(map(leaks, everything_about(raised.value)))


# The class itself


def test_a_secret_masks_itself_and_is_not_pickled_or_copied():
    shown = f"{SECRET} {SECRET!r} {[SECRET]} {SECRET.header(ORIGIN, 'Bearer ')!r}"
    assert not leaks(shown) and "Secret(OPENAI_API_KEY)" in shown
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            write(SECRET)


def test_a_key_is_given_out_for_its_own_origin_only():
    assert SECRET.header(ORIGIN, "Bearer ") == f"Bearer {KEY}"
    for other in ("http://host.test:8080", "https://host.test", "http://host.test.evil.test"):
        with pytest.raises(ValueError, match="meant for"):
            SECRET.header(other)


@given(
    key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=80),
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
)
def test_no_plain_encoding_of_a_key_survives(key, before, after):
    assume(key.lower() not in PLACEHOLDERS)
    inside = before + key.encode() + after
    texts = [key, quote(key, safe=""), key.encode().hex(), key.encode().hex().upper()]
    texts += [base64.b64encode(inside).decode(), base64.urlsafe_b64encode(inside).decode()]
    for text in texts:
        assert MASK in Secret("KEY", key, ORIGIN).scrub(f"<{text}>")


def each(form):
    """Every letter of a text in a form."""
    return lambda text: "".join(form % ord(letter) for letter in text)


json_escaped, percent = each("\\u%04x"), each("%%%02X")


@cases
def test_a_text_with_the_key_under_escapes_is_withheld(written):
    """Whoever reads the text decodes it."""
    text = f'{{"notes": "é {written} and 100 % more\\n"}}'
    assert SECRET.scrub(text) == WITHHELD


def test_a_key_is_found_with_unseen_characters_between():
    hidden = re.compile(f"[{CONTROLS}{INVISIBLE}]")
    unseen = [letter for letter in map(chr, range(0x10000)) if hidden.match(letter)]
    assert "\x1b" in unseen and "\u200b" in unseen
    for letter in (*unseen, "\U000e0061"):
        assert SECRET.scrub(f"{KEY[:9]}{letter}{KEY[9:]}") == WITHHELD
    for (
        letter
    ) in "\u034f\u180e\ufe0f\u2066\u202e\u115f\u3164\u206a\ufff9\x00\x08\x7f\U000e0061\u061c":
        assert SECRET.scrub(f"It is {letter.join(KEY)}, is it?") == WITHHELD


def test_a_long_reply_takes_little_more_than_itself():
    text = "%41" + "a reply of many words " * 50_000
    tracemalloc.start()
    try:
        assert SECRET.scrub(text) == text
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    finally:
        tracemalloc.stop()


def test_a_run_of_backslashes_is_read_once():
    """Counted in sizes: sixteen times the length may cost a hundred times the work of the
    processor, never the 256 times of reading the run again from each of its characters."""
    assert work("%41" + "\\" * 48_000) < 100 * work("%41" + "\\" * 3_000)


def work(text):
    start = time.process_time()
    for _ in range(3):
        assert SECRET.scrub(text) == text
    return time.process_time() - start


@given(st.text(st.sampled_from("sk-Z8/\\u0073%&#;x{}é\u200b\n"), max_size=60))
def test_what_holds_no_key_is_left_as_it_is(text):
    assert SECRET.scrub(text) == text


@pytest.mark.parametrize("word", ["EMPTY", "ollama", "x", "12345"])
def test_a_placeholder_is_a_word_and_no_secret(word):
    text = f"An {word} answer."
    assert Secret("KEY", word, ORIGIN).scrub(text) == text


@pytest.mark.parametrize(
    "password", ["geheimüöä1", "geheim\x0112345", "пароль-дом", "ge\u200bheim12"]
)
@pytest.mark.parametrize("letter", ["\u200b", "\x02", "\u00ad", ""])
def test_a_password_of_any_characters_is_seen_through_unseen_ones(password, letter):
    """Of a proxy: its password is percent-decoded, and need not be ASCII."""
    secret = Secret("the password of the proxy", password, "")
    repeated = f"{password[:3]}{letter}{password[3:]}"
    for text in (repeated, json.dumps(repeated)[1:-1]):
        assert secret.scrub(f"407 for {text}.") in (f"407 for {MASK}.", WITHHELD)


# Where it comes from


def test_a_key_comes_from_the_environment_without_the_blanks_around_it():
    found = key_from({"NAME": f" {KEY}\n"}, "NAME", ORIGIN)
    assert found.header(ORIGIN) == KEY
    for environment in ({}, {"NAME": ""}, {"NAME": "  "}):
        assert key_from(environment, "NAME", ORIGIN) is None


@pytest.mark.parametrize("value", ["sk-a\r\nX-Evil: 1", "sk-ключ", "sk a", "sk-a\x00b"])
def test_a_key_that_no_header_takes_is_refused_without_being_shown(value):
    with refused(UsageError, "judges.bad_key", "NAME") as raised:
        key_from({"NAME": value}, "NAME", ORIGIN)
    assert value not in str(raised.value)


def test_judges_share_an_account_where_provider_address_and_key_are_the_same():
    keys = {"OPENAI_API_KEY": KEY, "OPENROUTER_API_KEY": KEY}
    base = "https://api.openai.com/v1"
    same = [
        opened("openai/one", environment=keys),
        opened("openai/two", f"{base}/", temperature=0.5, environment=keys),
    ]
    others = [
        opened("openai/one", environment={"OPENAI_API_KEY": KEY + "x"}),
        opened("openai/one", "https://host.test/v1", environment=keys),
        opened("openrouter/one", base, environment=keys),
        opened("openai/one", environment={}),
    ]
    assert len({judge.account for judge in [*same, *others]}) == 5
    # By their names too, under which the store keeps them.
    assert len({str(judge.account) for judge in [*same, *others]}) == 5
