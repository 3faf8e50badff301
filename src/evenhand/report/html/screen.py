"""The first screen of a report: the answer in a few words, its figures large, a bar per variant or
candidate, the count of questions won and lost, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evenhand.observation import PASSED
from evenhand.report.html.answer import (
    UNDECIDED,
    answers,
    by_win_rate,
    digits_of,
    gap_text,
    is_of_hundred,
    join_all,
    scaled_dimension,
)
from evenhand.report.html.charts import (
    BARS_SHOWN,
    COLOURS,
    Panel,
    dimension_label,
    named_point,
    number_unit,
    percent_unit,
    variant_colours,
)
from evenhand.report.html.marks import Point, ShownValue, Unit, Where, draw
from evenhand.report.html.ranking import main_dimension, main_means, ranked_means
from evenhand.report.model import WARNINGS, Report
from evenhand.stats.comparison import OVERALL, Comparison, Row
from evenhand.stats.leaderboard import BoardRow
from evenhand.text import visible
from evenhand.words import Words

MANY_FAILED = 0.1
"""From this share of judgments on, failures are to be looked at first."""
DIMENSIONS_SHOWN = 6
LEVEL_SHOWN = 3
"""So many candidates that may all be the first are named."""
_TONES = {"better": "good", "worse": "bad"}
_WAYS = {"better": "won", "worse": "lost", "same": "open"}
"""What questions are of a variant, and what pairs of answers are."""
_SHOULD_WAIT = frozenset({"notes.inconsistent", "notes.inconsistent_import"}) | WARNINGS


@dataclass(frozen=True, slots=True)
class Side:
    """A value of a figure, of a variant with its colour; of a run with one variant of nobody."""

    name: str
    value: str
    colour: str
    interval: str = ""


@dataclass(frozen=True, slots=True)
class BigFigure:
    """A figure to be read from afar: one value, or two; where they are before and after, the
    difference is below."""

    label: str
    sides: Sequence[Side]
    below: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: the class of its colour, its words, the number and the units that it is
    about, and its width in thousandths."""

    colour: str
    text: str
    n: int
    where: Where
    width: int


@dataclass(frozen=True, slots=True)
class DimensionLine:
    """A dimension or criterion, what was found on it, and the outcome with its tone."""

    name: str
    value: str
    outcome: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstScreen:
    """Everything on the first screen that is not about the judges."""

    headline: str
    tone: str
    figures: Sequence[BigFigure]
    bars: Panel | None
    bars_title: str
    dimensions: Sequence[DimensionLine]
    dimensions_title: str
    balance_title: str
    balance: Sequence[BarPart]
    balance_note: str
    next: str
    target: str
    """The section of the page to read next; empty if there is none."""
    where: Where
    """What to read next: the questions that got worse, or what failed."""
    link: str
    """The words that lead there."""


def first_screen(report: Report, say: Words) -> FirstScreen:
    """Return the first screen of a report."""
    return _Writer(report, say).screen()


def bar_parts(parts: Sequence[tuple[str, str, int, Where]]) -> list[BarPart]:
    """Return the parts of a bar from colours, words, numbers and what they are about."""
    whole = max(1, sum(n for _, _, n, _ in parts))
    return [BarPart(*part, round(1000 * part[2] / whole)) for part in parts]


