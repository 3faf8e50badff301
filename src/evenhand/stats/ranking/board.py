"""The figures of one set of votes: a row for each candidate, and what is to be said beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import exp, log
from typing import Any, Literal

import numpy as np

from evenhand.notes import Note
from evenhand.stats.ranking.bootstrap import Rated, rate
from evenhand.stats.ranking.bradley_terry import NO_TIES
from evenhand.stats.ranking.caveats import (
    EXCHANGED,
    about_ratings,
    about_votes,
    names,
    without_position,
)
from evenhand.stats.ranking.difficulty import difficulties, without_difficulty
from evenhand.stats.ranking.duels import Duels, Ties, pass_duels, sample_of
from evenhand.stats.ranking.elo import elo
from evenhand.stats.ranking.length import Anchored, length_controlled
from evenhand.stats.ranking.peers import peer_rank
from evenhand.stats.ranking.places import SAME, is_apart, ranks
from evenhand.stats.ranking.winrates import (
    Matrix,
    matrix,
    outright_rates,
    panel,
    tallies,
    win_rates,
)
from evenhand.stats.tables import NONE, UNCERTAIN, Floats, Ints, Votes

Scale = Literal["log", "elo"]
ELO = 400 / log(10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How ratings are made and shown."""

    ties: Ties = "davidson"
    scale: Scale = "log"
    anchor: str | None = None
    elo: bool = False
    position: bool = False
    outright: bool = False
    """Also the share of votes that were won, ties being none."""
    peer_weights: bool = False
    """Also win rates with judges that are candidates weighted by their own."""
    length_controlled: bool = False
    difficulty: Mapping[str, float] | None = None
    """Of instructions, by unit or topic: how hard the second candidate has it against the first."""
    anchored: Anchored | None = None
    """Further rows that steady win rates at equal lengths."""
    bootstrap: int = 1000
    level: float = 0.95
    seed: int = 0


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
    """None where nothing bounds it, as below one that never won."""
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
    regularised: bool = False
    length_controlled: float | None = None
    length_controlled_low: float | None = None
    length_controlled_high: float | None = None
    outright: float | None = None
    """The share of votes that it won: a tie is no win."""
    outright_low: float | None = None
    outright_high: float | None = None
    peer_win_rate: float | None = None
    peer_win_rate_low: float | None = None
    peer_win_rate_high: float | None = None
    elo: float | None = None


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
    resampled: bool = False
    """Whether ranks rest on resamples. Without them a candidate may have any place, not because the
    votes leave it open but because there are too few topics to ask."""
    tie_parameter: float | None = None
    position: Position | None = None
    judge_weights: dict[str, float] = field(default_factory=dict[str, float])
    """Of judges that are candidates, by their own standing."""
    judge_weight_intervals: dict[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    matrix: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])

    def json(self) -> dict[str, Any]:
        # The matrix is large, and plain already: it is not copied cell by cell.
        figures = asdict(replace(self, matrix={}))
        return figures | {"matrix": self.matrix}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """Votes with their outcomes, overall or on one criterion, and those with a verdict as duels."""

    votes: Votes
    outcome: Ints
    preference: Floats
    duels: Duels
    """A row per vote."""
    pairs: Duels
    """A row per pair, the mean of its votes."""
    undecided: int = UNCERTAIN
    """What a panel without a majority says."""


def rated_board(ballot: Ballot, options: Options) -> Board:
    """All figures of a ballot: win rates, ratings and ranks, and what the options ask for."""
    board, duels = plain_board(ballot, options.level), ballot.duels
    if not board.n:
        sentence = "No vote has a verdict: there is nothing to rate."
        board.notes.append(Note(sentence, "nothing_to_rate"))
        return board
    _rate(board, ballot, duels, options)
    if options.elo:
        ratings = elo(duels)
        for place, row in _placed(board, ballot):
            row.elo = ratings[place] if row.n else None
        board.notes.append("Elo depends on the order of the votes: it is that of the store.")
    if options.length_controlled:
        _control_length(board, ballot, options)
    if options.outright:
        _win_outright(board, ballot, options.level)
    if options.peer_weights:
        _weigh_judges(board, ballot, options.level)
    board.matrix = _matrix_json(board, ballot, matrix(ballot.pairs))
    return board


