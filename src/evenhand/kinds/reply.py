"""From a judge's text to a checked reply: one JSON object in the form asked for, or the problems.

`read` is total: for any text it returns, never raises, and takes linear time. It never guesses: two
objects, a duplicate key, NaN or a cut-off text are told, not mended. What it takes off is wrapping
only: a code fence and reasoning tags. Prose is no wrapping: a refusal may show the form, and no
list of words tells it from a verdict. Nor is what a candidate wrote ever a verdict: `JudgedText`
finds a reply that was copied from the judged text.

`ReplyCheck` holds the object against a JSON schema and words each problem in the judge's language.
What is special about a kind, its own `check.py` adds.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar, cast

from msgspec import Struct

from evenhand import jsontext
from evenhand.judgment import Evidence, Fix, FixCode, Problem, Reason, VerdictValue
from evenhand.kinds.phrases import fold, opens_with_refusal
from evenhand.kinds.protocol import JudgeWords
from evenhand.limits import JSON_DEPTH, PROBLEMS_KEPT, REPLY_BYTES, REPLY_ELEMENTS
from evenhand.text import INVISIBLE

# Reading

NEAR_CHARS = 20
"""Characters shown before a mistake, and after it."""
CODES: dict[str, Reason] = {
    "empty": "empty",
    "refused": "refused",
    "truncated": "truncated",
    "two_objects": "ambiguous",
    "duplicate_key": "ambiguous",
    "not_object": "schema",
}
"""Failure reasons of what cannot be read; of all else it is `not_json`."""


class Readable(NamedTuple):
    """One object; `is_wrapped` if something stood around it."""

    value: dict[str, Any]
    is_wrapped: bool


class Unreadable(NamedTuple):
    """No single object: the problem, what it is about, and the text around the mistake."""

    problem: str
    about: str = ""
    near: str = ""

    @property
    def code(self) -> Reason:
        return CODES.get(self.problem, "not_json")


def read(reply: str) -> Readable | Unreadable:
    """Return the one JSON object that a reply is, or why there is none."""
    text = reply.strip().removeprefix("\ufeff").lstrip()
    if len(text) > REPLY_BYTES:
        return Unreadable("not_json")
    try:
        text.encode()
    except UnicodeError:
        return Unreadable("bad_text")
    if not text:
        return Unreadable("empty")
    answer = without_thinking(text)
    if answer is None:
        return Unreadable("truncated")
    bare = answer.strip()
    if fence := _FENCE.match(bare):
        bare = bare[fence.end() :].removesuffix("```").strip()
    start = 0 if bare[:1] == "[" else bare.find("{")
    if start < 0:
        return Unreadable("refused") if opens_with_refusal(bare) else _describe(bare)
    value, rest = _decode(bare[start:])
    if isinstance(value, Unreadable):
        return value
    if not isinstance(value, dict):
        return Unreadable("not_object")
    if start or rest:
        return Unreadable("two_objects" if "{" in rest else "prose_around")
    return Readable(cast("dict[str, Any]", value), is_wrapped=bare != text)


_FENCE = re.compile(r"```\w*+\s*+")
_THINKING = re.compile(r"\s*<(think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning|analysis)>", re.IGNORECASE)
BAR = re.compile("[|｜│]")
"""The bars between the cells of a table's line."""


def without_thinking(text: str) -> str | None:
    """Return the text after leading reasoning; None if the reasoning never ends.

    Some chat templates swallow the opening tag, so a closing tag counts too if it cannot stand in
    an object: before any brace, or beside a line break, which no JSON string holds.
    """
    offset = 0
    while True:
        opening, closing = _THINKING.match(text, offset), _THOUGHT.search(text, offset)
        if closing is None:
            return None if opening else text[offset:]
        start, end = closing.span()
        if opening is None and "{" in text[offset:start]:
            is_own_line = offset == 0 and "\n" in text[start - 1 : start] + text[end : end + 1]
            if text[:1] == "{" or not is_own_line:
                return text[offset:]
        offset = end


_NOT_FINITE = re.compile(r"[:,\[]\s*+-?(?:NaN|Infinity)")


def _decode(text: str) -> tuple[object, str]:
    """Return the JSON value at the beginning of a text, or the problem, and what follows it."""
    rest = ""
    try:
        try:
            value = jsontext.parse(text, JSON_DEPTH, REPLY_ELEMENTS)
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                raise
            text, rest = text[: error.pos], text[error.pos :]
            value = jsontext.parse(text, JSON_DEPTH, REPLY_ELEMENTS)
        jsontext.dump(value).encode()  # an escape may stand for a lone surrogate
    except jsontext.DuplicateKey as error:
        return Unreadable("duplicate_key", error.name), rest
    except jsontext.NotFinite as error:
        number = _NOT_FINITE.search(text)
        near = _describe(text, number.end()).near if number else ""
        return Unreadable("not_finite", error.text, near), rest
    except jsontext.TooDeep:
        return Unreadable("too_deep"), rest
    except jsontext.Truncated:
        return Unreadable("truncated"), rest
    except UnicodeError:
        return Unreadable("bad_text"), rest
    except ValueError as error:
        return _describe(text, getattr(error, "pos", 0)), rest
    return value, rest


