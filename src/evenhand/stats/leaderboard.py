"""Leaderboards of a run, of each value of a field, of each criterion: a row for each candidate.

A win rate is a mean over pairs: a tie and a verdict that is uncertain count half, what has no
verdict is left out and counted. Ratings and ranks are those of `rating`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np

from evenhand.errors import UsageError
from evenhand.notebook import Shown, ShownTable
from evenhand.observation import OPPONENT_LENGTH, SUBJECT_LENGTH
from evenhand.stats.estimate import is_significant, mean
from evenhand.stats.leans import Orders, orders
from evenhand.stats.length import LEAST, length_controlled
from evenhand.stats.observations import Floats, Ints, Observations, field_named, place_of
from evenhand.stats.pairwise import Front, fronts_json, panel, tally, topic_fronts
from evenhand.stats.rating import (
    SAME,
    Ratings,
    Ties,
    pair_matches,
    rate,
    vote_matches,
)
from evenhand.words import Sentence, few

Scale = Literal["log", "elo"]
ELO = 400 / log(10)
VALUES = 200
"""So many values of a field have a board of their own at most."""
FRONT_VOTES = 200_000
"""Of more votes no fronts are listed: there would be a page of them for every topic."""
NAMED = 5
"""So many candidates are named in a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardOptions:
    """The settings for computing and showing ratings."""

    ties: Ties = "davidson"
    scale: Scale = "log"
    anchor: str | None = None
    length_controlled: bool = False
    level: float = 0.95


@dataclass(slots=True, kw_only=True)
class BoardRow:
    """One candidate."""

    candidate: str
    n: int
    """Pairs with a verdict, of which the win rate is the mean."""
    votes: int
    """Their votes: judgments of each judge and repeat."""
    win_rate: float | None
    low: float | None
    high: float | None
    p: float | None = None
    """Two-sided, of a win rate of one half."""
    rating: float | None = None
    rating_low: float | None = None
    """None where all votes are on one topic."""
    rating_high: float | None = None
    rank: int | None = None
    """Within its set; `rank_low` is the best that it may be."""
    rank_low: int | None = None
    rank_high: int | None = None
    pairs: int
    """Pairs with a verdict of the panel: wins, losses, ties and uncertain add up to it."""
    wins: int
    losses: int
    ties: int
    uncertain: int
    failed: int
    """Of votes, as `dropped`."""
    dropped: int
    se: float | None
    points: float
    """Wins, with half of what is tied or uncertain; the sum of preferences where they are soft. A
    pair is one point at most, as the mean of its votes."""
    average_win_rate: float | None
    """The mean of its win rates over the opponents it met, each weighing the same."""
    set: int | None = None
    length_controlled: float | None = None
    length_controlled_low: float | None = None
    length_controlled_high: float | None = None


@dataclass(slots=True, kw_only=True)
class Board:
    """The rows of some votes, by set, rating and name."""

    rows: list[BoardRow]
    n: int
    """Pairs with a verdict."""
    votes: int
    topics: int
    """The number of topics voted on; votes on one topic form a cluster."""
    failed: int
    dropped: int
    sets: int = 0
    tie_parameter: float | None = None
    matrix: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])

    def json(self) -> dict[str, Any]:
        # The matrix is large, and plain already: it is not copied cell by cell.
        figures = asdict(replace(self, matrix={}))
        return figures | {"matrix": self.matrix}


@dataclass(frozen=True, slots=True)
class Level:
    """The votes on units with one value of a field."""

    board: Board
    orders: Orders

    def json(self) -> dict[str, Any]:
        return self.board.json() | self.orders.json()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Leaderboard(Shown):
    """Everything that `evenhand leaderboard` says."""

    board: Board
    orders: Orders
    rule: str
    conflicts: int
    options: BoardOptions
    judge: str | None
    criterion: str | None
    by: str | None
    levels: dict[str, Level]
    """By the values of a field."""
    criteria: dict[str, Board]
    """Win rates by criterion."""
    fronts: Mapping[str, Front] = field(default_factory=dict[str, Front])
    trust: tuple[Sentence, ...] = ()
    """How far the judges themselves may be trusted."""

    def _tables(self) -> Iterator[ShownTable]:
        names = ("candidate", "win_rate", "low", "high", "rating", "wins", "losses", "ties")
        rows = [[getattr(row, name) for name in names] for row in self.board.rows]
        yield ShownTable(names, rows, notes=self.board.notes)

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        figures, options = self.board.json(), self.options
        return {
            "rows": figures.pop("rows"),
            **self.orders.json(),
            "fronts": fronts_json(self.fronts),
            "rule": self.rule,
            "conflicts": self.conflicts,
            **{name: getattr(options, name) for name in ("ties", "scale", "anchor", "level")},
            "judge": self.judge,
            "criterion": self.criterion,
            **figures,
            "by": {"field": self.by, "levels": {k: v.json() for k, v in self.levels.items()}}
            if self.by
            else {},
            "criteria": {
                name: _criterion_json(criterion_board)
                for name, criterion_board in self.criteria.items()
            },
        }


