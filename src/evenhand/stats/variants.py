"""Observations laid out for a comparison: what belongs to which variant, and what is paired.

An entry is what one unit says of one variant. A unit that was scored is one entry; its variant is
the value of a field. A pair is two: what each candidate won of it, and its variants are the
candidates. Two runs are laid out with the run as the variant. From here on there is one way for
all of them: entries with the same key are paired, and keys about one question are a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.measures import QUESTIONS
from evenhand.notes import Counts, Note, few
from evenhand.observation import CRITICAL_FAIL, OPPONENT_LENGTH, OVERALL, SUBJECT_LENGTH, TAG
from evenhand.stats.observations import (
    UNIT,
    Bools,
    Field,
    Fields,
    Floats,
    Ints,
    Observations,
    Scale,
    field_named,
    place_of,
    plain_name,
)
from evenhand.units import pair_key

USUAL = ("prompt_variant", "model")
"""Fields that tell variants apart most often."""
RUN, CANDIDATE, TOPIC = "run", "candidate", "topic"
CRITICAL = "critical fail"
SHOWN = 5
"""So many names are listed in a note."""
_NO_VARIANT = (*QUESTIONS, UNIT, TOPIC, "id", "run_id", "length", SUBJECT_LENGTH, OPPONENT_LENGTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A dimension, `overall`, or the share of units with a tag. Of each entry the mean over judges
    and repeats, nan where there is none; and the least and the most that it could be if nothing
    were missing."""

    name: str
    values: Floats
    least: Floats
    most: Floats
    scale: Scale = field(default_factory=Scale)

    def of_entries(self, rows: Bools | Ints) -> Measure:
        """Return the measure of some entries."""
        values, least, most = (each[rows] for each in (self.values, self.least, self.most))
        return replace(self, values=values, least=least, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Of one variant: its units, how many lack a score, and its judgments.

    planned = scored + failed + pending.
    """

    units: int
    incomplete: int
    planned: int
    scored: int
    failed: int
    pending: int
    missing_scores: Mapping[str, int] = field(default_factory=dict[str, int])
    """By dimension, how many of the scored judgments say nothing on it."""
    unpaired: int = 0
    """Units that have no partner in a comparison with the baseline."""

    def json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The judgments of each entry."""

    unit: Ints
    """As a place in `Variants.units`."""
    due: Ints
    judged: Ints
    scored: Ints
    whole: Ints
    """Of these judgments, those that say something on every dimension."""
    silent: Ints
    """A column per dimension: the scored judgments that say nothing on it."""

    def where(self, rows: Bools) -> Entries:
        return Entries(**{name: getattr(self, name)[rows] for name in self.__slots__})

    @staticmethod
    def joined(parts: Sequence[Entries], starts: Sequence[int]) -> Entries:
        """Return the entries of several runs; the units of each begin at a place."""
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in Entries.__slots__
        }
        moved = [part.unit + start for part, start in zip(parts, starts, strict=True)]
        return Entries(**columns | {"unit": np.concatenate(moved)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """Entries by variant, one of which is the baseline."""

    names: tuple[str, ...]
    """In the order in which they first come."""
    base: int
    by: tuple[str, ...]
    pair_by: tuple[str, ...]
    variant: Ints
    """Of each entry; -1 where nothing says."""
    key: Ints
    cluster: Ints
    """Of each key."""
    measures: tuple[Measure, ...]
    """The dimensions, `overall` last if there is such a figure."""
    flags: tuple[Measure, ...] = ()
    """Failure tags and critical fails that were given, as shares."""
    entries: Entries
    units: Sequence[str]
    fields: Fields
    change: Measure | None = None
    """What units changed by, where that is no measure."""
    notes: tuple[str, ...] = ()
    """What is to be said of how they were laid out."""

    @property
    def baseline(self) -> str:
        return self.names[self.base]

    @property
    def others(self) -> list[int]:
        """The places of all variants but the baseline."""
        return [place for place in range(len(self.names)) if place != self.base]

    @property
    def is_duel(self) -> bool:
        """Return True where candidates were set against each other in pairs."""
        return self.by == (CANDIDATE,)

    @property
    def has_overall(self) -> bool:
        return bool(self.measures) and self.measures[-1].name == OVERALL

    @property
    def is_scale_known(self) -> bool:
        return all(measure.scale.is_known for measure in self.measures)

    def cells(self, values: Floats) -> Floats:
        """Return a value per entry as a row per key and a column per variant: the mean where
        several share a place, nan where none has a value."""
        valued = ~np.isnan(values) & (self.variant >= 0)
        size = self.cluster.size * len(self.names)
        place = self.key[valued] * len(self.names) + self.variant[valued]
        sums, counts = np.bincount(place, values[valued], size), np.bincount(place, minlength=size)
        means = np.full(size, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means.reshape(self.cluster.size, len(self.names))

    @property
    def present(self) -> Bools:
        """Of each key and variant, whether there is an entry at all, judged or not."""
        return np.asarray(~np.isnan(self.cells(np.zeros(self.variant.size))))

    def changed_measure(self) -> Measure:
        """Return what units change by: overall, where there are several dimensions and it is to be
        had, else the first."""
        if self.change is not None:
            return self.change
        last = self.measures[-1]
        is_told = self.is_duel or (len(self.measures) > 2 and np.isfinite(last.values).any())
        return last if is_told else self.measures[0]

    def members(self, place: int) -> dict[int, list[str]]:
        """Return the units of a variant by their key."""
        members: dict[int, list[str]] = {}
        rows = np.flatnonzero(self.variant == place)
        for key, unit in zip(
            self.key[rows].tolist(), self.entries.unit[rows].tolist(), strict=True
        ):
            members.setdefault(key, []).append(self.units[unit])
        return members

    def of_units(self, members: Bools) -> Variants:
        """Return the entries of some units alone."""
        rows = members[self.entries.unit]
        keys, key = np.unique(self.key[rows], return_inverse=True)
        return replace(
            self,
            variant=self.variant[rows],
            key=key,
            cluster=self.cluster[keys],
            measures=tuple(measure.of_entries(rows) for measure in self.measures),
            flags=tuple(flag.of_entries(rows) for flag in self.flags),
            change=self.change.of_entries(rows) if self.change else None,
            entries=self.entries.where(rows),
            notes=(),
        )

    def counts(self) -> dict[str, Count]:
        """Return what every variant lacks; of candidates, those beside the baseline."""
        present, there = self.present, self.entries
        in_all = np.asarray(present.all(axis=1))
        dimensions = [measure.name for measure in self.measures if measure.name != OVERALL]
        counts: dict[str, Count] = {}
        for place in self.others if self.is_duel else range(len(self.names)):
            rows = self.variant == place
            # A unit of the baseline takes part in every comparison.
            partners = in_all if place == self.base else present[:, self.base]
            due, judged, scored = (
                int(each[rows].sum()) for each in (there.due, there.judged, there.scored)
            )
            silent = there.silent[rows].sum(axis=0)
            counts[self.names[place]] = Count(
                units=int(rows.sum()),
                incomplete=int((there.whole[rows] < there.due[rows]).sum()),
                planned=due,
                scored=scored,
                failed=judged - scored,
                pending=due - judged,
                missing_scores={
                    name: int(n) for name, n in zip(dimensions, silent, strict=False) if n
                },
                unpaired=int((~partners[self.key[rows]]).sum()),
            )
        return counts


def lay_out(
    table: Observations,
    by: Sequence[str] = (),
    baseline: str | None = None,
    pair_by: Sequence[str] = (),
) -> Variants:
    """Return the variants of one run: values of the fields `by`, or the candidates of pairs.

    Units are paired on the fields of their ids less `by`, or on `pair_by`. Without a baseline the
    variant that comes first is taken. Raises UsageError for names that nobody has.
    """
    if table.is_pairs:
        return _candidates(table, baseline)
    names = [plain_name(table.fields, name) for name in by] or [_only_field(table)]
    variant, variants = _variant_codes(table.fields, names)
    base, notes = choose(variants, baseline)
    pairing = _pairing(table, names, pair_by)
    key = _field_codes(table.fields, pairing, len(table.units))
    return Variants(
        names=variants,
        base=base,
        by=tuple(names),
        pair_by=tuple(pairing),
        variant=variant,
        key=key,
        cluster=table.question[np.unique(key, return_index=True)[1]],
        measures=tuple(_unit_measures(table)),
        flags=tuple(_unit_flags(table)),
        entries=_unit_entries(table, table.dimensions),
        units=table.units,
        fields=table.fields,
        notes=tuple(notes),
    )


def lay_out_runs(
    runs: tuple[str, str],
    tables: tuple[Observations, Observations],
    pair_by: Sequence[str] = (),
) -> Variants:
    """Return two runs as variants, the second as the baseline: their units are paired by their
    ids, or by `pair_by`; pairs by id and candidates, with what each candidate won as a measure.
    Raises UsageError where they have nothing in common."""
    notes = tuple(_run_notes(*tables))
    if tables[0].is_pairs:
        candidates = _shared_candidates(runs, *tables)
        tables = (_about(tables[0], candidates), _about(tables[1], candidates))
        parts = [_won(table, candidates) for table in tables]
        change = _join_measures(*(_first_shares(table) for table in tables[::-1]))
    else:
        parts, change = _score_parts(*tables), None
    keys = [_run_keys(table, pair_by) for table in tables]
    if not set(keys[0]) & set(keys[1]):
        raise UsageError(
            f"the runs {runs[0]} and {runs[1]} have no unit in common",
            advice="Units are paired by their ids; --pair-by FIELD names what they share instead.",
        )
    # The baseline comes first, as everywhere.
    (run_measures, run_flags), (measures, flags) = parts
    run_table, table = tables
    numbers = {name: place for place, name in enumerate(dict.fromkeys([*keys[1], *keys[0]]))}
    key = np.array([numbers[name] for name in (*keys[1], *keys[0])], np.int64)
    question = [table.question, run_table.question + table.question.max(initial=0) + 1]
    entries = [_unit_entries(each, _plain_dimensions(each)) for each in (table, run_table)]
    return Variants(
        names=runs[::-1],
        base=0,
        by=(RUN,),
        pair_by=tuple(pair_by) or (UNIT,),
        variant=np.repeat([0, 1], [len(table.units), len(run_table.units)]),
        key=key,
        cluster=np.concatenate(question)[np.unique(key, return_index=True)[1]],
        measures=tuple(map(_join_measures, measures, run_measures)),
        flags=tuple(map(_join_measures, flags, run_flags)),
        entries=Entries.joined(entries, (0, len(table.units))),
        units=[*table.units, *run_table.units],
        fields=_join_fields(table, run_table),
        change=change,
        notes=notes,
    )


def choose(
    variants: Sequence[str], baseline: str | None, what: str = "variant"
) -> tuple[int, list[str]]:
    """Return the place of the baseline, and what to say where nobody named it; raise UsageError."""
    if not variants:
        raise UsageError(f"there is no {what} to compare", advice="Judge something first.")
    if baseline is None:
        sentence = f"No baseline was named: {quoted(variants[0])}, the first {what}, is taken."
        return 0, [Note(sentence, "no_baseline", variant=variants[0])]
    return place_of(variants, baseline, what), []


def variant_fields(table: Observations) -> list[str]:
    """Return the fields that variants may differ in: those with several values of which some units
    belong together. What was asked, and which repetition it was, tell no variants apart."""
    several = [name for name, column in table.fields.items() if len(column.levels) > 1]
    return [name for name in several if name not in _NO_VARIANT and _is_shared(table, name)]


def usual_fields(table: Observations) -> list[str]:
    """Return the field that units are compared by where nobody names one: of several that may tell
    variants apart, one that usually does; none where there is none."""
    return sorted(variant_fields(table), key=lambda name: name not in USUAL)[:1]


def _is_shared(table: Observations, name: str) -> bool:
    """Return True if units of different values of a field answer the same question."""
    try:
        key = _field_codes(table.fields, _pairing(table, [name], ()), len(table.units))
    except UsageError:
        return False
    codes = table.fields[name].codes
    both = np.unique(np.column_stack([key, codes])[codes >= 0], axis=0)
    return bool((np.bincount(both[:, 0]) > 1).any())


def _only_field(table: Observations) -> str:
    """Return the field that variants differ in where there is just one; raise UsageError."""
    names = variant_fields(table)
    if len(names) == 1:
        return names[0]
    if names:
        raise UsageError(
            f"the units differ in {', '.join(names[:-1])} and {names[-1]}: which tells the"
            " variants apart?",
            advice=f"--by {names[0]}, or `by` under [compare] in the suite.",
        )
    raise UsageError("nothing to compare by", advice=f"--by FIELD, of: {_list(table.fields)}")


def _variant_codes(fields: Fields, by: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """Return of each unit the variant, numbered in order of appearance, and their names."""
    parts = [field_named(fields, name) for name in by]
    numbers: dict[tuple[int, ...], int] = {}
    codes = np.full(parts[0].codes.size, -1, np.int64)
    for unit, values in enumerate(zip(*(part.codes.tolist() for part in parts), strict=True)):
        if min(values) >= 0:
            codes[unit] = numbers.setdefault(values, len(numbers))
    names = [
        " / ".join(part.levels[code] for part, code in zip(parts, values, strict=True))
        for values in numbers
    ]
    return codes, tuple(names)


def _pairing(table: Observations, by: Sequence[str], pair_by: Sequence[str]) -> list[str]:
    """Return the fields that units are paired on; raise UsageError."""
    if pair_by:
        names = [plain_name(table.fields, name) for name in pair_by]
        if clash := set(names) & set(by):
            raise UsageError(
                f"units cannot be paired on {quoted(min(clash))}: the variants differ in it",
                advice="Leave it out of --pair-by.",
            )
        return names
    # An id that stands for itself tells every unit apart, so nothing is shared.
    parts = () if table.id_fields == (UNIT,) else table.id_fields
    id_fields = [name for name in parts if name in table.fields and name not in by]
    questions = [name for name in QUESTIONS if name in table.fields and name not in by]
    if not id_fields and not questions:
        raise UsageError(
            f"nothing says which units of different {' / '.join(by)} belong together",
            advice=f"--pair-by FIELD names what they share, of: {_list(table.fields, by)}",
        )
    return id_fields or questions[:1]


def _list(fields: Fields, less: Sequence[str] = ()) -> str:
    return ", ".join(name for name in fields if name not in less) or "none"


def _field_codes(fields: Fields, names: Sequence[str], units: int) -> Ints:
    """Return one number for each combination of these fields, from 0; absent is a value too."""
    codes = np.zeros(units, dtype=np.int64)
    for name in names:
        joined = codes * (len(fields[name].levels) + 1) + fields[name].codes + 1
        codes = np.unique(joined, return_inverse=True)[1]
    return codes


def unit_measure(table: Observations, name: str, called: str = "") -> Measure:
    """Return a measure of each unit."""
    scale, sums, due = table.scale(name), table.unit_sums(name), table.due()
    return Measure(
        name=called or name,
        values=sums.means,
        least=sums.filled(due, scale.low),
        most=sums.filled(due, scale.high),
        scale=scale,
    )


def _unit_measures(table: Observations) -> list[Measure]:
    names = [*table.dimensions, *([OVERALL] if OVERALL in table.measures else [])]
    return [unit_measure(table, name) for name in names]


def _unit_flags(table: Observations) -> Iterator[Measure]:
    """Yield the tags and critical fails as shares; what was never given is not compared."""
    for name in table.flags:
        if np.nansum(table.column(name)):
            yield _flag(table, name)


def _flag(table: Observations, name: str) -> Measure:
    return unit_measure(table, name, CRITICAL if name == CRITICAL_FAIL else name.removeprefix(TAG))


def _unit_entries(table: Observations, dimensions: Sequence[str]) -> Entries:
    """Return the judgments of each unit."""
    size = len(table.units)
    columns = [np.isnan(table.column(name)) for name in dimensions]
    is_silent = np.column_stack(columns) if columns else np.zeros((table.unit.size, 0), np.bool_)
    # A pair that a conflict dropped has no winner, whatever its criteria say.
    is_scored = ~(np.isnan(table.column(table.main)) if table.is_pairs else table.failed)
    is_whole = is_scored & ~is_silent.any(axis=1)
    silent = [np.bincount(table.unit[is_scored & column], minlength=size) for column in is_silent.T]
    return Entries(
        unit=np.arange(size),
        due=np.maximum(table.due(), 1),
        judged=np.bincount(table.unit, minlength=size),
        scored=np.bincount(table.unit[is_scored], minlength=size),
        whole=np.bincount(table.unit[is_whole], minlength=size),
        silent=np.column_stack(silent) if silent else np.zeros((size, 0), np.int64),
    )


def _plain_dimensions(table: Observations) -> list[str]:
    """Return the dimensions that a judgment may be silent on: a pair is about its winner."""
    return [] if table.is_pairs else table.dimensions


def _candidates(table: Observations, baseline: str | None) -> Variants:
    """Return the pairs of a run that the baseline takes part in, two entries each: what the first
    candidate won, and what the second did."""
    base, notes = choose(table.candidates, baseline, CANDIDATE)
    is_self = table.subject == table.opponent
    is_met = ((table.subject == base) | (table.opponent == base)) & ~is_self
    notes += _pair_notes(table, base, is_met)
    met = table.of_units(is_met)
    there = set(np.concatenate([met.subject, met.opponent]).tolist()) | {base}
    places = [place for place in range(len(table.candidates)) if place in there]
    moved = np.full(len(table.candidates) + 1, -1, np.int64)
    moved[places] = np.arange(len(places))
    size = len(met.units)
    measures = [unit_measure(met, name) for name in met.dimensions]
    measures.append(unit_measure(met, met.main, OVERALL))
    entries = _unit_entries(met, ())
    return Variants(
        names=tuple(table.candidates[place] for place in places),
        base=places.index(base),
        by=(CANDIDATE,),
        pair_by=(TOPIC,),
        variant=moved[np.concatenate([met.subject, met.opponent])],
        key=np.tile(np.arange(size), 2),
        cluster=met.question,
        measures=tuple(_both_sides(measure) for measure in measures),
        entries=Entries.joined([entries, entries], (0, 0)),
        units=met.units,
        fields=met.fields,
        notes=tuple(notes),
    )


def _both_sides(measure: Measure) -> Measure:
    """Return what the first candidates won, and then what the second did."""
    return replace(
        measure,
        values=np.concatenate([measure.values, 1 - measure.values]),
        least=np.concatenate([measure.least, 1 - measure.most]),
        most=np.concatenate([measure.most, 1 - measure.least]),
    )


def _pair_notes(table: Observations, base: int, is_met: Bools) -> list[str]:
    """Return what is to be said of pairs before they are compared with a baseline."""
    notes: list[str] = []
    there = {*table.subject[is_met].tolist(), *table.opponent[is_met].tolist(), base}
    absent = [name for place, name in enumerate(table.candidates) if place not in there]
    if absent:
        listed = ", ".join(map(quoted, absent[:SHOWN]))
        more = f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else ""
        notes.append(
            Note(
                f"Never compared with the baseline: {listed}{more}."
                " evenhand leaderboard ranks all.",
                "never_compared",
                candidates=few(absent, SHOWN),
            )
        )
    if conflicts := int((table.conflict & is_met[table.unit]).sum()):
        notes.append(_conflict_note(conflicts, table, base, is_met))
    if itself := int((table.subject == table.opponent)[table.unit].sum()):
        are = (
            "verdict on a candidate against itself is"
            if itself == 1
            else ("verdicts on a candidate against itself are")
        )
        notes.append(Note(f"{itself} {are} left out.", "against_itself", n=itself))
    return notes


def _conflict_note(number: int, table: Observations, base: int, is_met: Bools) -> Note:
    """Return by which rule contradicting orders count, and of whom they are where several
    candidates were compared with the baseline."""
    counts = (
        "verdict whose orders contradict each other counts"
        if number == 1
        else ("verdicts whose orders contradict each other count")
    )
    sentence = f"{number} {counts} by the rule {quoted(table.rule)}"
    rows = table.conflict & is_met[table.unit]
    rivals = np.where(table.first == base, table.second, table.first)
    met = np.unique(np.where(table.subject == base, table.opponent, table.subject)[is_met])
    if met.size < 2:
        return Note(f"{sentence}.", "conflicts", n=number, rule=table.rule)
    found = np.bincount(rivals[rows], minlength=len(table.candidates))
    some = [(table.candidates[place], int(found[place])) for place in met.tolist() if found[place]]
    more = max(0, len(some) - SHOWN)
    listed = ", ".join(f"{quoted(name)} {count}" for name, count in some[:SHOWN])
    return Note(
        f"{sentence}: {listed}{f' and {more} more' if more else ''}.",
        "conflicts_by_candidate",
        n=number,
        rule=table.rule,
        candidates=Counts(some[:SHOWN], more),
    )


_Parts = tuple[list[Measure], list[Measure]]
"""The measures and the flags of one of two runs."""


def _score_parts(table: Observations, baseline: Observations) -> list[_Parts]:
    """Return what two runs of scores have in common; raise UsageError where that is nothing. A
    dimension that is on another scale in one of them is compared as shares."""
    names = [name for name in baseline.dimensions if name in table.measures]
    if not names:
        raise UsageError("the runs have no dimension in common")
    changed = _changed_scales(table, baseline)
    flags = [
        name
        for name in baseline.flags
        if name in table.measures
        and np.nansum(table.column(name)) + np.nansum(baseline.column(name))
    ]
    parts: list[_Parts] = []
    for each in (table, baseline):
        measures = [
            _as_shares(unit_measure(each, name))
            if name in changed
            else replace(
                unit_measure(each, name), scale=_wider(table.scale(name), baseline.scale(name))
            )
            for name in names
        ]
        parts.append(([*measures, unit_measure(each, OVERALL)], [_flag(each, n) for n in flags]))
    return parts


def _wider(scale: Scale, other: Scale) -> Scale:
    low, high = min(scale.low, other.low), max(scale.high, other.high)
    return Scale(low, high, scale.is_known and other.is_known)


def _as_shares(measure: Measure) -> Measure:
    low, high = measure.scale.ends
    span = (high - low) or 1.0
    # 7 of 60 and 3.5 of 30 are the same share, whatever their last bits are.
    values, least, most = (
        ((each - low) / span).round(12) for each in (measure.values, measure.least, measure.most)
    )
    return replace(measure, values=values, least=least, most=most, scale=Scale())


def _changed_scales(table: Observations, other: Observations) -> list[str]:
    """Return the dimensions that have other ends in one run than in the other."""
    return [
        name
        for name in table.dimensions
        if name in other.measures
        and table.scale(name).is_known
        and other.scale(name).is_known
        and table.scale(name) != other.scale(name)
    ]


def _run_notes(table: Observations, baseline: Observations) -> Iterator[str]:
    """Yield what is not the same in both runs of what they are judged on."""
    if table.is_pairs:
        yield _changed_winners(table, baseline)
        return
    alone = sorted(set(table.dimensions) ^ set(baseline.dimensions))
    if alone:
        yield f"Only one of the runs has: {', '.join(alone)}."
    if changed := _changed_scales(table, baseline):
        spans = [(baseline.scale(name), table.scale(name)) for name in changed]
        listed = "; ".join(
            f"{quoted(name)} {before.low:g} to {before.high:g} -> {now.low:g} to {now.high:g}"
            for name, (before, now) in zip(changed, spans, strict=True)
        )
        yield f"Scales differ ({listed}), so shares of each run's own scale are compared, of 1."


def _changed_winners(table: Observations, baseline: Observations) -> str:
    """Return how many judgments name another winner than the same judge did before."""
    now, before = _winners(table), _winners(baseline)
    shared = now.keys() & before.keys()
    changed = sum(now[place] != before[place] for place in shared)
    return f"{changed} of {len(shared)} judgments that both runs have name another winner."


def _winners(table: Observations) -> dict[tuple[str, str, int], str]:
    """Return the name of the winner of each judgment; empty where there is none."""
    keys, won = _run_keys(table, ()), table.column(table.main)
    winner = np.where(won > 0.5, table.first, np.where(won < 0.5, table.second, -1))
    columns = (table.unit, table.judge, table.repeat, winner, np.isnan(won))
    names = (*table.candidates, "")
    return {
        (keys[unit], table.judges[judge], repeat): names[place]
        for unit, judge, repeat, place, is_failed in zip(
            *(column.tolist() for column in columns), strict=True
        )
        if not is_failed
    }


def _run_keys(table: Observations, pair_by: Sequence[str]) -> list[str]:
    """Return of each unit what it is known by in both runs."""
    if table.is_pairs:
        names = table.candidates
        sides = zip(table.subject.tolist(), table.opponent.tolist(), strict=True)
        return [
            pair_key(unit, [names[first], names[second]])
            for unit, (first, second) in zip(table.units, sides, strict=True)
        ]
    columns = [field_named(table.fields, name) for name in pair_by or (UNIT,)]
    texts = [[(*column.levels, "")[code] for code in column.codes.tolist()] for column in columns]
    return ["\x00".join(values) for values in zip(*texts, strict=True)]


def _shared_candidates(
    runs: tuple[str, str], table: Observations, baseline: Observations
) -> list[str]:
    """Return the candidates that both runs have; of two the first says all that there is."""
    names = [name for name in table.candidates if name in baseline.candidates]
    if not names:
        raise UsageError(f"the runs {runs[0]} and {runs[1]} have no candidate in common")
    return names[: 1 if len(table.candidates) == 2 else None]


def _about(table: Observations, candidates: Sequence[str]) -> Observations:
    """Return the pairs that one of these candidates takes part in, and not against itself."""
    places = [table.candidates.index(name) for name in candidates]
    is_about = np.isin(table.subject, places) | np.isin(table.opponent, places)
    return table.of_units(is_about & (table.subject != table.opponent))


def _won(table: Observations, candidates: Sequence[str]) -> _Parts:
    """Return what each candidate won of its pairs. What all of them win together is one half,
    whoever judges, so there is nothing overall."""
    return [candidate_share(table, name) for name in candidates], []


def candidate_share(table: Observations, candidate: str) -> Measure:
    """Return what a candidate won of each pair; nan where it takes no part, or meets itself."""
    place, won = table.candidates.index(candidate), unit_measure(table, table.main)
    is_apart = table.subject != table.opponent
    is_first, is_second = (is_apart & (side == place) for side in (table.subject, table.opponent))

    def pick(first: Floats, second: Floats) -> Floats:
        return np.where(is_first, first, np.where(is_second, 1 - second, np.nan))

    return Measure(
        name=f"win rate of {candidate}",
        values=pick(won.values, won.values),
        least=pick(won.least, won.most),
        most=pick(won.most, won.least),
    )


def _first_shares(table: Observations) -> Measure:
    """Return of each pair what the candidate won whose name comes first."""
    won, names = unit_measure(table, table.main, OVERALL), np.array([*table.candidates, ""])
    is_turned = names[table.subject] > names[table.opponent]
    values = np.where(is_turned, 1 - won.values, won.values)
    return replace(won, values=values)


def _join_measures(baseline: Measure, run: Measure) -> Measure:
    values, least, most = (
        np.concatenate([getattr(baseline, name), getattr(run, name)])
        for name in ("values", "least", "most")
    )
    return replace(baseline, values=values, least=least, most=most)


def _join_fields(*tables: Observations) -> Fields:
    """Return the fields that all runs have, with one numbering."""
    fields: dict[str, Field] = {}
    for name in tables[0].fields:
        columns = [table.fields[name] for table in tables if name in table.fields]
        if len(columns) < len(tables):
            continue
        levels = list(dict.fromkeys(level for column in columns for level in column.levels))
        numbers = {level: place for place, level in enumerate(levels)}
        codes = [
            np.array([*(numbers[level] for level in column.levels), -1])[column.codes]
            for column in columns
        ]
        fields[name] = Field(np.concatenate(codes), tuple(levels))
    return fields
