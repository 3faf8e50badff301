"""What every ledger keeps of runs and their units."""

import asyncio
import threading
import time

import pytest

from evenhand.errors import DataError, StoreBusy, StoreError
from evenhand.limits import PAGE_ROWS
from evenhand.manifest import (
    Compare,
    JudgeRecord,
    JudgingRecord,
    Manifest,
    Stopping,
    Wave,
    rubric_json,
)
from evenhand.store.ports import Changes, IncomingUnit, Scope
from evenhand.store.verify import verify
from tests.contract.ledger_rows import (
    OTHER,
    VERDICT,
    ids,
    incoming,
    of,
    units_of,
)
from tests.contract.stores import begun, begun_in
from tests.sentences import refused
from tests.waiting import PATIENCE


async def test_a_run_is_its_units_in_whatever_order(store, ledger):
    first = await begun(ledger, units_of(700))
    again = [incoming(i, where="b.jsonl") for i in reversed(range(700))]
    assert await begun(ledger, again) == first
    assert ids(store, first) == [f"u{i}" for i in range(700)]
    assert [(row.id, row.starts) for row in store.archive.runs()] == [(first.run, 2)]


async def test_a_run_is_started_again_without_its_units(ledger, store):
    scope = await begun(ledger, units_of(3))
    manifest = Manifest(judging=JudgingRecord(protocol="p"), limit=2)
    async with ledger.begin(scope.run, "name", manifest, None):
        assert store.archive.manifest(scope.run).limit == 2
    assert len(list(store.archive.units(scope))) == 3
    with refused(StoreError, "store.run_gone", "none"):
        async with ledger.begin("none", "name", manifest, None):
            pass
    assert [row.id for row in store.archive.runs()] == [scope.run]


@pytest.mark.parametrize(
    ("units", "changes"),
    [
        (units_of(4), (1, 0, 0)),
        (units_of(2), (0, 1, 0)),
        ([incoming(0), incoming(1, '{"new":1}'), incoming(2)], (0, 0, 1)),
        ([incoming(1), incoming(2, "[]"), incoming(7), incoming(8)], (2, 1, 1)),
        ([], (0, 3, 0)),
    ],
    ids=["added", "removed", "changed", "all of it", "none left"],
)
async def test_other_units_are_another_run_and_the_first_stays_as_it_is(
    store, ledger, units, changes
):
    first = await begun(ledger, units_of(3))
    second = await begun(ledger, units)
    assert second != first
    assert ids(store, first) == ["u0", "u1", "u2"]
    assert [(unit.id, unit.body) for unit in store.archive.units(second)] == [
        (unit.id, unit.body) for unit in units
    ]
    assert store.archive.changes(second.run, first.run) == Changes(*changes)
    assert store.archive.changes(first.run, second.run) == (changes[1], changes[0], changes[2])
    assert verify(store.archive) == []


async def test_the_name_and_the_judging_are_part_of_a_run(store, ledger):
    runs = [
        await begun(ledger, units_of(2)),
        await begun(ledger, units_of(2), "other"),
        await begun(ledger, units_of(2), manifest=OTHER),
    ]
    assert len(set(runs)) == 3
    assert [row.id for row in store.archive.runs()] == [scope.run for scope in reversed(runs)]


@pytest.mark.parametrize(
    ("limit", "named", "meant"),
    [
        (2, None, [0, 1]),
        (99, None, [0, 1, 2, 3, 4]),
        (None, (1, 3, 4), [1, 3, 4]),
        (2, (1, 3, 4), [1]),
        (None, (), []),
    ],
)
async def test_a_scope_may_end_after_some_units_and_name_some(store, ledger, limit, named, meant):
    run = (await begun(ledger, units_of(5))).run
    archive, units = store.archive, list(store.archive.units(Scope(run)))
    for unit in units[:4]:
        await ledger.store_judgment(run, of(unit, VERDICT))
    await ledger.flush()
    positions = named if named is None else tuple(units[place].position for place in named)
    scope, judged = Scope(run, limit, positions), [units[place] for place in meant if place < 4]
    assert list(archive.units(scope)) == [units[place] for place in meant]
    assert [unit for unit, _ in archive.judgments(scope)] == judged
    for place, unit in enumerate(units):
        assert list(archive.units(scope, unit.id)) == [unit] * (place in meant)
        assert [one for one, _ in archive.judgments(scope, unit.id)] == [unit] * (unit in judged)
    counts = archive.counts(scope, 1)
    assert (counts.planned, counts.verdicts) == (len(meant), len(judged))
    assert await ledger.open_work(scope, 0, 0, ()) == units[4:] * (4 in meant)


async def test_a_judgment_is_there_to_be_looked_at_though_nothing_follows_it(store, ledger):
    """A judge may think for minutes about the next one."""
    scope = await begun(ledger, units_of(2))
    unit = next(iter(store.archive.units(scope)))
    await ledger.store_judgment(scope.run, of(unit, VERDICT))
    end = time.monotonic() + PATIENCE
    while not list(store.archive.judgments(scope)):
        assert time.monotonic() < end, "it is never written"
        await asyncio.sleep(0.05)


