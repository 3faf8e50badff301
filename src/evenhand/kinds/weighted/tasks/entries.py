"""The list items and paragraphs of a section, each kept whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evenhand.kinds.weighted.tasks.conditions import find_condition
from evenhand.kinds.weighted.tasks.lines import ITEM, Line
from evenhand.kinds.weighted.tasks.sections import Part

_BREAKS = ("heading", "underline", "rule", "gone")


@dataclass(slots=True)
class Entry:
    """A list item or a paragraph, and the blank lines that may turn out to be inside it."""

    line: int
    text: str
    indent: int | None = None
    """Of a list item; a paragraph has none."""
    level: int = 0
    """Of a heading."""
    gap: str = ""


def read_entries(part: Part) -> list[Entry]:
    """The conditions of a section: its items, and paragraphs and headings that lead to none."""
    blocks = [block for block in _blocks(part) if block.text.strip("-*+•・")]
    entries: list[Entry] = []
    for index, entry in enumerate(blocks):
        after = blocks[index + 1] if index + 1 < len(blocks) else None
        entries.extend(_conditions(entry) or ([] if _leads(entry, after) else [entry]))
    return entries


def _leads(entry: Entry, after: Entry | None) -> bool:
    """Whether a block introduces the next: a heading what is under it, a paragraph a list."""
    if after is None or entry.indent is not None:
        return False
    if entry.level:
        return not after.level or after.level > entry.level
    return after.indent is not None


def _conditions(block: Entry) -> list[Entry]:
    """The conditions for code that stand one under the other, without list marks or in a fence."""
    if block.indent is not None:
        return []
    rows = enumerate(re.split(r"\r\n|\n|\r", block.text))
    texts = [
        (n, row) for n, row in rows if row.strip() and not row.lstrip().startswith(("```", "~~~"))
    ]
    if not texts or not all(find_condition(_said(row)) for _, row in texts):
        return []
    return [Entry(block.line + n, _said(row)) for n, row in texts]


def _said(row: str) -> str:
    item = ITEM.match(row)
    return (item["said"] if item else row).strip()


def _blocks(part: Part) -> Iterator[Entry]:
    current: Entry | None = None
    for line in part.lines:
        if line.kind in ("blank", "comment"):
            if current:
                current.gap += line.raw
            continue
        item = ITEM.match(line.text) if line.kind == "text" else None
        if current and _continues(current, line, is_item=item is not None):
            current.text += current.gap + line.raw
            current.gap = ""
            continue
        if current:
            yield _ended(current)
        current = None
        if line.kind == "heading":
            yield Entry(line.number, line.title, level=line.level)
        elif line.kind not in _BREAKS:
            text = line.raw[item.start("said") :] if item else line.raw
            current = Entry(line.number, text, line.indent if item else None)
    if current:
        yield _ended(current)


def _continues(current: Entry, line: Line, *, is_item: bool) -> bool:
    """Whether a line belongs to the entry above it: nested in it, or following without a gap."""
    if line.kind in _BREAKS:
        return False
    if current.indent is None:
        return not is_item and not current.gap
    is_nested = line.indent > current.indent + (1 if is_item else 0)
    return is_nested or (not is_item and not current.gap)


def _ended(entry: Entry) -> Entry:
    entry.text = entry.text.strip()
    return entry
