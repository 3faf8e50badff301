"""The odds of options, from tokens that were split in whatever way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from evenhand.judges.logprobs import Token, odds, read_tokens
from tests.unit.judges.conftest import CHOICE

ALL = {"A": 0.7, "B": 0.2, "tie": 0.1}


def spelled(*steps: str | bytes | tuple[str | bytes, Mapping[Any, float]]) -> list[Token]:
    """Tokens: a bare one was certain, one with alternatives has their probabilities."""
    made: list[Token] = []
    for step in steps:
        raw, tops = step if isinstance(step, tuple) else (step, {step: 1.0, "never": 1e-9})
        listed = [(_bytes(other), math.log(share)) for other, share in tops.items()]
        own = next((number for other, number in listed if other == _bytes(raw)), -20.0)
        made += one_token(_bytes(raw), own, listed)
    return made


def one_token(raw: bytes, logprob: Any, tops: list[tuple[bytes, Any]]) -> list[Token]:
    return read_tokens(lambda: [((raw, logprob), tops)])


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def text_of(tokens: list[Token]) -> str:
    return b"".join(one.raw for one in tokens).decode()


def shares(tokens: list[Token], schema: Any = CHOICE, text: str | None = None) -> Any:
    """The odds of `winner` as probabilities, rounded."""
    found = odds(text_of(tokens) if text is None else text, tokens, schema).get("winner")
    return found and {option: round(math.exp(number), 3) for option, number in found.items()}


@pytest.mark.parametrize(
    "tokens",
    [
        spelled('{"winner', '":"', ("A", ALL), '"}'),
        spelled('{"winner', '":', ' "', ("A", ALL), '"', "}"),
        spelled('{"', "win", "ner", '"', ":", " ", '"', ("A", ALL), '"}'),
        spelled('{"winner":', (' "A', {' "A': 0.7, ' "B': 0.2, ' "t': 0.1}), '"}'),
        spelled('{"winner":', (' "A', {' "A': 0.5, '"A"}': 0.2, '"B': 0.2, ' "tie"': 0.1}), '"}'),
        spelled('{"winner', ('":"A', {'":"A': 0.7, '":"B': 0.2, '": "tie': 0.1}), '"}'),
        spelled('{"winner":"', ('A","', {'A","': 0.4, "A": 0.3, "B": 0.2, "ti": 0.1}), 'x":1}'),
        spelled('{"winner":\n  "', ("A", ALL), '"\n}'),
        spelled('```json\n{"winner": "', ("A", ALL), '"}\n```\n'),
        spelled('Perhaps {"winner": "B"}? {no} {"winner": "', ("A", ALL), '"}'),
        spelled('{"criteria": {"winner": "B"}, "winner": "', ("A", ALL), '"}'),
        spelled('{"explanation": "\\"winner\\": \\"B\\"", "winner": "', ("A", ALL), '"}'),
        spelled('{"winner": "B", "winner": "', ("A", ALL), '"}'),
        spelled(
            '{"explanation": "好', b"\xf0\x9f", b"\x98\x80", '", "winner": "', ("A", ALL), '"}'
        ),
    ],
)
def test_however_it_is_split_the_odds_are_those_of_the_options(tokens: list[Token]) -> None:
    assert shares(tokens) == ALL


def test_tokens_that_merge_the_quote_are_counted_on_the_way() -> None:
    """A part of `B` was decided one token earlier, where the quote came with it."""
    tokens = spelled(
        '{"winner":', (' "', {' "': 0.9, ' "B': 0.1}), ("A", {"A": 0.5, "B": 0.5}), '"}'
    )
    found = shares(tokens, {"properties": {"winner": {"enum": ["A", "B"]}}})
    assert found == {"A": 0.45, "B": 0.55}


def test_what_leads_nowhere_is_left_out_and_the_rest_adds_up_to_one() -> None:
    tokens = spelled(
        '{"winner":"', ("A", {"A": 0.3, "B": 0.1, "tie": 0.1, "C": 0.4, "1": 0.1}), '"}'
    )
    assert shares(tokens) == {"A": 0.6, "B": 0.2, "tie": 0.2}


def test_a_token_that_would_end_another_key_is_left_out() -> None:
    tops = {'":"A': 0.3, '":"B': 0.1, '":"tie': 0.1, 's":"B': 0.4, 's:"B': 0.1}
    assert shares(spelled('{"winner', ('":"A', tops), '"}')) == {"A": 0.6, "B": 0.2, "tie": 0.2}


def test_an_option_that_is_not_listed_gets_the_smallest_listed_as_a_bound() -> None:
    tokens = spelled('{"winner":"', ("A", {"A": 0.7, "B": 0.2, "x": 0.1}), '"}')
    assert shares(tokens) == {"A": 0.7, "B": 0.2, "tie": 0.1}


def test_options_that_begin_alike_are_told_apart_where_they_differ() -> None:
    schema = {"properties": {"winner": {"enum": ["A", "A+", "tie"]}}}
    tokens = spelled(
        '{"winner":"', ("A", {"A": 0.8, "tie": 0.2}), ("+", {"+": 0.75, '"': 0.25}), '"}'
    )
    assert shares(tokens, schema) == {"A": 0.2, "A+": 0.6, "tie": 0.2}


def test_options_in_other_scripts_may_be_split_inside_a_character() -> None:
    schema = {"properties": {"winner": {"enum": ["甲", "乙"]}}}
    first, second = "甲".encode(), "乙".encode()
    assert (first[:1], second[:1]) == (b"\xe7", b"\xe4")
    tokens = spelled('{"winner":"', (first[:2], {first[:2]: 0.6, second[:2]: 0.4}), first[2:], '"}')
    assert shares(tokens, schema) == {"甲": 0.6, "乙": 0.4}


def test_the_chosen_token_may_be_one_that_is_not_listed() -> None:
    tokens = spelled('{"winner":"', ("tie", {"A": 0.6, "B": 0.4}), '"}')
    found = odds(text_of(tokens), tokens, CHOICE)["winner"]
    assert found["tie"] == pytest.approx(-20, abs=0.01)


def test_impossible_tokens_do_no_harm() -> None:
    tops = [(b"A", 0.0), (b"B", -9999.0)]
    tokens = [*spelled('{"winner":"'), *one_token(b"A", 0.0, tops), *spelled('"}')]
    found = odds(text_of(tokens), tokens, CHOICE)["winner"]
    assert found == {"A": 0.0, "B": -9999.0, "tie": -9999.0}


def test_thoughts_before_the_reply_are_spelled_and_skipped() -> None:
    tokens = spelled('<think>{"winner":"B"}</think>\n\n', '{"winner":"', ("A", ALL), '"}', "\n")
    assert shares(tokens, text='{"winner":"A"}') == ALL


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (spelled('{"winner":"', ("A", ALL), '"}'), '{"winner":"B"}'),
        (spelled('{"winner":"', ("A", ALL)), '{"winner":"A"}'),
        (spelled('{"winner":"', ("A", ALL), '"}', "<end>"), '{"winner":"A"}'),
        (spelled('{"winner":"', ("C", ALL), '"}'), '{"winner":"C"}'),
        (spelled('{"winner":"', ("\\u0041", ALL), '"}'), '{"winner":"\\u0041"}'),
        (spelled('{"winner":"', ("A", {"A": 1.0}), '"}'), '{"winner":"A"}'),
        (spelled('{"winner":', ("null", ALL), "}"), '{"winner":null}'),
        (spelled('{"other":"', ("A", ALL), '"}'), '{"other":"A"}'),
        (spelled('"', ("A", ALL), '"'), '"A"'),
        (spelled("{" * 100_000), "{" * 100_000),
        (spelled('{"a":' * 100_000), '{"a":' * 100_000),
        (spelled(" "), " "),
        ([], ""),
    ],
)
def test_where_the_tokens_do_not_tell_there_are_no_odds(tokens: list[Token], text: str) -> None:
    assert odds(text, tokens, CHOICE) == {}


def test_only_top_level_choices_among_strings_have_odds() -> None:
    schema = {
        "properties": {
            "sure": {"enum": ["high", "low"]},
            "score": {"enum": [1, 2]},
            "kind": {"enum": ["fact", None]},
            "one": {"enum": ["only"]},
            "free": {"type": "string"},
            "any": True,
            "inner": {"properties": {"winner": {"enum": ["A", "B"]}}},
        }
    }
    text = '{"sure":"low","score":1,"kind":"fact","one":"only","free":"x","inner":{"winner":"A"}}'
    tokens = spelled(*((one, {one: 0.5, "high": 0.5}) for one in text[:9]), *_by_letter(text[9:]))
    assert list(odds(text, tokens, schema)) == ["sure"]
    assert odds(text, tokens, None) == {}
    assert odds(text, tokens, {}) == {}


def _by_letter(text: str) -> list[tuple[str, dict[str, float]]]:
    return [(letter, {letter: 0.9, "h": 0.05, "?": 0.05}) for letter in text]


@pytest.mark.parametrize(
    "number", [None, "x", float("nan"), float("inf"), float("-inf"), [], 10**400, -(10**400)]
)
def test_a_log_probability_that_is_none_makes_no_token(number: Any) -> None:
    assert one_token(b"A", number, []) == []
    assert one_token(b"A", 0.0, [(b"B", number)]) == []
