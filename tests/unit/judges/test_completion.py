"""Whatever a completion holds, reading it gives a reply that can be kept, or an error of a call."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.errors import AskAgain, CallError, ProviderRefused
from evenhand.exchange import BatchAnswer, Reply, Usage
from evenhand.judges.remote import RemoteJudge
from evenhand.limits import BODY_ELEMENTS, TOKENS_MOST
from tests.security.byte_mutants import byte_mutant
from tests.unit.judges.conftest import KEY, MakeJudge

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


def read(judge: RemoteJudge, body: bytes) -> Reply | None:
    """The reply, checked to be one that can be kept and shows no key; None where it is an error."""
    try:
        reply = judge.batch_reader()(BatchAnswer("1", 200, body), {"seed": 1})
    except AskAgain:
        return None
    except (CallError, ProviderRefused) as error:
        assert KEY not in str(error)
        return None
    kept = "\n".join((reply.text, reply.model, reply.reasoning, reply.usage.implausible))
    assert KEY not in kept and kept.encode()
    counts = (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cached_tokens)
    assert all(count is None or 0 <= count <= TOKENS_MOST for count in counts)
    return reply


@pytest.fixture
def reader(judge: MakeJudge) -> RemoteJudge:
    return judge("https://host.test/v1")


def test_what_providers_send_is_read(reader: RemoteJudge) -> None:
    said = [
        (reply.text, reply.finish, reply.model, reply.reasoning, reply.usage)
        for reply in (
            read(reader, json.dumps(body).encode()) or Reply(text="unread") for body in USUAL
        )
    ]
    score = '{"score": 2, "rationale": "It says \\"so\\"."}'
    model = "gpt-4.1-2025-04-14"
    counted = Usage(input_tokens=919, output_tokens=210, cached_tokens=128)
    assert said == [
        (score, "stop", model, "", counted),
        (score, "stop", model, "", Usage(input_tokens=9, output_tokens=3991)),
        ("Оценка: 二", "length", f"{model} via Somebody", "Хм", counted),
        ("well", "stop", "", "", Usage()),
        ("", "filtered", "", "", Usage()),
    ]


@pytest.mark.parametrize("body", USUAL)
def test_every_value_may_be_another_or_missing(reader: RemoteJudge, body: Any) -> None:
    for path in paths(body):
        for value in ODD_VALUES:
            read(reader, json.dumps(replaced(body, path, value)).encode())
        if path:
            read(reader, json.dumps(removed(body, path)).encode())


@pytest.mark.parametrize("body", USUAL)
def test_every_value_may_be_json_of_an_unusual_kind_or_none(reader: RemoteJudge, body: Any) -> None:
    for path in paths(body):
        for text in UNUSUAL_JSON:
            read(reader, spliced(body, path, text))
        for data in (b"\xff", b"\xd0", b"\xed\xa0\x80", b"\xc0\xaf", b"\xd0\xaf", b"\x00"):
            read(reader, spliced(body, path, '"HERE"').replace(b"HERE", data))


@pytest.mark.parametrize("is_first", [False, True])
def test_every_key_may_stand_twice(reader: RemoteJudge, is_first: bool) -> None:
    for path in paths(OPENAI):
        if path and isinstance(path[-1], str):
            for value in ODD_VALUES:
                read(reader, with_key_twice(OPENAI, path, value, is_first=is_first))


def test_a_completion_may_have_several_choices(reader: RemoteJudge) -> None:
    choice = OPENAI["choices"][0]
    other = {**choice, "message": {"content": "another"}, "finish_reason": "length"}
    for choices in ([], [choice, choice], [choice, other], [other, choice, None]):
        read(reader, json.dumps({**OPENAI, "choices": choices}).encode())


@pytest.mark.parametrize("count", [1000, 499_000, 501_000])
def test_a_completion_may_hold_many_values(reader: RemoteJudge, count: int) -> None:
    for list_of_them in (f"[{'1,' * count}1]", f"[{'1,' * count}]", f"[{'[],' * (count // 2)}1]"):
        reply = read(reader, spliced({**OPENAI, "extra": None}, ("extra",), list_of_them))
        assert (reply is not None) == (count < BODY_ELEMENTS and list_of_them.endswith("1]"))


def test_bytes_may_go_wrong_in_any_way(reader: RemoteJudge) -> None:
    goods = [json.dumps(body, ensure_ascii=False).encode() for body in USUAL]
    replies = [read(reader, byte_mutant(goods, seed)) for seed in range(4000)]
    assert sum(reply is not None for reply in replies) > len(replies) / 10


def test_a_body_that_breaks_off_is_no_reply(reader: RemoteJudge) -> None:
    data = json.dumps(OPENAI).encode()
    assert [read(reader, data[:end]) for end in range(len(data))] == [None] * len(data)
