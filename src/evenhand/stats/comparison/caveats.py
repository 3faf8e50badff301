"""What a reader of a comparison must know beside its figures, in whole sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import floor

import numpy as np

from evenhand.errors import quoted
from evenhand.notes import Counts, Names, Note, Percent, Place, Places, Signed, Span, Spans, few
from evenhand.stats.comparison.comparison import OVERALL, Comparison, Row
from evenhand.stats.comparison.missing import Count, differs
from evenhand.stats.comparison.variants import Layout, unshared
from evenhand.stats.tables import Bools, Scores, Votes

SHOWN = 5
SENTINEL = -1.0
UNKNOWN_SCALE = Note(
    "The scale is not known: the least and the greatest score observed are taken as its ends.",
    "unknown_scale",
)


def score_notes(comparison: Comparison, scores: Scores, places: Layout, base: int) -> list[str]:
    """The notes of a comparison of scores, laid out so."""
    notes = [*_left_out(places), *_unpaired(scores, places, base), *_reason_notes(comparison)]
    if not scores.given_scale:
        notes += [UNKNOWN_SCALE, *sentinel_notes(scores)]
    overall = [row for row in comparison.rows if row.dimension == OVERALL]
    if overall and any(row.n for row in comparison.rows) and not any(row.n for row in overall):
        sentence = "No judgment has a score on every dimension, so there is no overall figure."
        notes.append(Note(sentence, "no_overall"))
    notes += _mixed(comparison, scores)
    return [
        *notes,
        *_missing(comparison),
        *_fragile(comparison),
        *_hidden(comparison),
        *_sure(comparison, is_scale_known=scores.given_scale),
    ]


def sentinel_notes(scores: Scores) -> Iterator[str]:
    """Where -1 stands below all other scores of a scale that nobody states: it often means that a
    reply could not be read, and would be averaged in."""
    if scores.given_scale:
        return
    for name, values in zip(scores.dimensions, scores.values.T, strict=True):
        others = values[~np.isnan(values) & (values != SENTINEL)]
        number = int((values == SENTINEL).sum())
        # From -1 to 1 is a scale of its own.
        if number and others.size and others.min() >= 0 and others.max() > 1:
            stands = "score is" if number == 1 else "scores are"
            yield Note(
                f"{number:,} {stands} {SENTINEL:g} on {quoted(name)}, and no other lies below"
                f" {others.min():g}: if that stands for none, import the table with"
                f" --missing {SENTINEL:g}.",
                "sentinel",
                n=number,
                dimension=name,
                least=float(others.min()),
            )


def _mixed(comparison: Comparison, scores: Scores) -> Iterator[str]:
    """Where types of task with other points to be had stand in one difference of points."""
    if scores.most is None:
        return
    in_points = {
        row.dimension for row in comparison.rows if row.n and row.scale and row.scale[1] > 1
    }
    mixed = dict[str, str]()
    for place, name in enumerate(scores.dimensions):
        points = np.unique(scores.most[:, place])
        points = points[~np.isnan(points)]
        if name in in_points and len(points) > 1:
            mixed[name] = ", ".join(f"{most:g}" for most in points)
    if mixed:
        listed = ", ".join(f"{quoted(name)} (of {points})" for name, points in mixed.items())
        yield Note(
            f"Tasks of several types are in one difference of points, and there were not as many to"
            f" be had in each: {listed}. Overall is not touched by that.",
            "mixed",
            dimensions=Names(list(mixed)),
        )


def vote_notes(comparison: Comparison, votes: Votes, rows: Bools) -> list[str]:
    """The notes of a comparison of votes, of which `rows` are about the baseline."""
    met = {row.variant for row in comparison.rows}
    absent = [name for name in votes.candidates if name not in met and name != comparison.baseline]
    notes = list[str]()
    if absent:
        notes.append(
            Note(
                f"Never compared with the baseline: {_listed(absent)}."
                " evenhand leaderboard ranks all.",
                "never_compared",
                candidates=few(absent, SHOWN),
            )
        )
    if conflicts := int(votes.conflict[rows].sum()):
        notes.append(_conflicts(conflicts, votes, _by_candidate(comparison, votes, rows)))
    if itself := int(((votes.first == votes.second) & votes.made).sum()):
        are = "is" if itself == 1 else "are"
        sentence = f"{_verdicts(itself)} on a candidate against itself {are} left out."
        notes.append(Note(sentence, "against_itself", n=itself))
    return [*notes, *row_notes(comparison)]


def _conflicts(number: int, votes: Votes, counts: Mapping[str, int]) -> Note:
    """By which rule contradicting orders count, and of whom they are where that is not clear."""
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
    """Of whom the contradicting votes are, beside the baseline, where several were compared with
    it."""
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


def row_notes(comparison: Comparison) -> list[str]:
    """What the rows of any comparison have to say."""
    return [
        *_reason_notes(comparison),
        *_missing(comparison),
        *_fragile(comparison),
        *_hidden(comparison),
        *_sure(comparison),
    ]


def _verdicts(number: int) -> str:
    return f"{number} verdict{'' if number == 1 else 's'}"


def _left_out(places: Layout) -> Iterator[str]:
    absent = int((places.variant < 0).sum())
    if absent:
        say, are = ("unit says", "is") if absent == 1 else ("units say", "are")
        sentence = f"{absent} {say} nothing about the variant and {are} left out."
        yield Note(sentence, "no_variant", n=absent)
    if len(places.variants) == 1:
        variant = places.variants[0]
        sentence = f"There is one variant only, {quoted(variant)}: nothing to compare it with."
        yield Note(sentence, "one_variant", variant=variant)


def _unpaired(scores: Scores, places: Layout, base: int) -> Iterator[str]:
    """Where variants share nothing with the baseline, or not all."""
    there, alone = places.present, dict[tuple[str, ...], list[str]]()
    for place, name in enumerate(places.variants):
        shared = int((there[:, place] & there[:, base]).sum())
        single = int((there[:, place] != there[:, base]).sum())
        if not shared:
            apart = tuple(unshared(scores, places, place, base))
            alone.setdefault(apart, []).append(name)
        elif single:
            yield Note(
                f"{quoted(name)}: {shared} {'unit is' if shared == 1 else 'units are'} shared with"
                f" the baseline; {single} of one of the two {'has' if single == 1 else 'have'} no"
                f" partner and {'counts' if single == 1 else 'count'} in its own mean only.",
                "unpaired",
                variant=name,
                shared=shared,
                single=single,
            )
    for apart, names in alone.items():
        rest = [field for field in places.pair_by if field not in apart]
        advice = f" Try --pair-by {','.join(rest)}." if rest and apart else ""
        differ = f": they differ in {', '.join(apart)}" if apart else ""
        sentence = f"{_listed(names)} and the baseline share no unit{differ}.{advice}"
        key = "share_nothing" + ("_try" if advice else "_differ" if apart else "")
        fields = {"fields": ", ".join(apart), "rest": ",".join(rest)}
        yield Note(sentence, key, variants=few(names, SHOWN), **fields)


def _listed(names: Sequence[str]) -> str:
    """Names, the first few of many."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(quoted(name) for name in names[:SHOWN]) + more


