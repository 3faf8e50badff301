"""What every ledger keeps of judgments; who reads beside a writer, and what is a fault."""

import asyncio

import pytest

from evenhand.errors import DataError
from evenhand.exchange import Reply
from evenhand.judgment import write_judgment
from evenhand.store.ports import Call, IncomingUnit, Scope
from evenhand.store.verify import verify
from tests.contract.ledger_rows import (
    FAILED,
    LOST,
    OTHER,
    VERDICT,
    call,
    every_call,
    incoming,
    key,
    of,
    units_of,
)
from tests.contract.stores import begun


async def test_judgments_come_back_as_they_were_settled(store, ledger):
    scope = await begun(ledger, units_of(3))
    units = list(store.archive.units(scope))
    given = [of(units[0], VERDICT, key(1)), of(units[1], FAILED, key(1), key(2))]
    for judgment in reversed(given):
        await ledger.store_judgment(scope.run, judgment)
    await ledger.flush()
    archive = store.archive
    assert list(archive.judgments(scope)) == list(zip(units, given, strict=False))
    assert list(archive.judgments(scope, "u1")) == [(units[1], given[1])]
    assert list(archive.judgments(scope, "nobody")) == []


async def test_a_frozen_archive_shows_one_state(store, ledger):
    scope = await begun(ledger, units_of(3))
    units = list(store.archive.units(scope))
    await ledger.store_judgment(scope.run, of(units[0], VERDICT, key(1)))
    await ledger.flush()
    store.archive.set_frozen(True)
    store.archive.set_frozen(True)
    await ledger.store_judgment(scope.run, of(units[1], VERDICT, key(1)))
    await ledger.record(Call(key(1), scope.run, "judge", Reply(text="late"), 1))
    assert len(list(store.archive.judgments(scope))) == store.archive.counts(scope, 1).verdicts == 1
    assert store.archive.calls([key(1)]) == {}
    assert store.archive.spent(scope.run).calls == 0
    store.archive.set_frozen(False)
    store.archive.set_frozen(False)
    assert len(list(store.archive.judgments(scope))) == 2
    assert store.archive.spent(scope.run).calls == 1


async def test_what_was_judged_belongs_to_every_run_of_the_judging(store, ledger):
    first = await begun(ledger, units_of(3))
    for unit in store.archive.units(first):
        await ledger.store_judgment(first.run, of(unit, VERDICT))
    await ledger.flush()
    changed = [incoming(3), incoming(0), incoming(1, '{"new":1}')]
    second = await begun(ledger, changed)
    renamed = await begun(ledger, units_of(3), "other")
    apart = await begun(ledger, units_of(3), manifest=OTHER)
    archive = store.archive
    assert [unit.id for unit, _ in archive.judgments(second)] == ["u0"]
    assert [archive.counts(one, 1).verdicts for one in (first, second, renamed, apart)] == [
        *(3, 1, 3, 0)
    ]
    assert [unit.id for unit in await ledger.open_work(second, 0, 0, ())] == ["u3", "u1"]
    judging = archive.manifest(first.run).judging.id
    assert len(archive.known(judging, "u0", "{}")) == 1
    assert archive.known(judging, "u1", '{"new":1}') == []
    assert archive.known(OTHER.judging.id, "u0", "{}") == []


async def test_counts_add_up(store, ledger):
    scope = await begun(ledger, units_of(5))
    units = list(store.archive.units(scope))
    for unit, outcome in zip(units, [VERDICT, VERDICT, FAILED, LOST], strict=False):
        await ledger.store_judgment(scope.run, of(unit, outcome, key(1), key(2)))
    await ledger.flush()
    counts = store.archive.counts(scope, 2)
    assert (counts.planned, counts.verdicts, counts.pending) == (10, 2, 6)
    assert counts.failures == {"schema": 1, "transport": 1}
    assert (counts.calls, counts.reasks) == (8, 4)
    assert counts.failed_calls == {"schema": 2, "transport": 2}


async def test_open_work_is_what_has_no_standing_judgment(store, ledger):
    scope = await begun(ledger, units_of(5))
    units = list(store.archive.units(scope))
    for unit, outcome in zip(units, [VERDICT, FAILED, LOST], strict=False):
        await ledger.store_judgment(scope.run, of(unit, outcome))
    await ledger.flush()

    async def open_ids(judge=0, repeat=0, after=0):
        found = await ledger.open_work(scope, judge, repeat, ("transport",), after)
        return [unit.id for unit in found]

    assert await open_ids() == ["u2", "u3", "u4"]
    assert await open_ids(after=4) == ["u4"]
    assert await open_ids(judge=1) == await open_ids(repeat=1) == [f"u{i}" for i in range(5)]


async def test_open_work_comes_in_pages(store, ledger):
    scope = await begun(ledger, units_of(700))
    found = []
    while page := await ledger.open_work(scope, 0, 0, (), found[-1].position if found else 0):
        assert len(page) < 700
        found += page
    assert found == list(store.archive.units(scope))