class _Writer:
    """Says what a run found: of a comparison by the variant that gained most, of a board by its
    first two candidates, else by the means."""

    def __init__(self, report: Report, say: Words) -> None:
        self.report, self.say = report, say
        self.colours = variant_colours(report)
        self.row = lead_row(report.comparison) if report.comparison else None
        self.board = by_win_rate(report.board) if report.board else []

    def screen(self) -> FirstScreen:
        tone, headline = self._headline()
        title, panel = overview(self.report, self.say)
        dimensions_title, dimensions = self._dimensions()
        balance_title, balance = self._balance()
        has_votes = self.row is None and any(row.votes > row.n for row in self.board[:1])
        say_votes = self.say("balance.by_majority") if has_votes else ""
        todo, target = self._next()
        link_text, where = self._next_link(target)
        return FirstScreen(
            headline=headline,
            tone=tone,
            figures=list(self._figures()),
            bars=panel,
            bars_title=title,
            dimensions=dimensions,
            dimensions_title=dimensions_title,
            balance_title=balance_title,
            balance=balance,
            balance_note=say_votes,
            next=todo,
            target=target,
            where=where,
            link=link_text,
        )

    def _headline(self) -> tuple[str, str]:
        say, comparison = self.say, self.report.comparison
        if self.row and comparison:
            names = _names(self.row, comparison)
            is_several = len({row.variant for row in comparison.rows}) > 1
            if is_several and self.row.outcome != "better":
                rows = (row for row in comparison.rows if row.dimension == self.row.dimension)
                is_best = all(row.outcome == "worse" for row in rows)
                return "", say(f"headline.{'best' if is_best else 'none_better'}", **names)
            key = "none" if self.row.outcome == UNDECIDED else self.row.outcome
            return self.row.outcome, say(f"headline.{key}", **names)
        if top := self._top():
            if len({row.set for row in self.board}) > 1:
                return "", say("headline.never_met")
            if len(top) > 1:
                named = [visible(row.candidate) for row in top]
                shown = join_all(named, say, LEVEL_SHOWN)
                return "", say("headline.level", candidates=shown)
            return "better", say("headline.leads", candidate=visible(top[0].candidate))
        if means := list(self._mean()):
            judged = sum(mean.n for mean in main_means(self.report.means))
            count = say.counted(self.report.kind.noun, judged)
            if len(means[0].sides) > 1:
                return "", say("headline.judged", n=count)
            return "", say("headline.mean", n=count, mean=means[0].sides[0].value)
        return "", answers(self.report, say)[0].text

    def _top(self) -> list[BoardRow]:
        """Return the candidates that may be the first."""
        if len(self.board) < 2:
            return []
        top = [row for row in self.board if row.rank_low is None or row.rank_low <= 1]
        return top or self.board

    def _figures(self) -> Iterator[BigFigure]:
        say, comparison = self.say, self.report.comparison
        if self.row and comparison:
            yield self._change(self.row, comparison)
        elif len(self.board) > 1:
            sides = [
                self._side(r.candidate, say.percent(r.win_rate), say.percents(r.low, r.high))
                for r in self.board[:2]
            ]
            yield BigFigure(say("chart.win_rate"), sides)
        else:
            yield from self._mean()
        yield from self._passes()

    def _side(self, name: str, value: str, interval: str = "") -> Side:
        colour = self.colours.get(visible(name), "soft" if name else "first")
        return Side(visible(name), value, colour, interval)

    def _change(self, row: Row, comparison: Comparison) -> BigFigure:
        say, digits = self.say, digits_of(row)
        tone = _TONES.get(row.outcome, "")
        if comparison.is_duel:
            interval = say.percents(row.mean_low, row.mean_high)
            side = self._side(row.variant, say.percent(row.mean), interval)
            label = say("chart.win_rate_against", baseline=visible(comparison.baseline))
            return BigFigure(label, [side])
        sides = [
            self._side(comparison.baseline, say.number(row.baseline_mean, digits)),
            self._side(row.variant, say.number(row.mean, digits)),
        ]
        below = f"{say('chart.difference')} {gap_text(row, say)}"
        return BigFigure(self._scale_figure(row.dimension, row.scale), sides, below, tone)

    def _scale_figure(self, dimension: str, scale: tuple[float, float] | None) -> str:
        label = scaled_dimension(dimension, self.say, scale)
        if dimension == OVERALL or scale is None:
            return label
        return self.say("answer.dimension_of", dimension=label, most=self.say.short(scale[1]))

    def _mean(self) -> Iterator[BigFigure]:
        """Yield the mean of each of two variants that share no question, or of the only one."""
        say = self.say
        means = main_means(self.report.means)
        sides: list[Side] = []
        for mean in means[:2]:
            digits = 1 if is_of_hundred(mean.scale) else 2
            interval = say.interval(mean.low, mean.high, digits)
            sides.append(self._side(mean.variant, say.number(mean.mean, digits), interval))
        if sides:
            yield BigFigure(self._scale_figure(means[0].dimension, means[0].scale), sides)

    def _passes(self) -> Iterator[BigFigure]:
        """Yield the pass rate, before and after or of the only variant."""
        say, comparison, label = self.say, self.report.comparison, self.say("chart.pass_rate")
        if self.row and comparison:
            for row in comparison.passes:
                if (row.dimension, row.variant) == (PASSED, self.row.variant) and row.n:
                    found = (
                        (
                            comparison.baseline,
                            row.baseline_mean,
                            row.baseline_low,
                            row.baseline_high,
                        ),
                        (row.variant, row.mean, row.mean_low, row.mean_high),
                    )
                    sides = [
                        self._side(name, say.percent(rate), say.percents(low, high))
                        for name, rate, low, high in found
                    ]
                    gap, low, high = (
                        None if end is None else 100 * end
                        for end in (row.difference, row.low, row.high)
                    )
                    ends = say.interval(low, high, 0)
                    below = say("chart.points_gap", gap=say.signed(gap, 0), interval=ends).strip()
                    tone = _TONES.get(row.outcome, "")
                    yield BigFigure(label, sides, below, tone)
        elif sides := [
            self._side(each.variant, say.percent(rate.value), say.percents(rate.low, rate.high))
            for each in self.report.passes[:2]
            for rate in [each.rate]
        ]:
            yield BigFigure(label, sides)

    def _dimensions(self) -> tuple[str, list[DimensionLine]]:
        """Return what was found on each dimension, where the answer is about all of them."""
        say, row, comparison = self.say, self.row, self.report.comparison
        if row is None or comparison is None or row.dimension != OVERALL:
            return "", []
        rows = [each for each in comparison.rows if each.variant == row.variant]
        rows = [each for each in rows if each.dimension != OVERALL and each.difference is not None]
        lines = [
            DimensionLine(
                dimension_label(each.dimension, self.report, say),
                say.share(each.mean, each.mean_low, each.mean_high)
                if comparison.is_duel
                else gap_text(each, say),
                say.gloss("short_outcome", each.outcome),
                _TONES.get(each.outcome, ""),
            )
            for each in rows[:DIMENSIONS_SHOWN]
        ]
        key = "rates" if comparison.is_duel else "differences"
        return say(f"chart.{key}", baseline=visible(comparison.baseline)), lines

    def _balance(self) -> tuple[str, list[BarPart]]:
        """Return on how many questions the variant is better, worse and the same; of a board the
        pairs that its first candidate won and lost."""
        if row := self.row:
            counts = row.higher, row.lower, row.n - row.higher - row.lower
            keys, name = tuple(_WAYS.values() if self.report.is_pairs else _WAYS), row.variant
            is_paired = row.n != row.clusters
            where = [self._changed(row, way) for way in _WAYS]
        elif len(self.board) > 1:
            first = self.board[0]
            counts = first.wins, first.losses, first.ties + first.uncertain
            keys, name, is_paired = tuple(_WAYS.values()), first.candidate, True
            where = [(("results", f"{key}: {name}"),) for key in keys]
        else:
            return "", []
        say, colours = self.say, ("good", "bad", "even")
        shown = zip(colours, keys, counts, where, strict=True)
        parts = [
            (colour, say(f"balance.{key}", n=say.integer(n)), n, about)
            for colour, key, n, about in shown
        ]
        title = say("balance.of_pairs" if is_paired else "balance.of", name=visible(name))
        return title, bar_parts(parts)

    def _changed(self, row: Row, way: str) -> Where:
        """Return the questions on which a variant is better, worse or the same, or the pairs that
        a candidate won, lost or neither."""
        assert self.report.comparison
        baseline = self.report.comparison.baseline
        if not self.report.is_pairs:
            return (("change", way), ("variant", row.variant), ("baseline", baseline))
        return (("candidates", baseline), ("results", f"{_WAYS[way]}: {row.variant}"))

    def _next(self) -> tuple[str, str]:
        """Return what to do next in one sentence, and the section that helps."""
        say, report, coverage = self.say, self.report, self.report.coverage
        warned = {getattr(warning, "key", "") for warning in report.warnings}
        failed = sum(coverage.failures.values())
        if failed > MANY_FAILED * coverage.planned:
            counts = {"n": say.integer(failed), "of": say.integer(coverage.planned)}
            is_imported = report.manifest.imported is not None
            return say(f"next.failed{'_import' if is_imported else ''}", **counts), "failed"
        if not coverage.verdicts:
            return say("next.run"), ""
        if coverage.pending:
            return say("next.pending", n=say.counted("judgment", coverage.pending)), ""
        if warned & _SHOULD_WAIT:
            return say("next.judge"), ""
        if self.row and report.comparison:
            return self._next_of(self.row, report.comparison)
        if top := self._top():
            if len({row.set for row in self.board}) > 1:
                return say("next.never_met"), ""
            key = "level" if len(top) > 1 else "leads"
            key = "family" if "notes.own_family_leads" in warned else key
            target = "" if key == "level" else "units"
            return say(f"next.{key}", candidate=visible(top[0].candidate)), target
        return say("next.read"), "units"

    def _next_of(self, row: Row, comparison: Comparison) -> tuple[str, str]:
        names = _names(row, comparison)
        if row.outcome == UNDECIDED:
            is_hopeless = row.more_questions == "more than is practical"
            return self.say("next.equal" if is_hopeless else "next.more", **names), ""
        key = "better_but" if row.outcome == "better" and row.lower else row.outcome
        n = self.say.counted(self._noun(row), row.lower)
        return self.say(f"next.{key}", **names, n=n), "changed"

    def _noun(self, row: Row) -> str:
        """Return what a row counts: questions, or pairs of answers."""
        is_paired = self.report.is_pairs or row.n != row.clusters
        return "pair" if is_paired else self.report.kind.question_noun

    def _next_link(self, target: str) -> tuple[str, Where]:
        """Return what leads to the failures, or to the questions on which a variant is worse."""
        say, row = self.say, self.row
        if target == "failed":
            failed = sum(self.report.coverage.failures.values())
            return say.counted("failure", failed), (("verdicts", "failed"),)
        if target == "changed" and row and row.lower and row.outcome in ("better", "worse"):
            page = "units" if self.report.is_pairs else "matrix"
            return say(f"page.{page}"), self._changed(row, "worse")
        return "", ()