def _reason_notes(comparison: Comparison) -> Iterator[str]:
    """Why a figure is absent, each reason once with the rows that it holds for."""
    where: dict[str, dict[str, list[str]]] = {}
    for row in comparison.rows:
        for reason in _reasons(row):
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
    "one_question": "One question alone shows no spread: the interval is what one observation"
    " leaves of the scale, and nothing is decided",
    "all_same": "All scores are the same and the scale is not known, so there is no interval",
    "no_effect": "Every pair differs by the same, so there is no effect to standardise",
    "holds_0": "The test tells the two apart, but the interval holds 0, since it leaves room for"
    " what was not seen",
    "lopsided": "Few large differences stand against many small ones, and the test, which takes"
    " differences to be as likely up as down, may err more often than it says",
    "narrow": "The interval goes by the few questions that were judged: a rare bad answer that is"
    " not among them could move the difference out of it, so judge more questions before you"
    " rely on it",
    "no_difference": "No difference was observed, so no number of units that would decide can be"
    " named",
}


def _reasons(row: Row) -> Iterator[str]:
    """Why figures of a row are absent or doubtful, by keys of the sentences."""
    if row.n == 0:
        yield "nothing_shared"
        return
    if row.difference is None:
        yield "too_large"
        return
    if row.clusters == 1:
        yield "one_question"
    if row.low is None:
        yield "all_same"
    elif row.effect is None and row.clusters > 1:
        yield "no_effect"
    if row.outcome != "not enough evidence" and _holds_0(row):
        yield "holds_0"
    if row.lopsided:
        yield "lopsided"
    if row.narrow and not _is_undone(row):
        yield "narrow"
    if row.difference == 0:
        yield "no_difference"


