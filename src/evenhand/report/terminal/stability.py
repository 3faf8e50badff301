"""The stability of answers over repeated runs, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.terminal.console import TextTable, table
from evenhand.report.terminal.figures import STYLES, number_text, p_heading, p_text
from evenhand.report.terminal.tables import safe
from evenhand.stats.comparison import OVERALL
from evenhand.stats.stability import Stability, StabilityRow

NOTE = "sd: standard deviation over repeated runs of the same, the judge's own noise included."
WORDS = {"better": "steadier than", "worse": "less steady than"}


def stability_lines(stability: Stability) -> Iterator[RenderableType]:
    """Yield for each variant a sentence and a table by dimension, overall first."""
    for variant in dict.fromkeys(row.variant for row in stability.rows):
        rows = [row for row in stability.rows if row.variant == variant]
        if len(rows) == 2:  # of one dimension alone the overall figure says the same again
            rows = rows[:1]
        rows.sort(key=lambda row: row.dimension != OVERALL)
        yield Text(f"\n{safe(sentence(stability, rows[0]))}", style="bold")
        yield _table(stability, rows)
    yield Text(NOTE, style="dim")


def sentence(stability: Stability, row: StabilityRow) -> str:
    """Say whether a variant varies more than the baseline."""
    over = f"over {stability.field}"
    size = f"{row.n} times asked again, on {row.clusters} questions"
    on = "overall" if row.dimension == OVERALL else f"on {row.dimension}"
    if row.outcome == "not enough evidence":
        claim = (
            f"Not enough evidence that {row.variant} varies more or less than {stability.baseline}"
        )
    else:
        claim = f"{row.variant} is {WORDS[row.outcome]} {stability.baseline}"
    return f"{claim} {over} {on}: variance {_ratio(row)}, p {p_text(row.p_adjusted)}; {size}."


def _table(stability: Stability, rows: list[StabilityRow]) -> TextTable:
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
