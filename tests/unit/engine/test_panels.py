"""Several judges on one suite: each on its own, or as a relay; and who is left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import UsageError
from evenhand.exchange import Question, Reply
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
)
from tests.unit.engine.pair_runs import (
    EXPECTED,
    check_sums,
    figures,
    interrupted,
    judge,
    settled_again,
)

# Panels


async def test_each_judge_settles_on_its_own_and_the_majority_is_the_panel_s(
    tmp_path: Path,
) -> None:
    judges = [judge("content"), judge("other"), judge("late"), judge("bad")]
    write_pairs(tmp_path, 3, *judges)
    summary = await judged(tmp_path)
    check_sums(summary)
    assert (summary.counts.planned, summary.counts.failures) == (12, {"schema": 3})
    found = figures(tmp_path)
    # content and late against other; a failure has no vote.
    assert dict(found.panel) == {"A": 1, "B": 1, "tie": 1}
    # Of three judges two by two: 1 of 3 agree on a win, 3 of 3 on the tie.
    assert (found.agreement.value, found.agreement.n) == (5 / 9, 9)


async def test_judges_of_one_name_are_told_apart_and_vote_each(tmp_path: Path) -> None:
    cold, warm = ({**judge("content"), "temperature": t} for t in (0, 0.5))
    write_pairs(tmp_path, 1, cold, warm, judge("other"))
    await judged(tmp_path)
    found = figures(tmp_path)
    assert list(found.judges) == [
        "python/judge:content",
        "python/judge:content (2)",
        "python/judge:other",
    ]
    assert dict(found.panel) == {EXPECTED[0]: 1}


async def test_without_a_majority_the_panel_is_uncertain(tmp_path: Path) -> None:
    write_pairs(tmp_path, 3, judge("content"), judge("other"), judge("first"), judge("tie"))
    await judged(tmp_path)
    # A, B, uncertain, tie; then B, A, uncertain, tie; then tie, tie, uncertain, tie.
    assert dict(figures(tmp_path).panel) == {"uncertain": 2, "tie": 1}


async def test_uncertain_counts_as_itself(tmp_path: Path) -> None:
    write_pairs(tmp_path, [pair_row("x", 9, 1)], judge("content"), judge("first", repeats=2))
    await judged(tmp_path)
    found = figures(tmp_path)
    assert dict(found.panel) == {"uncertain": 1}
    assert (found.agreement.value, found.agreement.n) == (0.0, 2)


async def test_a_relay_gives_one_judgment_whose_rounds_are_asked_of_one_judge_each(
    tmp_path: Path,
) -> None:
    judges = [judge("first"), judge("tie", repeats=1), judge("content")]
    write_pairs(tmp_path, 4, *judges, settings={"panel": "relay"})
    summary = await judged(tmp_path)
    assert (summary.counts.planned, summary.counts.verdicts) == (4, 4)
    assert summary.tally.sent == 4 * 4
    for row in stored(tmp_path):
        assert row["judge"] == "python/judge:first > python/judge:tie > python/judge:content"
        by = [(one["round"], one["judge"].rpartition(":")[2]) for one in row["passes"]]
        assert by == [(1, "first"), (1, "first"), (2, "tie"), (2, "tie")]
        assert (row["output"]["winner"], row["output"]["settled"]) == ("tie", "resolved")
    before = stored(tmp_path)
    again = await judged(tmp_path)
    assert (again.tally.sent, again.counts) == (0, summary.counts)
    resettled = await settled_again(tmp_path)
    assert (resettled.tally.sent, resettled.counts) == (0, summary.counts)
    assert stored(tmp_path) == before


async def test_a_relay_wraps_and_asks_anew(tmp_path: Path) -> None:
    judges = [judge("first"), judge("coin")]
    settings = {"panel": "relay", "max_rounds": 5}
    write_pairs(tmp_path, 10, *judges, settings=settings)
    await judged(tmp_path)
    rows = stored(tmp_path)
    assert max(row["output"]["rounds"] for row in rows) >= 3
    for row in rows:
        for one in row["passes"]:
            assert one["judge"].endswith("first" if one["round"] % 2 else "coin")


async def test_a_relay_of_different_styles_asks_each_in_its_own(tmp_path: Path) -> None:
    write_pairs(tmp_path, 2, judge("first"), judge("content"), settings={"panel": "relay"})

    async def answer(question: Question) -> Reply:
        return Reply(text=pair_reply("A+"))

    ready, compact = prepared(tmp_path), Scripted(answer)
    compact.style, compact.slots = "compact", 1  # type: ignore[assignment,misc]
    summary = await judged(with_judges(ready, compact))
    assert summary.counts.verdicts == 2
    assert len(compact.asked) == 4
    assert all("x-versus" in str(question.schema) for question in compact.asked)
    assert [row["output"]["winner"] for row in stored(tmp_path)] == EXPECTED[:2]


def test_judges_of_a_relay_that_would_repeat_differently_are_refused(tmp_path: Path) -> None:
    often = judge("content") | {"repeats": 2}
    write_pairs(tmp_path, 1, judge("first"), often, settings={"panel": "relay"})
    with pytest.raises(UsageError, match="the same repeats"):
        prepared(tmp_path)


async def test_a_relay_continues_where_it_was_interrupted(tmp_path: Path) -> None:
    for stop_after in range(1, 12):
        folder = tmp_path / str(stop_after)
        write_pairs(folder, 3, judge("first"), judge("content"), settings={"panel": "relay"})
        first, again = await interrupted(folder, stop_after)
        assert (first.tally.sent, first.tally.sent + again.tally.sent) == (stop_after, 12)


# Judges that share a family with a candidate


def family_rows() -> list[dict[str, Any]]:
    rows = pairs(4)
    for row, (one, other) in zip(
        rows,
        [("gpt-4o", "mine"), ("claude-3-opus", "gpt-4o"), ("x", "y"), ("z", "claude-3")],
        strict=True,
    ):
        row["candidates"][0]["id"], row["candidates"][1]["id"] = one, other
    return rows


async def test_who_shares_a_family_is_left_out_and_planned_shrinks(tmp_path: Path) -> None:
    async with p.Provider(p.comparing(p.by_number)) as provider:
        judges = [
            at(provider.url, model="openai/gpt-4.1-mini"),
            at(provider.url, model="openai/claude-sonnet-4-5"),
        ]
        write_pairs(tmp_path, family_rows(), *judges, settings={"no_self_judging": True})
        summary = await judged(tmp_path)
        again = await judged(tmp_path)
        sent = len(provider.calls)
    check_sums(summary)
    # gpt judges x/y and z/claude; claude judges gpt-4o/mine and x/y.
    assert (summary.counts.planned, summary.counts.left_out) == (4, 4)
    assert (summary.counts.verdicts, summary.counts.pending, sent) == (4, 0, 8)
    assert (again.tally.sent, again.counts) == (0, summary.counts)
    assert (await settled_again(tmp_path)).counts == summary.counts
    rows = Counter((row["judge"], row["status"]) for row in stored(tmp_path))
    assert rows == {
        ("openai/gpt-4.1-mini", "verdict"): 2,
        ("openai/gpt-4.1-mini", "left_out"): 2,
        ("openai/claude-sonnet-4-5", "verdict"): 2,
        ("openai/claude-sonnet-4-5", "left_out"): 2,
    }
    found = figures(tmp_path)
    assert sum(found.panel.values()) == 3


async def test_otherwise_it_is_flagged(tmp_path: Path) -> None:
    async with p.Provider(p.comparing(p.by_number)) as provider:
        write_pairs(tmp_path, family_rows(), at(provider.url, model="openai/gpt-4.1-mini"))
        summary = await judged(tmp_path)
    assert (summary.counts.planned, summary.counts.left_out) == (4, 0)
    flags = [row["flags"] for row in stored(tmp_path)]
    assert flags == [["shares_family:A"], ["shares_family:B"], [], []]
