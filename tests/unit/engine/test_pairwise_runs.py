"""Runs of pairs on a real store: orders, rounds, and going on after a stop."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import CallRejected
from evenhand.exchange import Question, Reply
from evenhand.kinds.pairwise.unit import first_order, read_pairs
from evenhand.runs.exchanges import Exchange, exchanges
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests import provider as p
from tests.suites import (
    Scripted,
    at,
    judged,
    pair_reply,
    pair_row,
    pairs,
    prepared,
    stored,
    with_judges,
    write_pairs,
    write_rows,
)
from tests.unit.engine.pair_runs import (
    EXPECTED,
    Interrupting,
    figures,
    interrupted,
    judge,
    settled_again,
)


async def conversations(folder: Path) -> list[list[Exchange]]:
    """The exchanges behind each judgment of the last run, made again from the ledger."""
    store = open_archive("sqlite:evenhand.db", folder)
    try:
        recorded = find_run(store, "latest")
        return [
            await exchanges(recorded, store, unit, judgment)
            for unit, judgment in store.judgments(recorded.scope)
        ]
    finally:
        store.close()


# A judge of content, one of position, one of chance


@pytest.mark.parametrize("seed", [0, 1, 2, 71])
async def test_a_judge_of_content_says_the_same_whatever_the_seed(
    tmp_path: Path, seed: int
) -> None:
    write_pairs(tmp_path, 12, seed=seed)
    summary = await judged(tmp_path)
    assert (summary.tally.sent, summary.counts.verdicts) == (24, 12)
    outputs = [row["output"] for row in stored(tmp_path)]
    assert [one["winner"] for one in outputs] == EXPECTED * 4
    assert {one["settled"] for one in outputs} == {"stable"}
    found = figures(tmp_path)
    assert (found.consistency.value, found.extra_calls) == (1.0, 0)
    assert dict(found.settled) == {"stable": 12}
    assert found.first_slot.value == 0.5
    assert dict(found.contradictions) == {}


@pytest.mark.parametrize("most", [1, 3, 4])
async def test_a_judge_that_always_says_first_leaves_every_pair_uncertain(
    tmp_path: Path, most: int
) -> None:
    write_pairs(tmp_path, 7, judge("first"), settings={"max_rounds": most})
    summary = await judged(tmp_path)
    assert summary.tally.sent == 2 * most * 7
    outputs = [row["output"] for row in stored(tmp_path)]
    assert {(one["winner"], one["settled"], one["rounds"]) for one in outputs} == {
        ("uncertain", "uncertain", most)
    }
    found = figures(tmp_path)
    assert (found.consistency.value, found.consistency.n) == (0.0, 7)
    assert (found.first_slot.value, found.first_slot.n) == (1.0, 14)
    assert found.extra_calls == 2 * (most - 1) * 7
    assert dict(found.contradictions) == {f"C{i}": 7 for i in range(1, 6)}
    assert found.standings["c1"].uncertain == 7


def plain_winner(marks: Mapping[str, str]) -> str:
    sides = {mark[0] for mark in marks.values() if mark != "tie"}
    if len(sides) == 2:
        chosen = [marks[c][0] for c in ("C1", "C2", "C5") if marks[c] != "tie"]
        return chosen[0] if chosen else "tie"
    return sides.pop() if sides else "tie"


TURNED = {"A": "B", "B": "A", "A+": "B+", "B+": "A+", "tie": "tie"}


async def test_the_counts_of_a_judge_by_chance_match_its_replies(tmp_path: Path) -> None:
    """Counted anew from the raw replies of the ledger, by the rules of the specification alone."""
    write_pairs(tmp_path, 40, judge("coin"), seed=3)
    summary = await judged(tmp_path)
    found = figures(tmp_path)
    store = open_archive("sqlite:evenhand.db", tmp_path)
    recorded = find_run(store, "latest")
    counts: Counter[str] = Counter()
    differ: Counter[str] = Counter()
    slots, extra, calls = [], 0, 0
    for unit, one in store.judgments(recorded.scope):
        asked = await exchanges(recorded, store, unit, one)
        calls += len(asked)
        extra += sum(each.question.round > 1 for each in asked)
        rounds: dict[int, list[tuple[str, dict[str, str], str]]] = {}
        for each in asked:
            said = json.loads(each.reply.text)
            marks = {c: given["mark"] for c, given in said["criteria"].items()}
            slots += [plain_winner(marks)] if each.question.round == 1 else []
            counts["against itself"] += said["winner"] != plain_winner(marks)
            if each.question.order == "21":
                marks = {c: TURNED[mark] for c, mark in marks.items()}
            rounds.setdefault(each.question.round, []).append(
                (plain_winner(marks), marks, each.question.order)
            )
        agreeing = [n for n, (a, b) in sorted(rounds.items()) if a[0] == b[0]]
        assert len(agreeing) <= 1
        assert len(rounds) == (agreeing[0] if agreeing else 3)
        how = "uncertain" if not agreeing else "stable" if agreeing == [1] else "resolved"
        winner = rounds[agreeing[0]][0][0] if agreeing else "uncertain"
        first, second = rounds[1]
        assert {first[2], second[2]} == {"12", "21"}
        counts[how] += 1
        counts["consistent"] += first[0] == second[0]
        differ.update(c for c in first[1] if first[1][c] != second[1][c])
        output = json.loads(one.text.body)["output"]
        assert (output["winner"], output["settled"]) == (winner, how)
        last = rounds[max(rounds)]
        unstable = [c for c in last[0][1] if last[0][1][c] != last[1][1][c]]
        assert output["unstable"] == unstable
        assert output["criteria"] == {
            c: "tie" if c in unstable else mark for c, mark in last[0][1].items()
        }
    store.close()
    assert calls == summary.tally.sent
    assert {n: found.settled[n] for n in ("stable", "resolved", "uncertain")} == {
        n: counts[n] for n in ("stable", "resolved", "uncertain")
    }
    assert min(counts[n] for n in ("stable", "resolved", "uncertain")) > 0
    assert found.consistency.value == counts["consistent"] / 40
    assert found.extra_calls == extra
    assert found.contradictions == differ
    assert found.self_contradictions == counts["against itself"]
    assert found.first_slot.value == slots.count("A") / (len(slots) - slots.count("tie"))


# Orders


def first_orders(folder: Path) -> list[str]:
    return [row["passes"][0]["order"] for row in stored(folder) if row["passes"]]


@pytest.mark.parametrize(
    "judges",
    [
        [judge("content", repeats=2)],
        [judge("content"), judge("other")],
        [judge("content", repeats=2), judge("other"), judge("first", repeats=3)],
    ],
    ids=["two repeats", "two judges", "two and one and three"],
)
async def test_every_other_judgment_of_a_pair_begins_with_the_other_order(
    tmp_path: Path, judges: list[dict[str, Any]]
) -> None:
    write_pairs(tmp_path, 8, *judges, settings={"max_rounds": 1})
    await judged(tmp_path)
    orders: dict[str, list[str]] = {}
    for row in stored(tmp_path):
        orders.setdefault(row["unit"], []).append(row["passes"][0]["order"])
    number = sum(one.get("repeats", 1) for one in judges)
    for found in orders.values():
        assert found == ([found[0], {"12": "21", "21": "12"}[found[0]]] * number)[:number]


async def test_orders_are_repeated_by_the_seed_and_other_by_another(tmp_path: Path) -> None:
    orders = {}
    for name, seed in (("one", 4), ("two", 4), ("three", 5)):
        write_pairs(tmp_path / name, 30, seed=seed)
        await judged(tmp_path / name)
        orders[name] = first_orders(tmp_path / name)
    assert orders["one"] == orders["two"] != orders["three"]


async def test_a_row_put_before_the_others_changes_no_order_of_theirs(tmp_path: Path) -> None:
    write_pairs(tmp_path, 9)
    await judged(tmp_path)
    before = first_orders(tmp_path)
    write_rows(tmp_path, [pair_row("new", 3, 5), *pairs(9)], "pairs.jsonl")
    again = await judged(tmp_path)
    assert (again.tally.sent, again.counts.verdicts) == (2, 10)
    assert first_orders(tmp_path)[1:] == before


# Both orders at the same time


class Meeting(Scripted):
    """Answers both questions of a round once it has both, in the order wanted."""

    def __init__(self, answered_first: str) -> None:
        super().__init__(self._answer)
        self.rounds: dict[tuple[str, int], tuple[asyncio.Barrier, asyncio.Event]] = {}
        self.answered_first = answered_first

    async def _answer(self, question: Question) -> Reply:
        place = question.unit, question.round
        both, answered = self.rounds.setdefault(place, (asyncio.Barrier(2), asyncio.Event()))
        await both.wait()
        if question.order != self.answered_first:
            await answered.wait()
        answered.set()
        return Reply(text=pair_reply("A+" if question.round == 1 else "tie"))


@pytest.mark.parametrize("answered_first", ["12", "21"])
async def test_both_orders_are_asked_at_once_and_kept_in_the_seeded_order(
    tmp_path: Path, answered_first: str
) -> None:
    write_pairs(tmp_path, 9)
    ready = prepared(tmp_path)
    await judged(with_judges(ready, Meeting(answered_first)))
    rows = {row["unit"]: row for row in stored(tmp_path)}
    units = [unit for row in pairs(9) for unit in read_pairs(row)]
    for unit in units:
        first = first_order(0, unit)
        orders = [made["order"] for made in rows[unit.id]["passes"]]
        assert orders == [first, {"12": "21", "21": "12"}[first]] * 2
    assert {first_order(0, unit) for unit in units} == {"12", "21"}
    for exchanged, row in zip(await conversations(tmp_path), rows.values(), strict=True):
        assert [one.question.order for one in exchanged] == [m["order"] for m in row["passes"]]
        assert [one.key for one in exchanged] == list(row["calls"])


async def test_a_lost_first_pass_is_asked_alone_by_the_next_run(tmp_path: Path) -> None:
    write_pairs(tmp_path, 2)
    lost: set[str] = set()

    async def answer(question: Question) -> Reply:
        if question.unit not in lost:
            lost.add(question.unit)
            raise CallRejected("transport", "lost")
        return Reply(text=pair_reply("tie"))

    first = await judged(with_judges(prepared(tmp_path), Scripted(answer)))
    assert (first.counts.failures, first.spent.calls) == ({"transport": 2}, 2)
    again = await judged(with_judges(prepared(tmp_path), Scripted(answer)))
    assert (again.tally.sent, again.tally.cached, again.counts.verdicts) == (2, 2, 2)


async def test_a_stop_waits_for_the_order_that_is_under_way(tmp_path: Path) -> None:
    """One order hears of the stop, and the other is answered, kept and never paid again."""
    write_pairs(tmp_path, 1, settings={"max_rounds": 1}, limits={"requests_per_minute": 1})
    interrupting = Interrupting(1)

    async def answer(question: Question) -> Reply:
        await asyncio.sleep(0)  # the other order waits for its turn by now
        interrupting()
        return Reply(text=pair_reply("tie"))

    first = await judged(
        with_judges(prepared(tmp_path), Scripted(answer)), watch=interrupting.watch
    )
    assert (first.counts.pending, first.spent.calls) == (1, 1)
    ready = prepared(tmp_path, limits={"requests_per_minute": None})
    again = await judged(with_judges(ready, Scripted(answer)))
    assert (again.tally.sent, again.counts.verdicts) == (1, 1)


async def test_a_cancelled_run_cancels_both_orders(tmp_path: Path) -> None:
    write_pairs(tmp_path, 1)
    both, ended = asyncio.Barrier(3), list[str]()

    async def answer(question: Question) -> Reply:
        try:
            await both.wait()
            await asyncio.Event().wait()
        finally:
            ended.append(question.order)
        raise AssertionError

    run = asyncio.create_task(judged(with_judges(prepared(tmp_path), Scripted(answer))))
    await both.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert sorted(ended) == ["12", "21"]


@pytest.mark.parametrize(("concurrency", "slots"), [(1, None), (3, None), (8, 1), (8, 3)])
async def test_no_more_requests_at_once_than_a_judge_takes(
    tmp_path: Path, concurrency: int, slots: int | None
) -> None:
    write_pairs(tmp_path, 12, limits={"concurrency": concurrency})
    under_way, most = 0, 0

    async def answer(question: Question) -> Reply:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return Reply(text=pair_reply("tie"))

    scripted = Scripted(answer)
    scripted.slots = slots  # type: ignore[misc]
    summary = await judged(with_judges(prepared(tmp_path), scripted))
    assert (summary.counts.verdicts, most) == (12, min(concurrency, slots or concurrency))


# Rounds, as the provider sees them


def round_of(call: p.Call) -> int:
    """By the seed that was sent."""
    return int(call.body["seed"]) - 7 + 1


async def test_a_later_round_is_drawn_anew_and_all_of_it_is_recorded(tmp_path: Path) -> None:
    def decide(call: p.Call) -> str:
        return "A" if round_of(call) == 1 else p.by_number(call)

    async with p.Provider(p.comparing(decide)) as provider:
        write_pairs(tmp_path, [pair_row("x", 2, 9)], at(provider.url), seed=7)
        await judged(tmp_path)
    sent = [(call.body["temperature"], call.body["seed"]) for call in provider.calls]
    assert sent == [(0, 7), (0, 7), (0.7, 8), (0.7, 8)]
    (row,) = stored(tmp_path)
    assert (row["output"]["winner"], row["output"]["settled"]) == ("B", "resolved")
    assert [(one["round"], one["sampling"]) for one in row["passes"]] == [
        *((1, {"temperature": 0.0, "seed": 7}),) * 2,
        *((2, {"temperature": 0.7, "seed": 8}),) * 2,
    ]
    # What is sent says nothing of the round or the order, but for how it is drawn.
    assert provider.calls[0].body["messages"] == provider.calls[2].body["messages"]


async def test_a_hotter_judge_stays_as_hot(tmp_path: Path) -> None:
    async with p.Provider(p.comparing(lambda call: "A")) as provider:
        write_pairs(tmp_path, 1, at(provider.url, temperature=1.2), settings={"max_rounds": 2})
        await judged(tmp_path)
    assert [call.body["temperature"] for call in provider.calls] == [1.2] * 4


# Stopping and going on


@pytest.mark.parametrize("stop_after", range(1, 18))
async def test_stopped_between_passes_or_rounds_nothing_is_paid_again(
    tmp_path: Path, stop_after: int
) -> None:
    """Three pairs of six calls each: stopped after any of them, the rest is what is left."""
    write_pairs(tmp_path, 3, judge("first"))
    first, again = await interrupted(tmp_path, stop_after)
    assert (first.tally.sent, again.tally.sent) == (stop_after, 18 - stop_after)
    assert [row["output"]["rounds"] for row in stored(tmp_path)] == [3, 3, 3]


async def test_a_stop_in_mid_pair_leaves_it_pending_and_changes_nothing(tmp_path: Path) -> None:
    """The verdicts are those of a run that was never stopped."""
    write_pairs(tmp_path / "whole", 12, judge("coin"))
    write_pairs(tmp_path / "stopped", 12, judge("coin"))
    await judged(tmp_path / "whole")
    await interrupted(tmp_path / "stopped", 13)
    whole, stopped = (stored(tmp_path / name) for name in ("whole", "stopped"))
    assert [row["output"] for row in whole] == [row["output"] for row in stopped]
    assert [row["passes"] for row in whole] == [row["passes"] for row in stopped]


async def test_a_lost_second_pass_is_asked_alone_by_the_next_run(tmp_path: Path) -> None:
    async with p.Provider([p.comparing(p.by_number), p.failing(503)]) as provider:
        write_pairs(tmp_path, 1, at(provider.url))
        first = await judged(tmp_path)
        assert first.counts.failures == {"transport": 1}
        provider.script = [p.comparing(p.by_number)]
        again = await judged(tmp_path)
    assert (again.tally.sent, again.counts.verdicts) == (1, 1)


async def test_settle_makes_everything_anew_without_a_call(tmp_path: Path) -> None:
    write_pairs(tmp_path, 12, judge("coin", repeats=2), judge("bad"))
    summary = await judged(tmp_path)
    before, found = stored(tmp_path), figures(tmp_path).json()
    with sqlite3.connect(tmp_path / "evenhand.db") as beside:
        beside.execute(
            'UPDATE judgments SET body=replace(body, \'"winner":"A"\', \'"winner":"B"\')'
        )
    beside.close()
    assert stored(tmp_path) != before
    again = await settled_again(tmp_path)
    assert (again.tally.sent, again.counts) == (0, summary.counts)
    assert stored(tmp_path) == before
    assert figures(tmp_path).json() == found


async def test_what_settle_misses_of_a_pair_becomes_pending(tmp_path: Path) -> None:
    write_pairs(tmp_path, 3, judge("first"))
    await judged(tmp_path)
    with sqlite3.connect(tmp_path / "evenhand.db") as beside:
        beside.execute("DELETE FROM calls WHERE rowid=4")
    beside.close()
    summary = await settled_again(tmp_path)
    assert (summary.counts.verdicts, summary.counts.pending) == (2, 1)
    assert (await judged(tmp_path)).tally.sent == 1


async def test_equal_texts_cost_nothing(tmp_path: Path) -> None:
    rows = pairs(3)
    rows[1]["candidates"][1]["text"] = rows[1]["candidates"][0]["text"]
    write_pairs(tmp_path, rows, judge("crash"))
    summary = await judged(tmp_path)
    assert (summary.counts.verdicts, summary.counts.failures) == (1, {"judge_crash": 2})
    (row,) = [row for row in stored(tmp_path) if row["output"]]
    assert (row["unit"], row["output"]["winner"], row["flags"]) == ("p1", "tie", ["equal_text"])
    # It says nothing of the judge's consistency.
    assert figures(tmp_path).first_rounds == 0


async def test_a_limit_in_the_middle_of_a_row_of_many_candidates(tmp_path: Path) -> None:
    write_pairs(tmp_path, [pair_row("a", 1, 2, 3, 4), pair_row("b", 5, 6)])
    summary = await judged(tmp_path, limit=4)
    assert (summary.counts.planned, summary.counts.verdicts) == (4, 4)
    units = [row["unit"] for row in stored(tmp_path)]
    assert units == ["a#c1~c2", "a#c1~c3", "a#c1~c4", "a#c2~c3"]
    front = figures(tmp_path).fronts["a"]
    assert front.candidates == ["c1", "c2", "c3", "c4"]
    # Nobody was seen to beat the third and the fourth.
    assert front.front == ["c3", "c4"]
    again = await judged(tmp_path)
    assert (again.run, again.tally.sent, again.counts.verdicts) == (summary.run, 6, 7)
    assert figures(tmp_path).fronts["a"].front == ["c4"]


async def test_max_rounds_and_panel_are_part_of_the_run_and_share_the_ledger(
    tmp_path: Path,
) -> None:
    runs = []
    for settings in ({}, {"max_rounds": 2}, {"max_rounds": 5}, {"blind": "mask"}):
        write_pairs(tmp_path, 2, judge("first"), settings=settings)
        runs.append(await judged(tmp_path))
    assert len({one.run for one in runs}) == 4
    assert [one.tally.sent for one in runs] == [12, 0, 8, 0]


async def test_a_pass_that_is_lost_leaves_the_other_on_record(tmp_path: Path) -> None:
    code = """
async def once(messages, schema, params):
    shown = messages[-1]["content"]
    if shown.index("A reply") < shown.index("An answer"):
        raise RuntimeError("no luck")
    given = {"first_meets": True, "second_meets": True, "comment": "so", "mark": "tie"}
    import json
    criteria = {f"C{i}": given for i in range(1, 6)}
    return json.dumps({"criteria": criteria, "explanation": "so", "winner": "tie"})
"""
    write_pairs(tmp_path, 2, {"model": "python/judge:once"}, judge=code)
    await judged(tmp_path)
    rows = {row["unit"]: row for row in stored(tmp_path)}
    assert {row["reason"] for row in rows.values()} == {"judge_crash"}
    # Which order comes first is drawn, and both are asked.
    assert [[made["order"] for made in row["passes"]] for row in rows.values()] == [["12"]] * 2
    assert [len(row["calls"]) for row in rows.values()] == [1, 1]
    assert [len(one) for one in await conversations(tmp_path)] == [1, 1]
