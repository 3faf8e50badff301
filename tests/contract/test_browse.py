"""Pages of any store: every row once, in order, both ways, however little a search may look at."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from evenhand.exchange import Reply, Usage
from evenhand.judgment import JudgmentText
from evenhand.ledger.keys import CALL_TAG
from evenhand.ledger.sqlite import SqliteStore
from evenhand.ledger.store import (
    Browsed,
    Call,
    Cursor,
    IncomingUnit,
    PageRequest,
    Store,
    StoredJudgment,
)
from tests.contract.stores import STORES, Open

TAG = "contract1:"
RUN, OTHER = "run1", "run2"
UNITS, JUDGES = 60, 3
Row = tuple[str, int | None]


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return STORES[request.param](tmp_path)


def body(i: int) -> str:
    meta = {"model": f"m{i % 3}", "n": i, "odd": bool(i % 2), 'a "b".c': "x"}
    texts = {"question": f"Вопрос {i}?", "model_output": f'Say "{i}"\n\tand \\ {i}'}
    return json.dumps({"id": f"u{i}", **texts, "meta": meta}, ensure_ascii=False)


def outcome(i: int, judge: int, key: str) -> JudgmentText:
    """What filters look into, of all kinds at once."""
    is_failed = i % 10 == 4
    flags = ["self_contradiction"] if i % 4 == 0 else []
    output = {"winner": "AB"[judge % 2], "notes": f"Note {i} of {judge}", "failure_tags": ["C"]}
    kept = {
        "output": None if is_failed else output,
        "detail": f"wrong with {i}" if is_failed else "",
        "evidence": [],
        "fixes": [],
        "flags": [f"masked:{i}"] if i % 6 == 0 and not is_failed else [],
        "passes": [] if is_failed else [{"problems": [], "flags": flags}],
        "calls": [key],
    }
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    return JudgmentText(*(("failure", "schema") if is_failed else ("verdict", None)), text)


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Filled once: tests read it, or add to it what no other test looks at."""
    made = STORES[request.param](tmp_path_factory.mktemp("filled"))()
    asyncio.run(fill(made))
    yield made
    made.close()


async def fill(made: Store) -> None:
    waiting = []
    for run in (OTHER, RUN, "run3"):
        scope = made.begin(
            run, run, {}, [IncomingUnit(f"u{i}", f"a:{i}", body(i)) for i in range(UNITS)]
        )
        for unit in made.units(scope):
            i = int(unit.id[1:])
            for judge in range(JUDGES if i % 9 else 0):  # every ninth waits for all
                if (i, judge) == (5, 1):
                    continue  # one waits for one of its judges
                key = f"{CALL_TAG}{run}-{i}-{judge}"
                reply = Reply(text=f"reply {i} by {judge}", usage=Usage(input_tokens=1))
                waiting.append(made.record(Call(key, run, f"judge{judge}", reply, 5)))
                made.settle(
                    StoredJudgment(
                        unit.no, judge, 0, TAG + unit.digest, (key,), 0, outcome(i, judge, key)
                    )
                )
    await asyncio.gather(*waiting)
    await made.flush()


EVERY: list[Row] = [
    (f"u{i}", judge)
    for i in range(UNITS)
    for judge in (range(JUDGES) if i % 9 else [None])
    if (i, judge) != (5, 1)
]


def turns(window: int, reach: int, limit: int = 7, **rest: Any) -> PageRequest:
    return PageRequest(limit=limit, window=window, reach=reach, **rest)


def walked(
    store: Store,
    browsed: Browsed,
    *,
    run: str = RUN,
    forward: bool = True,
    window: int = 4,
    reach: int = 8,
) -> list[Row]:
    """All pages, one after the other."""
    found: list[Row] = []
    place: Cursor | None = None
    for _ in range(500):
        turn = turns(window, reach, place=place, forward=forward)
        page = store.judgment_page(run, TAG, browsed, turn)
        rows = [(unit.id, one.judge if one else None) for unit, one in page.rows]
        assert len(rows) <= 7
        found = found + rows if forward else rows + found
        if page.more:
            unit, one = page.rows[-1 if forward else 0]
            place = Cursor(unit.no, *((one.judge, one.repeat) if one else ()))
        elif page.stopped is not None:
            place = page.stopped
        else:
            return found
    raise AssertionError("no end")


