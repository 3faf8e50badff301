"""One unit to its judgment, with the keys of the calls it rests on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace as changed

from evenhand.engine.attempt import Endpoint
from evenhand.engine.group import JudgeGroup
from evenhand.engine.tally import Tally
from evenhand.exchange import Ask, Question, Reply
from evenhand.judgment import Judgment, write_judgment
from evenhand.kinds.conversation import (
    GatherConversations,
    JudgingContext,
    Offload,
    gather_in_order,
    run_inline,
)
from evenhand.kinds.kind import ReadyKind
from evenhand.store.ports import StoredJudgment, StoredUnit


class Settled(NamedTuple):
    """A unit's judgment, as the store keeps it and as it is."""

    stored: StoredJudgment
    judgment: Judgment
    reply: str | None
    """The last reply that it rests on, a re-ask where there was one; None where there is none."""


async def settle(
    kind: ReadyKind,
    group: JudgeGroup,
    repeat: int,
    unit: StoredUnit,
    endpoint: Endpoint,
    tally: Tally,
    gather_conversations: GatherConversations = gather_in_order,
    aside: Offload = run_inline,
) -> Settled:
    """One unit's judgment, with the keys of the calls it rests on: conversation by conversation as
    they were begun, whichever was answered first."""
    conversations: dict[tuple[int, int, str], list[str]] = {}
    reasks, are_believed = 0, True
    last: tuple[int, str] | None = None

    async def ask(question: Question) -> Reply:
        nonlocal reasks, are_believed, last
        place = question.round, question.judge_index, question.order
        keys = conversations.setdefault(place, [])
        call = await endpoint(changed(question, repeat=repeat) if repeat else question)
        keys.append(call.key)
        reasks += question.reask > 0
        are_believed &= not call.reply.usage.implausible
        tally.reasks += question.reask > 0
        if last is None or question.reask >= last[0]:
            last = question.reask, call.reply.text
        return call.reply

    context = judging_context(group, repeat, ask, gather_conversations, aside)
    loaded = await aside(partial(kind.load, unit.body), len(unit.body))
    judgment = await kind.judge(loaded, context)
    calls = tuple(chain.from_iterable(conversations.values()))
    if not are_believed:
        judgment = replace(judgment, flags=(*judgment.flags, "usage_not_believed"))
    if group.caveat and calls:
        judgment = replace(judgment, flags=(*judgment.flags, "not_validated"))
    text = write_judgment(judgment, calls)
    stored = StoredJudgment(unit.no, group.index, repeat, calls, reasks, text)
    return Settled(stored, judgment, last and last[1])


def judging_context(
    group: JudgeGroup,
    repeat: int,
    ask: Ask,
    gather_conversations: GatherConversations = gather_in_order,
    aside: Offload = run_inline,
) -> JudgingContext:
    """A group about to judge a unit."""
    return JudgingContext(
        ask=ask,
        gather_conversations=gather_conversations,
        offload=aside,
        judges=group.names,
        styles=group.styles,
        judgment_index=group.turn + repeat,
    )
