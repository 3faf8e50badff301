"""Task rubrics of the `weighted` protocol: Markdown, read by its headings in four languages.

`read_task` returns a TaskRubric for any text, or raises TaskRubricError with a line. Nothing is
altered and nothing gets lost: each line is the type, a condition, a fact or a point.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple, TypeAlias
from unicodedata import category, normalize

from evenhand.errors import nearest, quoted
from evenhand.kinds.weighted.conditions import (
    KINDS,
    Condition,
    ConditionError,
    Match,
    build_condition,
    check_together,
    find_condition,
)
from evenhand.kinds.weighted.page import ITEM, LABEL_LEVEL, Block, Page, TaskRubricError, with_next

TYPES = ("fact", "creative", "speculative")
RUBRIC_CHARS = 200_000
"""A rubric is a page or two; a book is a mistake."""
CONDITIONS_MOST = 100
"""With the time limit of each, this bounds what one answer can take."""
Section: TypeAlias = Literal["critical", "facts", "points"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRubric:
    """All that an answer is graded by, verbatim."""

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
    """Return the rubric of a Markdown text; raise TaskRubricError."""
    _check_text(text)
    page = Page(text)
    task_type = _take_type(page, types)
    parts = _split_sections(page)
    critical: list[str] = []
    conditions: list[Condition] = []
    for part in parts:
        if part.section == "critical":
            for entry in _read_entries(page, part):
                condition = _read_condition(entry)
                if condition is None:
                    critical.append(entry.text)
                else:
                    conditions.append(condition)
        elif part.section == "points":
            _refuse_conditions(page, part)
    return TaskRubric(
        text=text,
        task_type=task_type,
        critical=tuple(critical),
        conditions=_check_conditions(conditions),
        facts=_read_facts(page, parts),
        points=page.join(line for part in parts if part.section == "points" for line in part.lines),
    )


def describe_task(rubric: TaskRubric) -> dict[str, Any]:
    """Return what was read from a rubric, as `check --rubric` shows it."""
    return {
        "task_type": rubric.task_type,
        "critical": list(rubric.critical),
        "conditions": [_describe_condition(condition) for condition in rubric.conditions],
        "facts": rubric.facts,
        "points": rubric.points,
    }


def _describe_condition(condition: Condition) -> dict[str, Any]:
    value: dict[str, Any] = {"kind": condition.kind}
    if isinstance(condition, Match):
        return value | {
            "pattern": condition.pattern,
            "flags": condition.flags,
            "line": condition.line,
        }
    return value | {"limit": condition.limit, "line": condition.line}


def _check_text(text: str) -> None:
    """Raise TaskRubricError unless the text has content and can be stored and sent."""
    if not text.strip("\ufeff \t\r\n"):
        raise TaskRubricError(1, "the rubric is empty")
    if len(text) > RUBRIC_CHARS:
        raise TaskRubricError(1, f"the rubric is longer than {RUBRIC_CHARS} characters")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise TaskRubricError(line, "the rubric is not Unicode text") from None


# Labels.


@cache
def labels() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the headings and words of `headings.toml`."""
    return tomllib.loads(files(__package__).joinpath("headings.toml").read_text("utf-8"))


@cache
def _keys(table: str) -> Mapping[str, str]:
    """Return the label of each key of a table."""
    return {_key(label): label for words in labels()[table].values() for label in words}


@lru_cache(maxsize=1024)
def _key(text: str) -> str:
    """Return letters and digits alone, in lower case: labels are compared by these."""
    folded = normalize("NFKC", text).casefold().replace("ё", "е")
    return "".join(char for char in folded if category(char)[0] in "LN")