def _asked(browsed: Browsed) -> str:
    """What a page is asked for, as the name of a test."""
    asked = {name: value for name, value in asdict(browsed).items() if value not in ("", None)}
    return ",".join(f"{name}={value}" for name, value in asked.items())


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("window", "reach"), [(1, 1), (4, 8), (5, 5), (1000, 1000)])
@pytest.mark.parametrize(
    ("browsed", "holds"),
    [
        (Browsed(), lambda i, j: True),
        (Browsed(judge=1), lambda i, j: j == 1),
        (Browsed(status="failure"), lambda i, j: j is not None and i % 10 == 4),
        (Browsed(reason="schema", judge=2), lambda i, j: j == 2 and i % 10 == 4),
        (Browsed(reason="empty"), lambda i, j: False),
        (Browsed(status="verdict"), lambda i, j: j is not None and i % 10 != 4),
        (Browsed(status="left_out"), lambda i, j: False),
        (Browsed(winner="B"), lambda i, j: j == 1 and i % 10 != 4),
        (Browsed(tag="C"), lambda i, j: j is not None and i % 10 != 4),
        (Browsed(tag="A"), lambda i, j: False),
        (Browsed(flag="masked"), lambda i, j: j is not None and i % 6 == 0 and i % 10 != 4),
        (
            Browsed(flag="self_contradiction"),
            lambda i, j: j is not None and i % 4 == 0 and i % 10 != 4,
        ),
        (Browsed(flag="mask"), lambda i, j: False),
        (Browsed(field="model", value="m1"), lambda i, j: i % 3 == 1),
        (Browsed(field="n", value="17"), lambda i, j: i == 17),
        (Browsed(field="odd", value="true"), lambda i, j: i % 2 == 1),
        (Browsed(field='a "b".c', value="x"), lambda i, j: True),
        (Browsed(field="model", value="%"), lambda i, j: False),
        (Browsed(text="ВОПРОС 12?"), lambda i, j: i == 12),
        (Browsed(text='say "7"\n\tand \\ 7'), lambda i, j: i == 7),
        (Browsed(text="note 8 of 2"), lambda i, j: (i, j) == (8, 2)),
        (Browsed(text="wrong with 14"), lambda i, j: i == 14),
        (Browsed(text="u59"), lambda i, j: i == 59),
        (Browsed(text="model_output"), lambda i, j: False),
        (Browsed(text="self_contradiction"), lambda i, j: False),
        (
            Browsed(text="вопрос", status="failure", field="model", value="m2"),
            lambda i, j: j is not None and i % 10 == 4 and i % 3 == 2,
        ),
    ],
    ids=lambda one: _asked(one) if isinstance(one, Browsed) else "",
)
def test_a_walk_over_pages_finds_every_row_once(
    store: Store, browsed: Browsed, holds: Any, window: int, reach: int, forward: bool
) -> None:
    found = walked(store, browsed, forward=forward, window=window, reach=reach)
    assert found == [(name, judge) for name, judge in EVERY if holds(int(name[1:]), judge)]


@pytest.mark.parametrize("forward", [True, False])
def test_units_that_wait_for_a_judge_are_pending(store: Store, forward: bool) -> None:
    browsed = Browsed(status="pending", planned=JUDGES)
    waiting = [i for i in range(UNITS) if i % 9 == 0 or i == 5]
    assert walked(store, browsed, forward=forward) == [(f"u{i}", None) for i in waiting]


def test_a_judgment_of_a_text_that_changed_does_not_stand(store: Store) -> None:
    text = body(1).replace("Say", "Said")
    store.begin("run3", "run3", {}, [IncomingUnit("u1", "a:1", text)])
    changed = [one for one in walked(store, Browsed(), run="run3") if one[0] == "u1"]
    assert changed == [("u1", None)]
    unit = store.unit_named("run3", "u1")
    assert unit is not None
    assert store.of_unit(unit, TAG) == []


