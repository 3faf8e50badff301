"""The judgments of a run, read from the store into the columns that statistics take."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from evenhand.judgment import JudgmentText
from evenhand.kinds.kind import Scoring, Voting
from evenhand.limits import PAGE_ROWS
from evenhand.measures import Ends, Rule, Scored, ScoredUnit, Voted, VotedUnit
from evenhand.results.pairs import CandidatesOfTopics, pair_question, row_sizes
from evenhand.runs.recorded import Recorded
from evenhand.stats.columns import Codes, Columns, id_fields, widen_ends
from evenhand.stats.pairwise import preferred, under
from evenhand.stats.tables import (
    FIRST,
    NONE,
    SECOND,
    TIE,
    UNCERTAIN,
    Bools,
    Fields,
    Floats,
    Ints,
    Passes,
    Scores,
    Seats,
    Votes,
)
from evenhand.store.ports import Archive, Scope, StoredUnit

T = TypeVar("T")
_MARKS = {"A+": FIRST, "B+": SECOND, "tie": TIE}
_NO_GROUP: tuple[int | None, Iterator[tuple[int, int, int, JudgmentText]]] = (None, iter(()))
_WINNERS = {"A": FIRST, "B": SECOND, "tie": TIE, "uncertain": UNCERTAIN, None: NONE}


class ScoreReading(NamedTuple):
    """The scores of a run, and how many judgments have none."""

    scores: Scores
    failures: Mapping[str, int]
    """By reason."""
    left_out: int


def _judged(store: Archive, scope: Scope) -> Iterator[tuple[int, int, int, JudgmentText]]:
    """Yield the judgments of a scope: unit, judge, repeat, text."""
    for unit, stored in store.judgments(scope):
        yield unit.no, stored.judge, stored.repeat, stored.text


def score_table(store: Archive, recorded: Recorded) -> Scores:
    """The scores of a run of samples or answers, with every unit of the run."""
    return read_scores(store, recorded).scores


def read_scores(store: Archive, recorded: Recorded) -> ScoreReading:
    """The same, with what the judgments without a score are."""
    measure, scope = recorded.kind.measure, recorded.scope
    assert isinstance(measure, Scoring), f"the kind {recorded.kind_name} has no scores"
    units = _ScoredUnits({} if recorded.imported else dict(recorded.judging.ends))
    for page in _pages(store.units(scope)):
        units.extend(page, [measure.unit(unit.body) for unit in page])
    tag_names = tuple(recorded.tag_names())
    rows, failures = _ScoreRows(tag_names), Counter[str]()
    left_out: list[tuple[int, int]] = []
    for judged in _pages(_judged(store, scope)):
        kept = [row for row in judged if row[3].status != "left_out"]
        left_out += [(units.places[no], at) for no, at, _, t in judged if t.status == "left_out"]
        failures.update(row[3].reason for row in kept if row[3].reason is not None)
        places = [(units.places[no], judge, repeat) for no, judge, repeat, _ in kept]
        read = recorded.kind.read_judgment
        rows.extend(places, [measure.judgment(read(row[3])) for row in kept])
    imported = recorded.manifest.imported
    if imported is not None:
        units.ends.update(imported.ends)
    low, high, is_given = rows.ends(units.ends)
    tags = rows.tags()
    if recorded.imported and not tags.any():
        # Nobody says whether those who gave these scores were asked for tags.
        tags, tag_names = tags[:, :0], ()
    fields = units.columns.fields()
    due = None if recorded.imported else _due(recorded, len(units.ids), left_out)
    planned: int | Ints = 0 if due is None else recorded.judgments_per_unit
    if due is not None and left_out:
        planned = due.sum(axis=1)
    scores = Scores(
        dimensions=tuple(rows.columns),
        low=np.array(low),
        high=np.array(high),
        values=rows.values(),
        most=rows.most(),
        totals=rows.totals(),
        unit=rows.place(0),
        judge=rows.place(1),
        repeat=rows.place(2),
        tags=tags,
        tag_names=tag_names,
        critical=np.array(rows.critical, dtype=np.bool_),
        tells_critical=not recorded.imported,
        units=units.ids,
        lengths=np.array(units.lengths),
        fields=fields,
        id_fields=_id_fields(recorded, fields),
        judges=tuple(recorded.names),
        planned=planned,
        due=due,
        given_scale=is_given,
    )
    return ScoreReading(scores, failures, len(left_out))


def _due(recorded: Recorded, units: int, left_out: Iterable[tuple[int, int]]) -> Ints:
    """How many judgments each judge is to give of each unit: what it left out is none of them."""
    due = np.tile([group.repeats for group in recorded.judge_groups], (units, 1))
    for unit, judge in left_out:
        due[unit, judge] -= 1
    return due


def _pages(rows: Iterable[T]) -> Iterator[list[T]]:
    """Rows some at a time."""
    rest = iter(rows)
    while page := list(islice(rest, PAGE_ROWS)):
        yield page


class _ScoredUnits:
    """The units of a run, gathered page by page."""

    def __init__(self, ends: dict[str, tuple[float, float]]) -> None:
        self.ends = ends
        """Of each dimension, as far as they are given."""
        self.ids: list[str] = []
        self.places: dict[int, int] = {}
        """By the number of a unit, which of them it is."""
        self.columns, self.lengths = Columns(), array("d")

    def extend(self, stored: Sequence[StoredUnit], scored: Sequence[ScoredUnit]) -> None:
        start = len(self.ids)
        self.ids += [unit.id for unit in stored]
        self.places.update({unit.no: place for place, unit in enumerate(stored, start)})
        self.lengths.extend([unit.length for unit in scored])
        for ident, (fields, ends, _) in zip(self.ids[start:], scored, strict=True):
            self.columns.add({"unit": ident, **fields})
            if ends:
                widen_ends(self.ends, ends)


def _id_fields(recorded: Recorded, fields: Fields) -> tuple[str, ...]:
    """The fields that tell the units apart; those that the import took, if it was one."""
    source = recorded.manifest.judging.source
    return id_fields(fields) if source is None else source.key


class _Cells:
    """The scores on one dimension: in which row, and how many points there are to be had."""

    def __init__(self) -> None:
        self.rows, self.scores, self.most = array("q"), array("d"), 0.0
        self.points = array("d")

    def reach(self, points: float | None) -> None:
        """Note how many points the last score is out of, where that is said."""
        if points is not None:
            self.points += array("d", [np.nan]) * (len(self.rows) - 1 - len(self.points))
            self.points.append(points)
            self.most = max(self.most, points)

    def all_points(self) -> array[float]:
        """The points of every score; nan where nobody says."""
        return self.points + array("d", [np.nan]) * (len(self.rows) - len(self.points))

    def ends(self) -> tuple[float, float]:
        return (0.0, self.most) if self.most else (min(self.scores), max(self.scores))


class _ScoreRows:
    """Judgments with scores, gathered page by page."""

    def __init__(self, tag_names: Sequence[str]) -> None:
        self.columns: dict[str, _Cells] = {}
        self.critical: list[bool] = []
        self._places = array("q")
        self._tag_names, self._tags = tag_names, list[tuple[int, int]]()
        self._totals = array("d")

    def extend(
        self, places: Sequence[tuple[int, int, int]], scored: Sequence[Scored | None]
    ) -> None:
        """The next judgments: their unit, judge and repeat, and what they say."""
        self._places.extend(chain.from_iterable(places))
        for row, judgment in enumerate(scored, len(self.critical)):
            self._add(row, judgment)

    def _add(self, row: int, scored: Scored | None) -> None:
        self.critical.append(scored is not None and scored.is_critical)
        self._totals.append(scored.total if scored and scored.total is not None else np.nan)
        if scored is None:
            return
        for name, score in scored.scores.items():
            cells = self._cells(name)
            cells.rows.append(row)
            cells.scores.append(score)
            cells.reach(scored.most.get(name))
        self._tag([(row, tag) for tag in scored.tags])

    def _cells(self, name: str) -> _Cells:
        cells = self.columns.get(name)
        if cells is None:
            cells = self.columns[name] = _Cells()
        return cells

    def _tag(self, tagged: Sequence[tuple[int, str]]) -> None:
        names = self._tag_names
        self._tags += [(row, names.index(tag)) for row, tag in tagged if tag in names]

    def ends(self, protocol_ends: Ends) -> tuple[list[float], list[float], bool]:
        """Of each dimension, and whether they are given; else they are those of the scores seen.
        What verdicts say of the points to be had beats the protocol."""
        are_given = all(cells.most or name in protocol_ends for name, cells in self.columns.items())
        pairs = [
            cells.ends() if cells.most or name not in protocol_ends else protocol_ends[name]
            for name, cells in self.columns.items()
        ]
        return [low for low, _ in pairs], [high for _, high in pairs], are_given

    def place(self, part: int) -> Ints:
        return np.array(self._places, dtype=np.int64).reshape(-1, 3)[:, part]

    def values(self) -> Floats:
        return self._table([cells.scores for cells in self.columns.values()])

    def most(self) -> Floats | None:
        """The points to be had in each judgment; None where no judgment says."""
        if not any(cells.most for cells in self.columns.values()):
            return None
        return self._table([cells.all_points() for cells in self.columns.values()])

    def _table(self, columns: Sequence[array[float]]) -> Floats:
        table = np.full((len(self.critical), len(self.columns)), np.nan)
        for place, cells in enumerate(self.columns.values()):
            table[np.asarray(cells.rows), place] = columns[place]
        return table

    def totals(self) -> Floats | None:
        """The totals of answers; None where there are none."""
        totals = np.array(self._totals)
        return None if np.isnan(totals).all() else totals

    def tags(self) -> Bools:
        table = np.zeros((len(self.critical), len(self._tag_names)), dtype=np.bool_)
        for row, tag in self._tags:
            table[row, tag] = True
        return table


def vote_table(
    store: Archive,
    recorded: Recorded,
    rule: Rule | None = None,
    *,
    with_seats: bool = False,
    with_pending: bool = False,
) -> Votes:
    """The votes of a run of pairs, with the seats of candidates for whoever wants fronts, and with
    a row for each judgment that is still to come for whoever counts what is missing. Without a rule
    for conflicts the run's own holds."""
    kind, scope = recorded.kind, recorded.scope
    measure, rows, candidates = kind.measure, _VoteRows(rule or recorded.rule), CandidatesOfTopics()
    assert isinstance(measure, Voting), f"the kind {kind.name} has no votes"
    judged = groupby(_judged(store, scope), key=lambda row: row[0])
    no, group = next(judged, _NO_GROUP)
    # Of a run in which nothing is judged there is nothing to say.
    planned = _planned(recorded) if with_pending and no is not None else []
    unjudged: list[tuple[str, VotedUnit]] = []
    for stored in store.units(scope):
        # Both come in the order of the units; one without a judgment counts for its topic alone.
        if stored.no != no and not with_seats and not planned:
            continue
        unit = measure.unit(stored.body)
        if with_seats:
            candidates.add(unit)
        if stored.no != no:
            if planned:
                unjudged.append((stored.id, unit))
            continue
        rows.begin(stored.id, unit)
        there = set[tuple[int, int]]()
        for _, judge, turn, text in group:
            there.add((judge, turn))
            if text.status != "left_out":
                rows.add(judge, turn, measure.judgment(kind.read_judgment(text)))
        rows.add_pending([place for place in planned if place not in there])
        no, group = next(judged, _NO_GROUP)
    # Candidates stand in the order in which they were judged, whatever is still to come.
    for ident, unit in unjudged:
        rows.begin(ident, unit)
        rows.add_pending(planned)
    sizes = None
    if with_seats:
        is_part = scope.positions is not None
        sizes = row_sizes(kind, store, recorded.id) if is_part else candidates.sizes
    return rows.table(tuple(recorded.names), sizes)


