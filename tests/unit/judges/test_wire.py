"""Replies as they are decoded: completions of any form, and streams of server-sent events, which
are joined, asked for where an endpoint answers only so, and lost where they break off."""

import copy
import json
from pathlib import Path

import pytest

from evenhand.errors import AskAgain, CallError, ProviderRefused
from evenhand.exchange import BatchAnswer, Reply, Usage
from evenhand.limits import BODY_ELEMENTS, TOKENS_MOST
from tests.provider import failing, sending
from tests.security.byte_mutants import byte_mutant
from tests.unit.judges.questions import KEY, ask, endpoint_of, gist, opened, outcome, reply_of

SAID = '{"score": 2, "rationale": "Да, 好"}'
THOUGHT = "Let me see.\nPerhaps 1? No."


DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Events and completions as providers send them, and values that may stand in their places."""
STREAMS = DATA["streams"]
every_format = pytest.mark.parametrize("name", STREAMS)


def sse(events, ending="\n"):
    """Events as they are sent, with comments between them."""
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    lines = [f": PROCESSING{ending}{ending}event: x{ending}data: {text}{ending}" for text in texts]
    return ending.join([*lines, ""]).encode()


def streaming(data):
    data = data if isinstance(data, bytes) else sse(data)
    return sending(data, content_type="text/event-stream; charset=utf-8")


@pytest.mark.parametrize(("ending", "stream"), [("\n", True), ("\r\n", False), ("\r", True)])
@every_format
async def test_events_are_joined_to_one_reply_asked_for_or_not(name, ending, stream):
    behaviour = streaming(sse(STREAMS[name], ending))
    [reply], endpoint = await ask(name, behaviour, stream=stream)
    assert (reply.text, reply.reasoning, reply.finish) == (SAID, THOUGHT, "stop")
    assert (reply.usage, reply.model) == (Usage(input_tokens=900, output_tokens=200), "m-1")
    body = endpoint.calls[0].body
    asked = endpoint.path(), body.get("stream"), body.get("stream_options")
    assert ([*asked] == DATA["asked"][name]) is stream


async def test_content_that_comes_as_a_list_of_parts_is_joined_too():
    reply = await reply_of("openai", streaming(DATA["in_parts"]))
    assert reply.text == "well said"


@every_format
async def test_a_stream_that_breaks_off_is_lost_wherever_it_does(name):
    events = STREAMS[name]
    # The last events of a chat count tokens: without them the reply is whole.
    parts = [events[:end] for end in range(1, len(events) - 2 * (name == "openai"))]
    scripts = [*map(streaming, parts), streaming(sse(events[:6])[:-9])]
    errors, _ = await ask(name, *scripts, asked=[None] * len(scripts), stream=True)
    assert {(gist(error), error.reason) for error in errors} == {("billed", "transport")}


@every_format
async def test_an_error_within_a_stream_is_lost_and_may_be_billed(name):
    error = await reply_of(name, streaming([*STREAMS[name][:6], DATA["errors"][name]]), stream=True)
    assert gist(error) == "billed" and "Overloaded" in str(error)


async def test_an_error_before_a_stream_begins_keeps_its_status():
    error = await reply_of("openai", streaming([DATA["errors"]["openai"]]), stream=True)
    assert gist(error) == "lost" and error.is_busy


@pytest.mark.parametrize(
    "said",
    [
        "This model only support stream mode, please enable the stream parameter to access it.",
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "Stream must be set to true",
        "Streaming is required for this model.",
        'This endpoint requires "stream" = true',
    ],
)
async def test_an_endpoint_that_answers_by_stream_only_is_asked_so_and_remembered(said):
    async def behaviour(call):
        wanted = streaming(STREAMS["openai"]) if call.body.get("stream") else failing(400, said)
        return await wanted(call)

    async with endpoint_of("openai", behaviour) as (judge, endpoint):
        identity = dict(judge.identity)
        replies = [await outcome(judge) for _ in range(2)]
        assert judge.identity == identity and "stream" not in identity
    assert [reply.text for reply in replies] == [SAID] * 2
    assert [call.body.get("stream") for call in endpoint.calls] == [None, True, True]


async def test_an_endpoint_that_refuses_even_streams_is_an_error():
    [error], endpoint = await ask("openai", failing(400, "Only supports streaming requests"))
    assert (gist(error), len(endpoint.calls)) == ("refused", 2)


async def test_a_refused_count_of_tokens_is_left_out():
    refusal = failing(400, "Unknown parameter: 'stream_options'.", param="stream_options")
    [reply], endpoint = await ask("openai", refusal, streaming(STREAMS["openai"]), stream=True)
    assert ["stream_options" in call.body for call in endpoint.calls] == [True, False]
    assert reply.text == SAID


@every_format
async def test_bytes_of_a_stream_may_go_wrong_in_any_way(name):
    """Whatever comes is a reply or an error of a call."""

    async def behaviour(call):
        return await streaming(byte_mutant([sse(STREAMS[name])], call.number))(call)

    outcomes, _ = await ask(name, behaviour, asked=[None] * 300, stream=True)
    assert all(isinstance(one, Reply) or gist(one) for one in outcomes)


# Completions

USUAL = DATA["completions"]
OPENAI, _, _, LOCAL, _ = USUAL
ODD_VALUES = [*DATA["odd_values"], 10**400, 10**4299, KEY, "\\u0073" + KEY[1:]]
UNUSUAL_JSON = [
    *DATA["unusual_json"],
    *("9" * 4300, "9" * 4301, "9" * 9999, "[" * 90 + "]" * 90, "[" * 97 + "]" * 97),
    *('{"a":' * 97 + "1" + "}" * 97, "[" * 2000 + "]" * 2000, f'"{"x" * 9999}"'),
]


def paths(value, *above):
    """Where the values stand, the whole first."""
    yield above
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(inner, *above, key)


def holder(body, path):
    for step in path[:-1]:
        body = body[step]
    return body


def replaced(body, path, value):
    if not path:
        return value
    changed = copy.deepcopy(body)
    holder(changed, path)[path[-1]] = value
    return changed


def removed(body, path):
    changed = copy.deepcopy(body)
    del holder(changed, path)[path[-1]]
    return changed


def spliced(body, path, text):
    """A body with the text of a JSON value, or of none, in some place."""
    marked = json.dumps(replaced(body, path, "HERE"))
    return marked.replace('"HERE"', text).encode("utf-8", "surrogatepass")


def read(judge, body):
    """The reply, checked to be one that can be kept and shows no key; None where it is an error."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
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
def reader():
    return opened("openai/m")


