"""More than a comparison, as text for a terminal: the comparison inside each value of a field, the
stability over repeated runs, and the units that changed most."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from evenhand.report.model import ChangedPair, ChangedSide, ChangedUnits
from evenhand.report.terminal.comparison import (
    STYLES,
    gap_text,
    number_text,
    p_heading,
    p_text,
    places_of,
    rows_shown,
)
from evenhand.report.terminal.console import TextTable, side_by_side, table
from evenhand.report.terminal.tables import cut, safe
from evenhand.stats.comparison import OVERALL, Row
from evenhand.stats.stability import Stability, StabilityRow
from evenhand.stats.within import Between, Blocks

TEXT = 360
"""Characters of a question or an answer that are shown; `show` has all of them."""
REASON = 200
STABILITY = "sd: standard deviation over repeated runs of the same, the judge's own noise included."
_STEADY = {"better": "steadier than", "worse": "less steady than"}


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
            yield Text(f"\n{safe(interaction_sentence(test, blocks.field))}")
            yield _blocks_table(blocks, test, first.level)


def _blocks_table(blocks: Blocks, test: Between, level: float) -> TextTable:
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


def interaction_sentence(test: Between, field: str) -> str:
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


def stability_lines(stability: Stability) -> Iterator[RenderableType]:
    """Yield for each variant a sentence and a table by dimension, overall first."""
    for variant in dict.fromkeys(row.variant for row in stability.rows):
        rows = [row for row in stability.rows if row.variant == variant]
        if len(rows) == 2:  # of one dimension alone the overall figure says the same again
            rows = rows[:1]
        rows.sort(key=lambda row: row.dimension != OVERALL)
        yield Text(f"\n{safe(stability_sentence(stability, rows[0]))}", style="bold")
        yield _stability_table(stability, rows)
    yield Text(STABILITY, style="dim")


def stability_sentence(stability: Stability, row: StabilityRow) -> str:
    """Say whether a variant varies more than the baseline."""
    over = f"over {stability.field}"
    size = f"{row.n} times asked again, on {row.clusters} questions"
    on = "overall" if row.dimension == OVERALL else f"on {row.dimension}"
    if row.outcome == "not enough evidence":
        claim = (
            f"Not enough evidence that {row.variant} varies more or less than {stability.baseline}"
        )
    else:
        claim = f"{row.variant} is {_STEADY[row.outcome]} {stability.baseline}"
    return f"{claim} {over} {on}: variance {_ratio(row)}, p {p_text(row.p_adjusted)}; {size}."


def _stability_table(stability: Stability, rows: list[StabilityRow]) -> TextTable:
    ratio = f"variance ratio [{100 * stability.level:g} %]"
    headers = ("dimension", "sd base", "sd", ratio, p_heading(rows), "outcome")
    grid = table(*headers, right=(1, 2, 4), whole=[3])
    for row in rows:
        deviations = [number_text(v, 3) for v in (row.baseline_sd, row.sd)]
        outcome = Text(row.outcome, style=STYLES[row.outcome])
        grid.add_row(safe(row.dimension), *deviations, _ratio(row), p_text(row.p_adjusted), outcome)
    return grid


def _ratio(row: StabilityRow) -> str:
    if row.ratio is None:
        return "-"
    interval = "" if row.low is None else f" [{row.low:.2f}, {row.high:.2f}]"
    return f"x {row.ratio:.2f}{interval}"


def changed_lines(changed: ChangedUnits) -> Iterator[RenderableType]:
    """The worst pairs, then the best."""
    named = "" if changed.dimension == "overall" else f" on {safe(changed.dimension)}"
    counted = f"{changed.worse} got worse{named}, {changed.better} better, of {changed.n} pairs"
    yield Text(f"\n{counted}", style="bold")
    for title, pairs in (("worst", changed.worst), ("best", changed.best)):
        for number, pair in enumerate(pairs, 1):
            yield from _pair(f"{title} {number}", pair)
    sides = [pair.variant for pair in (*changed.worst, *changed.best)]
    if sides:
        command = f"evenhand show {sides[0].run} {shlex.quote(safe(sides[0].unit))}"
        yield Text(f"\nAll of one with its prompts and replies: {command}", style="dim")


def _pair(title: str, pair: ChangedPair) -> Iterator[RenderableType]:
    about = ", ".join(f"{name} {value}" for name, value in pair.fields.items())
    yield Text()
    heading = cut(f"{title}: {pair.difference or 0:+.3g}  {about}", 76)
    yield Rule(Text(heading, style="bold"), align="left")
    if pair.question:
        yield _row("Q", _cut_text(pair.question, TEXT))
    sides = (pair.baseline, pair.variant)
    yield side_by_side([Text(_head(side), style="bold") for side in sides])
    yield side_by_side([Text(_cut_text(side.output, TEXT)) for side in sides])
    if all(side.reasons for side in sides):
        yield side_by_side([_reasons(side) for side in sides])
        return
    for side in sides:
        if side.reasons:
            yield _reasons(side)


def _row(letter: str, text: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    grid.add_row(letter, Text(text))
    return grid


def _head(side: ChangedSide) -> str:
    units = f"{side.units} units" if side.units > 1 else f"unit {safe(side.unit)}"
    value = "no verdict" if side.value is None else f"{side.value:.3g}"
    return f"{safe(side.name)}: {value}, {units}"


def _reasons(side: ChangedSide) -> Text:
    """Score and reason of every dimension; who said it, where several did."""
    several = len({reason.judge for reason in side.reasons}) > 1
    text = Text()
    for reason in side.reasons:
        by = f" ({reason.judge})" if several else ""
        text.append(f"{safe(f'{reason.about} {_score(reason.score)}{by}')}", style="bold")
        text.append(f" {_cut_text(reason.text, REASON)}\n" if reason.text else "\n")
    text.rstrip()
    return text


def _score(text: str) -> str:
    """A score with two decimals at most; what is no number as it is."""
    try:
        return f"{round(float(text), 2):g}"
    except ValueError:
        return text


def _cut_text(text: str, most: int) -> str:
    """The beginning of a text, its lines as they are."""
    return safe(text if len(text) <= most else text[: most - 1].rstrip() + "…")
