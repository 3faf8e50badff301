"""Filters that look into texts: the same for every database, whatever it knows of JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from evenhand import jsontext
from evenhand.store.ports import Browsed

_UNIT_ID, _UNIT_BODY, _JUDGMENT_BODY = 2, 3, 10
"""Where texts stand in a row of a unit and its judgment."""
Predicate = Callable[[Any], bool]


class _Output(Struct):
    """What filters ask of a verdict."""

    winner: Any = None
    confidence: Any = None
    failure_tags: Any = None


class _Pass(Struct):
    flags: list[str] = []


class _Judgment(Struct):
    output: _Output | None = None
    flags: list[str] = []
    passes: list[_Pass] = []


class _Candidate(Struct):
    id: Any = None


class _Unit(Struct):
    candidates: list[_Candidate] = []
    meta: dict[str, Raw] | None = None


_judgment = msgspec.json.Decoder(_Judgment)
_unit = msgspec.json.Decoder(_Unit)


def judgment_filter(browsed: Browsed) -> Predicate | None:
    """Whether a row of a unit and its judgment is wanted, by what its texts say; None where nothing
    is asked of them."""
    predicates = list(_predicates(browsed))
    if not predicates:
        return None
    return lambda row: all(fits(row) for fits in predicates)


def _predicates(browsed: Browsed) -> Iterator[Predicate]:
    if browsed.winner or browsed.confidence or browsed.tag or browsed.flag:
        yield lambda row: _is_wanted_judgment(browsed, row[_JUDGMENT_BODY])
    if browsed.candidate or browsed.field:
        yield lambda row: _is_wanted_unit(browsed, row[_UNIT_BODY])
    if browsed.text:
        yield lambda row: has_text(
            browsed.text, row[_UNIT_ID], row[_UNIT_BODY], row[_JUDGMENT_BODY]
        )


def _is_wanted_judgment(browsed: Browsed, body: str | None) -> bool:
    try:
        judgment = _judgment.decode(body) if body is not None else None
    except ValueError:
        return False
    if judgment is None:
        return False
    output = judgment.output or _Output()
    tags = output.failure_tags if isinstance(output.failure_tags, list) else ()
    return (
        (not browsed.winner or output.winner == browsed.winner)
        and (not browsed.confidence or output.confidence == browsed.confidence)
        and (not browsed.tag or browsed.tag in tags)
        and (not browsed.flag or _has_flag(judgment, browsed.flag))
    )


def _has_flag(judgment: _Judgment, flag: str) -> bool:
    """Whether a judgment or one of its passes has a flag, with or without what follows a colon."""
    flags = [*judgment.flags, *(name for one in judgment.passes for name in one.flags)]
    return any(name == flag or name.startswith(f"{flag}:") for name in flags)


def _is_wanted_unit(browsed: Browsed, body: str) -> bool:
    try:
        unit = _unit.decode(body)
    except ValueError:
        return False
    if browsed.candidate and all(item.id != browsed.candidate for item in unit.candidates):
        return False
    if not browsed.field:
        return True
    value = (unit.meta or {}).get(browsed.field)
    return value is not None and browsed.value in _spellings(bytes(value).decode())


def _spellings(value: str) -> set[str]:
    """How a value of a field may be asked for: a text as it is, all else as JSON has it."""
    if value.startswith('"'):
        return {msgspec.json.decode(value, type=str)}
    return {value, jsontext.compact(jsontext.restored(value))}


_TEXT = re.compile(r'"((?:[^"\\]++|\\.)*+)"(:?)')
"""A text in a JSON body, and the colon that makes it a key."""
_AFTER_OUTPUT = ',"fixes":['
"""Where a judgment's own words end: what follows are codes, and passes that led to them."""


def has_text(needle: str, name: str, unit: str | None = None, judgment: str | None = None) -> bool:
    """Whether a name, or a text of the two JSON bodies, holds what is looked for; the case of
    letters does not matter, and keys are no text."""
    if needle.casefold() in name.casefold():
        return True
    written = jsontext.compact(needle)[1:-1].casefold()
    # The whole body is looked at first: most hold nothing, and need not be taken apart.
    if unit is not None and written in unit.casefold() and _is_text(written, unit):
        return True
    if judgment is None or written not in judgment.casefold():
        return False
    end = judgment.rfind(_AFTER_OUTPUT)
    return _is_text(written, judgment[: end if end > 0 else None])


def _is_text(written: str, body: str) -> bool:
    texts = (text for text, colon in _TEXT.findall(body) if not colon)
    return written in "\n".join(texts).casefold()
