"""Task rubrics of the `weighted` protocol: Markdown, read by its headings in four languages.

`read_task` returns a TaskRubric for any text, or raises TaskRubricError with a line. Nothing is
altered and nothing gets lost: each line is the type, a condition, a fact or a point.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from itertools import zip_longest
from typing import NamedTuple
from unicodedata import category, normalize

from evenhand.errors import nearest, quoted
from evenhand.kinds.weighted.conditions import (
    KINDS,
    Condition,
    ConditionError,
    build_condition,
    check_together,
    find_condition,
)

TYPES = ("fact", "creative", "speculative")
RUBRIC_CHARS = 200_000
"""A rubric is a page or two; a book is a mistake."""
CONDITIONS_MOST = 100
"""With the time limit of each, this bounds what one answer can take."""
_BOLD_LEVEL = 7
"""The level of a line in bold, below all headings of Markdown."""
_LABEL_CHARS = 160
"""A longer line is prose, whatever it begins with."""


class TaskRubricError(ValueError):
    """A task rubric that cannot be read, and the line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


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
    page = _Page(text)
    task_type = _take_type(page, types)
    points, *sections = _split_sections(page)
    _refuse_conditions(page, points)
    entries = [
        entry for each in sections if each.name == "critical" for entry in _read_entries(page, each)
    ]
    decidable = [(entry, _read_condition(*entry)) for entry in entries]
    facts = [_read_facts(page, each) for each in sections if each.name == "facts"]
    return TaskRubric(
        text=text,
        task_type=task_type,
        critical=tuple(entry[1] for entry, condition in decidable if condition is None),
        conditions=_check_conditions([condition for _, condition in decidable if condition]),
        facts="\n\n".join(filter(None, facts)) or None,
        points=page.join(points.lines),
    )


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


# The page: lines and top-level blocks.


class Block(NamedTuple):
    """A top-level block of Markdown, by the indexes of its lines, half-open. A heading has a level;
    `items` are the spans of the items of a list."""

    kind: str
    start: int
    end: int
    level: int = 0
    title: str = ""
    items: Sequence[tuple[int, int]] = ()


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_CJK_BULLET = re.compile(r"([ \t\u3000]*)(?:[•・‣◦▪●○]|\d{1,3}[、．）]|[(（]\d{1,3}[)）]|[①-⑳])")
_TIGHT_HEADING = re.compile(r"( {0,3}#{2,6})(?=[^#\s])")
_ITEM = re.compile(
    r"[ \t\u3000]*(?:[-*+•・‣◦▪●○]|\d{1,9}[.)、．）]|[(（]\d{1,3}[)）]|[①-⑳])[ \t\u3000]*"
    r"(?:\[[ xX]\][ \t]+)?"
)
_BOLD_LINE = re.compile(r"(\*\*|__)(?=\S)((?:(?!\1).)+)\1[ \t]*[:：]?[ \t]*")


class _Page:
    """A text by lines and blocks; lines that say the type are `gone`."""

    def __init__(self, text: str) -> None:
        self.raw = _LINE.findall(text)
        self.lines = [line.rstrip("\r\n").removeprefix("\ufeff") for line in self.raw]
        self.front = _count_front_matter(self.lines)
        self.gone = set(range(self.front))
        body = [
            _TIGHT_HEADING.sub(r"\1 ", _CJK_BULLET.sub(r"\1- ", line))
            for line in self.lines[self.front :]
        ]
        front = [Block("front", 0, self.front)] if self.front else []
        self.blocks = [*front, *_find_blocks([""] * self.front + body)]

    def join(self, indexes: Iterable[int]) -> str:
        """Return lines verbatim, without blank lines and rules at the ends."""
        kept = [index for index in indexes if index not in self.gone]
        while kept and not self.lines[kept[0]].strip("-*_ \t"):
            del kept[0]
        while kept and not self.lines[kept[-1]].strip("-*_ \t"):
            del kept[-1]
        return "".join(self.raw[index] for index in kept).removeprefix("\ufeff").rstrip("\r\n")


