"""Task rubrics of the `weighted` protocol: Markdown, read by its headings in four languages.

`read_task` returns a TaskRubric, or raises RubricTextError with a line. Nothing gets lost: each
line is the type, a condition, a fact or a point, and what is not quite one of the headings in
`headings.toml` is an error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from evenhand.errors import nearest
from evenhand.kinds.conditions import CodeCondition, ConditionError, parse_condition
from evenhand.kinds.kind import RubricForm, RubricTextError, Understood
from evenhand.kinds.phrases import fold, says_nothing
from evenhand.kinds.prompt import unknown
from evenhand.kinds.protocol import Protocol
from evenhand.words import Sentence

TYPES = ("fact", "creative", "speculative")
RUBRIC_CHARS = 200_000
"""A rubric is a page or two; a book is a mistake."""
CONDITIONS_MOST = 100
"""With the time limit of each, this bounds what one answer can take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRubric:
    """All that an answer is graded by."""

    text: str
    """The whole."""
    task_type: str | None
    critical: tuple[str, ...]
    """Conditions that only the judge can decide."""
    conditions: tuple[CodeCondition, ...]
    """Conditions that code decides."""
    facts: str | None
    points: str
    """The rest: what adds points and what deducts them."""


@lru_cache(maxsize=64)
def read_task(text: str, types: tuple[str, ...] = TYPES) -> TaskRubric:
    """Return the rubric of a Markdown text; raise RubricTextError."""
    _check_text(text)
    lines = re.sub(r"\r\n?", "\n", text.removeprefix("\ufeff")).split("\n")
    blocks = list(_find_blocks(lines))
    task_type = _take_type(lines, blocks, types)
    points, *sections = _split_sections(lines, blocks)
    critical, conditions = list[str](), list[CodeCondition]()
    for line, entry in chain.from_iterable(
        _read_entries(each) for each in sections if each.name == "critical"
    ):
        if condition := _decide(line, entry):
            conditions.append(condition)
        else:
            critical.append(entry)
    if len(conditions) > CONDITIONS_MOST:
        message = Sentence("kinds.many_conditions", most=CONDITIONS_MOST)
        raise RubricTextError(message, line=conditions[CONDITIONS_MOST].line)
    facts = [_read_facts(each) for each in sections if each.name == "facts"]
    return TaskRubric(
        text=text,
        task_type=task_type,
        critical=tuple(critical),
        conditions=tuple(conditions),
        facts="\n\n".join(filter(None, facts)) or None,
        points=points.text,
    )


def _check_text(text: str) -> None:
    """Raise RubricTextError unless the text has content and can be stored and sent."""
    if not text.strip("\ufeff \t\r\n"):
        raise RubricTextError(Sentence("kinds.empty_rubric"), line=1)
    if len(text) > RUBRIC_CHARS:
        raise RubricTextError(Sentence("kinds.long_rubric", most=RUBRIC_CHARS), line=1)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise RubricTextError(Sentence("kinds.no_unicode"), line=line) from None


class Block(NamedTuple):
    """A top-level block of Markdown, or an item of a top-level list: the type of its token, the
    indexes of its lines, half-open, and the level of a heading."""

    kind: str
    start: int
    end: int
    level: int


_CODE = ("fence", "code_block", "html_block")
_CJK_BULLET = re.compile(r"^(\s*)[・•]")
_ITEM = re.compile(r"\s*(?:[-*+]\s+|\d{1,9}[.)]\s+|[・•])(?:\[[ xX]\]\s+)?")


def _find_blocks(lines: Sequence[str]) -> Iterator[Block]:
    from markdown_it import MarkdownIt  # here: only rubrics of tasks need it

    text = "\n".join(_CJK_BULLET.sub(r"\1- ", line) for line in lines)
    # Marks inside a line are not needed, and reading them takes quadratic time at worst.
    for token in MarkdownIt("commonmark").disable("inline").parse(text):
        is_item = token.type == "list_item_open" and token.level == 1
        if token.map and (is_item or (token.level == 0 and not token.type.endswith("list_open"))):
            level = int(token.tag[1]) if token.type == "heading_open" else 0
            yield Block(token.type, token.map[0], token.map[1], level)


