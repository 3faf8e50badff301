"""What the votes of one judge on one pair come to: both orders are the passes of a judgment, rows
in one order or of different samples are repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple, cast

from msgspec import UNSET, Raw
from msgspec.structs import replace

from evenhand.judgment import Failure, Judgment, Problem, Reason, Verdict
from evenhand.kinds.pairwise.verdict import (
    ORDERS,
    CriterionReply,
    Mark,
    Order,
    PairPass,
    PairVerdict,
    Settling,
    Winner,
    derive_winner,
)
from evenhand.measures import Unreadable

UNREADABLE = "unreadable_order"
"""Of a judgment one order of which nobody can read, settled without it."""
_SIDES: dict[Order, dict[str, Winner]] = {
    "12": {"first": "A", "second": "B"},
    "21": {"first": "B", "second": "A"},
}
_MARKS: dict[Winner, Mark] = {"A": "A+", "B": "B+", "tie": "tie"}


class VoteRow(NamedTuple):
    """What a vote says: whether the candidates of the unit were shown the other way round, and
    what was said of them as they were shown."""

    is_turned: bool
    said: str
    preference: float | None
    failed: str
    detail: str
    sample: str
    criterion: str
    flag: str
    explanation: str

    @property
    def order(self) -> Order:
        return "21" if self.is_turned else "12"


class VotedPair(NamedTuple):
    """A pair of candidates on one unit."""

    id: str
    first: str
    second: str
    meta: str
    """As JSON."""


def settled(
    pair: VotedPair, rows: Sequence[VoteRow], judge: str, on_unreadable: Unreadable = "fail"
) -> list[Judgment]:
    """The judgments of one judge on one pair: the k-th row in one order goes with the k-th in the
    other."""
    samples: dict[str, dict[Order, list[dict[str, VoteRow]]]] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for row in rows:
        order = row.order
        place = (row.sample, order, row.criterion)
        orders = samples.setdefault(row.sample, {"12": [], "21": []})
        number = counts[place] = counts.get(place, -1) + 1
        if number == len(orders[order]):
            orders[order].append({})
        orders[order][number][row.criterion] = row
    judgments: list[Judgment] = []
    for orders in samples.values():
        for slots in zip_longest(orders["12"], orders["21"]):
            passes = tuple(
                _pass(slot, order, judge)
                for order, slot in zip(ORDERS, slots, strict=True)
                if slot is not None
            )
            flags = dict.fromkeys(
                row.flag for slot in slots if slot for row in slot.values() if row.flag
            )
            readable = _readable(passes, on_unreadable)
            more = () if readable == passes else (UNREADABLE,)
            judgments.append(_judgment(pair, readable, (*flags, *more)))
    return judgments


def _readable(passes: tuple[PairPass, ...], rule: Unreadable) -> tuple[PairPass, ...]:
    """The passes of a judgment under the rule for an order that cannot be read, where the other
    one can."""
    if rule == "fail" or not (0 < sum(bool(each.problems) for each in passes) < len(passes)):
        return passes
    if rule == "other":
        return tuple(each for each in passes if not each.problems)
    return tuple(
        replace(each, problems=(), winner="tie") if each.problems else each for each in passes
    )


def _pass(slot: Mapping[str, VoteRow], order: Order, judge: str) -> PairPass:
    """What was said in one order, of the candidates as the unit has them."""
    whole = slot.get("")
    marks = {criterion: _mark(row, order) for criterion, row in slot.items() if criterion}
    bad = whole if whole else next((row for row in slot.values() if row.failed), None)
    if bad and bad.failed and (whole or not any(marks.values())):
        problems = (Problem(cast("Reason", bad.failed), "winner", bad.detail),)
        return PairPass(reask=0, problems=problems, round=1, order=order, judge=judge, flags=())
    return PairPass(
        reask=0,
        problems=(),
        round=1,
        order=order,
        judge=judge,
        flags=(),
        winner=_SIDES[order].get(whole.said, "tie") if whole else derive_winner(marks, ()),
        preference=_preference(whole, order),
        criteria={
            criterion: CriterionReply(comment=slot[criterion].explanation or None, mark=mark)
            for criterion, mark in marks.items()
        },
        explanation=whole.explanation if whole else "",
    )


def _preference(whole: VoteRow | None, order: Order) -> float | None:
    """How far the second candidate of the unit is preferred, where a row says so."""
    if whole is None or whole.preference is None:
        return None
    return whole.preference if order == "12" else 1 - whole.preference


def _mark(row: VoteRow, order: Order) -> Mark | None:
    if row.failed:
        return None
    side = _SIDES[order].get(row.said, "tie")
    return _MARKS[side]


def _judgment(pair: VotedPair, passes: tuple[PairPass, ...], flags: tuple[str, ...]) -> Judgment:
    for judged_pass in passes:
        if judged_pass.problems:
            return _failure(judged_pass, passes, flags)
    winners = {judged_pass.winner for judged_pass in passes}
    is_uncertain = len(winners) > 1
    how: Settling = "one_order" if len(passes) == 1 else "uncertain" if is_uncertain else "stable"
    marks, unstable = _marks(passes)
    preferences = [
        judged_pass.preference for judged_pass in passes if judged_pass.preference is not None
    ]
    verdict = PairVerdict(
        pair_id=pair.id,
        candidates=(pair.first, pair.second),
        winner="uncertain" if is_uncertain else passes[0].winner or "tie",
        settled=how,
        rounds=1,
        criteria=marks,
        unstable=tuple(unstable),
        # What it calls the first answer is that of the unit.
        notes=next((pass_.explanation for pass_ in passes if pass_.order == "12"), ""),
        meta_json=Raw(pair.meta),
        preference=sum(preferences) / len(preferences) if preferences else UNSET,
    )
    if any(mark is None for judged_pass in passes for mark in judged_pass.marks.values()):
        flags = (*flags, "marks_missing")
    return Verdict(value=verdict, flags=flags, passes=passes)


def _failure(failed: PairPass, passes: tuple[PairPass, ...], flags: tuple[str, ...]) -> Failure:
    (problem,) = failed.problems
    detail = problem.message
    if len(passes) > 1:
        detail = f"order {failed.order}: {detail}"
        others = [
            f"order {judged_pass.order} says {judged_pass.winner}"
            for judged_pass in passes
            if judged_pass.winner
        ]
        detail = "; ".join([detail, *others])
    return Failure(reason=problem.code, detail=detail, flags=flags, passes=passes)


def _marks(passes: Sequence[PairPass]) -> tuple[dict[str, Mark], list[str]]:
    """Each criterion's mark; one on which the orders differ is unstable, and a tie."""
    marks: dict[str, Mark] = {}
    unstable: list[str] = []
    for criterion in dict.fromkeys(name for judged_pass in passes for name in judged_pass.marks):
        values = [
            judged_pass.marks[criterion] for judged_pass in passes if criterion in judged_pass.marks
        ]
        if not any(values):
            continue
        if len(set(values)) > 1:
            unstable.append(criterion)
        marks[criterion] = "tie" if len(set(values)) > 1 else values[0] or "tie"
    return marks, unstable
