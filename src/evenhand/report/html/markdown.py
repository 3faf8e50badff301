"""Markdown shown formatted, and as it was written, with one text in the page for both.

Every character of a text stays in the page, in its order: elements are set around it, and what only
formats (`**`, `- `, fences) stands in `<i>`, which a page hides until its reader asks for the
source. So a quote is marked at its own characters in both, and formatting can hide no word: what is
hidden is made of signs and blanks. Links and pictures stay as they were written: nothing is to be
followed or fetched. Elements come from the tables below; all else is escaped.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

FORMATTED_CHARS = 20_000
"""A longer text is shown as it was written: formatting takes time and elements."""
TABLE_CELLS = 4_000
"""A text that could make larger tables has none: a few bars ask for many thousand cells."""
_TAGS = {"p", "ul", "ol", "li", "blockquote", "h5", "h6"}
_TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}
_HEADINGS = {"h1": "h5", "h2": "h5", "h3": "h6", "h4": "h6", "h5": "h6"}
"""Labels of texts are `h4`: what a text has for headings stands below them."""
_SPANS = {"**": "strong", "__": "strong", "*": "em", "_": "em", "~~": "s"}
_SIGNS = re.compile(r"[\s>#*+=|:`~-]*")
# Every branch ends within so many characters: a text of openers alone takes linear time.
_INLINE = re.compile(
    r"\\[!-/:-@\[-`{-~]|(?P<code>`)[^`\n]{1,500}`"
    r"|(?P<open>(?<!\w)__?(?=[^\s_])|\*\*?(?=[^\s*])|~~(?=[^\s~]))"
    r"|(?P<close>(?<=[^\s_])__?(?!\w)|(?<=[^\s*])\*\*?|(?<=[^\s~])~~)"
)


class Stretch(NamedTuple):
    """A part of a text: the numbers of the quotes that it stands in, and what they are about; or
    that another text differs in it."""

    text: str
    numbers: str = ""
    title: str = ""
    differs: bool = False


class Segment(NamedTuple):
    """A stretch of a text, and the labels of the spans that cover it."""

    text: str
    labels: tuple[str, ...]


def mark_spans(text: str, spans: Sequence[tuple[int, int, str]]) -> list[Segment]:
    """A text cut at the ends of its spans (code points, half-open), nothing lost or altered."""
    within = [(max(0, s), min(len(text), e), label) for s, e, label in spans]
    within = [span for span in within if span[0] < span[1]]
    ends = sorted({0, len(text), *(s for s, _, _ in within), *(e for _, e, _ in within)})
    return [
        Segment(
            text[start:end],
            tuple(dict.fromkeys(label for s, e, label in within if s <= start and end <= e)),
        )
        for start, end in itertools.pairwise(ends)
    ]


def to_html(stretches: Sequence[Stretch], *, formatted: bool) -> tuple[str, bool]:
    """Return the HTML of a text, and True if its Markdown has been formatted: one without any, or
    too long, is as it was written."""
    text = "".join(stretch.text for stretch in stretches)
    if formatted and len(text) <= FORMATTED_CHARS:
        writer = _Writer(stretches, text)
        _write_blocks(writer, text)
        if writer.is_formatted:
            return "".join(writer.parts), True
    writer = _Writer(stretches, text)
    writer.write(len(text))
    return "".join(writer.parts), False


class _Writer:
    """HTML of a text, written from its beginning to its end."""

    def __init__(self, stretches: Sequence[Stretch], text: str) -> None:
        self.text, self.at = text, 0
        self.parts: list[str] = []
        self.is_formatted = False
        self._rest = iter(stretches)
        self._here, self._end = Stretch(""), 0

    def tag(self, name: str) -> None:
        """Add a tag, of a name that stands in this module."""
        self.parts.append(f"<{name}>")
        self.is_formatted = self.is_formatted or name not in ("p", "/p")

    def write(self, end: int, *, hidden: bool = False) -> None:
        """Add the text up to an offset, the quotes in it marked."""
        if self.at >= end:
            return
        self.parts.append("<i>" * hidden)
        while self.at < end:
            while self._end <= self.at:
                self._here = next(self._rest)
                self._end += len(self._here.text)
            to = min(end, self._end)
            self.parts.append(self._mark(self.text[self.at : to], to, hidden=hidden))
            self.at = to
        self.parts.append("</i>" * hidden)

    def _mark(self, piece: str, to: int, *, hidden: bool) -> str:
        from markupsafe import escape  # comes with jinja2

        html = str(escape(piece))
        if self._here.differs:
            html = f"<ins>{html}</ins>"
        if not self._here.numbers:
            return html
        # A quote that formatting cuts up has its number at its end alone.
        rest = self.text[to : self._end].strip("*_`~|\n ")
        is_last = not hidden and piece.strip() and not rest
        number = f' data-n="{escape(self._here.numbers)}"' if is_last else ""
        return f'<mark{number} title="{escape(self._here.title)}">{html}</mark>'

    def skip(self, end: int) -> None:
        """Add what formats up to an offset: its signs hidden, any word in it shown."""
        signs = _SIGNS.match(self.text, self.at, max(self.at, end))
        assert signs is not None
        self.write(signs.end(), hidden=True)
        self.write(end)

    def lines(self, content: str, limit: int) -> Iterator[int]:
        """Yield the end of each line of a block's content, once all before the line is written."""
        for number, line in enumerate(content.split("\n")):
            if number and self.text[self.at : self.at + 1] == "\n":
                self.write(self.at + 1)
            # A cell of a table may hold bars.
            for spelling in (line, line.replace("|", "\\|")) if line.strip() else ():
                start = self.text.find(spelling, self.at, limit)
                if start >= 0:
                    self.skip(start)
                    yield start + len(spelling)
                    break


