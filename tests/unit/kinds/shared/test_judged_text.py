"""When a reply is worth holding against the text that was judged."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.kinds.reply import JudgedText

REASON = "flawless conclusions, all of them"
LETTERS_APART = re.compile(r"(?:\b\w ){4}")


@pytest.mark.parametrize("start", ["", "x", "an", "one", "It is so: "])
@pytest.mark.parametrize(
    ("text", "is_hidden"),
    [
        (" f l a w l e s s ", True),
        (" f l a w ", True),
        (" f l a\n", False),
        ("\n            indented far\n        and less", False),
        ("  f   l   a   w  ", False),
        (" fl aw le ss ", False),
    ],
)
def test_a_text_with_letters_set_apart_may_hide_words(
    start: str, text: str, is_hidden: bool
) -> None:
    assert JudgedText(start + text).may_give([REASON]) == is_hidden


@given(st.text("ab \n.", max_size=40))
def test_letters_set_apart_are_found_wherever_they_stand(text: str) -> None:
    assert JudgedText(text).may_give([REASON]) == (LETTERS_APART.search(text) is not None)
