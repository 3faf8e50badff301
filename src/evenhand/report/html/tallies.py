"""The plain values of a report, from a table of scores or votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from evenhand.observation import CRITICAL_FAIL, OPPONENT_LENGTH, SUBJECT_LENGTH, TAG
from evenhand.report.html.build import Bar, Difference, LengthBin, Mean, Meeting, Share, Standing
from evenhand.stats.comparison import OVERALL, Comparison, Row
from evenhand.stats.estimate import mean
from evenhand.stats.leaderboard import Board
from evenhand.stats.observations import Floats, Ints, Observations, field_named
from evenhand.stats.pairwise import Proportion
from evenhand.stats.variants import CRITICAL

LENGTH_BINS = 10


def plain_means(table: Observations) -> list[Mean]:
    """Return the means where there is one variant only."""
    several = len(table.dimensions) > 1
    figures: list[Mean] = []
    for name in (*table.dimensions, *([OVERALL] if several else [])):
        means = table.unit_means(name)
        is_scored = ~np.isnan(means)
        figure = mean(means[is_scored], table.question[is_scored], table.scale(name).ends)
        figures.append(
            Mean(
                dimension=name,
                variant="",
                n=figure.n,
                value=figure.value,
                low=figure.low,
                high=figure.high,
            )
        )
    return figures


def compared_means(comparison: Comparison) -> list[Mean]:
    return [
        Mean(
            dimension=row.dimension,
            variant=row.variant,
            n=row.n,
            value=row.mean,
            low=row.low,
            high=row.high,
        )
        for row in comparison.means
    ]


def critical_rates(comparison: Comparison | None) -> dict[str, float]:
    """The share of critical fails of each variant; empty where there was none."""
    rows = [row for row in comparison.tags if row.dimension == CRITICAL] if comparison else []
    rates = {row.variant: row.mean for row in rows}
    if comparison and rows:
        rates[comparison.baseline] = rows[0].baseline_mean
    return {name: rate for name, rate in rates.items() if rate is not None}


def differences(comparison: Comparison | None) -> list[Difference]:
    """Every variant against the baseline."""
    if comparison is None:
        return []
    return [
        Difference(
            dimension=row.dimension,
            variant=row.variant,
            baseline=comparison.baseline,
            n=row.n,
            questions=row.clusters,
            mean=row.mean,
            mean_low=row.mean_low,
            mean_high=row.mean_high,
            baseline_mean=row.baseline_mean,
            baseline_low=row.baseline_low,
            baseline_high=row.baseline_high,
            value=row.difference,
            low=row.low,
            high=row.high,
            p=row.p,
            p_adjusted=row.p_adjusted,
            effect=row.effect,
            outcome=row.outcome,
            needed=row.more_questions,
            margin=comparison.margin,
            higher=row.higher,
            lower=row.lower,
            scale=row.scale,
            held=_is_held(row, 1 - comparison.level),
            sequential=comparison.decision(row),
        )
        for row in comparison.rows
    ]


def _is_held(row: Row, alpha: float) -> bool:
    """Return True if only the correction for several tests leaves a row open."""
    if row.p is None or row.p_adjusted is None:
        return False
    return row.p <= alpha + 1e-12 < row.p_adjusted


def _variants(table: Observations, by: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the variants in the order in which they first come, and of each judgment the number
    of its own."""
    parts = [field_named(table.fields, name) for name in by]
    texts = [
        " / ".join((*part.levels, "")[part.codes[unit]] for part in parts)
        for unit in range(len(table.units))
    ]
    names = list(dict.fromkeys(texts))
    numbers = {name: place for place, name in enumerate(names)}
    return names, np.array([numbers[text] for text in texts], np.int64)[table.unit]


