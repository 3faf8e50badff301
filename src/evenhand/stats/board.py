"""The figures of one set of votes: a row for each candidate, and what is to be said beside them.

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

from evenhand.notes import Note
from evenhand.observation import OPPONENT_LENGTH, SUBJECT_LENGTH, UNCERTAIN
from evenhand.stats.estimate import Estimate, log_odds_interval, mean
from evenhand.stats.length import length_controlled
from evenhand.stats.observations import (
    Floats,
    Ints,
    Observations,
)
from evenhand.stats.rating import (
    SAME,
    Matches,
    Ratings,
    Ties,
    pair_matches,
    pass_matches,
    rate,
    vote_matches,
)

Scale = Literal["log", "elo"]
ELO = 400 / log(10)
NAMED = 5
"""The most names that a note gives."""
EXCHANGED = 0.25
"""The least share of passes with a counterpart in the other order for a position term. Orders that
are drawn by chance give half or more."""
WON, LOST, TIED, OPEN = range(4)
"""The outcomes of a pair for its first candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings for computing and showing ratings."""

    ties: Ties = "davidson"
    scale: Scale = "log"
    anchor: str | None = None
    position: bool = False
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionTerm:
    """The advantage of being shown first, in log odds between equals."""

    term: float
    low: float | None
    high: float | None
    passes: int


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
    position: PositionTerm | None = None
    matrix: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])

    def json(self) -> dict[str, Any]:
        # The matrix is large, and plain already: it is not copied cell by cell.
        figures = asdict(replace(self, matrix={}))
        return figures | {"matrix": self.matrix}


def rated_board(table: Observations, measure: str, options: Options) -> Board:
    """Return all figures: win rates, ratings and ranks, and what the options ask for."""
    board = plain_board(table, measure, options.level)
    if not board.n:
        sentence = "No vote has a verdict: there is nothing to rate."
        board.notes.append(Note(sentence, "nothing_to_rate"))
        return board
    _rate(board, table, measure, options)
    if options.length_controlled:
        _control_length(board, table, measure, options.level)
    board.matrix = _matrix_json(board, table, _matrix(pair_matches(table, measure)))
    return board


def plain_board(table: Observations, measure: str, level: float) -> Board:
    """Return win rates alone, by win rate and name."""
    votes, pairs = vote_matches(table, measure), pair_matches(table, measure)
    is_apart, size = table.first != table.second, len(table.candidates)
    is_open = np.isnan(table.column(measure)) & is_apart
    is_dropped = is_open & table.conflict & (table.rule == "drop")
    met, rates = _matrix(pairs), _win_rates(pairs, level)
    results, averages = panel(table, measure).tally(size), met.averages
    votes_of, failed, dropped = (
        _appearances(first, second, size)
        for first, second in (
            (votes.first, votes.second),
            *(
                (table.first[rows], table.second[rows])
                for rows in (is_open & ~is_dropped, is_dropped)
            ),
        )
    )
    rows: list[BoardRow] = []
    for place in np.unique([table.first[is_apart], table.second[is_apart]]).tolist():
        wins, losses, ties, uncertain = results[place].tolist()
        rate = rates[place]
        rows.append(
            BoardRow(
                candidate=table.candidates[place],
                n=int(met.votes[place].sum()),
                votes=int(votes_of[place]),
                win_rate=rate.value,
                low=rate.low,
                high=rate.high,
                pairs=wins + losses + ties + uncertain,
                wins=wins,
                losses=losses,
                ties=ties,
                uncertain=uncertain,
                failed=int(failed[place]),
                dropped=int(dropped[place]),
                se=rate.error,
                points=float(met.points[place].sum()),
                average_win_rate=float(averages[place]) if rate.value is not None else None,
            )
        )
    rows.sort(key=lambda row: (-(row.win_rate or 0.0), row.candidate))
    topics = np.unique(votes.topic).size
    return Board(
        rows=rows,
        n=pairs.first.size,
        votes=votes.first.size,
        topics=topics,
        failed=int((is_open & ~is_dropped).sum()),
        dropped=int(is_dropped.sum()),
        notes=[*_vote_notes(int((~is_apart).sum()), topics)],
    )


def _vote_notes(against_itself: int, topics: int) -> Iterator[str]:
    if against_itself:
        noun, verb = ("vote", "is") if against_itself == 1 else ("votes", "are")
        sentence = f"{against_itself} {noun} on a candidate against itself {verb} left out."
        yield Note(sentence, "against_itself", n=against_itself)
    if topics == 1:
        yield Note(
            "All votes are on one topic: nothing says how far topics vary, so win rates have"
            " the interval that one observation leaves.",
            "one_topic",
        )


def _win_rates(matches: Matches, level: float) -> list[Estimate]:
    """Return the win rate of each candidate, pairs weighing alike."""
    candidate = np.concatenate([matches.first, matches.second])
    won = np.concatenate([matches.won, 1 - matches.won])
    topic = np.concatenate([matches.topic, matches.topic])
    order = np.argsort(candidate, kind="stable")
    parts = np.split(order, np.searchsorted(candidate[order], np.arange(1, matches.size)))
    return [mean(won[part], topic[part], (0.0, 1.0), level, weigh="units") for part in parts]


def _appearances(first: Ints, second: Ints, size: int) -> Ints:
    return np.bincount(first, minlength=size) + np.bincount(second, minlength=size)


class PanelResults(NamedTuple):
    """Of every pair with a verdict its candidates, and what it comes to for the first."""

    first: Ints
    second: Ints
    result: Ints

    def tally(self, size: int) -> Ints:
        """Return how often each candidate won, lost, tied, and had no clear result."""
        turned = np.array([LOST, WON, TIED, OPEN])[self.result]
        places = np.concatenate([self.first * 4 + self.result, self.second * 4 + turned])
        return np.bincount(places, minlength=size * 4).reshape(size, 4)


def panel(table: Observations, measure: str) -> PanelResults:
    """Return what more than half of the judges of each pair say, each by more than half of its
    repeats. Without such a majority a pair is uncertain, and on a criterion a tie."""
    won, is_main = table.column(measure), measure == table.main
    otherwise = OPEN if is_main else TIED
    rows = ~np.isnan(won) & (table.first != table.second)
    results = np.where(won > 0.5, WON, np.where(won < 0.5, LOST, TIED))
    if is_main:
        results[table.column(UNCERTAIN) == 1] = OPEN
    judges = max(len(table.judges), 1)
    places, group = np.unique(table.unit[rows] * judges + table.judge[rows], return_inverse=True)
    by_judge = _majorities(group, results[rows], places.size, otherwise)
    units, group = np.unique(places // judges, return_inverse=True)
    settled = _majorities(group, by_judge, units.size, otherwise)
    return PanelResults(table.subject[units], table.opponent[units], settled)


def _majorities(group: Ints, codes: Ints, size: int, otherwise: int) -> Ints:
    """Return of each group the code that more than half of its members have."""
    counts = np.bincount(group * 4 + codes, minlength=size * 4).reshape(size, 4)
    is_clear = 2 * counts.max(axis=1, initial=0) > counts.sum(axis=1)
    return np.where(is_clear, counts.argmax(axis=1), otherwise)


class _Matrix(NamedTuple):
    """The points of each candidate (a row) against each other one, and the number of pairs."""

    points: Floats
    votes: Ints

    @property
    def rates(self) -> Floats:
        """nan where two never met."""
        with np.errstate(invalid="ignore"):
            return np.where(self.votes > 0, self.points / self.votes, np.nan)

    @property
    def averages(self) -> Floats:
        """Of each candidate, the mean of its rates over the opponents it met."""
        met = (self.votes > 0).sum(axis=1)
        total = np.where(self.votes > 0, self.rates, 0).sum(axis=1)
        return np.where(met > 0, total / np.maximum(met, 1), np.nan)


def _matrix(matches: Matches) -> _Matrix:
    size = matches.size
    there, back = matches.first * size + matches.second, matches.second * size + matches.first
    votes = np.bincount(there, minlength=size**2) + np.bincount(back, minlength=size**2)
    points = np.zeros(size**2)
    points += np.bincount(there, matches.won, size**2) + np.bincount(back, 1 - matches.won, size**2)
    return _Matrix(points.reshape(size, size), votes.reshape(size, size))


def _matrix_json(board: Board, table: Observations, met: _Matrix) -> dict[str, Any]:
    places = [table.candidates.index(row.candidate) for row in board.rows]
    rates, votes = met.rates[np.ix_(places, places)], met.votes[np.ix_(places, places)]
    cells = rates.astype(object)
    cells[votes == 0] = None
    return {
        "candidates": [row.candidate for row in board.rows],
        "win_rate": cells.tolist(),
        "n": votes.tolist(),
    }


def _rate(board: Board, table: Observations, measure: str, options: Options) -> None:
    """Put ratings and ranks on the rows."""
    matches, has_position = vote_matches(table, measure), False
    if options.position:
        passes = pass_matches(table)
        exchanged = _exchanged_share(passes)
        has_position = exchanged >= EXCHANGED
        matches = passes if has_position else matches
        board.notes.append(
            "Ratings are fitted on the passes, each a vote, with a term for the first position."
            if has_position
            else _no_position(exchanged)
        )
    rows = {row.candidate: row for row in board.rows}
    for number, rated in enumerate(rate(matches, options.ties, position=has_position), 1):
        _put(rows, rated, number, table.candidates, options)
        board.sets = number
        if number == 1:
            board.tie_parameter = rated.tie
            board.position = _position_term(rated, matches.first.size, options.level)
    if not has_position:
        _place_two(board, table, measure, options.level)
    ends = board.sets + 1
    board.rows.sort(key=lambda row: (row.set or ends, row.rank or 0, row.candidate))
    if board.sets > 1:
        sentence = (
            f"The candidates fall into {board.sets} sets that never met: each is rated and"
            " ranked for itself, and ratings of different sets cannot be compared."
        )
        board.notes.append(Note(sentence, "sets", n=board.sets))


def _put(
    rows: Mapping[str, BoardRow],
    rated: Ratings,
    number: int,
    candidates: Sequence[str],
    options: Options,
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
        row.rating, row.rating_low, row.rating_high = (_known(each[place]) for each in ratings)
        row.rank, row.rank_low, row.rank_high = (int(each[place]) for each in ranks)


def _place_two(board: Board, table: Observations, measure: str, level: float) -> None:
    """Give two candidates that met nobody else the ranks of their comparison: it is the same
    question, and has one answer."""
    sizes = Counter(row.set for row in board.rows if row.set is not None)
    pairs = pair_matches(table, measure)
    for row in board.rows:
        if row.set is not None and sizes[row.set] == 2:
            place = table.candidates.index(row.candidate)
            met = (pairs.first == place) | (pairs.second == place)
            won = np.where(pairs.first == place, pairs.won, 1 - pairs.won)[met]
            p = mean(won, pairs.topic[met], (0.0, 1.0), level, weigh="units").p
            row.rank = 1 if (row.win_rate or 0) > 0.5 - SAME else 2
            is_told = p is not None and p <= 1 - level + 1e-12
            row.rank_low, row.rank_high = (row.rank, row.rank) if is_told else (1, 2)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _position_term(rated: Ratings, passes: int, level: float) -> PositionTerm | None:
    if rated.position is None or rated.position_error is None:
        return None
    low = high = None
    if rated.questions > 1:
        value, error = np.array([rated.position]), np.array([rated.position_error])
        low, high = (
            float(end[0]) for end in log_odds_interval(value, error, rated.questions, level)
        )
    return PositionTerm(term=rated.position, low=low, high=high, passes=passes)


def _exchanged_share(passes: Matches) -> float:
    """Return the share of passes that have a counterpart: the same two candidates in the other
    order. Only these tell a liking for the first position from a liking for a candidate."""
    counts = np.bincount(
        passes.first * passes.size + passes.second, minlength=passes.size**2
    ).reshape(passes.size, passes.size)
    return float(np.minimum(counts, counts.T).sum() / max(len(passes.first), 1))


def _no_position(exchanged: float) -> str:
    orders = (
        "all pairs of candidates were shown in one order only"
        if exchanged == 0
        else f"most pairs of candidates were shown in one order only ({100 * exchanged:.0f} % of"
        f" passes have a counterpart in the other order, {100 * EXCHANGED:.0f} % are needed)"
    )
    return f"No position term: {orders}, so that it cannot be told from the ratings."


def _control_length(board: Board, table: Observations, measure: str, level: float) -> None:
    """Put win rates at equal lengths on the rows."""
    ahead = (table.numbers(SUBJECT_LENGTH) - table.numbers(OPPONENT_LENGTH))[table.unit]
    won = table.column(measure)
    usable = (table.first != table.second) & ~np.isnan(ahead)
    none: list[str] = []
    for row in board.rows:
        place = table.candidates.index(row.candidate)
        first, second = usable & (table.first == place), usable & (table.second == place)
        controlled = length_controlled(
            np.concatenate([won[first], 1 - won[second]]),
            np.concatenate([-ahead[first], ahead[second]]),
            groups=np.concatenate([table.topic[first], table.topic[second]]),
            level=level,
        )
        if controlled is None:
            none.append(row.candidate)
            continue
        row.length_controlled = controlled.win_rate
        row.length_controlled_low, row.length_controlled_high = controlled.low, controlled.high
    if none:
        more = f" and {len(none) - NAMED} more" if len(none) > NAMED else ""
        board.notes.append(
            f"No length-controlled win rate for {', '.join(none[:NAMED])}{more}: fewer than 10"
            " votes with known lengths, or lengths that do not differ."
        )
    if len(none) < len(board.rows):
        board.notes.append(
            "Win rates at equal lengths are without the difficulties of instructions and anchors"
            " that AlpacaEval uses, and are no figures of AlpacaEval: there they are up to 23"
            " points apart."
        )
