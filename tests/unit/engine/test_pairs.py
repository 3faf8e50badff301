"""Runs of pairs on a real store: orders, rounds, panels and relays, and going on after a stop."""

import asyncio
import json
from collections import Counter
from contextlib import closing

import pytest

from evenhand.errors import CallRejected, UsageError
from evenhand.exchange import Reply
from evenhand.kinds.pairwise.unit import first_order, read_pairs
from evenhand.runs.exchanges import exchanges
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests import provider as p
from tests.sentences import refused
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
    check_sums,
    figures,
    interrupted,
    judge,
    settled_again,
)
from tests.unit.kinds.pairing import TURNED, winner_by_rule

RELAY = {"panel": "relay"}
BACK = {"12": "21", "21": "12"}


async def conversations(folder):
    """Each judgment of the last run with the exchanges behind it, made again from the ledger."""
    with closing(open_archive("sqlite:evenhand.db", folder)) as store:
        recorded = find_run(store, "latest")
        return [
            (judgment, await exchanges(recorded, store, unit, judgment))
            for unit, judgment in store.judgments(recorded.scope)
        ]


def scripted(folder, answer, **overrides):
    """A run of a suite by a judge that answers as it is told."""
    return with_judges(prepared(folder, **overrides), Scripted(answer))


def outputs(folder, *names):
    return [tuple(row["output"][name] for name in names) for row in stored(folder)]


# A judge of content, one of position, one of chance


@pytest.mark.parametrize("seed", [0, 71])
async def test_a_judge_of_content_says_the_same_whatever_the_seed(tmp_path, seed):
    write_pairs(tmp_path, 12, seed=seed)
    summary, found = await judged(tmp_path), figures(tmp_path)
    assert (summary.tally.sent, summary.counts.verdicts) == (24, 12)
    expected = [(winner, "stable") for winner in EXPECTED * 4]
    assert outputs(tmp_path, "winner", "settled") == expected
    assert (
        found.votes.orders.consistency.value,
        found.votes.extra_calls,
        found.votes.orders.first_slot.value,
    ) == (1.0, 0, 0.5)
    assert dict(found.votes.settled) == {"stable": 12}


@pytest.mark.parametrize("most", [1, 3, 4])
async def test_a_judge_that_always_says_first_leaves_every_pair_uncertain(tmp_path, most):
    write_pairs(tmp_path, 7, judge("first"), settings={"max_rounds": most})
    summary, found = await judged(tmp_path), figures(tmp_path)
    assert summary.tally.sent == 2 * most * 7
    expected = ("uncertain", "uncertain", most)
    assert outputs(tmp_path, "winner", "settled", "rounds") == [expected] * 7
    assert (found.votes.orders.consistency.value, found.votes.orders.consistency.n) == (0.0, 7)
    assert (found.votes.orders.first_slot.value, found.votes.orders.first_slot.n) == (1.0, 14)
    assert found.votes.extra_calls == 2 * (most - 1) * 7
    assert found.standings["c1"].uncertain == 7


async def test_the_counts_of_a_judge_by_chance_match_its_replies(tmp_path):
    """Counted anew from the raw replies of the ledger, by the rules of the specification alone."""
    write_pairs(tmp_path, 40, judge("coin"), seed=3)
    summary, found = await judged(tmp_path), figures(tmp_path)
    counts, slots = Counter(), []
    for judgment, asked in await conversations(tmp_path):
        counts["calls"] += len(asked)
        counts["extra"] += sum(each.question.round > 1 for each in asked)
        rounds = {}
        for each in asked:
            said, order = json.loads(each.reply.text), each.question.order
            marks = {c: given["mark"] for c, given in said["criteria"].items()}
            slots += [winner_by_rule(marks)] if each.question.round == 1 else []
            if order == "21":
                marks = {c: TURNED[mark] for c, mark in marks.items()}
            rounds.setdefault(each.question.round, []).append((winner_by_rule(marks), marks, order))
        agreeing = [n for n, (a, b) in sorted(rounds.items()) if a[0] == b[0]]
        assert len(agreeing) <= 1 and len(rounds) == (agreeing or [3])[0]
        how = "uncertain" if not agreeing else "stable" if agreeing == [1] else "resolved"
        winner = rounds[agreeing[0]][0][0] if agreeing else "uncertain"
        first, second = rounds[1]
        assert {first[2], second[2]} == {"12", "21"}
        counts[how] += 1
        counts["consistent"] += first[0] == second[0]
        output = json.loads(judgment.text.body)["output"]
        assert (output["winner"], output["settled"]) == (winner, how)
    assert counts["calls"] == summary.tally.sent
    for how in ("stable", "resolved", "uncertain"):
        assert found.votes.settled[how] == counts[how] > 0
    assert found.votes.orders.consistency.value == counts["consistent"] / 40
    assert found.votes.extra_calls == counts["extra"]
    assert found.votes.orders.first_slot.value == slots.count("A") / (
        len(slots) - slots.count("tie")
    )


