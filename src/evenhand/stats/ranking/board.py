"""The figures of one set of votes: a row for each candidate, and what is to be said beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from math import log
from typing import Any, Literal

import numpy as np

from evenhand.notes import Note
from evenhand.stats.estimate import log_odds_interval, mean
from evenhand.stats.ranking.caveats import (
    EXCHANGED,
    about_votes,
    names,
    separate_sets,
    without_position,
)
from evenhand.stats.ranking.length import length_controlled
from evenhand.stats.ranking.winrates import Matrix, matrix, panel, tallies, win_rates
from evenhand.stats.rating import SAME, Matches, Ratings, Ties, pass_matches, rate
from evenhand.stats.tables import NONE, UNCERTAIN, Floats, Ints, Votes

Scale = Literal["log", "elo"]
ELO = 400 / log(10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How ratings are made and shown."""

    ties: Ties = "davidson"
    scale: Scale = "log"
    anchor: str | None = None
    position: bool = False
    length_controlled: bool = False
    level: float = 0.95


@dataclass(slots=True, kw_only=True)
class Row:
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
class Position:
    """How much it helps to be shown first, in log odds between equals."""

    term: float
    low: float | None
    high: float | None
    passes: int


@dataclass(slots=True, kw_only=True)
class Board:
    """The rows of some votes, by set, rating and name."""

    rows: list[Row]
    n: int
    """Pairs with a verdict."""
    votes: int
    topics: int
    """What the votes are on; those on one hang together."""
    failed: int
    dropped: int
    sets: int = 0
    tie_parameter: float | None = None
    position: Position | None = None
    matrix: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])

    def json(self) -> dict[str, Any]:
        # The matrix is large, and plain already: it is not copied cell by cell.
        figures = asdict(replace(self, matrix={}))
        return figures | {"matrix": self.matrix}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """Votes with their outcomes, overall or on one criterion; those with a verdict as matches."""

    votes: Votes
    outcome: Ints
    preference: Floats
    matches: Matches
    """A row per vote."""
    pairs: Matches
    """A row per pair, the mean of its votes."""
    undecided: int = UNCERTAIN
    """What a panel without a majority says."""


def rated_board(ballot: Ballot, options: Options) -> Board:
    """All figures of a ballot: win rates, ratings and ranks, and what the options ask for."""
    board = plain_board(ballot, options.level)
    if not board.n:
        sentence = "No vote has a verdict: there is nothing to rate."
        board.notes.append(Note(sentence, "nothing_to_rate"))
        return board
    _rate(board, ballot, options)
    if options.length_controlled:
        _control_length(board, ballot, options)
    board.matrix = _matrix_json(board, ballot, matrix(ballot.pairs))
    return board


def plain_board(ballot: Ballot, level: float) -> Board:
    """Win rates alone, by win rate and name."""
    votes, matches = ballot.votes, ballot.matches
    apart, size = votes.first != votes.second, len(votes.candidates)
    none = ballot.outcome == NONE
    dropped = none & votes.conflict & (votes.rule == "drop")
    verdicts = panel(votes, np.where(apart, ballot.outcome, NONE), ballot.undecided)
    counted = tallies(size, *verdicts)
    missing = tallies(size, votes.first[apart], votes.second[apart], ballot.outcome[apart]).missing
    lost = tallies(
        size, votes.first[dropped], votes.second[dropped], ballot.outcome[dropped]
    ).missing
    met, shares = matrix(ballot.pairs), win_rates(ballot.pairs, level)
    averages = met.averages
    votes_of = np.bincount(np.concatenate([matches.first, matches.second]), minlength=size)
    rows: list[Row] = []
    for place in np.unique(np.concatenate([votes.first[apart], votes.second[apart]])).tolist():
        share = shares[place]
        rows.append(
            Row(
                candidate=votes.candidates[place],
                n=int(met.votes[place].sum()),
                votes=int(votes_of[place]),
                win_rate=share.value if share else None,
                low=share.low if share else None,
                high=share.high if share else None,
                pairs=int(counted.total[place]),
                wins=int(counted.wins[place]),
                losses=int(counted.losses[place]),
                ties=int(counted.ties[place]),
                uncertain=int(counted.uncertain[place]),
                failed=int(missing[place] - lost[place]),
                dropped=int(lost[place]),
                se=share.error if share else None,
                points=float(met.points[place].sum()),
                average_win_rate=float(averages[place]) if share else None,
            )
        )
    rows.sort(key=lambda row: (-(row.win_rate or 0.0), row.candidate))
    return Board(
        rows=rows,
        n=len(ballot.pairs.first),
        votes=len(matches.first),
        topics=len(np.unique(matches.topic)),
        failed=int((none & ~dropped & apart).sum()),
        dropped=int((dropped & apart).sum()),
        notes=about_votes(apart, matches),
    )


def _placed(board: Board, ballot: Ballot) -> list[tuple[int, Row]]:
    """The rows of a board, each with the place of its candidate among those of the votes."""
    places = {name: place for place, name in enumerate(ballot.votes.candidates)}
    return [(places[row.candidate], row) for row in board.rows]