def test_what_providers_send_is_read(reader):
    said = [
        (reply.text, reply.finish, reply.model, reply.reasoning, reply.usage)
        for reply in (read(reader, body) for body in USUAL)
    ]
    model, score = OPENAI["model"], OPENAI["choices"][0]["message"]["content"]
    counted = Usage(input_tokens=919, output_tokens=210, cached_tokens=128)
    assert said == [
        (score, "stop", model, "", counted),
        (score, "stop", model, "", Usage(input_tokens=9, output_tokens=3991)),
        ("Оценка: 二", "length", f"{model} via Somebody", "Хм", counted),
        ("well", "stop", "", "", Usage()),
        ("", "filtered", "", "", Usage()),
    ]


@pytest.mark.parametrize("body", USUAL)
def test_every_value_may_be_another_or_missing_or_no_json(reader, body):
    for path in paths(body):
        for value in ODD_VALUES:
            read(reader, replaced(body, path, value))
        if path:
            read(reader, removed(body, path))
        for text in UNUSUAL_JSON:
            read(reader, spliced(body, path, text))
        for data in (b"\xff", b"\xd0", b"\xed\xa0\x80", b"\xc0\xaf", b"\xd0\xaf", b"\x00"):
            read(reader, spliced(body, path, '"HERE"').replace(b"HERE", data))


@pytest.mark.parametrize("is_first", [False, True])
def test_every_key_may_stand_twice(reader, is_first):
    for path in paths(OPENAI):
        if path and isinstance(path[-1], str):
            key, own = json.dumps(path[-1]), json.dumps(holder(OPENAI, path)[path[-1]])
            for value in map(json.dumps, ODD_VALUES):
                pair = (value, own) if is_first else (own, value)
                read(reader, spliced(OPENAI, path, f"{pair[0]},{key}:{pair[1]}"))


def test_the_texts_of_several_choices_stand_one_after_the_other(reader):
    [choice] = LOCAL["choices"]
    other = {"message": {"content": "another"}, "finish_reason": "length"}
    replies = [
        read(reader, {"choices": choices})
        for choices in ([choice] * 2, [choice, other], [other, None])
    ]
    assert [reply and (reply.text, reply.finish) for reply in replies] == [
        ("well", "stop"),
        ("well\n\nanother", "length"),
        None,
    ]


@pytest.mark.parametrize("count", [1000, 499_000, 501_000])
def test_a_completion_may_hold_many_values(reader, count):
    for values in (f"[{'1,' * count}1]", f"[{'1,' * count}]", f"[{'[],' * (count // 2)}1]"):
        reply = read(reader, spliced({**OPENAI, "extra": None}, ("extra",), values))
        assert (reply is not None) == (count < BODY_ELEMENTS and values.endswith("1]"))


def test_bytes_may_go_wrong_in_any_way(reader):
    goods = [json.dumps(body, ensure_ascii=False).encode() for body in USUAL]
    replies = [read(reader, byte_mutant(goods, seed)) for seed in range(4000)]
    assert sum(reply is not None for reply in replies) > len(replies) / 10


def test_a_body_that_breaks_off_is_no_reply(reader):
    data = json.dumps(OPENAI).encode()
    assert not any(read(reader, data[:end]) for end in range(len(data)))