# Orders


def first_orders(folder):
    return [row["passes"][0]["order"] for row in stored(folder) if row["passes"]]


async def test_every_other_judgment_of_a_pair_begins_with_the_other_order(tmp_path):
    """Over the repeats of each judge, and from one judge to the next."""
    judges = [judge("content", repeats=2), judge("other"), judge("first", repeats=3)]
    write_pairs(tmp_path, 8, *judges, settings={"max_rounds": 1})
    await judged(tmp_path)
    orders = {}
    for row in stored(tmp_path):
        orders.setdefault(row["unit"], []).append(row["passes"][0]["order"])
    assert len(orders) == 8
    for found in orders.values():
        assert found == [found[0], BACK[found[0]]] * 3


async def test_orders_are_repeated_by_the_seed_and_other_by_another(tmp_path):
    orders = []
    for name, seed in (("one", 4), ("two", 4), ("three", 5)):
        write_pairs(tmp_path / name, 30, seed=seed)
        await judged(tmp_path / name)
        orders.append(first_orders(tmp_path / name))
    assert orders[0] == orders[1] != orders[2]


async def test_a_row_put_before_the_others_changes_no_order_of_theirs(tmp_path):
    write_pairs(tmp_path, 9)
    await judged(tmp_path)
    before = first_orders(tmp_path)
    write_rows(tmp_path, [pair_row("new", 3, 5), *pairs(9)], "pairs.jsonl")
    again = await judged(tmp_path)
    assert (again.tally.sent, again.counts.verdicts) == (2, 10)
    assert first_orders(tmp_path)[1:] == before


# Both orders at the same time


@pytest.mark.parametrize("answered_first", ["12", "21"])
async def test_both_orders_are_asked_at_once_and_kept_in_the_seeded_order(tmp_path, answered_first):
    write_pairs(tmp_path, 9)
    rounds = {}

    async def answer(question):
        place = question.unit, question.round
        both, answered = rounds.setdefault(place, (asyncio.Barrier(2), asyncio.Event()))
        await both.wait()
        if question.order != answered_first:
            await answered.wait()
        answered.set()
        return Reply(text=pair_reply("A+" if question.round == 1 else "tie"))

    await judged(scripted(tmp_path, answer))
    rows = {row["unit"]: row for row in stored(tmp_path)}
    firsts = {unit.id: first_order(0, unit) for row in pairs(9) for unit in read_pairs(row)}
    assert set(firsts.values()) == {"12", "21"}
    for unit, first in firsts.items():
        assert [made["order"] for made in rows[unit]["passes"]] == [first, BACK[first]] * 2
    for (_, exchanged), row in zip(await conversations(tmp_path), rows.values(), strict=True):
        assert [one.question.order for one in exchanged] == [m["order"] for m in row["passes"]]
        assert [one.key for one in exchanged] == list(row["calls"])


async def test_a_lost_pass_is_asked_alone_by_the_next_run_and_the_other_is_on_record(tmp_path):
    write_pairs(tmp_path, 2)
    lost = set()

    async def answer(question):
        if question.unit not in lost:
            lost.add(question.unit)
            raise CallRejected("transport", "lost")
        return Reply(text=pair_reply("tie"))

    first = await judged(scripted(tmp_path, answer))
    assert (first.counts.failures, first.spent.calls) == ({"transport": 2}, 2)
    kept = [(len(row["passes"]), len(row["calls"])) for row in stored(tmp_path)]
    assert kept == [(1, 1)] * 2 == [(len(asked), 1) for _, asked in await conversations(tmp_path)]
    again = await judged(scripted(tmp_path, answer))
    assert (again.tally.sent, again.tally.cached, again.counts.verdicts) == (2, 2, 2)


