"""The judgments of a run, read from the store as one `Observations`, and some units of a run,
selected by their fields: every command that reads a run selects here, and from then on the run is
those units."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from msgspec import structs

from evenhand.errors import UsageError
from evenhand.observation import (
    INFERRED_TYPE,
    OVERALL,
    TASK_TYPE,
    UNCERTAIN,
    WINNER,
    Ends,
    Rule,
    is_flag,
    is_passing,
    read_fields,
    read_observations,
)
from evenhand.runs.recorded import Recorded, Selection
from evenhand.stats.observations import (
    NONE,
    UNIT,
    Bools,
    FieldColumns,
    Floats,
    Ints,
    Observations,
    Passes,
    Scale,
    id_fields,
    mean_share,
    no_such_field,
    questions,
    suggest,
)
from evenhand.store.archive import Archive
from evenhand.store.ports import ObservedRow, Scope
from evenhand.words import Sentence

_Texts = Mapping[str, tuple[str, ...]]
_DIGITS = 9
"""The low end of a scale follows from a score and its share, but for the last bits."""


def observe(store: Archive, run: Recorded, rule: Rule | None = None) -> Observations:
    """Return the observations of a run, or of those of its units that were selected. Orders of a
    pair that contradict each other count by the rule; without one the run's own holds."""
    units, judgments = _Units(), _Judgments()
    for _, group in groupby(store.observations(run.scope), key=lambda row: row.position):
        rows = list(group)
        place = units.add(rows)
        for row in rows:
            if row.status is not None:
                judgments.add(place, row)
    imported = run.manifest.imported
    known_ends = imported.ends if imported else run.judging.ends
    measures = judgments.measure_columns(known_ends)
    for name in (WINNER, UNCERTAIN) if run.has_votes else (OVERALL,):
        measures.setdefault(name, _Column(np.full(judgments.size, np.nan), Scale()))
    passes, rule = judgments.passes(), rule or run.rule
    conflict = _apply(rule, measures, passes)
    fields = units.columns.fields()
    candidates, subject, opponent = units.pairs()
    source = run.manifest.judging.source
    return Observations(
        measures=tuple(measures),
        scales=tuple(column.scale for column in measures.values()),
        values=_stack([column.values for column in measures.values()], judgments.size),
        unit=judgments.numbers(0),
        judge=judgments.numbers(1),
        repeat=judgments.numbers(2),
        conflict=conflict,
        passes=passes,
        units=units.ids,
        fields=fields,
        id_fields=id_fields(fields) if source is None else source.key,
        question=questions(fields, len(units.ids), "topic" if run.has_votes else UNIT),
        candidates=candidates,
        subject=subject,
        opponent=opponent,
        judges=tuple(run.names),
        planned=None if run.imported else _plan_counts(run, len(units.ids), judgments.left_out),
        failures=judgments.failures,
        left_out=len(judgments.left_out),
        rule=rule,
    )


def unit_fields(rows: Sequence[ObservedRow]) -> dict[str, str]:
    """Return the fields of a unit from the rows of its judgments. The type of a task that nobody
    gave is the one that the first judgment inferred."""
    fields = read_fields(rows[0].fields)
    typed = next((row for row in rows if row.status and INFERRED_TYPE in row.observations), None)
    if typed is None:
        return fields
    measures = (seen.measure for seen in read_observations(typed.observations))
    inferred = next((name for name in measures if name.startswith(INFERRED_TYPE)), "")
    return {TASK_TYPE: inferred.removeprefix(INFERRED_TYPE)} | fields


def _stack(columns: Sequence[Floats], size: int) -> Floats:
    return np.column_stack(columns) if columns else np.zeros((size, 0))


def _plan_counts(run: Recorded, units: int, left_out: Sequence[tuple[int, int]]) -> Ints:
    """Return how many judgments each judge is to give of each unit, less those it is left out
    of."""
    planned = np.tile([group.repeats for group in run.judge_groups], (units, 1))
    for unit, judge in left_out:
        planned[unit, judge] -= 1
    return planned


