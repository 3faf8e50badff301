"""Blocks of a unit's page as text for a terminal. Nothing is folded there, and nothing beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from evenhand.kinds.blocks import Cell
from evenhand.report.html.units import piece_text
from evenhand.report.terminal.console import legend, table
from evenhand.words import Words

_STYLES = {"strong": "bold", "warn": "yellow", "bad": "red", "dim": "dim"}
"""The styles of tones; those of candidates are told by their letters."""


def block_lines(blocks: Iterable[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """Yield blocks one below the other."""
    for block in blocks:
        match block["kind"]:
            case "text":
                label = [(block["label"], "bold"), (f"  {block['note']}".rstrip(), "dim")]
                yield Text.assemble(*label)
                yield _text(block)
            case "items":
                items = Text(", ".join(block["items"]), _style(block["tone"]))
                yield legend([(block["label"], items)]) if block["label"] else items
            case "table":
                if block["label"]:
                    yield Text(block["label"], style="bold")
                grid = table(*block["head"])
                for row in block["rows"]:
                    grid.add_row(*(Text(text, style=_style(tone)) for text, tone in row))
                yield grid
            case "notice":
                yield Text(block["text"], style=_style(block["tone"]))
            case "columns":
                for column in block["columns"]:
                    yield from block_lines(column)
                if block["note"]:
                    yield Text(block["note"], style="dim")
            case _:
                yield ""
                yield Text(f"── {block['label']}", style="bold")
                yield from block_lines(block["blocks"])


def cell_line(cells: Sequence[Cell], say: Words) -> Text:
    """Return cells on one line."""
    return Text.assemble(*((piece_text(c.piece, say), _style(c.tone)) for c in cells))


def _style(tone: str) -> str:
    return _STYLES.get(tone, "")


def _text(block: Mapping[str, Any]) -> Text:
    """Return a text with its quoted evidence marked, and what differs in another underlined."""
    text = Text(style="dim" if block["part"] == "call" else "")
    for part, numbers, _, differs in block["stretches"]:
        text.append(part, "black on yellow" if numbers else "underline" if differs else "")
    return text
