"""Two runs as one table, so that they are compared as variants are: paired by the unit's id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.stats.comparison.compare import VariantScores, compare_variants, variant_scores
from evenhand.stats.comparison.comparison import OVERALL, Comparison
from evenhand.stats.comparison.variants import QUESTIONS
from evenhand.stats.tables import NONE, Bools, Field, Fields, Floats, Ints, Scores, Votes

RUN, UNIT, TOPIC = "run", "unit", "topic"


def run_variants(
    runs: tuple[str, str],
    scores: Scores,
    baseline: Scores,
    *,
    pair_by: Sequence[str] = (),
    judge: str | None = None,
) -> VariantScores:
    """Two runs laid out as variants are, the second of `runs` as the baseline: paired by the ids of
    their units, or by `pair_by`. Raises UsageError where they have nothing in common."""
    if not pair_by and not set(scores.units) & set(baseline.units):
        raise UsageError(
            f"the runs {runs[0]} and {runs[1]} have no unit in common",
            advice="Units are paired by their ids; --pair-by FIELD names what they share instead.",
        )
    table = stacked(runs[::-1], (baseline, scores))
    questions = [name for name in (*QUESTIONS, TOPIC) if name in table.fields]
    pairing = list(pair_by) or [UNIT, *questions[:1]]
    variants = variant_scores(table, [RUN], runs[1], pair_by=pairing, judge=judge)
    return replace(variants, notes=list(_scale_notes(scores, baseline)))


def _scale_notes(scores: Scores, baseline: Scores) -> Iterator[str]:
    """What is not the same in both runs of what they are scored on."""
    alone = sorted(set(scores.dimensions) ^ set(baseline.dimensions))
    if alone:
        yield f"Only one of the runs has: {', '.join(alone)}."
    if scores.given_scale and baseline.given_scale:
        ours, theirs = _ends(scores), _ends(baseline)
        for name in sorted(ours.keys() & theirs.keys()):
            (low, high), (least, most) = ours[name], theirs[name]
            if (low, high) != (least, most):
                yield (
                    f"The scale of {quoted(name)} goes from {low:g} to {high:g} in one run and from"
                    f" {least:g} to {most:g} in the other."
                )


def _ends(scores: Scores) -> dict[str, tuple[float, float]]:
    ends = zip(scores.low.tolist(), scores.high.tolist(), strict=True)
    return dict(zip(scores.dimensions, ends, strict=True))


def vote_run_variants(
    runs: tuple[str, str],
    votes: Votes,
    baseline: Votes,
    *,
    judge: str | None = None,
) -> VariantScores:
    """The same for pairs: what each candidate won of them, a dimension each."""
    candidates = [name for name in votes.candidates if name in baseline.candidates]
    # Of two candidates the first says all that there is to say.
    names = candidates[: 1 if len(votes.candidates) == 2 else None]
    tables = win_rates(votes, names), win_rates(baseline, names)
    variants = run_variants(runs, *tables, judge=judge)
    return replace(variants, notes=[_changed(votes, baseline), *variants.notes])


def compare_vote_runs(variants: VariantScores, level: float, seed: int) -> Comparison:
    """The comparison of two runs of pairs: what all candidates win together is one half, whoever
    judges, so there is no overall row."""
    comparison = compare_variants(variants, level, seed)
    return replace(
        comparison,
        rows=tuple(row for row in comparison.rows if row.dimension != OVERALL),
        means=tuple(mean for mean in comparison.means if mean.dimension != OVERALL),
    )


def _changed(votes: Votes, baseline: Votes) -> str:
    """How many judgments name another winner than the same judge did before."""
    before, now = _outcomes(baseline), _outcomes(votes)
    shared = before.keys() & now.keys()
    changed = sum(before[place] != now[place] for place in shared)
    return f"{changed} of {len(shared)} judgments that both runs have name another winner."


def _outcomes(votes: Votes) -> dict[tuple[str, str, int], int]:
    columns = zip(votes.pair, votes.judge, votes.repeat, votes.outcome, strict=True)
    return {
        (votes.pairs[pair], votes.judges[judge], int(repeat)): int(outcome)
        for pair, judge, repeat, outcome in columns
        if outcome != NONE
    }


def win_rates(votes: Votes, candidates: Sequence[str]) -> Scores:
    """Votes as scores of their pairs, a dimension per candidate: what it won of each."""
    values = np.full((votes.outcome.size, len(candidates)), np.nan)
    for column, name in enumerate(candidates):
        place = votes.candidates.index(name)
        for side, share in ((votes.first, 1 - votes.preference), (votes.second, votes.preference)):
            rows = side == place
            values[rows, column] = share[rows]
    size, rows_of_pairs = len(votes.pairs), np.arange(len(votes.pairs))
    topic = np.zeros(size, dtype=np.int64)
    topic[votes.pair] = votes.topic
    return Scores(
        dimensions=tuple(f"win rate of {name}" for name in candidates),
        low=np.zeros(len(candidates)),
        high=np.ones(len(candidates)),
        values=values,
        unit=votes.pair,
        judge=votes.judge,
        repeat=votes.repeat,
        tags=np.zeros((values.shape[0], 0), dtype=np.bool_),
        tag_names=(),
        critical=np.zeros(values.shape[0], dtype=np.bool_),
        units=votes.pairs,
        fields={
            UNIT: Field(rows_of_pairs, tuple(votes.pairs)),
            TOPIC: Field(topic, tuple(votes.topics)),
        },
        id_fields=(UNIT,),
        judges=votes.judges,
        planned=0,
    )


def stacked(names: Sequence[str], tables: Sequence[Scores]) -> Scores:
    """Tables one under the other, with a field `run` that says which a unit is from. Only
    dimensions that all of them have are there; raises UsageError where that is none."""
    first, *rest = tables
    dimensions = [
        name for name in first.dimensions if all(name in table.dimensions for table in rest)
    ]
    if not dimensions:
        raise UsageError("the runs have no dimension in common")
    judges = list(dict.fromkeys(judge for table in tables for judge in table.judges))
    places = [[table.dimensions.index(name) for name in dimensions] for table in tables]
    return Scores(
        dimensions=tuple(dimensions),
        low=np.min([t.low[at] for t, at in zip(tables, places, strict=True)], axis=0),
        high=np.max([t.high[at] for t, at in zip(tables, places, strict=True)], axis=0),
        values=np.concatenate([t.values[:, at] for t, at in zip(tables, places, strict=True)]),
        totals=_totals(tables),
        unit=np.concatenate([table.unit + at for table, at in _offsets(tables)]),
        judge=np.concatenate([_judges(table, judges) for table in tables]),
        repeat=np.concatenate([table.repeat for table in tables]),
        tags=_tags(tables),
        tag_names=tuple(first.tag_names),
        critical=np.concatenate([table.critical for table in tables]),
        units=[unit for table in tables for unit in table.units],
        fields=_fields(names, tables),
        id_fields=(UNIT,),
        judges=tuple(judges),
        planned=np.concatenate([np.full(len(t.units), t.planned) for t in tables]),
        given_scale=all(table.given_scale for table in tables),
    )


def _offsets(tables: Sequence[Scores]) -> list[tuple[Scores, int]]:
    sizes = np.cumsum([0, *(len(table.units) for table in tables)])
    return [(table, int(at)) for table, at in zip(tables, sizes, strict=False)]


def _totals(tables: Sequence[Scores]) -> Floats | None:
    totals = [table.totals for table in tables if table.totals is not None]
    return np.concatenate(totals) if len(totals) == len(tables) else None


def _judges(table: Scores, judges: Sequence[str]) -> Ints:
    places = np.array([judges.index(name) for name in table.judges], dtype=np.int64)
    return places[table.judge] if table.judge.size else table.judge


def _tags(tables: Sequence[Scores]) -> Bools:
    names = tables[0].tag_names
    columns = [
        table.tags[:, [table.tag_names.index(name) for name in names]]
        if set(names) <= set(table.tag_names)
        else np.zeros((table.unit.size, len(names)), dtype=np.bool_)
        for table in tables
    ]
    return np.concatenate(columns)


def _fields(names: Sequence[str], tables: Sequence[Scores]) -> Fields:
    """The fields of all tables with one numbering, and which run a unit is from."""
    fields: dict[str, Field] = {}
    shared = [name for name in tables[0].fields if all(name in table.fields for table in tables)]
    for name in shared:
        levels = list(dict.fromkeys(v for table in tables for v in table.fields[name].levels))
        places = {level: place for place, level in enumerate(levels)}
        codes = [_renumbered(table.fields[name], places) for table in tables]
        fields[name] = Field(np.concatenate(codes), tuple(levels))
    sizes = [len(table.units) for table in tables]
    fields[RUN] = Field(np.repeat(np.arange(len(tables)), sizes), tuple(names))
    return fields


def _renumbered(field: Field, places: dict[str, int]) -> Ints:
    """The codes of a field under another numbering; what is absent stays so."""
    numbers = np.array([places[level] for level in field.levels] + [NONE], dtype=np.int64)
    return numbers[field.codes]