_LABEL_CHARS = 160
"""A longer line is prose, whatever it begins with."""
_REMARK = re.compile(r"\s*[(（\[［【][^()（）]*[)）\]］】]\s*[:：]?\s*$")
_NUMBERING = re.compile(
    r"\W*(?:\d+(?:\.\d+)*|[IVX]+|[一二三四五六七八九十]+)(?:[.)、．:：]|\s)\s*"
    r"|第[\d一二三四五六七八九十]+[章节節部項项条]\s*"
)


def _find_label(text: str, table: str) -> bool:
    """Return True if a text is a label of a table, whatever its numbering, remark or marks."""
    if len(text) > _LABEL_CHARS:
        return False
    plain = text.strip(" *_`#:：")
    spellings = (plain, _REMARK.sub("", plain), _NUMBERING.sub("", plain, count=1))
    return any(_key(spelling) in _keys(table) for spelling in spellings)


def _says_none(text: str) -> bool:
    return _key(text) in _keys("none") or text.strip("*_- ") in ("–", "—")


# The task type.

_TYPE_LINE = re.compile(r"[^\w:：=]*+(?P<label>\w[^:：=|]{1,39}?)[\s*_`\"]*+[:：=|](?P<value>.*)")


def _take_type(page: Page, types: Sequence[str]) -> str | None:
    """Return the task type and mark its lines as gone; raise TaskRubricError."""
    first: tuple[str, int] | None = None
    for index, value in _type_values(page):
        named = _name_type(value, types, index + 1)
        if named and first and named != first[0]:
            message = f"task_type is {named} here and {first[0]} on line {first[1]}"
            raise TaskRubricError(index + 1, message)
        first = first or ((named, index + 1) if named else None)
    return first[0] if first else None


def _type_values(page: Page) -> Iterator[tuple[int, str]]:
    """Yield the lines that say the type, each with its value."""
    for index in range(page.front):
        match = _TYPE_LINE.fullmatch(page.lines[index])
        if match and _find_label(match["label"], "type"):
            yield index, match["value"]
    page.gone.update(range(page.front))
    for block, after in with_next(page.blocks):
        if block.kind not in ("heading", "paragraph", "list"):
            continue
        for index in range(block.start, block.end):
            line = page.lines[index]
            match = _TYPE_LINE.fullmatch(line)
            if match and match["value"].strip(" *_|") and _find_label(match["label"], "type"):
                page.gone.update(_underlined(block, index))
                yield index, match["value"]
            elif (block.kind == "heading" or match) and _find_label(line, "type"):
                page.gone.update(_underlined(block, index))
                if after is None or 0 < after.level < LABEL_LEVEL:
                    raise TaskRubricError(index + 1, "task_type has no value")
                page.gone.add(after.start)
                yield after.start, page.lines[after.start]


def _underlined(block: Block, index: int) -> range:
    """Return the lines of a heading with its underline; of other blocks, the one line."""
    return range(index, block.end if block.kind == "heading" else index + 1)


_BETWEEN = re.compile(r"[/|,，、;；／｜]|\s[-–—]\s|\sor\s|\sили\s|或|または|(?=[(（])|\s#")


def _name_type(value: str, types: Sequence[str], line: int) -> str | None:
    """Return the type that a value names; None where it says that none is given."""
    whole = find_type(value, types)
    if whole or _says_none(value):
        return whole
    names = [find_type(part, types) for part in _BETWEEN.split(value.strip(" |"))]
    if len(set(names) - {None}) > 1:
        message = f"task_type names more than one type: {quoted(value)}; leave one"
        raise TaskRubricError(line, message)
    if names[0] is None:
        near = nearest(value.strip(" *_`\"'").lower(), types)
        meant = f'did you mean "{near}"? The' if near else "the"
        message = f"unknown task_type {quoted(value.strip())}; {meant} known types are "
        raise TaskRubricError(line, message + ", ".join(types))
    return names[0]


_TYPE_NOUN = re.compile(r"(?:type|task|тип|задача|задание|任务|任務|タスク|类型|類型|类|類|型)+$")