def _rate(board: Board, ballot: Ballot, options: Options) -> None:
    """Put ratings and ranks on the rows."""
    matches, has_position = ballot.matches, False
    if options.position:
        passes = pass_matches(ballot.votes)
        exchanged = _exchanged_share(passes)
        if exchanged >= EXCHANGED:
            matches, has_position = passes, True
        else:
            board.notes.append(without_position(exchanged))
    rows = dict(_placed(board, ballot))
    for number, rated in enumerate(rate(matches, options.ties, position=has_position)):
        _put(rows, rated, number + 1, ballot, options)
        board.sets = number + 1
        if number == 0:
            board.tie_parameter = rated.tie
            board.position = _position(rated, len(matches.first), options.level)
    if not has_position:
        _place_two(board, ballot, options.level)
    ends = board.sets + 1
    board.rows.sort(key=lambda row: (row.set or ends, row.rank or 0, row.candidate))
    if has_position:
        board.notes.append(
            "Ratings are fitted on the passes, each a vote, with a term for the first position."
        )
    board.notes += separate_sets(board.sets)


def _put(
    rows: dict[int, Row], rated: Ratings, number: int, ballot: Ballot, options: Options
) -> None:
    """Put the ratings and ranks of one set on its rows."""
    at = None
    if options.anchor is not None:
        found = np.flatnonzero(rated.members == ballot.votes.candidates.index(options.anchor))
        at = int(found[0]) if found.size else None
    shift, unit = (1000.0, ELO) if options.scale == "elo" else (0.0, 1.0)
    ratings = [shift + unit * column for column in rated.intervals(options.level, at)]
    ranks = rated.ranks(options.level)
    for place, candidate in enumerate(rated.members.tolist()):
        row = rows[candidate]
        row.set = number
        row.rating, row.rating_low, row.rating_high = (_known(each[place]) for each in ratings)
        row.rank, row.rank_low, row.rank_high = (int(each[place]) for each in ranks)


def _place_two(board: Board, ballot: Ballot, level: float) -> None:
    """Give two candidates that met nobody else the ranks of their comparison: it is the same
    question, and has one answer."""
    sizes = Counter(row.set for row in board.rows if row.set is not None)
    for place, row in _placed(board, ballot):
        if row.set is not None and sizes[row.set] == 2:
            pairs = ballot.pairs
            met = (pairs.first == place) | (pairs.second == place)
            won = np.where(pairs.first == place, pairs.won, 1 - pairs.won)[met]
            row.rank = 1 if (row.win_rate or 0) > 0.5 - SAME else 2
            p = mean(won, pairs.topic[met], (0.0, 1.0), level, weigh="units").p
            is_told = p is not None and p <= 1 - level + 1e-12 and row.win_rate != 0.5
            row.rank_low, row.rank_high = (row.rank, row.rank) if is_told else (1, 2)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _position(rated: Ratings, passes: int, level: float) -> Position | None:
    if rated.position is None or rated.position_error is None:
        return None
    low = high = None
    if rated.questions > 1:
        value, error = np.array([rated.position]), np.array([rated.position_error])
        low, high = (
            float(end[0]) for end in log_odds_interval(value, error, rated.questions, level)
        )
    return Position(term=rated.position, low=low, high=high, passes=passes)


def _exchanged_share(passes: Matches) -> float:
    """Return the share of passes that have a counterpart: the same two candidates in the other
    order. Only these tell a liking for the first position from a liking for a candidate."""
    counts = np.bincount(
        passes.first * passes.size + passes.second, minlength=passes.size**2
    ).reshape(passes.size, passes.size)
    return float(np.minimum(counts, counts.T).sum() / max(len(passes.first), 1))


def _control_length(board: Board, ballot: Ballot, options: Options) -> None:
    """Put win rates at equal lengths on the rows."""
    votes = ballot.votes
    ahead = votes.second_length - votes.first_length
    usable = (votes.first != votes.second) & ~np.isnan(ahead)
    none: list[str] = []
    for place, row in _placed(board, ballot):
        first, second = usable & (votes.first == place), usable & (votes.second == place)
        controlled = length_controlled(
            np.concatenate([1 - ballot.preference[first], ballot.preference[second]]),
            np.concatenate([ahead[first], -ahead[second]]),
            groups=np.concatenate([votes.topic[first], votes.topic[second]]),
            level=options.level,
        )
        if controlled is None:
            none.append(row.candidate)
            continue
        row.length_controlled = controlled.win_rate
        row.length_controlled_low, row.length_controlled_high = controlled.low, controlled.high
    if none:
        board.notes.append(
            f"No length-controlled win rate for {names(none)}: fewer than 10 votes with known"
            " lengths, or lengths that do not differ."
        )
    if len(none) < len(board.rows):
        board.notes.append(
            "Win rates at equal lengths are without the difficulties of instructions and anchors"
            " that AlpacaEval uses, and are no figures of AlpacaEval: there they are up to 23"
            " points apart."
        )


def _matrix_json(board: Board, ballot: Ballot, met: Matrix) -> dict[str, Any]:
    places = [place for place, _ in _placed(board, ballot)]
    rates, votes = met.rates[np.ix_(places, places)], met.votes[np.ix_(places, places)]
    cells = rates.astype(object)
    cells[votes == 0] = None
    return {
        "candidates": [row.candidate for row in board.rows],
        "win_rate": cells.tolist(),
        "n": votes.tolist(),
    }
