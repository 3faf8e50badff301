"""The pictures of a report, each with its figures as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.report.html.build import Mean, Report, Share
from evenhand.report.html.columns import columns
from evenhand.report.html.draw import bars, dots, dots_apart, heat, line, stack
from evenhand.report.html.labels import LABEL, labels
from evenhand.report.html.page import Words, p_value
from evenhand.report.html.plot import PALETTE, Values
from evenhand.report.html.shapes import Picture, svg
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.text import visible

SHOWN = 24
"""Rows in one picture; the table has them all."""
_OUTCOMES = {"better": "good", "worse": "bad", "same": "soft", "not enough evidence": "soft"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture with its title, what it shows, whose colours are whose, and the same as a table."""

    name: str
    title: str
    about: str
    svg: str
    legend: Sequence[tuple[str, str]]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def figures(report: Report, say: Words) -> Iterator[Figure]:
    """Every picture that the run has figures for."""
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
        yield from chart()


class _Charts:
    def __init__(self, report: Report, say: Words) -> None:
        self.report, self.say = report, say
        self.level = say.percent(report.method.level)
        self.half = say.gloss("half", report.method.rule)

    def _figure(
        self,
        name: str,
        picture: Picture,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        more: int = 0,
        **values: str,
    ) -> Figure:
        say = self.say
        title = say(f"chart.{name}", **values)
        about = say(f"chart.{name}_about", level=self.level, half=self.half)
        if more > 0:
            about = f"{about} ({say('page.and_more', n=more)})"
        heads = [say(f"chart.{column}") for column in head]
        return Figure(
            name=name,
            title=title,
            about=about,
            svg=svg(picture, f"{title}. {about}", say.language),
            legend=picture.legend,
            head=heads,
            rows=rows,
        )

    def _dimension(self, name: str) -> str:
        if name == OVERALL:
            return self.say.gloss("dimension", name if self.report.is_pairs else "of_one")
        label = self.report.method.names.get(name, "")
        full = f"{name} · {label}"
        fits = label and label.casefold() != name.casefold() and len(full) <= LABEL
        return visible(full if fits else name)

    # Scores

    def means(self) -> Iterator[Figure]:
        say, means = self.say, [mean for mean in self.report.means if mean.value is not None]
        if not means:
            return
        rows = [
            [
                self._dimension(m.dimension),
                visible(m.variant),
                str(m.n),
                say.number(m.value),
                say.interval(m.low, m.high),
            ]
            for m in self.report.means
        ]
        head = ["dimension", "variant", "n", "mean", "interval"]
        if not any(mean.variant for mean in means):
            head, rows = [h for h in head if h != "variant"], [[r[0], *r[2:]] for r in rows]
        values, more = self._bounded([self._mean(mean) for mean in means])
        chart = dots_apart(values, say("chart.mean"))
        yield self._figure("means", chart, head, rows, more=more)

    def _mean(self, mean: Mean) -> dict[str, Any]:
        return {
            "name": self._dimension(mean.dimension),
            "series": visible(mean.variant),
            "value": mean.value,
            "low": mean.low,
            "high": mean.high,
            "overall": mean.dimension == OVERALL,
        }

    def _bounded(self, values: Values) -> tuple[Values, int]:
        """Values for one picture, and how many are left to the table: where there are many
        variants, their overall figures alone."""
        drawn_values = values
        if len({value["series"] for value in values}) > len(PALETTE):
            overall = [value for value in values if value["overall"]]
            if overall:
                drawn_values = [
                    value | {"name": value["series"], "series": ""} for value in overall
                ][:SHOWN]
            else:
                drawn_values = _few_series(values)
        return drawn_values, len(values) - len(drawn_values)

    def differences(self) -> Iterator[Figure]:
        say, differences = self.say, self.report.differences
        estimates = [difference for difference in differences if difference.value is not None]
        if not estimates:
            return
        pairs = self.report.is_pairs
        many = len({difference.variant for difference in estimates}) > 1
        values: Values = [
            {
                "name": self._dimension(difference.dimension),
                "series": visible(difference.variant),
                "value": difference.mean if pairs else difference.value,
                "low": difference.mean_low if pairs else difference.low,
                "high": difference.mean_high if pairs else difference.high,
                "overall": difference.dimension == OVERALL,
                "colour": None if many else _OUTCOMES[difference.outcome],
            }
            for difference in estimates
        ]
        values, more = self._bounded(values)
        title = say("chart.win_rate" if pairs else "chart.difference")
        chart = (
            dots(values, title, 0.5, percent=True)
            if pairs  # all of them are shares
            else dots_apart(values, title, 0.0)
        )
        rows = [self._difference_row(difference, pairs) for difference in differences]
        head = ["dimension", "variant", "n", "mean", "baseline", "difference", "interval"]
        head += ["p", "p_adjusted", "effect", "outcome"]
        name, base = "rates" if pairs else "differences", visible(self.report.method.baseline)
        yield self._figure(name, chart, head, rows, more=more, baseline=base)

    def _difference_row(self, difference: Any, pairs: bool) -> list[str]:
        say = self.say
        means = [difference.mean, difference.baseline_mean]
        return [
            self._dimension(difference.dimension),
            visible(difference.variant),
            str(difference.n),
            *(say.percent(m) if pairs else say.number(m) for m in means),
            say.signed(difference.value),
            say.interval(difference.low, difference.high),
            p_value(say, difference.p),
            p_value(say, difference.p_adjusted),
            say.number(difference.effect),
            say.gloss("outcome", difference.outcome),
        ]

    def scores(self) -> Iterator[Figure]:
        scores, say = self.report.scores, self.say
        if not scores:
            return
        totals = self.report.full_marks is not None
        name, title = ("totals", "chart.total") if totals else ("scores", "chart.score")
        values: Values = [
            {"group": visible(bar.group), "series": visible(bar.variant)}
            | {"name": bar.value, "value": bar.count / bar.of, "place": place}
            for place, bar in enumerate(scores)
            if bar.of
        ]
        values = _few_series(values)
        chart = columns(values, say(title), say("chart.share"))
        rows = [
            [visible(b.group), visible(b.variant), b.value, str(b.count), _of(say, b.count, b.of)]
            for b in scores
        ]
        head = ["dimension", "variant", "total" if totals else "score", "number", "share"]
        head, rows = _without_empty(head, rows)
        yield self._figure(name, chart, head, rows, more=len(scores) - len(values))

    def tags(self) -> Iterator[Figure]:
        tags, say = self.report.tags, self.say
        if not tags:
            return
        names = {bar.value: self._tag(bar.value) for bar in tags}
        values: Values = [
            {"name": names[b.value], "series": visible(b.variant), "value": b.count / b.of}
            for b in tags
            if b.of
        ]
        values = _few_series(values)
        chart = bars(values, say("chart.share"), percent=True)
        rows = [
            [names[b.value], visible(b.variant), str(b.count), _of(say, b.count, b.of)]
            for b in tags
        ]
        head, rows = _without_empty(["tag", "variant", "number", "share"], rows)
        yield self._figure("tags", chart, head, rows, more=len(tags) - len(values))

    def _tag(self, tag: str) -> str:
        if tag == "critical":
            return self.say.gloss("verdict", tag)
        return f"{tag} · {self.say.gloss('tag', tag)}"

    def failures(self) -> Iterator[Figure]:
        say, failed = self.say, self.report.coverage.failures
        if not failed:
            return
        names = {code: f"{code} · {say.gloss('reason', code)}" for code in failed}
        values: Values = [
            {"name": say.gloss("reason", code), "series": "", "value": number}
            for code, number in failed.items()
        ]
        chart = bars(values, say("chart.number"), colour="bad")
        rows = [[names[code], str(number)] for code, number in failed.items()]
        yield self._figure("failures", chart, ["reason", "number"], rows)

    def lengths(self) -> Iterator[Figure]:
        say, bins = self.say, self.report.lengths
        if len(bins) < 2:
            return
        pairs = self.report.is_pairs
        name, across, up = (
            ("pair_lengths", "longer", "a_wins") if pairs else ("lengths", "length", "mean")
        )
        values: Values = [
            {"x": b.middle, "value": b.value, "low": b.low, "high": b.high} for b in bins
        ]
        chart = line(values, say(f"chart.{across}"), say(f"chart.{up}"), pairs)
        rows = [
            [
                f"{say.short(b.least)} – {say.short(b.most)}",
                str(b.n),
                say.number(b.value),
                say.interval(b.low, b.high),
            ]
            for b in bins
        ]
        yield self._figure(name, chart, [across, "n", up, "interval"], rows)

    # Pairs

    def standings(self) -> Iterator[Figure]:
        say = self.say
        rated = [standing for standing in self.report.standings if standing.win_rate is not None]
        if not rated:
            return
        values: Values = [
            {"name": visible(standing.candidate), "series": "", "value": standing.win_rate}
            | {"low": standing.low, "high": standing.high}
            for standing in rated[:SHOWN]
        ]
        chart = dots(values, say("chart.win_rate"), 0.5, percent=True)
        rows = [
            [
                visible(standing.candidate),
                str(standing.n),
                say.percent(standing.win_rate),
                say.percents(standing.low, standing.high),
            ]
            for standing in self.report.standings
        ]
        head = ["candidate", "n", "win_rate", "interval"]
        yield self._figure("standings", chart, head, rows, more=len(rated) - len(values))

    def outcomes(self) -> Iterator[Figure]:
        say, standings = self.say, self.report.standings
        if not standings:
            return
        names = {
            "wins": say("chart.wins"),
            "ties": say.gloss("verdict", "tie"),
            "uncertain": say.gloss("verdict", "uncertain"),
            "losses": say("chart.losses"),
        }
        values: Values = [
            {"name": visible(standing.candidate), "series": label, "value": getattr(standing, key)}
            | {"order": place}
            for standing in standings[:SHOWN]
            for place, (key, label) in enumerate(names.items())
        ]
        chart = stack(values, say("chart.number"), list(names.values()))
        rows = [
            [visible(standing.candidate), *(str(getattr(standing, key)) for key in names)]
            for standing in standings
        ]
        figure = self._figure("outcomes", chart, ["candidate"], rows, more=len(standings) - SHOWN)
        yield _with_head(figure, [*figure.head, *names.values()])

    def ratings(self) -> Iterator[Figure]:
        say = self.say
        rated = [standing for standing in self.report.standings if standing.rating is not None]
        if not rated:
            return
        rated.sort(key=lambda standing: (-(standing.rating or 0.0), standing.candidate))
        values: Values = [
            {"name": visible(standing.candidate), "series": "", "value": standing.rating}
            | {"low": standing.rating_low, "high": standing.rating_high}
            for standing in rated[:SHOWN]
        ]
        rows = [
            [
                visible(standing.candidate),
                say.signed(standing.rating),
                say.interval(standing.rating_low, standing.rating_high),
            ]
            for standing in rated
        ]
        chart = dots(values, say("chart.rating"), 0.0)
        more = len(rated) - len(values)
        yield self._figure("ratings", chart, ["candidate", "rating", "interval"], rows, more=more)

    def matrix(self) -> Iterator[Figure]:
        say, meetings = self.say, self.report.meetings
        if not meetings:
            return
        names = [standing.candidate for standing in self.report.standings][:SHOWN]
        short_names = dict(zip(names, labels(names), strict=True))
        values: Values = [
            {"name": short_names[m.candidate], "other": short_names[m.other], "rate": m.rate}
            | {"text": f"{100 * m.rate:.0f}", "strength": abs(m.rate - 0.5) * 0.9}
            for m in meetings
            if m.candidate in short_names and m.other in short_names
        ]
        order = list(short_names.values())
        chart = heat(values, order, say("chart.candidate"), say("chart.against"))
        rows = [
            [visible(m.candidate), visible(m.other), str(m.n), say.percent(m.rate)]
            for m in meetings
        ]
        head = ["candidate", "against", "n", "win_rate"]
        more = len(self.report.standings) - len(names)
        yield self._figure("matrix", chart, head, rows, more=more)

    def position(self) -> Iterator[Figure]:
        say, values, rows = self.say, Values(), list[list[str]]()
        for position in self.report.positions:
            for key, share in (
                ("consistency", position.consistency),
                ("first_slot", position.first_slot),
            ):
                rows.append(
                    [visible(position.judge), say(f"chart.{key}"), *_share_cells(say, share)]
                )
                if share.value is not None:
                    judge = visible(position.judge) if len(self.report.positions) > 1 else ""
                    values.append(
                        {"name": say(f"chart.{key}"), "series": judge, "value": share.value}
                        | {"low": share.low, "high": share.high}
                    )
        if values:
            values = values[: 2 * len(PALETTE)]
            chart = dots(values, say("chart.share"), 0.5, percent=True, domain=(0, 1))
            head = ["judge", "figure", "n", "share", "interval"]
            yield self._figure("position", chart, head, rows, more=len(rows) - len(values))

    def contradictions(self) -> Iterator[Figure]:
        say, counts = self.say, self.report.contradictions
        if not counts:
            return
        names = {criterion: self._dimension(criterion) for criterion in counts}
        values: Values = [{"name": names[c], "series": "", "value": n} for c, n in counts.items()]
        chart = bars(values[:SHOWN], say("chart.number"), colour="warn")
        rows, more = [[names[c], str(n)] for c, n in counts.items()], len(values) - SHOWN
        yield self._figure("contradictions", chart, ["criterion", "number"], rows, more=more)


def _few_series(values: Values) -> Values:
    """What belongs to the first series, as many as there are colours."""
    series = list(dict.fromkeys(value["series"] for value in values))[: len(PALETTE)]
    return [value for value in values if value["series"] in series]


def _of(say: Words, count: int, of: int) -> str:
    return say.percent(count / of if of else None)


def _share_cells(say: Words, share: Share) -> list[str]:
    interval = say.percents(share.low, share.high) if share.value is not None else ""
    return [say.short(share.n), say.percent(share.value), interval]


def _without_empty(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """A table without columns that hold nothing."""
    places = [place for place in range(len(head)) if any(row[place] for row in rows)]
    return [head[p] for p in places], [[row[p] for p in places] for row in rows]


def _with_head(figure: Figure, head: Sequence[str]) -> Figure:
    return replace(figure, head=head)