def _names(row: Row, comparison: Comparison) -> dict[str, str]:
    return {"variant": visible(row.variant), "baseline": visible(comparison.baseline)}


def overview(report: Report, say: Words) -> tuple[str, Panel | None]:
    """Return a bar per variant or candidate with its interval, the best first, and a title; of one
    variant a bar per dimension."""
    if report.board and len(report.board.rows) > 1:
        rated = by_win_rate(report.board)
        points = [named_point(row.candidate, row.win_rate, row.low, row.high) for row in rated]
        return say("chart.standings"), _bars(points, percent_unit(say), (0.0, 1.0), report, 0.5)
    means = ranked_means(report.comparison) if report.comparison else []
    if not means:
        names = {mean.dimension for mean in report.means} - {OVERALL}
        is_one = len({mean.variant for mean in report.means}) == 1
        means = [m for m in report.means if m.mean is not None and (m.dimension in names) == is_one]
        means = means or [m for m in report.means if m.mean is not None]
        points = [
            named_point(say.dimension(m.dimension) if is_one else m.variant, m.mean, m.low, m.high)
            for m in means
        ]
    else:
        points = [named_point(m.variant, m.mean, m.low, m.high) for m in means]
    if len(points) < 2:
        return "", None
    scales = {mean.scale or (0.0, 1.0) for mean in means}
    title = scaled_dimension(means[0].dimension, say, means[0].scale)
    title = title if len({mean.dimension for mean in means}) == 1 else say("chart.means")
    ends = scales.pop() if len(scales) == 1 else ()
    return title, _bars(points, number_unit(say), ends, report)


def _bars(
    points: Sequence[Point],
    unit: Unit,
    ends: Sequence[float],
    report: Report,
    reference: float | None = None,
) -> Panel:
    """Return a bar per point in the colour of its name, with its value and interval in words."""
    colours = variant_colours(report)
    other = COLOURS[0] if len(colours) < 2 else "soft"
    points = [replace(p, colour=colours.get(p.label, other)) for p in points[:BARS_SHOWN]]
    rows, ticks = draw(points, unit, {}, reference=reference, ends=ends, bars=True)
    values = [f"{unit.value(p.value)} {unit.interval(p.low, p.high)}".strip() for p in points]
    rows = [replace(r, values=[ShownValue(value)]) for r, value in zip(rows, values, strict=True)]
    return Panel(rows, ticks)


def lead_row(comparison: Comparison) -> Row | None:
    """Return the row of the variant that gained most, of those that are better if any is."""
    main = main_dimension(comparison)
    rows = [r for r in comparison.rows if r.dimension == main and r.difference is not None]
    return max(rows, key=lambda row: (row.outcome == "better", row.difference or 0.0), default=None)
