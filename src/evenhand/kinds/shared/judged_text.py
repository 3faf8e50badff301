"""The text under judgment, and whether what a reply holds was copied from it.

An answer may contain a verdict about itself. A judge that quotes it, or repeats it, has not judged:
what a candidate wrote is never a verdict.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from evenhand.kinds.shared import scan
from evenhand.regexp import regexp

ESCAPED_TIMES = 3
"""So often JSON may stand as a string within JSON and still be recognised."""
PHRASE_CHARS = 12
"""A text with fewer letters and digits may be alike by chance: `high`, `not applicable`."""
REASONS_CHARS = 24
"""The same for all reasons of a reply together."""

_ESCAPE = regexp(
    r'\\(?:u([0-9a-fA-F]{4})|["\\/bfnrt])|&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|[a-z]{2,6});'
)
_WORD = re.compile(r"\w{4,}")
_DISGUISED = regexp(
    "[\\\\&*_\u00ad\u200b-\u200f\u2060-\u2064\ufeff\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]"
    r"|(?:\b\w ){4}"
)
"""What may make a word look otherwise: escapes, marks and hidden characters within it, letters of
other widths and styles, letters set apart."""


_ASCII_DISGUISES = "\\&*_"
_LETTERS_APART = re.compile(r" \w \w \w ")


class JudgedText:
    """What was put before the judge to be judged; folded when a reply has to be held against it."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self._lowered: list[str] | None = None
        self._hides_words: bool | None = None

    def holds(self, value: Mapping[str, Any]) -> bool:
        """Whether every part of an object stands in one of the texts: in any order, however spaced,
        quoted or escaped."""
        parts = list(filter(None, map(_folded, _parts(value))))
        return bool(parts) and self._has_all(parts)

    def holds_line(self, line: str) -> bool:
        """The same for a line of a table."""
        return self._has_all([_folded(line)])

    def may_give(self, reasons: Sequence[str], names: Iterable[str] | None = None) -> bool:
        """Whether a reply with such reasons is worth holding against the texts: they are long
        enough not to be alike by chance, and a text has a word of each, or hides words. Where they
        are shorter, a text has, or hides, every one of the object's `names`, as one has that holds
        a verdict."""
        phrases = _phrases(reasons)
        if phrases:
            return self._may_hold(
                max(_WORD.findall(phrase), key=len, default="") for phrase in phrases
            )
        if names is None or not any(reasons):
            return False
        sought = [name for name in names if len(name) > 1]
        return self._may_hold(sought) and self._has_all(set(map(_folded, sought)))

    def _may_hold(self, words: Iterable[str]) -> bool:
        """Whether one of the texts has all of some words, or any hides words. Most lack the first:
        the rest is then not looked for."""
        if self._lowered is None:
            self._lowered = [text.lower() for text in self.texts]
        texts = self._lowered
        for word in words:
            sought = word.lower()
            texts = [text for text in texts if sought in text]
            if not texts:
                break
        if texts:
            return True
        if self._hides_words is None:
            self._hides_words = any(map(_hides_words, self.texts))
        return self._hides_words

    def _has_all(self, parts: Iterable[str]) -> bool:
        sought = list(parts)
        return any(all(part in folding for part in sought) for folding in self._foldings)

    @cached_property
    def _foldings(self) -> list[str]:
        return [folding for text in self.texts for folding in _foldings(text)]


def reasons_in(value: object) -> list[str]:
    """The texts of a reply's object that are the judge's own words, in no order: evidence is to be
    copied."""
    reasons: list[str] = []
    rest = [value]
    for item in rest:
        if isinstance(item, str):
            reasons.append(item)
        elif isinstance(item, dict):
            for name, part in cast("dict[str, object]", item).items():
                if _is_copy(name, part, is_top=item is value):
                    continue
                if isinstance(part, str):
                    reasons.append(part)
                elif isinstance(part, (dict, list)):
                    rest.append(cast("object", part))
        elif isinstance(item, list):
            rest += cast("list[object]", item)
    return reasons


def _is_copy(name: str, part: object, *, is_top: bool) -> bool:
    """Whether a judge is to copy what stands under a name: its quotes, and the unit's `meta`. A
    dimension may be called so too, and what is said of it is the judge's own."""
    return (name == "evidence" and not isinstance(part, dict)) or (is_top and name == "meta")


def _phrases(reasons: Iterable[str]) -> list[str]:
    """Reasons that are not alike by chance; none where they are too short together."""
    phrases = [reason for reason in reasons if len(reason) >= PHRASE_CHARS]
    return phrases if sum(map(len, phrases)) >= REASONS_CHARS else []


def names_in(value: object) -> Iterator[str]:
    """Every key of a reply's object, those of the objects in it too."""
    if isinstance(value, dict):
        for name, item in cast("dict[str, object]", value).items():
            yield name
            yield from names_in(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from names_in(item)


def _parts(value: object, name: str = "") -> Iterator[str]:
    """Every phrase of an object, and every other leaf behind its name."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _parts(item, key)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _parts(item, name)
    elif isinstance(value, str):
        yield value if len(_folded(value)) >= PHRASE_CHARS or not _folded(value) else name + value
    elif value is not None:
        yield name + _spelled(value)


def _spelled(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _hides_words(text: str) -> bool:
    """Whether words of a text may look otherwise than they are."""
    if text.isascii() and not any(map(text.__contains__, _ASCII_DISGUISES)):
        # Letters apart are left to be found, and found much faster by the blanks between them.
        return _has_blanks_apart(text) and _is_disguised(text)
    return _is_disguised(text)


def _has_blanks_apart(text: str) -> bool:
    """Whether four blanks stand with a letter between each: of every other character, four in a
    row. Where lines are indented there are such without letters."""
    has_blanks = "    " in text[::2] or "    " in text[1::2]
    return has_blanks and scan.search(_LETTERS_APART, text) is not None


def _is_disguised(text: str) -> bool:
    return scan.search(_DISGUISED, text) is not None


def _foldings(text: str) -> Iterator[str]:
    """A text in its letters and digits alone, as it stands and with its escapes resolved."""
    yield _folded(text)
    for _ in range(ESCAPED_TIMES):
        resolved = _resolved(text)
        if resolved == text:
            return
        text = resolved
        yield _folded(text)


def _resolved(text: str) -> str:
    pieces: list[str] = []
    at = 0
    for escape in scan.matches(_ESCAPE, text):
        pieces += [text[at : escape.start()], _character(escape)]
        at = escape.end()
    return "".join(pieces) + text[at:]


def _character(escape: re.Match[str]) -> str:
    """What an escape stands for; of white space and marks, which folding drops, a blank."""
    if escape[0] == "\\\\":
        return "\\"
    code = int(escape[1] or escape[2] or "0", 16) or int(escape[3] or "0")
    return chr(code) if 0 < code < 0x110000 else " "


def _folded(text: str) -> str:
    """Chunk by chunk, so that no step takes long."""
    return "".join(_letters(text[start:end]) for start, end in scan.chunks(text))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
