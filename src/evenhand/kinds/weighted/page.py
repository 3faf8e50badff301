"""A task rubric as a page of Markdown: its lines, and its blocks by the indexes of their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

LABEL_LEVEL = 7
"""The level of a bold line or a plain `Label:`, below all headings of Markdown."""


class TaskRubricError(ValueError):
    """A task rubric that cannot be read, and the line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Block(NamedTuple):
    """A top-level block of Markdown, by the indexes of its lines, half-open. `items` are the spans
    of the items of a list."""

    kind: str
    start: int
    end: int
    level: int = 0
    title: str = ""
    items: Sequence[tuple[int, int]] = ()


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_CJK_BULLET = re.compile(r"([ \t\u3000]*)(?:[•・‣◦▪●○]|\d{1,3}[、．）]|[(（]\d{1,3}[)）]|[①-⑳])")
_TIGHT_HEADING = re.compile(r"( {0,3})(#{2,6}(?=[^#\s])|＃{1,6}\s*)")
ITEM = re.compile(
    r"[ \t\u3000]*(?:[-*+•・‣◦▪●○]|\d{1,9}[.)、．）]|[(（]\d{1,3}[)）]|[①-⑳])[ \t\u3000]*"
    r"(?:\[[ xX]\][ \t]+)?"
)
_BOLD_LINE = re.compile(r"(\*\*|__)(?=\S)((?:(?!\1).)+)\1[ \t]*[:：]?[ \t]*")


class Page:
    """A text by lines and blocks; lines that are used up are `gone`."""

    def __init__(self, text: str) -> None:
        self.raw = _LINE.findall(text)
        self.lines = [line.rstrip("\r\n").removeprefix("\ufeff") for line in self.raw]
        self.gone: set[int] = set()
        self.front = _front_matter(self.lines)
        body = [_to_commonmark(line) for line in self.lines[self.front :]]
        self.blocks = list(_find_blocks([""] * self.front + body))

    def join(self, indexes: Iterator[int] | Sequence[int]) -> str:
        """Return lines verbatim, without blank lines and rules at the ends."""
        kept = [index for index in indexes if index not in self.gone]
        while kept and not self.lines[kept[0]].strip("-*_ \t"):
            del kept[0]
        while kept and not self.lines[kept[-1]].strip("-*_ \t"):
            del kept[-1]
        return "".join(self.raw[index] for index in kept).removeprefix("\ufeff").rstrip("\r\n")


def _to_commonmark(line: str) -> str:
    """Return a line with the headings and bullets of Chinese and Japanese texts as Markdown."""
    if match := _TIGHT_HEADING.match(line):
        return f"{match[1]}{'#' * len(match[2].rstrip())} {line[match.end() :]}"
    return _CJK_BULLET.sub(r"\1- ", line)


def _front_matter(lines: Sequence[str]) -> int:
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
            title = tokens[index + 1].content
            yield Block("heading", start, end, int(token.tag[1]), title)
        elif token.type == "paragraph_open":
            bold = _BOLD_LINE.fullmatch(lines[start].strip()) if end == start + 1 else None
            level, title = (LABEL_LEVEL, bold[2]) if bold else (0, "")
            yield Block("heading" if bold else "paragraph", start, end, level, title)
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
    if kind == "fence":
        mark = lines[0].strip()[:3]
        if len(lines) < 2 or not lines[-1].strip().startswith(mark):
            raise TaskRubricError(start + 1, f"the code fence {mark} that opens here never closes")
    if lines[0].lstrip().startswith("<!--") and "-->" not in "".join(lines):
        raise TaskRubricError(start + 1, "the comment <!-- that opens here never closes")


def with_next(blocks: Sequence[Block]) -> Iterator[tuple[Block, Block | None]]:
    """Yield each block with the one after it."""
    return zip_longest(blocks, blocks[1:])
