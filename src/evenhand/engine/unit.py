"""One unit judged by one group of judges, with the keys of the calls that the judgment rests on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace as replace_fields

from evenhand.engine.progress import Tally
from evenhand.exchange import Ask, Question, Reply, Style
from evenhand.judgment import Judgment, write_judgment
from evenhand.kinds.check import V
from evenhand.kinds.conversation import (
    Conversation,
    Converse,
    GatherConversations,
    JudgingContext,
    Offload,
    gather_in_order,
    run_inline,
)
from evenhand.kinds.kind import ReadyKind
from evenhand.manifest import RELAY, number_names
from evenhand.store.ports import StoredJudgment, StoredUnit

if TYPE_CHECKING:
    from evenhand.engine.call import AskFn


class JudgeGroup(Struct, frozen=True, kw_only=True):
    """A judge of a run, or the judges of its relay."""

    index: int
    names: tuple[str, ...]
    styles: tuple[Style, ...]
    caveat: str
    repeats: int
    turn: int
    """The number of judgments of each unit that the groups before this one make."""


def group_names(judge_groups: Sequence[JudgeGroup]) -> list[str]:
    """Return a name for each group: of its judge, or of those of a relay in their order."""
    return number_names([RELAY.join(group.names) for group in judge_groups])


class UnitResult(NamedTuple):
    """A unit's judgment, as the store keeps it and as it is."""

    stored: StoredJudgment
    judgment: Judgment
    reply: str | None
    """The last reply it rests on, a re-ask where there was one; None where there is none."""


async def judge_unit(
    kind: ReadyKind,
    group: JudgeGroup,
    repeat: int,
    unit: StoredUnit,
    ask: AskFn,
    tally: Tally,
    gather: GatherConversations = gather_in_order,
    offload: Offload = run_inline,
) -> UnitResult:
    """Return one unit's judgment. Its calls are in the order of their conversations, whichever was
    answered first. Raises what `ask` raises, except CallError."""
    conversations: dict[tuple[int, int, str], list[str]] = {}
    reasks, is_usage_plausible = 0, True
    last: tuple[int, str] | None = None

    async def ask_and_note(question: Question) -> Reply:
        nonlocal reasks, is_usage_plausible, last
        place = question.round, question.judge_index, question.order
        keys = conversations.setdefault(place, [])
        call = await ask(replace_fields(question, repeat=repeat) if repeat else question)
        keys.append(call.key)
        reasks += question.reask > 0
        is_usage_plausible &= not call.reply.usage.implausible
        tally.reasks += question.reask > 0
        if last is None or question.reask >= last[0]:
            last = question.reask, call.reply.text
        return call.reply

    context = judging_context(group, repeat, ask_and_note, gather, offload)
    loaded = await offload(partial(kind.load, unit.body), len(unit.body))
    judgment = await kind.judge(loaded, context)
    calls = tuple(chain.from_iterable(conversations.values()))
    if not is_usage_plausible:
        judgment = replace(judgment, flags=(*judgment.flags, "usage_not_believed"))
    if group.caveat and calls:
        judgment = replace(judgment, flags=(*judgment.flags, "not_validated"))
    text = write_judgment(judgment, calls, kind.observe(unit.body, judgment))
    stored = StoredJudgment(unit.no, group.index, repeat, calls, reasks, text)
    return UnitResult(stored, judgment, last and last[1])


def judging_context(
    group: JudgeGroup,
    repeat: int,
    ask: Ask,
    gather: GatherConversations = gather_in_order,
    offload: Offload = run_inline,
) -> JudgingContext:
    """Return what a kind is given to judge a unit with."""
    return JudgingContext(
        ask=ask,
        gather_conversations=gather,
        offload=offload,
        judges=group.names,
        styles=group.styles,
        judgment_index=group.turn + repeat,
    )


async def gather_conversations(conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]:
    """Hold conversations at the same time; raise the first exception once all have ended, for a
    call under way is paid for."""
    if len(conversations) == 1:
        return [await conversations[0]()]
    work = (begin() for begin in conversations)
    ended = await asyncio.gather(*work, return_exceptions=True)
    results: list[Conversation[V]] = []
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results
