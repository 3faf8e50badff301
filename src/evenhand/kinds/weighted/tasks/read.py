"""Task rubrics of the `weighted` protocol: Markdown, read by its headings in four languages.

`read_task` is total: any text gives a TaskRubric or a TaskRubricError with a line. Nothing is
altered and nothing gets lost: each line is the type, a condition, a fact or a point.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evenhand.errors import quoted
from evenhand.kinds.weighted.tasks.conditions import (
    KINDS,
    Condition,
    ConditionError,
    Match,
    build_condition,
    check_together,
    find_condition,
)
from evenhand.kinds.weighted.tasks.entries import read_entries
from evenhand.kinds.weighted.tasks.labels import says_none
from evenhand.kinds.weighted.tasks.lines import ITEM, Line, TaskRubricError, read_lines
from evenhand.kinds.weighted.tasks.sections import Part, outline
from evenhand.kinds.weighted.tasks.types import take_type

__all__ = ["TYPES", "TaskRubric", "TaskRubricError", "read_task", "understood"]

TYPES = ("fact", "creative", "speculative")
# A rubric is a page or two; a book is a mistake.
RUBRIC_CHARS = 200_000
# With the time limit of each, they bound what one answer can take.
CONDITIONS_MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRubric:
    """What an answer is graded by. All texts are verbatim."""

    text: str
    """The whole."""
    task_type: str | None
    critical: tuple[str, ...]
    """Conditions that only the judge can decide."""
    conditions: tuple[Condition, ...]
    """Conditions that code decides."""
    facts: str | None
    points: str
    """The rest: what adds points and what deducts them."""


@lru_cache(maxsize=64)
def read_task(text: str, types: tuple[str, ...] = TYPES) -> TaskRubric:
    """The rubric of a Markdown text; raises TaskRubricError. Rows often repeat one: it is kept."""
    check_text(text)
    task_type, lines = take_type(read_lines(text), types)
    parts = outline(lines)
    critical: list[str] = []
    conditions: list[Condition] = []
    for part in parts:
        if part.kind == "critical":
            _read_critical(part, critical, conditions)
        elif part.kind is None:
            _check_points(part)
    return TaskRubric(
        text=text,
        task_type=task_type,
        critical=tuple(critical),
        conditions=checked(conditions),
        facts=_facts([part for part in parts if part.kind == "facts"]),
        points=_joined(line for part in parts if part.kind is None for line in part.lines),
    )


def understood(rubric: TaskRubric) -> dict[str, Any]:
    """What was read from a rubric, as `check --rubric` shows it."""
    return {
        "task_type": rubric.task_type,
        "critical": list(rubric.critical),
        "conditions": [_shown(condition) for condition in rubric.conditions],
        "facts": rubric.facts,
        "points": rubric.points,
    }


def _shown(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, Match):
        return {
            "kind": condition.kind,
            "pattern": condition.pattern,
            "flags": condition.flags,
            "line": condition.line,
        }
    return {"kind": condition.kind, "limit": condition.limit, "line": condition.line}


def check_text(text: str) -> None:
    """Raise TaskRubricError unless there is something to read, and it can be stored and sent."""
    if not text.strip("\ufeff \t\r\n"):
        raise TaskRubricError(1, "the rubric is empty")
    if len(text) > RUBRIC_CHARS:
        raise TaskRubricError(1, f"the rubric is longer than {RUBRIC_CHARS} characters")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise TaskRubricError(line, "the rubric is no Unicode text") from None


def checked(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """The conditions, if an answer could pass them all; raises TaskRubricError."""
    if len(conditions) > CONDITIONS_MOST:
        message = f"there are more than {CONDITIONS_MOST} conditions for code to decide"
        raise TaskRubricError(conditions[CONDITIONS_MOST].line, message)
    try:
        check_together(conditions)
    except ConditionError as error:
        raise TaskRubricError(error.line or 1, f"no answer can pass: {error}") from None
    return tuple(conditions)


def condition_of(text: str, line: int) -> Condition | None:
    """The condition for code that a text is; None if only the judge can tell."""
    keyed = find_condition(text)
    if keyed is None:
        return None
    if re.search(r"[\r\n]", text):
        raise TaskRubricError(line, f"{keyed[0]} must stand on one line of its own")
    try:
        return build_condition(*keyed, line)
    except ConditionError as error:
        raise TaskRubricError(line, str(error)) from None


def _read_critical(part: Part, critical: list[str], conditions: list[Condition]) -> None:
    entries = read_entries(part)
    if not entries:
        raise TaskRubricError(
            part.line, 'nothing stands under this heading; write a condition, or "none"'
        )
    denied = [entry for entry in entries if says_none(entry.text)]
    if denied and len(entries) > 1:
        raise TaskRubricError(
            denied[0].line, f"{quoted(denied[0].text)} stands beside other conditions"
        )
    for entry in entries if not denied else []:
        decidable = condition_of(entry.text, entry.line)
        if decidable:
            conditions.append(decidable)
        else:
            critical.append(entry.text)


def _facts(parts: Sequence[Part]) -> str | None:
    texts: list[str] = []
    for part in parts:
        text = _joined(part.lines)
        if not text:
            raise TaskRubricError(
                part.line, 'nothing stands under this heading; write the facts, or "none"'
            )
        if not says_none(text):
            texts.append(text)
    return "\n\n".join(texts) or None


def _joined(lines: Iterator[Line] | Sequence[Line]) -> str:
    """The lines as they stand, without blank lines and rules at the ends."""
    left = [line for line in lines if line.kind != "gone"]
    filled = [n for n, line in enumerate(left) if line.kind not in ("blank", "rule")]
    trimmed = left[filled[0] : filled[-1] + 1] if filled else []
    return "".join(line.raw for line in trimmed).removeprefix("\ufeff").rstrip("\r\n")


def _check_points(part: Part) -> None:
    """Raise TaskRubricError for a condition that stands where nobody would decide it."""
    for line in part.lines:
        item = ITEM.match(line.text) if line.kind == "text" else None
        keyed = find_condition(item["said"] if item else "")
        if keyed and keyed[0] in KINDS:
            message = f"{keyed[0]} stands outside the critical-fail section; move it there"
            raise TaskRubricError(line.number, message)