def distribution(table: Observations, by: Sequence[str], *, by_tens: bool) -> list[Bar]:
    """Return how often each score was given; of answers, the totals by tens."""
    names, variants = _variants(table, by)
    columns = [(name, table.column(name)) for name in table.dimensions]
    if by_tens:
        columns = [("", np.minimum(table.column(OVERALL) * 100 // 10, 9))]
    bars: list[Bar] = []
    for name, values in columns:
        is_scored = ~np.isnan(values)
        levels = np.arange(10.0) if by_tens else np.unique(values[is_scored])
        cells = variants[is_scored] * len(levels) + np.searchsorted(levels, values[is_scored])
        counts = np.bincount(cells, minlength=len(names) * len(levels))
        for variant, numbers in zip(
            names, counts.reshape(len(names), len(levels)).tolist(), strict=True
        ):
            texts = (_level(level, by_tens) for level in levels.tolist())
            bars += [
                Bar(name, variant, text, number, sum(numbers))
                for text, number in zip(texts, numbers, strict=True)
                if any(numbers)
            ]
    return bars


def _level(value: float, by_tens: bool) -> str:
    if not by_tens:
        return f"{value:g}"
    return f"{value * 10:.0f}–{100 if value == 9 else value * 10 + 9:.0f}"


def tags(table: Observations, by: Sequence[str]) -> list[Bar]:
    """Return how often each failure tag and critical fail was given."""
    names, variants = _variants(table, by)
    judged = ~table.failed
    columns = [
        ("critical" if name == CRITICAL_FAIL else name.removeprefix(TAG), table.column(name) == 1)
        for name in table.flags
    ]
    return [
        Bar(
            "",
            names[number],
            name,
            int((is_tagged & is_of_variant).sum()),
            int((judged & is_of_variant).sum()),
        )
        for name, is_tagged in columns
        if is_tagged.any()
        for number in np.unique(variants).tolist()
        for is_of_variant in [variants == number]
    ]


def binned(
    sizes: Floats, values: Floats, cluster: Ints, ends: tuple[float, float]
) -> list[LengthBin]:
    """Values by size, in groups of about equal number."""
    is_measured = ~np.isnan(values) & ~np.isnan(sizes)
    sizes, values, cluster = sizes[is_measured], values[is_measured], cluster[is_measured]
    if np.unique(sizes).size < 3:
        return []
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, LENGTH_BINS + 1)[1:-1]))
    place = np.searchsorted(edges, sizes, side="right")
    bins: list[LengthBin] = []
    for number in np.unique(place):
        is_inside = place == number
        middle = mean(values[is_inside], cluster[is_inside], ends)
        assert middle.value is not None
        bins.append(
            LengthBin(
                least=float(sizes[is_inside].min()),
                most=float(sizes[is_inside].max()),
                middle=float(np.median(sizes[is_inside])),
                n=middle.n,
                value=middle.value,
                low=middle.low,
                high=middle.high,
            )
        )
    return bins


def share(proportion: Proportion) -> Share:
    return Share(proportion.value, proportion.low, proportion.high, proportion.n)


def pair_lengths(table: Observations) -> list[LengthBin]:
    """Return how often the first candidate wins, by how much longer it is, in characters."""
    longer = table.numbers(SUBJECT_LENGTH) - table.numbers(OPPONENT_LENGTH)
    return binned(longer[table.unit], table.column(table.main), table.topic, (0.0, 1.0))


def standings(board: Board) -> list[Standing]:
    """Every candidate, the one that wins most first."""
    names = [field.name for field in fields(Standing)]
    rows = [Standing(**{name: getattr(row, name) for name in names}) for row in board.rows]
    return sorted(rows, key=lambda standing: (-(standing.win_rate or 0.0), standing.candidate))


def meetings(board: Board) -> list[Meeting]:
    """Both directions of every pair of candidates that met."""
    met = board.matrix or {"candidates": [], "win_rate": [], "n": []}
    names: list[str] = met["candidates"]
    return [
        Meeting(candidate=name, other=opponent, n=int(n), rate=rate)
        for name, rates, numbers in zip(names, met["win_rate"], met["n"], strict=True)
        for opponent, rate, n in zip(names, rates, numbers, strict=True)
        if rate is not None and n
    ]
