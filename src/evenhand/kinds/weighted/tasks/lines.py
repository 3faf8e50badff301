"""The lines of a Markdown text and what each of them is. No line is lost or altered: the raw lines
joined are the text.

Only as much Markdown as a task rubric needs: front matter, code fences, comments, headings, rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evenhand.regexp import regexp

LineKind = Literal[
    "text", "blank", "front", "fence", "code", "comment", "rule", "heading", "underline", "gone"
]

# A bold line is a heading below those of Markdown, a plain "Label:" one below that.
BOLD, PLAIN = 7, 8


class TaskRubricError(ValueError):
    """What is wrong with a task rubric, and on which line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `raw` is all of it, with its end."""

    number: int
    raw: str
    kind: LineKind
    level: int = 0
    title: str = ""
    """Of a heading: its level and its text."""

    @property
    def text(self) -> str:
        return self.raw.rstrip("\r\n")

    @property
    def indent(self) -> int:
        expanded = self.text.expandtabs(4)
        return len(expanded) - len(expanded.lstrip())


def read_lines(text: str) -> list[Line]:
    """The lines of a text with their kinds; raises TaskRubricError for what never closes."""
    # Splitting keeps the ends; other line breaks of Unicode are no lines to an editor.
    raws = re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text)
    return _with_headings(list(_kinds(raws)))


_FENCE = regexp(r"\s*(`{3,}|~{3,})([^`]*)$")
_RULE = regexp(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")


def _kinds(raws: Sequence[str]) -> Iterator[Line]:
    """Each line with the kind that it has by its surroundings; headings are found later."""
    front = _front_matter(raws)
    wrapping = _wrapping(raws)
    fence, comment = ("", 0), 0
    for number, raw in enumerate(raws, 1):
        bare = raw.strip().removeprefix("\ufeff").strip()
        kind: LineKind = "text" if bare else "blank"
        mark = _FENCE.match(raw.rstrip("\r\n").removeprefix("\ufeff"))
        if number <= front:
            kind = "front"
        elif number in wrapping:
            kind = "gone"
        elif fence[0]:
            kind = "code"
            if mark and mark[1].startswith(fence[0]) and not mark[2].strip():
                kind, fence = "fence", ("", 0)
        elif comment or bare.startswith("<!--"):
            kind, comment = "comment", 0 if "-->" in bare else comment or number
        elif mark:
            kind, fence = "fence", (mark[1], number)
        elif _RULE.match(raw.rstrip("\r\n")):
            kind = "rule"
        yield Line(number, raw, kind)
    if fence[0]:
        raise TaskRubricError(fence[1], f"the code fence {fence[0]} that opens here never closes")
    if comment:
        raise TaskRubricError(comment, "the comment <!-- that opens here never closes")


_FRONT_LINE = regexp(r"\s*$|\s+\S|[#-]|[^\s:：=][^:：=]*[:：=]")


def _front_matter(raws: Sequence[str]) -> int:
    """How many lines at the top are front matter, its marks included."""
    mark = raws[0].removeprefix("\ufeff").rstrip() if raws else ""
    if mark not in ("---", "+++"):
        return 0
    for number, raw in enumerate(raws[1:], 2):
        if raw.rstrip() in (mark, "..."):
            return number if number > 2 else 0
        if not _FRONT_LINE.match(raw):
            return 0
    return 0


def _wrapping(raws: Sequence[str]) -> set[int]:
    """The two lines of a `markdown` fence around the whole text."""
    filled = [number for number, raw in enumerate(raws, 1) if raw.strip("\ufeff \t\r\n")]
    if len(filled) < 3:
        return set()
    opening = _FENCE.match(raws[filled[0] - 1].removeprefix("\ufeff").rstrip("\r\n"))
    closing = raws[filled[-1] - 1].strip()
    is_markdown = opening and opening[2].strip().lower() in ("md", "markdown")
    return {filled[0], filled[-1]} if opening and is_markdown and closing == opening[1] else set()


_ATX = regexp(r" {0,3}([#＃]{1,6})(?![#＃])([ \t\u3000]*)(.*)$")
_BOLD = regexp(r" {0,3}(\*\*\*|\*\*|__)(?=\S)((?:(?!\*\*|__).)+)\1[ \t]*[:：]?[ \t]*$")
_UNDERLINE = regexp(r" {0,3}(={2,}|-{2,})[ \t]*$")
ITEM = regexp(
    r"(?P<indent>[ \t\u3000]*)(?:[-*+–—](?=[ \t\u3000])|[•・‣◦▪●○](?=.)"
    r"|\d{1,9}[.)](?=[ \t\u3000])|\d{1,9}[、．）](?=.)|[(（]\d{1,9}[)）](?=.)|[①-⑳](?=.)"
    r"|[a-zа-я]\)(?=[ \t\u3000]))[ \t\u3000]*(?:\[[ xX]\][ \t]+)?(?P<said>.*)$"
)


def _with_headings(lines: list[Line]) -> list[Line]:
    out: list[Line] = []
    for line in lines:
        before = out[-1] if out else None
        if before and _is_underline(line, before, out[-2] if len(out) > 1 else None):
            level = 1 if "=" in line.raw else 2
            title = before.text.removeprefix("\ufeff").strip()
            out[-1] = replace(before, kind="heading", level=level, title=title)
            out.append(replace(line, kind="underline"))
        else:
            out.append(_heading(line) if line.kind == "text" else line)
    return out


def _is_underline(line: Line, before: Line, earlier: Line | None) -> bool:
    """Whether a line underlines the one before it, which stands alone."""
    return (
        line.kind in ("text", "rule")
        and _UNDERLINE.match(line.text) is not None
        and before.kind == "text"
        and before.indent < 4
        and ITEM.match(before.text) is None
        and not before.text.lstrip().startswith((">", "|"))
        and (earlier is None or earlier.kind != "text")
    )


def _heading(line: Line) -> Line:
    text = line.text.removeprefix("\ufeff")
    atx = _ATX.match(text)
    # "##Title" is common where no spaces are written; "#title" is a tag.
    if atx and (atx[2] or len(atx[1]) > 1 or not atx[3]):
        title = atx[3].rstrip()
        closed = title.rstrip("#＃")
        title = closed if closed != closed.rstrip() or not closed else title
        return replace(line, kind="heading", level=len(atx[1]), title=title.strip())
    if bold := _BOLD.match(text):
        return replace(line, kind="heading", level=BOLD, title=bold[2].strip())
    return line
