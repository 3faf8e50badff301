"""Rubrics of tasks, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evenhand.errors import quoted
from evenhand.kinds.kind import RubricTextError, Understood
from evenhand.kinds.protocol import Protocol
from evenhand.kinds.weighted.form import read_dimensions, read_types
from evenhand.kinds.weighted.task_rubric import TaskRubric, TaskRubricError, read_task

_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
# One word with an ending is a file's name, be it mistyped; a rubric says more.
_FILE = re.compile(r"\S+\.[A-Za-z]\w{0,8}")


class TaskForm:
    """The rubric of a task: its type, conditions, facts, and points to add and deduct."""

    endings = (".md", ".markdown")
    about = "a task's rubric is Markdown"
    beside = ()
    has_bands = False

    def parse(self, text: str, ending: str, protocol: Protocol) -> str:
        try:
            read_task(text, task_types(protocol))
        except TaskRubricError as error:
            raise RubricTextError(str(error), line=error.line) from None
        return text

    def is_file(self, rubric: object) -> bool:
        if not isinstance(rubric, str) or "\n" in rubric:
            return False
        return rubric.lower().endswith(self.endings) or _FILE.fullmatch(rubric) is not None

    def doubts(self, rubric: Any) -> Iterator[str]:
        """None: whatever is no condition and no fact is a point to add or deduct."""
        return iter(())

    def understood(self, rubric: Any, protocol: Protocol) -> Understood:
        task = read_task(rubric, task_types(protocol))
        return Understood(describe_task(task), list(_lines(task)))


def task_types(protocol: Protocol) -> tuple[str, ...]:
    """The types of task that a rubric may name; raises ProtocolError."""
    language = next(iter(protocol.languages), "en")
    dimensions = read_dimensions(protocol, language)
    return tuple(task_type.id for task_type in read_types(protocol, language, dimensions))


def describe_task(rubric: TaskRubric) -> dict[str, Any]:
    """Return what was read from a rubric, as `check --rubric --json` shows it."""
    return {
        "task_type": rubric.task_type,
        "critical": list(rubric.critical),
        "conditions": [
            {"kind": each.kind, "pattern": each.pattern, "flags": each.flags, "line": each.line}
            if each.pattern
            else {"kind": each.kind, "limit": each.limit, "line": each.line}
            for each in rubric.conditions
        ],
        "facts": rubric.facts,
        "points": rubric.points,
    }


def _lines(rubric: TaskRubric) -> Iterator[str]:
    yield f"task_type: {rubric.task_type or 'not given; the judge infers it'}"
    yield f"critical-fail conditions for the judge: {len(rubric.critical)}"
    yield from (f"  - {condition}" for condition in rubric.critical)
    yield f"critical-fail conditions for code: {len(rubric.conditions)}"
    for condition in rubric.conditions:
        yield f"  - {condition.kind}: {condition.written}  (line {condition.line})"
    yield "facts for the grader:" if rubric.facts else "facts for the grader: none"
    yield from (f"  {line}" for line in (rubric.facts or "").splitlines())
    yield "points to add and deduct:"
    yield from (f"  {line}" for line in rubric.points.strip().splitlines())
    headings = _HEADING.findall(rubric.points)
    if headings:
        listed = ", ".join(quoted(heading.strip()) for heading in headings)
        yield f"headings that are none of those above, and so points: {listed}"
