"""The verdict of the kind `pairwise`, its passes, the rule by which code decides it, and what
statistics take of it. All speak of the candidates of the input file: `A` is the first of them,
whatever the order in which a judge saw them.

A pass is won by dominance, then by the priority list. The first round whose orders agree settles
the pair; one that no round settles is `uncertain`, never silently a tie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec import field as stored
from msgspec.structs import asdict

from evenhand.judgment import Judgment, JudgmentReader, Pass, Verdict
from evenhand.kinds.conversation import Try
from evenhand.kinds.rows import read_raw_object
from evenhand.observation import PassVote, Voted, VotedUnit
from evenhand.units import Pair

Winner = Literal["A", "B", "tie"]
Mark = Literal["A+", "B+", "tie"]
Order = Literal["12", "21"]
Outcome = Literal["A", "B", "tie", "uncertain"]
Settling = Literal["stable", "resolved", "uncertain", "one_order"]
"""The way a pair was settled; `one_order` is of a judgment made elsewhere in one order alone."""
WINNERS: tuple[Winner, ...] = get_args(Winner)
MARKS: tuple[Mark, ...] = get_args(Mark)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
ORDERS: tuple[Order, ...] = get_args(Order)


_SWAPPED: dict[Any, Any] = {"A": "B", "B": "A", "A+": "B+", "B+": "A+"}


class CriterionReply(Struct, frozen=True, omit_defaults=True):
    """The part of a reply, or of a pass, about one criterion; None where the form did not ask."""

    first_meets: bool | None = None
    second_meets: bool | None = None
    comment: str | None = None
    mark: Mark | None = None

    def swap(self) -> CriterionReply:
        """Return what is said of two candidates, said of them the other way round."""
        mark = _SWAPPED.get(self.mark, self.mark)
        return CriterionReply(self.second_meets, self.first_meets, self.comment, mark)


def _marks_of(criteria: Mapping[str, CriterionReply]) -> dict[str, Mark | None]:
    return {criterion: reply.mark for criterion, reply in criteria.items()}


class PairReply(Struct, frozen=True):
    """One reply, in the terms that the judge used: `A` is the candidate it saw first."""

    criteria: dict[str, CriterionReply]
    explanation: str
    winner: Winner | None

    @property
    def marks(self) -> dict[str, Mark | None]:
        return _marks_of(self.criteria)

    @property
    def output(self) -> dict[str, Any]:
        """The reply in the form that the contract asks for."""
        criteria = {criterion: asdict(reply) for criterion, reply in self.criteria.items()}
        return asdict(self) | {"criteria": criteria}


class PairPass(Pass, frozen=True, kw_only=True, omit_defaults=True):
    """One call in one order, mapped back to the candidates of the input file. A reply that broke
    the contract has no winner and no marks."""

    round: int
    order: Order
    judge: str
    flags: tuple[str, ...]
    winner: Winner | None = None
    """Derived by code from the marks."""
    said: Winner | None = None
    """The winner that the judge itself named."""
    preference: float | None = None
    """The preference for the second candidate, from 0 to 1, where another tool gives it."""
    criteria: dict[str, CriterionReply] = stored(default_factory=dict)
    explanation: str = ""

    @property
    def marks(self) -> dict[str, Mark | None]:
        return _marks_of(self.criteria)

    def json(self) -> dict[str, Any]:
        """Return the pass with all that was said to each criterion."""
        said = {name: asdict(reply) for name, reply in self.criteria.items()}
        return super().json() | ({"criteria": said} if said else {})


class PairVerdict(Struct, frozen=True, kw_only=True):
    """The better one of two candidates, and the criteria. The pair's `meta` is kept byte for
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
    preference: float | UnsetType = UNSET
    """The preference for the second candidate, where another tool gives it."""

    @property
    def meta(self) -> dict[str, Any]:
        """The pair's own, key order and the spelling of numbers as they were."""
        return read_raw_object(self.meta_json)

    @property
    def output(self) -> dict[str, Any]:
        """The contract's own object."""
        named = {"meta_json": "meta"}
        values = {name: value for name, value in asdict(self).items() if value is not UNSET}
        values |= {"candidates": list(self.candidates), "unstable": list(self.unstable)}
        values["meta_json"] = self.meta
        return {named.get(name, name): value for name, value in values.items()}


# The rule

_BETTER: dict[str | None, Winner] = {"A+": "A", "B+": "B"}
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
        criteria = {c: r if order == "12" else r.swap() for c, r in reply.criteria.items()}
        marks, named = _marks_of(criteria), _swap(reply.winner, order)
        if named not in (None, derive_winner(marks, told_priority)):
            flags = ("self_contradiction", *flags)
        said = {
            "winner": derive_winner(marks, priority),
            "said": named,
            "criteria": criteria,
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
        **said,
    )


def tied_round(criteria: Sequence[str]) -> Round:
    """Return the round that two equal texts are spared."""
    common: dict[str, Any] = {"reask": 0, "problems": (), "round": 1, "judge": "", "flags": ()}
    tied = dict.fromkeys(criteria, CriterionReply(mark="tie"))
    first, second = (PairPass(order=o, winner="tie", criteria=tied, **common) for o in ORDERS)
    return first, second


def _swap(word: Any, order: Order) -> Any:
    """Return what a judge said of its slots, said of the candidates."""
    return word if order == "12" else _SWAPPED.get(word, word)


# Statistics


def pair_passes(judgment: Judgment) -> tuple[PairPass, ...]:
    """Return the passes of a judgment of a pair."""
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
