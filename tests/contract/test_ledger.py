"""What every ledger keeps, whatever database is behind it, as its archive tells it."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec import Raw

from evenhand.errors import DataError, StoreBusy, StoreError
from evenhand.exchange import Reply, Usage
from evenhand.judgment import Evidence, Failure, Fix, Judgment, Pass, Verdict, write_judgment
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.ledger.keys import CALL_TAG
from evenhand.ledger.ports import (
    Call,
    Changes,
    IncomingUnit,
    Ledger,
    Scope,
    Store,
    StoredJudgment,
    StoredUnit,
)
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
from tests.contract.stores import STORES, Open, begun, begun_in
from tests.waiting import PATIENCE


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return STORES[request.param](tmp_path)


@pytest.fixture
def store(opened: Open) -> Iterator[Store]:
    found = opened()
    yield found
    found.close()


@pytest.fixture
async def ledger(store: Store) -> AsyncIterator[Ledger]:
    async with store.ledger() as found:
        yield found


def key(number: int) -> str:
    return f"{CALL_TAG}{number:040x}"


def incoming(number: int, body: str = "{}", where: str = "a.jsonl") -> IncomingUnit:
    return IncomingUnit(f"u{number}", f"{where}:{number + 1}", body)


def units_of(number: int) -> list[IncomingUnit]:
    return [incoming(i) for i in range(number)]


def call(number: int, run: str = "run1", cost: int | None = 5, text: str = "reply") -> Call:
    usage = Usage(input_tokens=7, output_tokens=3, cached_tokens=1, stored_tokens=number % 3)
    reply = Reply(text=text, usage=usage, model="m", finish="length", odds={"a": {"x": -0.5}})
    return Call(key(number), run, "judge", reply, cost)


def of(unit: StoredUnit, outcome: Judgment, *calls: str, repeat: int = 0) -> StoredJudgment:
    text = write_judgment(outcome, calls)
    return StoredJudgment(unit.no, 0, repeat, calls, len(calls) // 2, text)


VERDICT = Verdict(
    value=RubricVerdict(meta_json=Raw('{"n":1}'), scores={}, failure_tags=(), notes=""),
    evidence=(Evidence("d", 1, 4, "exact"),),
    fixes=(Fix("unwrapped", ""),),
    flags=("snapped",),
    passes=(Pass(reask=0, problems=()),),
)
FAILED = Failure(reason="schema", detail="wrong")
LOST = Failure(reason="transport", detail="lost")


def every_call(stored: StoredJudgment) -> tuple[str, ...]:
    return stored.calls


OTHER = Manifest(judging=JudgingRecord(protocol="q"))
"""Of another judging."""


def ids(store: Store, scope: Scope) -> list[str]:
    return [unit.id for unit in store.archive.units(scope)]


def test_the_port_is_small_enough_to_be_put_behind_a_network() -> None:
    methods = [name for name in vars(Ledger) if not name.startswith("_")]
    assert len(methods) <= 15
    for name in methods:
        told = inspect.signature(getattr(Ledger, name)).return_annotation
        is_awaited = inspect.iscoroutinefunction(getattr(Ledger, name)) or "Await" in told
        assert is_awaited or "AsyncContextManager" in told, name


# Calls and money


async def test_a_call_comes_back_as_it_was_recorded(opened: Open) -> None:
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


async def test_the_first_reply_to_a_question_stays(store: Store, ledger: Ledger) -> None:
    await ledger.record(call(1, "run1", text="first"))
    await ledger.record(call(1, "run2", text="second"))
    found = await ledger.find(key(1))
    assert found is not None and found.reply.text == "first"
    assert store.archive.calls([key(1)])[key(1)].call.reply.text == "first"
    assert [store.archive.spent(run).cost for run in ("run1", "run2")] == [5, 5]


async def test_reservations_count_until_they_are_closed(store: Store, ledger: Ledger) -> None:
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


async def test_a_reservation_survives_without_an_orderly_end(opened: Open, ledger: Ledger) -> None:
    await ledger.reserve("run1", key(1), "a", 10)
    beside = opened()
    assert beside.archive.spent("run1").reserved == 10
    beside.close()


async def test_tokens_of_calls_without_a_price_are_the_most_they_can_be(
    store: Store, ledger: Ledger
) -> None:
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
    assert spent.unpriced_input_tokens == 7 + 9 + 1000
    assert spent.unpriced_output_tokens == 3 + 300 + 300


async def test_spent_sums_what_the_run_paid(store: Store, ledger: Ledger) -> None:
    for number, cost in enumerate([5, None, 7]):
        await ledger.record(call(number, cost=cost))
    await ledger.record(call(9, run="run2"))
    spent = store.archive.spent("run1")
    assert (spent.cost, spent.unpriced, spent.calls) == (12, 1, 3)
    assert (spent.input_tokens, spent.output_tokens) == (21, 9)


# Runs and their units


async def test_a_run_is_its_units_in_whatever_order(store: Store, ledger: Ledger) -> None:
    first = await begun(ledger, units_of(700))
    again = await begun(ledger, reversed(units_of(700)))
    assert again == first
    assert ids(store, first) == [f"u{i}" for i in range(700)]
    assert [(row.id, row.starts) for row in store.archive.runs()] == [(first.run, 2)]


async def test_a_run_is_started_again_without_its_units(ledger: Ledger, store: Store) -> None:
    scope = await begun(ledger, units_of(3))
    manifest = Manifest(judging=JudgingRecord(protocol="p"), limit=2)
    async with ledger.begin(scope.run, "name", manifest, None):
        assert store.archive.manifest(scope.run).limit == 2
    assert len(list(store.archive.units(scope))) == 3
    with pytest.raises(StoreError, match="has no run none"):
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
    store: Store, ledger: Ledger, units: list[IncomingUnit], changes: tuple[int, int, int]
) -> None:
    first = await begun(ledger, units_of(3))
    second = await begun(ledger, units)
    assert second != first
    assert ids(store, first) == ["u0", "u1", "u2"]
    assert [(unit.id, unit.body) for unit in store.archive.units(second)] == [
        (unit.id, unit.body) for unit in units
    ]
    assert store.archive.changes(second.run, first.run) == Changes(*changes)
    assert store.archive.changes(first.run, second.run) == (changes[1], changes[0], changes[2])
    assert store.archive.verify() == []


async def test_where_a_unit_stood_is_no_part_of_it(ledger: Ledger) -> None:
    elsewhere = [incoming(i, where="b.jsonl") for i in range(3)]
    assert await begun(ledger, units_of(3)) == await begun(ledger, elsewhere)


async def test_the_name_and_the_judging_are_part_of_a_run(store: Store, ledger: Ledger) -> None:
    runs = [
        await begun(ledger, units_of(2)),
        await begun(ledger, units_of(2), "other"),
        await begun(ledger, units_of(2), manifest=OTHER),
    ]
    assert len(set(runs)) == 3
    assert [row.id for row in store.archive.runs()] == [scope.run for scope in reversed(runs)]


async def test_a_scope_may_end_after_some_units(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(5))
    limited = Scope(scope.run, 2)
    assert ids(store, limited) == ["u0", "u1"]
    for unit in store.archive.units(scope):
        await ledger.settle(scope.run, of(unit, VERDICT))
    await ledger.flush()
    assert [unit.id for unit, _ in store.archive.judgments(limited)] == ["u0", "u1"]
    assert list(store.archive.judgments(limited, "u3")) == []
    assert len(list(store.archive.judged(limited))) == 2
    counts = [store.archive.counts(one, 1) for one in (limited, scope, Scope(scope.run, 99))]
    assert [(one.planned, one.verdicts) for one in counts] == [(2, 2), (5, 5), (5, 5)]
    assert await ledger.open_work(limited, 1, 0, ()) == list(store.archive.units(limited))


async def test_a_judgment_is_there_to_be_looked_at_though_nothing_follows_it(
    store: Store, ledger: Ledger
) -> None:
    """A judge may think for minutes about the next one."""
    scope = await begun(ledger, units_of(2))
    unit = next(iter(store.archive.units(scope)))
    await ledger.settle(scope.run, of(unit, VERDICT))
    end = time.monotonic() + PATIENCE
    while not list(store.archive.judged(scope)):
        assert time.monotonic() < end, "it is never written"
        await asyncio.sleep(0.05)


async def test_a_scope_may_name_some_units(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(5))
    units = list(store.archive.units(scope))
    for unit in units[:4]:
        await ledger.settle(scope.run, of(unit, VERDICT))
    await ledger.flush()
    places = tuple(units[place].position for place in (1, 3, 4))
    some = Scope(scope.run, positions=places)
    assert ids(store, some) == ["u1", "u3", "u4"]
    assert [unit.id for unit, _ in store.archive.judgments(some)] == ["u1", "u3"]
    assert [unit.id for unit, _ in store.archive.judgments(some, "u3")] == ["u3"]
    assert list(store.archive.judgments(some, "u0")) == []
    assert [no for no, *_ in store.archive.judged(some)] == [units[1].no, units[3].no]
    counts = store.archive.counts(some, 1)
    assert (counts.planned, counts.verdicts, counts.pending) == (3, 2, 1)
    assert await ledger.open_work(some, 0, 0, ()) == [units[4]]
    assert ids(store, Scope(scope.run, 2, positions=places)) == ["u1"]
    nothing = Scope(scope.run, positions=())
    assert (ids(store, nothing), store.archive.counts(nothing, 1).planned) == ([], 0)


async def test_a_scope_may_name_more_units_than_a_page_has(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(2 * PAGE_ROWS + 50))
    units = list(store.archive.units(scope))
    odd = tuple(unit.position for unit in units[1::2])
    assert list(store.archive.units(Scope(scope.run, positions=odd))) == units[1::2]


async def test_a_start_is_noted_whole_or_not_at_all(store: Store, ledger: Ledger) -> None:
    def failing() -> Iterator[IncomingUnit]:
        yield from units_of(1000)
        raise DataError("a bad row", where="a.jsonl:1001")

    with pytest.raises(DataError, match="a bad row"):
        await begun(ledger, failing())
    assert store.archive.runs() == []
    assert (await begun(ledger, units_of(2))).run == store.archive.runs()[0].id
    assert store.archive.verify() == []


@pytest.mark.parametrize("between", [0, 600], ids=["near", "far"])
async def test_ids_that_repeat_are_listed_with_both_lines(
    store: Store, ledger: Ledger, between: int
) -> None:
    rows = [*units_of(between + 1), IncomingUnit("u0", "b.jsonl:9", '{"other":1}')]
    with pytest.raises(DataError) as told:
        await begun(ledger, rows)
    assert '"u0" at a.jsonl:1 and b.jsonl:9' in str(told.value)
    assert all(name in told.value.advice for name in ("`id`", "`pair_id`", "`task_name`", "meta"))
    assert store.archive.runs() == []


@pytest.mark.parametrize("rows", [3, 600])
async def test_a_file_that_is_named_twice_is_told(ledger: Ledger, rows: int) -> None:
    with pytest.raises(DataError, match=r'"u\d+" at a.jsonl:\d+'):
        await begun(ledger, [*units_of(rows), *units_of(rows)])


async def test_a_slow_reader_keeps_no_other_process_from_writing(
    opened: Open, store: Store, ledger: Ledger
) -> None:
    other = opened()

    def slow() -> Iterator[IncomingUnit]:
        yield incoming(0)
        beside = threading.Thread(target=begun_in, args=(other, units_of(1), "other"))
        beside.start()
        beside.join()
        yield incoming(1)

    await begun(ledger, slow())
    assert {row.name for row in store.archive.runs()} == {"name", "other"}
    other.close()


async def test_runs_are_listed_the_last_started_first(store: Store, ledger: Ledger) -> None:
    one = await begun(ledger, units_of(1))
    two = await begun(ledger, units_of(2))
    await begun(ledger, units_of(1), "other")
    await begun(ledger, units_of(1))
    rows = store.archive.runs()
    assert [(row.name, row.starts) for row in rows] == [("name", 4), ("other", 3), ("name", 2)]
    assert [rows[0].id, rows[2].id] == [one.run, two.run]
    assert rows[0].created <= rows[0].started
    last = store.archive.last_run("name")
    assert last == rows[0]
    assert store.archive.last_run("name", OTHER.judging.id) is None
    assert store.archive.last_run("name", last.judging) == last
    assert store.archive.last_run("nobody") is None


async def test_a_manifest_comes_back_whole(store: Store, ledger: Ledger) -> None:
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
    assert store.archive.verify() == []


async def test_a_run_is_held_by_one_at_a_time(opened: Open, store: Store, ledger: Ledger) -> None:
    other = opened()
    scope = await begun(ledger, units_of(1))
    async with other.ledger() as beside:
        async with ledger.claim(scope.run):
            assert other.archive.is_claimed(scope.run)
            with pytest.raises(StoreBusy, match="another process"):
                await begun(beside, units_of(1))
            await begun(beside, units_of(2))
        assert not other.archive.is_claimed(scope.run)
        await begun(beside, units_of(1))
    other.close()


# Judgments


async def test_judgments_come_back_as_they_were_settled(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(3))
    units = list(store.archive.units(scope))
    given = [of(units[0], VERDICT, key(1)), of(units[1], FAILED, key(1), key(2))]
    for judgment in reversed(given):
        await ledger.settle(scope.run, judgment)
    await ledger.flush()
    archive = store.archive
    assert list(archive.judgments(scope)) == list(zip(units, given, strict=False))
    assert list(archive.judgments(scope, "u1")) == [(units[1], given[1])]
    assert list(archive.judgments(scope, "nobody")) == []
    assert archive.of_unit(scope.run, units[0]) == given[:1]


async def test_a_frozen_archive_shows_one_state(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(3))
    units = list(store.archive.units(scope))
    await ledger.settle(scope.run, of(units[0], VERDICT, key(1)))
    await ledger.flush()
    store.archive.freeze()
    store.archive.freeze()
    await ledger.settle(scope.run, of(units[1], VERDICT, key(1)))
    await ledger.record(Call(key(1), scope.run, "judge", Reply(text="late"), 1))
    assert len(list(store.archive.judgments(scope))) == store.archive.counts(scope, 1).verdicts == 1
    assert store.archive.calls([key(1)]) == {}
    assert store.archive.spent(scope.run).calls == 0
    store.archive.thaw()
    store.archive.thaw()
    assert len(list(store.archive.judgments(scope))) == 2
    assert store.archive.spent(scope.run).calls == 1


async def test_what_was_judged_belongs_to_every_run_of_the_judging(
    store: Store, ledger: Ledger
) -> None:
    first = await begun(ledger, units_of(3))
    for unit in store.archive.units(first):
        await ledger.settle(first.run, of(unit, VERDICT))
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


async def test_counts_add_up(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(5))
    units = list(store.archive.units(scope))
    for unit, outcome in zip(units, [VERDICT, VERDICT, FAILED, LOST], strict=False):
        await ledger.settle(scope.run, of(unit, outcome, key(1), key(2)))
    await ledger.flush()
    counts = store.archive.counts(scope, 2)
    assert (counts.planned, counts.verdicts, counts.pending) == (10, 2, 6)
    assert counts.failures == {"schema": 1, "transport": 1}
    assert (counts.calls, counts.reasks) == (8, 4)
    assert counts.failed_calls == {"schema": 2, "transport": 2}


async def test_open_work_is_what_has_no_standing_judgment(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(5))
    units = list(store.archive.units(scope))
    for unit, outcome in zip(units, [VERDICT, FAILED, LOST], strict=False):
        await ledger.settle(scope.run, of(unit, outcome))
    await ledger.flush()

    async def open_ids(judge: int = 0, repeat: int = 0, after: int = 0) -> list[str]:
        found = await ledger.open_work(scope, judge, repeat, ("transport",), after)
        return [unit.id for unit in found]

    assert await open_ids() == ["u2", "u3", "u4"]
    assert await open_ids(after=4) == ["u4"]
    assert await open_ids(judge=1) == await open_ids(repeat=1) == [f"u{i}" for i in range(5)]


async def test_open_work_comes_in_pages(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(700))
    found: list[StoredUnit] = []
    while page := await ledger.open_work(scope, 0, 0, (), found[-1].position if found else 0):
        assert len(page) < 700
        found += page
    assert found == list(store.archive.units(scope))


async def test_a_settled_judgment_replaces_the_one_before_and_can_be_forgotten(
    store: Store, ledger: Ledger
) -> None:
    scope = await begun(ledger, units_of(1))
    (unit,) = store.archive.units(scope)
    await ledger.settle(scope.run, of(unit, FAILED))
    await ledger.settle(scope.run, of(unit, VERDICT))
    await ledger.flush()
    assert store.archive.counts(scope, 1).verdicts == 1
    await ledger.forget(scope.run, unit.no, 0, 0)
    await ledger.flush()
    assert store.archive.counts(scope, 1).pending == 1


async def test_failures_set_aside_are_pending_and_their_questions_open(
    store: Store, ledger: Ledger
) -> None:
    scope = await begun(ledger, units_of(3))
    units = list(store.archive.units(scope))
    for number in range(3):
        await ledger.record(call(number))
    for number, outcome in enumerate([VERDICT, FAILED, LOST]):
        await ledger.settle(scope.run, of(units[number], outcome, key(number)))
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
    await ledger.settle(scope.run, of(units[1], FAILED, key(1)))
    await ledger.set_aside(scope, ("transport",), every_call)
    assert await ledger.find(key(1)) is None
    assert store.archive.spent("run1").calls == 4
    assert store.archive.verify() == []


async def test_only_the_calls_that_are_named_are_set_aside(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(1))
    (unit,) = store.archive.units(scope)
    for number in range(3):
        await ledger.record(call(number))
    await ledger.settle(scope.run, of(unit, FAILED, *map(key, range(3))))
    await ledger.set_aside(scope, (), lambda stored: stored.calls[1:])
    assert [n for n in range(3) if await ledger.find(key(n)) is None] == [1, 2]
    assert store.archive.counts(scope, 1).pending == 1


async def test_judgments_made_elsewhere_come_in_with_their_units(
    store: Store, ledger: Ledger
) -> None:
    def judged(ident: str) -> IncomingUnit:
        judgments = [
            (0, repeat, write_judgment(outcome))
            for repeat, outcome in enumerate((VERDICT, VERDICT, FAILED))
        ]
        return IncomingUnit(ident, f"f:{ident}", f'{{"id":"{ident}"}}', judgments)

    def broken() -> Iterator[IncomingUnit]:
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
    assert archive.verify() == []


# Beside each other, and faults


async def test_readers_beside_a_writer_see_what_is_durable(opened: Open, ledger: Ledger) -> None:
    reader = opened()
    await asyncio.gather(*(ledger.record(call(i)) for i in range(100)))
    assert reader.archive.spent("run1").calls == 100
    reader.close()


async def test_a_sound_store_has_no_faults(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(3))
    await ledger.record(call(1))
    for unit in store.archive.units(scope):
        await ledger.settle(scope.run, of(unit, VERDICT, key(1)))
    await ledger.flush()
    assert store.archive.verify() == []


async def test_a_judgment_whose_call_is_missing_is_a_fault(store: Store, ledger: Ledger) -> None:
    scope = await begun(ledger, units_of(1))
    (unit,) = store.archive.units(scope)
    await ledger.settle(scope.run, of(unit, VERDICT, key(1)))
    await ledger.flush()
    (row,) = store.archive.runs()
    assert store.archive.verify() == [f"judging {row.judging}, unit u0: call {key(1)} is missing"]
