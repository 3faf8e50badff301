"""Two runs as one table, so that they are compared as variants are: paired by the unit's id,
pairs by topic and candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.measures import QUESTIONS
from evenhand.stats.comparison.compare import VariantScores, of_judge, variant_scores
from evenhand.stats.comparison.variants import judge_named
from evenhand.stats.tables import (
    FIRST,
    NONE,
    SECOND,
    UNIT,
    Bools,
    Field,
    Fields,
    Floats,
    Ints,
    Scores,
    Votes,
)
from evenhand.units import pair_key

RUN, QUESTION = "run", "question"


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
    if not pair_by and not _ids(scores) & _ids(baseline):
        raise UsageError(
            f"the runs {runs[0]} and {runs[1]} have no unit in common",
            advice="Units are paired by their ids; --pair-by FIELD names what they share instead.",
        )
    if judge is not None:
        _require_judge(judge, runs, (scores, baseline))
        scores, baseline = (of_judge(table, judge) for table in (scores, baseline))
    changed = _changed_scales(scores, baseline)
    tables = [_as_shares(table, changed) for table in (baseline, scores)]
    table = stacked(runs[::-1], tables)
    questions = [name for name in QUESTIONS if name in table.fields]
    pairing = list(pair_by) or [UNIT, *questions[:1]]
    variants = variant_scores(table, [RUN], runs[1], pair_by=pairing)
    return replace(variants, notes=list(_scale_notes(scores, baseline, changed)))


def _ids(scores: Scores) -> set[str]:
    """Return what the units of a run are paired by."""
    return set(scores.fields[UNIT].levels)


def _require_judge(
    judge: str, runs: tuple[str, str], tables: tuple[Scores, Scores] | tuple[Votes, Votes]
) -> None:
    """Raises UsageError for a judge that one of the runs does not have."""
    judges = tables[0].judges, tables[1].judges
    judge_named(list(dict.fromkeys((*judges[0], *judges[1]))), judge)
    for run, of_run in zip(runs, judges, strict=True):
        if judge not in of_run:
            there = ", ".join(map(quoted, of_run[:10]))
            raise UsageError(
                f"run {run} has no judge {quoted(judge)}",
                advice=f"Both runs must have it. That run has: {there}.",
            )


def _scale_notes(scores: Scores, baseline: Scores, changed: Sequence[str]) -> Iterator[str]:
    """What is not the same in both runs of what they are scored on."""
    alone = sorted(set(scores.dimensions) ^ set(baseline.dimensions))
    if alone:
        yield f"Only one of the runs has: {', '.join(alone)}."
    if changed:
        ours, theirs = _ends(scores), _ends(baseline)
        listed = "; ".join(f"{quoted(n)} {_span(theirs[n])} -> {_span(ours[n])}" for n in changed)
        yield f"Scales differ ({listed}), so shares of each run's own scale are compared, of 1."


def _span(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g} to {ends[1]:g}"


def _ends(scores: Scores) -> dict[str, tuple[float, float]]:
    ends = zip(scores.low.tolist(), scores.high.tolist(), strict=True)
    return dict(zip(scores.dimensions, ends, strict=True))


def _changed_scales(scores: Scores, baseline: Scores) -> list[str]:
    """The dimensions that have other ends in one run than in the other, on a unit that both have
    where units have their own; nothing where nobody says what the ends are."""
    if not (scores.given_scale and baseline.given_scale):
        return []
    ours, theirs = _ends(scores), _ends(baseline)
    has_points = scores.most is not None and baseline.most is not None
    return [
        name
        for name in sorted(ours.keys() & theirs.keys())
        if (_has_other_points(name, scores, baseline) if has_points else ours[name] != theirs[name])
    ]


def _has_other_points(name: str, scores: Scores, baseline: Scores) -> bool:
    """Whether a unit could have other points on a dimension in one run than in the other."""
    ours, theirs = _points(name, scores), _points(name, baseline)
    return any(ours[unit] != theirs[unit] for unit in ours.keys() & theirs.keys())


def _points(name: str, scores: Scores) -> dict[str, float]:
    """The points that each unit could have on a dimension, where its judgments say so."""
    if scores.most is None:
        return {}
    column = scores.most[:, scores.dimensions.index(name)]
    rows = np.flatnonzero(~np.isnan(column))
    return {scores.units[scores.unit[row]]: float(column[row]) for row in rows}


def _as_shares(scores: Scores, names: Sequence[str]) -> Scores:
    """The table with these dimensions scaled from their lowest to their highest, 0 to 1: of each
    judgment those that it says itself, or else those of the run."""
    if not names:
        return scores
    low, high, values = scores.low.copy(), scores.high.copy(), scores.values.copy()
    for place in map(scores.dimensions.index, names):
        most = np.full(values.shape[0], high[place])
        if scores.most is not None:
            most = np.where(np.isnan(scores.most[:, place]), most, scores.most[:, place])
        span = most - low[place]
        shares = (values[:, place] - low[place]) / np.where(span > 0, span, 1.0)
        # 7 of 60 and 3.5 of 30 are the same share, whatever their last bits are.
        values[:, place] = shares.round(12)
        low[place], high[place] = 0.0, 1.0
    return replace(scores, low=low, high=high, values=values)


def vote_run_variants(
    runs: tuple[str, str],
    votes: Votes,
    baseline: Votes,
    *,
    judge: str | None = None,
) -> VariantScores:
    """The same for pairs: what each candidate won of them, a dimension each. What all candidates
    win together is one half, whoever judges, so there is nothing overall."""
    candidates = [name for name in votes.candidates if name in baseline.candidates]
    if not candidates:
        raise UsageError(f"the runs {runs[0]} and {runs[1]} have no candidate in common")
    # Of two candidates the first says all that there is to say.
    names = candidates[: 1 if len(votes.candidates) == 2 else None]
    ours, theirs = votes, baseline
    if judge is not None:
        # What other judges are to say is not missing from this one.
        _require_judge(judge, runs, (votes, baseline))
        ours, theirs = (_votes_of(judge, table) for table in (votes, baseline))
    variants = run_variants(runs, win_rates(ours, names), win_rates(theirs, names))
    notes = [_changed(ours, theirs), *variants.notes]
    return replace(variants, notes=notes, has_overall=False)


def _votes_of(judge: str, votes: Votes) -> Votes:
    return votes.where(votes.judge == votes.judges.index(judge))


def _changed(votes: Votes, baseline: Votes) -> str:
    """How many judgments name another winner than the same judge did before."""
    before, now = _outcomes(baseline), _outcomes(votes)
    shared = before.keys() & now.keys()
    changed = sum(before[place] != now[place] for place in shared)
    return f"{changed} of {len(shared)} judgments that both runs have name another winner."


def _outcomes(votes: Votes) -> dict[tuple[str, str, int], int | str]:
    """Return what each judgment says of a pair: the name of the winner, or that there is none."""
    keys, outcomes = pair_keys(votes), dict[tuple[str, str, int], int | str]()
    columns = (votes.pair, votes.judge, votes.repeat, votes.outcome, votes.first, votes.second)
    for pair, judge, repeat, outcome, *both in zip(*(c.tolist() for c in columns), strict=True):
        if outcome != NONE:
            won = votes.candidates[both[outcome]] if outcome in (FIRST, SECOND) else outcome
            outcomes[keys[pair], votes.judges[judge], repeat] = won
    return outcomes


def pair_keys(votes: Votes) -> list[str]:
    """Return of each pair what it is known by in both runs."""
    keys = list(votes.pairs)
    columns = (votes.pair, votes.first, votes.second)
    for pair, *both in zip(*(column.tolist() for column in columns), strict=True):
        keys[pair] = pair_key(votes.pairs[pair], [votes.candidates[code] for code in both])
    return keys


def win_rates(votes: Votes, candidates: Sequence[str]) -> Scores:
    """Votes as scores of their pairs, a dimension per candidate: what it won of each. Pairs in
    which none of them takes part, or one against itself, say nothing and are left out."""
    values = np.full((votes.outcome.size, len(candidates)), np.nan)
    asked = np.zeros((len(votes.pairs), len(candidates)), dtype=np.bool_)
    others = votes.first != votes.second
    for column, name in enumerate(candidates):
        place = votes.candidates.index(name)
        for side, share in ((votes.first, 1 - votes.preference), (votes.second, votes.preference)):
            rows = (side == place) & others
            values[rows, column] = share[rows]
            asked[votes.pair[rows], column] = True
    planned = np.bincount(votes.pair, minlength=len(votes.pairs))
    topic = np.zeros(len(votes.pairs), dtype=np.int64)
    topic[votes.pair] = votes.topic
    kept: Bools = np.asarray(asked.any(axis=1))
    rows, moved = kept[votes.pair] & votes.made, np.cumsum(kept) - 1
    pairs, keys = (
        [name for name, is_kept in zip(names, kept, strict=True) if is_kept]
        for names in (votes.pairs, pair_keys(votes))
    )
    return Scores(
        dimensions=tuple(f"win rate of {name}" for name in candidates),
        low=np.zeros(len(candidates)),
        high=np.ones(len(candidates)),
        values=values[rows],
        asked=asked[kept],
        unit=moved[votes.pair[rows]],
        judge=votes.judge[rows],
        repeat=votes.repeat[rows],
        tags=np.zeros((int(rows.sum()), 0), dtype=np.bool_),
        tag_names=(),
        critical=np.zeros(int(rows.sum()), dtype=np.bool_),
        units=pairs,
        fields={
            UNIT: Field(np.arange(len(keys)), tuple(keys)),
            QUESTION: Field(topic[kept], tuple(votes.topics)),
        },
        id_fields=(UNIT,),
        judges=votes.judges,
        planned=planned[kept],
    )


def stacked(names: Sequence[str], tables: Sequence[Scores]) -> Scores:
    """Tables one under the other, with a field `run` that says which a unit is from. Only
    dimensions and failure tags that all of them have are there: who was never asked for tags gave
    none. Raises UsageError where they share no dimension."""
    first, *rest = tables
    dimensions = [
        name for name in first.dimensions if all(name in table.dimensions for table in rest)
    ]
    if not dimensions:
        raise UsageError("the runs have no dimension in common")
    tag_names = tuple(n for n in first.tag_names if all(n in t.tag_names for t in rest))
    judges = list(dict.fromkeys(judge for table in tables for judge in table.judges))
    places = [[table.dimensions.index(name) for name in dimensions] for table in tables]
    return Scores(
        dimensions=tuple(dimensions),
        low=np.min([t.low[at] for t, at in zip(tables, places, strict=True)], axis=0),
        high=np.max([t.high[at] for t, at in zip(tables, places, strict=True)], axis=0),
        values=np.concatenate([t.values[:, at] for t, at in zip(tables, places, strict=True)]),
        asked=_asked(tables, places),
        totals=_totals(tables),
        unit=np.concatenate([table.unit + at for table, at in _offsets(tables)]),
        judge=np.concatenate([_judges(table, judges) for table in tables]),
        repeat=np.concatenate([table.repeat for table in tables]),
        tags=np.concatenate([_columns_of(table, tag_names) for table in tables]),
        tag_names=tag_names,
        critical=np.concatenate([table.critical for table in tables]),
        tells_critical=all(table.tells_critical for table in tables),
        units=[unit for table in tables for unit in table.units],
        fields=_fields(names, tables),
        id_fields=(UNIT,),
        judges=tuple(judges),
        planned=np.concatenate([np.broadcast_to(t.planned, len(t.units)) for t in tables]),
        given_scale=all(table.given_scale for table in tables),
    )


def _offsets(tables: Sequence[Scores]) -> list[tuple[Scores, int]]:
    sizes = np.cumsum([0, *(len(table.units) for table in tables)])
    return [(table, int(at)) for table, at in zip(tables, sizes, strict=False)]


def _totals(tables: Sequence[Scores]) -> Floats | None:
    totals = [table.totals for table in tables if table.totals is not None]
    return np.concatenate(totals) if len(totals) == len(tables) else None


def _asked(tables: Sequence[Scores], places: Sequence[Sequence[int]]) -> Bools | None:
    """What the units of all tables say anything on; places are those of the dimensions in each."""
    asked = [
        table.asked[:, at]
        for table, at in zip(tables, places, strict=True)
        if table.asked is not None
    ]
    return np.concatenate(asked) if len(asked) == len(tables) else None


def _judges(table: Scores, judges: Sequence[str]) -> Ints:
    places = np.array([judges.index(name) for name in table.judges], dtype=np.int64)
    return places[table.judge] if table.judge.size else table.judge


def _columns_of(table: Scores, tag_names: Sequence[str]) -> Bools:
    places = [table.tag_names.index(name) for name in tag_names]
    return table.tags[:, np.array(places, dtype=np.int64)]


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