def _count_front_matter(lines: Sequence[str]) -> int:
    """Return the number of lines of a YAML front matter, 0 if there is none."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    for index, line in enumerate(lines[1:], 1):
        if line.rstrip() in ("---", "..."):
            return index + 1
        if line.strip() and ":" not in line and not line.startswith((" ", "#", "-")):
            return 0
    return 0


def _find_blocks(lines: Sequence[str]) -> Iterator[Block]:
    from markdown_it import MarkdownIt  # here: only rubrics of tasks need it

    # Marks inside a line are not needed, and reading them takes quadratic time at worst.
    tokens = MarkdownIt("commonmark").disable("inline").parse("\n".join(lines))
    for index, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        start, end = token.map
        if token.type == "heading_open":
            yield Block("heading", start, end, int(token.tag[1]), tokens[index + 1].content)
        elif token.type == "paragraph_open":
            bold = _BOLD_LINE.fullmatch(lines[start].strip()) if end == start + 1 else None
            if bold:
                yield Block("heading", start, end, _BOLD_LEVEL, bold[2])
            else:
                yield Block("paragraph", start, end)
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            items = [
                (each.map[0], each.map[1])
                for each in tokens[index + 1 :]
                if each.type == "list_item_open" and each.level == 1 and each.map
                if start <= each.map[0] < end
            ]
            yield Block("list", start, end, items=items)
        else:
            _require_closed(token.type, lines[start:end], start)
            if token.type == "fence" and len(lines) == end - start:
                raise TaskRubricError(1, "the whole rubric is in a code fence; take the fence off")
            yield Block(token.type, start, end)


def _require_closed(kind: str, lines: Sequence[str], start: int) -> None:
    """Raise TaskRubricError for a fence or comment that hides the rest of the text."""
    mark = lines[0].strip()[:3]
    if kind == "fence" and (len(lines) < 2 or not lines[-1].strip().startswith(mark)):
        raise TaskRubricError(start + 1, f"the code fence {mark} that opens here never closes")
    if lines[0].lstrip().startswith("<!--") and "-->" not in "".join(lines):
        raise TaskRubricError(start + 1, "the comment <!-- that opens here never closes")


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


_REMARK = re.compile(r"\s*[(（\[［【][^()（）]*[)）\]］】]\s*[:：]?\s*$")
_NUMBERING = re.compile(
    r"\W*(?:\d+(?:\.\d+)*|[IVX]+|[一二三四五六七八九十]+)(?:[.)、．:：]|\s)\s*"
    r"|第[\d一二三四五六七八九十]+[章节節部項项条]\s*"
)


def _is_label(text: str, table: str) -> bool:
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
_TYPE_REMARK = re.compile(r"\s[-–—]\s|\s*[(（]|\s#")


def _take_type(page: _Page, types: Sequence[str]) -> str | None:
    """Return the task type and mark its lines as gone; raise TaskRubricError."""
    first: tuple[str, int] | None = None
    for index, value in _find_type_values(page):
        named = _name_type(value, types, index + 1)
        if named and first and named != first[0]:
            message = f"task_type is {named} here and {first[0]} on line {first[1]}"
            raise TaskRubricError(index + 1, message)
        first = first or ((named, index + 1) if named else None)
    return first[0] if first else None


def _find_type_values(page: _Page) -> Iterator[tuple[int, str]]:
    """Yield the lines that say the type, each with its value: beside the label, or below it where
    the label is a heading."""
    for block, after in zip_longest(page.blocks, page.blocks[1:]):
        if block.kind == "heading" and _is_label(block.title, "type"):
            if after is None or 0 < after.level < _BOLD_LEVEL:
                raise TaskRubricError(block.start + 1, "task_type has no value")
            page.gone.update((*range(block.start, block.end), after.start))
            yield after.start, page.lines[after.start]
        elif block.kind in ("front", "heading", "paragraph", "list"):
            for index in range(block.start, block.end):
                match = _TYPE_LINE.fullmatch(page.lines[index])
                if match is None or not _is_label(match["label"], "type"):
                    continue
                if not match["value"].strip(" *_|"):
                    raise TaskRubricError(index + 1, "task_type has no value beside it")
                page.gone.update(range(index, block.end if block.level else index + 1))
                yield index, match["value"]


def _name_type(value: str, types: Sequence[str], line: int) -> str | None:
    """Return the type that a value names, itself or in one of the four languages, before a remark;
    None where it says that none is given."""
    known = {_key(word): name for name, words in labels()["values"].items() for word in words}
    known = {key: name for key, name in known.items() if name in types}
    known |= {_key(name): name for name in types}
    for spelling in (value, _TYPE_REMARK.split(value.strip(" |"), maxsplit=1)[0]):
        if named := known.get(_key(spelling)):
            return named
    if _says_none(value):
        return None
    near = nearest(value.strip(" *_`\"'").lower(), types)
    meant = f'did you mean "{near}"? The' if near else "the"
    message = f"unknown task_type {quoted(value.strip())}; {meant} known types are "
    raise TaskRubricError(line, message + ", ".join(types))


# Sections.


class _Section(NamedTuple):
    """One section: its name, the index of its heading, its lines and its blocks."""

    name: str
    opened: int
    lines: list[int]
    blocks: list[Block]


def _split_sections(page: _Page) -> list[_Section]:
    """Return the points, then the other sections in order. A section ends at the next heading of
    its level or above; other headings below it belong to it."""
    points = _Section("points", 0, [], [])
    sections, stack, done = [points], [(0, points)], 0
    for block in page.blocks:
        stack[-1][1].lines.extend(range(done, block.start))
        done = block.end
        name = _name_section(page, block)
        if block.level:
            while stack[-1][0] >= block.level:
                stack.pop()
            section = _Section(name, block.start, [], []) if name else stack[-1][1]
            stack.append((block.level, section))
            if name:
                sections.append(section)
                continue
            if section is points and block.start not in page.gone:
                _refuse_near_label(block)
        stack[-1][1].blocks.append(block)
        stack[-1][1].lines.extend(range(block.start, block.end))
    stack[-1][1].lines.extend(range(done, len(page.lines)))
    return sections


def _name_section(page: _Page, block: Block) -> str | None:
    """Return the name of the section that a heading opens, None if it opens none; raise
    TaskRubricError for a label that is not a heading of its own."""
    if block.kind not in ("heading", "paragraph") or block.start in page.gone:
        return None
    line = block.title or page.lines[block.start]
    label, colon, beside = line.replace("：", ":", 1).partition(":")
    for name in ("critical", "facts"):
        if block.title and _is_label(block.title, name):
            return name
        if colon and _is_label(label, name) and _says_none(beside):
            page.gone.update(range(block.start, block.end))
            return None
        # "Critical fail: the score is 0." is a sentence about points.
        is_sentence = (
            name == "critical" and not block.title and not line.lstrip().startswith(("**", "__"))
        )
        if colon and _is_label(label, name) and not (is_sentence and beside.strip()):
            heading = label.strip(" *_#")
            message = f'write {quoted(heading)} as a heading on a line of its own: "## {heading}"'
            raise TaskRubricError(block.start + 1, message)
    return None


def _refuse_near_label(block: Block) -> None:
    """Raise TaskRubricError for a misspelt heading: what stands under it would be lost without a
    word."""
    known = {**_keys("critical"), **_keys("facts")}
    key = _key(_REMARK.sub("", block.title[:_LABEL_CHARS]))
    close = get_close_matches(key, known, n=1, cutoff=0.87) if 7 < len(key) < 60 else []
    if close:
        message = f'{quoted(block.title)}: did you mean the heading "{known[close[0]]}"?'
        raise TaskRubricError(block.start + 1, message)


# The content of a section.


def _read_entries(page: _Page, section: _Section) -> list[tuple[int, str]]:
    """Return the conditions of a section with their lines: its list items, and paragraphs that
    introduce no list."""
    entries: list[tuple[int, str]] = []
    for block, after in zip_longest(section.blocks, section.blocks[1:]):
        if block.kind == "list":
            for start, end in block.items:
                text = page.join(range(start, end))
                entries.append((start + 1, _ITEM.sub("", text, count=1).strip()))
        elif block.kind == "heading":
            is_lead = after is not None and (not after.level or after.level > block.level)
            entries += [] if is_lead else [(block.start + 1, block.title)]
        elif block.kind not in ("hr", "html_block"):
            _refuse_prose_conditions(page, block)
            if block.kind != "paragraph" or after is None or after.kind != "list":
                entries.append((block.start + 1, page.join(range(block.start, block.end)).strip()))
    entries = [(line, text) for line, text in entries if text]
    if not entries:
        message = 'nothing stands under this heading; write a condition, or "none"'
        raise TaskRubricError(section.opened + 1, message)
    none = [(line, text) for line, text in entries if _says_none(text)]
    if none and len(entries) > 1:
        raise TaskRubricError(none[0][0], f"{quoted(none[0][1])} stands beside other conditions")
    return [] if none else entries


def _refuse_prose_conditions(page: _Page, block: Block) -> None:
    """Raise TaskRubricError for a condition for code that is not a list item."""
    for index in range(block.start, block.end):
        keyed = find_condition(page.lines[index])
        if keyed and index not in page.gone:
            raise TaskRubricError(index + 1, f"write {keyed[0]} as a list item: - {keyed[0]}: ...")


def _read_condition(line: int, text: str) -> Condition | None:
    """Return the condition for code that an entry is; None if only the judge can tell."""
    keyed = find_condition(text)
    if keyed is None:
        return None
    if re.search(r"[\r\n]", text):
        raise TaskRubricError(line, f"{keyed[0]} must stand on one line of its own")
    try:
        return build_condition(*keyed, line)
    except ConditionError as error:
        raise TaskRubricError(line, str(error)) from None


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


def _refuse_conditions(page: _Page, section: _Section) -> None:
    """Raise TaskRubricError for a condition that stands where nobody would decide it."""
    for start, _ in (item for block in section.blocks for item in block.items):
        keyed = find_condition(_ITEM.sub("", page.lines[start], count=1))
        if keyed and keyed[0] in KINDS:
            message = f"{keyed[0]} stands outside the critical-fail section; move it there"
            raise TaskRubricError(start + 1, message)


def _read_facts(page: _Page, section: _Section) -> str:
    """Return the text of a section, empty where it says that there are no facts."""
    text = page.join(section.lines)
    if not text:
        message = 'nothing stands under this heading; write the facts, or "none"'
        raise TaskRubricError(section.opened + 1, message)
    return "" if _says_none(text) else text