async def test_a_stop_waits_for_the_order_that_is_under_way(tmp_path):
    """One order hears of the stop, and the other is answered, kept and never paid again."""
    write_pairs(tmp_path, 1, settings={"max_rounds": 1}, limits={"requests_per_minute": 1})
    interrupting = Interrupting(1)

    async def answer(question):
        await asyncio.sleep(0)  # the other order waits for its turn by now
        interrupting()
        return Reply(text=pair_reply("tie"))

    first = await judged(scripted(tmp_path, answer), watch=interrupting.watch)
    assert (first.counts.pending, first.spent.calls) == (1, 1)
    again = await judged(scripted(tmp_path, answer, limits={"requests_per_minute": None}))
    assert (again.tally.sent, again.counts.verdicts) == (1, 1)


async def test_a_cancelled_run_cancels_both_orders(tmp_path):
    write_pairs(tmp_path, 1)
    both, ended = asyncio.Barrier(3), []

    async def answer(question):
        try:
            await both.wait()
            await asyncio.Event().wait()
        finally:
            ended.append(question.order)

    run = asyncio.create_task(judged(scripted(tmp_path, answer)))
    await both.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert sorted(ended) == ["12", "21"]


@pytest.mark.parametrize(("concurrency", "slots"), [(1, None), (3, None), (8, 1), (8, 3)])
async def test_no_more_requests_at_once_than_a_judge_takes(tmp_path, concurrency, slots):
    write_pairs(tmp_path, 12, limits={"concurrency": concurrency})
    under_way, most = 0, 0

    async def answer(question):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return Reply(text=pair_reply("tie"))

    one = Scripted(answer)
    one.slots = slots
    summary = await judged(with_judges(prepared(tmp_path), one))
    assert (summary.counts.verdicts, most) == (12, min(concurrency, slots or concurrency))


# Rounds, as the provider sees them


async def test_a_later_round_is_drawn_anew_and_all_of_it_is_recorded(tmp_path):
    def decide(call):
        return "A" if call.body["seed"] == 7 else p.by_number(call)

    async with p.Provider(p.comparing(decide)) as provider:
        write_pairs(tmp_path, [pair_row("x", 2, 9)], at(provider.url), seed=7)
        await judged(tmp_path)
    sent = [(call.body["temperature"], call.body["seed"]) for call in provider.calls]
    assert sent == [(0, 7), (0, 7), (0.7, 8), (0.7, 8)]
    (row,) = stored(tmp_path)
    assert (row["output"]["winner"], row["output"]["settled"]) == ("B", "resolved")
    sampled = [(one["round"], *one["sampling"].values()) for one in row["passes"]]
    assert sampled == [*[(1, 0.0, 7)] * 2, *[(2, 0.7, 8)] * 2]
    # What is sent says nothing of the round or the order, but for how it is drawn.
    assert provider.calls[0].body["messages"] == provider.calls[2].body["messages"]


async def test_a_hotter_judge_stays_as_hot(tmp_path):
    async with p.Provider(p.comparing(lambda call: "A")) as provider:
        write_pairs(tmp_path, 1, at(provider.url, temperature=1.2), settings={"max_rounds": 2})
        await judged(tmp_path)
    assert [call.body["temperature"] for call in provider.calls] == [1.2] * 4


# Stopping and going on


@pytest.mark.parametrize("stop_after", range(1, 18))
async def test_stopped_between_passes_or_rounds_nothing_is_paid_again(tmp_path, stop_after):
    """Three pairs of six calls each: stopped after any of them, the rest is what is left."""
    write_pairs(tmp_path, 3, judge("first"))
    first, again = await interrupted(tmp_path, stop_after)
    assert (first.tally.sent, again.tally.sent) == (stop_after, 18 - stop_after)
    assert outputs(tmp_path, "rounds") == [(3,)] * 3


async def test_a_stop_in_mid_pair_leaves_it_pending_and_changes_nothing(tmp_path):
    """The verdicts are those of a run that was never stopped."""
    folders = tmp_path / "whole", tmp_path / "stopped"
    for folder in folders:
        write_pairs(folder, 12, judge("coin"))
    await judged(folders[0])
    await interrupted(folders[1], 13)
    whole, stopped = (
        [(row["output"], row["passes"]) for row in stored(folder)] for folder in folders
    )
    assert whole == stopped


