"""The words that one of two answers has and the other has not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

COMPARED_CHARS = 20_000
"""Longer texts are not compared."""
_STEPS = 1_000_000
"""Pairs of equal words in two texts; where there are more, comparing takes seconds."""
_ALIKE = 0.5
"""Texts with less in common are not two forms of one text: nearly every word would be marked."""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(f"[{_CJK}]|[^\\W{_CJK}]+|[^\\w\\s]")
Span = tuple[int, int]


class Differences(NamedTuple):
    """The stretches of two texts that the other has not: code points, half-open."""

    first: Sequence[Span] = ()
    second: Sequence[Span] = ()


def differences(first: str, second: str) -> Differences | None:
    """Return the differences of two texts, by words, or characters of Chinese and Japanese; none
    of texts that are equal or hardly alike. Return None where they are too long to compare."""
    if max(len(first), len(second)) > COMPARED_CHARS:
        return None
    words = [list(_WORD.finditer(text)) for text in (first, second)]
    texts = [[word[0] for word in each] for each in words]
    counts = [Counter(each) for each in texts]
    shared = sum((counts[0] & counts[1]).values())
    steps = sum(number * counts[1][word] for word, number in counts[0].items())
    if 2 * shared < _ALIKE * (len(texts[0]) + len(texts[1])):
        return Differences()
    if steps > _STEPS:
        return None
    matcher = SequenceMatcher(None, texts[0], texts[1])
    if matcher.ratio() < _ALIKE:
        return Differences()
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    spans = [
        [
            (words[side][start].start(), words[side][end - 1].end())
            for start, end in ends
            if start < end
        ]
        for side, ends in enumerate(
            ([code[1:3] for code in changes], [code[3:5] for code in changes])
        )
    ]
    return Differences(*spans)
