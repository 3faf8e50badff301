"""What every ledger keeps of calls and money, whatever database is behind it."""

import inspect

from evenhand.exchange import Reply, Usage
from evenhand.store.ledger import Ledger
from evenhand.store.ports import Call
from tests.contract.ledger_rows import (
    call,
    key,
)


def test_the_port_is_small_enough_to_be_put_behind_a_network():
    methods = [name for name in vars(Ledger) if not name.startswith("_")]
    assert len(methods) <= 14
    for name in methods:
        told = inspect.signature(getattr(Ledger, name)).return_annotation
        is_awaited = inspect.iscoroutinefunction(getattr(Ledger, name)) or "Await" in told
        assert is_awaited or "AsyncIterator" in told, name


async def test_a_call_comes_back_as_it_was_recorded(opened):
    store = opened()
    given = call(1, text="оценка \x00 🙂\r\n")
    async with store.ledger() as ledger:
        assert await ledger.find(given.key) is None
        await ledger.record(given)
        assert await ledger.find(given.key) == given
    store.close()
    again = opened()
    async with again.ledger() as ledger:
        assert await ledger.find(given.key) == given
    assert again.archive.calls([given.key])[given.key].call == given
    again.close()


async def test_the_first_reply_to_a_question_stays(store, ledger):
    await ledger.record(call(1, "run1", text="first"))
    await ledger.record(call(1, "run2", text="second"))
    found = await ledger.find(key(1))
    assert found is not None and found.reply.text == "first"
    assert store.archive.calls([key(1)])[key(1)].call.reply.text == "first"
    assert [store.archive.spent(run).cost for run in ("run1", "run2")] == [5, 5]


async def test_reservations_count_until_they_are_closed(store, ledger):
    await ledger.reserve("run1", key(1), "a", 10)
    await ledger.reserve("run1", key(1), "b", 20)
    await ledger.reserve("run2", key(2), "a", 40)
    assert store.archive.spent("run1").reserved == 30
    await ledger.record(call(1, cost=4), "a")
    spent = store.archive.spent("run1")
    assert (spent.cost, spent.reserved) == (4, 20)
    await ledger.release(key(1), "b")
    await ledger.flush()
    assert store.archive.spent("run1").reserved == 0
    assert store.archive.spent("run2").reserved == 40


async def test_a_reservation_survives_without_an_orderly_end(opened, ledger):
    await ledger.reserve("run1", key(1), "a", 10)
    beside = opened()
    assert beside.archive.spent("run1").reserved == 10
    beside.close()


async def test_tokens_of_calls_without_a_price_are_the_most_they_can_be(store, ledger):
    """What the provider counted, and else the bound that was recorded."""
    bound = Usage(input_tokens=1000, output_tokens=300)
    usages = [Usage(input_tokens=7, output_tokens=3), Usage(input_tokens=9), Usage()]
    for number, usage in enumerate(usages):
        unpriced = Call(key(number), "run1", "judge", Reply(text="r", usage=usage), None, bound)
        await ledger.record(unpriced)
        assert await ledger.find(key(number)) == unpriced
    await ledger.record(call(9))
    spent = store.archive.spent("run1")
    assert (spent.unpriced, spent.calls) == (3, 4)
    assert (spent.input_tokens, spent.output_tokens) == (7 + 9 + 7, 3 + 3)
    assert spent.unpriced_tokens == {"judge": (7 + 9 + 1000, 3 + 300 + 300)}


async def test_calls_that_cost_nothing_count_as_calls_without_a_price(store, ledger):
    """They may get a price later; of each judge, for another may have another."""
    await ledger.record(call(1, cost=0))
    await ledger.record(call(2, cost=None))
    await ledger.record(call(3, cost=0)._replace(judge="other"))
    await ledger.record(call(4, cost=5))
    await ledger.record(call(5, cost=7))
    await ledger.record(call(9, run="run2"))
    spent = store.archive.spent("run1")
    assert (spent.cost, spent.unpriced, spent.calls) == (12, 1, 5)
    assert (spent.input_tokens, spent.output_tokens) == (35, 15)
    assert spent.unpriced_tokens == {"judge": (14, 6), "other": (7, 3)}


async def test_tokens_of_a_lost_call_without_a_price_are_kept(store, ledger):
    await ledger.record(call(1, cost=None))
    await ledger.reserve(
        "run1", key(2), "a", 0, "judge", Usage(input_tokens=1000, output_tokens=300)
    )
    most = Usage(input_tokens=50, output_tokens=30)
    await ledger.reserve("run1", key(3), "a", 0, "other: 1", most)
    await ledger.flush()
    spent = store.archive.spent("run1")
    assert (spent.reserved, spent.calls) == (0, 1)
    assert spent.unpriced_tokens == {"judge": (1007, 303), "other: 1": (50, 30)}
