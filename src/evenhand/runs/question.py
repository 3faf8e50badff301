"""What a run is to decide, known before anything is judged: which units are set against which, and
what a verdict is worth.

Units are paired as `compare` pairs them, and what is about one question stays together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.errors import UsageError, nearest, quoted
from evenhand.judgment import Judgment
from evenhand.kinds.kind import ReadyKind, Scoring, Voting
from evenhand.measures import Ends
from evenhand.stats.columns import Columns, id_fields, widen_ends
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.stats.comparison.variants import chosen, layout
from evenhand.stats.tables import Fields
from evenhand.store.ports import StoredUnit

_WINNERS = {"A": 0.0, "B": 1.0, "tie": 0.5, "uncertain": 0.5, None: None}
_MARKS = {"A+": 0.0, "B+": 1.0, "tie": 0.5}


class Contrast(NamedTuple):
    """What a value comes from, by the numbers of the units: those of the variant against those of
    the baseline, or one pair of both; where it is `turned`, the variant stands first in it."""

    units: tuple[int, ...]
    against: tuple[int, ...] = ()
    turned: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that compares a variant with the baseline on one question; it makes one value."""

    name: str
    """What its place in the order is drawn from: the same however many variants there are."""
    contrasts: tuple[Contrast, ...]

    @property
    def units(self) -> tuple[int, ...]:
        """All of them, each once."""
        every = (no for contrast in self.contrasts for no in (*contrast.against, *contrast.units))
        return tuple(dict.fromkeys(every))


@dataclass(frozen=True, slots=True)
class Planned:
    """The questions of each variant, the baseline that it is compared with, and what to say."""

    baseline: str
    questions: Mapping[str, Sequence[Question]]
    notes: tuple[str, ...]
    ids: Mapping[int, str]
    """Of the units, by their numbers."""


@dataclass(frozen=True, slots=True)
class _Units:
    """What is known of units that wait to be judged."""

    units: Sequence[str]
    fields: Fields

    @property
    def id_fields(self) -> tuple[str, ...]:
        return id_fields(self.fields)


def planned_scores(
    scoring: Scoring, units: Iterable[StoredUnit], by: Sequence[str], baseline: str | None
) -> Planned:
    """The questions of a run of samples or answers; raises UsageError."""
    columns, ids = Columns(), dict[int, str]()
    for unit in units:
        columns.add({"unit": unit.id, **scoring.unit(unit.body).fields})
        ids[unit.no] = unit.id
    pairing = layout(_Units(list(ids.values()), columns.fields()), by)
    base, notes = chosen(pairing.variants, baseline)
    cells: dict[int, dict[int, tuple[int, ...]]] = {}
    for no, key, variant in zip(ids, pairing.key.tolist(), pairing.variant.tolist(), strict=True):
        cell = cells.setdefault(key, {})
        cell[variant] = (*cell.get(variant, ()), no)
    clusters = pairing.cluster.tolist()
    gathered: dict[tuple[int, int], list[Contrast]] = {}
    for key, cell in cells.items():
        for variant in cell.keys() - {base, -1} if base in cell else ():
            place = (variant, clusters[key])
            gathered.setdefault(place, []).append(Contrast(cell[variant], cell[base]))
    questions: dict[str, list[Question]] = {
        name: [] for place, name in enumerate(pairing.variants) if place != base
    }
    for (variant, _), contrasts in gathered.items():
        name = min(ids[no] for contrast in contrasts for no in contrast.against)
        questions[pairing.variants[variant]].append(Question(name, tuple(contrasts)))
    return Planned(pairing.variants[base], questions, tuple(notes), ids)


def planned_pairs(voting: Voting, units: Iterable[StoredUnit], baseline: str | None) -> Planned:
    """The questions of a run of pairs: those that the baseline is one of; raises UsageError."""
    ids, rows = dict[int, str](), list[tuple[int, str, str, str]]()
    for unit in units:
        pair = voting.unit(unit.body)
        ids[unit.no] = unit.id
        rows.append((unit.no, pair.topic, *pair.candidates))
    names = list(dict.fromkeys(name for _, _, *pair_names in rows for name in pair_names))
    base, notes = chosen(names, baseline, "candidate")
    gathered: dict[str, dict[str, list[Contrast]]] = {}
    for no, row, first, second in rows:
        if names[base] in (first, second):
            turned = second == names[base]
            topics = gathered.setdefault(first if turned else second, {})
            topics.setdefault(row, []).append(Contrast((no,), turned=turned))
    questions = {
        name: [Question(row, tuple(contrasts)) for row, contrasts in topics.items()]
        for name, topics in gathered.items()
    }
    return Planned(names[base], questions, tuple(notes), ids)


@dataclass(frozen=True, slots=True)
class Measure:
    """What a judgment is worth on the dimension that decides, from 0 to 1; None where it says
    nothing of it."""

    of: Callable[[Judgment], float | None]
    span: float = 1.0
    """How much 1 is on the dimension's own scale."""


def deciding_measure(judging: ReadyKind, units: Iterable[StoredUnit], dimension: str) -> Measure:
    """The measure of a run's judgments; raises UsageError for a dimension that it has not."""
    measure = judging.kind.measure
    if isinstance(measure, Voting):
        return _preference(measure, judging.dimensions, dimension)
    ends = dict(judging.ends)
    for unit in units:
        widen_ends(ends, measure.unit(unit.body).ends)
    return _scaled(measure, ends, dimension)


def _preference(voting: Voting, criteria: Sequence[str], dimension: str) -> Measure:
    """How far the second candidate is preferred, in all or on one criterion."""

    def overall(judgment: Judgment) -> float | None:
        vote = voting.judgment(judgment)
        return _WINNERS[vote.winner] if vote.preference is None else vote.preference

    def mark(judgment: Judgment) -> float | None:
        return _MARKS.get(voting.judgment(judgment).marks.get(dimension, ""))

    if dimension == OVERALL:
        return Measure(overall)
    _check(dimension, criteria)
    return Measure(mark)


def _scaled(scoring: Scoring, ends: Ends, dimension: str) -> Measure:
    """The score from the lowest to the highest, on one dimension or over all."""

    def scaled(name: str, score: float) -> float:
        low, high = ends[name]
        return (score - low) / (high - low) if high > low else 0.0

    def overall(judgment: Judgment) -> float | None:
        scored = scoring.judgment(judgment)
        if scored is None or scored.total is not None:
            return None if scored is None else scored.total
        values = [scaled(name, score) for name, score in scored.scores.items()]
        return sum(values) / len(values)

    def on_dimension(judgment: Judgment) -> float | None:
        scored = scoring.judgment(judgment)
        score = None if scored is None else scored.scores.get(dimension)
        return None if score is None else scaled(dimension, score)

    if dimension == OVERALL:
        return Measure(overall)
    _check(dimension, list(ends))
    low, high = ends[dimension]
    return Measure(on_dimension, high - low)


def _check(dimension: str, names: Sequence[str]) -> None:
    if dimension not in names:
        near = nearest(dimension, [*names, OVERALL])
        there = ", ".join([OVERALL, *names])
        raise UsageError(
            f"there is no dimension {quoted(dimension)} to decide on",
            advice=f"Did you mean {quoted(near)}?" if near else f"There are: {there}",
        )
