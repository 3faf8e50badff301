"""What a report says of a table of scores or votes, as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from evenhand.report.html.build import Bar, Difference, LengthBin, Mean, Meeting, Share, Standing
from evenhand.stats.comparison.comparison import OVERALL, Comparison
from evenhand.stats.comparison.means import mean
from evenhand.stats.comparison.variants import QUESTIONS
from evenhand.stats.proportion import Proportion
from evenhand.stats.ranking.board import Board
from evenhand.stats.tables import Floats, Ints, Scores, Votes

LENGTH_BINS = 10
Figure = TypeVar("Figure", Mean, Difference)
_OF_ONE = ("value", "low", "high", "mean", "mean_low", "mean_high", "baseline_mean")


def out_of(full_marks: int, figures: Sequence[Figure]) -> list[Figure]:
    """Figures of graded answers, their totals out of full marks as the judge gives them."""
    return [_scaled(one, full_marks) if one.dimension == OVERALL else one for one in figures]


def _scaled(one: Figure, full_marks: int) -> Figure:
    known = [name for name in _OF_ONE if getattr(one, name, None) is not None]
    scaled = replace(one, **{name: full_marks * getattr(one, name) for name in known})
    if isinstance(scaled, Difference) and (decision := scaled.sequential):
        estimate = None if decision.estimate is None else full_marks * decision.estimate
        decision = replace(
            decision,
            estimate=estimate,
            low=full_marks * decision.low,
            high=full_marks * decision.high,
        )
        return replace(scaled, sequential=decision)
    return scaled


def unit_means(scores: Scores, values: Floats) -> Floats:
    """The mean of each unit over judges and repeats; nan without a score."""
    known, size = ~np.isnan(values), len(scores.units)
    count = np.bincount(scores.unit[known], minlength=size)
    sums = np.bincount(scores.unit[known], values[known], size)
    return np.asarray(np.divide(sums, count, out=np.full(size, np.nan), where=count > 0))


def plain_means(scores: Scores) -> list[Mean]:
    """Means where there is one variant only."""
    named = [n for n in QUESTIONS if n in scores.fields]
    clusters = scores.fields[named[0]].codes if named else np.arange(len(scores.units))
    columns = [*zip(scores.dimensions, scores.values.T, scores.low, scores.high, strict=True)]
    overall = [(OVERALL, scores.overall, 0.0, 1.0)] if len(columns) > 1 else []
    found: list[Mean] = []
    for name, values, low, high in [*columns, *overall]:
        means = unit_means(scores, values)
        known = ~np.isnan(means)
        one = mean(means[known], clusters[known], (float(low), float(high)))
        found.append(
            Mean(
                dimension=name,
                variant="",
                n=one.n,
                value=one.value,
                low=one.low,
                high=one.high,
            )
        )
    return found


def compared_means(found: Comparison) -> list[Mean]:
    return [
        Mean(
            dimension=one.dimension,
            variant=one.variant,
            n=one.n,
            value=one.mean,
            low=one.low,
            high=one.high,
        )
        for one in found.means
    ]


def differences(found: Comparison | None) -> list[Difference]:
    """Every variant against the baseline."""
    if found is None:
        return []
    return [
        Difference(
            dimension=row.dimension,
            variant=row.variant,
            baseline=found.baseline,
            n=row.n,
            questions=row.clusters,
            mean=row.mean,
            mean_low=row.mean_low,
            mean_high=row.mean_high,
            baseline_mean=row.baseline_mean,
            value=row.difference,
            low=row.low,
            high=row.high,
            p=row.p,
            p_adjusted=row.p_adjusted,
            effect=row.effect,
            outcome=row.outcome,
            needed=row.units_needed,
            sequential=found.decision(row),
        )
        for row in found.rows
    ]


def _variant_of(scores: Scores, by: Sequence[str]) -> list[str]:
    """Of each unit, the variant it belongs to."""
    parts = [scores.fields[n if n in scores.fields else n.removeprefix("meta.")] for n in by]
    return [
        " / ".join(part.levels[part.codes[unit]] if part.codes[unit] >= 0 else "" for part in parts)
        for unit in range(len(scores.units))
    ]


def distribution(scores: Scores, by: Sequence[str]) -> list[Bar]:
    """How often each score was given; of answers, the totals by tens."""
    variants = _variant_of(scores, by)
    named = list(dict.fromkeys(variants))
    columns: list[tuple[str, Floats]] = [*zip(scores.dimensions, scores.values.T, strict=True)]
    if scores.totals is not None:
        columns = [("", np.minimum(scores.totals * 100 // 10, 9))]
    bars: list[Bar] = []
    for name, values in columns:
        levels = sorted({float(v) for v in values[~np.isnan(values)]})
        if scores.totals is not None:
            levels = [float(v) for v in range(10)]
        given = Counter(
            (variants[unit], float(v))
            for unit, v in zip(scores.unit, values, strict=True)
            if not np.isnan(v)
        )
        for variant in named:
            of = sum(n for (v, _), n in given.items() if v == variant)
            bars += [
                Bar(name, variant, _level(one, scores.totals is not None), given[variant, one], of)
                for one in levels
                if of
            ]
    return bars


def _level(value: float, by_tens: bool) -> str:
    if not by_tens:
        return f"{value:g}"
    return f"{value * 10:.0f}–{100 if value == 9 else value * 10 + 9:.0f}"


def tags(scores: Scores, by: Sequence[str]) -> list[Bar]:
    """How often each failure tag and critical fail was given."""
    variants = np.array(_variant_of(scores, by), dtype=object)[scores.unit]
    judged = ~scores.failed
    columns = [(name, scores.tags[:, place]) for place, name in enumerate(scores.tag_names)]
    if scores.critical.any():
        columns.append(("critical", scores.critical))
    return [
        Bar("", str(variant), name, int((given & own).sum()), int((judged & own).sum()))
        for name, given in columns
        if given.any()
        for variant in dict.fromkeys(variants.tolist())
        for own in [variants == variant]
    ]


def binned(
    sizes: Floats, values: Floats, cluster: Ints, ends: tuple[float, float]
) -> list[LengthBin]:
    """Values by size, in groups of about equal number."""
    known = ~np.isnan(values) & ~np.isnan(sizes)
    sizes, values, cluster = sizes[known], values[known], cluster[known]
    if np.unique(sizes).size < 3:
        return []
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, LENGTH_BINS + 1)[1:-1]))
    place = np.searchsorted(edges, sizes, side="right")
    found: list[LengthBin] = []
    for one in np.unique(place):
        own = place == one
        middle = mean(values[own], cluster[own], ends)
        assert middle.value is not None
        found.append(
            LengthBin(
                least=float(sizes[own].min()),
                most=float(sizes[own].max()),
                middle=float(np.median(sizes[own])),
                n=middle.n,
                value=middle.value,
                low=middle.low,
                high=middle.high,
            )
        )
    return found


def share(found: Proportion) -> Share:
    return Share(found.value, found.low, found.high, found.n)


def pair_lengths(votes: Votes) -> list[LengthBin]:
    """How often the first candidate wins, by how much longer it is, in characters."""
    longer = votes.first_length - votes.second_length
    return binned(longer, 1 - votes.preference, votes.topic, (0.0, 1.0))


def pairs_on_something(scores: Scores, by: Sequence[str]) -> bool:
    left = [n for n in scores.id_fields if n not in by and n not in ("unit", "id")]
    return bool(by) and bool(left or [n for n in QUESTIONS if n in scores.fields])


def standings(board: Board) -> list[Standing]:
    """Every candidate, the one that wins most first."""
    names = [one.name for one in fields(Standing)]
    rows = [Standing(**{name: getattr(row, name) for name in names}) for row in board.rows]
    return sorted(rows, key=lambda one: (-(one.win_rate or 0.0), one.candidate))


def meetings(board: Board) -> list[Meeting]:
    """Both directions of every pair of candidates that met."""
    met = board.matrix or {"candidates": [], "win_rate": [], "n": []}
    names: list[str] = met["candidates"]
    return [
        Meeting(candidate=name, other=other, n=int(n), rate=rate)
        for name, rates, numbers in zip(names, met["win_rate"], met["n"], strict=True)
        for other, rate, n in zip(names, rates, numbers, strict=True)
        if rate is not None and n
    ]
