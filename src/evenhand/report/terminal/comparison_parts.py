"""More than a comparison, as text for a terminal: the comparison inside each value of a field, the
stability over repeated runs, and the units that changed most."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from evenhand.report.html.breakdown import (
    block_rows,
    interaction_sentence,
    ratio_text,
    shown_tests,
    stability_rows,
    stability_sentence,
)
from evenhand.report.model import ChangedPair, ChangedSide, ChangedUnits
from evenhand.report.terminal.comparison import (
    gap_heading,
    outcome_text,
    p_heading,
    row_cells,
    with_figure,
)
from evenhand.report.terminal.console import TextTable, paragraph, side_by_side, table, titles
from evenhand.report.terminal.tables import cut, safe
from evenhand.stats.stability import Stability, StabilityRow
from evenhand.stats.within import Between, Blocks
from evenhand.words import Words

TEXT = 360
"""Characters of a question or an answer that are shown; `show` has all of them."""
REASON = 200


def blocks_lines(blocks: Blocks, say: Words) -> Iterator[RenderableType]:
    """For each variant a table per dimension, overall first, and a sentence on whether the
    difference differs."""
    first = blocks.blocks[0].comparison
    sizes = [(block.value, say.counted("unit", block.units)) for block in blocks.blocks]
    units = say.join(with_figure(value, size, say) for value, size in sizes)
    for variant in dict.fromkeys(test.variant for test in blocks.between):
        about = {"variant": variant, "baseline": first.baseline, "by": blocks.field, "size": units}
        yield Text()
        yield paragraph(say("terminal.against", **about), style="bold")
        for test in shown_tests(blocks, variant):
            yield Text()
            yield paragraph(interaction_sentence(test, blocks.field, say))
            yield _blocks_table(blocks, test, first.level, say)


def _blocks_table(blocks: Blocks, test: Between, level: float, say: Words) -> TextTable:
    rows = block_rows(blocks, test)
    heads = [*titles(say, "base", "mean"), gap_heading(level, say)]
    heads += [p_heading(rows.values(), say), say("terminal.outcome")]
    grid = table(blocks.field, *heads, right=(1, 2, 4), whole=[3])
    for value, row in rows.items():
        outcome = outcome_text(row.outcome, say)
        grid.add_row(safe(value), *row_cells(row, say), say.p_value(row.p_adjusted), outcome)
    return grid


def stability_lines(stability: Stability, say: Words) -> Iterator[RenderableType]:
    """Yield for each variant a sentence and a table by dimension, overall first."""
    for variant in dict.fromkeys(row.variant for row in stability.rows):
        rows = stability_rows(stability, variant)
        yield Text()
        yield paragraph(stability_sentence(stability, rows[0], say), style="bold")
        yield _stability_table(stability, rows, say)
    yield paragraph(say("terminal.stability_note"), style="dim")


def _stability_table(stability: Stability, rows: list[StabilityRow], say: Words) -> TextTable:
    heads = titles(say, "dimension", "sd_base", "sd")
    heads += [say("terminal.ratio_level", level=say.percent(stability.level))]
    heads += [p_heading(rows, say), say("terminal.outcome")]
    grid = table(*heads, right=(1, 2, 4), whole=[3])
    for row in rows:
        pair = row.baseline_sd, row.sd
        places = 3 if max(value or 0.0 for value in pair) <= 1 else 1
        deviations = [say.number(value, places) for value in pair]
        cells = [*deviations, ratio_text(row, say), say.p_value(row.p_adjusted)]
        name = safe(say.dimension(row.dimension))
        grid.add_row(name, *cells, outcome_text(row.outcome, say))
    return grid


def changed_lines(changed: ChangedUnits, say: Words) -> Iterator[RenderableType]:
    """The worst pairs, then the best."""
    counts = {"worse": changed.worse, "better": changed.better, "n": changed.n}
    yield Text()
    yield paragraph(say("terminal.changed", dimension=changed.dimension, **counts), style="bold")
    for key, pairs in (("worst", changed.worst), ("best", changed.best)):
        for number, pair in enumerate(pairs, 1):
            yield from _pair(say(f"terminal.{key}", n=number), pair, say)
    sides = [pair.variant for pair in (*changed.worst, *changed.best)]
    if sides:
        command = f"evenhand show {sides[0].run} {shlex.quote(safe(sides[0].unit))}"
        yield Text()
        yield paragraph(say("terminal.show_one", command=command), style="dim")


def _pair(title: str, pair: ChangedPair, say: Words) -> Iterator[RenderableType]:
    about = say.join(f"{name} {value}" for name, value in pair.fields.items())
    yield Text()
    heading = cut(f"{title}: {say.signed(pair.difference or 0.0)}  {about}", 76)
    yield Rule(Text(heading, style="bold"), align="left")
    if pair.question:
        yield _row(say("unit.question"), _cut_text(pair.question, TEXT))
    sides = (pair.baseline, pair.variant)
    yield side_by_side([Text(_head(side, say), style="bold") for side in sides])
    yield side_by_side([Text(_cut_text(side.output, TEXT)) for side in sides])
    if all(side.reasons for side in sides):
        yield side_by_side([_reasons(side, say) for side in sides])
        return
    for side in sides:
        if side.reasons:
            yield _reasons(side, say)


def _row(label: str, text: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    grid.add_row(label, Text(text))
    return grid


def _head(side: ChangedSide, say: Words) -> str:
    key = "side_of_units" if side.units > 1 else "side"
    value = say("changed.no_verdict") if side.value is None else say.short(round(side.value, 3))
    about = {"name": side.name, "unit": side.unit, "n": side.units, "value": value}
    return safe(say(f"terminal.{key}", **about))


def _reasons(side: ChangedSide, say: Words) -> Text:
    """Score and reason of every dimension; who said it, where several did."""
    several = len({reason.judge for reason in side.reasons}) > 1
    text = Text()
    for reason in side.reasons:
        by = f" ({reason.judge})" if several else ""
        about = f"{say.gloss('dimension', reason.about)} {_score(reason.score)}{by}"
        text.append(safe(about), style="bold")
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
