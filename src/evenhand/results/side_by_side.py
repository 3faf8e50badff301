"""Two variants, two candidates or two runs question by question.

The values of all questions are kept as columns, so that they can be sorted and filtered; the texts
and reasons of a page are read from the store when it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evenhand.errors import UsageError
from evenhand.manifest import Compare
from evenhand.observation import OVERALL
from evenhand.report.model import ChangedPair
from evenhand.results.changed_units import Sides, changed_pair
from evenhand.results.compare import CompareOptions, lay_out_question, own_fields, refuse_against
from evenhand.results.observations import observe
from evenhand.runs.recorded import Recorded
from evenhand.stats.compare import Change
from evenhand.stats.layout import usual_fields
from evenhand.stats.matrix import EVEN, Only, QuestionMatrix, question_matrix
from evenhand.stats.observations import Bools, Floats, Ints, Observations, place_of
from evenhand.stats.variants import Variants
from evenhand.store.archive import Archive
from evenhand.words import Sentence

Sort = Literal["worst", "best", "order"]
SideOnly = Only | Literal["better", "worse", "same"]


class NothingBeside(UsageError):  # noqa: N818  as in errors.py
    """A run has a single variant: there is nothing to set beside it but another run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Every question that a variant and the baseline share, a row each."""

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
        """Return, for each question, True if a side has no verdict."""
        return np.asarray(np.isnan(self.differences))

    @property
    def is_different(self) -> Bools:
        """Return, for each question, True if the sides differ or only one has a verdict."""
        one_sided = np.isnan(self.values) != np.isnan(self.baseline_values)
        return np.asarray(one_sided | (np.abs(np.nan_to_num(self.differences)) > EVEN))

    @property
    def counts(self) -> SideCounts:
        differences = self.differences
        worse, better = (int((way * differences > EVEN).sum()) for way in (-1, 1))
        missing = int(self.is_missing.sum())
        n = len(self.units)
        same = n - worse - better - missing
        different = int(self.is_different.sum())
        return SideCounts(n, worse, better, same, missing, different, self.unpaired)

    def rows(self, only: SideOnly, sort: Sort) -> Ints:
        """Return the places of the rows that are asked for, in their order; what has no difference
        comes last."""
        is_missing, differences = self.is_missing, self.differences
        wanted = np.ones(differences.size, dtype=np.bool_)
        if only == "different":
            wanted = self.is_different
        elif only == "failures":
            wanted = is_missing
        elif only in ("better", "worse"):
            wanted = differences * (1 if only == "better" else -1) > EVEN
        elif only == "same":
            wanted = np.abs(differences) <= EVEN
        places = np.flatnonzero(wanted)
        if sort == "order":
            return places
        gaps = np.nan_to_num(differences[places]) * (1 if sort == "worst" else -1)
        return np.asarray(places[np.lexsort((gaps, is_missing[places]))])

    def next_worse(self, unit: str) -> str | None:
        """Return the unit of the variant that got worse by the next less than this one did, of any
        other unit the one that got worse most; None where there is no more."""
        order, differences = self.rows("different", "worst"), self.differences
        places = order[differences[order] < -EVEN].tolist()
        members = ((*self.units[place], *self.baseline_units[place]) for place in places)
        at = next((n for n, both in enumerate(members, 1) if unit in both), 0)
        return self.units[places[at]][0] if at < len(places) else None

    def change(self, place: int) -> Change:
        """Return the change in one row, by its place."""
        return Change(
            self.variant,
            float(self.values[place]),
            float(self.baseline_values[place]),
            self.units[place],
            self.baseline_units[place],
        )


class SideCounts(NamedTuple):
    """The number of questions, of those on which the variant is worse, better or even or a side has
    no verdict, and of those on which the sides differ, one of them missing included. Questions that
    one side alone has are in none of these."""

    n: int
    worse: int
    better: int
    same: int
    missing: int
    different: int
    unpaired: int

    @property
    def of(self) -> dict[SideOnly, int]:
        """Return the number of rows that each filter leaves."""
        ways: dict[SideOnly, int] = {"better": self.better, "worse": self.worse, "same": self.same}
        return {"": self.n, "different": self.different, "failures": self.missing, **ways}


class Setting(NamedTuple):
    """The two sides to set side by side: variants of one run, or a run and an earlier."""

    baseline: str | None = None
    variant: str | None = None
    against: Recorded | None = None


def side_by_side(store: Archive, run: Recorded, setting: Setting) -> SideBySide:
    """Return all questions of two variants, two candidates or two runs. Raises UsageError for names
    that nobody has, and where there is nothing to set side by side."""
    variants = _variants(store, run, setting)
    place = _chosen_variant(variants, setting.variant)
    measure, present = variants.changed_measure(), variants.present
    ours, theirs = present[:, place], present[:, variants.base]
    keys, cells = np.flatnonzero(ours & theirs), variants.cells(measure.values)
    members = [variants.members(at) for at in (place, variants.base)]
    units = [[tuple(of_side[key]) for key in keys.tolist()] for of_side in members]
    return SideBySide(
        variants=variants.names,
        variant=variants.names[place],
        baseline=variants.baseline,
        dimension=measure.name,
        values=cells[keys, place],
        baseline_values=cells[keys, variants.base],
        units=units[0],
        baseline_units=units[1],
        # Candidates meet in pairs: one that the other did not meet is missing from nothing.
        unpaired=0 if variants.is_duel else int((ours ^ theirs).sum()),
    )


def _variants(store: Archive, run: Recorded, setting: Setting) -> Variants:
    table = observe(store, run)
    fields = _fields(run, table) if setting.against is None else ()
    question = CompareOptions(by=fields, baseline=setting.baseline, against=setting.against)
    if setting.against is not None:
        refuse_against(run, setting.against, question)
    return lay_out_question(store, run, question, table)


def _fields(run: Recorded, table: Observations) -> tuple[str, ...]:
    """Return the fields that tell the variants of a run apart; empty for pairs."""
    fields = () if run.has_votes else tuple(own_fields(run) or usual_fields(table))
    if not fields and not run.has_votes:
        raise NothingBeside(Sentence("compare.nothing_beside"))
    return fields


def matrix_of(store: Archive, run: Recorded, baseline: str | None = None) -> QuestionMatrix:
    """Return every question by every variant or candidate of a run. Raise UsageError for a baseline
    that nobody has, and where no two variants have a question in common."""
    table = observe(store, run)
    baseline = baseline or (run.manifest.compare or Compare()).baseline
    matrix = question_matrix(table, _fields(run, table), baseline)
    if matrix is None:
        raise NothingBeside(Sentence("compare.nothing_beside"))
    return matrix.out_of(run.full_marks if matrix.measure == OVERALL else None)


def page_of(
    store: Archive, run: Recorded, setting: Setting, table: SideBySide, places: Sequence[int]
) -> list[ChangedPair]:
    """These rows with their texts, scores and reasons."""
    sides = Sides(store, run, setting.against or run, table.baseline)
    return [changed_pair(sides, table.change(place)) for place in places]


def _chosen_variant(variants: Variants, name: str | None) -> int:
    """Return the place of the variant that is named, else of the first beside the baseline."""
    if not variants.others:
        raise NothingBeside(Sentence("compare.nothing_beside"))
    if name is None or name == variants.baseline:
        return variants.others[0]
    return place_of(variants.names, name, "variant")