class _Units:
    """The units of a run, in their order."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.columns = FieldColumns()
        self._pairs: list[tuple[str, str]] = []
        self._is_judged: list[bool] = []

    def add(self, rows: Sequence[ObservedRow]) -> int:
        """Take the next unit, and return its place."""
        row = rows[0]
        self.ids.append(row.unit)
        self.columns.add({UNIT: row.unit} | unit_fields(rows))
        self._pairs.append((row.subject, row.opponent))
        self._is_judged.append(row.status is not None)
        return len(self.ids) - 1

    def pairs(self) -> tuple[tuple[str, ...], Ints, Ints]:
        """Return the candidates, and which of them each unit is about. They stand in the order in
        which they were judged, whatever is still to come."""
        numbers: dict[str, int] = {}
        for is_wanted in (True, False):
            for pair, is_judged in zip(self._pairs, self._is_judged, strict=True):
                if is_judged == is_wanted and pair != ("", ""):
                    for name in pair:
                        numbers.setdefault(name, len(numbers))
        codes = [[numbers.get(name, NONE) for name in pair] for pair in self._pairs]
        sides = np.array(codes, np.int64).reshape(-1, 2)
        return tuple(numbers), sides[:, 0], sides[:, 1]


class _Column(NamedTuple):
    """A measure: what each judgment says on it, and its scale."""

    values: Floats
    scale: Scale


class _Judgments:
    """Judgments, in their order; each observation is a cell in a column of its measure."""

    def __init__(self) -> None:
        self.size = 0
        self.failures: Counter[str] = Counter()
        self.left_out: list[tuple[int, int]] = []
        self._places = array("q")  # unit, judge, repeat
        self._cells: dict[str, tuple[array[int], array[float]]] = {}
        """By measure, the rows, and of each its share, points and most points."""
        self._passes, self._pass_values = array("q"), array("d")

    def add(self, unit: int, row: ObservedRow) -> None:
        """Take the next judgment of a unit."""
        observations = read_observations(row.observations)
        # Where no judge was asked, or no criterion was applicable, nothing is missing.
        if row.reason is None and all(is_passing(seen.measure) for seen in observations):
            self.left_out.append((unit, row.judge))
            if not observations:
                return
        if row.reason is not None:
            self.failures[row.reason] += 1
        self._places.extend((unit, row.judge, row.repeat))
        for seen in observations:
            if seen.pass_number == 0:
                rows, numbers = self._cells.setdefault(seen.measure, (array("q"), array("d")))
                rows.append(self.size)
                numbers.extend(map(_number, (seen.value, seen.points, seen.max_points)))
            elif seen.measure == WINNER:
                round_number = (seen.pass_number + 1) // 2
                self._passes.extend((self.size, round_number, seen.position or 0))
                self._pass_values.append(_number(seen.value))
        self.size += 1

    def numbers(self, part: int) -> Ints:
        return np.array(self._places, np.int64).reshape(-1, 3)[:, part]

    def passes(self) -> Passes:
        places = np.array(self._passes, np.int64).reshape(-1, 3)
        return Passes(
            row=places[:, 0],
            round=places[:, 1],
            position=places[:, 2],
            value=np.array(self._pass_values),
        )

    def measure_columns(self, ends: Ends) -> dict[str, _Column]:
        """Return every measure; `ends` are those of the rubric, as far as it has any."""
        columns: dict[str, _Column] = {}
        for name, (rows, numbers) in self._cells.items():
            if name.startswith(INFERRED_TYPE):
                continue  # a field of the unit
            cells = np.array(numbers).reshape(-1, 3).T
            values, scale = _to_measure(cells[0], cells[1], cells[2], ends.get(name))
            whole = np.full(self.size, np.nan)
            whole[np.asarray(rows)] = values
            columns[name] = _Column(whole, Scale() if is_passing(name) else scale)
        if columns and WINNER not in columns and OVERALL not in columns:
            scored = [
                each for name, each in columns.items() if not is_passing(name) and not is_flag(name)
            ]
            if scored:
                # Nobody says what the ends of the scales are: they are those of what was observed.
                shares = mean_share(
                    [each.values for each in scored], [each.scale.ends for each in scored]
                )
                columns[OVERALL] = _Column(shares, Scale(is_known=False))
        return columns


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _to_measure(
    shares: Floats, points: Floats, most: Floats, ends: tuple[float, float] | None
) -> tuple[Floats, Scale]:
    """Return a measure in points where all of it is on one scale, else as shares of it; as shares
    too where more points are worse."""
    if np.isnan(points).all() or (ends is not None and ends[0] > ends[1]):
        return shares, Scale()
    if np.isnan(most).all():
        with np.errstate(invalid="ignore"):
            return points, Scale(float(np.nanmin(points)), float(np.nanmax(points)), False)
    is_below = shares < 1
    lows = (points - shares * most)[is_below] / (1 - shares)[is_below]
    low_ends = np.unique(lows.round(_DIGITS))
    if np.unique(most).size > 1 or low_ends.size > 1:
        # 7 of 60 and 3.5 of 30 are the same share, whatever their last bits are.
        return shares.round(12), Scale()
    low = float(low_ends[0]) if low_ends.size else ends[0] if ends else 0.0
    return points, Scale(low, float(most[0]))


def _apply(rule: Rule, measures: Mapping[str, _Column], passes: Passes) -> Bools:
    """Let orders that no round brought together count by the rule, in place; return whose
    judgments they are."""
    if UNCERTAIN not in measures:
        return np.zeros(next(iter(measures.values())).values.size, np.bool_)
    winner, uncertain = measures[WINNER].values, measures[UNCERTAIN].values
    conflict = np.asarray(uncertain == 1)
    if rule == "drop":
        winner[conflict] = np.nan
    elif rule == "tie":
        winner[conflict], uncertain[conflict] = 0.5, 0.0
    elif rule == "split":
        _split(winner, uncertain, conflict, passes)
    return conflict


def _split(winner: Floats, uncertain: Floats, conflict: Bools, passes: Passes) -> None:
    """Let each conflict come to the mean of what the orders of its last round say, in place."""
    size = winner.size
    last_round = np.zeros(size, np.int64)
    np.maximum.at(last_round, passes.row, passes.round)
    is_last = passes.round == last_round[passes.row]
    rows, values = passes.row[is_last], passes.value[is_last]
    counts = np.bincount(rows, minlength=size)
    is_told = conflict & (counts > 0)
    winner[is_told] = (np.bincount(rows, values, size) / np.maximum(counts, 1))[is_told]
    # Two orders that name different winners call nobody equal.
    has_tie = np.bincount(rows[values == 0.5], minlength=size) > 0
    uncertain[is_told] = ((winner == 0.5) & ~has_tie)[is_told]


# Some units of a run, by the fields of what was judged


def select(
    archive: Archive, run: Recorded, where: Sequence[str] = (), without: Sequence[str] = ()
) -> Recorded:
    """Return the run with only those units that each FIELD=VALUE of `where` holds for, of several
    values of one field any, and none of `without`. Raise UsageError for a field or value that no
    unit has, and if nothing is left."""
    if not where and not without:
        return run
    return _select(archive, run, _conditions("--where", where), _conditions("--without", without))


def _select(archive: Archive, run: Recorded, where: _Texts, without: _Texts) -> Recorded:
    levels: dict[str, dict[str, None]] = {}
    units, positions = 0, list[int]()
    for unit, fields in _units(archive, run.scope):
        texts = _texts(unit, fields)
        units += 1
        for name in texts:
            # Of fields that nobody asks about the name is enough.
            values = texts[name] if name in where or name in without else ()
            levels.setdefault(name, {}).update(dict.fromkeys(values))
        holds = (_holds(texts, condition) for condition in where.items())
        if all(holds) and not any(_holds(texts, condition) for condition in without.items()):
            positions.append(unit.position)
    for conditions in (where, without):
        _refuse_unknown(run, conditions, levels)
    selection = Selection(where=where, without=without, positions=tuple(positions), of=units)
    if not positions:
        about = {"run": run.id, "conditions": selection.condition}
        raise UsageError(Sentence("results.no_such_unit", **about))
    return Recorded(run.row, run.manifest, selection)


def _holds(texts: _Texts, condition: tuple[str, tuple[str, ...]]) -> bool:
    """Return True if a unit has one of the values of a field."""
    name, values = condition
    return not set(texts.get(name, ("",))).isdisjoint(values)


def same_units(
    archive: Archive, run: Recorded, other: Recorded, pair_by: Sequence[str] = ()
) -> Recorded:
    """Another run with only those units that a selected run has too, by their ids, or by topic and
    candidates; the other run as it is where nothing was selected. Units that are paired by fields
    have ids of their own in each run, so there the conditions are put to the other run as well:
    raises UsageError where it has no such field or value."""
    selection = run.selection
    if selection is None:
        return other
    if other.id == run.id:
        return run
    if pair_by:
        return _select(archive, other, selection.where, selection.without)
    keys = {key for each in _units(archive, run.scope) for key in _keys(*each)}
    places = [
        (unit.position, not keys.isdisjoint(_keys(unit, fields)))
        for unit, fields in _units(archive, other.scope)
    ]
    positions = tuple(position for position, is_there in places if is_there)
    part = structs.replace(selection, positions=positions, of=len(places))
    return Recorded(other.row, other.manifest, part)


def _units(archive: Archive, scope: Scope) -> Iterator[tuple[ObservedRow, dict[str, str]]]:
    """Yield a row of each unit, judged or not, and its fields."""
    for _, group in groupby(archive.observations(scope), key=lambda row: row.position):
        rows = list(group)
        yield rows[0], unit_fields(rows)


def _keys(unit: ObservedRow, fields: Mapping[str, str]) -> list[Hashable]:
    """Return the keys by which a unit is found in another run."""
    if not unit.subject:
        return [unit.unit]
    topic = fields.get("topic", "")
    return [unit.unit, (topic, *sorted((unit.subject, unit.opponent)))]


def _conditions(flag: str, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values that are asked for, by field; raise UsageError for what names none."""
    conditions: dict[str, tuple[str, ...]] = {}
    for condition in texts:
        name, equals, value = condition.partition("=")
        name = name.strip().removeprefix("meta.")
        if not name or not equals:
            raise UsageError(Sentence("results.no_condition", flag=flag, condition=condition))
        conditions[name] = (*conditions.get(name, ()), value.strip())
    return conditions


def _texts(unit: ObservedRow, fields: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each field of a unit, its id among them; a pair has two candidates."""
    texts: dict[str, tuple[str, ...]] = {"unit": (unit.unit,)}
    if unit.subject:
        texts["candidate"] = (unit.subject, unit.opponent)
    return texts | {name: (value,) for name, value in fields.items()}


def _refuse_unknown(
    run: Recorded, conditions: _Texts, levels: Mapping[str, Mapping[str, None]]
) -> None:
    for name, values in conditions.items():
        if name not in levels:
            raise no_such_field(name, levels)
        for value in values:
            # An empty value asks for units that do not say.
            if value and value not in levels[name]:
                what = Sentence("results.no_such_value", run=run.id, value=value, field=name)
                raise UsageError(what, advice=suggest(value, levels[name]))
