"""Tables of votes made from plain tuples, and the textbook forms of what is computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from evenhand.observation import OPPONENT_LENGTH, SUBJECT_LENGTH, UNCERTAIN, WINNER, Rule
from evenhand.stats.observations import Field, Observations, Passes, Scale, questions
from evenhand.stats.rating import Matches

SHARES = {">": 1.0, "<": 0.0, "=": 0.5, "?": 0.5, "": np.nan}
Ballot = tuple[Any, str, str, str | float]
"""A topic, two candidates, and `>`, `<`, `=`, `?` (uncertain), nothing (failed), or how far the
second is preferred."""


def ballots(
    rows: Sequence[Ballot],
    *,
    judges: Sequence[str] = (),
    marks: Mapping[str, str] | None = None,
    lengths: Sequence[tuple[float, float]] = (),
    fields: Mapping[str, Sequence[str]] | None = None,
    passes: Sequence[tuple[int, bool, str]] = (),
    rule: Rule = "uncertain",
    conflicts: Sequence[int] = (),
    per_pair: int = 1,
) -> Observations:
    """Return votes, so many on each pair; `passes` are (row, turned, outcome)."""
    pairs = rows[::per_pair]
    names = tuple(sorted({name for row in rows for name in row[1:3]}))
    told = tuple(dict.fromkeys(judges)) or ("j",)
    size, criteria = len(rows), marks or {}
    units = {"topic": coded([str(row[0]) for row in pairs])}
    units |= {name: coded(values) for name, values in (fields or {}).items()}
    if lengths:
        sides = zip((SUBJECT_LENGTH, OPPONENT_LENGTH), zip(*lengths, strict=True), strict=True)
        units |= {name: coded([f"{length:g}" for length in side]) for name, side in sides}
    won = [SHARES[row[3]] if isinstance(row[3], str) else 1 - row[3] for row in rows]
    uncertain = [np.nan if row[3] == "" else float(row[3] == "?") for row in rows]
    columns = [*([SHARES[m] for m in given] for given in criteria.values()), won, uncertain]
    return Observations(
        measures=(*criteria, WINNER, UNCERTAIN),
        scales=(Scale(),) * len(columns),
        values=np.array(columns, dtype=float).reshape(len(columns), size).T,
        unit=np.arange(size) // per_pair,
        judge=ints(told.index(one) for one in (judges or ["j"] * size)),
        repeat=ints([0] * size),
        conflict=np.isin(np.arange(size), conflicts),
        passes=Passes(
            row=ints(one[0] for one in passes),
            round=ints(1 for _ in passes),
            position=ints(2 if one[1] else 1 for one in passes),
            value=np.array([SHARES[one[2]] for one in passes], dtype=float),
        ),
        units=[f"p{number}" for number in range(len(pairs))],
        fields=units,
        id_fields=("unit",),
        question=questions({"topic": units["topic"]}, len(pairs), "topic"),
        candidates=names,
        subject=ints(names.index(row[1]) for row in pairs),
        opponent=ints(names.index(row[2]) for row in pairs),
        judges=told,
        planned=None,
        failures={},
        rule=rule,
    )


def ints(values: Any) -> Any:
    return np.array(list(values), dtype=np.int64)


def coded(values: Sequence[str]) -> Field:
    levels = tuple(dict.fromkeys(values))
    return Field(ints(levels.index(one) for one in values), levels)


def matches(
    size: int, rows: Sequence[tuple[int, int, float | str]], topics: Sequence[int] = ()
) -> Matches:
    """Rows of (first, second, how far the first won or `=`)."""
    return Matches(
        size=size,
        first=ints(row[0] for row in rows),
        second=ints(row[1] for row in rows),
        won=np.array([0.5 if row[2] == "=" else row[2] for row in rows], dtype=float),
        tie=np.array([row[2] == "=" for row in rows], dtype=np.bool_),
        topic=ints(topics or range(len(rows))),
    )


def drawn(
    rng: np.random.Generator, size: int, votes: int, *, tie: float = 0.5, first: float = 0.0
) -> list[tuple[int, int, float | str]]:
    """Votes of Davidson's model between random candidates."""
    strength, made = rng.normal(size=size), list[tuple[int, int, float | str]]()
    for _ in range(votes):
        a, b = rng.choice(size, 2, replace=False).tolist()
        gap = strength[a] - strength[b] + first
        odds = np.array([np.exp(gap / 2), np.exp(-gap / 2), tie])
        outcome = rng.choice(3, p=odds / odds.sum())
        made.append((a, b, (1.0, 0.0, "=")[outcome]))
    return made


