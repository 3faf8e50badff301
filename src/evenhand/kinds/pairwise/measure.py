"""What statistics take of pairs and of judgments about them."""

from __future__ import annotations

from msgspec import UNSET

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.pairwise.verdict import PairVerdict, pair_passes
from evenhand.measures import PassVote, Voted, VotedUnit
from evenhand.units import Pair


def measure_pair(pair: Pair) -> VotedUnit:
    """Return the candidates of a pair, their lengths, and the fields of the pair."""
    return VotedUnit(
        topic=pair.row,
        candidates=(pair.first.id, pair.second.id),
        lengths=pair.lengths,
        fields=pair.meta,
    )


def measure_judgment(judgment: Judgment) -> Voted:
    """Return the votes of a judgment: of the verdict, if there is one, and of every pass."""
    passes = tuple(
        PassVote(
            pass_.round,
            pass_.order,
            pass_.winner,
            pass_.marks,
            pass_.preference,
            pass_.contradicts_itself,
        )
        for pass_ in pair_passes(judgment)
    )
    is_order_known = "order_unknown" not in judgment.flags
    if not isinstance(judgment, Verdict):
        return Voted(None, passes=passes, is_order_known=is_order_known)
    verdict = judgment.value
    assert isinstance(verdict, PairVerdict)
    return Voted(
        winner=verdict.winner,
        settled=verdict.settled,
        marks=verdict.criteria,
        preference=None if verdict.preference is UNSET else verdict.preference,
        passes=passes,
        is_order_known=is_order_known,
    )
