"""What every store keeps of batches: noted before they are made, each answer recorded once."""

import pytest

from evenhand.store.batches import BatchItem, ItemOutcome, NewBatch, item_id, item_key
from evenhand.store.sqlite import sqlite_store
from evenhand.store.verify import verify
from tests.contract.ledger_rows import call, key
from tests.contract.stores import STORES
from tests.suites import evenhand_here


def batch(name="b1", *numbers, amount=100):
    items = [BatchItem(key(n), 50, amount, '{"seed":1}') for n in numbers]
    return NewBatch(name=name, run="run1", judge="judge", place="p", items=items)


async def test_a_batch_is_noted_with_its_items_and_its_money(store):
    async with store.batches() as book:
        await book.prepare(batch("b1", 1, 2, 3))
        assert await book.waiting_in(key(2)) == ["b1"]
        assert await book.waiting_in(key(9)) == []
        [noted] = await book.open_batches()
        assert (noted.name, noted.ident, noted.stage, noted.requests) == (
            "b1",
            "",
            "prepared",
            3,
        )
        await book.attach("b1", "batch_x", "validating")
        assert await book.is_known("batch_x")
        items = await book.open_items("b1")
    assert [(item.line, item.key, item.amount) for item in items] == [
        (n, key(n), 100) for n in (1, 2, 3)
    ]
    [row] = store.archive.batches("run1")
    assert (row.ident, row.stage, row.open, row.reserved) == ("batch_x", "waiting", 3, 300)
    assert store.archive.spent("run1").reserved == 300
    assert store.archive.batches("another") == []
    assert verify(store.archive) == []


async def test_an_answer_is_recorded_once_and_its_money_given_back(store):
    async with store.batches() as book:
        await book.prepare(batch("b1", 1, 2, 3, 4))
        await book.attach("b1", "batch_x", "in_progress")
        outcomes = [
            ItemOutcome(key(1), call(1)),
            ItemOutcome(key(2), None, "refused", "no"),
            ItemOutcome(key(3), None, "unanswered", "lost", may_be_billed=True),
            ItemOutcome(key(8), call(8)),
        ]
        assert await book.take("b1", outcomes) == [call(1)]
        assert await book.take("b1", outcomes) == []
        await book.close_batch("b1", "ended", "completed")
        assert await book.open_batches() == []
        assert await book.waiting_in(key(4)) == []
    [row] = store.archive.batches()
    counts = (row.answered, row.refused, row.unanswered, row.open)
    assert (row.stage, row.status, counts) == ("ended", "completed", (1, 1, 2, 0))
    spent = store.archive.spent("run1")
    assert (spent.calls, spent.cost, spent.reserved) == (1, 5, 100)
    assert (spent.cached_tokens, spent.stored_tokens) == (1, 1)
    assert store.archive.calls([key(1)])[key(1)].call == call(1)
    assert verify(store.archive) == []


async def test_a_batch_that_was_never_made_holds_nothing(store):
    async with store.batches() as book:
        await book.prepare(batch("b1", 1))
        await book.close_batch("b1", "void", "not made")
        await book.prepare(batch("b2", 1))
        await book.attach("b2", "batch_x", "in_progress")
        await book.close_batch("b2", "void", "given up")
    assert {row.name: row.reserved for row in store.archive.batches()} == {"b1": 0, "b2": 100}
    assert verify(store.archive) == []


async def test_a_question_that_was_answered_meanwhile_is_kept_beside(store):
    async with store.batches() as book, store.ledger() as ledger:
        await book.prepare(batch("b1", 1))
        await ledger.record(call(1, text="live"))
        await book.take("b1", [ItemOutcome(key(1), call(1, text="batch"))])
        found = await ledger.find(key(1))
        assert found is not None and found.reply.text == "live"
    assert store.archive.spent("run1").calls == 2
    assert verify(store.archive) == []


@pytest.mark.parametrize("number", [0, 7])
def test_the_id_of_an_item_is_its_key_in_letters_that_all_take(number):
    ident = item_id(key(number))
    assert len(ident) <= 64 and all(c.isalnum() or c in "-_" for c in ident)
    assert item_key(ident) == key(number)
    assert item_key("somebody-elses") == ""


async def test_a_copy_of_a_store_has_its_batches(tmp_path):
    """From a file into another: whoever has the copy goes on with what is under way."""
    source = STORES["sqlite"](tmp_path)()
    async with source.batches() as book:
        await book.prepare(batch("b1", 1, 2))
        await book.attach("b1", "batch_x", "in_progress")
        await book.take("b1", [ItemOutcome(key(1), call(1))])
    rows = source.archive.batches()
    source.close()
    copied = evenhand_here("store", "copy", "sqlite:store.db", "sqlite:copy.db", cwd=tmp_path)
    assert copied.returncode == 0, copied.stderr
    target = sqlite_store(tmp_path / "copy.db")
    try:
        assert target.archive.batches() == rows
        async with target.batches() as book:
            assert [item.key for item in await book.open_items("b1")] == [key(2)]
        assert verify(target.archive) == []
    finally:
        target.close()