def _holds_0(row: Row) -> bool:
    return row.low is not None and row.high is not None and row.low <= 0 <= row.high


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
    """In percent."""
    return 100 * count.incomplete / max(1, count.units)


def _fragile(comparison: Comparison) -> Iterator[str]:
    """Where what is missing could turn what is decided."""
    for row in comparison.rows:
        if row.outcome != "not enough evidence" and row.bounds and _turns(row):
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


def _is_undone(row: Row) -> bool:
    return row.outcome != "not enough evidence" and row.undone_by is not None


def _hidden(comparison: Comparison) -> Iterator[str]:
    """What is decided, and would be undone by breakdowns that the questions need not have shown."""
    undone = [row for row in comparison.rows if _is_undone(row)]
    for row in undone[:SHOWN]:
        share = row.undone_by or 1.0
        rare = "won it all" if row.outcome == "worse" else "lost it all"
        chance = 100 * (1 - share) ** row.clusters
        yield Note(
            f"The test finds {quoted(row.variant)} {row.outcome} on {quoted(row.dimension)}. It"
            f" would not be if it {rare}, one end of the scale against the other, on 1 question in"
            f" {floor(1 / share)}; {row.clusters} questions show none of these with a chance of"
            f" {chance:.0f} %.",
            f"undone_{row.outcome}",
            where=Places([Place(row.variant, [row.dimension])]),
            every=floor(1 / share),
            questions=row.clusters,
            chance=round(chance),
        )
    if (rest := len(undone) - SHOWN) > 0:
        yield Note(f"So it is with {rest} more rows.", "undone_more", n=rest)


def _sure(comparison: Comparison, *, is_scale_known: bool = True) -> Iterator[str]:
    """What may be relied on where an interval is narrow."""
    sure = list[str]()
    spans = list[Span]()
    for row in comparison.rows:
        if row.sure_low is not None and row.sure_high is not None:
            low, high = f"{row.sure_low:+z.2g}", f"{row.sure_high:+z.2g}"
            sure.append(f"{quoted(row.variant)} on {row.dimension} {low} to {high}")
            spans.append(Span(row.variant, row.dimension, Signed(low), Signed(high)))
    if sure:
        scale = "" if is_scale_known else " within the scores that were seen"
        rest = len(sure) - SHOWN
        more = f"; and {rest} more" if rest > 0 else ""
        yield Note(
            f"Intervals that hold at {100 * comparison.level:g} % however scores are spread{scale},"
            f" as a gate takes them: {'; '.join(sure[:SHOWN])}{more}.",
            "sure" if is_scale_known else "sure_seen",
            level=Percent(comparison.level),
            intervals=Spans(spans[:SHOWN], max(0, rest)),
        )
