"""Checklists: criteria that an output meets or does not, from JSON, TOML, or plain sentences.

A checklist that was built has at least one criterion, unique ids, and no criterion without points.
What is wrong is a RubricTextError with the path of keys to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

from msgspec import Struct, to_builtins

from evenhand import jsontext
from evenhand.kinds.kind import RubricForm, RubricTextError, Understood
from evenhand.kinds.protocol import Protocol
from evenhand.kinds.rows import plain_number
from evenhand.kinds.rubric_fields import (
    Path,
    parse_value,
    read_id,
    read_list,
    read_object,
    read_text,
    require_different,
    require_plain,
)
from evenhand.words import Sentence

_BULLETS = " \t-*•"


class Criterion(Struct, frozen=True, omit_defaults=True):
    """One question about an output, to be answered with yes or no."""

    id: str
    text: str
    points: int | float = 1
    """Below 0 for a fault."""
    must: bool = False
    """True if an output must meet it to pass; a fault, if it must be free of it."""

    @property
    def is_fault(self) -> bool:
        return self.points < 0

    @property
    def ends(self) -> tuple[float, float]:
        """Return the worse and the better answer: 1 is yes."""
        return (1.0, 0.0) if self.is_fault else (0.0, 1.0)


class Checklist(Struct, frozen=True):
    """The criteria that an output is held against."""

    criteria: tuple[Criterion, ...]

    @property
    def text(self) -> str:
        return self.tell("")

    @property
    def value(self) -> dict[str, Any]:
        """As a run keeps it, the same however it was written."""
        return {"criteria": [to_builtins(each) for each in self.criteria]}

    def tell(self, fault: str) -> str:
        """Return the text that a judge reads, a line for each criterion. `fault` marks faults;
        points stay with code, so that they cannot sway an answer."""
        return "\n".join(
            f"- {each.id}{fault if each.is_fault else ''}: {each.text}" for each in self.criteria
        )


@lru_cache(maxsize=64)
def parse_checklist(text: str) -> Checklist:
    """Return the checklist of a JSON text; raise RubricTextError. Rows often repeat one: it is
    kept."""
    return build_checklist(jsontext.parse(text))


def build_checklist(value: object) -> Checklist:
    """Return the checklist of an object with criteria, of a list of them, or of a text with a
    sentence on each line; raise RubricTextError."""
    if isinstance(value, str):
        lines = [line.strip(_BULLETS) for line in value.splitlines()]
        value = [line for line in lines if line]
    path: Path = () if isinstance(value, list) else ("criteria",)
    top = {"criteria": value} if isinstance(value, list) else value
    fields = read_object(top, (), ("criteria",))
    listed = read_list(fields, "criteria", ())
    criteria = tuple(_read_criterion(each, i, (*path, i)) for i, each in enumerate(listed))
    require_different("id", [each.id for each in criteria], path)
    return Checklist(criteria)


def _read_criterion(value: object, index: int, path: Path) -> Criterion:
    row = {"text": value} if isinstance(value, str) else value
    fields = read_object(row, path, ("id", "text", "points", "must"))
    fields = {"id": f"c{index + 1}", "points": 1, "must": False} | fields
    points, must = fields["points"], fields["must"]
    if isinstance(points, bool) or not isinstance(points, int | float):
        points = 0
    if not points or not isfinite(points):
        raise RubricTextError(Sentence("kinds.no_points"), path=(*path, "points"))
    if not isinstance(must, bool):
        raise RubricTextError(Sentence("kinds.no_must"), path=(*path, "must"))
    require_plain(fields, path)
    text = " ".join(read_text(fields, "text", path).split())
    return Criterion(read_id(fields, path), text, plain_number(points), must)


def read_given(criteria: object) -> Mapping[str, Any]:
    """Return the criteria of a row as its sample keeps them; a text may be JSON."""
    if isinstance(criteria, str) and criteria.lstrip()[:1] in ("[", "{"):
        criteria = parse_value(criteria, ".json")
    return build_checklist(criteria).value


def _parse_file(text: str, ending: str, protocol: Protocol) -> dict[str, Any]:
    return build_checklist(text if ending == ".txt" else parse_value(text, ending)).value


def _explain(rubric: Any, protocol: Protocol) -> Understood:
    checklist = build_checklist(rubric)
    return Understood(checklist.value, checklist.tell(" [-]").splitlines())


RUBRIC_FORM = RubricForm(
    endings=(".txt", ".json", ".toml"),
    parse=_parse_file,
    explain=_explain,
    beside=("*.json", "criteria*.toml"),
)
