"""Which characters hide, and which writing needs."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.text import hidden_characters, visible

HIDING = {
    "control": "\x00 \x01 \x07 \x08 \x0b \x0c \x0e \x1b \x1f \x7f \x80 \x85 \x9b \x9f",
    "bidi": "\u061c \u200e \u200f \u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069",
    "zero_width": "\u00ad \u034f \u115f \u180b \u180e \u200b \u200c \u200d \u2060 \u2064 \u206a"
    " \u3164 \ufe00 \ufe0f \ufeff \uffa0 \ufff9 \U000e0100",
    "tags": "\U000e0000 \U000e0001 \U000e0020 \U000e0041 \U000e007f",
}
CASES = [(kind, letter) for kind, letters in HIDING.items() for letter in letters.split(" ")]
IDS = [f"{kind}-{ord(letter):04x}" for kind, letter in CASES]


@pytest.mark.parametrize(("kind", "letter"), CASES, ids=IDS)
@pytest.mark.parametrize("frame", ["pass{}word", "{}", "a {} b", "漢字 {}", "слово{}", "{}\n"])
def test_what_hides_is_named_and_shown(kind, letter, frame):
    text = frame.format(letter)
    assert hidden_characters(text) == [kind]
    assert letter not in visible(text)
    assert f"{ord(letter):04x}" in visible(text)


@pytest.mark.parametrize("code", range(128))
def test_of_ascii_only_controls_that_lay_out_no_text_are_hidden(code):
    letter = chr(code)
    kinds = [] if letter.isprintable() or letter in "\t\n" else ["control"]
    for texts in ((letter,), (f"a{letter}b",), ("plain", f"\t{letter}a\n"), (f"{letter}a", "漢字")):
        assert hidden_characters(*texts) == kinds


NEEDED = (
    "plain text,\twith tabs\nand lines\r\nof two kinds",
    "👩\u200d💻 👨\u200d👩\u200d👧\u200d👦 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈",
    "👁\ufe0f\u200d🗨\ufe0f 🧑🏽\u200d🚀",
    "1\ufe0f\u20e3 #\ufe0f\u20e3 ©\ufe0f ®\ufe0e ™\ufe0f",
    "☎\ufe0e ✔\ufe0f 〰\ufe0f ㊙\ufe0f 🀄\ufe0f",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "葛\U000e0100飾区 辻\U000e0101 神\ufe00 祇\ufe00 、\ufe00。\ufe01 ！\ufe00",
    "می\u200cخواهم ه\u200d",
    "क्\u200dष क्\u200cष ക്\u200d ශ්\u200dරී",
    "ᠠ\u180bᠨ\u180c",
    "⠓⠑⠇⠇⠕\u2800⠺⠕⠗⠇⠙ ⣿\u2800\u2800\u2800\u2800⣿",
    "ᄀ\u1160ᆨ \u115fᅡ",
    "Ещё «ёлка» 漢字、かな ｶﾅ a\u00a0b\u3000c\u2009d\u202fe",
    "السلام ۝١ שלום",
    "𝒜𝓑 𐍈 𠀋 🜁",
)


@pytest.mark.parametrize("text", NEEDED)
def test_what_writing_needs_is_left(text):
    assert hidden_characters(text) == []
    assert visible(text).replace("\\u000d", "\r") == text


def test_what_writing_needs_hides_where_it_stands_alone():
    assert hidden_characters("A\ufe0f") == ["zero_width"]
    assert hidden_characters("❤\ufe0f\ufe0f") == ["zero_width"]
    assert hidden_characters("漢\U000e0100\U000e0101") == ["zero_width"]
    assert hidden_characters("می\u200c\u200c") == ["zero_width"]
    assert hidden_characters("\U0001f3f4\U000e0067\U000e0062 and no more") == ["tags"]
    assert hidden_characters("over\rwritten") == ["control"]


@given(st.text())
def test_nothing_that_is_shown_controls_a_terminal(text):
    shown = visible(text)
    assert visible(shown) == shown
    for letter in shown:
        assert letter in "\n\t" or unicodedata.category(letter) not in (
            "Cc",
            "Cs",
            "Co",
            "Zl",
            "Zp",
        )
        assert unicodedata.bidirectional(letter) not in ("LRE", "RLE", "LRO", "RLO", "PDF", "FSI")


def test_long_texts_are_gone_through_in_their_length():
    for letter in ("\u2800", "\u200d", "\ufe0f", "\U000e0061", "\x00", "\U0001f3f4"):
        text = letter * 200_000
        assert len(hidden_characters(text)) <= 1
        visible(text)
