"""From a judge's text to one JSON object, or the kind of thing that is wrong with it.

`read` is total: for any text or bytes it returns, never raises, and takes linear time. It never
guesses: two objects, a duplicate key, NaN or a cut-off text are told, not mended. What it takes off
is wrapping only: a code fence, reasoning tags, channel tokens. Prose is no wrapping: a refusal may
show the form, and no list of words tells it from a verdict.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, cast

from evenhand import jsontext
from evenhand.judgment import Reason
from evenhand.kinds.shared.json_place import place_of_number, place_of_repetition
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