def _describe(text: str, offset: int = 0) -> Unreadable:
    """Return the problem of a text that is no JSON from an offset on."""
    start, end = max(0, offset - NEAR_CHARS), offset + NEAR_CHARS
    near = " ".join(text[start:end].split())
    return Unreadable("not_json", near=f"{'…' * (start > 0)}{near}{'…' * (end < len(text))}")


# Copies of what was judged

PHRASE_CHARS = 12
"""A shorter text may be alike by chance: `high`, `not applicable`."""
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[bfnrt])")


class JudgedText:
    """The texts that a judge was to judge; folded when a reply is held against them."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def holds(self, reply: Mapping[str, Any]) -> bool:
        """Return True if a reply with words of its own was copied from one of the texts: every
        part of it stands there, in any order, however spaced, quoted or escaped."""
        # Evidence is a copy in any case.
        said = {name: reply[name] for name in reply if name != "meta"}
        leaves = [leaf for leaf in _find_leaves(said) if leaf[0] != "evidence"]
        if not any(isinstance(value, str) and value for _, value in leaves):
            return False
        parts = [leaf for leaf in leaves if leaf[1] != ""]
        return any(all(_stands_in(text, *part) for part in parts) for text in self._folded_texts)

    def holds_line(self, line: str) -> bool:
        """Return True if a line of a table stands in one of the texts."""
        return any(fold(line) in text for text in self._folded_texts)

    @cached_property
    def _folded_texts(self) -> list[str]:
        readings = {text: None for each in self.texts for text in (each, _unescape(each))}
        return list(map(fold, readings))


def _find_leaves(value: object, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that holds no others, with its key; of a list, with that of the list for
    its first item alone, which follows it."""
    if isinstance(value, dict):
        for key, part in cast("dict[str, object]", value).items():
            yield from _find_leaves(part, key)
    elif isinstance(value, list):
        for number, part in enumerate(cast("list[object]", value)):
            yield from _find_leaves(part, "" if number and name != "evidence" else name)
    elif value is not None:
        yield name, value


def _stands_in(folded: str, name: str, value: Any) -> bool:
    """Return True if a folded text holds a copy of a value: of a short one with its key."""
    texts = {jsontext.as_text(value)}
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
        texts |= {str(int(value)), f"{int(value)}.0"}
    return any(fold(text if len(text) >= PHRASE_CHARS else name + text) in folded for text in texts)


def _unescape(text: str) -> str:
    """Return a text with the escapes of JSON, however often nested, and of HTML resolved."""
    plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)
    return html.unescape(plain)


# Checking

V = TypeVar("V", bound=VerdictValue)
INVALID: Any = object()
"""In the place of a value that has not the form asked for."""
TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
ANYTHING: dict[str, Any] = {}
_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": int | float,
}
_CUT_OFF: dict[str, Reason] = {"length": "truncated", "filtered": "filtered", "refused": "refused"}
_VISIBLE_LETTER = re.compile(rf"[^\W_{INVISIBLE}]")


def is_blank(text: str | None) -> bool:
    """Return True if a text says nothing: it has no letter and no digit that can be seen."""
    return not text or _VISIBLE_LETTER.search(text) is None


