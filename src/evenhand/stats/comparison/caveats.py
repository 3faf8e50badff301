"""What a reader of a comparison must know beside its figures, the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evenhand.errors import quoted
from evenhand.notes import Counts, Note, Place, Places, Signed, few
from evenhand.stats.comparison.comparison import OVERALL, Comparison, Row
from evenhand.stats.comparison.missing import Count, differs
from evenhand.stats.comparison.variants import Layout, unshared
from evenhand.stats.tables import Bools, Scores, Votes

SHOWN = 5
FEW = 60
UNKNOWN_SCALE = Note(
    "The scale is not known: the least and the greatest score observed are taken as its ends.",
    "unknown_scale",
)


def score_notes(comparison: Comparison, scores: Scores, places: Layout, base: int) -> list[str]:
    """Return the notes of a comparison of scores, laid out so."""
    absent = list[str]()
    overall = [row for row in comparison.rows if row.dimension == OVERALL]
    if overall and any(row.n for row in comparison.rows) and not any(row.n for row in overall):
        sentence = "No judgment has a score on every dimension, so there is no overall figure."
        absent.append(Note(sentence, "no_overall"))
    return [
        *_one_variant(places),
        *_shares_nothing(scores, places, base),
        *row_notes(comparison),
        *absent,
        *_unpaired(places, base),
        *_left_out(places),
        *([] if scores.given_scale else [UNKNOWN_SCALE]),
    ]


def vote_notes(comparison: Comparison, votes: Votes, rows: Bools) -> list[str]:
    """Return the notes of a comparison of votes, of which `rows` are about the baseline."""
    met = {row.variant for row in comparison.rows}
    absent = [name for name in votes.candidates if name not in met and name != comparison.baseline]
    notes = row_notes(comparison)
    if conflicts := int(votes.conflict[rows].sum()):
        notes.append(_conflicts(conflicts, votes, _by_candidate(comparison, votes, rows)))
    if absent:
        notes.append(
            Note(
                f"Never compared with the baseline: {_listed(absent)}."
                " evenhand leaderboard ranks all.",
                "never_compared",
                candidates=few(absent, SHOWN),
            )
        )
    if itself := int(((votes.first == votes.second) & votes.made).sum()):
        are = "is" if itself == 1 else "are"
        sentence = f"{_verdicts(itself)} on a candidate against itself {are} left out."
        notes.append(Note(sentence, "against_itself", n=itself))
    return notes


def row_notes(comparison: Comparison) -> list[str]:
    """Return what the rows of any comparison have to say."""
    return [*_absent(comparison), *_fragile(comparison), *_missing(comparison), *_few(comparison)]


def _few(comparison: Comparison) -> Iterator[str]:
    """Say once that few questions do not show what is rare."""
    if any(1 < row.clusters <= FEW for row in comparison.rows):
        sentence = f"With {FEW} questions or fewer, rare failures stay unseen."
        yield Note(sentence, "few_questions", n=FEW)


def _conflicts(number: int, votes: Votes, counts: Mapping[str, int]) -> Note:
    """Say by which rule contradicting orders count, and of whom they are if there are several."""
    sentence = (
        f"{_verdicts(number)} whose orders contradict each other"
        f" {'counts' if number == 1 else 'count'} by the rule {quoted(votes.rule)}"
    )
    if not counts:
        return Note(f"{sentence}.", "conflicts", n=number, rule=votes.rule)
    more = max(0, len(counts) - SHOWN)
    some = list(counts.items())[:SHOWN]
    listed = ", ".join(f"{quoted(name)} {count}" for name, count in some)
    return Note(
        f"{sentence}: {listed}{f' and {more} more' if more else ''}.",
        "conflicts_by_candidate",
        n=number,
        rule=votes.rule,
        candidates=Counts(some, more),
    )


def _by_candidate(comparison: Comparison, votes: Votes, rows: Bools) -> dict[str, int]:
    """Return the number of contradicting votes of each candidate, where several were compared with
    the baseline."""
    names = list(dict.fromkeys(row.variant for row in comparison.rows))
    if len(names) < 2:
        return {}
    rows = rows & votes.conflict
    counts = {
        name: int((rows & ((votes.first == place) | (votes.second == place))).sum())
        for name in names
        for place in [votes.candidates.index(name)]
    }
    return {name: count for name, count in counts.items() if count}


def _verdicts(number: int) -> str:
    return f"{number} verdict{'' if number == 1 else 's'}"


def _one_variant(places: Layout) -> Iterator[str]:
    if len(places.variants) == 1:
        variant = places.variants[0]
        sentence = f"There is one variant only, {quoted(variant)}: nothing to compare it with."
        yield Note(sentence, "one_variant", variant=variant)


def _left_out(places: Layout) -> Iterator[str]:
    absent = int((places.variant < 0).sum())
    if absent:
        say, are = ("unit says", "is") if absent == 1 else ("units say", "are")
        sentence = f"{absent} {say} nothing about the variant and {are} left out."
        yield Note(sentence, "no_variant", n=absent)


def _shares_nothing(scores: Scores, places: Layout, base: int) -> Iterator[str]:
    """Name the variants that share no unit with the baseline."""
    there, alone = places.present, dict[tuple[str, ...], list[str]]()
    for place, name in enumerate(places.variants):
        if not (there[:, place] & there[:, base]).any():
            alone.setdefault(tuple(unshared(scores, places, place, base)), []).append(name)
    for apart, names in alone.items():
        rest = [field for field in places.pair_by if field not in apart]
        advice = f" Try --pair-by {','.join(rest)}." if rest and apart else ""
        differ = f": they differ in {', '.join(apart)}" if apart else ""
        sentence = f"{_listed(names)} and the baseline share no unit{differ}.{advice}"
        key = "share_nothing" + ("_try" if advice else "_differ" if apart else "")
        fields = {"fields": ", ".join(apart), "rest": ",".join(rest)}
        yield Note(sentence, key, variants=few(names, SHOWN), **fields)


def _unpaired(places: Layout, base: int) -> Iterator[str]:
    """Name the variants of which some units have no partner."""
    there = places.present
    for place, name in enumerate(places.variants):
        shared = int((there[:, place] & there[:, base]).sum())
        single = int((there[:, place] != there[:, base]).sum())
        if shared and single:
            yield Note(
                f"{quoted(name)}: {shared} {'unit is' if shared == 1 else 'units are'} shared with"
                f" the baseline; {single} of one of the two {'has' if single == 1 else 'have'} no"
                f" partner and {'counts' if single == 1 else 'count'} in its own mean only.",
                "unpaired",
                variant=name,
                shared=shared,
                single=single,
            )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(quoted(name) for name in names[:SHOWN]) + more


def _absent(comparison: Comparison) -> Iterator[str]:
    """Say why a figure is absent, each reason once with the rows that it holds for."""
    where: dict[str, dict[str, list[str]]] = {}
    for row in comparison.rows:
        if reason := _reason(row):
            where.setdefault(reason, {}).setdefault(row.variant, []).append(row.dimension)
    for reason, variants in where.items():
        rows = [f"{quoted(name)} on {', '.join(on)}" for name, on in variants.items()]
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
                f"Missing judgments differ: {quoted(name)} lacks scores of {_share(count):.1f} % of"
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
                f"{quoted(row.variant)} on {quoted(row.dimension)} is {row.outcome} on what was"
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