def rated_board(table: Observations, measure: str, options: BoardOptions) -> Board:
    """Return all figures: win rates, ratings and ranks, and what the options ask for."""
    board = plain_board(table, measure, options.level)
    if not board.n:
        board.notes.append(Sentence("notes.nothing_to_rate"))
        return board
    _rate(board, table, measure, options)
    if options.length_controlled:
        _control_length(board, table, measure, options.level)
    places = [table.candidates.index(row.candidate) for row in board.rows]
    rates, votes = (part[np.ix_(places, places)] for part in _meetings(_sides(table, measure)))
    cells = rates.astype(object)
    cells[votes == 0] = None
    names = [row.candidate for row in board.rows]
    board.matrix = {"candidates": names, "win_rate": cells.tolist(), "n": votes.tolist()}
    return board


def plain_board(table: Observations, measure: str, level: float) -> Board:
    """Return win rates alone, by win rate and name."""
    sides, is_apart, size = (
        _sides(table, measure),
        table.first != table.second,
        len(table.candidates),
    )
    is_open = np.isnan(table.column(measure)) & is_apart
    is_dropped = is_open & table.conflict & (table.rule == "drop")
    has_verdict = ~is_open & is_apart
    votes, failed, dropped = (
        np.bincount(np.append(table.first[rows], table.second[rows]), minlength=size)
        for rows in (has_verdict, is_open & ~is_dropped, is_dropped)
    )
    met, results = _meetings(sides), tally(table, panel(table, measure))
    order = np.argsort(sides.candidate, kind="stable")
    parts = np.split(order, np.searchsorted(sides.candidate[order], np.arange(1, size)))
    rows: list[BoardRow] = []
    for place in np.unique([table.first[is_apart], table.second[is_apart]]).tolist():
        won, topic = sides.won[parts[place]], sides.topic[parts[place]]
        rate = mean(won, topic, (0.0, 1.0), level, weigh="units")
        wins, losses, ties, uncertain = results[place].tolist()
        rows.append(
            BoardRow(
                candidate=table.candidates[place],
                n=rate.n,
                votes=int(votes[place]),
                win_rate=rate.value,
                low=rate.low,
                high=rate.high,
                p=rate.p,
                pairs=wins + losses + ties + uncertain,
                wins=wins,
                losses=losses,
                ties=ties,
                uncertain=uncertain,
                failed=int(failed[place]),
                dropped=int(dropped[place]),
                se=rate.error,
                points=float(won.sum()),
                average_win_rate=float(np.nanmean(met.rates[place])) if rate.n else None,
            )
        )
    rows.sort(key=lambda row: (-(row.win_rate or 0.0), row.candidate))
    topics = np.unique(sides.topic).size
    return Board(
        rows=rows,
        n=sides.won.size // 2,
        votes=int(has_verdict.sum()),
        topics=topics,
        failed=int((is_open & ~is_dropped).sum()),
        dropped=int(is_dropped.sum()),
        notes=[Sentence("notes.one_topic")] if topics == 1 else [],
    )


class _Sides(NamedTuple):
    """Every pair with a verdict from both sides: a candidate, its opponent, the share it won."""

    candidate: Ints
    opponent: Ints
    won: Floats
    topic: Ints
    size: int


def _sides(table: Observations, measure: str) -> _Sides:
    pairs = pair_matches(table, measure)
    return _Sides(
        np.append(pairs.first, pairs.second),
        np.append(pairs.second, pairs.first),
        np.append(pairs.won, 1 - pairs.won),
        np.append(pairs.topic, pairs.topic),
        pairs.size,
    )


class _Meetings(NamedTuple):
    """The win rate of each candidate (a row) against each other one, nan where they never met; and
    the number of pairs."""

    rates: Floats
    pairs: Ints


def _meetings(sides: _Sides) -> _Meetings:
    place, size = sides.candidate * sides.size + sides.opponent, sides.size
    pairs = np.bincount(place, minlength=size**2).reshape(size, size)
    points = np.bincount(place, sides.won, size**2).reshape(size, size)
    rates = np.full((size, size), np.nan)
    return _Meetings(np.divide(points, pairs, out=rates, where=pairs > 0), pairs)


def _rate(board: Board, table: Observations, measure: str, options: BoardOptions) -> None:
    """Put ratings and ranks on the rows."""
    rows = {row.candidate: row for row in board.rows}
    for number, rated in enumerate(rate(vote_matches(table, measure), options.ties), 1):
        _put(rows, rated, number, table.candidates, options)
        board.sets = number
        if number == 1:
            board.tie_parameter = rated.tie
    _rank_two(board, options.level)
    ends = board.sets + 1
    board.rows.sort(key=lambda row: (row.set or ends, row.rank or 0, row.candidate))
    if board.sets > 1:
        board.notes.append(Sentence("notes.sets", n=board.sets))


