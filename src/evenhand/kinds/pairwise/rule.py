"""The rule by which code decides a pair: marks give the winner of a pass, rounds the verdict.

A pass is won by dominance, then by the priority list. The first round whose orders agree settles
the pair; one that no round settles is `uncertain`, never silently a tie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenhand.kinds.pairwise.verdict import Mark, Outcome, PairPass, Settling, Winner

_BETTER: dict[str | None, Winner] = {"A+": "A", "B+": "B"}


def derived(marks: Mapping[str, str | None], priority: Sequence[str]) -> Winner:
    """The winner of a pass by its marks: dominance, then the first criterion of the priority list
    that is no tie."""
    favoured = {_BETTER[mark] for mark in marks.values() if mark in _BETTER}
    if len(favoured) == 1:
        return favoured.pop()
    if favoured:
        for criterion in priority:
            if marks.get(criterion) in _BETTER:
                return _BETTER[marks[criterion]]
    return "tie"


Round = tuple[PairPass, PairPass]


class Settled(NamedTuple):
    """What the rounds of a pair come to."""

    winner: Outcome
    how: Settling
    marks: dict[str, Mark]
    unstable: list[str]
    """Criteria on which the two passes of the settling round differ; their mark is `tie`."""


def agrees(passes: Round) -> bool:
    """Whether the two orders name the same winner, a tie included."""
    return passes[0].winner == passes[1].winner


def settled(rounds: Sequence[Round]) -> Settled:
    """The verdict of a pair: the first consistent round's, else `uncertain`."""
    number = next((i for i, passes in enumerate(rounds) if agrees(passes)), None)
    first, second = rounds[-1 if number is None else number]
    unstable = [c for c, mark in first.marks.items() if mark != second.marks.get(c)]
    marks: dict[str, Mark] = {
        c: "tie" if mark is None or c in unstable else mark for c, mark in first.marks.items()
    }
    if number is None or first.winner is None:
        return Settled("uncertain", "uncertain", marks, unstable)
    return Settled(first.winner, "resolved" if number else "stable", marks, unstable)
