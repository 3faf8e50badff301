"""The pairwise contract applied to one reply: what it says of its two slots, or the breaches.

The output is in the terms the judge used: `A` is the candidate it saw first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand import jsontext
from evenhand.protocols.check import Checked, Inspection
from evenhand.protocols.pairwise_form import MARKS, WINNERS
from evenhand.protocols.reply import Unreadable, read
from evenhand.protocols.verdict_table import Ambiguous, TableReply, read_reply
from evenhand.protocols.words import Words

_ASKED = ("criteria", "explanation", "winner")
_INNER = ("first_meets", "second_meets", "comment", "mark")
_SETTLED = ("pair_id", "winner", "criteria")
_BESIDE = ("candidates", "settled", "rounds", "unstable", "notes", "meta", "odds")


def check_reply(
    text: str | bytes,
    criteria: Sequence[str],
    words: Words,
    finish: str = "stop",
    *,
    is_compact: bool = False,
    tables: bool = False,
) -> Checked:
    """Hold one reply to the contract. A compact form asks for marks alone; `tables` says that the
    prompt asked for a verdict-table line."""
    check = _Check(words, criteria, ("mark",) if is_compact else _INNER)
    if not check.is_whole(finish):
        return check.done(None)
    found = read(text)
    if isinstance(found, Unreadable):
        line = read_reply(text, criteria) if isinstance(text, str) else None
        if line is None:
            check.unreadable(found)
        return check.done(None if line is None else check.table(line, tables))
    if found.wrapped:
        check.fix("unwrapped", "")
    return check.done(check.reply(found.value))


def check_verdict(value: dict[str, Any], criteria: Sequence[str], words: Words) -> Checked:
    """Hold a settled verdict, as an export has it, to the contract."""
    check = _Check(words, criteria, ())
    check.keys(value, _SETTLED, "", allowed=_BESIDE)
    check.one_of(value, "winner", (*WINNERS, "uncertain"), "")
    marks = check.object_at(value.get("criteria", {}), "criteria") or {}
    check.keys(marks, criteria, "criteria.")
    for name in marks:
        check.one_of(marks, name, MARKS, "criteria.", kind="mark_unknown")
    return check.done(value)


class _Check(Inspection):
    def __init__(self, words: Words, criteria: Sequence[str], inner: Sequence[str]) -> None:
        super().__init__(words)
        self.criteria, self.inner = criteria, inner

    def reply(self, value: dict[str, Any]) -> dict[str, Any]:
        """The reply's object, every part of it there."""
        self.keys(value, _ASKED, "")
        explanation = value.get("explanation", "")
        self.typed(explanation, str, "text", "explanation")
        return {
            "criteria": self._criteria(value.get("criteria", {})),
            "explanation": explanation,
            "winner": self.one_of(value, "winner", WINNERS, ""),
        }

    def table(self, line: TableReply | Ambiguous, tables: bool) -> dict[str, Any] | None:
        """A verdict-table line in the place of the object."""
        if isinstance(line, Ambiguous):
            self.breach("two_objects", "ambiguous")
            return None
        if not tables:
            self.breach("table_instead", "not_json")
            return None
        empty = dict.fromkeys(_INNER)
        return {
            "criteria": {c: {**empty, "mark": line.marks[c]} for c in self.criteria},
            "explanation": line.notes or "",
            "winner": line.winner,
        }

    def _criteria(self, value: object) -> dict[str, Any]:
        given = self.object_at(value, "criteria")
        if given is None:
            return {}
        self.keys(given, self.criteria, "criteria.")
        return {c: self._criterion(given[c], f"criteria.{c}") for c in self.criteria if c in given}

    def _criterion(self, value: object, path: str) -> dict[str, Any]:
        given = self.object_at(value, path)
        if given is None:
            return {}
        if _is_whole(given):
            return given
        self.keys(given, self.inner, f"{path}.", allowed=_INNER)
        for name, kind, called in (
            ("first_meets", bool, "boolean"),
            ("second_meets", bool, "boolean"),
            ("comment", str, "text"),
        ):
            if name in given:
                self.typed(given[name], kind, called, f"{path}.{name}")
        return {name: given.get(name) for name in _INNER[:-1]} | {
            "mark": self.one_of(given, "mark", MARKS, f"{path}.")
        }

    def one_of(
        self,
        value: dict[str, Any],
        name: str,
        allowed: Sequence[str],
        path: str,
        kind: str = "",
    ) -> Any:
        """The value under a name, which must be one of some."""
        given = value.get(name)
        if name in value and given not in allowed:
            self.breach(
                kind or f"{name}_unknown",
                "out_of_range" if isinstance(given, str) else "schema",
                f"{path}{name}",
                value=jsontext.dump(given),
                allowed=", ".join(allowed),
            )
        return given


def _is_whole(given: dict[str, Any]) -> bool:
    """Whether there is nothing to say about a criterion: nearly always."""
    return (
        len(given) == len(_INNER)
        and given.get("mark") in MARKS
        and type(given.get("first_meets")) is type(given.get("second_meets")) is bool
        and type(given.get("comment")) is str
    )
