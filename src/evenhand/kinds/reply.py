"""From a judge's text to one JSON object, or the kind of thing that is wrong with it.

`read` is total: for any text or bytes it returns, never raises, and takes linear time. It never
guesses: two objects, a duplicate key, NaN or a cut-off text are told, not mended. What it takes off
is wrapping only: a code fence, reasoning tags, channel tokens. Prose is no wrapping: a refusal may
show the form, and no list of words tells it from a verdict.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from evenhand import jsontext
from evenhand.judgment import Reason
from evenhand.kinds.shared import scan
from evenhand.limits import JSON_DEPTH, REPLY_BYTES, REPLY_ELEMENTS
from evenhand.regexp import regexp

NEAR_CHARS = 20
"""So much before a mistake and after it tells which one is meant."""

CODES: dict[str, Reason] = {
    "not_json": "not_json",
    "empty": "empty",
    "refused": "refused",
    "filtered": "filtered",
    "truncated": "truncated",
    "prose_around": "not_json",
    "two_objects": "ambiguous",
    "duplicate_key": "ambiguous",
    "not_finite": "not_json",
    "bad_text": "not_json",
    "too_deep": "not_json",
    "not_object": "schema",
}


@dataclass(frozen=True, slots=True)
class Readable:
    """One object; `wrapped` if something stood around it."""

    value: dict[str, Any]
    wrapped: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No single object: the kind of breach, what it is about, and where that stands."""

    kind: str
    about: str = ""
    path: str = field(default="", compare=False)
    near: str = field(default="", compare=False)
    """What stands around the place from which on it is no JSON."""

    @property
    def code(self) -> Reason:
        return CODES[self.kind]


def read(reply: str | bytes) -> Readable | Unreadable:
    """The one JSON object in a reply, or why there is none."""
    text = _text(reply)
    if isinstance(text, Unreadable):
        return text
    bare = text.strip().removeprefix("\ufeff").lstrip()
    if not bare:
        return Unreadable("empty")
    spoken = _without_channels(bare)
    answer = spoken if spoken[:1] == "{" else without_thinking(spoken)
    return Unreadable("truncated") if answer is None else _object_in(answer, bare)


def _text(reply: str | bytes) -> str | Unreadable:
    if len(reply) > REPLY_BYTES:
        head = reply[: 2 * NEAR_CHARS]
        return _no_json(head if isinstance(head, str) else head.decode(errors="replace"))
    try:
        text = reply.decode() if isinstance(reply, bytes) else reply
        if not text.isascii():
            text.encode()
    except UnicodeError:
        return Unreadable("bad_text")
    # Each brace may begin an object of its own, of which one counts.
    return text if text.count("{") <= REPLY_ELEMENTS else _no_json(text)


def _object_in(answer: str, reply: str) -> Readable | Unreadable:
    """Return the object that a reply is, once its wrapping is taken off."""
    text = answer.strip()
    if answer_tag := _ANSWER.fullmatch(text):
        text = answer_tag[1].strip()
    if fence := _FENCE.match(text):
        text = text[fence.end() :].removesuffix("```").strip()
    if text[:1] == "[":
        items = _decode(text)
        if isinstance(items, list):
            return Unreadable("not_object")
        if items == Unreadable("truncated"):
            return Unreadable("truncated")
    at = text.find("{")
    if at < 0:
        return Unreadable("refused") if opens_with_apology(text) else _no_json(text)
    value, rest = _first_value(text[at:])
    if isinstance(value, Unreadable):
        return value
    if "{" in rest:
        return Unreadable("two_objects")
    if _WORD.search(text[:at] + rest):
        return Unreadable("prose_around")
    return Readable(cast("dict[str, Any]", value), wrapped=text != reply or at > 0 or rest != "")


def _first_value(text: str) -> tuple[object, str]:
    """Return the JSON value at the beginning of a text, and what follows it."""
    try:
        jsontext.parse(text, JSON_DEPTH, REPLY_ELEMENTS)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return _decode(text[: error.pos]), text[error.pos :]
    except ValueError:
        pass
    return _decode(text), ""


_WORD = re.compile(r"[^\W_]")
_FENCE = re.compile(r"```\w*+\s*+")
_ANSWER = re.compile(r"<answer>(.*)</answer>", re.DOTALL | re.IGNORECASE)
_APOLOGY = regexp(
    r"\s*+(?:i(?:'|’| a)m (?:(?:very |so )?sorry|unable|not able)"
    r"|i (?:cannot|can(?:'|’)t|won(?:'|’)t)\b|as an ai\b|я не могу|не могу|извините"
    r"|прошу прощения|к сожалению|(?:很|非常)?抱歉|对不起|我?(?:无法|不能)|申し訳)",
    re.IGNORECASE,
)


def opens_with_apology(text: str) -> bool:
    """Return True if a reply without an object begins with an apology: its failure is called a
    refusal."""
    return _APOLOGY.match(text) is not None


