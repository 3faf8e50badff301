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
    header, rows = _filled_columns(table)
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr><td>{'</td><td>'.join(map(escape, row))}</td></tr>" for row in rows)
    title = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def text_table(table: ShownTable) -> str:
    """Return a table as text of 80 columns, in which nothing is hidden."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    header, rows = _filled_columns(table)
    has_head = bool(table.header)
    grid = Table(box=SIMPLE_HEAD, show_edge=False, show_header=has_head, padding=(0, 1, 0, 0))
    for name in header or [""] * len(rows[0] if rows else ()):
        grid.add_column(Text(visible(name)), overflow="fold")
    for row in rows:
        grid.add_row(*(Text(visible(cell)) for cell in row))
    stream = StringIO()
    # Told of a terminal or a notebook, rich would colour the text, or show it itself.
    out = Console(
        file=stream, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False
    )
    for part in (table.caption, grid, *table.notes):
        if part:
            out.print(Text(visible(part)) if isinstance(part, str) else part)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def _filled_columns(table: ShownTable) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows, without the columns in which no row has anything."""
    rows = [[_cell(value) for value in row] for row in table.rows]
    kept = [i for i, cells in enumerate(zip(*rows, strict=True)) if any(cells)]
    header = [table.header[i] for i in kept] if table.header else []
    return header, [[row[i] for i in kept] for row in rows]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)
