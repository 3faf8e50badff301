"""From a judge's text to one JSON object, or the kind of thing that is wrong with it.

`read` is total: for any text or bytes it returns, never raises, and takes linear time. It never
guesses: two different objects, a duplicate key, NaN or a cut-off text are told, not mended. What
it does mend is wrapping only: code fences, reasoning tags, prose around exactly one object.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from evenhand import jsontext
from evenhand.judgment import Reason
from evenhand.kinds.shared.json_place import place_of_number, place_of_repetition
from evenhand.kinds.shared.refusals import opens_with_refusal, refuses
from evenhand.limits import JSON_DEPTH, READER_RESTARTS, REPLY_BYTES, REPLY_ELEMENTS

NEAR_CHARS = 20
"""So much before a mistake and after it tells which one is meant."""

CODES: dict[str, Reason] = {
    "not_json": "not_json",
    "empty": "empty",
    "refused": "refused",
    "filtered": "filtered",
    "truncated": "truncated",
    "two_objects": "ambiguous",
    "duplicate_key": "ambiguous",
    "not_finite": "not_json",
    "bad_text": "not_json",
    "too_deep": "not_json",
    "not_object": "schema",
}


@dataclass(frozen=True, slots=True)
class Readable:
    """One object; `wrapped` if something stood around it, in words if `in_prose`."""

    value: dict[str, Any]
    wrapped: bool
    in_prose: bool = field(default=False, compare=False)


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
    if whole := _whole(bare, wrapped=False):
        return whole
    answer = bare if bare[0] == "{" else without_thinking(bare)
    if answer is None:
        return Unreadable("truncated")
    return _whole(_unfenced(answer), wrapped=True) or _among(answer)


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


def _whole(text: str, *, wrapped: bool) -> Readable | Unreadable | None:
    """What a text that is JSON from its first letter on holds; None if it is not."""
    value = _decode(text) if text[:1] in ("{", "[") else None
    if isinstance(value, dict):
        return Readable(cast("dict[str, Any]", value), wrapped)
    if isinstance(value, list):
        return Unreadable("not_object")
    return value if isinstance(value, Unreadable) and value.kind == "truncated" else None


_FENCE = re.compile(r"```\w*+(.*)```", re.DOTALL)


def _unfenced(text: str) -> str:
    """The text within the code fence around all of it, if there is one."""
    fence = _FENCE.fullmatch(text.strip())
    return (fence[1] if fence else text).strip()


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


def _among(text: str) -> Readable | Unreadable:
    """The one object among prose, fences and other braces. Prose that refuses is a refusal,
    whatever it quotes."""
    objects: dict[str, dict[str, Any]] = {}
    broken: list[Unreadable] = []
    prose, at = list[str](), 0
    for start, end in _regions(text):
        region = text[start:end]
        prose.append(text[at:start])
        at = end
        value = _decode(region)
        if isinstance(value, dict):
            objects.setdefault(jsontext.dump(_leveled(value)), cast("dict[str, Any]", value))
        elif isinstance(value, Unreadable) and _JSON_LIKE.match(region):
            broken.append(value)
    around = " ".join([*prose, text[at:]])
    if objects and refuses(around):
        return Unreadable("refused")
    if len(objects) > 1 or (objects and broken):
        return Unreadable("two_objects")
    if objects:
        in_prose = _WORD.search(_FENCE_NAME.sub("", around)) is not None
        return Readable(next(iter(objects.values())), wrapped=True, in_prose=in_prose)
    if broken:
        return broken[0]
    return Unreadable("refused") if opens_with_refusal(text) else _no_json(text)


def _leveled(value: object) -> object:
    """A value as any other that is equal to it has it: keys in one order, numbers in one
    spelling."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {name: _leveled(members[name]) for name in sorted(members)}
    if isinstance(value, list):
        return [_leveled(item) for item in cast("list[object]", value)]
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else float(value)
    return value


_WORD = re.compile(r"\w")
_FENCE_NAME = re.compile(r"```\w*+")
_KEY = r'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+'
_JSON_LIKE = re.compile(rf'\{{\s*+"(?:{_KEY}"\s*+:|\w{_KEY}(?:"\s*+[^\s,}}]|"?+\s*+\Z)|"?+\s*+\Z)')
"""The beginning of an object, its colon maybe forgotten; not a brace that stands in quotation marks
of prose, nor a set of words."""
_QUOTE_NEXT = re.compile(r'\{\s*+"')
_BRACE = re.compile(r"\{(?!\s*+\{)")
_MARK = re.compile(r'[{}"]')
_STRING_REST = re.compile(r'(?:[^"\\]++|\\.)*+"', re.DOTALL)
_QUOTATION_REST = re.compile(r'[^"\n]*+"')


def _regions(text: str) -> Iterator[tuple[int, int]]:
    """Where the outermost `{...}` stretches begin and end; a brace around a brace is none.

    A brace of prose that never closes is stepped over. After an object that never closes nothing
    is looked for: all that follows may be part of it.
    """
    at, restarts = 0, 0
    while (brace := _BRACE.search(text, at)) and restarts <= READER_RESTARTS:
        start = brace.start()
        if _JSON_LIKE.match(text, start):
            at = _closing(text, start, _STRING_REST) or len(text)
            yield start, at
        elif _QUOTE_NEXT.match(text, start):
            # What the mark of quotation ends or begins is prose.
            at = start + 1
        elif end := _closing(text, start, _QUOTATION_REST):
            at = end
            yield start, at
        else:
            restarts += 1
            at = start + 1


def _closing(text: str, start: int, string_rest: re.Pattern[str]) -> int | None:
    """Where the brace at `start` closes, strings skipped."""
    depth, at = 0, start
    while mark := _MARK.search(text, at):
        at = mark.end()
        if mark[0] == '"':
            rest = string_rest.match(text, at)
            if rest is None:
                return None
            at = rest.end()
        else:
            depth += 1 if mark[0] == "{" else -1
            if depth == 0:
                return at
    return None


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
