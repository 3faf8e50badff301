"""The variants of one run: values of fields, or the candidates of pairs, and what is paired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.notes import Counts, Note, few
from evenhand.observation import OPPONENT_LENGTH, OVERALL, QUESTIONS, SUBJECT_LENGTH
from evenhand.stats.observations import (
    UNIT,
    Bools,
    Fields,
    Ints,
    Observations,
    field_named,
    place_of,
    plain_name,
)
from evenhand.stats.variants import (
    CANDIDATE,
    Entries,
    Measure,
    Variants,
    flag_measure,
    unit_entries,
    unit_measure,
)

USUAL = ("prompt_variant", "model")
"""Fields that tell variants apart most often."""
TOPIC = "topic"
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


def _unit_measures(table: Observations) -> list[Measure]:
    names = [*table.dimensions, *([OVERALL] if OVERALL in table.measures else [])]
    return [unit_measure(table, name) for name in names]


def _unit_flags(table: Observations) -> Iterator[Measure]:
    """Yield the tags and critical fails as shares; what was never given is not compared."""
    for name in table.flags:
        if np.nansum(table.column(name)):
            yield flag_measure(table, name)


def _candidates(table: Observations, baseline: str | None) -> Variants:
    """Return the pairs of a run that the baseline takes part in, two entries each: what the first
    candidate won, and what the second did."""
    judged = np.unique([table.first, table.second]).tolist()
    base, notes = choose(table.candidates if judged else (), baseline, CANDIDATE)
    if base not in judged:
        raise UsageError(
            f"no judged pair has the candidate {quoted(table.candidates[base])}",
            advice="Judge its pairs first: evenhand run",
        )
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
    entries = unit_entries(met, ())
    return Variants(
        names=tuple(table.candidates[place] for place in places),
        base=places.index(base),
        by=(CANDIDATE,),
        pair_by=(TOPIC,),
        is_duel=True,
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
