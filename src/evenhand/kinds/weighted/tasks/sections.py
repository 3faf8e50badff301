"""The sections of a task rubric: which lines stand under which heading.

A section ends at the next heading of its level or above. A heading below it that opens nothing of
its own belongs to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Literal

from evenhand.errors import quoted
from evenhand.kinds.weighted.tasks.labels import LABELS, find_section, key, split
from evenhand.kinds.weighted.tasks.lines import BOLD, ITEM, PLAIN, Line, TaskRubricError
from evenhand.kinds.weighted.tasks.types import split_label


@dataclass(slots=True)
class Part:
    """One section as it stands: the critical-fail conditions, facts, or (None) anything else."""

    kind: Literal["critical", "facts"] | None
    line: int
    lines: list[Line] = field(default_factory=list)
    has_begun: bool = False
    """Whether a line that is not blank stands in it."""


@dataclass(frozen=True, slots=True)
class _Opening:
    """A line that opens a part."""

    kind: Literal["critical", "facts"]
    level: int
    beside: list[Line]
    """What stands after the colon."""


def outline(lines: Sequence[Line]) -> list[Part]:
    """The parts in order, the rest of the text first; raises TaskRubricError."""
    rest = Part(None, 1)
    parts = [rest]
    open_parts: list[tuple[int, Part]] = [(0, rest)]
    opening = None
    for line in lines:
        is_underline = line.kind == "underline" and opening is not None
        opening = _opening(line)
        level = opening.level if opening else _level(line, *open_parts[-1])
        if level:
            while open_parts[-1][0] >= level:
                open_parts.pop()
            open_parts.append((level, open_parts[-1][1]))
        if opening:
            parts.append(Part(opening.kind, line.number, opening.beside, bool(opening.beside)))
            open_parts[-1] = (level, parts[-1])
            continue
        part = open_parts[-1][1]
        if part is rest:
            _check_stray(line)
        if not is_underline:
            part.lines.append(line)
            part.has_begun |= line.kind != "blank"
    return parts


def _level(line: Line, level: int, part: Part) -> int:
    """The level of a line that is a heading of any kind, else 0.

    Where a section was opened by a plain "Label:", another line of that form ends it, unless it
    comes first: then it introduces what follows.
    """
    if line.level:
        return line.level
    if level != PLAIN or not part.has_begun or line.kind != "text" or ITEM.match(line.text):
        return 0
    return PLAIN if re.fullmatch(r"\S.*[:：]\s*", line.text) else 0


def _opening(line: Line) -> _Opening | None:
    """The section that a line opens, as a heading or as a label with a colon."""
    if line.kind == "heading":
        label, inline = split_label(line.title)
        section = find_section(line.title)
        if section in ("critical", "facts"):
            return _Opening(section, line.level, [])
        section = find_section(label)
        if section in ("critical", "facts"):
            # Nothing below a heading continues what stands beside it.
            text = inline + line.raw[len(line.text) :]
            beside = [replace(line, raw=text, kind="text", level=0), replace(line, kind="gone")]
            return _Opening(section, line.level, beside if inline else [])
        _check_near(line)
        return None
    if line.kind != "text" or ITEM.match(line.text) or line.indent > 3:
        return None
    text = line.text.strip().removeprefix("\ufeff")
    is_bold = text.startswith(("**", "__"))
    label, inline = split_label(text)
    if not re.match(r"[*_\s]*[:：]", text[len(label) :]) or "=" in text[: len(label) + 1]:
        return None
    section = find_section(label, in_prose=bool(inline) and not is_bold)
    if section in ("critical", "facts"):
        rest = line.raw[line.raw.rindex(inline) :]
        beside = [replace(line, raw=rest)] if inline else []
        return _Opening(section, BOLD if is_bold else PLAIN, beside)
    return None


_KNOWN = {
    key(label): label
    for section in ("critical", "facts")
    for labels in LABELS[section].values()
    for label in split(labels)
}


def _check_near(line: Line) -> None:
    """Raise TaskRubricError for a misspelt heading: its conditions would be lost without a word."""
    label = key(split_label(line.title)[0])
    close = get_close_matches(label, _KNOWN, n=1, cutoff=0.87) if 7 < len(label) < 60 else []
    if close:
        section = _KNOWN[close[0]]
        message = f'did you mean the heading "{section}"? Spell it so, or choose another'
        raise TaskRubricError(line.number, f"{quoted(line.title)}: {message}")


def _check_stray(line: Line) -> None:
    """Raise TaskRubricError for a section's label as a list item: what is under it is unclear."""
    item = ITEM.match(line.text) if line.kind == "text" else None
    if item is None:
        return
    section = find_section(split_label(item["said"])[0], in_prose=True)
    if section in ("critical", "facts"):
        text = item["said"].strip(" *_:：")
        raise TaskRubricError(line.number, f"write {quoted(text)} as a heading, not as a list item")
