"""The charts of a report: rows with a label, marks on a common scale, and the figure in words.

Labels, numbers and axes are HTML; an SVG holds marks alone, by numbers and classes of this module,
so that no text of a user is ever drawn. Each chart has its figures as a table too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from evenhand.report.html.build import Bar, Difference, Report
from evenhand.report.html.marks import (
    COLOURS,
    LABEL_LENGTH,
    Panel,
    Point,
    Unit,
    count_unit,
    draw_bars,
    draw_points,
    number_unit,
    percent_unit,
    series_colours,
    signed_unit,
)
from evenhand.report.html.page import Words, p_value
from evenhand.stats.comparison import OVERALL
from evenhand.text import visible

SHOWN = 24
"""Labels in one chart; the table has them all."""
_OUTCOMES = {"better": "good", "worse": "bad", "same": "soft", "not enough evidence": "soft"}


@dataclass(frozen=True, slots=True)
class Matrix:
    """Names, and for each two of them a text and the class of its colour."""

    names: Sequence[str]
    cells: Sequence[Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart with its title, a sentence on how to read it, and its figures as a table."""

    name: str
    title: str
    about: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    panels: Sequence[Panel] = ()
    matrix: Matrix | None = None
    legend: Sequence[tuple[str, str]] = field(default=())


def figures(report: Report, say: Words) -> Iterator[Figure]:
    """Yield every chart that the run has figures for."""
    charts = _Charts(report, say)
    for chart in (
        charts.differences,
        charts.means,
        charts.standings,
        charts.matrix,
        charts.ratings,
        charts.scores,
        charts.tags,
        charts.position,
        charts.contradictions,
        charts.lengths,
    ):
        figure = chart()
        if figure is not None:
            yield figure


