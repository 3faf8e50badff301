"""Pages of any store: every row once, in order, both ways, however little a search may look at."""

import asyncio
import json
from typing import NamedTuple

import pytest

from evenhand.exchange import Reply, Usage
from evenhand.judgment import Failure, JudgmentText, write_judgment
from evenhand.manifest import JudgingRecord, Manifest
from evenhand.store.ledger import Store
from evenhand.store.ports import (
    Browsed,
    Call,
    Cursor,
    IncomingUnit,
    PageRequest,
    Scope,
    StoredJudgment,
)
from evenhand.store.rows import CALL_TAG
from tests.cases import cases
from tests.contract.stores import STORES, begun, begun_in

RUN, OTHER = "run1", "run2"
UNITS, JUDGES = 60, 3
Row = tuple[str, int | None]


def body(i):
    meta = {"model": f"m{i % 3}", "n": i, "odd": bool(i % 2), 'a "b".c': "x"}
    texts = {"question": f"Вопрос {i}?", "model_output": f'Say "{i}"\n\tand \\ {i}'}
    return json.dumps({"id": f"u{i}", **texts, "meta": meta}, ensure_ascii=False)


def outcome(i, judge, key):
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


class Filled(NamedTuple):
    """A store with some runs in it, and what they are called by their names."""

    store: Store
    runs: dict[str, str]

    @property
    def archive(self):
        return self.store.archive


@pytest.fixture(scope="module", params=STORES)
def filled(request, tmp_path_factory):
    """Filled once: tests read it, or add to it what no other test looks at."""
    store = STORES[request.param](tmp_path_factory.mktemp("filled"))()
    yield Filled(store, asyncio.run(fill(store)))
    store.close()


def incoming(*numbers):
    return [IncomingUnit(f"u{i}", f"a:{i}", body(i)) for i in numbers]


async def fill(store):
    """Three runs with judgings of their own. The store holds their units in another order."""
    async with store.ledger() as ledger:
        await begun(ledger, incoming(*range(UNITS - 1, 9, -2)), "before")
        runs = {}
        for name in (OTHER, RUN, "run3"):
            manifest = Manifest(judging=JudgingRecord(protocol=name))
            scope = await begun(ledger, incoming(*range(UNITS)), name, manifest)
            runs[name] = scope.run
            await judge_all(store, ledger, scope, name)
    return runs


async def judge_all(store, ledger, scope, name):
    waiting = []
    for unit in store.archive.units(scope):
        i = int(unit.id[1:])
        for judge in range(JUDGES if i % 9 else 0):  # every ninth waits for all
            if (i, judge) == (5, 1):
                continue  # one waits for one of its judges
            key = f"{CALL_TAG}{name}-{i}-{judge}"
            reply = Reply(text=f"reply {i} by {judge}", usage=Usage(input_tokens=1))
            waiting.append(ledger.record(Call(key, scope.run, f"judge{judge}", reply, 5)))
            stored = StoredJudgment(unit.no, judge, 0, (key,), 0, outcome(i, judge, key))
            await ledger.store_judgment(scope.run, stored)
    await asyncio.gather(*waiting)
    await ledger.flush()


EVERY = [
    (f"u{i}", judge)
    for i in range(UNITS)
    for judge in (range(JUDGES) if i % 9 else [None])
    if (i, judge) != (5, 1)
]


def turns(reach, limit=7, **rest):
    return PageRequest(limit=limit, reach=reach, **rest)


def walked(
    filled,
    browsed,
    *,
    run=RUN,
    forward=True,
    reach=8,
):
    """All pages, one after the other."""
    found = []
    place = None
    for _ in range(500):
        turn = turns(reach, place=place, forward=forward)
        page = filled.archive.judgment_page(filled.runs[run], browsed, turn)
        rows = [(unit.id, one.judge if one else None) for unit, one in page.rows]
        assert len(rows) <= 7
        found = found + rows if forward else rows + found
        if page.more:
            unit, one = page.rows[-1 if forward else 0]
            place = Cursor(unit.position, *((one.judge, one.repeat) if one else ()))
        elif page.stopped is not None:
            place = page.stopped
        else:
            return found
    raise AssertionError("no end")


