"""How far judges agree, with people or with each other, and what labels correct in their means.

Coefficients are of pairs of ratings of one unit. Intervals treat the topic or question as what
varies: ratings of its units may hang together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from evenhand.errors import UsageError, quoted
from evenhand.stats.agreement import pairing
from evenhand.stats.agreement.closer import JudgeContrast, Rated, judge_contrasts
from evenhand.stats.agreement.corrected import corrected_rows, label_notes, levels_of
from evenhand.stats.agreement.figures import Kind, ScoreKind, Ties, VoteKind, whys
from evenhand.stats.agreement.pairing import TIE, Column, Pairs
from evenhand.stats.agreement.position import position_leans
from evenhand.stats.agreement.ratings import Joined, Ratings, join_scores, join_votes
from evenhand.stats.agreement.table import Agreement, CorrectedRow, Row
from evenhand.stats.tables import NONE, UNCERTAIN, Field, Ints, Scores, Votes, field_named

JUDGES = 10
"""Judges up to which every two of them are compared by themselves."""


def agreement_of_votes(
    votes: Votes,
    others: Votes | None = None,
    *,
    judges: Sequence[str] = (),
    other_judges: Sequence[str] = (),
    ties: Ties = "keep",
    majority: bool = False,
    split: int = TIE,
    by: str | None = None,
    level: float = 0.95,
) -> Agreement:
    """How far votes agree with other votes on the same pairs; without others, among their judges.

    `split` is what a side without a single most frequent vote comes to with `majority`: a tie, or
    0 or 1 for the first or second candidate by name.
    """
    joined = _chosen(join_votes(votes, others), votes is others, judges, other_judges)
    names = joined.candidates if len(joined.candidates) == 2 else ("first", "second")
    kind = VoteKind(ties=ties, split=split, level=level, labels=(*names, "tie"))
    notes = list(_vote_notes([table for table in (votes, others) if table is not None], ties))
    if len(joined.candidates) > 2:
        notes.append("first and second are the two candidates of a pair in order of their names")
    agreement = _agreement(_Request(joined, kind, majority, by), notes)
    judged_by = [joined.run.judges[judge] for judge in joined.run.present]
    leans = position_leans(votes, judged_by, level) if len(judged_by) <= JUDGES else ()
    return replace(agreement, positions=leans)


def _vote_notes(tables: Sequence[Votes], ties: Ties) -> Iterator[str]:
    if any((table.outcome == UNCERTAIN).any() for table in tables):
        yield "uncertain counts as a tie"
    if ties == "drop":
        yield "where either side is a tie, the two votes are left out"
    dropped = sum(int((table.conflict & (table.outcome == NONE)).sum()) for table in tables)
    if dropped:
        yield f"{dropped} judgments whose orders contradict each other are left out"
    if same := sum(int((table.first == table.second).sum()) for table in tables):
        yield f"left out: {same} of a candidate against itself"


def agreement_of_scores(
    scores: Scores,
    others: Scores | None = None,
    *,
    judges: Sequence[str] = (),
    other_judges: Sequence[str] = (),
    majority: bool = False,
    by: str | None = None,
    level: float = 0.95,
) -> Agreement:
    """How far scores agree with other scores of the same units; without others, among their
    judges. With `majority` each side's scores of a unit are brought to their mean."""
    joined = _chosen(join_scores(scores, others), scores is others, judges, other_judges)
    return _agreement(_Request(joined, ScoreKind(level=level), majority, by), [])


def _chosen(
    joined: Joined, same: bool, judges: Sequence[str], other_judges: Sequence[str]
) -> Joined:
    """The two sides with the chosen judges alone. Of one run, nobody is held against himself."""
    run, against = joined.run, joined.against
    if against is not None and other_judges:
        against = against.only(other_judges)
        if same:
            run = run.without(other_judges)
    if judges:
        run = run.only(judges)
    return replace(joined, run=run, against=against)


@dataclass(frozen=True, slots=True)
class _Request:
    """Which ratings are compared, of which kind, and by which field."""

    joined: Joined
    kind: Kind
    majority: bool
    by: str | None

    @property
    def field(self) -> Field | None:
        return None if self.by is None else field_named(self.joined.fields, self.by)


