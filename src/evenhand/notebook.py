"""What a notebook shows of a value: plain HTML tables, everything escaped, no style of their
own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, cast


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table; fractions with three digits behind the point, None as nothing."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def fields_table(fields: Mapping[str, Any]) -> str:
    """An object as a table of two columns, inner objects by their path; what is empty is left
    out."""
    return html_table((), [row for row in _paths(fields) if row[1] not in (None, "")])


def _paths(fields: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _paths(cast("Mapping[str, Any]", value), f"{above}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{above}{name}", " | ".join(map(str, cast("Sequence[object]", value)))
        else:
            yield f"{above}{name}", value


def paragraph(text: str) -> str:
    """A line of text."""
    return f"<p>{escape(text)}</p>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td style="text-align:right">{value:.3g}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align:right">{value:,}</td>'
    return f"<td>{escape('' if value is None else str(value))}</td>"