def _put(
    rows: Mapping[str, BoardRow],
    rated: Ratings,
    number: int,
    candidates: Sequence[str],
    options: BoardOptions,
) -> None:
    """Put the ratings and ranks of one set on its rows."""
    members = [candidates[place] for place in rated.members.tolist()]
    at = members.index(options.anchor) if options.anchor in members else None
    shift, unit = (1000.0, ELO) if options.scale == "elo" else (0.0, 1.0)
    ratings = [shift + unit * column for column in rated.intervals(options.level, at)]
    ranks = rated.ranks(options.level)
    for place, name in enumerate(members):
        row = rows[name]
        row.set = number
        known = (_none_if_nan(each[place]) for each in ratings)
        row.rating, row.rating_low, row.rating_high = known
        row.rank, row.rank_low, row.rank_high = (int(each[place]) for each in ranks)


def _rank_two(board: Board, level: float) -> None:
    """Give two candidates that met nobody else the ranks of their comparison: it is the same
    question, and has one answer."""
    sizes = Counter(row.set for row in board.rows if row.set is not None)
    for row in board.rows:
        if row.set is not None and sizes[row.set] == 2:
            row.rank = 1 if (row.win_rate or 0) > 0.5 - SAME else 2
            ends = (row.rank, row.rank) if is_significant(row.p, level) else (1, 2)
            row.rank_low, row.rank_high = ends


def _none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _control_length(board: Board, table: Observations, measure: str, level: float) -> None:
    """Put win rates at equal lengths on the rows."""
    ahead = (table.numbers(SUBJECT_LENGTH) - table.numbers(OPPONENT_LENGTH))[table.unit]
    won = table.column(measure)
    usable = (table.first != table.second) & ~np.isnan(ahead)
    for row in board.rows:
        place = table.candidates.index(row.candidate)
        first, second = usable & (table.first == place), usable & (table.second == place)
        controlled = length_controlled(
            np.concatenate([won[first], 1 - won[second]]),
            np.concatenate([-ahead[first], ahead[second]]),
            groups=np.concatenate([table.topic[first], table.topic[second]]),
            level=level,
        )
        if controlled is not None:
            row.length_controlled = controlled.win_rate
            row.length_controlled_low, row.length_controlled_high = controlled.low, controlled.high
    none = [row.candidate for row in board.rows if row.length_controlled is None]
    if none:
        names = few(none, NAMED)
        board.notes.append(Sentence("notes.no_length_control", candidates=names, n=LEAST))
    if len(none) < len(board.rows):
        board.notes.append(Sentence("notes.length_not_alpacaeval"))


def _criterion_json(board: Board) -> dict[str, Any]:
    """Return the win rates on a criterion; it has no ratings."""
    names = ("candidate", "n", "votes", "win_rate", "low", "high", "se")
    counts = ("pairs", "wins", "losses", "ties")
    rows = [{name: getattr(row, name) for name in (*names, *counts)} for row in board.rows]
    return {"n": board.n, "votes": board.votes, "rows": rows}


def leaderboard(
    table: Observations,
    options: BoardOptions | None = None,
    *,
    judge: str | None = None,
    criterion: str | None = None,
    by: str | None = None,
) -> Leaderboard:
    """Return the board of these votes, of one judge or on one criterion if it is named; raise
    UsageError for a name that is not there."""
    options = options or BoardOptions()
    _check(table, options, criterion)
    if judge is not None:
        table = table.of_judge(judge)
    measure = criterion or table.main
    return Leaderboard(
        board=rated_board(table, measure, options),
        orders=orders(table, options.level),
        rule=table.rule,
        conflicts=int(table.conflict.sum()),
        options=options,
        judge=judge,
        criterion=criterion,
        by=by,
        levels=_levels(table, measure, by, options) if by else {},
        criteria={name: plain_board(table, name, options.level) for name in table.dimensions},
        fronts=topic_fronts(table) if table.unit.size <= FRONT_VOTES else {},
    )


def _check(table: Observations, options: BoardOptions, criterion: str | None) -> None:
    if not 0 < options.level < 1:
        raise UsageError(Sentence("stats.no_share", level=options.level))
    if criterion is not None:
        place_of(table.dimensions, criterion, "criterion")
    if options.anchor is not None:
        place_of(table.candidates, options.anchor, "candidate")


def _levels(table: Observations, measure: str, by: str, options: BoardOptions) -> dict[str, Level]:
    """Return what each value of a field comes to, by the order in which values first come."""
    column, levels = field_named(table.fields, by), dict[str, Level]()
    if len(column.levels) > VALUES:
        counts = {"n": len(column.levels), "most": VALUES}
        raise UsageError(Sentence("stats.many_boards", field=by, **counts))
    for code, name in enumerate(column.levels):
        part = table.of_units(column.codes == code)
        if part.unit.size:
            board = rated_board(part, measure, options)
            levels[name] = Level(board, orders(part, options.level))
    return levels