STRENGTHS = np.array([1.2, 0.3, -0.3, -1.2])
MEETINGS = np.array([(a, b) for a in range(4) for b in range(4) if a != b])
EVEN_TASTE = (0.0, 0.0, 0.0, 0.0)


def chances(
    first: np.ndarray, second: np.ndarray, strengths: np.ndarray, tie: float, leaning: Any = 0.0
) -> np.ndarray:
    """How likely a win of the first, a win of the second and a tie are, in Davidson's model."""
    gap = strengths[..., first] - strengths[..., second] + leaning
    odds = np.stack([np.exp(gap / 2), np.exp(-gap / 2), np.full(gap.shape, tie)])
    return np.asarray(odds / odds.sum(axis=0))


def everybody(
    rng: np.random.Generator,
    topics: int,
    tie: float,
    leanings: Sequence[float] = (0.0,),
    tastes: Sequence[Sequence[float]] = (EVEN_TASTE,),
) -> Matches:
    """Four candidates meet each other on each topic before each judge, in an order drawn by chance;
    a judge leans to the first, and has tastes of its own."""
    half = MEETINGS[MEETINGS[:, 0] < MEETINGS[:, 1]]
    pairs = np.tile(half, (topics * len(leanings), 1))
    judge = np.tile(np.repeat(np.arange(len(leanings)), len(half)), topics)
    pairs = np.where(rng.random(len(pairs))[:, None] < 0.5, pairs, pairs[:, ::-1])
    outcomes = np.empty((3, len(pairs)))
    for number, leaning in enumerate(leanings):
        of = judge == number
        strengths = STRENGTHS + np.array(tastes[number % len(tastes)])
        outcomes[:, of] = chances(pairs[of, 0], pairs[of, 1], strengths, tie, leaning)
    outcome = (rng.random(len(pairs)) > np.cumsum(outcomes, axis=0)[:2]).sum(axis=0)
    return Matches(
        size=4,
        first=pairs[:, 0],
        second=pairs[:, 1],
        won=np.array([1.0, 0.0, 0.5])[outcome],
        tie=outcome == 2,
        topic=np.repeat(np.arange(topics), len(half) * len(leanings)),
    )


def textbook_bradley_terry(size: int, rows: Sequence[tuple[int, int, float | str]]) -> np.ndarray:
    """The minorise-maximise iteration (Hunter, 2004), ties as half a win, about a mean of 0."""
    wins = np.zeros((size, size))
    for a, b, won in rows:
        share = 0.5 if won == "=" else float(won)
        wins[a, b] += share
        wins[b, a] += 1 - share
    strength = np.ones(size)
    for _ in range(20_000):
        before = strength.copy()
        for i in range(size):
            met = sum((wins[i, j] + wins[j, i]) / (strength[i] + strength[j]) for j in range(size))
            strength[i] = wins[i].sum() / met
        strength /= np.exp(np.log(strength).mean())
        if np.abs(np.log(strength / before)).max() < 1e-13:
            break
    return np.log(strength)


def textbook_davidson(
    size: int, rows: Sequence[tuple[int, int, float | str]], *, position: bool = False
) -> np.ndarray:
    """Ratings about a mean of 0, the logarithm of the tie parameter, and the position term, by a
    general minimiser of the likelihood vote by vote."""
    first, second = (np.array([row[k] for row in rows], dtype=int) for k in (0, 1))
    tie = np.array([row[2] == "=" for row in rows])
    won = np.array([0.5 if row[2] == "=" else row[2] for row in rows], dtype=float)

    def loss(x: np.ndarray) -> float:
        gap = x[first] - x[second] + (x[-1] if position else 0)
        total = np.logaddexp(np.logaddexp(gap / 2, -gap / 2), x[-2] if tie.any() else -np.inf)
        said = np.where(tie, x[-2], won * gap / 2 - (1 - won) * gap / 2)
        return float((total - said).sum() + 1e-9 * (x**2).sum())

    found = minimize(loss, np.zeros(size + 2), method="BFGS", options={"gtol": 1e-9}).x
    found[:size] -= found[:size].mean()
    return np.asarray(found)
