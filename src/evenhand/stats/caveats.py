"""Notes for the reader of a comparison, the most important first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.errors import quote
from evenhand.notes import Note, Place, Places, Signed, few, join_few
from evenhand.stats.comparison import OVERALL, Comparison, Row
from evenhand.stats.variants import Count, Variants

SHOWN = 5
TELLING = 0.05
"""The difference of shares from which missingness is said to differ."""
FEW = 60
UNKNOWN_SCALE = Note(
    "The scale is not known: the least and the greatest score observed are taken as its ends.",
    "unknown_scale",
)


def comparison_notes(comparison: Comparison, variants: Variants) -> list[str]:
    """Return the notes of a comparison of variants that are laid out so."""
    absent = list[str]()
    overall = [row for row in comparison.rows if row.dimension == OVERALL]
    if overall and any(row.n for row in comparison.rows) and not any(row.n for row in overall):
        sentence = "No judgment has a score on every dimension, so there is no overall figure."
        absent.append(Note(sentence, "no_overall"))
    if variants.is_duel:
        return row_notes(comparison)
    return [
        *_one_variant(variants),
        *_shares_nothing(variants),
        *row_notes(comparison),
        *absent,
        *_left_out(variants),
        *([] if variants.is_scale_known else [UNKNOWN_SCALE]),
    ]


def row_notes(comparison: Comparison) -> list[str]:
    """Return what the rows of any comparison have to say."""
    notes = (_note_absent, _fragile, _missing, _few)
    return [text for note in notes for text in note(comparison)]


def _few(comparison: Comparison) -> Iterator[str]:
    """Say once that few questions do not show what is rare."""
    if any(1 < row.clusters <= FEW for row in comparison.rows):
        sentence = f"With {FEW} questions or fewer, rare failures stay unseen."
        yield Note(sentence, "few_questions", n=FEW)


def _one_variant(variants: Variants) -> Iterator[str]:
    if len(variants.names) == 1:
        variant = variants.names[0]
        sentence = f"There is one variant only, {quote(variant)}: nothing to compare it with."
        yield Note(sentence, "one_variant", variant=variant)


def _left_out(variants: Variants) -> Iterator[str]:
    absent = int((variants.variant < 0).sum())
    if absent:
        say, are = ("unit says", "is") if absent == 1 else ("units say", "are")
        sentence = f"{absent} {say} nothing about the variant and {are} left out."
        yield Note(sentence, "no_variant", n=absent)


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
        sentence = f"{join_few(names, SHOWN)} and the baseline share no unit, paired on {fields}."
        yield Note(
            f"{sentence} --pair-by names other fields.",
            "share_nothing",
            variants=few(names, SHOWN),
            fields=fields,
        )


def _note_absent(comparison: Comparison) -> Iterator[str]:
    """Say why a figure is absent, each reason once with the rows that it holds for."""
    where: dict[str, dict[str, list[str]]] = {}
    for row in comparison.rows:
        if reason := _reason(row):
            where.setdefault(reason, {}).setdefault(row.variant, []).append(row.dimension)
    for reason, variants in where.items():
        rows = [f"{quote(name)} on {', '.join(on)}" for name, on in variants.items()]
        rest = len(rows) - SHOWN
        more = f"; and {rest} more variant{'' if rest == 1 else 's'}" if rest > 0 else ""
        places = [Place(name, on) for name, on in variants.items()]
        where_it_holds = Places(places[:SHOWN], max(0, rest))
        sentence = f"{_REASONS[reason]}: {'; '.join(rows[:SHOWN])}{more}."
        yield Note(sentence, f"because_{reason}", where=where_it_holds)


_REASONS = {
    "nothing_shared": "No shared unit has a score, so there is nothing to compute",
    "too_large": "Some scores are too large to compute with, so there are no figures",
    "one_question": "One question alone shows no spread, so nothing is decided",
    "all_same": "All scores are the same and the scale is not known, so there is no interval",
}


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
            yield Note(
                f"Missing judgments differ: {quote(name)} lacks scores of {_share(count):.1f} % of"
                f" its units, the baseline of {_share(base):.1f} %. The comparison may be biased.",
                "missing",
                variant=name,
                share=round(_share(count), 1),
                base=round(_share(base), 1),
            )


def _share(count: Count) -> float:
    return 100 * count.incomplete / max(1, count.units)


def _fragile(comparison: Comparison) -> Iterator[str]:
    """Name the rows whose outcome missing judgments could turn."""
    for row in comparison.rows:
        if row.outcome in ("better", "worse") and row.bounds and _turns(row):
            low, high = row.bounds
            yield Note(
                f"{quote(row.variant)} on {quote(row.dimension)} is {row.outcome} on what was"
                f" judged; missing judgments could make the difference anything from"
                f" {low:+z.3g} to {high:+z.3g}.",
                f"fragile_{row.outcome}",
                where=Places([Place(row.variant, [row.dimension])]),
                low=Signed(f"{low:z.3g}"),
                high=Signed(f"{high:z.3g}"),
            )


def _turns(row: Row) -> bool:
    assert row.bounds is not None and row.difference is not None
    return bool(np.sign(row.bounds[0 if row.difference > 0 else 1]) != np.sign(row.difference))


def differs(first: Count, second: Count) -> bool:
    """Return True if two variants lack judgments of unlike shares of their units."""
    return abs(_share(first) - _share(second)) > 100 * TELLING