class _Charts:
    def __init__(self, report: Report, say: Words) -> None:
        self.report, self.say = report, say

    def _figure(
        self,
        name: str,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        panels: Sequence[Panel] = (),
        legend: Mapping[str, str] | None = None,
        matrix: Matrix | None = None,
        more: int = 0,
        **values: str,
    ) -> Figure:
        say, method = self.say, self.report.method
        half = say.gloss("half", method.rule)
        about = say(f"chart.{name}_about", level=say.percent(method.level), half=half)
        if more > 0:
            about = f"{about} ({say('page.and_more', n=more)})"
        filled = [n for n in range(len(head)) if any(row[n] for row in rows)]
        return Figure(
            name=name,
            title=say(f"chart.{name}", **values),
            about=about,
            head=[say(f"chart.{head[n]}") for n in filled],
            rows=[[row[n] for n in filled] for row in rows],
            panels=panels,
            matrix=matrix,
            legend=list(legend.items()) if legend and len(legend) > 1 else (),
        )

    def _chart(
        self,
        name: str,
        head: tuple[str, str, str],
        points: list[Point],
        unit: Unit,
        draw: Callable[[list[Point]], Sequence[Panel]],
    ) -> Figure | None:
        """Return the chart of some points, drawn as far as there is room; the table has them all
        under the heads of label, series and value."""
        if not points:
            return None
        shown, say = _select(points), self.say
        label, series, value = head
        rows = [
            [
                *(point.label, point.series, "" if point.n is None else say.short(point.n)),
                *(unit.value(point.value), unit.interval(point.low, point.high)),
            ]
            for point in points
        ]
        return self._figure(
            name,
            [label, series, "n", value, "interval"],
            rows,
            panels=draw(shown),
            legend=series_colours(shown),
            more=len(points) - len(shown),
        )

    def _dimension(self, name: str) -> str:
        if name == OVERALL:
            return self.say.gloss("dimension", name if self.report.is_pairs else "of_one")
        label = self.report.method.names.get(name, "")
        full = f"{name} · {label}"
        fits = label and label.casefold() != name.casefold() and len(full) <= LABEL_LENGTH
        return visible(full if fits else name)

    def means(self) -> Figure | None:
        unit = number_unit(self.say)
        points = [
            Point(
                self._dimension(mean.dimension),
                visible(mean.variant),
                mean.value,
                mean.low,
                mean.high,
                mean.n,
                is_overall=mean.dimension == OVERALL,
            )
            for mean in self.report.means
            if mean.value is not None
        ]
        head = ("dimension", "variant", "mean")
        return self._chart(
            "means", head, points, unit, lambda shown: [draw_points(p, unit) for p in _apart(shown)]
        )

    def differences(self) -> Figure | None:
        say, differences, pairs = self.say, self.report.differences, self.report.is_pairs
        known = [row for row in differences if row.value is not None]
        if not known:
            return None
        one = len({row.variant for row in known}) == 1
        points = [
            Point(
                self._dimension(row.dimension),
                visible(row.variant),
                (row.mean if pairs else row.value) or 0.0,
                row.mean_low if pairs else row.low,
                row.mean_high if pairs else row.high,
                colour=_OUTCOMES.get(row.outcome, "soft") if one else "",
                is_overall=row.dimension == OVERALL,
            )
            for row in known
        ]
        shown = _select(points)
        panels = (
            [draw_points(shown, percent_unit(say), reference=0.5)]
            if pairs
            else [draw_points(part, signed_unit(say), reference=0.0) for part in _apart(shown)]
        )
        head = ["dimension", "variant", "n", "mean", "baseline", "difference", "interval"]
        head += ["p", "p_adjusted", "effect", "outcome"]
        return self._figure(
            "rates" if pairs else "differences",
            head,
            [self._difference_row(row) for row in differences],
            panels=panels,
            legend=series_colours(shown),
            more=len(points) - len(shown),
            baseline=visible(self.report.method.baseline),
        )

    def _difference_row(self, row: Difference) -> list[str]:
        say = self.say
        write = say.percent if self.report.is_pairs else say.number
        return [
            *(self._dimension(row.dimension), visible(row.variant), str(row.n)),
            *(write(row.mean), write(row.baseline_mean)),
            *(say.signed(row.value), say.interval(row.low, row.high)),
            *(p_value(say, row.p), p_value(say, row.p_adjusted)),
            *(say.number(row.effect), say.gloss("outcome", row.outcome)),
        ]

    def scores(self) -> Figure | None:
        unit, has_totals = percent_unit(self.say), self.report.full_marks is not None
        bars = [bar for bar in self.report.scores if bar.of]
        groups = list(dict.fromkeys(bar.group for bar in bars))

        def label(bar: Bar) -> str:
            return f"{bar.group} {bar.value}" if bar.group else bar.value

        def draw(shown: list[Point]) -> list[Panel]:
            names = {visible(label(bar)): bar for bar in bars}
            panels = []
            for group in groups:
                own = [p for p in shown if names[p.label].group == group]
                own = [replace(point, label=visible(names[point.label].value)) for point in own]
                panels.append(draw_bars(own, unit, visible(group)))
            return panels

        points = [_share(bar, label(bar)) for bar in bars]
        head = ("total" if has_totals else "score", "variant", "share")
        return self._chart("totals" if has_totals else "scores", head, points, unit, draw)

    def tags(self) -> Figure | None:
        say, unit = self.say, percent_unit(self.say)
        points = [
            _share(
                bar,
                say.gloss("verdict", bar.value)
                if bar.value == "critical"
                else f"{bar.value} · {say.gloss('tag', bar.value)}",
            )
            for bar in self.report.tags
            if bar.of
        ]
        head = ("tag", "variant", "share")
        return self._chart("tags", head, points, unit, lambda shown: [draw_bars(shown, unit)])

    def lengths(self) -> Figure | None:
        say, bins, pairs = self.say, self.report.lengths, self.report.is_pairs
        if len(bins) < 2:
            return None
        ends = [dict.fromkeys(map(say.short, (b.least, b.most))) for b in bins]
        points = [
            Point(" – ".join(texts), "", b.value, b.low, b.high, b.n)
            for texts, b in zip(ends, bins, strict=True)
        ]
        name, head = "lengths", ("length", "variant", "mean")
        unit, reference = number_unit(say), None
        if pairs:
            name, head = "pair_lengths", ("longer", "variant", "a_wins")
            unit, reference = percent_unit(say), 0.5
        return self._chart(
            name, head, points, unit, lambda shown: [draw_points(shown, unit, reference=reference)]
        )

    def standings(self) -> Figure | None:
        unit = percent_unit(self.say)
        points = [
            Point(visible(row.candidate), "", row.win_rate, row.low, row.high, row.n)
            for row in self.report.standings
            if row.win_rate is not None
        ]
        head = ("candidate", "variant", "win_rate")
        return self._chart(
            "standings", head, points, unit, lambda p: [draw_points(p, unit, reference=0.5)]
        )

    def ratings(self) -> Figure | None:
        unit = signed_unit(self.say)
        rated = [row for row in self.report.standings if row.rating is not None]
        rated.sort(key=lambda row: (-(row.rating or 0.0), row.candidate))
        points = [
            Point(visible(row.candidate), "", row.rating or 0.0, row.rating_low, row.rating_high)
            for row in rated
        ]
        head = ("candidate", "variant", "rating")
        return self._chart(
            "ratings", head, points, unit, lambda p: [draw_points(p, unit, reference=0.0)]
        )

    def matrix(self) -> Figure | None:
        say, meetings = self.say, self.report.meetings
        if not meetings:
            return None
        names = [row.candidate for row in self.report.standings][:SHOWN]
        rates = {(m.candidate, m.other): m.rate for m in meetings}
        cells = [[_matrix_cell(rates.get((name, other))) for other in names] for name in names]
        rows = [
            [visible(m.candidate), visible(m.other), str(m.n), say.percent(m.rate)]
            for m in meetings
        ]
        return self._figure(
            "matrix",
            ["candidate", "against", "n", "win_rate"],
            rows,
            more=len(self.report.standings) - len(names),
            matrix=Matrix([visible(name) for name in names], cells),
        )

    def position(self) -> Figure | None:
        say, unit, positions = self.say, percent_unit(self.say), self.report.positions
        points = [
            Point(
                say(f"chart.{key}"),
                visible(position.judge) if len(positions) > 1 else "",
                *(share.value, share.low, share.high, share.n),
            )
            for position in positions
            for key, share in (
                ("consistency", position.consistency),
                ("first_slot", position.first_slot),
            )
            if share.value is not None
        ]
        return self._chart(
            "position",
            ("figure", "judge", "share"),
            points,
            unit,
            lambda shown: [draw_points(shown, unit, reference=0.5, ends=(0.0, 1.0))],
        )

    def contradictions(self) -> Figure | None:
        unit, counts = count_unit(self.say), self.report.contradictions
        points = [Point(self._dimension(c), "", n, colour="warn") for c, n in counts.items()]
        head = ("criterion", "variant", "number")
        return self._chart(
            "contradictions", head, points, unit, lambda shown: [draw_bars(shown, unit)]
        )


