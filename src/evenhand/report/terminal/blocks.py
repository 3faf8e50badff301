"""What a kind shows of a unit and its judgments, as text for a terminal, in English."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.kinds import blocks as of_kind
from evenhand.report.html.page import Words, words
from evenhand.report.terminal.console import marked
from evenhand.report.terminal.grid import TextTable, table
from evenhand.report.terminal.tables import safe

_STYLES: dict[of_kind.Tone, str] = {
    "": "",
    "strong": "bold",
    "first": "",
    "second": "",
    "warn": "yellow",
    "bad": "red",
    "dim": "dim",
}


def rendered(blocks: Iterable[of_kind.Block]) -> Iterator[RenderableType]:
    """The blocks one below the other, texts in a row under their letters."""
    texts: list[of_kind.Text | of_kind.Items] = []
    for block in _flat(blocks):
        if isinstance(block, of_kind.Text | of_kind.Items):
            texts.append(block)
            continue
        yield from _grid(texts)
        texts = []
        match block:
            case of_kind.Table():
                if label := plain(block.label):
                    yield Text(safe(label), style="bold")
                yield _table(block)
            case of_kind.Notice(piece, tone):
                yield Text(safe(plain(piece)), style=_STYLES[tone])
    yield from _grid(texts)


def _flat(
    blocks: Iterable[of_kind.Block],
) -> Iterator[of_kind.Text | of_kind.Items | of_kind.Table | of_kind.Notice]:
    """Without what stands around others: a terminal has one column, and folds nothing open."""
    for block in blocks:
        match block:
            case of_kind.Columns(columns):
                for column in columns:
                    yield from _flat(column)
            case of_kind.Section(label, inner):
                yield of_kind.Notice(label, "strong")
                yield from _flat(inner)
            case of_kind.Group():
                continue
            case _:
                yield block


def _grid(blocks: Sequence[of_kind.Text | of_kind.Items]) -> Iterator[Table]:
    """Texts beside their letters."""
    if not blocks:
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for block in blocks:
        if isinstance(block, of_kind.Text):
            text = marked(block.text, [(mark.start, mark.end) for mark in block.marks])
            if block.note:
                text.append(f"  ({safe(block.note)})", style="dim")
            grid.add_row(safe(block.short or plain(block.label)), text)
        else:
            items = ", ".join(safe(plain(item)) for item in block.items)
            grid.add_row(safe(plain(block.label)), Text(items, style=_STYLES[block.tone]))
    yield grid


def _table(block: of_kind.Table) -> TextTable:
    """A table without columns that say nothing."""
    rows = [[Text(safe(plain(c.piece)), style=_STYLES[c.tone]) for c in row] for row in block.rows]
    kept = [at for at in range(len(block.head)) if any(row[at] for row in rows)]
    right = [place for place, at in enumerate(kept) if at in block.right]
    grid = table(*(safe(plain(block.head[at])) for at in kept), right=right)
    for row in rows:
        grid.add_row(*(row[at] for at in kept))
    return grid


def line(cells: Sequence[of_kind.Cell]) -> Text:
    """Cells on one line."""
    text = Text()
    for cell in cells:
        text.append(safe(plain(cell.piece)), style=_STYLES[cell.tone])
    return text


def plain(piece: of_kind.Piece) -> str:
    """A piece in English."""
    match piece:
        case str():
            return piece
        case of_kind.Label(key, values):
            filled = {name: plain(value) for name, value in values.items()}
            return _english()(key, **filled)
        case of_kind.Gloss(group, code):
            return _english().gloss(group, code)
        case of_kind.Number(value):
            return f"{value:g}"
        case of_kind.Named(ident):
            return ident
        case of_kind.Joined(pieces, by):
            return by.join(filter(None, map(plain, pieces)))


def _english() -> Words:
    return words("en")
