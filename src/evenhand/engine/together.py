"""Several conversations about one unit at the same time: the first in the task of the unit, each
other in one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from evenhand.engine.stop import Stopped
from evenhand.errors import NothingRecorded
from evenhand.kinds.check import V
from evenhand.kinds.conversation import Conversation, Converse


async def gather_conversations(conversations: Sequence[Converse[V]]) -> Sequence[Conversation[V]]:
    """Hold all at once. What cannot be sent or is not recorded ends the others no sooner: a call
    under way is paid for, and waited for. Any other exception, and a cancellation, ends them all.
    """
    first, *others = conversations
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_to_its_end(begin)) for begin in others]
            outcomes = [await _to_its_end(first)]
    except* Exception as failed:
        raise failed.exceptions[0] from failed.exceptions[0].__cause__
    ended: list[Conversation[V]] = []
    for outcome in (*outcomes, *(task.result() for task in tasks)):
        if isinstance(outcome, Exception):
            raise outcome
        ended.append(outcome)
    return ended


async def _to_its_end(begin: Converse[V]) -> Conversation[V] | Stopped | NothingRecorded:
    try:
        return await begin()
    except (Stopped, NothingRecorded) as outcome:
        return outcome
