"""Who leads: win rates, ratings and ranks of the candidates of a run, and how the orders agreed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from evenhand.errors import UsageError, nearest, quoted
from evenhand.stats.pairwise import Front, fronts_json
from evenhand.stats.proportion import Proportion, clustered
from evenhand.stats.ranking.board import Ballot, Board, Options, plain_board, rated_board
from evenhand.stats.ranking.fronts import vote_fronts
from evenhand.stats.rating import pair_matches, vote_matches
from evenhand.stats.tables import (
    FIRST,
    NONE,
    SECOND,
    TIE,
    UNCERTAIN,
    Bools,
    Floats,
    Ints,
    Votes,
    field_named,
)


@dataclass(frozen=True, slots=True)
class Orders:
    """How far the two orders of first rounds agree."""

    consistency: Proportion
    first_slot: Proportion
    first_rounds: int
    contradictions: int

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        rate = self.contradictions / self.first_rounds if self.first_rounds else None
        return {
            **_proportion("consistency", self.consistency),
            **_proportion("first_slot_rate", self.first_slot),
            "first_rounds": self.first_rounds,
            "contradictions": self.contradictions,
            "contradiction_rate": rate,
        }


@dataclass(frozen=True, slots=True)
class Level:
    """The votes on units with one value of a field."""

    board: Board
    orders: Orders

    def json(self) -> dict[str, Any]:
        return self.board.json() | self.orders.json()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """Everything that `evenhand leaderboard` says."""

    board: Board
    orders: Orders
    rule: str
    conflicts: int
    options: Options
    judge: str | None
    criterion: str | None
    by: str | None
    levels: dict[str, Level]
    """By the values of a field."""
    criteria: dict[str, Board]
    """Win rates by criterion."""
    fronts: Mapping[str, Front] = field(default_factory=dict[str, Front])

    def _repr_html_(self) -> str:
        from evenhand.notebook import html_table

        names = ("candidate", "win_rate", "low", "high", "rating", "wins", "losses", "ties")
        return html_table(
            names, [[getattr(row, name) for name in names] for row in self.board.rows]
        )

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
                name: _rates(criterion_board) for name, criterion_board in self.criteria.items()
            },
        }


def _proportion(name: str, proportion: Proportion) -> dict[str, Any]:
    is_known = proportion.value is not None
    return {
        name: proportion.value,
        f"{name}_low": proportion.low if is_known else None,
        f"{name}_high": proportion.high if is_known else None,
        f"{name}_n": int(proportion.n),
    }


def _rates(board: Board) -> dict[str, Any]:
    """The win rates on a criterion, as JSON; a criterion has no ratings."""
    figures = ("candidate", "n", "votes", "win_rate", "low", "high", "se")
    counts = ("pairs", "wins", "losses", "ties")
    rows = [{name: getattr(row, name) for name in (*figures, *counts)} for row in board.rows]
    return {"n": board.n, "votes": board.votes, "rows": rows}


def leaderboard(
    votes: Votes,
    options: Options | None = None,
    *,
    judge: str | None = None,
    criterion: str | None = None,
    by: str | None = None,
) -> Leaderboard:
    """The board of these votes, of one judge or on one criterion if it is named, with the fronts of
    a table that has seats; UsageError for a name that is not there."""
    options = options or Options()
    _check(votes, options, criterion)
    if judge is not None:
        place = votes.judges.index(_existing(judge, votes.judges, "judge"))
        votes = votes.where(votes.judge == place)
    ballot = _ballot(votes, criterion)
    return Leaderboard(
        board=rated_board(ballot, options),
        orders=orders(votes),
        rule=votes.rule,
        conflicts=votes.conflicts,
        options=options,
        judge=judge,
        criterion=criterion,
        by=by,
        levels=_levels(votes, criterion, by, options) if by else {},
        criteria={name: plain_board(_ballot(votes, name), options.level) for name in votes.marks},
        fronts={} if votes.seats is None else vote_fronts(votes),
    )


def _check(votes: Votes, options: Options, criterion: str | None) -> None:
    if not 0 < options.level < 1:
        raise UsageError(f"level {options.level}: a share between 0 and 1 is wanted, as 0.95")
    if criterion is not None:
        _existing(criterion, tuple(votes.marks), "criterion")
        if options.position:
            raise UsageError(
                "a position term is fitted on the winners of passes, not on one criterion",
                advice="Leave out --position or --criterion.",
            )
    if options.anchor is not None:
        _existing(options.anchor, votes.candidates, "candidate")


def _existing(name: str, there: tuple[str, ...], what: str) -> str:
    if name not in there:
        near = nearest(name, there)
        listed = ", ".join(map(quoted, there[:10])) or "none"
        raise UsageError(
            f"there is no {what} {quoted(name)}",
            advice=f"Did you mean {quoted(near)}?" if near else f"There are: {listed}",
        )
    return name


def _ballot(votes: Votes, criterion: str | None) -> Ballot:
    outcome, preference = votes.outcome, votes.preference
    if criterion is not None:
        outcome = votes.marks[criterion]
        preference = np.full(len(outcome), np.nan)
        for mark, value in ((FIRST, 0.0), (SECOND, 1.0), (TIE, 0.5)):
            preference[outcome == mark] = value
    undecided = UNCERTAIN if criterion is None else TIE
    return Ballot(
        votes=votes,
        outcome=outcome,
        preference=preference,
        matches=vote_matches(votes, outcome, preference),
        pairs=pair_matches(votes, preference),
        undecided=undecided,
    )


def _levels(votes: Votes, criterion: str | None, by: str, options: Options) -> dict[str, Level]:
    """What each value of a field comes to, by the order in which values first come."""
    column = field_named(votes.fields, by)
    levels: dict[str, Level] = {}
    for code, name in enumerate(column.levels):
        if (rows := column.codes == code).any():
            part = votes.where(rows)
            board = rated_board(_ballot(part, criterion), _within(votes, rows, options))
            levels[name] = Level(board, orders(part))
    return levels


def _within(votes: Votes, rows: Bools, options: Options) -> Options:
    """An anchor that is not among the candidates of some votes anchors nothing there."""
    if options.anchor is None:
        return options
    at = votes.candidates.index(options.anchor)
    there = ((votes.first[rows] == at) | (votes.second[rows] == at)).any()
    return options if there else replace(options, anchor=None)


class OrderCounts(NamedTuple):
    """Of each first round that was asked in both orders: its topic, how many of its two passes the
    first slot won, how many have a winner, whether they agree, and whose they are."""

    topic: Ints
    slots: Ints
    decided: Ints
    agree: Bools
    judge: Ints


def order_counts(votes: Votes) -> OrderCounts:
    """What the first rounds of votes say in both orders; a vote seen in one order says nothing."""
    passes, size = votes.passes, len(votes.first)
    pass_counts = np.bincount(passes.vote, minlength=size)
    turned = np.bincount(passes.vote[passes.turned], minlength=size)
    complete = (pass_counts == 2) & (turned == 1)
    outcomes = np.full((2, size), NONE)
    outcomes[passes.turned.astype(int), passes.vote] = passes.outcome
    plain, back = outcomes[:, complete]
    return OrderCounts(
        topic=votes.topic[complete],
        slots=(plain == FIRST).astype(np.int64) + (back == SECOND),
        decided=(plain != TIE).astype(np.int64) + (back != TIE),
        agree=plain == back,
        judge=votes.judge[complete],
    )


def orders(votes: Votes, level: float = 0.95) -> Orders:
    """How the two passes of each first round agree."""
    counts = order_counts(votes)
    every = np.ones(counts.topic.size)
    agreeing = _by_topic(counts.topic, counts.agree.astype(float), every)
    slots = _by_topic(counts.topic, counts.slots.astype(float), counts.decided.astype(float))
    return Orders(
        consistency=clustered(agreeing, level),
        first_slot=clustered(slots, level),
        first_rounds=counts.topic.size,
        contradictions=int((~counts.agree).sum()),
    )


def _by_topic(topic: Ints, hits: Floats, trials: Floats) -> list[tuple[float, float]]:
    """The hits and trials of each topic."""
    summed = (np.bincount(topic, weights=counts).tolist() for counts in (hits, trials))
    return list(zip(*summed, strict=True))
