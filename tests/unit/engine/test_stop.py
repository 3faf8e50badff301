"""Whoever waits for a signal is woken by it, by the clock or by the switch, and by nothing else."""

import asyncio

import pytest

from evenhand.engine.stop import Signal, Stop, Stopped, wait_any
from evenhand.errors import Interrupted


async def turns():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_signal_wakes_all_who_wait_now_and_nobody_later():
    signal, other = Signal(), Signal()
    waiting = [asyncio.create_task(wait_any(signal, other)) for _ in range(3)]
    await turns()
    assert not any(task.done() for task in waiting)
    signal.notify_all()
    await asyncio.gather(*waiting)
    late = asyncio.create_task(wait_any(signal, other))
    await turns()
    assert not late.done()
    other.notify_all()
    await late


async def test_who_waits_so_long_is_woken_by_the_clock():
    await wait_any(Signal(), seconds=0)


async def test_who_is_cancelled_waits_no_more():
    signal = Signal()
    waiting = asyncio.create_task(wait_any(signal, seconds=600))
    await turns()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    signal.notify_all()
    await turns()


async def test_nobody_waits_beyond_the_switch():
    stop, signal = Stop(), Signal()
    waiting = asyncio.create_task(stop.sleep(None, signal))
    await turns()
    stop.request(Interrupted("enough"))
    with pytest.raises(Stopped):
        await waiting
    with pytest.raises(Stopped):
        await stop.sleep(600, signal)


async def test_a_signal_serves_one_event_loop_after_the_other():
    signal = Signal()

    async def woken():
        asyncio.get_running_loop().call_soon(signal.notify_all)
        await wait_any(signal)

    for _ in range(2):
        await asyncio.to_thread(asyncio.run, woken())