async def test_equal_texts_cost_nothing(tmp_path):
    rows = pairs(3)
    rows[1]["candidates"][1]["text"] = rows[1]["candidates"][0]["text"]
    write_pairs(tmp_path, rows, judge("crash"))
    summary = await judged(tmp_path)
    assert (summary.counts.verdicts, summary.counts.failures) == (1, {"judge_crash": 2})
    (row,) = [row for row in stored(tmp_path) if row["output"]]
    assert (row["unit"], row["output"]["winner"], row["flags"]) == ("p1", "tie", ["equal_text"])
    # It says nothing of the judge's consistency.
    assert figures(tmp_path).votes.orders.first_rounds == 0


async def test_a_limit_in_the_middle_of_a_row_of_many_candidates(tmp_path):
    write_pairs(tmp_path, [pair_row("a", 1, 2, 3, 4), pair_row("b", 5, 6)])
    summary = await judged(tmp_path, limit=4)
    assert (summary.counts.planned, summary.counts.verdicts) == (4, 4)
    units = [row["unit"] for row in stored(tmp_path)]
    assert units == ["a#c1~c2", "a#c1~c3", "a#c1~c4", "a#c2~c3"]
    front = figures(tmp_path).fronts["a"]
    # Nobody was seen to beat the third and the fourth.
    assert (front.candidates, front.front) == (["c1", "c2", "c3", "c4"], ["c3", "c4"])
    again = await judged(tmp_path)
    assert (again.run, again.tally.sent, again.counts.verdicts) == (summary.run, 6, 7)
    assert figures(tmp_path).fronts["a"].front == ["c4"]


async def test_max_rounds_and_panel_are_part_of_the_run_and_share_the_ledger(tmp_path):
    runs = []
    for settings in ({}, {"max_rounds": 2}, {"max_rounds": 5}, {"blind": "mask"}):
        write_pairs(tmp_path, 2, judge("first"), settings=settings)
        runs.append(await judged(tmp_path))
    assert len({one.run for one in runs}) == 4
    assert [one.tally.sent for one in runs] == [12, 0, 8, 0]


# Panels


async def panel_of(folder, rows, *judges):
    """A judged panel: what it and its judges come to."""
    write_pairs(folder, rows, *judges)
    check_sums(await judged(folder))
    return figures(folder)


async def test_each_judge_settles_on_its_own_and_the_majority_is_the_panel_s(tmp_path):
    found = await panel_of(tmp_path, 3, *map(judge, ("content", "other", "late", "bad")))
    # content and late against other; a failure has no vote.
    assert dict(found.panel) == {"A": 1, "B": 1, "tie": 1}
    assert (await settled_again(tmp_path)).tally.sent == 0
    assert figures(tmp_path).json() == found.json()


async def test_judges_of_one_name_are_told_apart_and_vote_each(tmp_path):
    judges = [judge("content", temperature=t) for t in (0, 0.5)] + [judge("other")]
    found = await panel_of(tmp_path, 1, *judges)
    names = [name.partition(":")[2] for name in found.judges]
    assert names == ["content", "content (2)", "other"]
    assert dict(found.panel) == {EXPECTED[0]: 1}


async def test_without_a_majority_the_panel_is_uncertain(tmp_path):
    found = await panel_of(tmp_path, 3, *map(judge, ("content", "other", "first", "tie")))
    # A, B, uncertain, tie; then B, A, uncertain, tie; then tie, tie, uncertain, tie.
    assert dict(found.panel) == {"uncertain": 2, "tie": 1}


async def test_uncertain_counts_as_itself(tmp_path):
    judges = judge("content"), judge("first", repeats=2)
    found = await panel_of(tmp_path, [pair_row("x", 9, 1)], *judges)
    assert dict(found.panel) == {"uncertain": 1}


