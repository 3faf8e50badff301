"""How far answers waver over repeated runs, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.terminal.figures import STYLES, number_text, p_heading, p_text
from evenhand.report.terminal.grid import TextTable, table
from evenhand.report.terminal.tables import safe
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.stats.comparison.spread import Spread, SpreadRow

NOTE = "sd: standard deviation over repeated runs of the same, the judge's own noise included."
WORDS = {"better": "steadier than", "worse": "less steady than"}


def spread_lines(spread: Spread) -> Iterator[RenderableType]:
    """For each variant a sentence and a table by dimension, overall first."""
    for variant in dict.fromkeys(row.variant for row in spread.rows):
        rows = [row for row in spread.rows if row.variant == variant]
        if len(rows) == 2:  # of one dimension alone the overall figure says the same again
            rows = rows[:1]
        rows.sort(key=lambda row: row.dimension != OVERALL)
        yield Text(f"\n{safe(sentence(spread, rows[0]))}", style="bold")
        yield _table(spread, rows)
    yield Text(NOTE, style="dim")


def sentence(spread: Spread, row: SpreadRow) -> str:
    """Whether a variant wavers more than the baseline, in one sentence."""
    over = f"over {spread.field}"
    size = f"{row.n} times asked again, on {row.clusters} questions"
    on = "overall" if row.dimension == OVERALL else f"on {row.dimension}"
    if row.outcome == "not enough evidence":
        claim = f"Not enough evidence that {row.variant} wavers more or less than {spread.baseline}"
    else:
        claim = f"{row.variant} is {WORDS[row.outcome]} {spread.baseline}"
    return f"{claim} {over} {on}: variance {_ratio(row)}, p {p_text(row.p_adjusted)}; {size}."


def _table(spread: Spread, rows: list[SpreadRow]) -> TextTable:
    ratio = f"variance ratio [{100 * spread.level:g} %]"
    headers = ("dimension", "sd base", "sd", ratio, p_heading(rows), "outcome")
    grid = table(*headers, right=(1, 2, 4), whole=[3])
    for row in rows:
        deviations = [number_text(v, 3) for v in (row.baseline_deviation, row.deviation)]
        outcome = Text(row.outcome, style=STYLES[row.outcome])
        grid.add_row(safe(row.dimension), *deviations, _ratio(row), p_text(row.p_adjusted), outcome)
    return grid


def _ratio(row: SpreadRow) -> str:
    if row.ratio is None:
        return "-"
    interval = "" if row.low is None else f" [{row.low:.2f}, {row.high:.2f}]"
    return f"x {row.ratio:.2f}{interval}"
