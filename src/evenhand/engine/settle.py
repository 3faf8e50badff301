"""One unit to its judgment, with the keys of the calls it rests on."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace as changed

from evenhand.engine.attempt import Endpoint
from evenhand.engine.group import JudgeGroup
from evenhand.engine.tally import Tally
from evenhand.exchange import Ask, Question, Reply
from evenhand.judgment import Judgment, write_judgment
from evenhand.kinds.kind import Judging
from evenhand.kinds.shared.asking import Aside, Asking, Together, at_once, in_turn
from evenhand.store.ports import StoredJudgment, StoredUnit


class Settled(NamedTuple):
    """A unit's judgment, as the store keeps it and as it is."""

    stored: StoredJudgment
    judgment: Judgment
    reply: str | None
    """The last reply that it rests on, a re-ask where there was one; None where there is none."""


async def settle(
    kind: Judging,
    group: JudgeGroup,
    repeat: int,
    unit: StoredUnit,
    endpoint: Endpoint,
    tally: Tally,
    together: Together = in_turn,
    aside: Aside = at_once,
) -> Settled:
    """One unit's judgment, with the keys of the calls it rests on: conversation by conversation as
    they were begun, whichever was answered first."""
    conversations: dict[tuple[int, int, str], list[str]] = {}
    reasks, are_believed = 0, True
    last: tuple[int, str] | None = None

    async def ask(question: Question) -> Reply:
        nonlocal reasks, are_believed, last
        place = question.round, question.seat, question.order
        keys = conversations.setdefault(place, [])
        call = await endpoint(changed(question, repeat=repeat) if repeat else question)
        keys.append(call.key)
        reasks += question.reask > 0
        are_believed &= not call.reply.usage.implausible
        tally.reasks += question.reask > 0
        if last is None or question.reask >= last[0]:
            last = question.reask, call.reply.text
        return call.reply

    judgment = await kind.judge(unit.body, asking(group, repeat, ask, together, aside))
    calls = tuple(chain.from_iterable(conversations.values()))
    if not are_believed:
        judgment = replace(judgment, flags=(*judgment.flags, "usage_not_believed"))
    if group.caveat and calls:
        judgment = replace(judgment, flags=(*judgment.flags, "not_validated"))
    text = write_judgment(judgment, calls)
    stored = StoredJudgment(unit.no, group.index, repeat, calls, reasks, text)
    return Settled(stored, judgment, last and last[1])


def asking(
    group: JudgeGroup,
    repeat: int,
    ask: Ask,
    together: Together = in_turn,
    aside: Aside = at_once,
) -> Asking:
    """A group about to judge a unit."""
    return Asking(
        ask=ask,
        together=together,
        aside=aside,
        judges=group.names,
        styles=group.styles,
        turn=group.turn + repeat,
    )