async def test_a_relay_gives_one_judgment_whose_rounds_are_asked_of_one_judge_each(tmp_path):
    names = ["first", "tie", "content"]
    write_pairs(tmp_path, 4, *map(judge, names), settings=RELAY)
    summary = await judged(tmp_path)
    assert (summary.counts.planned, summary.counts.verdicts, summary.tally.sent) == (4, 4, 16)
    before = stored(tmp_path)
    for row in before:
        assert row["judge"] == " > ".join(f"python/judge:{name}" for name in names)
        by = [(one["round"], one["judge"].rpartition(":")[2]) for one in row["passes"]]
        assert by == [(1, "first"), (1, "first"), (2, "tie"), (2, "tie")]
        assert (row["output"]["winner"], row["output"]["settled"]) == ("tie", "resolved")
    for again in (await judged(tmp_path), await settled_again(tmp_path)):
        assert (again.tally.sent, again.counts) == (0, summary.counts)
    assert stored(tmp_path) == before


async def test_a_relay_wraps_and_asks_anew(tmp_path):
    settings = {**RELAY, "max_rounds": 5}
    write_pairs(tmp_path, 10, judge("first"), judge("coin"), settings=settings)
    await judged(tmp_path)
    rows = stored(tmp_path)
    assert max(row["output"]["rounds"] for row in rows) >= 3
    for one in (one for row in rows for one in row["passes"]):
        assert one["judge"].endswith("first" if one["round"] % 2 else "coin")


async def test_a_relay_of_different_styles_asks_each_in_its_own(tmp_path):
    write_pairs(tmp_path, 2, judge("first"), judge("content"), settings=RELAY)

    async def answer(question):
        return Reply(text=pair_reply("A+"))

    compact = Scripted(answer)
    compact.style, compact.slots = "compact", 1
    summary = await judged(with_judges(prepared(tmp_path), compact))
    assert (summary.counts.verdicts, len(compact.asked)) == (2, 4)
    assert all("x-versus" in str(question.schema) for question in compact.asked)
    assert outputs(tmp_path, "winner") == [(winner,) for winner in EXPECTED[:2]]


def test_judges_of_a_relay_that_would_repeat_differently_are_refused(tmp_path):
    write_pairs(tmp_path, 1, judge("first"), judge("content", repeats=2), settings=RELAY)
    with refused(UsageError, "runs.relay_repeats"):
        prepared(tmp_path)


@pytest.mark.parametrize("stop_after", range(1, 12, 2))
async def test_a_relay_continues_where_it_was_interrupted(tmp_path, stop_after):
    write_pairs(tmp_path, 3, judge("first"), judge("content"), settings=RELAY)
    first, again = await interrupted(tmp_path, stop_after)
    assert (first.tally.sent, again.tally.sent) == (stop_after, 12 - stop_after)


# Judges that share a family with a candidate


def family_rows():
    rows = pairs(4)
    names = [("gpt-4o", "mine"), ("claude-3-opus", "gpt-4o"), ("x", "y"), ("z", "claude-3")]
    for row, pair in zip(rows, names, strict=True):
        for candidate, name in zip(row["candidates"], pair, strict=True):
            candidate["id"] = name
    return rows


async def test_who_shares_a_family_is_left_out_and_planned_shrinks(tmp_path):
    names = ["openai/gpt-4.1-mini", "openai/claude-sonnet-4-5"]
    async with p.Provider(p.comparing(p.by_number)) as provider:
        judges = [at(provider.url, model=name) for name in names]
        write_pairs(tmp_path, family_rows(), *judges, settings={"no_self_judging": True})
        summary, again = await judged(tmp_path), await judged(tmp_path)
    check_sums(summary)
    # gpt judges x/y and z/claude; claude judges gpt-4o/mine and x/y.
    counts = summary.counts
    assert (counts.planned, counts.left_out, counts.verdicts, counts.pending) == (4, 4, 4, 0)
    assert (len(provider.calls), again.tally.sent) == (8, 0)
    assert again.counts == (await settled_again(tmp_path)).counts == counts
    rows = Counter((row["judge"], row["status"]) for row in stored(tmp_path))
    assert rows == {(name, status): 2 for name in names for status in ("verdict", "left_out")}
    assert sum(figures(tmp_path).panel.values()) == 3


async def test_otherwise_it_is_flagged(tmp_path):
    async with p.Provider(p.comparing(p.by_number)) as provider:
        write_pairs(tmp_path, family_rows(), at(provider.url, model="openai/gpt-4.1-mini"))
        summary = await judged(tmp_path)
    assert (summary.counts.planned, summary.counts.left_out) == (4, 0)
    flags = [row["flags"] for row in stored(tmp_path)]
    assert flags == [["shares_family:A"], ["shares_family:B"], [], []]