# Labels.


@cache
def labels() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the headings and words of `headings.toml`."""
    return tomllib.loads(files(__package__).joinpath("headings.toml").read_text("utf-8"))


@cache
def _keys(*tables: str) -> Mapping[str, str]:
    """Return each label of some tables by its key."""
    words = (words for table in tables for words in labels()[table].values())
    return {fold(label): label for each in words for label in each}


_REMARK = re.compile(r"[(（][^()（）]*[)）][\s:：]*$")
_NUMBERING = re.compile(
    r"[\W_]*+第?(?:[\d.]+|[IVX]+|[一二三四五六七八九十]+)[章节節部]?[.)、．\s]+"
)
_LABEL_CHARS = 160
"""No label is longer, and what stands beside one has begun."""


def _split_label(line: str) -> tuple[str, str]:
    """Return the key of what stands before the first colon of a line, without its numbering, and
    what stands after it; a remark in parentheses at the end is left out."""
    plain = _REMARK.sub("", line[:_LABEL_CHARS]).strip(" |")
    label, *beside = re.split("[:：=|]", plain, maxsplit=1)
    return fold(_NUMBERING.sub("", label, count=1)), "".join(beside)


# The task type.


def _take_type(lines: list[str], blocks: Sequence[Block], types: Sequence[str]) -> str | None:
    """Return the task type and blank its lines; raise RubricTextError."""
    found: dict[str, int] = {}
    for block in blocks:
        for index in range(block.start, block.end if block.kind not in _CODE else block.start):
            label, value = _split_label(lines[index])
            if label in _keys("type"):
                if named := _name_type(value, types, index + 1):
                    found.setdefault(named, index + 1)
                # To Markdown, front matter is a heading of several lines.
                start, end = block[1:3] if block.level else (index, index + 1)
                lines[start:end] = [""] * (end - start)
    if len(found) > 1:
        (one, first), (other, line) = list(found.items())[:2]
        message = Sentence("kinds.two_types", type=other, earlier=one, line=first)
        raise RubricTextError(message, line=line)
    return next(iter(found), None)


def find_type(value: str, types: Iterable[str]) -> str | None:
    """Return the type that a value names, itself or in one of the four languages, before a remark
    in parentheses; None if it names none."""
    key, words = fold(_REMARK.sub("", value)), labels()["values"]
    named = (name for name in types if key in map(fold, (name, *words.get(name, ()))))
    return next(named, None)


def _name_type(value: str, types: Sequence[str], line: int) -> str | None:
    """Return the type that a value names, itself or in one of the four languages; None where it
    says that none is given."""
    if not fold(value):
        raise RubricTextError(Sentence("kinds.empty_type", type=types[0]), line=line)
    named = find_type(value, types)
    if named or says_nothing(value):
        return named
    raise RubricTextError(unknown("type", value.strip(" *_`\"'"), types), line=line)


# Sections.


@dataclass(frozen=True, slots=True)
class RubricSection:
    """One section: its name, the number of its heading's line, and its blocks with their texts."""

    name: str
    number: int
    blocks: list[tuple[Block, str]]

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.blocks).strip("\n")


def _split_sections(lines: list[str], blocks: Sequence[Block]) -> list[RubricSection]:
    """Return the points, then the other sections in order. A section ends at the next heading of
    its level or above; other headings below it belong to it."""
    sections = [RubricSection("points", 1, [])]
    current, level = sections[0], 0
    ends = [*(block.start for block in blocks[1:]), len(lines)]
    for block, end in zip(blocks, ends, strict=True):
        name = _name_section(lines, block)
        if 0 < block.level <= level:
            current, level = sections[0], 0
        if name:
            current, level = RubricSection(name, block.start + 1, []), block.level
            sections.append(current)
        else:
            current.blocks.append((block, "\n".join(lines[block.start : end])))
    return sections


