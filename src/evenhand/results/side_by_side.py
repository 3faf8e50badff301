"""Two variants, two candidates or two runs question by question.

The values of all questions are kept as columns, so that they can be sorted and filtered; the texts
and reasons of a page are read from the store when it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.report.changes import ChangedPair
from evenhand.results.changed_units import Sides, changed_pair
from evenhand.results.columns import score_table, vote_table
from evenhand.results.compare import Question, laid_out, own_baseline, own_fields, refuse_against
from evenhand.runs.recorded import Recorded
from evenhand.stats.comparison.changes import Change, changed_measure, members_of
from evenhand.stats.comparison.compare import VariantScores, variant_scores
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.stats.comparison.two_runs import pair_keys
from evenhand.stats.comparison.variants import chosen, usual_fields
from evenhand.stats.tables import Bools, Floats, Ints, Votes
from evenhand.store.ports import Archive

Only = Literal["", "different", "failures"]
Sort = Literal["worst", "best", "order"]
EVEN = 1e-9
"""Means that differ by less are the same."""


class NothingBeside(UsageError):  # noqa: N818  as in errors.py
    """A run has a single variant: there is nothing to set beside it but another run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Every question that a variant and the baseline share, a row each."""

    by: str
    variants: tuple[str, ...]
    """All that there are to choose from."""
    variant: str
    baseline: str
    dimension: str
    values: Floats
    """Of the variant, and below of the baseline; nan where there is no verdict."""
    baseline_values: Floats
    units: Sequence[tuple[str, ...]]
    baseline_units: Sequence[tuple[str, ...]]
    unpaired: int = 0
    """Questions that only one of the two has."""

    @property
    def differences(self) -> Floats:
        return self.values - self.baseline_values

    @property
    def is_missing(self) -> Bools:
        """Whether a side has no verdict."""
        return np.asarray(np.isnan(self.differences))

    @property
    def is_different(self) -> Bools:
        """Whether the sides differ, or only one has a verdict."""
        one_sided = np.isnan(self.values) != np.isnan(self.baseline_values)
        return np.asarray(one_sided | (np.abs(np.nan_to_num(self.differences)) > EVEN))

    @property
    def counts(self) -> Counts:
        differences = self.differences
        worse, better = (int((way * differences > EVEN).sum()) for way in (-1, 1))
        missing = int(self.is_missing.sum())
        n = len(self.units)
        same = n - worse - better - missing
        different = int(self.is_different.sum())
        return Counts(n, worse, better, same, missing, different, self.unpaired)

    def rows(self, only: Only, sort: Sort) -> Ints:
        """The places of the rows that are asked for, in their order; what has no difference comes
        last."""
        is_missing, differences = self.is_missing, self.differences
        wanted = np.ones(differences.size, dtype=np.bool_)
        if only == "different":
            wanted = self.is_different
        elif only == "failures":
            wanted = is_missing
        places = np.flatnonzero(wanted)
        if sort == "order":
            return places
        gaps = np.nan_to_num(differences[places]) * (1 if sort == "worst" else -1)
        return np.asarray(places[np.lexsort((gaps, is_missing[places]))])

    def change(self, place: int) -> Change:
        """One row, by its place."""
        return Change(
            self.variant,
            float(self.values[place]),
            float(self.baseline_values[place]),
            self.units[place],
            self.baseline_units[place],
        )


class Counts(NamedTuple):
    """How many questions there are, and on how many the variant is worse, better, even, or a side
    has no verdict; and on how many the sides differ, one of them missing included. Questions that
    one side alone has are in none of these."""

    n: int
    worse: int
    better: int
    same: int
    missing: int
    different: int
    unpaired: int


class Setting(NamedTuple):
    """What is set side by side: variants of one run by these fields, or a run and an earlier."""

    by: tuple[str, ...] = ()
    baseline: str | None = None
    variant: str | None = None
    against: Recorded | None = None


def side_by_side(store: Archive, run: Recorded, setting: Setting) -> SideBySide:
    """All questions of two variants, two candidates or two runs. Raises UsageError for names that
    nobody has, and where there is nothing to set side by side."""
    if setting.against is not None:
        refuse_against(run, setting.against, Question(against=setting.against))
    if not run.has_votes:
        return _of_scores(store, run, setting)
    if setting.against is not None:
        return _of_vote_runs(store, run, setting.against)
    return _of_votes(vote_table(store, run), setting, own_baseline(run, Question()))


def page_of(
    store: Archive, run: Recorded, setting: Setting, table: SideBySide, places: Sequence[int]
) -> list[ChangedPair]:
    """These rows with their texts, scores and reasons."""
    sides = Sides(store, run, setting.against or run, table.baseline)
    return [changed_pair(sides, table.change(place)) for place in places]


def _of_scores(store: Archive, run: Recorded, setting: Setting) -> SideBySide:
    laid = _laid_out(store, run, setting)
    places, base = laid.places, laid.base
    variant = _chosen_variant(places.variants, base, setting.variant)
    values = changed_measure(laid).values
    ours, theirs = places.present[:, variant], places.present[:, base]
    keys = np.flatnonzero(ours & theirs)
    units = laid.scores.units
    columns = [
        [tuple(units[unit] for unit in members[int(key)]) for key in keys]
        for members in (members_of(laid, variant), members_of(laid, base))
    ]
    return SideBySide(
        by=" / ".join(places.by),
        variants=places.variants,
        variant=places.variants[variant],
        baseline=places.variants[base],
        dimension=changed_measure(laid).name,
        values=values[keys, variant],
        baseline_values=values[keys, base],
        units=columns[0],
        baseline_units=columns[1],
        unpaired=int((ours ^ theirs).sum()),
    )


def _laid_out(store: Archive, run: Recorded, setting: Setting) -> VariantScores:
    """The scores by variant, or by run."""
    if setting.against is not None:
        return laid_out(store, run, Question(against=setting.against))
    scores = score_table(store, run)
    fields = setting.by or own_fields(run) or usual_fields(scores)
    if not fields:
        raise NothingBeside("nothing tells variants of this run apart")
    baseline = own_baseline(run, Question(by=tuple(fields), baseline=setting.baseline))
    return variant_scores(scores, fields, baseline)


def _chosen_variant(variants: Sequence[str], base: int, name: str | None) -> int:
    """The place of the variant that is named, else of the first beside the baseline."""
    others = [place for place in range(len(variants)) if place != base]
    if not others:
        raise NothingBeside("nothing tells variants of this run apart")
    if name is None or name == variants[base]:
        return others[0]
    return chosen(variants, name)[0]


def _of_votes(votes: Votes, setting: Setting, own: str | None) -> SideBySide:
    """The pairs of two candidates: of each what the one won, and the other the rest."""
    base = chosen(votes.candidates, setting.baseline or own, "candidate")[0]
    variant = _chosen_variant(votes.candidates, base, setting.variant)
    second = votes.second == variant
    met = (second & (votes.first == base)) | ((votes.first == variant) & (votes.second == base))
    won = np.where(second, votes.preference, 1 - votes.preference)
    pairs, values = _pair_means(votes, won, met)
    units = [(votes.pairs[pair],) for pair in pairs]
    return SideBySide(
        by="candidate",
        variants=votes.candidates,
        variant=votes.candidates[variant],
        baseline=votes.candidates[base],
        dimension=OVERALL,
        values=values,
        baseline_values=1 - values,
        units=units,
        baseline_units=units,
    )


def _pair_means(votes: Votes, values: Floats, rows: Bools) -> tuple[Ints, Floats]:
    """The pairs of these rows, and of each the mean over judges and repeats; nan without one."""
    pairs, at = np.unique(votes.pair[rows], return_inverse=True)
    valued = ~np.isnan(values[rows])
    counts = np.bincount(at[valued], minlength=pairs.size)
    sums = np.bincount(at[valued], values[rows][valued], pairs.size)
    means = np.full(pairs.size, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return pairs, means


def _of_vote_runs(store: Archive, run: Recorded, earlier: Recorded) -> SideBySide:
    """The pairs that two runs share: of each what one of its candidates won."""
    tables = vote_table(store, run), vote_table(store, earlier)
    ours, theirs = (_first_shares(votes) for votes in tables)
    names = [name for name in ours if name in theirs]
    if not names:
        raise UsageError(
            f"the runs {run.id} and {earlier.id} have no unit in common",
            advice=f"Units are paired by their ids, for instance {quoted(next(iter(ours), ''))}.",
        )
    before = [_share_of(ours[name].candidate, theirs[name]) for name in names]
    return SideBySide(
        by="run",
        variants=(earlier.id, run.id),
        variant=run.id,
        baseline=earlier.id,
        dimension=OVERALL,
        values=np.array([ours[name].share for name in names]),
        baseline_values=np.array(before),
        units=[(ours[name].unit,) for name in names],
        baseline_units=[(theirs[name].unit,) for name in names],
        unpaired=len(ours.keys() ^ theirs.keys()),
    )


class _First(NamedTuple):
    """The first candidate of a pair, and what it won."""

    unit: str
    candidate: str
    share: float


def _first_shares(votes: Votes) -> dict[str, _First]:
    """Return the first candidate of each pair, and what it won of all votes, by what the pair is
    known by in both runs."""
    pairs, shares = _pair_means(
        votes, 1 - votes.preference, np.ones(votes.pair.size, dtype=np.bool_)
    )
    opening, keys = np.unique(votes.pair, return_index=True)[1], pair_keys(votes)
    return {
        keys[pair]: _First(votes.pairs[pair], votes.candidates[votes.first[row]], float(share))
        for pair, row, share in zip(pairs, opening, shares, strict=True)
    }


def _share_of(candidate: str, first: _First) -> float:
    """What a candidate won of a pair, which may have it in the other place."""
    return first.share if first.candidate == candidate else 1 - first.share
