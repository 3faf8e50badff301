"""The verdict of the kind `pairwise`, its passes, and what statistics take of them. All speak of
the candidates of the input file: `A` is the first of them, whatever the order in which a judge saw
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec import field as stored
from msgspec.structs import asdict

from evenhand.judgment import Judgment, JudgmentReader, Pass, Verdict
from evenhand.kinds.rows import raw_object
from evenhand.measures import PassVote, Voted, VotedUnit
from evenhand.units import Pair

Winner = Literal["A", "B", "tie"]
Mark = Literal["A+", "B+", "tie"]
Order = Literal["12", "21"]
Outcome = Literal["A", "B", "tie", "uncertain"]
Settling = Literal["stable", "resolved", "uncertain", "one_order"]
"""How a pair was settled; `one_order` is of a judgment made elsewhere in one order alone."""
WINNERS: tuple[Winner, ...] = get_args(Winner)
MARKS: tuple[Mark, ...] = get_args(Mark)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
ORDERS: tuple[Order, ...] = get_args(Order)
SETTLINGS: tuple[str, ...] = get_args(Settling)


class CriterionReply(Struct, frozen=True):
    """The part of a reply about one criterion; None where the form did not ask."""

    first_meets: bool | None = None
    second_meets: bool | None = None
    comment: str | None = None
    mark: Mark | None = None


class PairReply(Struct, frozen=True):
    """One reply, in the terms that the judge used: `A` is the candidate it saw first."""

    criteria: dict[str, CriterionReply]
    explanation: str
    winner: Winner | None

    @property
    def marks(self) -> dict[str, Mark | None]:
        return {criterion: reply.mark for criterion, reply in self.criteria.items()}

    @property
    def output(self) -> dict[str, Any]:
        """The reply in the form that the contract asks for."""
        criteria = {criterion: asdict(reply) for criterion, reply in self.criteria.items()}
        return asdict(self) | {"criteria": criteria}


class CriterionComment(Struct, frozen=True, omit_defaults=True):
    """The part of a pass about one criterion, beside its mark."""

    first_meets: bool | None = None
    second_meets: bool | None = None
    comment: str | None = None


class PairPass(Pass, frozen=True, kw_only=True, omit_defaults=True):
    """One call in one order, mapped back to the candidates of the input file. A reply that broke
    the contract has no winner and no marks."""

    round: int
    order: Order
    judge: str
    flags: tuple[str, ...]
    marks: dict[str, Mark | None]
    winner: Winner | None = None
    """Derived by code from the marks."""
    said: Winner | None = None
    """The winner that the judge itself named."""
    preference: float | None = None
    """The preference for the second candidate, from 0 to 1, where another tool gives it."""
    criteria: dict[str, CriterionComment] = stored(default_factory=dict)
    explanation: str = ""

    def json(self) -> dict[str, Any]:
        """With what was said to each criterion in one place."""
        said = {
            name: asdict(self.criteria.get(name, CriterionComment())) | {"mark": mark}
            for name, mark in self.marks.items()
        }
        return super().json() | ({"criteria": said} if said else {})

    @property
    def contradicts_itself(self) -> bool:
        """Return True if the judge's own winner is not that of its marks."""
        return "self_contradiction" in self.flags


class PairVerdict(Struct, frozen=True, kw_only=True):
    """Which of two candidates is better, and on which criteria. The pair's `meta` is kept byte for
    byte."""

    pair_id: str
    candidates: tuple[str, str]
    winner: Outcome
    settled: Settling
    rounds: int
    criteria: dict[str, Mark]
    """The marks of the settling round; a criterion on which its passes differ is a tie."""
    unstable: tuple[str, ...]
    """Those criteria."""
    notes: str
    meta_json: Raw = stored(name="meta")
    odds: dict[str, float] | UnsetType = UNSET
    """The probability of each winner, where the judge tells it."""
    preference: float | UnsetType = UNSET
    """The preference for the second candidate, where another tool gives it."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """The pair's own, key order and the spelling of numbers as they were."""
        return raw_object(self.meta_json)

    @property
    def output(self) -> dict[str, Any]:
        """The contract's own object."""
        named = {"meta_json": "meta"}
        values = {name: value for name, value in asdict(self).items() if value is not UNSET}
        values |= {"candidates": list(self.candidates), "unstable": list(self.unstable)}
        values["meta_json"] = dict(self.meta)
        return {named.get(name, name): value for name, value in values.items()}


def pair_passes(judgment: Judgment) -> tuple[PairPass, ...]:
    """The passes of a judgment of a pair."""
    return tuple(pass_ for pass_ in judgment.passes if isinstance(pass_, PairPass))


READER = JudgmentReader(PairVerdict, PairPass)


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