def plain_board(ballot: Ballot, level: float) -> Board:
    """Win rates alone, by win rate and name."""
    votes, duels = ballot.votes, ballot.duels
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
    votes_of = np.bincount(np.concatenate([duels.first, duels.second]), minlength=size)
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
        votes=len(duels.first),
        topics=len(np.unique(duels.topic)),
        failed=int((none & ~dropped & apart).sum()),
        dropped=int((dropped & apart).sum()),
        notes=about_votes(apart, duels),
    )


def _placed(board: Board, ballot: Ballot) -> list[tuple[int, Row]]:
    """The rows of a board, each with the place of its candidate among those of the votes."""
    places = {name: place for place, name in enumerate(ballot.votes.candidates)}
    return [(places[row.candidate], row) for row in board.rows]


def _rate(board: Board, ballot: Ballot, duels: Duels, options: Options) -> None:
    """Put ratings and ranks on the rows."""
    passes = pass_duels(ballot.votes) if options.position else duels
    exchanged = _exchanged(passes) if options.position else 0.0
    ordered = exchanged >= EXCHANGED
    if options.position and not ordered:
        board.notes.append(without_position(exchanged))
    raw = passes if ordered else duels
    sample = sample_of(raw, options.ties, ordered=ordered)
    rated = rate(sample, options.bootstrap, np.random.default_rng(options.seed))
    flat = bool((raw.tie | (raw.won == 0.5)).all())
    _put(board, ballot, rated, options, flat=flat)
    if not ordered:
        _place_two(board, ballot, options)
    low = high = None
    if rated.rounds.shape[1]:
        ends = rated.interval(options.level)
        low, high = float(ends[0][-1]), float(ends[1][-1])
    if ordered:
        board.position = Position(
            term=float(rated.values[-1]), low=low, high=high, passes=len(raw.first)
        )
        board.notes.append(
            "Ratings are fitted on the passes, each a vote, with a term for the first position."
        )
    if rated.values[-2] > NO_TIES and not flat:
        board.tie_parameter = exp(rated.values[-2])


def _exchanged(passes: Duels) -> float:
    """The share of passes that have a counterpart: the same two candidates in the other order. Only
    these tell a liking for the first position from a liking for a candidate; what follows from one
    order alone follows from the model's assumption that ratings add up."""
    counts = np.bincount(
        passes.first * passes.size + passes.second, minlength=passes.size**2
    ).reshape(passes.size, passes.size)
    return float(np.minimum(counts, counts.T).sum() / max(len(passes.first), 1))


def _put(board: Board, ballot: Ballot, rated: Rated, options: Options, *, flat: bool) -> None:
    values, rounds = _anchored(rated, ballot, options)
    board.resampled = rounds.shape[1] > 1
    resampled = board.resampled and not flat
    low, high = rated.interval(options.level, values, rounds) if resampled else (values, values)
    rank, best, worst = ranks(rated, options.level)
    order = _sets_by_size(rated.sets)
    for place, row in _placed(board, ballot):
        if rated.sets[place] < 0:
            continue
        number = int(rated.sets[place])
        row.set, row.rating = order[number], float(values[place])
        row.regularised = bool(rated.unsound[number]) and not flat
        row.rank, row.rank_low, row.rank_high = (
            int(column[place]) for column in (rank, best, worst)
        )
        if resampled:
            row.rating_low = None if rated.below[place] else float(low[place])
            row.rating_high = None if rated.above[place] else float(high[place])
    board.sets = len(order)
    board.rows.sort(key=lambda row: (row.set or len(order) + 1, -(row.rating or 0), row.candidate))
    board.notes += about_ratings(
        rated,
        ballot.duels,
        ballot.votes.candidates,
        sets=board.sets,
        regular=any(row.regularised for row in board.rows),
        flat=flat,
    )


