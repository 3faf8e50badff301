"""The pictures of a report, each with its figures as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.report.html.build import Mean, Report, Share
from evenhand.report.html.draw import (
    COLOUR,
    LABEL,
    PALETTE,
    Values,
    apart,
    bars,
    columns,
    dots,
    heat,
    labels,
    line,
    stack,
    svg,
)
from evenhand.report.html.page import Words, p_value, require, visible
from evenhand.stats.comparison.comparison import OVERALL

SHOWN = 24
"""Rows in one picture; the table has them all."""
_OUTCOMES = {"better": "good", "worse": "bad", "not enough evidence": "soft"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture with its title, what it shows, and the same as a table."""

    name: str
    title: str
    about: str
    svg: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def figures(report: Report, say: Words) -> Iterator[Figure]:
    """Every picture that the run has figures for."""
    require("altair", "vl_convert")
    made = _Charts(report, say)
    for one in (
        made.differences,
        made.means,
        made.standings,
        made.matrix,
        made.ratings,
        made.outcomes,
        made.scores,
        made.tags,
        made.failures,
        made.position,
        made.contradictions,
        made.lengths,
    ):
        yield from one()


class _Charts:
    def __init__(self, report: Report, say: Words) -> None:
        self.report, self.say = report, say
        self.level = say.percent(report.method.level)
        self.half = say.gloss("half", report.method.rule)

    def _figure(
        self,
        name: str,
        chart: Any,
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
        heads = [say(f"chart.{one}") for one in head]
        drawn = svg(chart, f"{title}. {about}", say.language)
        return Figure(name=name, title=title, about=about, svg=drawn, head=heads, rows=rows)

    def _dimension(self, name: str) -> str:
        if name == OVERALL:
            is_total = self.report.full_marks is not None
            return self.say.gloss("dimension", "total" if is_total else name)
        said = self.report.method.names.get(name, "")
        both = f"{name} · {said}"
        fits = said and said.casefold() != name.casefold() and len(both) <= LABEL
        return visible(both if fits else name)

    # Scores

    def means(self) -> Iterator[Figure]:
        say, means = self.say, [one for one in self.report.means if one.value is not None]
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
        if not any(one.variant for one in means):
            head, rows = [h for h in head if h != "variant"], [[r[0], *r[2:]] for r in rows]
        values, more = self._bounded([self._mean(one) for one in means])
        chart = apart(values, lambda part: dots(part, say("chart.mean")))
        yield self._figure("means", chart, head, rows, more=more)

    def _mean(self, one: Mean) -> dict[str, Any]:
        return {
            "name": self._dimension(one.dimension),
            "series": visible(one.variant),
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "overall": one.dimension == OVERALL,
        }

    def _bounded(self, values: Values) -> tuple[Values, int]:
        """Values for one picture, and how many are left to the table: where there are many
        variants, their overall figures alone."""
        shown = values
        if len({one["series"] for one in values}) > len(PALETTE):
            overall = [one for one in values if one["overall"]]
            if overall:
                shown = [one | {"name": one["series"], "series": ""} for one in overall][:SHOWN]
            else:
                shown = _few_series(values)
        return shown, len(values) - len(shown)

    def differences(self) -> Iterator[Figure]:
        say, found = self.say, self.report.differences
        known = [one for one in found if one.value is not None]
        if not known:
            return
        pairs = self.report.is_pairs
        many = len({one.variant for one in known}) > 1
        values: Values = [
            {
                "name": self._dimension(one.dimension),
                "series": visible(one.variant),
                "value": one.mean if pairs else one.value,
                "low": one.mean_low if pairs else one.low,
                "high": one.mean_high if pairs else one.high,
                "overall": one.dimension == OVERALL,
                "colour": None if many else COLOUR[_OUTCOMES[one.outcome]],
            }
            for one in known
        ]
        values, more = self._bounded(values)
        title = say("chart.win_rate" if pairs else "chart.difference")
        chart = (
            dots(values, title, 0.5, percent=True)
            if pairs  # all of them are shares
            else apart(values, lambda part: dots(part, title, 0.0))
        )
        rows = [self._difference_row(one, pairs) for one in found]
        head = ["dimension", "variant", "n", "mean", "baseline", "difference", "interval"]
        head += ["p", "p_adjusted", "effect", "outcome"]
        name, base = "rates" if pairs else "differences", visible(self.report.method.baseline)
        yield self._figure(name, chart, head, rows, more=more, baseline=base)

    def _difference_row(self, one: Any, pairs: bool) -> list[str]:
        say = self.say
        means = [one.mean, one.baseline_mean]
        return [
            self._dimension(one.dimension),
            visible(one.variant),
            str(one.n),
            *(say.percent(m) if pairs else say.number(m) for m in means),
            say.signed(one.value),
            say.interval(one.low, one.high),
            p_value(say, one.p),
            p_value(say, one.p_adjusted),
            say.number(one.effect),
            say.gloss("outcome", one.outcome),
        ]

    def scores(self) -> Iterator[Figure]:
        given, say = self.report.scores, self.say
        if not given:
            return
        totals = self.report.full_marks is not None
        name, title = ("totals", "chart.total") if totals else ("scores", "chart.score")
        values: Values = [
            {"group": visible(b.group), "series": visible(b.variant)}
            | {"name": b.value, "value": b.count / b.of, "place": place}
            for place, b in enumerate(given)
            if b.of
        ]
        values = _few_series(values)
        chart = columns(values, say(title), say("chart.share"))
        rows = [
            [visible(b.group), visible(b.variant), b.value, str(b.count), _of(say, b.count, b.of)]
            for b in given
        ]
        head = ["dimension", "variant", "total" if totals else "score", "number", "share"]
        head, rows = _without_empty(head, rows)
        yield self._figure(name, chart, head, rows, more=len(given) - len(values))

    def tags(self) -> Iterator[Figure]:
        given, say = self.report.tags, self.say
        if not given:
            return
        named = {one.value: self._tag(one.value) for one in given}
        values: Values = [
            {"name": named[b.value], "series": visible(b.variant), "value": b.count / b.of}
            for b in given
            if b.of
        ]
        values = _few_series(values)
        chart = bars(values, say("chart.share"), percent=True)
        rows = [
            [named[b.value], visible(b.variant), str(b.count), _of(say, b.count, b.of)]
            for b in given
        ]
        head, rows = _without_empty(["tag", "variant", "number", "share"], rows)
        yield self._figure("tags", chart, head, rows, more=len(given) - len(values))

    def _tag(self, tag: str) -> str:
        if tag == "critical":
            return self.say.gloss("verdict", tag)
        return f"{tag} · {self.say.gloss('tag', tag)}"

    def failures(self) -> Iterator[Figure]:
        say, failed = self.say, self.report.coverage.failures
        if not failed:
            return
        named = {code: f"{code} · {say.gloss('reason', code)}" for code in failed}
        values: Values = [
            {"name": say.gloss("reason", code), "series": "", "value": number}
            for code, number in failed.items()
        ]
        chart = bars(values, say("chart.number"), colour=COLOUR["bad"])
        rows = [[named[code], str(number)] for code, number in failed.items()]
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
        known = [one for one in self.report.standings if one.win_rate is not None]
        if not known:
            return
        values: Values = [
            {"name": visible(one.candidate), "series": "", "value": one.win_rate}
            | {"low": one.low, "high": one.high}
            for one in known[:SHOWN]
        ]
        chart = dots(values, say("chart.win_rate"), 0.5, percent=True)
        rows = [
            [
                visible(one.candidate),
                str(one.n),
                say.percent(one.win_rate),
                say.percents(one.low, one.high),
            ]
            for one in self.report.standings
        ]
        head = ["candidate", "n", "win_rate", "interval"]
        yield self._figure("standings", chart, head, rows, more=len(known) - len(values))

    def outcomes(self) -> Iterator[Figure]:
        say, found = self.say, self.report.standings
        if not found:
            return
        names = {
            "wins": say("chart.wins"),
            "ties": say.gloss("verdict", "tie"),
            "uncertain": say.gloss("verdict", "uncertain"),
            "losses": say("chart.losses"),
        }
        values: Values = [
            {"name": visible(one.candidate), "series": label, "value": getattr(one, key)}
            | {"order": place}
            for one in found[:SHOWN]
            for place, (key, label) in enumerate(names.items())
        ]
        chart = stack(values, say("chart.number"), list(names.values()))
        rows = [
            [visible(one.candidate), *(str(getattr(one, key)) for key in names)] for one in found
        ]
        figure = self._figure("outcomes", chart, ["candidate"], rows, more=len(found) - SHOWN)
        yield _with_head(figure, [*figure.head, *names.values()])

    def ratings(self) -> Iterator[Figure]:
        say = self.say
        known = [one for one in self.report.standings if one.rating is not None]
        if not known:
            return
        known.sort(key=lambda one: (-(one.rating or 0.0), one.candidate))
        values: Values = [
            {"name": visible(one.candidate), "series": "", "value": one.rating}
            | {"low": one.rating_low, "high": one.rating_high}
            for one in known[:SHOWN]
        ]
        rows = [
            [
                visible(one.candidate),
                say.signed(one.rating),
                say.interval(one.rating_low, one.rating_high),
            ]
            for one in known
        ]
        chart = dots(values, say("chart.rating"), 0.0)
        more = len(known) - len(values)
        yield self._figure("ratings", chart, ["candidate", "rating", "interval"], rows, more=more)

    def matrix(self) -> Iterator[Figure]:
        say, found = self.say, self.report.meetings
        if not found:
            return
        names = [one.candidate for one in self.report.standings][:SHOWN]
        shown = dict(zip(names, labels(names), strict=True))
        values: Values = [
            {"name": shown[m.candidate], "other": shown[m.other], "rate": m.rate}
            | {"text": say.percent(m.rate), "strength": abs(m.rate - 0.5) * 0.9}
            for m in found
            if m.candidate in shown and m.other in shown
        ]
        order = list(shown.values())
        chart = heat(values, order, say("chart.candidate"), say("chart.against"))
        rows = [
            [visible(m.candidate), visible(m.other), str(m.n), say.percent(m.rate)] for m in found
        ]
        head = ["candidate", "against", "n", "win_rate"]
        more = len(self.report.standings) - len(names)
        yield self._figure("matrix", chart, head, rows, more=more)

    def position(self) -> Iterator[Figure]:
        say, values, rows = self.say, Values(), list[list[str]]()
        for one in self.report.positions:
            for key, share in (("consistency", one.consistency), ("first_slot", one.first_slot)):
                rows.append([visible(one.judge), say(f"chart.{key}"), *_share_cells(say, share)])
                if share.value is not None:
                    judge = visible(one.judge) if len(self.report.positions) > 1 else ""
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
        say, found = self.say, self.report.contradictions
        if not found:
            return
        named = {criterion: self._dimension(criterion) for criterion in found}
        values: Values = [{"name": named[c], "series": "", "value": n} for c, n in found.items()]
        chart = bars(values[:SHOWN], say("chart.number"), colour=COLOUR["warn"])
        rows, more = [[named[c], str(n)] for c, n in found.items()], len(values) - SHOWN
        yield self._figure("contradictions", chart, ["criterion", "number"], rows, more=more)


def _few_series(values: Values) -> Values:
    """What belongs to the first series, as many as there are colours."""
    series = list(dict.fromkeys(one["series"] for one in values))[: len(PALETTE)]
    return [one for one in values if one["series"] in series]


def _of(say: Words, count: int, of: int) -> str:
    return say.percent(count / of if of else None)


def _share_cells(say: Words, share: Share) -> list[str]:
    interval = say.percents(share.low, share.high) if share.value is not None else ""
    return [say.short(share.n), say.percent(share.value), interval]


def _without_empty(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """A table without columns that hold nothing."""
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    return [head[p] for p in kept], [[row[p] for p in kept] for row in rows]


def _with_head(figure: Figure, head: Sequence[str]) -> Figure:
    return replace(figure, head=head)