@cache
def _parser(*, tables: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt  # here: terminals need none

    # What a line holds is read by _INLINE, whose time is linear. Definitions of links are text.
    rules = ["inline", "reference"] + ["table"] * (not tables)
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(rules)


def _write_blocks(writer: _Writer, text: str) -> None:
    ends = [match.end() for match in re.finditer(r"\n|\Z", text)]
    # The parser fills rows up to the width of their head.
    cells = len(ends) * max(line.count("|") for line in text.split("\n"))
    for token in _parser(tables=cells <= TABLE_CELLS).parse(text):
        first, last = token.map or (0, len(ends))
        if token.type == "inline":
            for end in writer.lines(token.content, ends[last - 1]):
                _write_line(writer, end)
        elif token.type in ("fence", "code_block"):
            writer.tag("pre")
            if token.type == "fence":
                writer.tag("small")
                writer.skip(ends[first] - 1)
                writer.tag("/small")
                # The name of a language has a line of its own.
                (writer.write if token.info else writer.skip)(ends[first])
            for end in writer.lines(token.content, ends[last - 1]):
                writer.write(end)
            writer.tag("/pre")
        elif token.type == "hr":
            writer.skip(ends[first])
            writer.tag("hr")
        elif not token.hidden:
            name = _HEADINGS.get(token.tag, token.tag)
            assert name in _TAGS, name
            if token.nesting > 0:
                # A wide table scrolls, by keyboard too.
                writer.tag('table tabindex="0"' if name == "table" else name)
            else:
                writer.tag(f"/{name}")
    writer.skip(len(text))


def _write_line(writer: _Writer, end: int) -> None:
    """Add one line with what is emphasised in it, and code."""
    matches = list(_INLINE.finditer(writer.text, writer.at, end))
    pairs = _pair(matches)
    for number, match in enumerate(matches):
        start, stop = match.span()
        writer.write(start if match["code"] or number in pairs else stop)
        if match["code"]:
            writer.tag("code")
            writer.write(start + 1, hidden=True)
            writer.write(stop - 1)
            writer.write(stop, hidden=True)
            writer.tag("/code")
        elif number in pairs:
            name = _SPANS[match[0]]
            if pairs[number]:
                writer.tag(name)
            writer.write(stop, hidden=True)
            if not pairs[number]:
                writer.tag(f"/{name}")
    writer.write(end)


def _pair(matches: Sequence[re.Match[str]]) -> dict[int, bool]:
    """Return the signs that have a partner, by their place: True for one that opens."""
    pairs: dict[int, bool] = {}
    waiting: list[int] = []
    signs: dict[str, int] = dict.fromkeys(_SPANS, 0)
    for number, match in enumerate(matches):
        sign = match[0]
        if match["open"] and not (signs[sign] and _closes(match)):
            waiting.append(number)
            signs[sign] += 1
        elif (match["close"] or match["open"]) and signs[sign]:
            while True:
                opener = waiting.pop()
                signs[matches[opener][0]] -= 1
                if matches[opener][0] == sign:
                    break
            pairs |= {opener: True, number: False}
    return pairs


def _closes(match: re.Match[str]) -> bool:
    """Return True if what may open may close as well: `a**b**c`."""
    before = match.string[match.start() - 1 : match.start()]
    return not match[0].startswith("_") and bool(before.strip())