def _place_two(board: Board, ballot: Ballot, options: Options) -> None:
    """Two candidates that met nobody else have the places that their comparison gives them."""
    sizes = Counter(row.set for row in board.rows if row.set is not None)
    for place, row in _placed(board, ballot):
        if row.set is not None and sizes[row.set] == 2:
            apart = is_apart(ballot.pairs, place, options.level, options.seed)
            row.rank = 1 if (row.win_rate or 0) > 0.5 - SAME else 2
            row.rank_low, row.rank_high = (row.rank, row.rank) if apart else (1, 2)
    board.rows.sort(key=lambda row: (row.set or board.sets + 1, row.rank or 0))


def _sets_by_size(sets: Ints) -> dict[int, int]:
    """The sets numbered from 1, the largest first."""
    numbers, sizes = np.unique(sets[sets >= 0], return_counts=True)
    ordered = sorted(
        zip(numbers.tolist(), sizes.tolist(), strict=True), key=lambda entry: -entry[1]
    )
    return {number: place + 1 for place, (number, _) in enumerate(ordered)}


def _anchored(rated: Rated, ballot: Ballot, options: Options) -> tuple[Floats, Floats]:
    """Ratings on the scale asked for, of the votes and of each round."""
    values, rounds = rated.ratings, rated.rounds[:-2]
    if options.anchor is not None:
        at = ballot.votes.candidates.index(options.anchor)
        same = (rated.sets == rated.sets[at]) & (rated.sets >= 0)
        values = values - np.where(same, values[at], 0)
        rounds = rounds - np.where(same[:, None], rounds[at], 0)
    if options.scale == "elo":
        values, rounds = 1000 + ELO * values, 1000 + ELO * rounds
    return values, rounds


def _win_outright(board: Board, ballot: Ballot, level: float) -> None:
    """Put the shares of votes that were won on the rows."""
    shares = outright_rates(ballot.duels, level)
    for place, row in _placed(board, ballot):
        if (won := shares[place]) is not None:
            row.outright, row.outright_low, row.outright_high = won.value, won.low, won.high


def _weigh_judges(board: Board, ballot: Ballot, level: float) -> None:
    """Put win rates under the weights of peers on the rows."""
    votes = replace(ballot.votes, outcome=ballot.outcome, preference=ballot.preference)
    ranked = peer_rank(votes, level)
    for judge, weight in ranked.weights.items():
        board.judge_weights[judge] = weight.value
        board.judge_weight_intervals[judge] = weight.low, weight.high
    for row in board.rows:
        if row.n:
            by_peers = ranked.win_rates[row.candidate]
            row.peer_win_rate = by_peers.value
            row.peer_win_rate_low, row.peer_win_rate_high = by_peers.low, by_peers.high
    if ranked.left_out:
        board.notes.append(
            f"Judges that are no candidates have no weight among peers: {names(ranked.left_out)}."
        )


def _control_length(board: Board, ballot: Ballot, options: Options) -> None:
    """Put win rates at equal lengths on the rows."""
    votes = ballot.votes
    ahead = votes.second_length - votes.first_length
    usable = (votes.first != votes.second) & ~np.isnan(ahead)
    difficulty = None if options.difficulty is None else difficulties(votes, options.difficulty)
    if difficulty is not None:
        board.notes += without_difficulty(usable & np.isnan(difficulty))
        usable &= ~np.isnan(difficulty)
    none: list[str] = []
    for place, row in _placed(board, ballot):
        first, second = usable & (votes.first == place), usable & (votes.second == place)
        is_second = second.sum() >= first.sum()
        anchored = options.anchored
        controlled = length_controlled(
            np.concatenate([1 - ballot.preference[first], ballot.preference[second]]),
            np.concatenate([ahead[first], -ahead[second]]),
            difficulty=None
            if difficulty is None
            else np.concatenate([-difficulty[first], difficulty[second]]),
            anchored=anchored if anchored is None or is_second else anchored.turned,
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
    if len(none) < len(board.rows) and (difficulty is None or options.anchored is None):
        lacking = "difficulties of instructions and anchors" if difficulty is None else "anchors"
        board.notes.append(
            f"Win rates at equal lengths are without the {lacking} that AlpacaEval uses, and are no"
            " figures of AlpacaEval: there they are up to 23 points apart."
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
