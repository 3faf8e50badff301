"""The questions and replies of a judgment, made again from recorded replies without a call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from evenhand.engine.call import AskFn, route
from evenhand.engine.progress import Tally
from evenhand.engine.run import judging_context
from evenhand.engine.stop import Stopped
from evenhand.errors import ReplyAltered
from evenhand.exchange import Question, Reply
from evenhand.manifest import JudgeRecord
from evenhand.runs.recorded import Recorded, split_by_group
from evenhand.store.archive import Archive
from evenhand.store.ports import Call, StoredJudgment, StoredUnit
from evenhand.store.rows import call_keys
from evenhand.words import Sentence


def recorded_endpoints(judges: Sequence[JudgeRecord], archive: Archive, tally: Tally) -> AskFn:
    """Return an `ask` over recorded replies alone."""
    return route([_recorded_endpoint(judge.identity, archive, tally) for judge in judges])


def _recorded_endpoint(identity: Mapping[str, Any], archive: Archive, tally: Tally) -> AskFn:
    key_of = call_keys(identity)

    async def ask(question: Question) -> Call:
        key = key_of(question)
        answer = archive.calls([key]).get(key)
        if answer is None:
            raise Stopped
        if answer.altered:
            raise ReplyAltered(Sentence("runs.altered_reply", call=key))
        tally.cached += 1
        await asyncio.sleep(0)  # Ctrl-C is heard
        return answer.call

    return ask


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question as it was put, and the reply to it."""

    key: str
    judge: str
    question: Question
    reply: Reply

    def json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "judge": self.judge,
            "round": self.question.round,
            "order": self.question.order,
            "reask": self.question.reask,
            "sampling": dict(self.reply.sampling),
            "messages": [message.json() for message in self.question.messages],
            "reasoning": self.reply.reasoning,
            "reply": self.reply.text,
            "finish": self.reply.finish,
            "model": self.reply.model,
            "odds": {path: dict(odds) for path, odds in self.reply.odds.items()},
        }


async def exchanges(
    recorded: Recorded, archive: Archive, unit: StoredUnit, stored: StoredJudgment
) -> list[Exchange]:
    """Return the conversation behind one judgment, made again from the ledger: the keys prove that
    these are the prompts that were sent. It ends before a reply that was altered, and is empty for
    a judgment made elsewhere."""
    if recorded.imported:
        return []
    group, judges = list(split_by_group(recorded.judge_groups, recorded.judges))[stored.judge]
    endpoint = recorded_endpoints(judges, archive, Tally())
    conversation: list[Exchange] = []

    async def ask(question: Question) -> Reply:
        call = await endpoint(replace(question, repeat=stored.repeat))
        conversation.append(Exchange(call.key, call.judge, question, call.reply))
        return call.reply

    with suppress(Stopped, ReplyAltered):
        context = judging_context(group, stored.repeat, ask)
        await recorded.judging.judge(recorded.kind.load(unit.body), context)
    return conversation
