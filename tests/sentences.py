"""Sentences of the words, found by their keys in notes and in what was printed."""

from __future__ import annotations

import re
from string import Formatter

from evenhand.words import words


def keys(sentences):
    """Return the keys of notes."""
    return [sentence.key for sentence in sentences]


def is_told(text, key, language="en", **values):
    """Return True if a text has the sentence of a key, with these values of its places, wherever
    its lines break."""
    say = words(language)
    parts = [
        re.escape(_flat(literal))
        + (re.escape(_flat(str(values[name]))) if name in values else ".*?" * bool(name))
        for literal, name, _, _ in Formatter().parse(_flat(say._text(key)))
    ]
    return re.search("".join(parts), _flat(text)) is not None


def _flat(text):
    return re.sub(r"\s+", " ", text)
