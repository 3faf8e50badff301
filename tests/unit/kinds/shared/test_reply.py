"""Any text of a judge becomes one object or the kind of thing that is wrong with it."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.judgment import Reason
from evenhand.kinds.reply import Readable, Unreadable, read

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
OBJECTS = st.dictionaries(
    TEXTS,
    TEXTS | st.integers() | st.sampled_from(["```", "</think>", "{", '"}', "\\", '{"a":1}', "[["]),
    min_size=1,
    max_size=4,
)
PIECES = ["{", "}", "[", "]", '"', "\\", ":", ",", "a", "1", " ", "\n", "```", "<think>"]
PIECES += ["</think>", "NaN", "\ud800", "\\ud800", "\ufeff", '{"a":1}', "null", "\0", "𝄞"]
JSON_LIKE = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@given(JSON_LIKE | st.text(st.characters()))
@example("\ufeff")
@example("[[[")
def test_any_text_is_read(reply):
    found = read(reply)
    if isinstance(found, Unreadable):
        assert found.code in get_args(Reason)
    else:
        json.dumps(found.value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "reply",
    [
        '{"a":' * 40_000,
        '"\\"' * 60_000,
        "{" * 200_000,
        '{"' * 100_000,
        "<think>" * 30_000,
        "</think>" * 30_000,
        "```" * 70_000,
        "```" + " " * 200_000 + "x",
        "```" + "w" * 200_000,
        "{ " * 100_000 + "}" * 100_000,
        "{x" * 100_000 + "}" * 100_000,
        "{}" * 100_000,
        '{"a' + "\\" * 200_000,
        '{"a":"' + "{" * 200_000,
        "{" + " " * 200_000 + '"',
        "[" * 200_000,
        '{" ' * 70_000,
        '{"a", ' * 40_000,
        '{"a" 1' * 40_000,
        '{" \n' * 60_000,
        '{x"y"\n' * 40_000,
        '{"\\"' * 60_000,
        '{"a":[' * 30 + "1" + "]}" * 30 + "{" * 100_000,
        "{" + ",".join(f'"{n}":0' for n in range(20_000)) + ',"19999":1}',
    ],
    ids=lambda reply: f"{reply[:9]}...{reply[-6:]}",
)
def test_hostile_texts_are_read_in_linear_time(reply):
    """Each would take minutes if the time were the square of the length."""
    assert isinstance(read(reply), Readable | Unreadable)
    assert isinstance(read(f"So: {reply}"), Readable | Unreadable)


WRAPPINGS = {
    "bare": "¤",
    "white space": "\r\n ¤\t\n",
    "byte order mark": "\ufeff\n¤",
    "fence": "```json\n¤\n```",
    "plain fence": "```\n¤```",
    "fence that never ends": "```json\n¤",
    "thought": '<think>Perhaps {"score": 1}?</think>\n¤',
    "thought, fenced": "<reasoning>\nhm\n</reasoning>\n```json\n¤\n```",
    "thought twice": '<think>Hm.</think>\n<think>Or {"score": 1}?</think>\n¤',
    "thought within a thought": "<think>Hm. <think>No.</think> Yes.</think>¤",
    "thought without its opening tag": "I should be strict.\n</think>\n\n¤",
    "draft without its opening tag": 'Perhaps {"score": 1}?\n</think>\n\n¤',
    "bracketed thought without its opening tag": "[1] be strict</think>¤",
}


@pytest.mark.parametrize("name", WRAPPINGS)
@given(value=OBJECTS)
def test_wrapping_around_an_object_is_taken_off(name, value):
    before, after = WRAPPINGS[name].split("¤")
    wrapped = name not in {"bare", "white space", "byte order mark"}
    reading = read(before + json.dumps(value, ensure_ascii=False) + after)
    assert reading == Readable(value, wrapped)


IN_PROSE = {
    "prose": "My verdict is ¤ as asked.",
    "prose before it": "Here it is:\n¤",
    "prose after it": "¤\nThat is all.",
    "a number after it": "¤ 5",
    "fence in prose": "Here it is:\n\n```json\n¤\n```\nAnything else?",
    "prose after a thought": "<think>hm</think>So: ¤",
    "boxed": "\\boxed\n¤\n",
    "a full stop": "¤.",
    "answer tags": "<answer>¤</answer>",
    "tokens": "<|start|>assistant<|message|>¤<|end|>",
    "a channel of a candidate": "It says <|channel|>final<|message|>¤",
    "en, cannot": "I cannot judge this. The form would have been: ¤",
    "zh, unable": "无法给出评分。示例：¤",
    "zh, declined": "该请求已被拒绝。格式：¤",
    "ru, declined": "Запрос отклонён. Формат: ¤",
    "ja, declined": "このリクエストは処理されませんでした。例：¤",
}


@pytest.mark.parametrize("name", IN_PROSE)
@given(value=OBJECTS)
def test_an_object_in_prose_is_never_taken(name, value):
    before, after = IN_PROSE[name].split("¤")
    reading = read(before + json.dumps(value, ensure_ascii=False) + after)
    assert reading == Unreadable("prose_around")


@given(OBJECTS)
def test_the_same_object_twice_is_two(value):
    first, second = json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)
    assert read(f"{first}\n{second}") == Unreadable("two_objects")


@given(OBJECTS, OBJECTS)
def test_two_different_objects_are_never_chosen_between(one, other):
    other["one more"] = 1
    assert read(f"{json.dumps(one)} or {json.dumps(other)}") == Unreadable("two_objects")


@given(st.data(), OBJECTS)
def test_a_text_that_breaks_off_is_told_as_such(data, value):
    text = json.dumps({"outer": {"first": {"whole": 1}, "then": value}}, ensure_ascii=False)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    assert read(cut) == Unreadable("truncated")
    assert read(f"```json\n{cut}").problem in {"truncated", "not_json"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("\ufeff", "empty"),
        ('{"a":1,"a":2}', "duplicate_key"),
        ('{"x":{"a":1,"a":1}}', "duplicate_key"),
        ('Well: {"a":1,"a":2}', "duplicate_key"),
        ('{"a":NaN}', "not_finite"),
        ('{"a":[Infinity]}', "not_finite"),
        ('{"a":-Infinity}', "not_finite"),
        ('{"a":"\\ud800"}', "bad_text"),
        ('{"\\udc00":1}', "bad_text"),
        ('{"a":"\ud800"}', "bad_text"),
        ('{"a":' * 65 + "1" + "}" * 65, "too_deep"),
        ('{"a":' + "[" * 5000 + "]" * 5000 + "}", "too_deep"),
        ('{"a":1', "truncated"),
        ('{"a":tr', "truncated"),
        ('{"a":"he sai', "truncated"),
        ('Here: {"a":{"b":1},', "truncated"),
        ('[{"a":1}, {"b"', "truncated"),
        ('{"a":"he said "hi" to me"}', "not_json"),
        ('{"a":"6" tall"}\n\nThat is all.', "not_json"),
        ("{'a': 1}", "not_json"),
        ('{"a":1,}', "not_json"),
        ('{"a":"two\nlines"}', "not_json"),
        ('{"a":1} and {"b":}', "two_objects"),
        ('{"a":1}{}', "two_objects"),
        ('{"a" 1} and {"a":1}', "not_json"),
        ('It ends in "x {" here.\n{"a":1,}', "not_json"),
        ('Here: {"', "truncated"),
        ('Here: {"sco', "truncated"),
        ('Here: {"score"', "truncated"),
        ("[]", "not_object"),
        ('[{"a":1}]', "not_object"),
        ('```json\n[{"a":1}]\n```', "not_object"),
        ("<think>hm</think>[1]", "not_object"),
        ("<think>I would say", "truncated"),
        ('<think>so {"a":1}', "truncated"),
        ("four out of five", "not_json"),
        ("x" * (4 * 1024 * 1024 + 1), "not_json"),
        ("I'm sorry, but I can't help with that.", "refused"),
        ("I’m unable to assist with this request.", "refused"),
        ("I cannot score this text.", "refused"),
        ("К сожалению, я не могу оценить этот текст.", "refused"),
        ("Извините, с этим я помочь не могу.", "refused"),
        ("抱歉，我无法对此进行评分。", "refused"),
        ("申し訳ありませんが、お手伝いできません。", "refused"),
        ("<think>No.</think>I won't do this.", "refused"),
        ("A long essay. " * 100 + "I cannot say more.", "not_json"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_wrong_has_a_kind(reply, kind):
    found = read(reply)
    assert isinstance(found, Unreadable), found
    assert found.problem == kind


@pytest.mark.parametrize(
    ("reply", "about"),
    [
        ('{"a b":1,"a b":2}', "a b"),
        ('{"q\\"":1,"q\\"":2}', 'q"'),
        ('{"x":{"a":1},"y":[{"a":{}},{"a":{"b":"{:,","c":2,"b":1}}]}', "b"),
        ('{"a":{"a":1,"b":{"a":1}},"a":2}', "a"),
        ('{"a":1,"\\u0061":2}', "a"),
    ],
)
def test_the_key_that_stands_twice_is_named(reply, about):
    assert read(reply) == Unreadable("duplicate_key", about)


@pytest.mark.parametrize(
    ("reply", "about", "near"),
    [
        ('{"a":NaN}', "NaN", '{"a":NaN}'),
        ('{"t":"NaN","s":{"x":1,"score":-Infinity}}', "-Infinity", '…"score":-Infinity}}'),
        ('{"s":["NaN",{"e":[1,"]",Infinity]}]}', "Infinity", '…"]",Infinity]}]}'),
    ],
)
def test_a_number_that_json_has_not_is_told_with_what_stands_around_it(reply, about, near):
    reading = read(reply)
    assert isinstance(reading, Unreadable)
    assert (reading.problem, reading.about) == ("not_finite", about)
    assert reading.near.endswith(near.lstrip("…"))


@pytest.mark.parametrize("depth", [1, 63])
def test_what_the_contract_could_nest_is_not_too_deep(depth):
    assert isinstance(read('{"a":' * depth + "1" + "}" * depth), Readable)


def test_an_apology_inside_an_object_is_no_refusal():
    assert read('{"a":"I am sorry"}') == Readable({"a": "I am sorry"}, is_wrapped=False)


def test_a_pair_of_surrogates_is_one_character():
    assert read('{"a":"\\ud834\\udd1e"}') == Readable({"a": "𝄞"}, is_wrapped=False)
