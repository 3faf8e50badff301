"""Rubrics of tasks, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.errors import quoted
from evenhand.kinds.protocol import Protocol
from evenhand.kinds.shared.rubric_form import RubricTextError, Understood
from evenhand.kinds.weighted.form import read_dimensions, read_types
from evenhand.kinds.weighted.page import TaskRubricError
from evenhand.kinds.weighted.task_rubric import describe_task, read_task

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
        parts = describe_task(read_task(rubric, task_types(protocol)))
        return Understood(parts, list(_lines(parts)))


def task_types(protocol: Protocol) -> tuple[str, ...]:
    """The types of task that a rubric may name; raises ProtocolError."""
    language = next(iter(protocol.languages), "en")
    dimensions = read_dimensions(protocol, language)
    return tuple(task_type.id for task_type in read_types(protocol, language, dimensions))


def _lines(parts: Mapping[str, Any]) -> Iterator[str]:
    yield f"task_type: {parts['task_type'] or 'not given; the judge infers it'}"
    yield f"critical-fail conditions for the judge: {len(parts['critical'])}"
    yield from (f"  - {condition}" for condition in parts["critical"])
    yield f"critical-fail conditions for code: {len(parts['conditions'])}"
    for condition in parts["conditions"]:
        pattern = condition.get("pattern")
        what = condition["limit"] if pattern is None else f"/{pattern}/{condition['flags']}"
        yield f"  - {condition['kind']}: {what}  (line {condition['line']})"
    yield "facts for the grader:" if parts["facts"] else "facts for the grader: none"
    yield from (f"  {line}" for line in (parts["facts"] or "").splitlines())
    yield "points to add and deduct:"
    yield from (f"  {line}" for line in parts["points"].strip().splitlines())
    headings = _HEADING.findall(parts["points"])
    if headings:
        listed = ", ".join(quoted(heading.strip()) for heading in headings)
        yield f"headings that are none of those above, and so points: {listed}"
