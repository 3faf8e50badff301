"""What a run is to decide, known before anything is judged: which units are set against which, and
what a verdict is worth.

Units are paired as `compare` pairs them, and what is about one question stays together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_core import from_json

from evenhand.errors import UsageError, nearest, quoted
from evenhand.kinds.kind import Judging
from evenhand.kinds.pairwise.judging import PairwiseJudging
from evenhand.kinds.weighted.judging import WeightedJudging
from evenhand.ledger.store import StoredUnit
from evenhand.stats.columns import Columns, id_fields, unit_fields, widen_ends
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.stats.comparison.variants import chosen, layout
from evenhand.stats.tables import Fields

_WINNERS = {"A": 0.0, "B": 1.0, "tie": 0.5, "uncertain": 0.5}
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
        every = (no for one in self.contrasts for no in (*one.against, *one.units))
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


def planned_scores(units: Iterable[StoredUnit], by: Sequence[str], baseline: str | None) -> Planned:
    """The questions of a run of samples or answers; raises UsageError."""
    columns, ids = Columns(), dict[int, str]()
    for unit in units:
        columns.add(unit_fields(unit.id, from_json(unit.body)))
        ids[unit.no] = unit.id
    made = layout(_Units(list(ids.values()), columns.fields()), by)
    base, notes = chosen(made.variants, baseline)
    cells: dict[int, dict[int, tuple[int, ...]]] = {}
    for no, key, variant in zip(ids, made.key.tolist(), made.variant.tolist(), strict=True):
        cell = cells.setdefault(key, {})
        cell[variant] = (*cell.get(variant, ()), no)
    clusters = made.cluster.tolist()
    gathered: dict[tuple[int, int], list[Contrast]] = {}
    for key, cell in cells.items():
        for variant in cell.keys() - {base, -1} if base in cell else ():
            place = (variant, clusters[key])
            gathered.setdefault(place, []).append(Contrast(cell[variant], cell[base]))
    questions: dict[str, list[Question]] = {
        name: [] for place, name in enumerate(made.variants) if place != base
    }
    for (variant, _), contrasts in gathered.items():
        name = min(ids[no] for one in contrasts for no in one.against)
        questions[made.variants[variant]].append(Question(name, tuple(contrasts)))
    return Planned(made.variants[base], questions, tuple(notes), ids)


def planned_pairs(units: Iterable[StoredUnit], baseline: str | None) -> Planned:
    """The questions of a run of pairs: those that the baseline is one of; raises UsageError."""
    ids, rows = dict[int, str](), list[tuple[int, str, str, str]]()
    for unit in units:
        body = from_json(unit.body)
        first, second = (one["id"] for one in body["candidates"])
        ids[unit.no] = unit.id
        rows.append((unit.no, body["row"], first, second))
    names = list(dict.fromkeys(name for _, _, *both in rows for name in both))
    base, notes = chosen(names, baseline, "candidate")
    gathered: dict[str, dict[str, list[Contrast]]] = {}
    for no, row, first, second in rows:
        if names[base] in (first, second):
            turned = second == names[base]
            topics = gathered.setdefault(first if turned else second, {})
            topics.setdefault(row, []).append(Contrast((no,), turned=turned))
    questions = {
        name: [Question(row, tuple(found)) for row, found in topics.items()]
        for name, topics in gathered.items()
    }
    return Planned(names[base], questions, tuple(notes), ids)


@dataclass(frozen=True, slots=True)
class Measure:
    """What a verdict is worth on the dimension that decides, from 0 to 1; None where it says
    nothing of it."""

    of: Callable[[Mapping[str, Any]], float | None]
    span: float = 1.0
    """How much 1 is on the dimension's own scale."""


def measure(judging: Judging, rubrics: Iterable[object], dimension: str) -> Measure:
    """The measure of a kind; raises UsageError for a dimension that it has not."""
    if isinstance(judging, PairwiseJudging):
        return _preference(judging, dimension)
    if isinstance(judging, WeightedJudging):
        return _points(judging, dimension)
    ends: dict[str, tuple[float, float]] = {}
    for rubric in rubrics:
        widen_ends(ends, rubric)
    return _bands(ends, dimension)


def _preference(judging: PairwiseJudging, dimension: str) -> Measure:
    """How far the second candidate is preferred, in all or on one criterion."""
    if dimension == OVERALL:
        return Measure(lambda output: output.get("preference", _WINNERS[output["winner"]]))
    _check(dimension, judging.criteria)
    return Measure(lambda output: _MARKS[output["criteria"][dimension]])


def _points(judging: WeightedJudging, dimension: str) -> Measure:
    if dimension == OVERALL:
        return Measure(lambda output: float(output["total_score"]) / 100)
    spoken = judging.languages[judging.default]
    _check(dimension, [one.id for one in spoken.dimensions])
    most = max(float(one.weights[dimension]) for one in spoken.types)
    return Measure(lambda output: output["score"][dimension] / most, most)


def _bands(ends: Mapping[str, tuple[float, float]], dimension: str) -> Measure:
    def scaled(name: str, given: Mapping[str, Any]) -> float:
        low, high = ends[name]
        return (float(given["score"]) - low) / (high - low) if high > low else 0.0

    def overall(output: Mapping[str, Any]) -> float:
        scores = [scaled(name, given) for name, given in output["scores"].items()]
        return sum(scores) / len(scores)

    if dimension == OVERALL:
        return Measure(overall)
    _check(dimension, list(ends))
    low, high = ends[dimension]

    def of(output: Mapping[str, Any]) -> float | None:
        given = output["scores"].get(dimension)
        return None if given is None else scaled(dimension, given)

    return Measure(of, high - low)


def _check(dimension: str, known: Sequence[str]) -> None:
    if dimension not in known:
        near = nearest(dimension, [*known, OVERALL])
        there = ", ".join([OVERALL, *known])
        raise UsageError(
            f"there is no dimension {quoted(dimension)} to decide on",
            advice=f"Did you mean {quoted(near)}?" if near else f"There are: {there}",
        )