def find_type(value: str, types: Sequence[str]) -> str | None:
    """Return the type that a word names, itself or in one of the four languages."""
    key = _TYPE_NOUN.sub("", _key(value)) or _key(value)
    known = {_key(word): name for name, words in labels()["values"].items() for word in words}
    named = {_key(name): name for name in types}.get(_key(value)) or known.get(key)
    return named if named in types else None


# Sections.


@dataclass(slots=True)
class _Part:
    """One section: the line that opened it, its lines and its blocks."""

    section: Section
    opened: int = 0
    beside: str = ""
    """The text after the colon of the line that opened it."""
    lines: list[int] = field(default_factory=list[int])
    blocks: list[Block] = field(default_factory=list[Block])


def _split_sections(page: Page) -> list[_Part]:
    """Return the parts in order. A section ends at the next heading of its level or above; other
    headings below it belong to it."""
    points = _Part("points")
    parts, stack = [points], [(0, points)]
    done = page.front
    for block in page.blocks:
        stack[-1][1].lines += range(done, block.start)
        done = block.end
        opened = _open_section(page, block)
        level = opened[0] if opened else block.level or _label_level(page, block, *stack[-1])
        if level:
            while stack[-1][0] >= level:
                stack.pop()
            stack.append((level, stack[-1][1]))
        if opened:
            parts.append(opened[1])
            stack[-1] = (level, opened[1])
        part, content = stack[-1][1], opened[2] if opened else block
        if content is None:
            continue
        if part is points:
            _refuse_near_label(page, content)
        part.blocks.append(content)
        part.lines += range(content.start, content.end)
    stack[-1][1].lines += range(done, len(page.lines))
    return parts


def _label_level(page: Page, block: Block, level: int, part: _Part) -> int:
    """Return the level of another plain `Label:`, which ends a section that one opened, unless it
    comes first there; else 0."""
    if level != LABEL_LEVEL or block.kind != "paragraph" or not part.blocks:
        return 0
    return level if re.fullmatch(r"\S.*[:：]\s*", page.lines[block.end - 1]) else 0


def _open_section(page: Page, block: Block) -> tuple[int, _Part, Block | None] | None:
    """Return the level and the part that a block opens, and the rest of the block; None if it
    opens none."""
    if block.kind == "heading":
        label, value = _split_label(block.title)
        level, rest = block.level, None
    elif block.kind == "paragraph" and block.start not in page.gone:
        label, value = _split_label(page.lines[block.start])
        is_bold = page.lines[block.start].lstrip().startswith(("**", "__"))
        if not label or (value and not is_bold and not _find_label(label, "facts")):
            return None  # prose that begins with these words
        level = LABEL_LEVEL
        rest = block._replace(start=block.start + 1) if block.end > block.start + 1 else None
    else:
        return None
    for section in ("critical", "facts"):
        for text, beside in ((label, value), (block.title, "")):
            if text and _find_label(text, section):
                return level, _Part(section, block.start, beside), rest
    return None


def _split_label(text: str) -> tuple[str, str]:
    """Return the text before and after the first colon; no label without a colon."""
    label, colon, rest = re.sub("：", ":", text, count=1).partition(":")
    return (label, re.sub(r"^[\s*_]+", "", rest).strip()) if colon else ("", "")


def _refuse_near_label(page: Page, block: Block) -> None:
    """Raise TaskRubricError for a misspelt heading or one as a list item: what stands under it
    would be lost without a word."""
    known = {**_keys("critical"), **_keys("facts")}
    if block.kind == "heading":
        key = _key(_REMARK.sub("", block.title[:_LABEL_CHARS]))
        close = get_close_matches(key, known, n=1, cutoff=0.87) if 7 < len(key) < 60 else []
        if close:
            message = f'{quoted(block.title)}: did you mean the heading "{known[close[0]]}"?'
            raise TaskRubricError(block.start + 1, message)
    for start, _ in block.items:
        text = ITEM.sub("", page.lines[start], count=1).strip(" *_:：")
        if _key(text) in known:
            message = f"write {quoted(text)} as a heading, not as a list item"
            raise TaskRubricError(start + 1, message)