def test_calls_are_paged_both_ways_and_searched(store: Store) -> None:
    every = [one for one in EVERY if one[1] is not None]

    def calls(forward: bool, **wanted: str) -> list[str]:
        found: list[str] = []
        place: Cursor | None = None
        while True:
            page = store.call_page(RUN, turns(5, 5, place=place, forward=forward), **wanted)
            texts = [one.call.reply.text for one in page.rows]
            found = found + texts if forward else texts + found
            if page.more:
                place = Cursor(page.rows[-1 if forward else 0].no)
            elif page.stopped is not None:
                place = Cursor(page.stopped)
            else:
                return found

    told = [f"reply {name[1:]} by {judge}" for name, judge in every]
    assert calls(True) == told
    assert calls(False) == told
    assert calls(False, judge="judge2") == [one for one in told if one.endswith("by 2")]
    assert calls(True, text="REPLY 17 BY") == [one for one in told if one.startswith("reply 17 ")]
    assert calls(True, judge="nobody") == []


def test_a_call_knows_its_unit(store: Store) -> None:
    page = store.call_page(RUN, turns(1000, 1000, limit=500))
    for one in page.rows[::20]:
        found = store.ledger_call(RUN, one.no)
        assert found is not None
        assert found[0] == one
        assert found[1] == f"u{one.call.reply.text.split()[1]}"
        assert store.ledger_call(OTHER, one.no) is None
    assert store.ledger_call(RUN, 10**9) is None
    keys = [one.call.key for one in page.rows[:3]]
    assert store.ledger_calls(keys).keys() == set(keys)
    assert store.ledger_calls([]) == {}


def test_units_of_both_runs_come_in_the_order_of_the_first(store: Store) -> None:
    store.begin("run4", "run4", {}, [IncomingUnit(f"u{i}", "b:1", body(i)) for i in (7, 3, 99)])
    names = [(one.id, other.id) for one, other in store.units_of_both(RUN, "run4")]
    assert names == [("u3", "u3"), ("u7", "u7")]
    first = next(iter(store.units_of_both(RUN, "run4")))[0]
    assert [one.id for one, _ in store.units_of_both(RUN, "run4", first.no)] == ["u7"]
    assert [one.id for one, _ in store.units_of_both("run4", RUN)] == ["u7", "u3"]


def test_a_unit_is_found_by_its_name(store: Store) -> None:
    found = store.unit_named(RUN, "u12")
    assert found is not None
    assert (found.id, found.body) == ("u12", body(12))
    assert store.unit_named(RUN, "nobody") is None
    assert store.unit_named("nobody", "u12") is None
    assert [one.judge for one in store.of_unit(found, TAG)] == [0, 1, 2]
    assert store.of_unit(found, "contract0:") == []


def test_the_last_calls_come_with_their_times(store: Store) -> None:
    found = store.recent_calls(RUN, 5)
    assert len(found) == 5
    assert found == sorted(found, reverse=True)
    assert store.recent_calls("nobody", 5) == []


def test_the_state_changes_when_somebody_else_writes(opened: Open) -> None:
    one, other = opened(), opened()
    before = one.state()
    assert one.state() == before
    other.begin(RUN, RUN, {}, [])
    assert one.state() != before
    one.close()
    other.close()


def test_a_run_is_claimed_while_it_is_judged(opened: Open) -> None:
    one, other = opened(), opened()
    assert not one.is_claimed(RUN)
    with other.claim(RUN):
        assert one.is_claimed(RUN)
        assert not one.is_claimed(OTHER)
    assert not one.is_claimed(RUN)
    one.close()
    other.close()


def test_a_store_knows_whether_it_is_still_there(opened: Open) -> None:
    store = opened()
    assert store.is_there()
    if isinstance(store, SqliteStore):
        store.path.rename(store.path.with_suffix(".away"))
        assert not store.is_there()
        opened().close()
        assert not store.is_there()
    store.close()
