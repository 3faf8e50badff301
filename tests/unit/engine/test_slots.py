"""Slots are never more than there are, and none is lost, whoever gives up when."""

from __future__ import annotations

import asyncio
import random

import pytest

from evenhand.engine.slots import Slots


async def test_whoever_waits_longest_is_next() -> None:
    slots, order = Slots(1), list[int]()

    async def use(number: int) -> None:
        await slots.take()
        order.append(number)
        await asyncio.sleep(0)
        slots.give_back()

    await asyncio.gather(*map(use, range(20)))
    assert order == list(range(20))
    assert slots.take_at_once() and not slots.take_at_once()


@pytest.mark.parametrize("seed", range(20))
async def test_no_slot_is_lost_to_those_who_are_cancelled(seed: int) -> None:
    slots, draw, at_once, most = Slots(3), random.Random(seed), 0, 0

    async def use() -> None:
        nonlocal at_once, most
        await slots.take()
        at_once += 1
        most = max(most, at_once)
        try:
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
        finally:
            at_once -= 1
            slots.give_back()

    tasks = [asyncio.create_task(use()) for _ in range(60)]
    while not all(task.done() for task in tasks):
        if draw.random() < 0.6:
            draw.choice(tasks).cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most == 3
    assert [slots.take_at_once() for _ in range(4)] == [True, True, True, False]