def allow(form: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    """Return the schema of an object that may have more properties."""
    return {**form, "properties": {**form["properties"], **optional}}


class Checked(Struct, Generic[V], frozen=True):
    """The result of a check. `value` is there only when there is no problem."""

    value: V | None
    problems: tuple[Problem, ...]
    fixes: tuple[Fix, ...]
    flags: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()
    uncut: Mapping[str, str] = {}
    """Texts that code cut, as they were written, by their path."""

    @property
    def output(self) -> dict[str, Any] | None:
        """The value as the contract's JSON object."""
        return None if self.value is None else self.value.output


class ReplyCheck:
    """The check of one reply: gathers problems, fixes and flags. It never raises on a reply."""

    ignores_case = True
    """True if a choice may be written in another case, and with white space around it."""

    def __init__(self, words: JudgeWords) -> None:
        self.words = words
        self.problems: list[Problem] = []
        self.fixes: list[Fix] = []
        self.flags: list[str] = []
        self.evidence: list[Evidence] = []
        self.uncut: dict[str, str] = {}

    def problem(
        self, name: str, code: Reason, path: str = "", json_type: str = "", **about: object
    ) -> None:
        """Note a problem: the key of its wording, its code, its path and what it is about."""
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(self.words.problem(name, code, path, json_type, **about))

    def fix(self, code: FixCode, path: str) -> None:
        """Note what code mended."""
        self.fixes.append(Fix(code, path))

    def result(self, value: V | None) -> Checked[V]:
        """Return what was found, with the value of a reply in which nothing is wrong."""
        return Checked(
            None if self.problems else value,
            tuple(self.problems),
            tuple(self.fixes),
            tuple(self.flags),
            tuple(self.evidence),
            {} if self.problems else dict(self.uncut),
        )

    def is_complete(self, finish: str) -> bool:
        """Return True if the provider let the judge say all it had to say."""
        if finish in _CUT_OFF:
            self.problem(_CUT_OFF[finish], _CUT_OFF[finish])
        return finish not in _CUT_OFF

    def read_object(self, text: str, finish: str, judged: JudgedText) -> dict[str, Any] | None:
        """Return the one JSON object of a reply; None if there is none, or it was copied."""
        if not self.is_complete(finish):
            return None
        reading = read(text)
        if isinstance(reading, Unreadable):
            self.reject(reading)
            return None
        return self.accept(reading, judged)

    def reject(self, reading: Unreadable) -> None:
        """Note why there is no object."""
        self.problem(reading.problem, reading.code, value=reading.about, quote=reading.near)

    def accept(self, reading: Readable, judged: JudgedText) -> dict[str, Any] | None:
        """Return the object of a reply; None if a candidate wrote it."""
        if judged.holds(reading.value):
            self.problem("copied", "ambiguous")
            return None
        if reading.is_wrapped:
            self.fix("unwrapped", "")
        return reading.value

    def match(self, value: Any, form: Mapping[str, Any], path: str = "") -> Any:
        """Return a value that has a form, which is a JSON schema; else note what is wrong and
        return INVALID. Of an object only the valid properties are returned."""
        names = form.get("type")
        if names is None or (value is None and "null" in names):
            return value
        name = names if isinstance(names, str) else names[0]
        if name == "string" and "enum" in form:
            return self._match_choice(value, form["enum"], path)
        if not isinstance(value, _TYPES[name]) or (name == "number" and isinstance(value, bool)):
            self.problem("wrong_type", "schema", path, name, value=_cut_text(value))
            return INVALID
        if "enum" in form:
            return self._match_number(value, form["enum"], path)
        if "items" in form:
            items = [self.match(v, form["items"], f"{path}[{i}]") for i, v in enumerate(value)]
            return INVALID if INVALID in items else items
        return self._match_object(value, form, path) if "properties" in form else value

    def _match_object(self, value: Any, form: Mapping[str, Any], path: str) -> dict[str, Any]:
        prefix, properties = f"{path}." if path else "", form["properties"]
        for name in form["required"]:
            if name not in value:
                self.problem("key_missing", "schema", f"{prefix}{name}")
        for name in value:
            if name not in properties:
                self.problem("key_unknown", "schema", f"{prefix}{name}")
        matched = {
            name: self.match(value[name], part, f"{prefix}{name}")
            for name, part in properties.items()
            if name in value
        }
        return {name: part for name, part in matched.items() if part is not INVALID}

    def _match_choice(self, value: Any, choices: list[str], path: str) -> Any:
        if value in choices:
            return value
        is_text = isinstance(value, str)
        for choice in choices if is_text and self.ignores_case else ():
            if value.strip().casefold() == choice.casefold():
                self.fix("unwrapped", path)
                return choice
        self.reject_choice(value, choices, "out_of_range" if is_text else "schema", path)
        return INVALID

    def _match_number(self, value: float, choices: list[float], path: str) -> Any:
        for choice in choices:
            if choice == value:
                return choice
        self.reject_choice(value, choices, "out_of_range", path)
        return INVALID

    def reject_choice(self, value: Any, choices: Sequence[Any], code: Reason, path: str) -> None:
        """Note a value that is none of those allowed."""
        allowed = ", ".join(map(jsontext.as_text, choices))
        self.problem("not_allowed", code, path, value=jsontext.dump(value), allowed=allowed)

    def require_reason(self, text: str, path: str) -> None:
        """Note a reason that is blank."""
        if is_blank(text):
            self.problem("reason_blank", "schema", path)


_VALUE_CHARS = 60
"""So much of a value of the wrong type tells which one is meant: all of it may be the reply."""


def _cut_text(value: object) -> str:
    text = jsontext.dump(value)
    return text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 1] + "…"
