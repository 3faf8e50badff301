"""The figures of a report that are counts: of scores, of tags, of units by their length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.observation import (
    CRITICAL_FAIL,
    OPPONENT_LENGTH,
    OVERALL,
    PASSED,
    SUBJECT_LENGTH,
    TAG,
)
from evenhand.report.model import Bar, LengthBin, PassRate, score_text
from evenhand.stats.comparison import VariantMean
from evenhand.stats.estimate import mean
from evenhand.stats.observations import Floats, Ints, Observations, field_named

LENGTH_BINS = 10


def plain_means(table: Observations) -> list[VariantMean]:
    """Return the means where there is one variant only."""
    figures: list[VariantMean] = []
    for name in (*table.dimensions, *([OVERALL] if len(table.dimensions) > 1 else [])):
        means = table.unit_means(name)
        is_scored = ~np.isnan(means)
        found = mean(means[is_scored], table.question[is_scored], table.scale(name).ends)
        figures.append(
            VariantMean(
                dimension=name,
                variant="",
                n=found.n,
                clusters=found.clusters,
                mean=found.value,
                low=found.low,
                high=found.high,
                scale=(0.0, 1.0) if name == OVERALL else None,
            )
        )
    return figures


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
    bars: list[Bar] = []
    for name, values in _score_columns(table, by_tens):
        is_scored = ~np.isnan(values)
        levels = np.unique(values[is_scored])
        if by_tens and levels.size:
            levels = np.arange(levels[0], levels[-1] + 1)
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


def _score_columns(table: Observations, by_tens: bool) -> list[tuple[str, Floats]]:
    """Return the scores of all judgments by dimension, or their totals by tens."""
    if by_tens:
        return [("", np.minimum(table.column(OVERALL) * 100 // 10, 9))]
    return [(name, table.column(name)) for name in table.dimensions]


def unit_scores(table: Observations, *, by_tens: bool) -> list[list[str]]:
    """Return the scores that were given to each unit, as the distribution counts them."""
    scores: list[dict[str, None]] = [{} for _ in table.units]
    for name, values in _score_columns(table, by_tens):
        is_scored = ~np.isnan(values)
        found = zip(table.unit[is_scored].tolist(), values[is_scored].tolist(), strict=True)
        for unit, value in dict.fromkeys(found):
            scores[unit][score_text(name, _level(value, by_tens))] = None
    return [list(texts) for texts in scores]


def _level(value: float, by_tens: bool) -> str:
    if not by_tens:
        return f"{value + 0.0:g}"  # never -0
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


def pass_rates(table: Observations, by: Sequence[str]) -> list[PassRate]:
    """Return how many judgments of each variant pass; empty where none says."""
    if PASSED not in table.measures:
        return []
    names, variants = _variants(table, by)
    values, means = table.column(PASSED), table.unit_means(PASSED)
    rates: list[PassRate] = []
    for number in np.unique(variants[~np.isnan(values)]).tolist():
        is_told = (variants == number) & ~np.isnan(values)
        units = np.unique(table.unit[is_told])
        rate = mean(means[units], table.question[units], (0.0, 1.0))
        count = round(values[is_told].sum())
        rates.append(PassRate(names[number], count, int(is_told.sum()), rate))
    return rates


def mean_by_length(table: Observations) -> list[LengthBin]:
    """Return the overall score by length of what was judged."""
    means = table.unit_means(OVERALL)
    return _bin_lengths(table.numbers("length"), means, np.arange(means.size))


def win_rate_by_length(table: Observations) -> list[LengthBin]:
    """Return how often the first candidate wins, by how much longer it is, in characters."""
    longer = table.numbers(SUBJECT_LENGTH) - table.numbers(OPPONENT_LENGTH)
    return _bin_lengths(longer[table.unit], table.column(table.main), table.topic)


def _bin_lengths(sizes: Floats, values: Floats, cluster: Ints) -> list[LengthBin]:
    """Return values by size, in groups of about equal number."""
    is_measured = ~np.isnan(values) & ~np.isnan(sizes)
    sizes, values, cluster = sizes[is_measured], values[is_measured], cluster[is_measured]
    if np.unique(sizes).size < 3:
        return []
    edges = np.unique(np.quantile(sizes, np.linspace(0, 1, LENGTH_BINS + 1)[1:-1]))
    place = np.searchsorted(edges, sizes, side="right")
    bins: list[LengthBin] = []
    for number in np.unique(place):
        is_inside = place == number
        ends = float(sizes[is_inside].min()), float(sizes[is_inside].max())
        bins.append(LengthBin(*ends, mean(values[is_inside], cluster[is_inside], (0.0, 1.0))))
    return bins
