"""One unit judged by one group of judges, with the keys of the calls that the judgment rests on.

A run whose judgments all fail is stopped before the rest of it is paid for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace as replace_fields

from evenhand.engine.progress import Tally
from evenhand.engine.stop import Stop
from evenhand.errors import NoVerdicts, quoted
from evenhand.exchange import Ask, Question, Reply, Style
from evenhand.judgment import RETRIED_BY_NEXT_RUN, Judgment, write_judgment
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
from evenhand.kinds.reply import V
from evenhand.limits import FUTILE_JUDGMENTS
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


_REPLY_LINES, _REPLY_COLUMNS = 4, 100

_WITHOUT_REPLY = RETRIED_BY_NEXT_RUN | {"filtered", "context_overflow"}
_ADVICE: dict[str, str] = {
    "refused": "The judge declines the task: take another model, or change the prompt.",
    "filtered": "The provider's content filter blocks it: change the filter, or take another"
    " provider.",
    "truncated": "Replies are cut off: raise max_tokens of this judge.",
    "empty": "Replies are empty: raise max_tokens of this judge (a reasoning model may use all of"
    " it up), or take another model.",
    "not_json": "Replies are not JSON: take a model that follows the format, and check the chat"
    " template of a server of your own.",
    "ambiguous": "Replies hold more than one verdict: take another model, or change the prompt.",
    "schema": "Replies do not have the form that is asked for: take a stronger model; where the"
    " prompt is your own, check that it asks for this form.",
    "out_of_range": "Scores lie outside of the scale: check the scale in the rubric, or take a"
    " stronger model.",
    "evidence_missing": "Quotes are not in the judged text: check that the right column is judged,"
    " or take a stronger model.",
    "meta_changed": "Replies change the meta fields: take a stronger model.",
    "transport": "Calls are lost on their way: check the address and the server of the judge.",
    "timeout": "Answers come too late: raise [limits] attempt_seconds and call_seconds, or lower"
    " concurrency.",
    "context_overflow": "The texts are too long for this model: take one with a larger context.",
    "judge_crash": "The judge itself fails: mend its code, or its installation.",
}


def failure_advice(reason: str) -> str:
    """Return what to change where judgments fail for a reason; empty for an unknown one."""
    return _ADVICE.get(reason, "")


def note_outcome(tally: Tally, group: JudgeGroup, judgment: Judgment, reply: str | None) -> None:
    """Count a judgment of this command, and keep the last reply of a failure."""
    if judgment.status != "left_out":
        tally.outcomes.setdefault(group.index, Counter())[judgment.reason] += 1
    if judgment.reason is not None:
        is_lost = reply is None or judgment.reason in _WITHOUT_REPLY
        tally.last_failures[group.index] = judgment.detail if is_lost else str(reply)


def stop_if_futile(stop: Stop, tally: Tally, group: JudgeGroup) -> None:
    """Stop the run if this command paid for 20 judgments or more by a judge and none of them is a
    verdict, for whatever reasons they failed."""
    outcomes = tally.outcomes.get(group.index, Counter())
    if outcomes.total() < FUTILE_JUDGMENTS or outcomes[None]:
        return
    reasons = [(reason, number) for reason, number in outcomes.most_common() if reason]
    failed = ", ".join(f"{number:,} failed as {reason}" for reason, number in reasons)
    judge = quoted(RELAY.join(group.names))
    stop.request(
        NoVerdicts(
            f"none of {outcomes.total():,} judgments by {judge} has a verdict: {failed}",
            advice=f"The last of them:\n{_cut(tally.last_failures.get(group.index, ''))}\n"
            f"  {failure_advice(reasons[0][0])}\n"
            "  Then run again: it goes on with the units that are not judged yet.",
        )
    )


def _cut(reply: str) -> str:
    """Return the first lines of a reply, each set off by a bar."""
    lines = reply.strip().splitlines() or ["(empty)"]
    kept = [
        line if len(line) <= _REPLY_COLUMNS else line[: _REPLY_COLUMNS - 1] + "…"
        for line in lines[:_REPLY_LINES]
    ]
    more = ["…"] if len(lines) > _REPLY_LINES else []
    return "\n".join(f"    | {line}" for line in [*kept, *more])
