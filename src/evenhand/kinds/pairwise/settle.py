"""The rule by which code decides a pair: marks give the winner of a pass, rounds the verdict.

A pass is won by dominance, then by the priority list. The first round whose orders agree settles
the pair; one that no round settles is `uncertain`, never silently a tie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.kinds.conversation import Try
from evenhand.kinds.pairwise.verdict import (
    ORDERS,
    WINNERS,
    CriterionComment,
    CriterionReply,
    Mark,
    Order,
    Outcome,
    PairPass,
    PairReply,
    Settling,
    Winner,
)

_BETTER: dict[str | None, Winner] = {"A+": "A", "B+": "B"}
_SWAPPED = {"A": "B", "B": "A", "A+": "B+", "B+": "A+"}
Round = tuple[PairPass, PairPass]


def derive_winner(marks: Mapping[str, str | None], priority: Sequence[str]) -> Winner:
    """Return the winner of a pass by its marks: dominance, then the first criterion of the priority
    list that is no tie."""
    favoured = {_BETTER[mark] for mark in marks.values() if mark in _BETTER}
    if len(favoured) == 1:
        return favoured.pop()
    if favoured:
        for criterion in priority:
            if marks.get(criterion) in _BETTER:
                return _BETTER[marks[criterion]]
    return "tie"


class Settled(NamedTuple):
    """The verdict on a pair from its rounds."""

    winner: Outcome
    how: Settling
    marks: dict[str, Mark]
    unstable: list[str]
    """Criteria on which the two passes of the settling round differ; their mark is `tie`."""


def agrees(passes: Round) -> bool:
    """Return True if the two orders name the same winner, a tie included."""
    return passes[0].winner == passes[1].winner


def settle(rounds: Sequence[Round]) -> Settled:
    """Return the verdict of the first consistent round, else `uncertain`."""
    number = next((i for i, passes in enumerate(rounds) if agrees(passes)), None)
    first, second = rounds[-1 if number is None else number]
    unstable = [c for c, mark in first.marks.items() if mark != second.marks.get(c)]
    marks: dict[str, Mark] = {
        c: "tie" if mark is None or c in unstable else mark for c, mark in first.marks.items()
    }
    if number is None or first.winner is None:
        return Settled("uncertain", "uncertain", marks, unstable)
    return Settled(first.winner, "resolved" if number else "stable", marks, unstable)


def to_pass(
    attempt: Try[PairReply],
    number: int,
    judge: str,
    priority: Sequence[str],
    told_priority: Sequence[str],
) -> PairPass:
    """Return one call of a round as the judgment keeps it, said of the candidates. A judge
    contradicts itself by the rule that it was told, whichever settles the pair."""
    order: Order = "21" if attempt.question.order == "21" else "12"
    reply, flags, said = attempt.checked.value, attempt.checked.flags, dict[str, Any]()
    if reply is not None:
        marks = {c: _swap(given.mark, order) for c, given in reply.criteria.items()}
        named = _swap(reply.winner, order)
        if named not in (None, derive_winner(marks, told_priority)):
            flags = ("self_contradiction", *flags)
        said = {
            "winner": derive_winner(marks, priority),
            "said": named,
            "criteria": {c: _comment(given, order) for c, given in reply.criteria.items()},
            "explanation": reply.explanation,
            "odds": {
                path: {_swap(name.strip('"'), order): value for name, value in odds.items()}
                for path, odds in attempt.reply.odds.items()
            },
        }
    return PairPass(
        reask=attempt.question.reask,
        problems=attempt.problems,
        sampling=dict(attempt.reply.sampling),
        round=number,
        order=order,
        judge=judge,
        flags=flags,
        marks={} if reply is None else marks,
        **said,
    )


def tied_round(criteria: Sequence[str]) -> Round:
    """Return the round that two equal texts are spared."""
    common: dict[str, Any] = {"reask": 0, "problems": (), "round": 1, "judge": "", "flags": ()}
    marks: dict[str, Mark | None] = dict.fromkeys(criteria, "tie")
    first, second = (PairPass(order=o, winner="tie", marks=marks, **common) for o in ORDERS)
    return first, second


def mean_odds(passes: Round) -> dict[str, float]:
    """Return the probability of each winner, the mean of both orders; nothing where a judge does
    not tell it."""
    both = [pass_.odds.get("winner", {}) for pass_ in passes]
    if not all(both):
        return {}
    return {
        name: math.fsum(math.exp(odds[name]) for odds in both if name in odds) / len(both)
        for name in WINNERS
    }


def _comment(reply: CriterionReply, order: Order) -> CriterionComment:
    """Return what a judge said of a criterion beside its mark, said of the candidates."""
    if order == "12":
        return CriterionComment(reply.first_meets, reply.second_meets, reply.comment)
    return CriterionComment(reply.second_meets, reply.first_meets, reply.comment)


def _swap(word: Any, order: Order) -> Any:
    """Return what a judge said of its slots, said of the candidates."""
    return word if order == "12" else _SWAPPED.get(word, word)