async def test_a_settled_judgment_replaces_the_one_before_and_can_be_forgotten(store, ledger):
    scope = await begun(ledger, units_of(1))
    (unit,) = store.archive.units(scope)
    await ledger.store_judgment(scope.run, of(unit, FAILED))
    await ledger.store_judgment(scope.run, of(unit, VERDICT))
    await ledger.flush()
    assert store.archive.counts(scope, 1).verdicts == 1
    await ledger.forget(scope.run, unit.no, 0, 0)
    await ledger.flush()
    assert store.archive.counts(scope, 1).pending == 1


async def test_failures_set_aside_are_pending_and_their_questions_open(store, ledger):
    scope = await begun(ledger, units_of(3))
    units = list(store.archive.units(scope))
    for number in range(3):
        await ledger.record(call(number))
    for number, outcome in enumerate([VERDICT, FAILED, LOST]):
        await ledger.store_judgment(scope.run, of(units[number], outcome, key(number)))
    await ledger.set_aside(Scope(scope.run, 1), ("transport",), every_call)
    assert store.archive.counts(scope, 1).failures == {"schema": 1, "transport": 1}
    await ledger.set_aside(scope, ("transport",), every_call)
    assert [await ledger.find(key(n)) is None for n in range(3)] == [False, True, False]
    assert store.archive.counts(scope, 1).failures == {"transport": 1}
    assert store.archive.spent("run1").calls == 3
    aside = store.archive.calls([key(1)])[key(1)]
    assert aside.aside
    await ledger.record(call(1, text="better"))
    assert store.archive.calls([key(1)])[key(1)].call.reply.text == "better"
    await ledger.store_judgment(scope.run, of(units[1], FAILED, key(1)))
    await ledger.set_aside(scope, ("transport",), every_call)
    assert await ledger.find(key(1)) is None
    assert store.archive.spent("run1").calls == 4
    assert verify(store.archive) == []


async def test_only_the_calls_that_are_named_are_set_aside(store, ledger):
    scope = await begun(ledger, units_of(1))
    (unit,) = store.archive.units(scope)
    for number in range(3):
        await ledger.record(call(number))
    await ledger.store_judgment(scope.run, of(unit, FAILED, *map(key, range(3))))
    await ledger.set_aside(scope, (), lambda stored: stored.calls[1:])
    assert [n for n in range(3) if await ledger.find(key(n)) is None] == [1, 2]
    assert store.archive.counts(scope, 1).pending == 1


async def test_judgments_made_elsewhere_come_in_with_their_units(store, ledger):
    def judged(ident):
        judgments = [
            (0, repeat, write_judgment(outcome))
            for repeat, outcome in enumerate((VERDICT, VERDICT, FAILED))
        ]
        return IncomingUnit(ident, f"f:{ident}", f'{{"id":"{ident}"}}', judgments)

    def broken():
        yield judged("x")
        raise DataError("the file ends here")

    scope = await begun(ledger, [judged("b"), judged("a")])
    with pytest.raises(DataError, match="ends here"):
        await begun(ledger, broken())
    apart = await begun(ledger, [judged("a")], manifest=OTHER)
    archive = store.archive
    assert [(unit.id, one.repeat, one.text.status) for unit, one in archive.judgments(scope)] == [
        *(("b", 0, "verdict"), ("b", 1, "verdict"), ("b", 2, "failure")),
        *(("a", 0, "verdict"), ("a", 1, "verdict"), ("a", 2, "failure")),
    ]
    counts = archive.counts(scope, 3)
    assert (counts.verdicts, counts.failures, counts.pending) == (4, {"schema": 2}, 0)
    assert archive.counts(apart, 3).verdicts == 2
    assert len(archive.runs()) == 2
    assert verify(archive) == []


async def test_readers_beside_a_writer_see_what_is_durable(opened, ledger):
    reader = opened()
    await asyncio.gather(*(ledger.record(call(i)) for i in range(100)))
    assert reader.archive.spent("run1").calls == 100
    reader.close()


async def test_a_judgment_whose_call_is_missing_is_a_fault(store, ledger):
    scope = await begun(ledger, units_of(1))
    (unit,) = store.archive.units(scope)
    await ledger.store_judgment(scope.run, of(unit, VERDICT, key(1)))
    await ledger.flush()
    (row,) = store.archive.runs()
    (problem,) = verify(store.archive)
    assert problem.key == "store.missing_call"
    assert set(problem.values.values()) == {key(1), "u0", row.judging}


async def test_open_positions_are_those_of_units_that_lack_a_judgment(store, ledger):
    scope = await begun(ledger, units_of(5))
    units = list(store.archive.units(scope))
    for repeat in (0, 1):
        await ledger.store_judgment(scope.run, of(units[0], VERDICT, key(1), repeat=repeat))
        await ledger.store_judgment(scope.run, of(units[1], LOST, key(1), repeat=repeat))
    await ledger.store_judgment(scope.run, of(units[2], VERDICT, key(1)))
    await ledger.flush()
    positions = [unit.position for unit in units]
    assert store.archive.open_positions(scope, 2, ()) == positions[2:]
    assert store.archive.open_positions(scope, 2, ("transport",)) == positions[1:]
    assert store.archive.open_positions(scope, 1, ()) == positions[3:]
    assert store.archive.open_positions(Scope(scope.run, 3), 2, ()) == positions[2:3]
