"""The fronts of the rows of a table of votes: the same that single judgments give."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.measures import Voted
from evenhand.stats.pairwise import Front, Judged, Topics
from evenhand.stats.tables import FIRST, NONE, SECOND, TIE, UNCERTAIN, Votes

_WINNERS = {FIRST: "A", SECOND: "B", TIE: "tie", UNCERTAIN: "uncertain", NONE: None}
_MARKS = {FIRST: "A+", SECOND: "B+", TIE: "tie"}


def vote_fronts(votes: Votes) -> dict[str, Front]:
    """The fronts of every row by all votes on it, of a table with seats."""
    seats, topics = votes.seats, Topics()
    assert seats is not None, "a table without seats has no fronts"
    judgments: list[list[tuple[str, Voted]]] = [[] for _ in votes.pairs]
    for pair, judge, vote in _voted(votes):
        judgments[pair].append((votes.judges[judge], vote))
    columns = (votes.rows, seats.candidates.tolist(), judgments)
    for row, (first, second), voted in zip(*columns, strict=True):
        names = (votes.candidates[first], votes.candidates[second])
        topics.add(Judged(row, seats.sizes.get(row, 2), names, voted))
    return topics.fronts()


def _voted(votes: Votes) -> Iterator[tuple[int, int, Voted]]:
    """Of each vote its pair, its judge and what it says."""
    marks = {name: codes.tolist() for name, codes in votes.marks.items()}
    columns = (votes.pair.tolist(), votes.judge.tolist(), votes.outcome.tolist())
    if not marks:
        said = {outcome: Voted(winner) for outcome, winner in _WINNERS.items()}
        for pair, judge, outcome in zip(*columns, strict=True):
            yield pair, judge, said[outcome]
        return
    for row, (pair, judge, outcome) in enumerate(zip(*columns, strict=True)):
        of_row = {name: _MARKS[codes[row]] for name, codes in marks.items() if codes[row] != NONE}
        yield pair, judge, Voted(_WINNERS[outcome], marks=of_row)
