import pytest

from evenhand.judges.embedded.options import Written
from evenhand.judges.embedded.prose import grammar, read


def test_a_text_that_came_to_its_end_is_kept_whole():
    assert read(Written('He said \\"yes\\"."', 9, True), 100) == 'He said "yes".'


def test_a_text_stays_on_one_line():
    assert read(Written('one\\n  two"', 5, True), 100) == "one two"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("It is right. It is so. And al", "It is right."),
        ("It is 2.5 metres lo", "It is 2.5 metres"),
        ("答案正确。因为它", "答案正确。"),
        ("答案正确因为它", "答案正确因为它"),
        ("答案正确因为\ufffd", "答案正确因为"),
        ("It says so \\", "It says"),
    ],
)
def test_a_text_that_broke_off_is_cut_at_a_sentence_or_a_word(written, kept):
    assert read(Written(written, 9, False), 100) == kept


def test_a_text_is_never_longer_than_allowed():
    assert read(Written('one two three"', 5, True), 9) == "one two"


def test_a_sentence_is_said_once():
    assert read(Written('It is so. It is so. Or not. It is so."', 9, True), 99) == (
        "It is so. Or not."
    )


def test_an_escaped_quote_at_the_break_does_not_end_the_text():
    assert read(Written('He said \\"', 4, False), 99) == "He said"


def test_a_required_text_may_not_be_empty():
    assert grammar(least=1).startswith("root ::= char+")
    assert grammar().startswith("root ::= char*")