_THINKING = re.compile(r"\s*<(think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)


BAR = re.compile("[|｜│]")
"""What stands between the cells of a table's line."""
_BAR_OR_BRACE = re.compile("[|｜│{]")
_PROSE_LINE = re.compile(r"^(?![^\S\n]*+(?:```.*+)?$)[^|｜│\n]++$", re.MULTILINE)


def without_thinking(text: str) -> str | None:
    """The text after leading reasoning; None if the reasoning never ends.

    Some chat templates swallow the opening tag, so a closing tag counts too if it cannot stand in
    an object: before any brace, or beside a line break, which no JSON string holds. Nor does one
    in the last cell of a table's line.
    """
    text = _without_channels(text)
    opening = _THINKING.match(text)
    closing = _THOUGHT.search(text)
    if closing is None:
        return None if opening else text
    start, end = closing.span()
    is_alone = "\n" in text[start - 1 : start] + text[end : end + 1]
    if opening is None and "{" in text[:start] and not is_alone:
        return text
    if opening is None and _is_in_cell(text, start, end):
        return text
    return _without_more(text, end)


_FINAL_CHANNEL = re.compile(r"<\|channel\|>final(?:[^<]|<\|constrain\|>){0,40}<\|message\|>")
_FIRST_TOKENS = re.compile(r"(?:\s*+<\|\w++\|>(?:assistant\b)?)++")
_LAST_TOKENS = re.compile(r"(?:<\|\w{1,40}\|>\s*+)++\Z")


def _without_channels(text: str) -> str:
    """Return what a text with a chat template's tokens says in its last channel."""
    first = _FIRST_TOKENS.match(text)
    final = _FINAL_CHANNEL.search(text) if first else None
    start = (final or first).end() if first else 0
    last = _LAST_TOKENS.search(text, start) if text.rstrip().endswith("|>") else None
    return text[start : last.start() if last else len(text)]


def _is_in_cell(text: str, start: int, end: int) -> bool:
    """Whether a closing tag stands in the last cell of the last line of a table. It may also end
    reasoning with a draft: so no prose may stand before the table, nor after a tag that ends its
    line."""
    head = text.rfind("\n", 0, start) + 1
    if BAR.search(text, head, start) is None or _BAR_OR_BRACE.search(text, end):
        return False
    if _PROSE_LINE.search(text, 0, head) is not None:
        return False
    is_inside = text[end:].partition("\n")[0].strip() != ""
    return is_inside or _PROSE_LINE.search(text, end) is None


def _without_more(text: str, at: int) -> str:
    """The text from a place on, after further reasoning, which follows or encloses what was taken
    off. A tag behind a brace or a bar stands in the reply itself."""
    while closing := _THOUGHT.search(text, at):
        if _THINKING.match(text, at) is None and _BAR_OR_BRACE.search(text, at, closing.start()):
            break
        at = closing.end()
    return text[at:]


_SURROGATE = re.compile(r"\\u[dD][89abcdefABCDEF]")


def _decode(text: str) -> object:
    """The JSON value of `text`, or the kind of breach."""
    try:
        value = jsontext.parse(text, JSON_DEPTH, REPLY_ELEMENTS)
    except ValueError as error:
        return _breach(error, text)
    if "\\u" in text and _SURROGATE.search(text) and not _is_text(value):
        return Unreadable("bad_text")
    return value


def _breach(error: ValueError, text: str) -> Unreadable:
    match error:
        case jsontext.DuplicateKey():
            return Unreadable("duplicate_key", place_of_repetition(text))
        case jsontext.NotFinite():
            return Unreadable("not_finite", error.text, place_of_number(text))
        case jsontext.TooDeep():
            return Unreadable("too_deep")
        case jsontext.Truncated():
            return Unreadable("truncated")
        case json.JSONDecodeError(pos=at):
            return _no_json(text, at)
        case _:
            return _no_json(text)


def _no_json(text: str, at: int = 0) -> Unreadable:
    """A text that is no JSON from a place on."""
    start, end = max(0, at - NEAR_CHARS), at + NEAR_CHARS
    near = " ".join(text[start:end].split())
    return Unreadable("not_json", near=f"{'…' * (start > 0)}{near}{'…' * (end < len(text))}")


def _is_text(value: object) -> bool:
    try:
        jsontext.dump(value).encode()
    except UnicodeError:
        return False
    return True


_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|-?Infinity|NaN', re.DOTALL)


def place_of_number(text: str) -> str:
    """The place of the first number that JSON has not; nothing if there is none."""
    for mark, place in _tokens(text):
        if mark[-1] in "Ny":
            return path_of(place)
    return ""


def place_of_repetition(text: str) -> str:
    """The place of the first key that stands twice in one object; nothing if there is none."""
    keys: list[set[str]] = []
    repeated: list[str] = []
    for mark, place in _tokens(text):
        if mark == "{":
            keys.append(set())
            repeated.append("")
        elif mark == "}" and keys:
            keys.pop()
            if path := repeated.pop():
                return path
        elif mark == ":" and keys:
            key = str(place[-1])
            if key in keys[-1]:
                repeated[-1] = repeated[-1] or path_of(place)
            keys[-1].add(key)
    return ""


def path_of(place: list[str | int]) -> str:
    """A place as a path."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")


def _tokens(text: str) -> Iterator[tuple[str, list[str | int]]]:
    """Every mark, string and odd number of a text, with the place where it stands: keys of objects
    and numbers of items."""
    place: list[str | int] = []
    string = ""
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark == ":" and place:
            place[-1] = _text_of(string)
        elif mark == "," and place and isinstance(place[-1], int):
            place[-1] += 1
        elif mark in "}]" and place:
            place.pop()
        elif mark[0] == '"':
            string = mark
        yield mark, place
        if mark in "{[":
            place.append("" if mark == "{" else 0)


def _text_of(string: str) -> str:
    try:
        return str(json.loads(string))
    except ValueError:
        return string[1:-1]


ESCAPED_TIMES = 3
"""So often JSON may stand as a string within JSON and still be recognised."""
PHRASE_CHARS = 12
"""A text with fewer letters and digits may be alike by chance: `high`, `not applicable`."""
REASONS_CHARS = 24
"""The same for all reasons of a reply together."""

_ESCAPE = regexp(
    r'\\(?:u([0-9a-fA-F]{4})|["\\/bfnrt])|&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|[a-z]{2,6});'
)
_LONG_WORD = re.compile(r"\w{4,}")
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
                max(_LONG_WORD.findall(phrase), key=len, default="") for phrase in phrases
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
