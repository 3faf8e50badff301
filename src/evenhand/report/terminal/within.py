"""A comparison inside each value of a field, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.terminal.comparison import rows_shown
from evenhand.report.terminal.console import TextTable, table
from evenhand.report.terminal.figures import (
    STYLES,
    gap_text,
    number_text,
    p_heading,
    p_text,
    places_of,
)
from evenhand.report.terminal.tables import safe
from evenhand.stats.comparison import OVERALL, Row
from evenhand.stats.within import Between, Blocks


def blocks_lines(blocks: Blocks) -> Iterator[RenderableType]:
    """For each variant a table per dimension, overall first, and a sentence on whether the
    difference differs."""
    first = blocks.blocks[0].comparison
    dimensions = {row.dimension for row in rows_shown(first)}
    units = ", ".join(f"{safe(block.value)} {block.units} units" for block in blocks.blocks)
    for variant in dict.fromkeys(test.variant for test in blocks.between):
        tests = [test for test in blocks.between if test.variant == variant]
        tests = sorted(
            (test for test in tests if test.dimension in dimensions),
            key=lambda test: test.dimension != OVERALL,
        )
        against = f"{safe(variant)} against {safe(first.baseline)}"
        yield Text(f"\n{against}, by {safe(blocks.field)}: {units}", style="bold")
        for test in tests:
            yield Text(f"\n{safe(sentence(test, blocks.field))}")
            yield _table(blocks, test, first.level)


def _table(blocks: Blocks, test: Between, level: float) -> TextTable:
    gap = f"difference [{100 * level:g} %]"
    pairs = [(b.value, b.comparison.row(test.variant, test.dimension)) for b in blocks.blocks]
    rows = {value: row for value, row in pairs if row is not None}
    columns = ("base", "mean", gap, p_heading(rows.values()), "outcome")
    grid = table(blocks.field, *columns, right=(1, 2, 4), whole=[3])
    for value, row in rows.items():
        grid.add_row(safe(value), *_cells(row))
    return grid


def _cells(row: Row) -> list[str | Text]:
    places = places_of(row)
    means = [number_text(value, places) for value in (row.baseline_mean, row.mean)]
    outcome = Text(row.outcome, style=STYLES[row.outcome])
    return [*means, gap_text(row), p_text(row.p_adjusted), outcome]


def sentence(test: Between, field: str) -> str:
    """Return one sentence on whether the difference differs between the values of a field."""
    name = test.dimension
    if test.p_adjusted is None:
        return f"{name}: nothing to test between the values of {field}."
    differs = test.outcome == "differs"
    claim = "the difference differs" if differs else "not enough evidence that it differs"
    gap = ""
    if test.gap is not None:
        first, second = test.differences
        gap = f": {second} less {first} {test.gap:+z.3f}"
        if test.low is not None and test.high is not None:
            gap += f" [{test.low:z.3f}, {test.high:z.3f}]"
    return f"{name}: {claim} by {field}{gap}, p {p_text(test.p_adjusted)}."
