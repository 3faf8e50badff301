"""The page `/runs/RUN/trend`: all runs of a suite, the oldest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand.engine.prices import dollars
from evenhand.report.html.answer import by_win_rate, scaled_dimension
from evenhand.report.html.charts import COLOURS, number_unit, percent_unit, variant_colours
from evenhand.report.html.marks import WIDTH, Point, Unit, make_scale
from evenhand.report.html.ranking import main_means, ranked_means
from evenhand.report.model import Report
from evenhand.results.pages import RunStatus
from evenhand.runs.recorded import Recorded
from evenhand.store.ports import Spent
from evenhand.text import visible
from evenhand.web.lists import RunName, link
from evenhand.web.render import Renderer
from evenhand.web.runs import headline
from evenhand.web.service import ROWS, ViewService
from evenhand.words import Words

NUMBERS_SHOWN = 12
"""Numbers of runs below the chart."""
Figures = Mapping[str, Point]
"""The main figure of a run by variant or candidate."""


class TrendRow(NamedTuple):
    """A run of the table."""

    number: int
    run: Recorded
    figures: Sequence[tuple[str, str, str, str]]
    """The name of each variant, its colour, and its figure and interval in words."""
    questions: int
    failed: int
    cost: float | None
    cost_each: str
    changes: str
    """The address of the changes against the run before; empty for the first."""


class TrendChart(NamedTuple):
    """The figures of runs from left to right, and the numbers of the axes."""

    svg: str
    ticks: Sequence[str]
    numbers: Sequence[str]


class TrendPage:
    """The page and its chart."""

    def __init__(self, service: ViewService, renderer: Renderer) -> None:
        self._service, self._render = service, renderer

    def routes(self) -> APIRouter:
        router = APIRouter(default_response_class=HTMLResponse)
        router.add_api_route("/runs/{run}/trend", self.page, response_model=None)
        return router

    def page(self, request: Request, run: RunName) -> Response:
        """Show the last runs of the name of a run."""
        recorded, say = self._service.find_run(run), self._render.words(request)
        named = sorted(self._service.named(recorded.row.name), key=lambda run: run.row.created)
        runs = self._service.with_present_suite(named[-ROWS:])
        spent = self._service.spent(named)
        standings, answers = self._service.standings(runs), self._service.answers(runs)
        reports = [answer and answer.report for answer in answers]
        headlines = list(map(headline, answers, standings, [say] * len(runs)))
        label, unit, figures = _comparable(reports, say)
        colours = _colours(reports, figures)
        rows = [
            _row(number, runs, *each, unit, colours, say)
            for number, each in enumerate(zip(standings, reports, figures, strict=True))
        ]
        is_ready = None not in headlines and spent is not None
        return self._render(
            request,
            "trend.html",
            run=recorded,
            runs=len(named),
            label=label,
            chart=draw(figures, colours, unit),
            legend=[(name, colour) for name, colour in colours.items() if name],
            rows=list(zip(rows, headlines, strict=True)),
            spent=spent and _cost(spent),
            is_ready=is_ready,
            renews=not is_ready,
        )


def main_figures(report: Report, say: Words) -> tuple[str, Unit, Figures]:
    """Return what a run is summed up by, how it is written, and its value for each variant or
    candidate; without a name for the only variant."""
    if report.is_pairs:
        rows = by_win_rate(report.board) if report.board else []
        rates = {visible(row.candidate): (row.win_rate, row.low, row.high) for row in rows}
        return say("chart.win_rate"), percent_unit(say), _points(rates)
    means = ranked_means(report.comparison) if report.comparison else []
    means = means or main_means(report.means)
    label = scaled_dimension(means[0].dimension, say, means[0].scale) if means else ""
    values = {visible(mean.variant): (mean.mean, mean.low, mean.high) for mean in means}
    return label, number_unit(say), _points(values)


def _points(values: Mapping[str, tuple[float | None, float | None, float | None]]) -> Figures:
    return {
        name: Point("", name, value, low, high)
        for name, (value, low, high) in values.items()
        if value is not None
    }


def _comparable(reports: Sequence[Report | None], say: Words) -> tuple[str, Unit, list[Figures]]:
    """Return the figures of runs that are summed up as the last one is; of others none."""
    summed = [main_figures(report, say) if report else None for report in reports]
    label, unit, _ = next(filter(None, reversed(summed)), ("", number_unit(say), {}))
    return label, unit, [each[2] if each and each[0] == label else {} for each in summed]


def _colours(reports: Sequence[Report | None], figures: Sequence[Figures]) -> dict[str, str]:
    """Return the colour of each variant: as in the last run, then of those before it, as far as
    there are colours."""
    last = next(filter(None, reversed(reports)), None)
    names = {*(name for each in figures for name in each)}
    first = [name for name in (variant_colours(last) if last else ()) if name in names]
    ordered = dict.fromkeys([*first, *(name for each in reversed(figures) for name in each)])
    return dict(zip(ordered, COLOURS, strict=False))


def draw(figures: Sequence[Figures], colours: Mapping[str, str], unit: Unit) -> TrendChart | None:
    """Return dots with their intervals, joined by a line for each variant."""
    points = [each[name] for each in figures for name in colours if name in each]
    if not points:
        return None
    known = [end for p in points for end in (p.value, p.low, p.high) if end is not None]
    scale, step = make_scale(known, unit.least_step), WIDTH / len(figures)
    heights = (round(WIDTH * n / scale.parts, 1) for n in range(scale.parts + 1))
    marks = f'<path class="grid" d="{"".join(f"M0 {y}H{WIDTH}" for y in heights)}"/>'
    for place, (name, colour) in enumerate(colours.items()):
        beside = (place - (len(colours) - 1) / 2) * min(12, step / 8)
        line, dots = list[str](), ""
        for number, each in enumerate(figures):
            if point := each.get(name):
                x, y = round((number + 0.5) * step + beside, 1), WIDTH - scale(point.value)
                line.append(f"{x} {y}")
                if point.low is not None and point.high is not None:
                    low, high = WIDTH - scale(point.low), WIDTH - scale(point.high)
                    dots += f'<path class="interval" d="M{x} {low}V{high}"/>'
                dots += f'<path class="dot" d="M{x} {y}h0"/>'
        marks += f'<g class="of-{colour}"><path class="way" d="M{"L".join(line)}"/>{dots}</g>'
    svg = f'<svg viewBox="0 0 {WIDTH} {WIDTH}" preserveAspectRatio="none">{marks}</svg>'
    every = ceil(len(figures) / NUMBERS_SHOWN)
    numbers = ["" if n % every else str(n + 1) for n in range(len(figures))]
    return TrendChart(svg, scale.ticks(unit.tick)[::-1], numbers)


def _row(
    number: int,
    runs: Sequence[Recorded],
    stands: RunStatus | None,
    report: Report | None,
    figures: Figures,
    unit: Unit,
    colours: Mapping[str, str],
    say: Words,
) -> TrendRow:
    run, before = runs[number], runs[number - 1] if number else None
    is_like = before is not None and before.has_votes == run.has_votes
    questions, cost = _questions(report), _cost(stands.spent) if stands else None
    return TrendRow(
        number=number + 1,
        run=run,
        figures=[
            (name, colours.get(name, "soft"), unit.value(p.value), unit.interval(p.low, p.high))
            for name in dict.fromkeys([*colours, *figures])
            if name in figures
            for p in [figures[name]]
        ],
        questions=questions,
        failed=sum(stands.counts.failures.values()) if stands else 0,
        cost=cost,
        cost_each="" if cost is None or not questions else _small_money(cost / questions, say),
        changes=link(f"/runs/{run.id}/changes", {"against": before.id, "only": "different"})
        if before and is_like
        else "",
    )


def _questions(report: Report | None) -> int:
    """Return the number of questions judged."""
    if report and report.board:
        return report.board.topics
    clusters = [mean.clusters for mean in report.means] if report else []
    return max(clusters, default=report.coverage.units if report else 0)


def _cost(spent: Spent) -> float | None:
    """Return dollars; None where nothing was to be paid, or a price is not known."""
    return dollars(spent.cost) if spent.calls and not spent.unpriced else None


def _small_money(value: float, say: Words) -> str:
    return f"${say.number(value, 4)}" if 0 < value < 1 else say.money(value)
