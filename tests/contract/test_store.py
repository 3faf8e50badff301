"""What every store keeps, whatever database is behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from evenhand.errors import DataError, StoreError
from evenhand.exchange import Reply, Usage
from evenhand.judgment import Evidence, Failure, Fix, Judgment, Pass, Verdict, write_judgment
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.ledger.keys import CALL_TAG, digest
from evenhand.ledger.store import Call, IncomingUnit, Scope, Store, StoredJudgment, StoredUnit
from tests.contract.stores import STORES, Open

TAG = "contract1:"
MANIFEST: dict[str, Any] = {"identity": {"name": "n"}, "judges": []}


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return STORES[request.param](tmp_path)


@pytest.fixture
def store(opened: Open) -> Iterator[Store]:
    made = opened()
    yield made
    made.close()


def key(number: int) -> str:
    return f"{CALL_TAG}{number:040x}"


def incoming(number: int, body: str = "{}", where: str = "a.jsonl") -> IncomingUnit:
    return IncomingUnit(f"u{number}", f"{where}:{number + 1}", body)


def begun(store: Store, units: int = 3, run: str = "run1") -> Scope:
    return store.begin(run, "name", MANIFEST, [incoming(i) for i in range(units)])


def call(number: int, run: str = "run1", cost: int | None = 5, text: str = "reply") -> Call:
    usage = Usage(input_tokens=7, output_tokens=3, cached_tokens=1)
    reply = Reply(text=text, usage=usage, model="m", finish="length", odds={"a": {"x": -0.5}})
    return Call(key(number), run, "judge", reply, cost)


def of(unit: StoredUnit, outcome: Judgment, *calls: str, repeat: int = 0) -> StoredJudgment:
    text = write_judgment(outcome, calls)
    return StoredJudgment(unit.no, 0, repeat, TAG + unit.digest, calls, len(calls) // 2, text)


def every_call(stored: StoredJudgment) -> tuple[str, ...]:
    return stored.calls


VERDICT = Verdict(
    value=RubricVerdict(meta_json=Raw('{"n":1}'), scores={}, failure_tags=(), notes=""),
    evidence=(Evidence("d", 1, 4, "exact"),),
    fixes=(Fix("unwrapped", ""),),
    flags=("snapped",),
    passes=(Pass(reask=0, problems=()),),
)
FAILED = Failure(reason="schema", detail="wrong")
LOST = Failure(reason="transport", detail="lost")


async def test_a_call_comes_back_as_it_was_recorded(opened: Open) -> None:
    store = opened()
    given = call(1, text="оценка \x00 🙂\r\n")
    assert store.find(given.key) is None
    await store.record(given)
    assert store.find(given.key) == given
    store.close()
    again = opened()
    assert again.find(given.key) == given
    again.close()


async def test_the_first_reply_to_a_question_stays(store: Store) -> None:
    await store.record(call(1, text="first"))
    await store.record(call(1, text="second"))
    found = store.find(key(1))
    assert found is not None
    assert found.reply.text == "first"


async def test_reservations_count_until_they_are_closed(store: Store) -> None:
    await store.reserve("run1", key(1), "a", 10)
    await store.reserve("run1", key(1), "b", 20)
    await store.reserve("run2", key(2), "a", 40)
    assert store.spent("run1").reserved == 30
    await store.record(call(1, cost=4), "a")
    assert (store.spent("run1").cost, store.spent("run1").reserved) == (4, 20)
    store.release(key(1), "b")
    await store.flush()
    assert store.spent("run1").reserved == 0
    assert store.spent("run2").reserved == 40


async def test_a_reservation_survives_without_an_orderly_end(opened: Open) -> None:
    store = opened()
    await store.reserve("run1", key(1), "a", 10)
    beside = opened()
    assert beside.spent("run1").reserved == 10
    beside.close()
    store.close()


async def test_spent_sums_what_the_run_paid(store: Store) -> None:
    for number, cost in enumerate([5, None, 7]):
        await store.record(call(number, cost=cost))
    await store.record(call(9, run="run2"))
    spent = store.spent("run1")
    assert (spent.cost, spent.unpriced, spent.calls) == (12, 1, 3)
    assert (spent.input_tokens, spent.output_tokens) == (21, 9)


async def test_judgments_come_back_as_they_were_settled(store: Store) -> None:
    scope = begun(store)
    units = list(store.units(scope))
    given = [of(units[0], VERDICT, key(1)), of(units[1], FAILED, key(1), key(2))]
    for one in reversed(given):
        store.settle(one)
    await store.flush()
    assert list(store.judgments(scope, TAG)) == list(zip(units, given, strict=False))
    assert list(store.judgments(scope, TAG, "u1")) == [(units[1], given[1])]
    assert list(store.judgments(scope, TAG, "nobody")) == []


async def test_counts_add_up(store: Store) -> None:
    scope = begun(store, 5)
    units = list(store.units(scope))
    for unit, outcome in zip(units, [VERDICT, VERDICT, FAILED, LOST], strict=False):
        store.settle(of(unit, outcome, key(1), key(2)))
    await store.flush()
    counts = store.counts(scope, 2, TAG)
    assert (counts.planned, counts.verdicts, counts.pending) == (10, 2, 6)
    assert counts.failures == {"schema": 1, "transport": 1}
    assert (counts.calls, counts.reasks) == (8, 4)
    assert counts.failed_calls == {"schema": 2, "transport": 2}
    assert store.counts(scope, 2, "contract2:").pending == 10


async def test_open_work_is_what_has_no_standing_judgment(store: Store) -> None:
    scope = begun(store, 5)
    units = list(store.units(scope))
    for unit, outcome in zip(units, [VERDICT, FAILED, LOST], strict=False):
        store.settle(of(unit, outcome))
    await store.flush()

    def open_ids(judge: int = 0, repeat: int = 0, tag: str = TAG) -> list[str]:
        return [u.id for u in store.open_work(scope, judge, repeat, tag, ("transport",))]

    assert open_ids() == ["u2", "u3", "u4"]
    assert (
        open_ids(judge=1)
        == open_ids(repeat=1)
        == open_ids(tag="other:")
        == [f"u{i}" for i in range(5)]
    )


async def test_a_settled_judgment_replaces_the_one_before_and_can_be_forgotten(
    store: Store,
) -> None:
    scope = begun(store, 1)
    (unit,) = store.units(scope)
    store.settle(of(unit, FAILED))
    store.settle(of(unit, VERDICT))
    await store.flush()
    assert store.counts(scope, 1, TAG).verdicts == 1
    store.forget(unit.no, 0, 0)
    await store.flush()
    assert store.counts(scope, 1, TAG).pending == 1


async def test_a_changed_unit_has_no_standing_judgment(store: Store) -> None:
    scope = begun(store, 2)
    for unit in store.units(scope):
        store.settle(of(unit, VERDICT))
    await store.flush()
    scope = store.begin("run1", "name", MANIFEST, [incoming(0), incoming(1, '{"new":1}')])
    assert store.counts(scope, 1, TAG).verdicts == 1
    assert [u.id for u, _ in store.judgments(scope, TAG)] == ["u0"]
    assert [u.id for u in store.open_work(scope, 0, 0, TAG, ())] == ["u1"]


async def test_failures_set_aside_are_pending_and_their_questions_open(store: Store) -> None:
    scope = begun(store, 3)
    units = list(store.units(scope))
    for number in range(3):
        await store.record(call(number))
    for number, outcome in enumerate([VERDICT, FAILED, LOST]):
        store.settle(of(units[number], outcome, key(number)))
    await store.flush()
    store.set_aside(scope, ("transport",), every_call)
    assert [store.find(key(n)) is None for n in range(3)] == [False, True, False]
    assert store.counts(scope, 1, TAG).failures == {"transport": 1}
    assert store.spent("run1").calls == 3
    await store.record(call(1, text="better"))
    store.settle(of(units[1], FAILED, key(1)))
    await store.flush()
    store.set_aside(scope, ("transport",), every_call)
    assert store.find(key(1)) is None
    assert store.spent("run1").calls == 4
    assert store.verify() == []


async def test_only_the_calls_that_are_named_are_set_aside(store: Store) -> None:
    scope = begun(store, 1)
    (unit,) = store.units(scope)
    for number in range(5):
        await store.record(call(number))
    store.settle(of(unit, FAILED, *map(key, range(5))))
    await store.flush()
    store.set_aside(scope, (), lambda stored: stored.calls[3:])
    assert [n for n in range(5) if store.find(key(n)) is None] == [3, 4]
    assert store.counts(scope, 1, TAG).pending == 1


def test_units_are_kept_in_order_and_belong_to_their_start(store: Store) -> None:
    first = begun(store, 700)
    assert [u.id for u in store.units(first)] == [f"u{i}" for i in range(700)]
    second = begun(store, 2)
    assert [u.id for u in store.units(second)] == ["u0", "u1"]
    assert len(list(store.units(Scope("run1")))) == 700
    assert second.start == (first.start or 0) + 1


def test_a_start_is_noted_whole_or_not_at_all(store: Store) -> None:
    def failing() -> Iterator[IncomingUnit]:
        yield from map(incoming, range(1000))
        raise DataError("a bad row", where="a.jsonl:1001")

    with pytest.raises(DataError, match="a bad row"):
        store.begin("run1", "name", MANIFEST, failing())
    assert store.runs() == []
    assert list(store.units(Scope("run1"))) == []
    assert begun(store, 2).start == 1


@pytest.mark.parametrize("between", [0, 600], ids=["near", "far"])
def test_ids_that_repeat_are_listed_with_both_lines(store: Store, between: int) -> None:
    rows = [*map(incoming, range(between + 1)), IncomingUnit("u0", "b.jsonl:9", "{}")]
    with pytest.raises(DataError) as told:
        store.begin("run1", "name", MANIFEST, rows)
    assert '"u0" at a.jsonl:1 and b.jsonl:9' in str(told.value)
    assert all(name in told.value.advice for name in ("`id`", "`pair_id`", "`task_name`", "meta"))
    assert store.runs() == []


@pytest.mark.parametrize("rows", [3, 600])
def test_a_file_that_is_named_twice_is_told(store: Store, rows: int) -> None:
    with pytest.raises(DataError, match=r'"u\d+" at a.jsonl:\d+'):
        store.begin("run1", "name", MANIFEST, [incoming(i) for _ in range(2) for i in range(rows)])


def test_runs_are_listed_the_last_started_first(store: Store) -> None:
    for run in ("run1", "run2", "run1"):
        begun(store, 1, run)
    assert [(row.id, row.starts) for row in store.runs()] == [("run1", 3), ("run2", 2)]
    assert store.runs()[0].manifest == MANIFEST
    assert store.runs()[0].created <= store.runs()[0].started


def test_a_run_is_held_by_one_at_a_time(opened: Open) -> None:
    one, other = opened(), opened()
    with one.claim("run1"):
        with pytest.raises(StoreError, match="another process"), other.claim("run1"):
            raise AssertionError
        with other.claim("run2"):
            pass
    with other.claim("run1"):
        pass
    one.close()
    other.close()


async def test_readers_beside_a_writer_see_what_is_durable(opened: Open) -> None:
    writer, reader = opened(), opened()
    await asyncio.gather(*(writer.record(call(i)) for i in range(100)))
    assert reader.spent("run1").calls == 100
    reader.close()
    writer.close()


async def test_a_sound_store_has_no_faults(store: Store) -> None:
    scope = begun(store)
    await store.record(call(1))
    for unit in store.units(scope):
        store.settle(of(unit, VERDICT, key(1)))
    await store.flush()
    assert store.verify() == []


async def test_a_judgment_whose_call_is_missing_is_a_fault(store: Store) -> None:
    scope = begun(store, 1)
    (unit,) = store.units(scope)
    store.settle(of(unit, VERDICT, key(1)))
    await store.flush()
    assert store.verify() == [f"run run1, unit u0: call {key(1)} is missing"]


def test_the_digest_of_a_unit_is_that_of_its_content(store: Store) -> None:
    (unit,) = store.units(store.begin("run1", "name", MANIFEST, [incoming(0, "text")]))
    assert unit.digest == digest("text")


async def test_two_replies_paid_for_under_one_key_are_both_kept_and_the_first_counts(
    store: Store,
) -> None:
    await store.record(call(1, "run1", text="first"))
    await store.record(call(1, "run2", text="second"))
    found = store.find(key(1))
    assert found is not None and found.reply.text == "first"
    assert (store.spent("run1").cost, store.spent("run2").cost) == (5, 5)


async def test_a_reply_set_aside_answers_only_where_it_is_asked_for(store: Store) -> None:
    scope = begun(store, 1)
    [unit] = store.units(scope)
    await store.record(call(1))
    store.settle(of(unit, Failure(reason="not_json", detail="no"), key(1)))
    await store.flush()
    store.set_aside(scope, (), every_call)
    await asyncio.sleep(0)
    assert store.find(key(1)) is None
    assert store.find(key(1), aside=True) is not None
    assert store.verify() == []


def test_a_slow_reader_keeps_no_other_process_from_writing(opened: Open) -> None:
    store, other = opened(), opened()

    def slow() -> Iterator[IncomingUnit]:
        yield incoming(0)
        begun(other, run="other")
        yield incoming(1)

    try:
        store.begin("run1", "name", MANIFEST, slow())
        assert {row.id for row in store.runs()} == {"run1", "other"}
    finally:
        store.close()
        other.close()