def _name_section(lines: list[str], block: Block) -> str | None:
    """Return the name of the section that a heading opens, None if it opens none. Raise
    RubricTextError for a label that is misspelt, or is not a heading of its own: what belongs to it
    would be lost without a word."""
    known, is_prose = _keys("critical", "facts"), block.kind in ("heading_open", "paragraph_open")
    for index in range(block.start, block.end):
        key, beside = _split_label(lines[index])
        if key in known and block.level and not fold(beside):
            return "critical" if key in _keys("critical") else "facts"
        if key in known and fold(beside) and says_nothing(beside):
            lines[index] = ""
        elif key in known and (is_prose or not fold(beside)):
            message = Sentence("kinds.no_heading", line=lines[index].strip(), heading=known[key])
            raise RubricTextError(message, line=index + 1)
        if block.level and len(key) > 7 and (near := nearest(key, known, cutoff=0.87)):
            message = Sentence("kinds.misspelt_heading", line=lines[index], near=known[near])
            raise RubricTextError(message, line=index + 1)
    return None


# The content of a section.


def _read_entries(section: RubricSection) -> list[tuple[int, str]]:
    """Return the conditions of a section with their lines: its list items, and paragraphs that
    introduce no list."""
    entries: list[tuple[int, str]] = []
    kinds = [block.kind for block, _ in section.blocks[1:]]
    for (block, text), after in zip(section.blocks, [*kinds, ""], strict=False):
        is_lead = block.kind == "paragraph_open" and after == "list_item_open"
        if is_lead or block.kind == "html_block" or not fold(text):
            continue
        if block.kind not in ("list_item_open", "paragraph_open"):
            raise RubricTextError(Sentence("kinds.no_condition"), line=block.start + 1)
        entries.append((block.start + 1, _ITEM.sub("", text, count=1).strip()))
    if not entries:
        raise RubricTextError(Sentence("kinds.no_conditions"), line=section.number)
    return [entry for entry in entries if not says_nothing(entry[1])]


def _decide(line: int, entry: str) -> CodeCondition | None:
    try:
        return parse_condition(entry, line)
    except ConditionError as error:
        raise RubricTextError(error.args[0], line=line) from None


def _read_facts(section: RubricSection) -> str:
    """Return the text of a section, empty where it says that there are no facts."""
    if not section.text.strip():
        raise RubricTextError(Sentence("kinds.no_facts"), line=section.number)
    return "" if says_nothing(section.text) else section.text


# Files

# One word with an ending is a file's name, be it mistyped; a rubric says more.
_FILE = re.compile(r"\S+\.[A-Za-z]\w{0,8}")


def _is_file(rubric: object) -> bool:
    if not isinstance(rubric, str) or "\n" in rubric:
        return False
    return rubric.lower().endswith((".md", ".markdown")) or _FILE.fullmatch(rubric) is not None


def _parse_file(text: str, ending: str, protocol: Protocol) -> str:
    return read_task(text, tuple(protocol.ids("types"))).text


def _explain(rubric: Any, protocol: Protocol) -> Understood:
    task = read_task(rubric, tuple(protocol.ids("types")))
    return Understood(describe_task(task), list(_list_task(task)))


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


def _list_task(rubric: TaskRubric) -> Iterator[str]:
    """Yield what was read from a rubric in lines for a person."""
    if rubric.task_type:
        yield Sentence("kinds.read_type", type=rubric.task_type)
    else:
        yield Sentence("kinds.read_no_type")
    yield Sentence("kinds.read_critical", n=len(rubric.critical))
    yield from (f"  - {condition}" for condition in rubric.critical)
    yield Sentence("kinds.read_conditions", n=len(rubric.conditions))
    for condition in rubric.conditions:
        yield Sentence(
            "kinds.read_condition",
            kind=condition.kind,
            value=condition.written,
            line=condition.line,
        )
    yield Sentence("kinds.read_facts" if rubric.facts else "kinds.read_no_facts")
    yield from (f"  {line}" for line in (rubric.facts or "").splitlines())
    yield Sentence("kinds.read_points")
    yield from (f"  {line}" for line in rubric.points.strip().splitlines())


RUBRIC_FORM = RubricForm(
    endings=(".md", ".markdown"),
    parse=_parse_file,
    explain=_explain,
    is_file=_is_file,
)