# What stands in a section.


class _Entry(NamedTuple):
    """A condition as it stands."""

    line: int
    text: str


def _read_entries(page: Page, part: _Part) -> list[_Entry]:
    """Return the conditions of a section: its list items, and paragraphs that introduce no list."""
    entries = [_Entry(part.opened + 1, part.beside)] if part.beside else []
    for block, after in with_next(part.blocks):
        entries += _block_entries(page, block, after)
    entries = [entry for entry in entries if entry.text]
    if not entries:
        message = 'nothing stands under this heading; write a condition, or "none"'
        raise TaskRubricError(part.opened + 1, message)
    none = [entry for entry in entries if _says_none(entry.text)]
    if none and len(entries) > 1:
        message = f"{quoted(none[0].text)} stands beside other conditions"
        raise TaskRubricError(none[0].line, message)
    return [] if none else entries


def _block_entries(page: Page, block: Block, after: Block | None) -> list[_Entry]:
    if block.kind == "list":
        return [
            _Entry(start + 1, ITEM.sub("", page.join(range(start, end)), count=1).strip())
            for start, end in block.items
        ]
    rows = [row for row in range(block.start, block.end) if row not in page.gone]
    if block.kind == "fence":
        rows = rows[1:-1]
    texts = [_Entry(row + 1, page.lines[row].strip()) for row in rows if page.lines[row].strip()]
    if texts and all(find_condition(entry.text) for entry in texts):
        return texts
    if block.kind == "heading":
        leads = after is not None and (not after.level or after.level > block.level)
        return [] if leads else [_Entry(block.start + 1, block.title)]
    leads = after is not None and after.kind == "list" and block.kind == "paragraph"
    if leads or block.kind in ("hr", "html_block"):
        return []
    return [_Entry(block.start + 1, page.join(rows).strip())]


def _read_condition(entry: _Entry) -> Condition | None:
    """Return the condition for code that an entry is; None if only the judge can tell."""
    keyed = find_condition(entry.text)
    if keyed is None:
        return None
    if re.search(r"[\r\n]", entry.text):
        raise TaskRubricError(entry.line, f"{keyed[0]} must stand on one line of its own")
    try:
        return build_condition(*keyed, entry.line)
    except ConditionError as error:
        raise TaskRubricError(entry.line, str(error)) from None


def _check_conditions(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions if an answer could pass them all; raise TaskRubricError."""
    if len(conditions) > CONDITIONS_MOST:
        message = f"there are more than {CONDITIONS_MOST} conditions for code to decide"
        raise TaskRubricError(conditions[CONDITIONS_MOST].line, message)
    try:
        check_together(conditions)
    except ConditionError as error:
        raise TaskRubricError(error.line or 1, f"no answer can pass: {error}") from None
    return tuple(conditions)


def _read_facts(page: Page, parts: Sequence[_Part]) -> str | None:
    texts: list[str] = []
    for part in parts:
        if part.section != "facts":
            continue
        text = "\n".join(filter(None, [part.beside, page.join(part.lines)]))
        if not text:
            message = 'nothing stands under this heading; write the facts, or "none"'
            raise TaskRubricError(part.opened + 1, message)
        if not _says_none(text):
            texts.append(text)
    return "\n\n".join(texts) or None


def _refuse_conditions(page: Page, part: _Part) -> None:
    """Raise TaskRubricError for a condition that stands where nobody would decide it."""
    for block in part.blocks:
        for start, _ in block.items:
            keyed = find_condition(ITEM.sub("", page.lines[start], count=1))
            if keyed and keyed[0] in KINDS:
                message = f"{keyed[0]} stands outside the critical-fail section; move it there"
                raise TaskRubricError(start + 1, message)
