"""The verdict of a panel on one pair, from the votes of its judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from evenhand.observation import Voted

OUTCOMES = ("A", "B", "tie", "uncertain")


def majority(votes: Sequence[str], otherwise: str) -> str:
    """Return the vote that more than half of the votes are for; `otherwise` if there is none."""
    counted = Counter(votes).items()
    return next((vote for vote, number in counted if 2 * number > len(votes)), otherwise)


def voted_winner(votes: Iterable[tuple[str, Voted]]) -> str | None:
    """Return the panel's winner from (judge, vote), each judge voting by the majority of its
    repeats; `uncertain` without a majority, None if no vote has a verdict."""
    judges = _by_judge(votes)
    winners = [majority([vote.winner or "" for vote in repeats], "uncertain") for repeats in judges]
    return majority(winners, "uncertain") if judges else None


def voted_marks(votes: Iterable[tuple[str, Voted]], criteria: Sequence[str]) -> list[str]:
    """Return each criterion's mark by the majority of the judges; without one a tie. Judgments made
    elsewhere may lack a criterion."""
    judges = _by_judge(votes)
    return [
        majority(
            [majority([vote.marks.get(c, "tie") for vote in repeats], "tie") for repeats in judges],
            "tie",
        )
        for c in criteria
    ]


def _by_judge(votes: Iterable[tuple[str, Voted]]) -> list[list[Voted]]:
    """Return the verdicts of each judge; one without a verdict has no vote."""
    judges: dict[str, list[Voted]] = {}
    for judge, vote in votes:
        if vote.winner is not None:
            judges.setdefault(judge, []).append(vote)
    return list(judges.values())