def is_meant(i, j, /, *, judge=None, status="", reason="", winner="", tag="", flag="", **rest):
    """Return True if a row is to be found: the naive twin, over what `outcome` and `body` say."""
    is_judged, is_failed = j is not None, i % 10 == 4
    is_verdict = is_judged and not is_failed
    fields = {"model": f"m{i % 3}", "n": str(i), "odd": str(i % 2 == 1).lower(), 'a "b".c': "x"}
    flags = {"masked": i % 6 == 0, "self_contradiction": i % 4 == 0}
    texts = [f"u{i}", f"вопрос {i}?", f'say "{i}"\n\tand \\ {i}']
    texts += [f"wrong with {i}" if is_failed else f"note {i} of {j}"] * is_judged
    return all(
        (
            judge in (None, j),
            not status or (is_judged and status == ("failure" if is_failed else "verdict")),
            not reason or (is_judged and is_failed and reason == "schema"),
            not winner or (is_verdict and winner == "AB"[j % 2]),
            not tag or (is_verdict and tag == "C"),
            not flag or (is_verdict and flags.get(flag, False)),
            "field" not in rest or fields[rest["field"]] == rest["value"],
            any(rest.get("text", "").lower() in one for one in texts),
        )
    )


@pytest.mark.parametrize(("forward", "reach"), [(True, 1), (False, 1), (False, 8), (True, 1000)])
@cases
def test_a_walk_over_pages_finds_every_row_once(filled, asked, number, reach, forward):
    found = walked(filled, Browsed(**asked), forward=forward, reach=reach)
    assert found == [(name, j) for name, j in EVERY if is_meant(int(name[1:]), j, **asked)]
    assert len(found) == number


@pytest.mark.parametrize("forward", [True, False])
def test_units_that_wait_for_a_judge_are_pending(filled, forward):
    browsed = Browsed(status="pending", planned=JUDGES)
    waiting = [i for i in range(UNITS) if i % 9 == 0 or i == 5]
    assert walked(filled, browsed, forward=forward) == [(f"u{i}", None) for i in waiting]


def test_of_a_text_that_changed_the_new_run_has_no_judgment(filled):
    changed = IncomingUnit("u1", "a:1", body(1).replace("Say", "Said"))
    manifest = Manifest(judging=JudgingRecord(protocol="run3"))
    scope = begun_in(filled.store, [changed, *incoming(2, 4)], "run3", manifest)
    found = walked(filled._replace(runs={"changed": scope.run}), Browsed(), run="changed")
    assert found == [("u1", None), *((f"u{i}", judge) for i in (2, 4) for judge in range(JUDGES))]
    assert list(filled.archive.judgments(scope, "u1")) == []
    failed = Browsed(status="failure")
    assert walked(filled._replace(runs={"changed": scope.run}), failed, run="changed") == [
        ("u4", judge) for judge in range(JUDGES)
    ]


def test_few_failures_among_many_units_are_found(filled):
    manifest = Manifest(judging=JudgingRecord(protocol="few"))
    scope = begun_in(filled.store, incoming(*range(UNITS)), "few", manifest)

    async def judge():
        async with filled.store.ledger() as ledger:
            for unit in filled.archive.units(scope):
                if unit.id in ("u7", "u50"):
                    text = write_judgment(Failure(reason="empty", detail="nothing"))
                    stored = StoredJudgment(unit.no, 0, 0, (), 0, text)
                    await ledger.store_judgment(scope.run, stored)
            await ledger.flush()

    asyncio.run(judge())
    runs = filled._replace(runs={"few": scope.run})
    for browsed in (Browsed(status="failure"), Browsed(reason="empty"), Browsed(text="nothing")):
        for forward in (True, False):
            found = walked(runs, browsed, run="few", forward=forward)
            assert found == [("u7", 0), ("u50", 0)], (browsed, forward)


def test_the_last_calls_of_a_run_are_known_by_their_times(filled):
    times = filled.archive.call_times(filled.runs[RUN], 10_000)
    assert len(times) == sum(judge is not None for _, judge in EVERY)
    assert filled.archive.call_times(filled.runs[RUN], 3) == times[:3]
    assert filled.archive.call_times("nobody", 3) == []
    assert filled.archive.calls([]) == {}


def test_a_unit_is_found_by_its_name(filled):
    scope = Scope(filled.runs[RUN])
    [found] = filled.archive.units(scope, "u12")
    assert (found.id, found.body) == ("u12", body(12))
    assert list(filled.archive.units(scope, "nobody")) == []
    assert list(filled.archive.units(Scope("nobody"), "u12")) == []
    assert [one.judge for _, one in filled.archive.judgments(scope, "u12")] == [0, 1, 2]


def test_the_state_changes_when_somebody_else_writes(opened):
    store, beside = opened(), opened()
    before = store.archive.state()
    assert store.archive.state() == before
    begun_in(beside, incoming(1))
    assert store.archive.state() != before
    store.close()
    beside.close()


def test_a_store_knows_whether_it_is_still_there(opened, tmp_path):
    store = opened()
    assert store.archive.state() is not None
    file = tmp_path / "store.db"
    if file.exists():
        file.rename(tmp_path / "away.db")
        assert store.archive.state() is None
        opened().close()
        assert store.archive.state() is None
    store.close()