def _share(bar: Bar, label: str) -> Point:
    return Point(visible(label), visible(bar.variant), bar.count / bar.of, n=bar.count)


def _select(points: list[Point]) -> list[Point]:
    """Return the points that one chart has room for; of many variants, their overall figures
    alone, or those of the first."""
    series = list(dict.fromkeys(point.series for point in points))
    if len(series) > len(COLOURS):
        overall = [replace(p, label=p.series, series="") for p in points if p.is_overall]
        points = overall or [p for p in points if p.series in series[: len(COLOURS)]]
    labels = list(dict.fromkeys(point.label for point in points))[:SHOWN]
    return [point for point in points if point.label in labels]


def _apart(points: Sequence[Point]) -> list[list[Point]]:
    """Return dimensions and the overall figure apart: they are on scales of their own."""
    parts = [[p for p in points if p.is_overall == is_overall] for is_overall in (False, True)]
    return [part for part in parts if part]


def _matrix_cell(rate: float | None) -> tuple[str, str]:
    """Return the percentage of a cell, and the class that colours it by who wins and how far."""
    if rate is None:
        return "", ""
    strength = ceil(abs(rate - 0.5) * 6)
    side = "wins" if rate > 0.5 else "loses"
    return f"{100 * rate:.0f}", f"{side}-{strength}" if strength else ""
