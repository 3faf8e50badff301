"""The `task_type` line of a task rubric, in any of its usual spellings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.errors import nearest, quoted
from evenhand.kinds.weighted.tasks.labels import find_section, find_type, says_none
from evenhand.kinds.weighted.tasks.lines import BOLD, ITEM, PLAIN, Line, TaskRubricError

# A label is short; a long line of prose is not searched for one.
LABEL_CHARS = 80


@dataclass(frozen=True, slots=True)
class TypeLine:
    """One line that says the type; without a value it stands on a line below."""

    line: Line
    level: int
    value: str


def take_type(lines: Sequence[Line], types: Sequence[str]) -> tuple[str | None, list[Line]]:
    """The task type, and the lines with those that say it marked `gone`; raises TaskRubricError."""
    out = list(lines)
    first: tuple[str, int] | None = None
    for index, line in enumerate(lines):
        if out[index].kind == "gone":
            continue
        text = _type_line(line, lines[index - 1] if index else None)
        if text is None:
            continue
        out[index] = replace(line, kind="gone", level=text.level)
        if index + 1 < len(lines) and lines[index + 1].kind == "underline":
            out[index + 1] = replace(lines[index + 1], kind="gone")
        value = text.value or _value_below(lines, out, index)
        named = named_type(value, types, line.number)
        if named and first and named != first[0]:
            raise TaskRubricError(
                line.number, f"task_type is {named} here and {first[0]} on line {first[1]}"
            )
        first = first or ((named, line.number) if named else None)
    return first[0] if first else None, _without_empty_frames(out)


def _type_line(line: Line, before: Line | None) -> TypeLine | None:
    if line.kind == "heading":
        label, value = split_label(line.title)
        return TypeLine(line, line.level, value) if find_section(label) == "type" else None
    opens_fence = line.kind == "code" and before is not None and before.kind == "fence"
    if line.kind not in ("text", "front") and not opens_fence:
        return None
    item = ITEM.match(line.text)
    text = (item["said"] if item else line.text).strip().removeprefix("\ufeff").strip()
    cells = [cell.strip() for cell in text.strip("|").split("|")]
    if text.startswith("|") and len(cells) == 2:
        label, value = cells
    elif re.search(r"[:：=]", text):
        label, value = split_label(text)
    else:
        return None
    return TypeLine(line, PLAIN, value) if find_section(label) == "type" else None


def split_label(text: str) -> tuple[str, str]:
    """What stands before and after the first colon or equals sign."""
    parts = re.split(r"[:：=]", text[: LABEL_CHARS + 1], maxsplit=1)
    if len(parts) == 1:
        return (text if len(text) <= LABEL_CHARS else ""), ""
    rest = text[len(parts[0]) + 1 :].strip()
    for mark in ("**", "__"):
        # "**Label:** text": the mark that closes the label is no part of the text.
        rest = rest.removeprefix(mark).strip() if parts[0].lstrip().startswith(mark) else rest
    return parts[0], rest


def _value_below(lines: Sequence[Line], out: list[Line], index: int) -> str:
    """The first text under a label that has no value beside it."""
    for below in range(index + 1, len(lines)):
        line = lines[below]
        if line.kind in ("text", "code", "front") or line.level == BOLD:
            out[below] = replace(line, kind="gone", level=0)
            return line.text.strip()
        if line.kind == "heading":
            break
    raise TaskRubricError(lines[index].number, "task_type has no value")


_BETWEEN = re.compile(r"[/|,，、;；／｜]|\s[-–—]\s|\sor\s|\sили\s|或|または|(?=[(（])|\s#")


def named_type(value: str, types: Sequence[str], number: int) -> str | None:
    """The type that a value names; None where it says that none is given."""
    whole = find_type(value, types)
    if whole or says_none(value):
        return whole
    names = [find_type(part, types) for part in _BETWEEN.split(value)]
    if len(set(names) - {None}) > 1:
        raise TaskRubricError(
            number, f"task_type names more than one type: {quoted(value)}; leave one"
        )
    if names[0] is None:
        near = nearest(value.strip(" *_`\"'").lower(), types)
        meant = f'did you mean "{near}"? The' if near else "the"
        listed = ", ".join(types)
        raise TaskRubricError(
            number, f"unknown task_type {quoted(value)}; {meant} known types are {listed}"
        )
    return names[0]


def _without_empty_frames(lines: list[Line]) -> list[Line]:
    """Code fences and front matter that held nothing but the type are gone with it."""
    out, opening = list(lines), -1
    for index, line in enumerate(lines):
        if opening < 0 and _is_frame(line):
            opening = index
        elif opening >= 0 and _is_frame(line):
            inner = lines[opening + 1 : index]
            had_type = any(inside.kind == "gone" for inside in inner)
            rest = [inside for inside in inner if inside.kind != "gone" and inside.raw.strip()]
            if had_type and not rest:
                for empty in range(opening, index + 1):
                    out[empty] = replace(out[empty], kind="gone")
            opening = -1
    return out


def _is_frame(line: Line) -> bool:
    marks = ("---", "+++", "...")
    at_front = line.kind == "front" and line.text.removeprefix("\ufeff").rstrip() in marks
    return line.kind == "fence" or at_front
