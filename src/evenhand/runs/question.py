"""The question that a run is to decide, known before anything is judged: which units are set
against which, and what a verdict is worth.

Units are paired as `compare` pairs them, and what is about one question stays together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.errors import UsageError
from evenhand.jsontext import as_text
from evenhand.kinds.kind import ReadyKind, Scoring, Voting
from evenhand.observation import OVERALL, WINNER, read_observations
from evenhand.stats.layout import choose, lay_out
from evenhand.stats.observations import UNIT, FieldColumns, without_judgments
from evenhand.store.ports import StoredUnit
from evenhand.words import Sentence, few


class Contrast(NamedTuple):
    """The source of a value, by the numbers of the units: those of the variant against those of the
    baseline, or one pair of both; where it is `turned`, the variant stands first in it."""

    units: tuple[int, ...]
    against: tuple[int, ...] = ()
    turned: bool = False


@dataclass(frozen=True, slots=True)
class StopQuestion:
    """Everything that compares a variant with the baseline on one question; it makes one value."""

    name: str
    """What its place in the order is drawn from: the same however many variants there are."""
    contrasts: tuple[Contrast, ...]

    @property
    def units(self) -> tuple[int, ...]:
        """Return the numbers of all its units, each once."""
        every = (no for contrast in self.contrasts for no in (*contrast.against, *contrast.units))
        return tuple(dict.fromkeys(every))


@dataclass(frozen=True, slots=True)
class Planned:
    """The questions of each variant, the baseline that it is compared with, and what to say."""

    baseline: str
    questions: Mapping[str, Sequence[StopQuestion]]
    notes: tuple[str, ...]
    ids: Mapping[int, str]
    """Of the units, by their numbers."""


def planned_scores(
    scoring: Scoring, units: Iterable[StoredUnit], by: Sequence[str], baseline: str | None
) -> Planned:
    """Return the questions of a run of samples or answers; raise UsageError."""
    columns, ids = FieldColumns(), dict[int, str]()
    for unit in units:
        fields = scoring.unit(unit.body).fields
        given = {name: as_text(value) for name, value in fields.items() if value is not None}
        columns.add({UNIT: unit.id} | given)
        ids[unit.no] = unit.id
    numbers = {ident: no for no, ident in ids.items()}
    variants = lay_out(without_judgments(list(ids.values()), columns.fields()), by, baseline)
    base = variants.members(variants.base)
    questions: dict[str, list[StopQuestion]] = {}
    for place in variants.others:
        gathered: dict[int, list[Contrast]] = {}
        for key, members in variants.members(place).items():
            if key in base:
                ours, theirs = (
                    tuple(numbers[name] for name in names) for names in (members, base[key])
                )
                gathered.setdefault(int(variants.cluster[key]), []).append(Contrast(ours, theirs))
        questions[variants.names[place]] = [
            StopQuestion(
                min(ids[no] for each in contrasts for no in each.against), tuple(contrasts)
            )
            for contrasts in gathered.values()
        ]
    return Planned(variants.baseline, questions, variants.notes, ids)


def planned_pairs(voting: Voting, units: Iterable[StoredUnit], baseline: str | None) -> Planned:
    """Return the questions of a run of pairs: those that the baseline is one of; raise
    UsageError."""
    ids, rows = dict[int, str](), list[tuple[int, str, str, str]]()
    for unit in units:
        pair = voting.unit(unit.body)
        ids[unit.no] = unit.id
        rows.append((unit.no, pair.topic, *pair.candidates))
    names = list(dict.fromkeys(name for _, _, *pair_names in rows for name in pair_names))
    base, notes = choose(names, baseline, "candidate")
    gathered: dict[str, dict[str, list[Contrast]]] = {}
    for no, row, first, second in rows:
        if names[base] in (first, second):
            turned = second == names[base]
            topics = gathered.setdefault(first if turned else second, {})
            topics.setdefault(row, []).append(Contrast((no,), turned=turned))
    questions = {
        name: [StopQuestion(row, tuple(contrasts)) for row, contrasts in topics.items()]
        for name, topics in gathered.items()
    }
    return Planned(names[base], questions, tuple(notes), ids)


class StopMeasure(NamedTuple):
    """The measure that decides, among what judgments say in numbers."""

    name: str
    span: float = 1.0
    """How much 1 is on the dimension's own scale."""
    is_vote: bool = False

    def read(self, observations: str) -> float | None:
        """Return what a judgment says on it, from 0 to 1, of a pair for its second candidate; None
        where it says nothing of it."""
        for seen in read_observations(observations):
            if seen.measure == self.name and seen.pass_number == 0 and seen.value is not None:
                return 1 - seen.value if self.is_vote else seen.value
        return None


def deciding_measure(
    judging: ReadyKind, units: Iterable[StoredUnit], dimension: str
) -> StopMeasure:
    """Return the measure that decides a run; raise UsageError for a dimension that it has not."""
    measure = judging.kind.measure
    if isinstance(measure, Voting):
        _check(dimension, judging.dimensions)
        return StopMeasure(WINNER if dimension == OVERALL else dimension, is_vote=True)
    ends = dict(judging.ends)
    for unit in units:
        for name, (low, high) in measure.unit(unit.body).ends.items():
            span = ends.get(name, (low, high))
            ends[name] = (min(low, span[0]), max(high, span[1]))
    _check(dimension, list(ends))
    low, high = ends.get(dimension, (0.0, 1.0))
    return StopMeasure(dimension, high - low)


def _check(dimension: str, names: Sequence[str]) -> None:
    there = [OVERALL, *names]
    if dimension not in there:
        raise UsageError(Sentence("runs.no_dimension", name=dimension, names=few(there, 20)))
