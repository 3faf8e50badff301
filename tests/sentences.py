"""Sentences, known by their keys: in errors, in notes and in what was printed."""

from __future__ import annotations

import re
from contextlib import contextmanager
from html import unescape
from string import Formatter

import pytest

from evenhand.words import _Filler, words


def keys(sentences):
    """Return the keys of notes."""
    return [sentence.key for sentence in sentences]


def is_told(text, key, language="en", /, **values):
    """Return True if a text, of a terminal or a page, has the sentence of a key with these values
    of its places: a number as the sentence writes it, a string as it is."""
    say, pattern = words(language), ""
    for literal, name, spec, _ in Formatter().parse(say._text(key)):
        pattern += re.escape(_flat(literal))
        if name in values:
            value = values[name]
            told = value if isinstance(value, str) else _Filler(say).format_field(value, spec or "")
            pattern += re.escape(_flat(told))
        elif name:
            pattern += ".*?"
    return re.search(pattern, _flat(text)) is not None


def _flat(text):
    """Return a text without tags and blanks, with the dashes and arrows of a terminal."""
    plain = words("en", plain=True)._plain(unescape(re.sub(r"</?\w[^>]*>", "", text)))
    return "".join(plain.split())


@contextmanager
def refused(kind, key, says=""):
    """The block raises an error of this kind and key; a user reads what `says` matches."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.args[0].key == key
    assert re.search(says, str(caught.value))
