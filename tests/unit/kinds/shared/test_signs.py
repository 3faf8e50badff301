"""What is sought only where there is a sign of it: the short way finds what the long one does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.kinds.shared import judged_text, remarks, spoken
from evenhand.kinds.shared.render import hidden_characters
from evenhand.kinds.shared.scan import matches
from evenhand.unseen import KINDS, UNSEEN, kind_of

PIECES = (
    *("a b c d e ", " a b c ", "word ", "x\\u0041", "&amp;", "*b*", "_u_", "\u200b", "\uff21"),
    *("\n", "\t", "\r\n", "\x07", "answer b ", "response 1 ", "candidate 2\n", "as  if ", "like "),
    *(
        '"quoted words"',
        "`code`",
        "'so'",
        "«так»",
        "「引用」",
        "http://x.test/a b",
        "слово ",
        "评分",
    ),
    *("written by ", "stylish ", "не так ", "かな", "it's "),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join)


@given(TEXTS)
def test_words_that_look_otherwise_are_found(text: str) -> None:
    assert judged_text._hides_words(text) is judged_text._is_disguised(text)


@given(TEXTS)
def test_quotations_and_code_are_left_out(text: str) -> None:
    assert spoken._prose(text) == spoken._QUOTED.sub(" ", text[: spoken.READ_CHARS])


@given(TEXTS, st.sampled_from(["en", "ru", "zh", "ja", ""]))
def test_another_language_is_told(text: str, language: str) -> None:
    most = spoken.spoken(text)
    told = most if language and most not in (None, language) else None
    assert spoken.other_language(text, language) == told


@given(TEXTS)
def test_a_cue_for_a_guess_is_found(text: str) -> None:
    low = text.casefold()
    words = any(word in low for word in remarks._CUES._words)
    assert remarks._has_cue(low) is (words or remarks._OTHER_CUE.search(low) is not None)


@given(TEXTS, TEXTS)
def test_hidden_characters_of_several_texts_are_those_of_each(first: str, second: str) -> None:
    kinds = {kind_of(match) for text in (first, second) for match in matches(UNSEEN, text)}
    assert hidden_characters(first, second) == [kind for kind in KINDS if kind in kinds]
