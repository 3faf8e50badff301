"""Two runs laid out as variants: their units paired by id, their pairs by id and candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.observation import OVERALL
from evenhand.stats.observations import (
    UNIT,
    Field,
    Fields,
    Observations,
    Scale,
    field_named,
    mean_share,
)
from evenhand.stats.variants import (
    Entries,
    Measure,
    Variants,
    candidate_share,
    flag_measure,
    unit_entries,
    unit_measure,
)
from evenhand.units import pair_key

RUN = "run"


def lay_out_runs(
    runs: tuple[str, str],
    tables: tuple[Observations, Observations],
    pair_by: Sequence[str] = (),
) -> Variants:
    """Return two runs as variants, the second as the baseline: their units are paired by their
    ids, or by `pair_by`; pairs by id and candidates, with what each candidate won as a measure.
    Raises UsageError where they have nothing in common."""
    notes = tuple(_run_notes(*tables))
    tables = _with_one_overall(*tables)
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
    entries = [unit_entries(each, _plain_dimensions(each)) for each in (table, run_table)]
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


def _plain_dimensions(table: Observations) -> list[str]:
    """Return the dimensions that a judgment may be silent on: a pair is about its winner."""
    return [] if table.is_pairs else table.dimensions


_Parts = tuple[list[Measure], list[Measure]]
"""The measures and the flags of one of two runs."""


def _with_one_overall(
    table: Observations, baseline: Observations
) -> tuple[Observations, Observations]:
    """Return two runs whose overall scores mean the same. Where nobody says what the scales are,
    it is the mean of the dimensions, each as a share of the widest range that either run shows."""
    if table.is_pairs or (table.scale(OVERALL).is_known and baseline.scale(OVERALL).is_known):
        return table, baseline
    names = [name for name in table.dimensions if name in baseline.measures]
    if not names:
        return table, baseline
    scales = {name: _wider(table.scale(name), baseline.scale(name)) for name in names}
    return _rescale_overall(table, scales), _rescale_overall(baseline, scales)


def _rescale_overall(table: Observations, scales: Mapping[str, Scale]) -> Observations:
    columns, ends = map(table.column, scales), [scale.ends for scale in scales.values()]
    values = table.values.copy()
    values[:, table.measures.index(OVERALL)] = mean_share(list(columns), ends)
    return replace(table, values=values)


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
        parts.append(
            ([*measures, unit_measure(each, OVERALL)], [flag_measure(each, n) for n in flags])
        )
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
