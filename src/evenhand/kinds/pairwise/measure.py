"""What statistics take of pairs and of judgments about them."""

from __future__ import annotations

from msgspec import UNSET

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.pairwise.unit import read_body
from evenhand.kinds.pairwise.verdict import PairVerdict, pair_passes
from evenhand.kinds.shared.raw import raw_object
from evenhand.measures import PassVote, Voted, VotedUnit
from evenhand.units import Pair


def voted_unit(body: str) -> VotedUnit:
    """A pair in its stored text; of millions, a `Pair` of each would take longer than the rest."""
    pair = read_body(body)
    first, second = pair.candidates
    return VotedUnit(
        topic=pair.row,
        candidates=(first.id, second.id),
        lengths=pair.lengths or (len(first.text) or None, len(second.text) or None),
        fields=raw_object(pair.meta),
    )


def measured(pair: Pair) -> VotedUnit:
    """The same of a pair that was read."""
    return VotedUnit(
        topic=pair.row,
        candidates=(pair.first.id, pair.second.id),
        lengths=pair.lengths,
        fields=pair.meta,
    )


def voted(judgment: Judgment) -> Voted:
    """A judgment of a pair, whatever came of it."""
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
