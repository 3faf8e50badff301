"""The charts of a report: rows with a label, marks on a common scale, and the figure in words.

Labels, numbers and axes are HTML; an SVG holds marks alone, by numbers and classes of this module,
so that no text of a user is ever drawn. Each chart has its figures as a table too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil, floor, log10

from evenhand.report.html.build import Bar, Difference, Report, Share
from evenhand.report.html.page import Words, p_value
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.text import visible

SHOWN = 24
"""Labels in one chart; the table has them all."""
COLOURS = ("first", "second", "third", "fourth", "fifth", "sixth")
LABEL_LENGTH = 44
STRIP = 22
"""The height of the marks of one series, in pixels."""
WIDTH = 1000
INTERVALS = 5
"""An axis has at most so many parts between its numbers."""
_OUTCOMES = {"better": "good", "worse": "bad"}


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval, under a label, of a series."""

    label: str
    series: str
    value: float
    low: float | None = None
    high: float | None = None
    colour: str = ""
    is_overall: bool = False


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A label, the marks beside it, and their values in words."""

    label: str
    svg: str
    values: Sequence[str]


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows on one scale; the ticks stand at equal distances from its low end to its high end."""

    rows: Sequence[ChartRow]
    ticks: Sequence[str]
    title: str = ""


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


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from one round number to another, in equal steps."""

    low: float
    high: float
    step: Decimal

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(WIDTH * min(1.0, max(0.0, share)), 1)

    def ticks(self, text: Callable[[float, int], str]) -> list[str]:
        """Return the round numbers from the low end to the high end; `text` writes one with so
        many digits."""
        digits = max(0, -int(self.step.normalize().as_tuple().exponent))
        return [text(self.low + n * float(self.step), digits) for n in range(self.parts + 1)]

    @property
    def parts(self) -> int:
        """How many steps it has."""
        return round((self.high - self.low) / float(self.step))


def make_scale(values: Sequence[float], least_step: float = 0.0) -> Scale:
    """Return the shortest axis with round ends that holds these values."""
    low, high = min(values), max(values)
    if low == high:
        low, high = (low - 0.5, high + 0.5) if low else (0.0, 1.0)
    power = floor(log10((high - low) / INTERVALS))
    for step in (Decimal(n).scaleb(power + more) for more in range(9) for n in (1, 2, 5)):
        size = float(step)
        first, last = floor(low / size + 1e-9), ceil(high / size - 1e-9)
        if last - first <= INTERVALS and size >= least_step:
            return Scale(first * size, last * size, step)
    raise AssertionError("a long enough step always fits")


@dataclass(frozen=True, slots=True)
class Unit:
    """How the values of a chart are written, beside their marks and on the axis."""

    value: Callable[[float], str]
    tick: Callable[[float, int], str]
    least_step: float = 0.0


def number_unit(say: Words) -> Unit:
    return Unit(say.number, say.number)


def signed_unit(say: Words) -> Unit:
    return Unit(say.signed, say.number)


def percent_unit(say: Words) -> Unit:
    return Unit(say.percent, lambda value, _: say.percent(value), 0.01)


def count_unit(say: Words) -> Unit:
    return Unit(lambda value: say.integer(round(value)), say.number, 1.0)


def draw_points(
    points: Sequence[Point],
    unit: Unit,
    *,
    reference: float | None = None,
    ends: Sequence[float] = (),
) -> Panel:
    """Draw dots with their intervals, a strip per series, around a line of reference."""
    known = [end for p in points for end in (p.value, p.low, p.high) if end is not None]
    extra = [*ends, *([] if reference is None else [reference])]
    scale = make_scale([*known, *extra], unit.least_step)
    colours = series_colours(points)

    def marks(point: Point, y: float) -> str:
        colour = point.colour or colours[point.series]
        low, high = (point.value if end is None else end for end in (point.low, point.high))
        line = f'<path class="interval" d="M{scale(low)} {y}H{scale(high)}"/>' if high > low else ""
        return (
            f'<g class="of-{colour}">{line}<path class="dot" d="M{scale(point.value)} {y}h0"/></g>'
        )

    return _panel(points, marks, unit, scale, reference)


def draw_bars(points: Sequence[Point], unit: Unit, title: str = "") -> Panel:
    """Draw bars from nothing, a strip per series."""
    scale = make_scale([0.0, *(point.value for point in points)], unit.least_step)
    colours = series_colours(points)

    def marks(point: Point, y: float) -> str:
        colour = point.colour or colours[point.series]
        return _bar(colour, 0.0, scale(point.value), y)

    return _panel(points, marks, unit, scale, title=title)


def draw_stacks(points: Sequence[Point], unit: Unit) -> Panel:
    """Draw the numbers under each label one after the other, as one bar."""
    totals = {p.label: sum(o.value for o in points if o.label == p.label) for p in points}
    scale = make_scale([0.0, *totals.values()], unit.least_step)
    colours = series_colours(points)
    rows = []
    for label, total in totals.items():
        start, bars = 0.0, ""
        for point in (point for point in points if point.label == label and point.value):
            end = start + point.value
            bars += _bar(colours[point.series], scale(start), scale(end), STRIP / 2)
            start = end
        rows.append(ChartRow(label, _svg(bars, 1, scale), [unit.value(total)]))
    return Panel(rows, scale.ticks(unit.tick))


def series_colours(points: Sequence[Point]) -> dict[str, str]:
    """Return a colour for each series, as many as there are colours."""
    return dict(zip(dict.fromkeys(point.series for point in points), COLOURS, strict=False))


def _bar(colour: str, start: float, end: float, y: float) -> str:
    return f'<path class="bar of-{colour}" d="M{start} {y}H{end}"/>' if end > start else ""


def _panel(
    points: Sequence[Point],
    marks: Callable[[Point, float], str],
    unit: Unit,
    scale: Scale,
    reference: float | None = None,
    title: str = "",
) -> Panel:
    rows = []
    for label in dict.fromkeys(point.label for point in points):
        own = [point for point in points if point.label == label]
        drawn = "".join(marks(p, STRIP * (n + 0.5)) for n, p in enumerate(own))
        svg = _svg(drawn, len(own), scale, reference)
        rows.append(ChartRow(label, svg, [unit.value(point.value) for point in own]))
    return Panel(rows, scale.ticks(unit.tick), title)


def _svg(marks: str, strips: int, scale: Scale, reference: float | None = None) -> str:
    """Return the strips of a row over the lines of the grid. The width stretches, lines and dots
    keep their size."""
    height, parts = STRIP * strips, scale.parts
    grid = "".join(f"M{round(WIDTH * n / parts, 1)} 0V{height}" for n in range(parts + 1))
    line = "" if reference is None else f'<path class="zero" d="M{scale(reference)} 0V{height}"/>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" height="{height}" preserveAspectRatio="none"'
        f' aria-hidden="true"><path class="grid" d="{grid}"/>{line}{marks}</svg>'
    )


def figures(report: Report, say: Words) -> Iterator[Figure]:
    """Yield every chart that the run has figures for."""
    charts = _Charts(report, say)
    for chart in (
        charts.differences,
        charts.means,
        charts.standings,
        charts.matrix,
        charts.ratings,
        charts.outcomes,
        charts.scores,
        charts.tags,
        charts.failures,
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
        panels: Sequence[Panel],
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        points: Sequence[Point] = (),
        *,
        more: int = 0,
        matrix: Matrix | None = None,
        **values: str,
    ) -> Figure:
        say, report = self.say, self.report
        half = say.gloss("half", report.method.rule)
        about = say(f"chart.{name}_about", level=say.percent(report.method.level), half=half)
        if more > 0:
            about = f"{about} ({say('page.and_more', n=more)})"
        colours = series_colours(points)
        heads = [say(f"chart.{name}") for name in head]
        filled = [n for n in range(len(head)) if any(row[n] for row in rows)]
        return Figure(
            name=name,
            title=say(f"chart.{name}", **values),
            about=about,
            head=[heads[n] for n in filled],
            rows=[[row[n] for n in filled] for row in rows],
            panels=panels,
            matrix=matrix,
            legend=list(colours.items()) if len(colours) > 1 else (),
        )

    def _dimension(self, name: str) -> str:
        if name == OVERALL:
            return self.say.gloss("dimension", name if self.report.is_pairs else "of_one")
        label = self.report.method.names.get(name, "")
        full = f"{name} · {label}"
        fits = label and label.casefold() != name.casefold() and len(full) <= LABEL_LENGTH
        return visible(full if fits else name)

    def means(self) -> Figure | None:
        say, means = self.say, self.report.means
        points = [
            Point(
                self._dimension(mean.dimension),
                visible(mean.variant),
                mean.value,
                mean.low,
                mean.high,
                is_overall=mean.dimension == OVERALL,
            )
            for mean in means
            if mean.value is not None
        ]
        if not points:
            return None
        shown = _select(points)
        rows = [
            [
                self._dimension(m.dimension),
                visible(m.variant),
                str(m.n),
                say.number(m.value),
                say.interval(m.low, m.high),
            ]
            for m in means
        ]
        head = ["dimension", "variant", "n", "mean", "interval"]
        panels = [draw_points(part, number_unit(say)) for part in _apart(shown)]
        return self._figure("means", panels, head, rows, shown, more=len(points) - len(shown))

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
            panels,
            head,
            [self._difference_row(row) for row in differences],
            shown,
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
        scores = [bar for bar in self.report.scores if bar.of]
        if not scores:
            return None
        has_totals = self.report.full_marks is not None
        groups = list(dict.fromkeys(bar.group for bar in scores))
        points = {
            group: _first_series([_share(bar, bar.value) for bar in scores if bar.group == group])
            for group in groups
        }
        shown = [point for group in groups for point in points[group]]
        panels = [
            draw_bars(points[group], percent_unit(self.say), visible(group)) for group in groups
        ]
        head = ["dimension", "variant", "total" if has_totals else "score", "number", "share"]
        rows = [[visible(bar.group), *self._bar_cells(bar, bar.value)] for bar in scores]
        rows = [[row[0], row[2], row[1], *row[3:]] for row in rows]
        name, more = "totals" if has_totals else "scores", len(scores) - len(shown)
        return self._figure(name, panels, head, rows, shown, more=more)

    def _bar_cells(self, bar: Bar, label: str) -> list[str]:
        share = self.say.percent(bar.count / bar.of if bar.of else None)
        return [label, visible(bar.variant), str(bar.count), share]

    def tags(self) -> Figure | None:
        say, tags = self.say, [bar for bar in self.report.tags if bar.of]
        if not tags:
            return None
        names = {
            bar.value: say.gloss("verdict", bar.value)
            if bar.value == "critical"
            else f"{bar.value} · {say.gloss('tag', bar.value)}"
            for bar in tags
        }
        shown = _first_series([_share(bar, names[bar.value]) for bar in tags])
        panels = [draw_bars(shown, percent_unit(say))]
        rows = [self._bar_cells(bar, names[bar.value]) for bar in tags]
        head = ["tag", "variant", "number", "share"]
        return self._figure("tags", panels, head, rows, shown, more=len(tags) - len(shown))

    def failures(self) -> Figure | None:
        say, failures = self.say, self.report.coverage.failures
        if not failures:
            return None
        points = [
            Point(say.gloss("reason", code), "", number, colour="bad")
            for code, number in failures.items()
        ]
        rows = [
            [f"{code} · {say.gloss('reason', code)}", str(number)]
            for code, number in failures.items()
        ]
        panels = [draw_bars(points, count_unit(say))]
        return self._figure("failures", panels, ["reason", "number"], rows)

    def lengths(self) -> Figure | None:
        say, bins, pairs = self.say, self.report.lengths, self.report.is_pairs
        if len(bins) < 2:
            return None
        labels = [
            say.short(b.least)
            if b.least == b.most
            else f"{say.short(b.least)} – {say.short(b.most)}"
            for b in bins
        ]
        points = [
            Point(label, "", b.value, b.low, b.high) for label, b in zip(labels, bins, strict=True)
        ]
        name, across, up = (
            ("pair_lengths", "longer", "a_wins") if pairs else ("lengths", "length", "mean")
        )
        unit, reference = (percent_unit(say), 0.5) if pairs else (number_unit(say), None)
        panels = [draw_points(points, unit, reference=reference)]
        rows = [
            [label, str(b.n), say.number(b.value), say.interval(b.low, b.high)]
            for label, b in zip(labels, bins, strict=True)
        ]
        return self._figure(name, panels, [across, "n", up, "interval"], rows)

    def standings(self) -> Figure | None:
        say, standings = self.say, self.report.standings
        points = [
            Point(visible(row.candidate), "", row.win_rate, row.low, row.high)
            for row in standings
            if row.win_rate is not None
        ]
        if not points:
            return None
        panels = [draw_points(points[:SHOWN], percent_unit(say), reference=0.5)]
        rows = [
            [
                visible(row.candidate),
                str(row.n),
                say.percent(row.win_rate),
                say.percents(row.low, row.high),
            ]
            for row in standings
        ]
        head = ["candidate", "n", "win_rate", "interval"]
        return self._figure("standings", panels, head, rows, more=len(points) - SHOWN)

    def outcomes(self) -> Figure | None:
        say, standings = self.say, self.report.standings
        if not standings:
            return None
        names = {
            "wins": say("chart.wins"),
            "ties": say.gloss("verdict", "tie"),
            "uncertain": say.gloss("verdict", "uncertain"),
            "losses": say("chart.losses"),
        }
        points = [
            Point(visible(row.candidate), label, getattr(row, key))
            for row in standings[:SHOWN]
            for key, label in names.items()
        ]
        rows = [
            [visible(row.candidate), *(str(getattr(row, key)) for key in names)]
            for row in standings
        ]
        return self._figure(
            "outcomes",
            [draw_stacks(points, count_unit(say))],
            ["candidate", *names],
            rows,
            points,
            more=len(standings) - SHOWN,
        )

    def ratings(self) -> Figure | None:
        say = self.say
        rated = [row for row in self.report.standings if row.rating is not None]
        if not rated:
            return None
        rated.sort(key=lambda row: (-(row.rating or 0.0), row.candidate))
        points = [
            Point(visible(row.candidate), "", row.rating or 0.0, row.rating_low, row.rating_high)
            for row in rated
        ]
        rows = [
            [
                visible(row.candidate),
                say.signed(row.rating),
                say.interval(row.rating_low, row.rating_high),
            ]
            for row in rated
        ]
        panels = [draw_points(points[:SHOWN], signed_unit(say), reference=0.0)]
        head = ["candidate", "rating", "interval"]
        return self._figure("ratings", panels, head, rows, more=len(points) - SHOWN)

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
            (),
            ["candidate", "against", "n", "win_rate"],
            rows,
            more=len(self.report.standings) - len(names),
            matrix=Matrix([visible(name) for name in names], cells),
        )

    def position(self) -> Figure | None:
        say, points, rows = self.say, list[Point](), list[list[str]]()
        for position in self.report.positions:
            shares = {"consistency": position.consistency, "first_slot": position.first_slot}
            judge = visible(position.judge)
            for key, share in shares.items():
                rows.append([judge, say(f"chart.{key}"), *_share_cells(say, share)])
                if share.value is not None:
                    series = judge if len(self.report.positions) > 1 else ""
                    points.append(
                        Point(say(f"chart.{key}"), series, share.value, share.low, share.high)
                    )
        if not points:
            return None
        shown = _first_series(points)
        panels = [draw_points(shown, percent_unit(say), reference=0.5, ends=(0.0, 1.0))]
        head = ["judge", "figure", "n", "share", "interval"]
        return self._figure("position", panels, head, rows, shown, more=len(points) - len(shown))

    def contradictions(self) -> Figure | None:
        say, counts = self.say, self.report.contradictions
        if not counts:
            return None
        points = [Point(self._dimension(c), "", n, colour="warn") for c, n in counts.items()]
        rows = [[self._dimension(c), str(n)] for c, n in counts.items()]
        panels = [draw_bars(points[:SHOWN], count_unit(say))]
        more = len(points) - SHOWN
        return self._figure("contradictions", panels, ["criterion", "number"], rows, more=more)


def _share(bar: Bar, label: str) -> Point:
    return Point(visible(label), visible(bar.variant), bar.count / bar.of)


def _select(points: list[Point]) -> list[Point]:
    """Return the points of one chart; of many variants, their overall figures alone."""
    if len({point.series for point in points}) <= len(COLOURS):
        return points
    overall = [Point(p.series, "", p.value, p.low, p.high) for p in points if p.is_overall]
    return overall[:SHOWN] or _first_series(points)


def _apart(points: Sequence[Point]) -> list[list[Point]]:
    """Return dimensions and the overall figure apart: they are on scales of their own."""
    parts = [[p for p in points if p.is_overall == is_overall] for is_overall in (False, True)]
    return [part for part in parts if part]


def _first_series(points: list[Point]) -> list[Point]:
    series = list(dict.fromkeys(point.series for point in points))[: len(COLOURS)]
    return [point for point in points if point.series in series]


def _matrix_cell(rate: float | None) -> tuple[str, str]:
    """Return the percentage of a cell, and the class that colours it by who wins and how far."""
    if rate is None:
        return "", ""
    strength = ceil(abs(rate - 0.5) * 6)
    side = "wins" if rate > 0.5 else "loses"
    return f"{100 * rate:.0f}", f"{side}-{strength}" if strength else ""


def _share_cells(say: Words, share: Share) -> list[str]:
    interval = say.percents(share.low, share.high) if share.value is not None else ""
    return [say.short(share.n), say.percent(share.value), interval]
