"""Values as a notebook shows them: plain HTML tables, everything escaped, without style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return a table; fractions have three digits, None is an empty cell."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def fields_table(fields: Mapping[str, Any]) -> str:
    """Return a JSON object as a table of two columns, see `flat_fields`."""
    return html_table((), flat_fields(fields))


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


def paragraph(text: str) -> str:
    """Return a line of text."""
    return f"<p>{escape(text)}</p>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        value = f"{value:.3g}"
    return f"<td>{escape('' if value is None else str(value))}</td>"
