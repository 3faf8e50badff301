"""The units that changed most, as text for a terminal: both answers side by side."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from evenhand.report.changes import ChangedPair, ChangedSide, ChangedUnits
from evenhand.report.terminal.console import side_by_side
from evenhand.report.terminal.tables import cut, safe

TEXT = 360
"""Characters of a question or an answer that are shown; `show` has all of them."""
REASON = 200


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
        yield _row("Q", _shortened(pair.question, TEXT))
    sides = (pair.baseline, pair.variant)
    yield side_by_side([Text(_headed(side), style="bold") for side in sides])
    yield side_by_side([Text(_shortened(side.output, TEXT)) for side in sides])
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


def _headed(side: ChangedSide) -> str:
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
        text.append(f" {_shortened(reason.text, REASON)}\n" if reason.text else "\n")
    text.rstrip()
    return text


def _score(text: str) -> str:
    """A score with two decimals at most; what is no number as it is."""
    try:
        return f"{round(float(text), 2):g}"
    except ValueError:
        return text


def _shortened(text: str, most: int) -> str:
    """The beginning of a text, its lines as they are."""
    return safe(text if len(text) <= most else text[: most - 1].rstrip() + "…")