def _agreement(request: _Request, notes: list[str]) -> Agreement:
    run, against = request.joined.run, request.joined.against
    field = request.field
    dimensions, alone = _dimensions(run, against)
    if alone:
        notes.append(f"only one side has: {', '.join(alone)}")
    rated = _rated(run, dimensions)
    corrected: list[CorrectedRow] = []
    contrasts: tuple[JudgeContrast, ...] = ()
    if len(run.present) > JUDGES:
        notes.append(f"more than {JUDGES} judges are not compared two by two; see --judge")
    if against is None:
        run, rater_notes = _as_raters(run)
        notes += rater_notes
        matched = np.flatnonzero(_judges_per_unit(run, dimensions, request.joined.cluster.size) > 1)
        rows = [row for name in dimensions for row in _among(request, run, name, field)]
        only_run, only_other = np.setdiff1d(rated, matched).size, 0
    else:
        rated_against = _rated(against, dimensions)
        matched = np.intersect1d(rated, rated_against)
        rows = [row for name in dimensions for row in _against(request, name, field)]
        only_run, only_other = rated.size - matched.size, rated_against.size - matched.size
        corrected = corrected_rows(request.joined, dimensions, field, request.kind.level)
        contrasts = _contrasts(request, dimensions)
        notes += _side_notes(run, against, request.majority, matched.size)
        notes += label_notes(corrected)
    notes += _row_notes(rows)
    notes += _fragile_notes(rows)
    return Agreement(
        matched=matched.size,
        only_run=only_run,
        only_other=only_other,
        failed_run=_failed(run, dimensions),
        failed_other=0 if against is None else _failed(against, dimensions),
        rows=tuple(rows),
        corrected=tuple(corrected),
        judges=contrasts,
        notes=tuple(dict.fromkeys(notes)),
    )


def _dimensions(run: Ratings, against: Ratings | None) -> tuple[list[str], list[str]]:
    """Those of both sides, and those of one alone; raises UsageError where none is shared."""
    if against is None:
        return list(run.values), []
    shared = [name for name in run.values if name in against.values]
    if not shared and run.values and against.values:
        ours, theirs = (", ".join(map(quoted, side.values)) for side in (run, against))
        raise UsageError(
            f"the two sides have no dimension in common: {ours} against {theirs}",
            advice="Import one of them again with the other's names of dimensions.",
        )
    return shared, sorted(set(run.values) ^ set(against.values))


def _column(ratings: Ratings, name: str) -> Column:
    value = ratings.values[name]
    return Column(ratings.unit, ratings.judge, value).where(~np.isnan(value))


def _rated(ratings: Ratings, dimensions: Sequence[str]) -> Ints:
    """The units with at least one rating."""
    return np.unique(np.concatenate([_column(ratings, d).unit for d in dimensions] or [_NO_UNITS]))


_NO_UNITS = np.zeros(0, dtype=np.int64)


def _failed(ratings: Ratings, dimensions: Sequence[str]) -> int:
    columns = [np.isnan(ratings.values[name]) for name in dimensions]
    return int(np.logical_and.reduce(columns).sum()) if columns else 0


def _judges_per_unit(ratings: Ratings, dimensions: Sequence[str], count: int) -> Ints:
    """The most judges that a unit has on one dimension."""
    most = np.zeros(count, dtype=np.int64)
    for name in dimensions:
        column = _column(ratings, name)
        span = len(ratings.judges)
        units = np.unique(column.unit * span + column.judge) // span
        most = np.maximum(most, np.bincount(units, minlength=count))
    return most


def _against(request: _Request, name: str, field: Field | None) -> Iterator[Row]:
    """One side against the other: all judges, each judge, each variant."""
    joined, kind = request.joined, request.kind
    assert joined.against is not None
    run, against = _column(joined.run, name), _column(joined.against, name)
    single = kind.per_unit if request.majority else _as_they_are
    pairs = kind.pairs(pairing.against(single(run), single(against)))
    yield _compared(request, name, pairs)
    for judge, of_judge in _of_judges(request, name).items():
        yield replace(_compared(request, name, of_judge), judge=joined.run.judges[judge])
    for variant, code in levels_of(field):
        of_variant = pairs.where(field.codes[pairs.unit] == code) if field else pairs
        yield replace(_compared(request, name, of_variant), variant=variant)


def _of_judges(request: _Request, name: str) -> dict[int, Pairs]:
    """The ratings of each judge beside the labels; none where there is one judge alone."""
    joined, kind = request.joined, request.kind
    assert joined.against is not None
    run, against = _column(joined.run, name), _column(joined.against, name)
    single = kind.per_unit if request.majority else _as_they_are
    labels, present = single(against), joined.run.present
    return {
        judge: kind.pairs(pairing.against(single(run.where(run.judge == judge)), labels))
        for judge in (present if len(present) > 1 else ())
    }


