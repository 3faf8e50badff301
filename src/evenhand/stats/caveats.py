"""Notes for the reader of a comparison, the most important first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.stats.comparison import OVERALL, Comparison, Row
from evenhand.stats.variants import Count, Variants
from evenhand.words import Place, Places, Sentence, few

SHOWN = 5
TELLING = 0.05
"""The difference of shares from which missingness is said to differ."""
FEW = 60


def comparison_notes(comparison: Comparison, variants: Variants) -> list[str]:
    """Return the notes of a comparison of variants that are laid out so."""
    absent = list[str]()
    overall = [row for row in comparison.rows if row.dimension == OVERALL]
    if overall and any(row.n for row in comparison.rows) and not any(row.n for row in overall):
        absent.append(Sentence("notes.no_overall"))
    if variants.is_duel:
        return row_notes(comparison)
    return [
        *_one_variant(variants),
        *_shares_nothing(variants),
        *_note_unscored(variants),
        *row_notes(comparison),
        *absent,
        *_left_out(variants),
        *([] if variants.is_scale_known else [Sentence("notes.unknown_scale")]),
    ]


def row_notes(comparison: Comparison) -> list[str]:
    """Return what the rows of any comparison have to say."""
    notes = (_note_absent, _fragile, _missing, _few)
    return [text for note in notes for text in note(comparison)]


def _few(comparison: Comparison) -> Iterator[str]:
    """Say once that few questions do not show what is rare."""
    if any(1 < row.clusters <= FEW for row in comparison.rows):
        yield Sentence("notes.few_questions", n=FEW)


def _one_variant(variants: Variants) -> Iterator[str]:
    if len(variants.names) == 1:
        yield Sentence("notes.one_variant", variant=variants.names[0])


def _left_out(variants: Variants) -> Iterator[str]:
    absent = int((variants.variant < 0).sum())
    if absent:
        yield Sentence("notes.no_variant", n=absent)


def _note_unscored(variants: Variants) -> Iterator[str]:
    """Say how many units of each variant no judge was to score: means and differences are of the
    others, which may be the better ones."""
    spared = variants.variant[variants.entries.due == 0]
    counts = {name: int((spared == place).sum()) for place, name in enumerate(variants.names)}
    if any(counts.values()):
        named = [f"{name} ({n})" for name, n in counts.items()]
        yield Sentence("notes.unscored", variants=few(named, SHOWN))


def _shares_nothing(variants: Variants) -> Iterator[str]:
    """Name the variants that share no unit with the baseline."""
    there = variants.present
    names = [
        name
        for place, name in enumerate(variants.names)
        if not (there[:, place] & there[:, variants.base]).any()
    ]
    if names:
        fields = ", ".join(variants.pair_by)
        yield Sentence("notes.share_nothing", variants=few(names, SHOWN), fields=fields)


def _note_absent(comparison: Comparison) -> Iterator[str]:
    """Say why a figure is absent, each reason once with the rows that it holds for."""
    where: dict[str, dict[str, list[str]]] = {}
    for row in comparison.rows:
        if reason := _reason(row):
            where.setdefault(reason, {}).setdefault(row.variant, []).append(row.dimension)
    for reason, variants in where.items():
        places = [Place(name, on) for name, on in variants.items()]
        where_it_holds = Places(places[:SHOWN], max(0, len(places) - SHOWN))
        yield Sentence(f"notes.because_{reason}", where=where_it_holds)


def _reason(row: Row) -> str:
    if row.n == 0:
        return "nothing_shared"
    if row.difference is None:
        return "too_large"
    if row.clusters == 1:
        return "one_question"
    return "all_same" if row.low is None else ""


def _missing(comparison: Comparison) -> Iterator[str]:
    base = comparison.missing.get(comparison.baseline)
    for name, count in comparison.missing.items():
        if base is not None and count is not base and differs(count, base):
            shares = {"share": _share(count), "base": _share(base)}
            yield Sentence("notes.missing", variant=name, **shares)


def _share(count: Count) -> float:
    return count.incomplete / max(1, count.units)


def _fragile(comparison: Comparison) -> Iterator[str]:
    """Name the rows whose outcome missing judgments could turn."""
    for row in (*comparison.rows, *comparison.passes):
        if row.outcome in ("better", "worse") and row.bounds and _turns(row):
            low, high = row.bounds
            where = Places([Place(row.variant, [row.dimension])])
            yield Sentence(f"notes.fragile_{row.outcome}", where=where, low=low, high=high)


def _turns(row: Row) -> bool:
    assert row.bounds is not None and row.difference is not None
    return bool(np.sign(row.bounds[0 if row.difference > 0 else 1]) != np.sign(row.difference))


def differs(first: Count, second: Count) -> bool:
    """Return True if two variants lack judgments of unlike shares of their units."""
    return abs(_share(first) - _share(second)) > TELLING
