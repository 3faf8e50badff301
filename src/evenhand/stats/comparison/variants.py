"""Which units belong to which variant, and which of them answer the same question.

Units are paired by a key: the fields that tell units apart, less those that name the variant.
Keys about one question are one cluster, since what is judged about a question hangs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenhand.errors import UsageError, nearest, quoted
from evenhand.measures import QUESTIONS
from evenhand.notes import Note
from evenhand.stats.questions import question_of
from evenhand.stats.tables import UNIT, Bools, Field, Fields, Floats, Ints, field_named

USUAL = ("prompt_variant", "model")
"""Fields that tell variants apart most often."""
_NO_VARIANT = (*QUESTIONS, UNIT, "id", "run_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The place of every unit: its variant (-1 where it has none) and its key."""

    variants: tuple[str, ...]
    """In the order in which they first come."""
    variant: Ints
    key: Ints
    cluster: Ints
    """Of each key."""
    by: tuple[str, ...]
    """The fields that the variants differ in."""
    pair_by: tuple[str, ...]

    @property
    def keys(self) -> int:
        return self.cluster.size

    def cells(self, values: Floats) -> Floats:
        """A value per unit, as a row per key and a column per variant: the mean where units share a
        place, nan where none has a value."""
        valued = ~np.isnan(values) & (self.variant >= 0)
        size = self.keys * len(self.variants)
        place = self.key[valued] * len(self.variants) + self.variant[valued]
        sums = np.bincount(place, values[valued], size)
        counts = np.bincount(place, minlength=size)
        means = np.full(size, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means.reshape(self.keys, len(self.variants))

    @property
    def present(self) -> Bools:
        """Whether a variant has a unit of a key at all, judged or not."""
        return np.asarray(~np.isnan(self.cells(np.zeros(self.variant.size))))


class Units(Protocol):
    """What is laid out: units with their fields, judged or not. A table of scores is one."""

    @property
    def units(self) -> Sequence[str]: ...
    @property
    def fields(self) -> Fields: ...
    @property
    def id_fields(self) -> tuple[str, ...]: ...


def layout(table: Units, by: Sequence[str], pair_by: Sequence[str] | None = None) -> Layout:
    """How the units of a table are compared by these fields; raises UsageError."""
    names = [name.removeprefix("meta.") if name not in table.fields else name for name in by]
    if not names:
        names = [_only_field(table)]
    variant, variants = _variants(table.fields, names)
    pairing = _pairing(table, names, pair_by)
    key = field_codes(table.fields, pairing, len(table.units))
    keys, first = np.unique(key, return_index=True)
    paired = {name: table.fields[name] for name in pairing}
    of_keys = {name: Field(column.codes[first], column.levels) for name, column in paired.items()}
    return Layout(
        variants=variants,
        variant=variant,
        key=key,
        cluster=question_of(of_keys, keys.size),
        by=tuple(names),
        pair_by=tuple(pairing),
    )


def variant_fields(table: Units) -> list[str]:
    """The fields that variants may differ in: those with several values of which some units belong
    together. What was asked and which repetition it was tell no variants apart."""
    several = [name for name, column in table.fields.items() if len(column.levels) > 1]
    return [name for name in several if name not in _NO_VARIANT and _shares(table, name)]


def usual_fields(table: Units) -> list[str]:
    """The field that units are compared by where nobody names one: of several that may tell
    variants apart, one that usually does; none where there is none."""
    return sorted(variant_fields(table), key=lambda name: name not in USUAL)[:1]


def _shares(table: Units, name: str) -> bool:
    """Whether units of different values of a field answer the same question."""
    try:
        places = layout(table, [name])
    except UsageError:
        return False
    return bool((places.present.sum(axis=1) > 1).any())


def _only_field(table: Units) -> str:
    """The field that variants differ in where there is just one; raises UsageError."""
    names = variant_fields(table)
    if len(names) == 1:
        return names[0]
    if names:
        raise UsageError(
            f"the units differ in {', '.join(names[:-1])} and {names[-1]}: which tells the"
            " variants apart?",
            advice=f"--by {names[0]}, or `by` under [compare] in the suite.",
        )
    raise UsageError("nothing to compare by", advice=f"--by FIELD, of: {_there(table.fields)}")


def _variants(fields: Fields, by: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """Of each unit the variant, numbered in order of appearance; -1 where a field is absent."""
    parts = [field_named(fields, name) for name in by]
    codes = np.zeros(parts[0].codes.size, dtype=np.int64)
    whole = np.ones(codes.size, dtype=np.bool_)
    for part in parts:
        codes = codes * (len(part.levels) + 1) + part.codes
        whole &= part.codes >= 0
    distinct, first, place = np.unique(codes[whole], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(distinct.size, dtype=np.int64)
    rank[order] = np.arange(distinct.size)
    variant = np.full(codes.size, -1, dtype=np.int64)
    variant[whole] = rank[place]
    opening = np.flatnonzero(whole)[first[order]]
    names = [" / ".join(part.levels[part.codes[unit]] for part in parts) for unit in opening]
    return variant, tuple(names)


def _pairing(table: Units, by: Sequence[str], pair_by: Sequence[str] | None) -> list[str]:
    """The fields that units are paired on."""
    if pair_by:
        for name in pair_by:
            field_named(table.fields, name)
        names = [n if n in table.fields else n.removeprefix("meta.") for n in pair_by]
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
            advice=f"--pair-by FIELD names what they share, of: {_there(table.fields, by)}",
        )
    return id_fields or questions[:1]


def _there(fields: Fields, less: Sequence[str] = ()) -> str:
    return ", ".join(name for name in fields if name not in less) or "none"


def field_codes(fields: Fields, names: Sequence[str], units: int) -> Ints:
    """One number for each combination of these fields, from 0; absent is a value too."""
    codes = np.zeros(units, dtype=np.int64)
    for name in names:
        joined = codes * (len(fields[name].levels) + 1) + fields[name].codes + 1
        codes = np.unique(joined, return_inverse=True)[1]
    return codes


def chosen(
    variants: Sequence[str], baseline: str | None, what: str = "variant"
) -> tuple[int, list[str]]:
    """The place of the baseline, and what to say where nobody named it; raises UsageError."""
    if not variants:
        raise UsageError(f"there is no {what} to compare", advice="Judge something first.")
    if baseline is None:
        sentence = f"No baseline was named: {quoted(variants[0])}, the first {what}, is taken."
        return 0, [Note(sentence, "no_baseline", variant=variants[0])]
    return _place(variants, baseline, what), []


def judge_named(judges: Sequence[str], name: str) -> int:
    """The place of a judge by its name; raises UsageError."""
    return _place(judges, name, "judge")


def _place(names: Sequence[str], name: str, what: str) -> int:
    if name not in names:
        near = nearest(name, names)
        there = ", ".join(map(quoted, names[:10])) or "none"
        raise UsageError(
            f"no {what} is called {quoted(name)}",
            advice=f"Did you mean {quoted(near)}?" if near else f"There are: {there}",
        )
    return names.index(name)


def unshared(table: Units, places: Layout, variant: int, baseline: int) -> list[str]:
    """Fields of the pairing in which two variants have nothing in common."""
    fields: list[str] = []
    for name in places.pair_by:
        codes = table.fields[name].codes
        if not np.intersect1d(
            codes[places.variant == variant], codes[places.variant == baseline]
        ).size:
            fields.append(name)
    return fields
