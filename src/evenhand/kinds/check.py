"""What the checks of all kinds share: what a check found, and the inspection that gathers it.

Deterministic and total: the same text gives the same result, and nothing here raises on a reply.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from evenhand.judgment import Evidence, Fix, FixCode, Problem, Reason, VerdictValue
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText, Readable, Unreadable, read
from evenhand.limits import PROBLEMS_KEPT
from evenhand.text import INVISIBLE

_VISIBLE_LETTER = re.compile(rf"[^\W_{INVISIBLE}]")
_CUT_OFF: dict[str, Reason] = {"length": "truncated", "filtered": "filtered", "refused": "refused"}

V = TypeVar("V", bound=VerdictValue)


def is_blank(text: str) -> bool:
    """Return True if a text says nothing: it has no letter and no digit that can be seen."""
    return _VISIBLE_LETTER.search(text) is None


class Checked(Struct, Generic[V], frozen=True):
    """What a check found. `value` is there only when there is no problem."""

    value: V | None
    problems: tuple[Problem, ...]
    fixes: tuple[Fix, ...]
    flags: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()
    uncut: Mapping[str, str] = {}
    """What was cut, as it was written, by its path."""

    @property
    def output(self) -> dict[str, Any] | None:
        """The value as the contract's JSON object."""
        return None if self.value is None else self.value.output


class Inspection:
    """One inspection, gathering what it finds."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.problems: list[Problem] = []
        self.fixes: list[Fix] = []
        self.flags: list[str] = []
        self.evidence: list[Evidence] = []
        self.uncut: dict[str, str] = {}

    def breach(self, kind: str, code: Reason, path: str = "", **about: object) -> None:
        """Note a problem: the key of its wording, its code, its place and what it is about."""
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(self.words.problem(kind, code, path, **about))

    def fix(self, code: FixCode, path: str) -> None:
        """Note what code mended."""
        self.fixes.append(Fix(code, path))

    def done(self, value: V | None) -> Checked[V]:
        """Return what was found, with the value of a reply in which nothing is wrong."""
        return Checked(
            None if self.problems else value,
            tuple(self.problems),
            tuple(self.fixes),
            tuple(self.flags),
            tuple(self.evidence),
            {} if self.problems else dict(self.uncut),
        )

    def is_whole(self, finish: str) -> bool:
        """Return True if the provider let the judge say all it had to say."""
        if finish in _CUT_OFF:
            self.breach(_CUT_OFF[finish], _CUT_OFF[finish])
        return finish not in _CUT_OFF

    def object_in(self, text: str | bytes, judged: JudgedText) -> dict[str, Any] | None:
        """Return the one JSON object of a reply, unless it stands in what was judged."""
        reading = read(text)
        if isinstance(reading, Unreadable):
            self.unreadable(reading)
            return None
        if self.is_copied(reading, judged):
            return None
        if reading.wrapped:
            self.fix("unwrapped", "")
        return reading.value

    def is_copied(self, reading: Readable, judged: JudgedText) -> bool:
        """Return True if the object was written by a candidate."""
        is_copied = judged.holds(reading.value)
        if is_copied:
            self.breach("copied", "ambiguous")
        return is_copied

    def unreadable(self, reading: Unreadable) -> None:
        """Note why there is no object."""
        about = {"value": reading.about, "quote": reading.near}
        self.breach(reading.kind, reading.code, reading.path, **about)

    def keys(
        self,
        value: Mapping[str, Any],
        wanted: Collection[str],
        path: str,
        allowed: Collection[str] = (),
    ) -> None:
        """Require every wanted key, and no other but the allowed ones."""
        for key in wanted:
            if key not in value:
                self.breach("key_missing", "schema", f"{path}{key}")
        for key in value:
            if key not in wanted and key not in allowed:
                self.breach("key_unknown", "schema", f"{path}{key}")

    def typed(self, value: object, kind: type, name: str, path: str) -> bool:
        """Return True if a value is of a type; `name` is what the words call it."""
        if isinstance(value, kind):
            return True
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(self.words.wrong_type(name, path, value))
        return False

    def object_at(self, value: object, path: str) -> dict[str, Any] | None:
        """Return a value that must be an object."""
        return cast("dict[str, Any]", value) if self.typed(value, dict, "object", path) else None

    def reason(self, text: str, path: str) -> None:
        """Require a reason that is not blank."""
        if is_blank(text):
            self.breach("reason_blank", "schema", path)