async def test_a_scope_may_name_more_units_than_a_page_has(store, ledger):
    scope = await begun(ledger, units_of(2 * PAGE_ROWS + 50))
    units = list(store.archive.units(scope))
    odd = tuple(unit.position for unit in units[1::2])
    assert list(store.archive.units(Scope(scope.run, positions=odd))) == units[1::2]


async def test_a_start_is_noted_whole_or_not_at_all(store, ledger):
    def failing():
        yield from units_of(1000)
        raise DataError("a bad row", where="a.jsonl:1001")

    with pytest.raises(DataError, match="a bad row"):
        await begun(ledger, failing())
    assert store.archive.runs() == []
    assert (await begun(ledger, units_of(2))).run == store.archive.runs()[0].id
    assert verify(store.archive) == []


@pytest.mark.parametrize("between", [0, 600], ids=["near", "far"])
async def test_ids_that_repeat_are_listed_with_both_lines(store, ledger, between):
    rows = [*units_of(between + 1), IncomingUnit("u0", "b.jsonl:9", '{"other":1}')]
    with refused(DataError, "store.repeated_ids", '"u0" .a.jsonl:1, b.jsonl:9') as told:
        await begun(ledger, rows)
    assert all(name in told.value.advice for name in ("`id`", "`pair_id`", "`task_name`", "meta"))
    assert store.archive.runs() == []


@pytest.mark.parametrize("rows", [3, 600])
async def test_a_file_that_is_named_twice_is_told(ledger, rows):
    with refused(DataError, "store.file_twice", r'"u\d+"'):
        await begun(ledger, [*units_of(rows), *units_of(rows)])


async def test_a_slow_reader_keeps_no_other_process_from_writing(opened, store, ledger):
    other = opened()

    def slow():
        yield incoming(0)
        beside = threading.Thread(target=begun_in, args=(other, units_of(1), "other"))
        beside.start()
        beside.join()
        yield incoming(1)

    await begun(ledger, slow())
    assert {row.name for row in store.archive.runs()} == {"name", "other"}
    other.close()


async def test_runs_are_listed_the_last_started_first(store, ledger):
    one = await begun(ledger, units_of(1))
    two = await begun(ledger, units_of(2))
    await begun(ledger, units_of(1), "other")
    await begun(ledger, units_of(1))
    rows = store.archive.runs()
    assert [(row.name, row.starts) for row in rows] == [("name", 4), ("other", 3), ("name", 2)]
    assert [rows[0].id, rows[2].id] == [one.run, two.run]
    assert rows[0].created <= rows[0].started
    assert store.archive.runs("name") == [rows[0], rows[2]]
    assert store.archive.runs("name", OTHER.judging.id) == []
    assert store.archive.runs("name", rows[0].judging) == [rows[0], rows[2]]
    assert store.archive.runs("name", limit=1) == [rows[0]]
    assert store.archive.runs("nobody") == []


async def test_a_manifest_comes_back_whole(store, ledger):
    judging = JudgingRecord(
        protocol="p",
        texts={"prompts/en.md": "Judge.", "prompts/ru.md": "Оцени.", "again.md": "Judge."},
        rubric_json=rubric_json({"a": 1.50, "b": [1, 2]}),
        judges=(JudgeRecord(name="j", identity={"model": "m", "n": 0.5}, repeats=2),),
    )
    manifest = Manifest(
        judging=judging,
        protocol="rubric",
        compare=Compare(by=("model",), baseline="m"),
        stop=Stopping(alpha=0.1),
        limit=7,
        waves=(Wave(run="r", limit=3),),
    )
    scope = await begun(ledger, units_of(1), manifest=manifest)
    found = store.archive.manifest(scope.run)
    assert found.judging.id == judging.id
    assert bytes(found.judging.rubric_json) == bytes(judging.rubric_json)
    assert found.judging.texts == judging.texts
    assert (found.protocol, found.compare, found.stop) == (
        "rubric",
        manifest.compare,
        manifest.stop,
    )
    assert (found.limit, found.waves) == (7, manifest.waves)
    # Started again, a run says what it was told last.
    await begun(ledger, units_of(1), manifest=Manifest(judging=judging, protocol="rubric"))
    assert store.archive.manifest(scope.run).compare is None
    assert verify(store.archive) == []


async def test_a_run_is_held_by_one_at_a_time(opened, store, ledger):
    other = opened()
    scope = await begun(ledger, units_of(1))
    async with other.ledger() as beside:
        async with ledger.claim(scope.run):
            assert other.archive.is_claimed(scope.run)
            with refused(StoreBusy, "store.busy_with"):
                await begun(beside, units_of(1))
            await begun(beside, units_of(2))
        assert not other.archive.is_claimed(scope.run)
        await begun(beside, units_of(1))
    other.close()
