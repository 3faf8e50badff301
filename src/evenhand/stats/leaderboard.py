"""Leaderboards of a run, of each value of a field, of each criterion; agreement of the orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.errors import UsageError, quoted
from evenhand.stats.board import Board, Options, plain_board, rated_board
from evenhand.stats.observations import Observations, field_named, place_of
from evenhand.stats.orders import Orders, orders
from evenhand.stats.pairwise import Front, fronts_json, topic_fronts

VALUES = 200
"""So many values of a field have a board of their own at most."""
FRONT_VOTES = 200_000
"""Of more votes no fronts are listed: there would be a page of them for every topic."""


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
                name: _criterion_json(criterion_board)
                for name, criterion_board in self.criteria.items()
            },
        }


def _criterion_json(board: Board) -> dict[str, Any]:
    """Return the win rates on a criterion; it has no ratings."""
    names = ("candidate", "n", "votes", "win_rate", "low", "high", "se")
    counts = ("pairs", "wins", "losses", "ties")
    rows = [{name: getattr(row, name) for name in (*names, *counts)} for row in board.rows]
    return {"n": board.n, "votes": board.votes, "rows": rows}


def leaderboard(
    table: Observations,
    options: Options | None = None,
    *,
    judge: str | None = None,
    criterion: str | None = None,
    by: str | None = None,
) -> Leaderboard:
    """Return the board of these votes, of one judge or on one criterion if it is named; raise
    UsageError for a name that is not there."""
    options = options or Options()
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


def _check(table: Observations, options: Options, criterion: str | None) -> None:
    if not 0 < options.level < 1:
        raise UsageError(f"level {options.level}: a share between 0 and 1 is wanted, as 0.95")
    if criterion is not None:
        place_of(table.dimensions, criterion, "criterion")
        if options.position:
            raise UsageError(
                "a position term is fitted on the winners of passes, not on one criterion",
                advice="Leave out --position or --criterion.",
            )
    if options.anchor is not None:
        place_of(table.candidates, options.anchor, "candidate")


def _levels(table: Observations, measure: str, by: str, options: Options) -> dict[str, Level]:
    """Return what each value of a field comes to, by the order in which values first come."""
    column, levels = field_named(table.fields, by), dict[str, Level]()
    if len(column.levels) > VALUES:
        raise UsageError(
            f"--by {quoted(by)} would make {len(column.levels)} boards",
            advice=f"Name a field with at most {VALUES} values.",
        )
    for code, name in enumerate(column.levels):
        part = table.of_units(column.codes == code)
        if part.unit.size:
            there = {part.candidates[place] for place in (*part.first, *part.second)}
            # An anchor that is not among the candidates of some votes anchors nothing there.
            anchor = options.anchor if options.anchor in there else None
            board = rated_board(part, measure, replace(options, anchor=anchor))
            levels[name] = Level(board, orders(part, options.level))
    return levels
