"""Task rubrics in TOML: `task_type`, `critical_fail`, `facts`, `points`, with the checks of the
Markdown form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from evenhand.errors import nearest, quoted
from evenhand.kinds.weighted.tasks.conditions import Condition, ConditionError, build_condition
from evenhand.kinds.weighted.tasks.lines import TaskRubricError
from evenhand.kinds.weighted.tasks.read import TYPES, TaskRubric, check_text, checked, condition_of
from evenhand.kinds.weighted.tasks.types import named_type
from evenhand.tomltext import TomlError, parse_toml

KEYS = ("task_type", "critical_fail", "facts", "points")


@lru_cache(maxsize=64)
def read_task_toml(text: str, types: tuple[str, ...] = TYPES) -> TaskRubric:
    """The rubric of a TOML text; raises TaskRubricError."""
    check_text(text)
    values = _parsed(text)
    for name in values:
        if name not in KEYS:
            near = nearest(name, KEYS)
            meant = f'did you mean "{near}"?' if near else f"known: {', '.join(KEYS)}"
            raise TaskRubricError(_line(text, name), f"unknown key {quoted(name)}; {meant}")
    critical: list[str] = []
    conditions: list[Condition] = []
    for line, entry in _entries(text, values.get("critical_fail", [])):
        _read_entry(entry, line, critical, conditions)
    task_type = _text(text, values, "task_type")
    return TaskRubric(
        text=text,
        task_type=named_type(task_type, types, _line(text, "task_type")) if task_type else None,
        critical=tuple(critical),
        conditions=checked(conditions),
        facts=_text(text, values, "facts"),
        points=_text(text, values, "points") or "",
    )


def _parsed(text: str) -> dict[str, Any]:
    try:
        return parse_toml(text.removeprefix("\ufeff"))
    except TomlError as error:
        raise TaskRubricError(error.line or text.count("\n") + 1, str(error)) from None


def _start(text: str, name: str) -> int:
    """Where a key at the top stands; 0 if it is spelt in a way that hides it."""
    match = re.search(rf"^[ \t\[\"']*{re.escape(name)}[\"']?\s*[\]=.]", text, re.MULTILINE)
    return match.start() if match else 0


def _line(text: str, name: str) -> int:
    return text.count("\n", 0, _start(text, name)) + 1


def _text(text: str, values: Mapping[str, Any], name: str) -> str | None:
    """A text, or a list of texts as lines; an empty one counts as absent."""
    value = values.get(name, "")
    listed = [value] if isinstance(value, str) else value
    is_listed = isinstance(listed, list) and all(isinstance(item, str) for item in listed)
    if not is_listed or (name == "task_type" and not isinstance(value, str)):
        raise TaskRubricError(_line(text, name), f'"{name}" must be a text')
    joined = "\n".join(cast("list[str]", listed))
    return joined if joined.strip() else None


def _entries(text: str, value: object) -> Iterator[tuple[int, object]]:
    """The entries of `critical_fail`, each with its line: the next place where its words stand."""
    at = _start(text, "critical_fail")
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list):
        line = _line(text, "critical_fail")
        raise TaskRubricError(line, '"critical_fail" must be a list of texts and tables')
    for entry in cast("Sequence[object]", listed):
        words = list(cast("Mapping[str, Any]", entry)) if isinstance(entry, Mapping) else [entry]
        first = next((line for line in str(words[0]).splitlines() if line), "") if words else ""
        start = text.find(first, at)
        at = start if start >= 0 else at
        yield text.count("\n", 0, at) + 1, entry
        at += len(first) if start >= 0 else 0


def _read_entry(entry: object, line: int, critical: list[str], conditions: list[Condition]) -> None:
    if isinstance(entry, Mapping) and entry:
        for name, value in cast("Mapping[str, Any]", entry).items():
            conditions.append(_condition(name, value, line))
    elif isinstance(entry, str) and entry.strip():
        decidable = condition_of(entry, line)
        if decidable:
            conditions.append(decidable)
        else:
            critical.append(entry)
    else:
        message = "a condition is a text, or a table such as {max_chars = 500}"
        raise TaskRubricError(line, f"{message}, and is {quoted(entry)}")


def _condition(name: str, value: object, line: int) -> Condition:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TaskRubricError(line, f"{name} must be a text or a whole number")
    try:
        return build_condition(name, str(value), line)
    except ConditionError as error:
        raise TaskRubricError(line, str(error)) from None
