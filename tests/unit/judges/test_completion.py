"""Completions in the usual form are read in one step: that must give what reading them as any other
gives, whatever stands in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.batch import BatchAnswer
from evenhand.errors import AskAgain, CallError, ProviderRefused
from evenhand.exchange import Schema
from evenhand.judges.completion import decoded_usual
from evenhand.judges.openai import OpenAIJudge
from evenhand.judges.remote import Decoded
from tests.security.byte_mutants import byte_mutant
from tests.unit.judges.conftest import KEY, SCHEMA, MakeJudge

OPENAI: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1741569952,
    "model": "gpt-4.1-2025-04-14",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": '{"score": 2, "rationale": "It says \\"so\\"."}',
                "refusal": None,
                "annotations": [],
            },
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 919,
        "completion_tokens": 210,
        "total_tokens": 1129,
        "prompt_tokens_details": {"cached_tokens": 128, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    },
    "service_tier": "default",
    "system_fingerprint": "fp_b8bc95a0ac",
}
THOUGHTFUL = {
    **OPENAI,
    "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 4000, "cost": 1e-05},
}
OPENROUTER = {
    **OPENAI,
    "provider": "Somebody",
    "choices": [
        {
            "logprobs": None,
            "finish_reason": "length",
            "native_finish_reason": "max_tokens",
            "message": {
                "role": "assistant",
                "content": "Оценка: 二",
                "refusal": "",
                "reasoning": "Хм",
            },
        }
    ],
}
LOCAL = {"choices": [{"message": {"content": "well"}}]}
FILTERED = {
    **OPENAI,
    "choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}],
    "prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": False}}}],
    "usage": None,
    "model": None,
}
USUAL = [OPENAI, THOUGHTFUL, OPENROUTER, LOCAL, FILTERED]
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 1.0, 0.5, 10**8, 10**8 + 1, 10**19, 10**400, 10**4299),
    *("", "x", "9", "error", "stop", "length", "\ud83d", "\x7f", KEY, "\\u0073" + KEY[1:], "я"),
    *([], [[]], [None], {}, {"": None}, {"text": "x", "type": "text"}, {"error": "busy"}),
    [{"type": "text", "text": "we"}, {"type": "text", "text": "ll"}],
    {"content": [{"token": "x", "logprob": 0.0, "top_logprobs": [], "bytes": None}]},
    {"message": {"content": "x"}},
    {"message": "Rate limit reached.", "code": 429},
]
UNUSUAL_JSON = [
    *("NaN", "-Infinity", "1e999", "-0", "-0.0", "01", "+1", "1.", ".5", "9" * 4300, "9" * 4301),
    *("9" * 9999, "[" * 90 + "]" * 90, "[" * 97 + "]" * 97, '{"a":' * 97 + "1" + "}" * 97),
    *("[" * 2000 + "]" * 2000, '"\\ud83d"', '"\\ud83d\\ude00"', '"\\q"', '"\\u00"', '"\t"', '"'),
    *(
        "nul",
        "[1,]",
        '{"a":1,}',
        '{"a" 1}',
        "'x'",
        "",
        "[1 2]",
        f'"{"x" * 9999}"',
    ),
]


class PlainJudge(OpenAIJudge):
    """Reads every completion as if it were an odd one."""

    def _decode_usual(self, data: bytes) -> Decoded | None:
        return None


Paths = Iterator[tuple[str | int, ...]]


def paths(value: Any, *above: str | int) -> Paths:
    """Where the values stand, the whole first."""
    yield above
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(part, *above, key)


def holder(body: Any, path: tuple[str | int, ...]) -> Any:
    for step in path[:-1]:
        body = body[step]
    return body


def replaced(body: Any, path: tuple[str | int, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(body)
    holder(changed, path)[path[-1]] = value
    return changed


def removed(body: Any, path: tuple[str | int, ...]) -> Any:
    changed = copy.deepcopy(body)
    del holder(changed, path)[path[-1]]
    return changed


def spliced(body: Any, path: tuple[str | int, ...], text: str) -> bytes:
    """A body with the text of a JSON value, or of none, in some place."""
    marked = json.dumps(replaced(body, path, "HERE"))
    return marked.replace('"HERE"', text).encode("utf-8", "surrogatepass")


def with_key_twice(body: Any, path: tuple[str | int, ...], value: Any, *, is_first: bool) -> bytes:
    """A body in which a key stands twice."""
    key, own = json.dumps(path[-1]), json.dumps(holder(body, path)[path[-1]])
    values = [json.dumps(value), own] if is_first else [own, json.dumps(value)]
    return spliced(body, path, f"{values[0]},{key}:{values[1]}")


def outcome(judge: OpenAIJudge, body: bytes) -> Any:
    """The reply, or what came of it."""
    try:
        return judge.batch_reader()(BatchAnswer("1", 200, body), Schema(SCHEMA), {"seed": 1})
    except AskAgain:
        return AskAgain
    except (CallError, ProviderRefused) as error:
        return type(error), str(error), vars(error)


@pytest.fixture
def both(judge: MakeJudge) -> tuple[OpenAIJudge, OpenAIJudge]:
    made = judge("https://host.test/v1")
    return made, judge("https://host.test/v1", of=PlainJudge)


Both = tuple[OpenAIJudge, OpenAIJudge]


def assert_same(both: Both, body: bytes) -> None:
    usual, plain = both
    assert outcome(usual, body) == outcome(plain, body), body[:2000]


@pytest.mark.parametrize("body", USUAL)
def test_what_providers_send_is_read_in_one_step(both: Both, body: Any) -> None:
    for data in (
        json.dumps(body),
        json.dumps(body, indent=2),
        json.dumps(body, ensure_ascii=False),
    ):
        assert decoded_usual(data.encode()) is not None
        assert_same(both, data.encode())


@pytest.mark.parametrize("body", USUAL)
def test_every_value_may_be_another_or_missing(both: Both, body: Any) -> None:
    for path in paths(body):
        for value in ODD_VALUES:
            assert_same(both, json.dumps(replaced(body, path, value)).encode())
        if path:
            assert_same(both, json.dumps(removed(body, path)).encode())


@pytest.mark.parametrize("body", USUAL)
def test_every_value_may_be_json_of_an_unusual_kind_or_none(both: Both, body: Any) -> None:
    for path in paths(body):
        for text in UNUSUAL_JSON:
            assert_same(both, spliced(body, path, text))
        for data in (b"\xff", b"\xd0", b"\xed\xa0\x80", b"\xc0\xaf", b"\xd0\xaf", b"\x00"):
            assert_same(both, spliced(body, path, '"HERE"').replace(b"HERE", data))


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("body", USUAL)
def test_every_key_may_stand_twice(both: Both, body: Any, is_first: bool) -> None:
    for path in paths(body):
        if path and isinstance(path[-1], str):
            for value in ODD_VALUES:
                assert_same(both, with_key_twice(body, path, value, is_first=is_first))


def test_a_completion_may_have_several_choices(both: Both) -> None:
    choice = OPENAI["choices"][0]
    other = {**choice, "message": {"content": "another"}, "finish_reason": "length"}
    for choices in ([], [choice, choice], [choice, other], [other, choice, None]):
        assert_same(both, json.dumps({**OPENAI, "choices": choices}).encode())


def test_a_completion_with_log_probabilities_is_not_read_without_them() -> None:
    listed = {"content": [{"token": "well", "logprob": -0.1, "top_logprobs": []}]}
    body = replaced(OPENAI, ("choices", 0, "logprobs"), listed)
    assert decoded_usual(json.dumps(body).encode()) is None


@pytest.mark.parametrize("count", [1000, 249_000, 250_000, 251_000, 499_000, 501_000])
def test_a_completion_may_hold_many_values(both: Both, count: int) -> None:
    for list_of_them in (f"[{'1,' * count}1]", f"[{'1,' * count}]", f"[{'[],' * (count // 2)}1]"):
        assert_same(both, spliced({**OPENAI, "extra": None}, ("extra",), list_of_them))


def test_bytes_may_go_wrong_in_any_way(both: Both) -> None:
    goods = [json.dumps(body, ensure_ascii=False).encode() for body in USUAL]
    bodies = [byte_mutant(goods, seed) for seed in range(4000)]
    for body in bodies:
        assert_same(both, body)
    assert sum(decoded_usual(body) is not None for body in bodies) > len(bodies) / 10


def test_a_body_may_break_off_anywhere(both: Both) -> None:
    data = json.dumps(OPENAI).encode()
    for end in range(len(data)):
        assert_same(both, data[:end])


def test_a_long_number_is_found_wherever_it_stands(both: Both) -> None:
    for size in range(0, 4400, 7):
        data = json.dumps({"user": "x" * size, "seed": "HERE", **OPENAI})
        for digits in (4300, 4301):
            assert_same(both, data.replace('"HERE"', "9" * digits).encode())