def _planned(recorded: Recorded) -> list[tuple[int, int]]:
    """The judgments that each unit is to have, by judge and repeat; none where they were made
    elsewhere."""
    groups = [] if recorded.imported else recorded.judge_groups
    return [(group.index, repeat) for group in groups for repeat in range(group.repeats)]


class _Opening(NamedTuple):
    """What all votes on a pair have in common."""

    places: tuple[int, int, int, int]
    """First, second, pair, topic."""
    lengths: list[float]
    fields: Mapping[str, Any]


class _VoteRows:
    """Judgments of pairs, gathered unit by unit."""

    def __init__(self, rule: Rule) -> None:
        self._rule: Rule = rule
        self._candidates, self._topics = Codes(), Codes()
        self._pairs, self._rows = list[str](), list[str]()
        self._columns = Columns()
        self._places = array("q")  # first, second, pair, topic, judge, repeat, outcome
        self._lengths, self._preferences = array("d"), array("d")
        self._marks: dict[str, tuple[array[int], array[int]]] = {}
        self._passes, self._preferred = array("q"), array("d")
        self._conflicts = array("b")
        self._pending = array("q")
        self._seats = array("q")  # first, second

    def begin(self, ident: str, unit: VotedUnit) -> None:
        """The next judgments are of this pair."""
        self._pairs.append(ident)
        self._rows.append(unit.topic)
        first, second = map(self._candidates.of, unit.candidates)
        self._seats.extend((first, second))
        self._pair = _Opening(
            (first, second, len(self._pairs) - 1, self._topics.of(pair_question(unit))),
            [np.nan if length is None else length for length in unit.lengths],
            unit.fields,
        )

    def add(self, judge: int, repeat: int, vote: Voted) -> None:
        row, is_conflict = len(self._preferences), vote.winner == "uncertain"
        vote = under(self._rule, vote)
        for name, mark in vote.marks.items():
            rows, marks = self._marks.setdefault(name, (array("q"), array("q")))
            rows.append(row)
            marks.append(_MARKS[mark])
        self._conflicts.append(is_conflict)
        self._places.extend((*self._pair.places, judge, repeat, _WINNERS[vote.winner]))
        self._lengths.extend(self._pair.lengths)
        self._preferences.append(_known(preferred(vote)))
        self._columns.add(self._pair.fields)
        for judged_pass in vote.passes if vote.is_order_known else ():
            if judged_pass.winner is not None and judged_pass.round == 1:
                self._passes.extend((row, judged_pass.order == "21", _WINNERS[judged_pass.winner]))
                self._preferred.append(_known(preferred(judged_pass)))

    def add_pending(self, places: Iterable[tuple[int, int]]) -> None:
        """Judgments that are still to come, by judge and repeat."""
        for judge, turn in places:
            self._pending.append(len(self._preferences))
            self.add(judge, turn, Voted(winner=None))

    def _seated(self, sizes: Mapping[str, int]) -> Seats:
        return Seats(candidates=np.array(self._seats, dtype=np.int64).reshape(-1, 2), sizes=sizes)

    def table(self, judges: tuple[str, ...], sizes: Mapping[str, int] | None) -> Votes:
        places = np.array(self._places, dtype=np.int64).reshape(-1, 7)
        lengths = np.array(self._lengths).reshape(-1, 2)
        passes = np.array(self._passes, dtype=np.int64).reshape(-1, 3)
        pending = np.zeros(len(places), dtype=np.bool_)
        pending[np.asarray(self._pending)] = True
        marks: dict[str, Ints] = {}
        for name, (rows, values) in self._marks.items():
            marks[name] = np.full(len(places), NONE, dtype=np.int64)
            marks[name][np.asarray(rows)] = values
        return Votes(
            candidates=self._candidates.levels,
            first=places[:, 0],
            second=places[:, 1],
            pair=places[:, 2],
            topic=places[:, 3],
            judge=places[:, 4],
            repeat=places[:, 5],
            outcome=places[:, 6],
            preference=np.array(self._preferences),
            marks=marks,
            first_length=lengths[:, 0],
            second_length=lengths[:, 1],
            fields=self._columns.fields(),
            pairs=self._pairs,
            rows=self._rows,
            seats=None if sizes is None else self._seated(sizes),
            topics=self._topics.levels,
            judges=judges,
            passes=Passes(
                vote=passes[:, 0],
                turned=passes[:, 1] == 1,
                outcome=passes[:, 2],
                preference=np.array(self._preferred),
            ),
            rule=self._rule,
            conflict=np.array(self._conflicts, dtype=np.bool_),
            pending=pending if self._pending else None,
        )


def _known(preference: float | None) -> float:
    return np.nan if preference is None else preference
