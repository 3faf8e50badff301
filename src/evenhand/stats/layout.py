"""The variants of a run: values of fields, or the candidates of pairs; or two runs as variants.

Each way of laying out says which variant every unit belongs to, and what is paired with what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from evenhand.errors import UsageError
from evenhand.observation import OPPONENT_LENGTH, OVERALL, QUESTIONS, SUBJECT_LENGTH
from evenhand.stats.observations import (
    LISTED,
    NONE,
    UNIT,
    Bools,
    Field,
    Fields,
    Ints,
    Observations,
    Passes,
    Scale,
    field_named,
    in_name_order,
    place_of,
    plain_name,
    unit_keys,
    with_one_overall,
)
from evenhand.stats.variants import (
    CANDIDATE,
    Measure,
    Variants,
    candidate_share,
    flag_measure,
    unit_entries,
    unit_measure,
)
from evenhand.words import Names, Sentence, few

USUAL = ("prompt_variant", "model")
"""Fields that tell variants apart most often."""
TOPIC, RUN = "topic", "run"
SHOWN = 5
"""So many names are listed in a note."""
_NO_VARIANT = (*QUESTIONS, UNIT, TOPIC, "id", "run_id", "length", SUBJECT_LENGTH, OPPONENT_LENGTH)


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
        passes=tuple(unit_measure(table, name) for name in table.pass_measures),
        entries=unit_entries(table, table.dimensions),
        units=table.units,
        fields=table.fields,
        notes=tuple(notes),
    )


def choose(
    variants: Sequence[str], baseline: str | None, what: str = "variant"
) -> tuple[int, list[str]]:
    """Return the place of the baseline, and what to say where nobody named it; raise UsageError."""
    if not variants:
        raise UsageError(Sentence("stats.nothing_judged"))
    if baseline is None:
        key = "no_baseline_candidate" if what == "candidate" else "no_baseline"
        return 0, [Sentence(f"notes.{key}", variant=variants[0])]
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
        fields = few(names, LISTED)
        raise UsageError(Sentence("stats.several_fields", fields=fields, field=names[0]))
    raise UsageError(Sentence("stats.no_field", fields=few(list(table.fields), LISTED)))


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
            raise UsageError(Sentence("stats.paired_by_variant", field=min(clash)))
        return names
    # An id that stands for itself tells every unit apart, so nothing is shared.
    parts = () if table.id_fields == (UNIT,) else table.id_fields
    id_fields = [name for name in parts if name in table.fields and name not in by]
    questions = [name for name in QUESTIONS if name in table.fields and name not in by]
    if not id_fields and not questions:
        others = few([name for name in table.fields if name not in by], LISTED)
        raise UsageError(Sentence("stats.unpaired", by=Names(by), fields=others))
    return id_fields or questions[:1]


def _field_codes(fields: Fields, names: Sequence[str], units: int) -> Ints:
    """Return one number for each combination of these fields, from 0; absent is a value too."""
    codes = np.zeros(units, dtype=np.int64)
    for name in names:
        joined = codes * (len(fields[name].levels) + 1) + fields[name].codes + 1
        codes = np.unique(joined, return_inverse=True)[1]
    return codes


def _unit_measures(table: Observations) -> list[Measure]:
    names = [*table.dimensions, *([OVERALL] if OVERALL in table.measures else [])]
    return [unit_measure(table, name) for name in names]


def _unit_flags(table: Observations) -> Iterator[Measure]:
    """Yield the tags and critical fails as shares; what was never given is not compared."""
    for name in table.flags:
        if np.nansum(table.column(name)):
            yield flag_measure(table, name)


def _candidates(table: Observations, baseline: str | None) -> Variants:
    """Return the pairs of a run that the baseline takes part in."""
    judged = np.unique([table.first, table.second]).tolist()
    base, notes = choose(table.candidates if judged else (), baseline, CANDIDATE)
    if base not in judged:
        raise UsageError(Sentence("stats.no_judged_pair", candidate=table.candidates[base]))
    is_self = table.subject == table.opponent
    is_met = ((table.subject == base) | (table.opponent == base)) & ~is_self
    notes += _pair_notes(table, base, is_met)
    met = table.of_units(is_met)
    there = set(np.concatenate([met.subject, met.opponent]).tolist()) | {base}
    places = [place for place in range(len(table.candidates)) if place in there]
    moved = np.full(len(table.candidates) + 1, -1, np.int64)
    moved[places] = np.arange(len(places))
    variants = _sides(met, met.dimensions)
    return replace(
        variants,
        names=tuple(table.candidates[place] for place in places),
        base=places.index(base),
        variant=moved[variants.variant],
        notes=tuple(notes),
    )


def lay_out_candidates(table: Observations) -> Variants:
    """Return all pairs of a run, paired on the question: what each candidate won of it."""
    met = table.of_units(table.subject != table.opponent)
    questions, key = np.unique(met.question, return_inverse=True)
    return replace(_sides(met, ()), key=np.tile(key, 2), cluster=questions)


def _sides(table: Observations, dimensions: Sequence[str]) -> Variants:
    """Return pairs, two entries each: what the first candidate won, and what the second did."""
    both = np.tile(np.arange(len(table.units)), 2)
    measures = [unit_measure(table, name) for name in dimensions]
    measures.append(unit_measure(table, table.main, OVERALL))
    return Variants(
        names=table.candidates,
        base=0,
        by=(CANDIDATE,),
        pair_by=(TOPIC,),
        is_duel=True,
        variant=np.concatenate([table.subject, table.opponent]),
        key=both,
        cluster=table.question,
        measures=tuple(_both_sides(measure) for measure in measures),
        entries=unit_entries(table, ()).of_entries(both),
        units=table.units,
        fields=table.fields,
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
        notes.append(Sentence("notes.never_compared", candidates=few(absent, SHOWN)))
    return [*notes, *conflict_notes(table, is_met)]


def conflict_notes(table: Observations, units: Bools) -> Iterator[Sentence]:
    """Yield how many verdicts on these units had orders that contradict each other, if any."""
    if number := int((table.conflict & units[table.unit]).sum()):
        yield Sentence("notes.conflicts", n=number, rule=table.rule)


# Two runs


def lay_out_runs(
    runs: tuple[str, str],
    tables: tuple[Observations, Observations],
    pair_by: Sequence[str] = (),
) -> Variants:
    """Return two runs as variants, the second as the baseline: their units are paired by their
    ids, or by `pair_by`; pairs by id and candidates, with what each candidate won as a measure.
    Raises UsageError where they have nothing in common."""
    table, baseline = with_one_overall(*tables)
    notes, change = list[str](), None
    if table.is_pairs:
        candidates = [name for name in table.candidates if name in baseline.candidates]
        # Of two candidates the first says all that there is.
        candidates = candidates[: 1 if len(table.candidates) == 2 else None]
        if not candidates:
            raise UsageError(Sentence("stats.no_shared_candidate", run=runs[0], other=runs[1]))
        table, baseline = (_about(each, candidates) for each in (table, baseline))
    else:
        notes = list(_dimension_notes(table, baseline))
        changed = _changed_scales(table, baseline)
        table, baseline = (_as_shares(each, changed) for each in (table, baseline))
    keys = [unit_keys(each, pair_by) for each in (baseline, table)]
    if not set(keys[0]) & set(keys[1]):
        raise UsageError(Sentence("stats.no_shared_unit", run=runs[0], other=runs[1]))
    # The baseline comes first, as everywhere.
    both = _join(baseline, table)
    if both.is_pairs:
        measures = [candidate_share(both, name) for name in candidates]
        change = unit_measure(both, both.main, OVERALL)
    else:
        measures = _unit_measures(both)
        if not both.dimensions:
            raise UsageError(Sentence("stats.no_shared_dimension"))
    numbers = {name: place for place, name in enumerate(dict.fromkeys([*keys[0], *keys[1]]))}
    key = np.array([numbers[name] for name in (*keys[0], *keys[1])], np.int64)
    return Variants(
        names=runs[::-1],
        base=0,
        by=(RUN,),
        pair_by=tuple(pair_by) or (UNIT,),
        variant=np.repeat([0, 1], [len(each) for each in keys]),
        key=key,
        cluster=both.question[np.unique(key, return_index=True)[1]],
        measures=tuple(measures),
        flags=tuple(_unit_flags(both)),
        passes=tuple(unit_measure(both, name) for name in both.pass_measures),
        entries=unit_entries(both, () if both.is_pairs else both.dimensions),
        units=both.units,
        fields=both.fields,
        change=change,
        notes=tuple(notes),
    )


def _join(first: Observations, second: Observations) -> Observations:
    """Return two runs as one table of the measures and fields that both have, without the single
    passes. Units, questions and judges of each stay its own; candidates of one name are one."""
    tables = first, second
    measures = [name for name in first.measures if name in second.measures]
    candidates = list(dict.fromkeys([*first.candidates, *second.candidates]))
    moved = [
        np.array([*(candidates.index(name) for name in table.candidates), NONE]) for table in tables
    ]

    def both(name: str, start: int = 0) -> Ints:
        return np.concatenate([getattr(first, name), getattr(second, name) + start])

    columns = [[table.column(name) for name in measures] for table in tables]
    none = np.zeros(0, np.int64)
    return replace(
        first,
        measures=tuple(measures),
        scales=tuple(first.scale(name).joined(second.scale(name)) for name in measures),
        values=np.concatenate(columns, axis=1).T,
        unit=both("unit", len(first.units)),
        judge=both("judge", len(first.judges)),
        repeat=both("repeat"),
        conflict=np.concatenate([first.conflict, second.conflict]),
        passes=Passes(row=none, round=none, position=none, value=np.zeros(0)),
        units=[*first.units, *second.units],
        fields=_joined_fields(first, second),
        question=both("question", int(first.question.max(initial=0)) + 1),
        candidates=tuple(candidates),
        subject=np.concatenate([moved[at][table.subject] for at, table in enumerate(tables)]),
        opponent=np.concatenate([moved[at][table.opponent] for at, table in enumerate(tables)]),
        judges=(*first.judges, *second.judges),
        planned=np.concatenate([first.due(), second.due()])[:, None],
    )


def _joined_fields(first: Observations, second: Observations) -> Fields:
    """Return the fields that both runs have, with one numbering."""
    fields: dict[str, Field] = {}
    for name in (name for name in first.fields if name in second.fields):
        columns = first.fields[name], second.fields[name]
        levels = list(dict.fromkeys(level for column in columns for level in column.levels))
        numbers = {level: place for place, level in enumerate(levels)}
        codes = [
            np.array([*(numbers[level] for level in column.levels), -1])[column.codes]
            for column in columns
        ]
        fields[name] = Field(np.concatenate(codes), tuple(levels))
    return fields


def _about(table: Observations, candidates: Sequence[str]) -> Observations:
    """Return the pairs that one of these candidates takes part in, and not against itself, turned
    to the order of the candidates' names."""
    places = [table.candidates.index(name) for name in candidates]
    is_about = np.isin(table.subject, places) | np.isin(table.opponent, places)
    return in_name_order(table.of_units(is_about & (table.subject != table.opponent)))


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


def _as_shares(table: Observations, names: Sequence[str]) -> Observations:
    """Return the observations with some dimensions as shares of their own scale."""
    values, scales = table.values.copy(), list(table.scales)
    for name in names:
        at, (low, high) = table.measures.index(name), table.scale(name).ends
        # 7 of 60 and 3.5 of 30 are the same share, whatever their last bits are.
        values[:, at] = ((values[:, at] - low) / ((high - low) or 1.0)).round(12)
        scales[at] = Scale()
    return replace(table, values=values, scales=tuple(scales))


def _dimension_notes(table: Observations, baseline: Observations) -> Iterator[str]:
    """Yield what is not the same in both runs of what they are judged on."""
    alone = sorted(set(table.dimensions) ^ set(baseline.dimensions))
    if alone:
        yield Sentence("stats.one_run_only", dimensions=few(alone, LISTED))
    for name in _changed_scales(table, baseline):
        before, now = baseline.scale(name), table.scale(name)
        ends = {"low": before.low, "high": before.high, "now_low": now.low, "now_high": now.high}
        yield Sentence("stats.other_scale", dimension=name, **ends)
