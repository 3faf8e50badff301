"""The charts of a report: rows with a label, marks on a common scale, and the figure in words.

Labels, numbers and axes are HTML; an SVG holds marks alone, by numbers and classes of this module,
so that no text of a user is ever drawn. Each chart has its figures as a table too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.report.html.answer import by_win_rate, scaled_dimension
from evenhand.report.html.marks import ChartRow, Point, Unit, Where, draw
from evenhand.report.html.matrix import shade
from evenhand.report.model import Report
from evenhand.stats.comparison import OVERALL, Row
from evenhand.text import visible
from evenhand.words import Words

SHOWN = 24
"""Labels in one chart; the table has them all."""
COLOURS = ("first", "second", "third", "fourth", "fifth", "sixth")
BARS_SHOWN = 12
"""Bars on the first screen."""
WIDE_SIZE = 10
"""A chart with more marks takes the whole width."""
LABEL_LENGTH = 44
OUTCOME_COLOURS = {"better": "good", "worse": "bad"}


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows on one scale; the ticks stand at equal distances from its low end to its high end."""

    rows: Sequence[ChartRow]
    ticks: Sequence[str]
    title: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Names, and for each two of them a text and the class of its colour."""

    names: Sequence[str]
    cells: Sequence[Sequence[tuple[str, str, Where]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartFigure:
    """A chart with its title, a sentence on how to read it, and its figures as a table."""

    name: str
    title: str
    about: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    panels: Sequence[Panel] = ()
    matrix: Matrix | None = None
    legend: Sequence[tuple[str, str]] = field(default=())
    is_wide: bool = False
    """Whether it takes both columns."""

    @property
    def size(self) -> int:
        """Return the number of its marks; of a matrix that of its rows."""
        marks = sum(len(row.values) for panel in self.panels for row in panel.rows)
        return marks or 2 * len(self.matrix.names if self.matrix else ())


def number_unit(say: Words) -> Unit:
    return Unit(say.number, say.number, say.interval)


def signed_unit(say: Words) -> Unit:
    return Unit(say.signed, say.number, say.interval)


def percent_unit(say: Words) -> Unit:
    return Unit(say.percent, lambda value, _: say.percent(value), say.percents, 0.01)


def figures(report: Report, say: Words) -> dict[str, list[ChartFigure]]:
    """Return the charts that the run has figures for, in groups: the results, the one that answers
    most first, and what tells of the judge."""
    charts = _Charts(report, say)
    results = (charts.differences, charts.passes, charts.matrix, charts.means, charts.ratings)
    groups = {
        "": (*results, charts.scores, charts.tags),
        "judge": (charts.position, charts.lengths),
    }
    return {
        name: [figure for chart in group if (figure := chart())] for name, group in groups.items()
    }


def fill_rows(charts: Sequence[ChartFigure]) -> list[ChartFigure]:
    """Return the charts for two columns without a hole: a large one takes both, and so does one
    that would be alone."""
    shown: list[ChartFigure] = []
    is_open = False
    for chart in charts:
        is_large = chart.size > WIDE_SIZE
        if is_large and is_open:
            shown[-1] = replace(shown[-1], is_wide=True)
        shown.append(replace(chart, is_wide=is_large))
        is_open = not (is_large or is_open)
    return [*shown[:-1], replace(shown[-1], is_wide=True)] if is_open else shown


def variant_colours(report: Report) -> dict[str, str]:
    """Return the colour of each variant or candidate, the same in all charts, as far as there are
    colours."""
    names = [mean.variant for mean in report.means]
    names += [bar.variant for bar in (*report.scores, *report.tags)]
    names += [row.candidate for row in (by_win_rate(report.board) if report.board else ())]
    # Of a comparison the baseline comes first, whichever chart has it.
    names = [report.comparison.baseline, *names] if report.comparison else names
    return dict(zip(dict.fromkeys(map(visible, names)), COLOURS, strict=False))


def named_point(name: str, value: float | None, low: float | None, high: float | None) -> Point:
    """Return a point under the name of a variant or candidate."""
    return Point(visible(name), "", value or 0.0, low, high)


def dimension_label(name: str, report: Report, say: Words) -> str:
    """Return the id of a dimension or criterion, with its name where that says more and fits."""
    if name in say.faults:
        return visible(say.dimension(name))
    label = report.names.get(name, "")
    full = f"{name} · {label}"
    fits = label and label.casefold() != name.casefold() and len(full) <= LABEL_LENGTH
    return visible(full if fits else name)


class _Charts:
    def __init__(self, report: Report, say: Words) -> None:
        self.report, self.say = report, say
        self.colours = variant_colours(report)

    def _figure(
        self,
        name: str,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        points: Sequence[Point] = (),
        panels: Sequence[Panel] = (),
        matrix: Matrix | None = None,
        more: int = 0,
        **values: str,
    ) -> ChartFigure:
        """Return a chart with its table, without columns that say nothing."""
        say, report = self.say, self.report
        half = say.gloss("half", report.rule)
        about = say(f"chart.{name}_about", level=say.percent(report.level), half=half)
        if more > 0:
            about = f"{about} ({say('page.and_more', n=more)})"
        filled = [n for n in range(len(head)) if any(row[n] for row in rows)]
        legend = series_colours(points, self.colours)
        return ChartFigure(
            name=name,
            title=say(f"chart.{name}", **values),
            about=about,
            head=[say(f"chart.{head[n]}") for n in filled],
            rows=[[row[n] for n in filled] for row in rows],
            panels=panels,
            matrix=matrix,
            legend=list(legend.items()) if len(legend) > 1 else (),
        )

    def _chart(
        self,
        name: str,
        head: tuple[str, str, str],
        points: Sequence[Point],
        unit: Unit,
        *,
        reference: float | None = None,
        ends: Sequence[float] = (),
        bars: bool = False,
    ) -> ChartFigure | None:
        """Return the chart of some points, drawn as far as there is room; the table has them all
        under the heads of label, series and value."""
        if not points:
            return None
        shown, say = _select(points), self.say
        label, series, value = head
        rows = [
            [
                f"{point.group} {point.label}".strip(),
                *(point.series, "" if point.n is None else say.short(point.n)),
                *(unit.value(point.value), unit.interval(point.low, point.high)),
            ]
            for point in points
        ]
        return self._figure(
            name,
            [label, series, "n", value, "interval"],
            rows,
            points=shown,
            panels=self._panels(shown, unit, reference=reference, ends=ends, bars=bars),
            more=len(points) - len(shown),
        )

    def _panels(self, points: Sequence[Point], unit: Unit, **axis: Any) -> list[Panel]:
        """Return a panel for each group of points: groups are on scales of their own."""
        colours, panels = series_colours(points, self.colours), list[Panel]()
        for group in dict.fromkeys(point.group for point in points):
            own = [
                replace(p, colour=p.colour or ("" if p.series else self.colours.get(p.label, "")))
                for p in points
                if p.group == group
            ]
            rows, ticks = draw(own, unit, colours, **axis)
            panels.append(Panel(rows, ticks, "" if group == OVERALL else group))
        return panels

    @property
    def _most(self) -> float:
        """Return the greatest overall score."""
        scales = (mean.scale for mean in self.report.means if mean.dimension == OVERALL)
        return (next(scales, None) or (0.0, 1.0))[1]

    def _of_variant(self, variant: str, n: int, *where: tuple[str, str]) -> Where:
        """Return the units of a variant, if there are several, that have a value besides; empty
        where none has, and of units that name no variant, which no filter finds."""
        if not n or (not variant and len(self.colours) > 1):
            return ()
        return (*([("variant", variant)] if variant else []), *where)

    def _dimension(self, name: str) -> str:
        if name == OVERALL:
            if self.report.is_pairs:
                return self.say.gloss("dimension", name)
            return scaled_dimension(name, self.say, (0.0, self._most))
        return dimension_label(name, self.report, self.say)

    def means(self) -> ChartFigure | None:
        """Return the means of dimensions, unless the bars of the first screen have them, as they
        have those of what is overall."""
        points = [
            Point(
                *(self._dimension(mean.dimension), visible(mean.variant), mean.mean),
                *(mean.low, mean.high, mean.n),
            )
            for mean in self.report.means
            if mean.mean is not None and mean.dimension != OVERALL
        ]
        kinds = {point.label for point in points}, {point.series for point in points}
        if len(points) <= BARS_SHOWN and 1 in map(len, kinds):
            return None
        head = ("dimension", "variant", "mean")
        return self._chart("means", head, points, number_unit(self.say))

    def passes(self) -> ChartFigure | None:
        """Return the pass rates of several variants; the first screen has those of two."""
        points = [
            replace(
                named_point(each.variant, rate.value, rate.low, rate.high),
                n=each.of,
                where=self._of_variant(each.variant, each.passed, ("passed", "true")),
            )
            for each in self.report.passes
            for rate in [each.rate]
        ]
        if len(points) < 3:
            return None
        head, unit = ("variant", "variant", "pass_rate"), percent_unit(self.say)
        return self._chart("passes", head, points, unit, ends=(0.0, 1.0), bars=True)

    def differences(self) -> ChartFigure | None:
        comparison, say = self.report.comparison, self.say
        known = [row for row in comparison.rows if row.difference is not None] if comparison else []
        if not known or comparison is None:
            return None
        is_duel, is_single = comparison.is_duel, len({row.variant for row in known}) == 1
        points = [
            Point(
                self._dimension(row.dimension),
                visible(row.variant),
                (row.mean if is_duel else row.difference) or 0.0,
                row.mean_low if is_duel else row.low,
                row.mean_high if is_duel else row.high,
                colour=OUTCOME_COLOURS.get(row.outcome, "soft") if is_single else "",
                group=OVERALL if row.dimension == OVERALL and not is_duel else "",
            )
            for row in known
        ]
        shown = _select(points)
        unit, reference = (percent_unit(say), 0.5) if is_duel else (signed_unit(say), 0.0)
        head = ["dimension", "variant", "n", "mean", "baseline", "difference", "interval"]
        head += ["p", "p_adjusted", "effect", "outcome"]
        return self._figure(
            "rates" if is_duel else "differences",
            head,
            [self._difference_row(row) for row in comparison.rows],
            points=shown,
            panels=self._panels(shown, unit, reference=reference),
            more=len(points) - len(shown),
            baseline=visible(comparison.baseline),
        )

    def _difference_row(self, row: Row) -> list[str]:
        say = self.say
        write = say.percent if self.report.is_pairs else say.number
        return [
            *(self._dimension(row.dimension), visible(row.variant), str(row.n)),
            *(write(row.mean), write(row.baseline_mean)),
            *(say.signed(row.difference), say.interval(row.low, row.high)),
            *(say.p_value(row.p), say.p_value(row.p_adjusted)),
            *(say.number(row.effect), say.gloss("outcome", row.outcome)),
        ]

    def scores(self) -> ChartFigure | None:
        scores = [bar for bar in self.report.scores if bar.of]
        # Of a dimension that is met or not, the mean is the share that meets it.
        said = {bar.group for bar in scores if bar.group and bar.value not in ("0", "1")}
        bars = [bar for bar in scores if bar.group in said or not bar.group]
        points = [
            Point(
                *(visible(bar.value), visible(bar.variant), bar.count / bar.of),
                n=bar.count,
                group=visible(self.say.dimension(bar.group)),
                where=self._of_variant(bar.variant, bar.count, ("scores", bar.score)),
            )
            for bar in bars
        ]
        name, label = ("scores", "score") if any(bar.group for bar in bars) else ("totals", "total")
        head = (label, "variant", "share")
        return self._chart(name, head, points, percent_unit(self.say), bars=True)

    def tags(self) -> ChartFigure | None:
        say = self.say
        points = [
            Point(
                say.gloss("verdict", bar.value)
                if bar.value == "critical"
                else visible(f"{bar.value} · {say.gloss('tag', bar.value)}"),
                *(visible(bar.variant), bar.count / bar.of),
                n=bar.count,
                where=self._of_variant(
                    bar.variant,
                    bar.count,
                    ("verdicts" if bar.value == "critical" else "tags", bar.value),
                ),
            )
            for bar in self.report.tags
            if bar.of
        ]
        head = ("tag", "variant", "share")
        return self._chart("tags", head, points, percent_unit(say), bars=True)

    def lengths(self) -> ChartFigure | None:
        say, bins = self.say, self.report.lengths
        most = 1.0 if self.report.is_pairs else self._most
        if len(bins) < 2:
            return None

        def scaled(value: float | None) -> float | None:
            return None if value is None else most * value

        points = [
            Point(label, "", scaled(mean.value) or 0.0, scaled(mean.low), scaled(mean.high))
            for each in bins
            for label in [self._range(say.short(each.least), say.short(each.most))]
            for mean in [each.mean]
        ]
        if self.report.is_pairs:
            head = ("longer", "variant", "a_wins")
            return self._chart("pair_lengths", head, points, percent_unit(say), reference=0.5)
        return self._chart("lengths", ("length", "variant", "mean"), points, number_unit(say))

    def _range(self, low: str, high: str) -> str:
        return low if low == high else self.say("terminal.from_to", low=low, high=high)

    def ratings(self) -> ChartFigure | None:
        """Return the ratings where candidates met others unequally often; elsewhere the win rates
        say the same."""
        board = self.report.board
        numbers = board.matrix["n"] if board and board.matrix else []
        if board is None or len({n for place, row in enumerate(numbers) for n in row[:place]}) < 2:
            return None
        points = [
            named_point(row.candidate, row.rating, row.rating_low, row.rating_high)
            for row in board.rows
            if row.rating is not None
        ]
        points.sort(key=lambda point: (-point.value, point.label))
        head = ("candidate", "variant", "rating")
        return self._chart("ratings", head, points, signed_unit(self.say), reference=0.0)

    def matrix(self) -> ChartFigure | None:
        board = self.report.board
        names = [row.candidate for row in by_win_rate(board)] if board and board.matrix else []
        if board is None or len(names) < 3:  # of two the first screen says it
            return None
        place = {name: number for number, name in enumerate(board.matrix["candidates"])}
        rates = [[board.matrix["win_rate"][place[a]][place[b]] for b in names] for a in names]
        numbers = board.matrix["n"]
        met = [
            [
                *(visible(a), visible(b), str(int(numbers[place[a]][place[b]]))),
                self.say.percent(rate),
            ]
            for a, row in zip(names, rates, strict=True)
            for b, rate in zip(names, row, strict=True)
            if rate is not None
        ]
        cells = [
            [_matrix_cell(rate, a, b) for b, rate in zip(names[:SHOWN], row, strict=False)]
            for a, row in zip(names[:SHOWN], rates, strict=False)
        ]
        return self._figure(
            "matrix",
            ["candidate", "against", "n", "win_rate"],
            met,
            more=len(names) - SHOWN,
            matrix=Matrix([visible(name) for name in names[:SHOWN]], cells),
        )

    def position(self) -> ChartFigure | None:
        orders = self.report.orders
        points = [
            Point(
                visible(judge) if len(orders) > 1 else self.say(f"chart.{key}"),
                "",
                *(share.value, share.low, share.high, share.n),
                colour="soft",
                group=self.say(f"chart.{key}") if len(orders) > 1 else "",
            )
            for judge, found in orders.items()
            for key, share in (("consistency", found.consistency), ("first_slot", found.first_slot))
            if share.value is not None
        ]
        head, unit = ("figure", "judge", "share"), percent_unit(self.say)
        return self._chart("position", head, points, unit, reference=0.5, ends=(0.0, 1.0))


def _select(points: Sequence[Point]) -> list[Point]:
    """Return the points that one chart has room for; of many variants, their overall figures or
    those of the only dimension alone, or those of the first."""
    series = list(dict.fromkeys(point.series for point in points))
    if len(series) > len(COLOURS):
        main = {point.label for point in points if point.group == OVERALL}
        main = main or {point.label for point in points}
        overall = [
            replace(p, label=p.series, series="", group=p.label) for p in points if p.label in main
        ]
        points = (
            overall if len(main) == 1 else [p for p in points if p.series in series[: len(COLOURS)]]
        )
    labels = list(dict.fromkeys((point.group, point.label) for point in points))[:SHOWN]
    return [point for point in points if (point.group, point.label) in labels]


def _matrix_cell(rate: float | None, *names: str) -> tuple[str, str, Where]:
    """Return the percentage of a cell, the class that shades it, and the pairs that it is about."""
    if rate is None:
        return "", "", ()
    return f"{100 * rate:.0f}", shade(rate), tuple(("candidates", name) for name in names)


def series_colours(points: Sequence[Point], given: Mapping[str, str]) -> dict[str, str]:
    """Return a colour for each series: the one that it is given, else one that no other has; none
    of a variant for what is of nobody."""
    names = dict.fromkeys(point.series for point in points)
    taken = {given[name] for name in names if name in given}
    free = (colour for colour in COLOURS if colour not in taken)
    return {
        name: given.get(name) or (next(free) if name or not given else "soft") for name in names
    }