def _contrasts(request: _Request, dimensions: Sequence[str]) -> tuple[JudgeContrast, ...]:
    """Every two judges on the same labels."""
    joined = request.joined
    if not 1 < len(joined.run.present) <= JUDGES:
        return ()
    rated = [
        Rated(
            dimension=name,
            judges=of_judges,
            cluster=joined.cluster,
            figures=request.kind.distances(list(of_judges.values()), joined.ends.get(name)),
        )
        for name in dimensions
        if (of_judges := _of_judges(request, name))
    ]
    return judge_contrasts(rated, joined.run.judges, request.kind.level)


def _as_they_are(column: Column) -> Column:
    return column


def _compared(request: _Request, name: str, pairs: Pairs, *, labelled: bool = True) -> Row:
    cluster = request.joined.cluster
    figures = request.kind.compared(pairs, cluster, labelled)
    return Row(
        dimension=name,
        units=pairs.units,
        clusters=int(np.unique(cluster[pairs.unit]).size),
        figures=figures,
        confusion=request.kind.confusion(pairs),
        is_fragile=request.kind.is_fragile(pairs, figures),
    )


def _as_raters(run: Ratings) -> tuple[Ratings, list[str]]:
    """Who is compared with whom in one run: its judges, or where there is one, its repeats."""
    if len(run.present) != 1:
        return run, []
    turn = _turns(run.unit)
    if turn.max(initial=0) == 0:
        return run, ["there is one judge and no repeat: nothing to compare"]
    names = tuple(f"repeat {number + 1}" for number in range(int(turn.max()) + 1))
    note = "there is one judge: its repeats are compared with each other"
    return replace(run, judge=turn, judges=names), [note]


def _turns(unit: Ints) -> Ints:
    """Of each row, how many rows of its unit stand before it."""
    order = np.argsort(unit, kind="stable")
    starts = np.searchsorted(unit[order], unit[order], "left")
    turns = np.empty_like(unit)
    turns[order] = np.arange(unit.size) - starts
    return turns


def _among(request: _Request, run: Ratings, name: str, field: Field | None) -> Iterator[Row]:
    """The judges of one run among themselves: all, every two, each variant."""
    kind = request.kind
    column = kind.column(kind.per_unit(_column(run, name), each=True))
    present = [int(judge) for judge in np.unique(column.judge)]

    def every(of: Column) -> Row:
        return (
            _two(request, name, of, run, *present)
            if len(present) == 2
            else _panel(request, name, of)
        )

    yield every(column)
    if 2 < len(present) <= JUDGES:
        for i, j in combinations(present, 2):
            yield _two(request, name, column, run, i, j)
    for variant, code in levels_of(field):
        of_variant = column.where(field.codes[column.unit] == code) if field else column
        yield replace(every(of_variant), variant=variant)


def _two(request: _Request, name: str, column: Column, run: Ratings, i: int, j: int) -> Row:
    pairs = pairing.against(column.where(column.judge == i), column.where(column.judge == j))
    row = _compared(request, name, pairs, labelled=False)
    return replace(row, judge=run.judges[i], other=run.judges[j])


def _panel(request: _Request, name: str, column: Column) -> Row:
    cluster = request.joined.cluster
    units = np.unique(pairing.among(column).unit)
    return Row(
        dimension=name,
        units=units.size,
        clusters=int(np.unique(cluster[units]).size),
        figures=request.kind.panel(column, cluster),
    )


def _side_notes(run: Ratings, against: Ratings, majority: bool, matched: int) -> Iterator[str]:
    if not matched:
        yield "no unit is rated by both sides: they are joined by the ids of their units"
    elif majority:
        yield "each side is one verdict a unit: its majority (no single one: a tie) or mean"
    elif max(
        run.unit.size - np.unique(run.unit).size, against.unit.size - np.unique(against.unit).size
    ):
        yield "a side has several judgments of a unit: each is held against each of the other side"


def _row_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Why figures are missing, once for all rows of which it is true."""
    reasons: dict[tuple[str, str], list[str]] = {}
    summary_rows = [row for row in rows if row.judge is None or len(rows) == 1]
    for row in summary_rows:
        for why, names in whys(row.figures).items():
            of = row.dimension if row.variant is None else f"{row.dimension}, {row.variant}"
            reasons.setdefault((why, ", ".join(names)), []).append(of)
    for (why, missing), places in reasons.items():
        where = "" if len(places) == len(summary_rows) else f"{'; '.join(places)}: "
        yield f"{where}{missing}: {why}"


def _fragile_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Of which dimensions the intervals may be too narrow."""
    names = dict.fromkeys(row.dimension for row in rows if row.is_fragile and row.variant is None)
    if names:
        yield (
            f"{', '.join(names)}: one unit more with ratings as far apart as any here would take"
            " the quadratic kappa out of its interval; if a judge errs so, rarely, and these units"
            " do not show it, the intervals of weighted coefficients and errors are too narrow"
        )
