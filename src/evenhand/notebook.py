"""Values as a REPL and a notebook show them: short tables of text, and plain HTML tables, in which
everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any, NamedTuple

from evenhand.text import visible

WIDTH = 80
"""Columns of a table of text, which is as wide wherever it is printed."""


class ShownTable(NamedTuple):
    """A table with lines above and below it; fractions have three digits, None is an empty cell."""

    header: Sequence[str]
    rows: Iterable[Sequence[object]]
    caption: str = ""
    notes: Sequence[str] = ()


class Shown:
    """A value that prints as tables, and that a notebook shows as HTML."""

    __slots__ = ()

    def _tables(self) -> Iterator[ShownTable]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n\n".join(map(text_table, self._tables()))

    def _repr_html_(self) -> str:
        return "".join(map(_html_table, self._tables()))


def flat_fields(fields: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """Yield the fields of a JSON object, inner ones by their dotted path, without empty ones."""
    for name, value in fields.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping):
            yield from flat_fields(value, f"{path}.")
        elif isinstance(value, list | tuple):
            yield path, " | ".join(map(str, value))
        elif value not in (None, ""):
            yield path, value


def _html_table(table: ShownTable) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    cells = (map(escape, map(_cell, row)) for row in table.rows)
    body = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in cells)
    title = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def text_table(table: ShownTable) -> str:
    """Return a table without the columns in which no row has anything."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [[visible(_cell(value)) for value in row] for row in table.rows]
    header = table.header or [""] * len(rows[0] if rows else ())
    kept = [i for i in range(len(header)) if any(row[i : i + 1] > [""] for row in rows)]
    has_head = bool(table.header)
    grid = Table(box=SIMPLE_HEAD, show_edge=False, show_header=has_head, padding=(0, 1, 0, 0))
    for i in kept:
        grid.add_column(Text(visible(header[i])), overflow="fold")
    for row in rows:
        grid.add_row(*(Text(row[i]) for i in kept))
    stream = StringIO()
    # Told of a terminal or a notebook, rich would colour the text, or show it itself.
    out = Console(
        file=stream, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False
    )
    for part in (table.caption, grid, *table.notes):
        if part:
            out.print(Text(visible(part)) if isinstance(part, str) else part)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)
