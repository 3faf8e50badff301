"""Breakdowns of a comparison, as charts: the difference inside each value of a field, and how much
answers vary over repeated runs. The terminal has the same sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from evenhand.report.html.answer import digits_of, scaled_dimension
from evenhand.report.html.charts import (
    OUTCOME_COLOURS,
    ChartFigure,
    Panel,
    number_unit,
    percent_unit,
    signed_unit,
    variant_colours,
)
from evenhand.report.html.marks import Point, draw
from evenhand.report.model import Report
from evenhand.stats.comparison import OVERALL, Row
from evenhand.stats.stability import Stability, StabilityRow
from evenhand.stats.within import Between, Blocks
from evenhand.text import visible
from evenhand.words import Words


def breakdowns(report: Report, say: Words) -> Iterator[ChartFigure]:
    """Yield a chart for each variant inside the values of a field, and one on stability."""
    if report.blocks:
        yield from _within_charts(report.blocks, say)
    if report.stability:
        yield _stability_chart(report.stability, variant_colours(report), say)


def shown_tests(blocks: Blocks, variant: str) -> list[Between]:
    """Return the tests of a variant worth showing, overall first: of one dimension alone the
    overall figure says the same again."""
    is_single = blocks.blocks[0].comparison.is_one_dimension
    tests = [test for test in blocks.between if test.variant == variant]
    tests = [test for test in tests if test.dimension != OVERALL or not is_single]
    return sorted(tests, key=lambda test: test.dimension != OVERALL)


def block_rows(blocks: Blocks, test: Between) -> dict[str, Row]:
    """Return the rows of a variant on a dimension, by the value of the field."""
    rows = {b.value: b.comparison.row(test.variant, test.dimension) for b in blocks.blocks}
    return {value: row for value, row in rows.items() if row is not None}


def interaction_sentence(test: Between, field: str, say: Words) -> str:
    """Return one sentence on whether the difference differs between the values of a field."""
    about = {"dimension": test.dimension, "field": field}
    if test.p_adjusted is None:
        return say("terminal.interaction_untested", **about)
    key = "differs" if test.outcome == "differs" else "open"
    told = say(f"terminal.interaction_{key}", p=test.p_adjusted, **about)
    if test.gap is None:
        return told
    first, second = test.differences
    ends = say.interval(test.low, test.high, 3)
    values = {"first": first, "second": second, "gap": say.signed(test.gap, 3), "interval": ends}
    return say.join([told, say("terminal.interaction_gap", **values)], between="sentence")


def stability_sentence(stability: Stability, row: StabilityRow, say: Words) -> str:
    """Say whether a variant varies more than the baseline."""
    key = {"better": "steadier", "worse": "less_steady"}.get(row.outcome, "open")
    return say(
        f"terminal.stability_{key}",
        variant=row.variant,
        baseline=stability.baseline,
        field=stability.field,
        dimension=row.dimension,
        ratio=ratio_text(row, say),
        n=row.n,
        clusters=row.clusters,
    )


def ratio_text(row: StabilityRow, say: Words) -> str:
    """Return the ratio of two variances with its interval."""
    if row.ratio is None:
        return say.number(None)
    return f"{say.number(row.ratio)} {say.interval(row.low, row.high)}".strip()


def stability_rows(stability: Stability, variant: str) -> list[StabilityRow]:
    """Return the rows of a variant worth showing, overall first."""
    rows = [row for row in stability.rows if row.variant == variant]
    rows = rows[:1] if len(rows) == 2 else rows
    return sorted(rows, key=lambda row: row.dimension != OVERALL)


def _within_charts(blocks: Blocks, say: Words) -> Iterator[ChartFigure]:
    first = blocks.blocks[0].comparison
    for number, variant in enumerate(dict.fromkeys(test.variant for test in blocks.between)):
        tests = shown_tests(blocks, variant)
        rows = [(test, block_rows(blocks, test)) for test in tests]
        names = {"variant": visible(variant), "baseline": visible(first.baseline)}
        yield ChartFigure(
            name=f"within-{number}",
            title=say("chart.within", field=visible(blocks.field), **names),
            about=say("chart.rates_about" if first.is_duel else "chart.differences_about"),
            head=[
                *(say("chart.dimension"), visible(blocks.field), say("chart.n")),
                *(say("chart.mean"), say("chart.baseline"), say("chart.difference")),
                *(say("chart.interval"), say("chart.p_adjusted"), say("chart.outcome")),
            ],
            rows=[
                [visible(say.dimension(test.dimension)), visible(value), *_cells(row, say)]
                for test, by_value in rows
                for value, row in by_value.items()
            ],
            panels=[
                replace(
                    _within_panel(test, by_value, say, is_duel=first.is_duel),
                    about=visible(interaction_sentence(test, blocks.field, say)),
                )
                for test, by_value in rows
            ],
        )


def _within_panel(test: Between, rows: Mapping[str, Row], say: Words, *, is_duel: bool) -> Panel:
    """Return a dot per value of the field: the difference, or of pairs the win rate."""
    unit, reference = (percent_unit(say), 0.5) if is_duel else (signed_unit(say), 0.0)
    points = [
        Point(
            visible(value), "", middle, low, high, colour=OUTCOME_COLOURS.get(row.outcome, "soft")
        )
        for value, row in rows.items()
        for middle, low, high in [_estimate(row, is_duel=is_duel)]
        if middle is not None
    ]
    drawn, ticks = draw(points, unit, {}, reference=reference) if points else ([], [])
    if is_duel:
        return Panel(drawn, ticks, visible(say.dimension(test.dimension)))
    scale = next((row.scale for row in rows.values()), None)
    return Panel(drawn, ticks, visible(scaled_dimension(test.dimension, say, scale)))


def _estimate(row: Row, *, is_duel: bool) -> tuple[float | None, float | None, float | None]:
    if is_duel:
        return row.mean, row.mean_low, row.mean_high
    return row.difference, row.low, row.high


def _cells(row: Row, say: Words) -> Sequence[str]:
    digits = digits_of(row)
    return [
        *(str(row.n), say.number(row.mean, digits), say.number(row.baseline_mean, digits)),
        *(say.signed(row.difference, digits), say.interval(row.low, row.high, digits)),
        *(say.p_value(row.p_adjusted), say.gloss("outcome", row.outcome)),
    ]


def _stability_chart(stability: Stability, colours: Mapping[str, str], say: Words) -> ChartFigure:
    """Return how far answers to the same question vary: a bar per variant and dimension."""
    variants = list(dict.fromkeys(row.variant for row in stability.rows))
    rows = {name: stability_rows(stability, name) for name in variants}
    unit, panels = number_unit(say), list[Panel]()
    for at, first in enumerate(rows[variants[0]]):
        bars = {stability.baseline: first.baseline_sd}
        bars |= {name: of_variant[at].sd for name, of_variant in rows.items()}
        points = [
            Point(visible(name), "", value, colour=colours.get(visible(name), "soft"))
            for name, value in bars.items()
            if value is not None
        ]
        drawn, ticks = draw(points, unit, {}, bars=True) if points else ([], [])
        panels.append(Panel(drawn, ticks, visible(say.dimension(first.dimension))))
    told = [stability_sentence(stability, rows[name][0], say) for name in variants]
    head = [say(f"chart.{name}") for name in ("dimension", "variant", "n")]
    head += [say("terminal.sd_base"), say("terminal.sd")]
    head += [say("terminal.ratio_level", level=say.percent(stability.level))]
    head += [say("chart.p_adjusted"), say("chart.outcome")]
    return ChartFigure(
        name="stability",
        title=say("chart.stability", field=visible(stability.field)),
        about=visible(say.join([*told, say("terminal.stability_note")], between="sentence")),
        head=head,
        rows=[
            [
                *(visible(say.dimension(row.dimension)), visible(name), str(row.n)),
                *(say.number(row.baseline_sd), say.number(row.sd), ratio_text(row, say)),
                *(say.p_value(row.p_adjusted), say.gloss("outcome", row.outcome)),
            ]
            for name in variants
            for row in rows[name]
        ],
        panels=panels,
    )
