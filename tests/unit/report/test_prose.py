"""Prose on lines of a terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from evenhand.report.terminal.prose import beginning, ending, wrapped

TEXTS = (
    "A plain sentence of several words, and one more.",
    "GPT-4 と Claude が 80 問への 5 モデルの回答を、どの組も両方の順序で比べた記録です。",
    "Очень длинное слово: человеконенавистничество.",
    "x" * 70,
    "",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [12, 25, 80])
def test_no_line_is_too_wide_and_no_letter_is_lost(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(0 < cell_len(line) <= width and line == line.rstrip() for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_japanese_breaks_between_letters_but_not_before_a_closing_mark() -> None:
    lines = wrapped("日本語の文章です。「はい」と言った。", 10)
    assert lines[0] == "日本語の文"
    assert all(line[0] not in "。、」" for line in lines)
    assert wrapped("カッパー", 4) == ["カッ", "パー"]
    assert wrapped("。カッパー", 4) == ["。", "カッ", "パー"]


def test_intervals_percents_and_no_break_spaces_stay_on_a_line() -> None:
    assert wrapped("wins 62 % [38, 82]; rest", 14) == ["wins 62 %", "[38, 82]; rest"]
    assert wrapped("at 95 %]", 5) == ["at", "95 %]"]
    assert wrapped("C1\u00a0Facts; C2\u00a0Scope", 12) == ["C1 Facts;", "C2 Scope"]


@pytest.mark.parametrize("text", TEXTS[:4])
@pytest.mark.parametrize("part", [beginning, ending])
def test_a_part_says_that_it_is_one(part: object, text: str) -> None:
    assert callable(part)
    lines = part(text, 20, 2)
    is_whole = len(wrapped(text, 20)) <= 2
    assert len(lines) <= 2 and all(cell_len(line) <= 20 for line in lines)
    assert ("…" in "".join(lines)) is not is_whole


def test_a_control_character_is_shown() -> None:
    assert wrapped("a\x1b[31mb", 40) == ["a\\u001b[31mb"]
