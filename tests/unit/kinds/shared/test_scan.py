"""A text gone through a chunk at a time gives what it gives when it is taken in whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.kinds.shared.scan import CHUNK_CHARS, REACH_CHARS, chunks, matches, search

PATTERNS = {
    "a letter": "b",
    "a run": "b+",
    "a long run": "[bc]+",
    "only at the end": r"b\Z",
    "not before another": "b(?!c)",
    "after another": "(?<=a)c",
    "at the beginning": r"\Ab",
    "a word": "bcb|cc",
}
PLACES = [0, 1, CHUNK_CHARS - 1, CHUNK_CHARS, CHUNK_CHARS + 1, CHUNK_CHARS + REACH_CHARS - 1]
PLACES += [CHUNK_CHARS + REACH_CHARS, 2 * CHUNK_CHARS - 1, 2 * CHUNK_CHARS]
ISLANDS = st.lists(
    st.tuples(
        st.sampled_from(PLACES),
        st.text("abc", min_size=1, max_size=4) | st.just("bc" * CHUNK_CHARS),
    ),
    max_size=4,
)


def text_of(islands: list[tuple[int, str]]) -> str:
    """A long text of dashes with something here and there."""
    text = "-" * (2 * CHUNK_CHARS + 2 * REACH_CHARS)
    for place, island in islands:
        text = text[:place] + island + text[place + len(island) :]
    return text


@pytest.mark.parametrize("name", PATTERNS)
@given(islands=ISLANDS, at=st.sampled_from([0, 1, CHUNK_CHARS]))
def test_what_is_found_is_found_all_the_same(name, islands, at):
    pattern, text = re.compile(PATTERNS[name]), text_of(islands)
    first, expected = search(pattern, text, at), pattern.search(text, at)
    assert (first and first.span()) == (expected and expected.span())
    assert [one.span() for one in matches(pattern, text)] == [
        one.span() for one in pattern.finditer(text)
    ]


@given(ISLANDS, st.sampled_from(["x", " ", ".", "\u0301", "字"]))
def test_chunks_follow_each_other_and_are_short_where_there_are_letters(islands, filler):
    text = text_of(islands).replace("-", filler) * 3
    cuts = list(chunks(text))
    assert "".join(text[start:end] for start, end in cuts) == text
    assert all(start < end for start, end in cuts)
    for cut, _ in cuts[1:]:
        assert not (text[cut - 1].isspace() and text[cut].isspace())
    if filler in "x字":
        assert all(end - start <= CHUNK_CHARS + 10 for start, end in cuts)


def test_nothing_has_no_chunks():
    assert list(chunks("")) == []
