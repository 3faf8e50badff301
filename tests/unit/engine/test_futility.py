"""A run in which everything fails is stopped before all of it is paid for, and is not silent."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.errors import NoVerdicts
from evenhand.exchange import Question, Reply, Usage
from tests.suites import (
    JUDGE,
    Scripted,
    evenhand_here,
    good_reply,
    judged,
    prepared,
    samples,
    with_judges,
    write_rows,
    write_suite,
)

MORE_JUDGES = (
    JUDGE
    + """
asked = []

async def refuse(messages, schema, params):
    return "I cannot help with that.\\x1b[2J\\n" + 200 * "x" + 9 * "\\nno"

async def refuse_some(messages, schema, params):
    asked.append(1)
    return reply(messages) if len(asked) == 1 else "no"
"""
)
REFUSE = {"model": "python/judge:refuse"}
ONE_BY_ONE = {"concurrency": 1}


def write(folder: Path, units: int, *judges: dict[str, Any], **rest: Any) -> Path:
    return write_suite(folder, units, *judges, judge=MORE_JUDGES, **{"limits": ONE_BY_ONE} | rest)


async def test_it_is_stopped_after_twenty_judgments_without_a_verdict(tmp_path: Path) -> None:
    summary = await judged(write(tmp_path, 300, REFUSE))
    assert isinstance(summary.stopped, NoVerdicts)
    assert summary.counts.failures == {"refused": 20}
    assert (summary.counts.pending, summary.tally.sent) == (280, 60)


async def test_few_judgments_more_are_paid_for_where_many_are_asked_at_once(
    tmp_path: Path,
) -> None:
    summary = await judged(write(tmp_path, 300, REFUSE, limits={"concurrency": 8}))
    assert isinstance(summary.stopped, NoVerdicts)
    assert 20 <= sum(summary.counts.failures.values()) < 28
    assert summary.tally.sent <= 3 * 27


def test_the_command_says_why_with_a_reply_what_to_change_and_how_to_go_on(
    tmp_path: Path,
) -> None:
    said = evenhand_here("run", cwd=write(tmp_path, 30, REFUSE))
    assert said.returncode == 5
    assert 'none of 20 judgments by "python/judge:refuse" has a verdict' in said.stderr
    assert "20 failed as refused" in said.stderr
    assert "| I cannot help with that." in said.stderr
    assert "\x1b" not in said.stderr
    assert max(map(len, said.stderr.splitlines())) < 200
    assert said.stderr.count("| no") == 2
    assert "declines the task" in said.stderr
    assert "--retry-failures" in said.stderr


@pytest.mark.parametrize(
    ("finish", "text", "reason", "advice"),
    [("length", "", "truncated", "raise max_tokens"), ("stop", "", "empty", "raise max_tokens")],
)
async def test_what_to_change_depends_on_the_reason(
    tmp_path: Path, finish: Any, text: str, reason: str, advice: str
) -> None:
    async def answer(question: Question) -> Reply:
        return Reply(text=text, usage=Usage(), finish=finish)

    ready = prepared(write(tmp_path, 30))
    summary = await judged(with_judges(ready, Scripted(answer)))
    assert isinstance(summary.stopped, NoVerdicts)
    assert set(summary.counts.failures) == {reason}
    assert advice in str(summary.stopped)


async def test_the_same_command_goes_on_with_the_next_units(tmp_path: Path) -> None:
    """Only judgments of the command itself count: whoever has mended something gets on."""
    is_mended = False

    async def answer(question: Question) -> Reply:
        return good_reply(question) if is_mended else Reply(text="no", usage=Usage())

    ready = prepared(write(tmp_path, 50))
    await judged(with_judges(ready, Scripted(answer)))
    again = await judged(with_judges(ready, Scripted(answer)))
    assert (again.counts.failures, again.counts.pending) == ({"not_json": 40}, 10)
    is_mended = True
    mended = await judged(with_judges(ready, Scripted(answer)), retry_failures=True)
    assert (mended.stopped, mended.counts.verdicts) == (None, 50)


async def test_one_verdict_keeps_a_run_going(tmp_path: Path) -> None:
    summary = await judged(write(tmp_path, 60, {"model": "python/judge:refuse_some"}))
    assert summary.stopped is None
    assert summary.counts.pending == 0
    assert (summary.counts.verdicts, summary.counts.failures) == (1, {"not_json": 59})


async def test_failures_for_many_reasons_stop_a_run_like_those_for_one(tmp_path: Path) -> None:
    units = 0

    async def answer(question: Question) -> Reply:
        nonlocal units
        units += question.reask == 0
        return Reply(text=["", "no", "{}"][units % 3], usage=Usage())

    summary = await judged(with_judges(prepared(write(tmp_path, 30)), Scripted(answer)))
    assert isinstance(summary.stopped, NoVerdicts)
    assert sorted(summary.counts.failures.values()) == [6, 7, 7]
    assert all(f"failed as {reason}" in summary.stopped.what for reason in summary.counts.failures)


@pytest.mark.parametrize("units", [3, 20])
def test_a_run_that_has_nothing_left_is_not_stopped(tmp_path: Path, units: int) -> None:
    said = evenhand_here("run", cwd=write(tmp_path, units, REFUSE))
    assert said.returncode == 1
    assert f"nothing could be judged: {units} x refused" in said.stderr
    assert "declines the task" in said.stderr


async def test_a_panel_in_which_one_judge_always_fails_is_stopped(tmp_path: Path) -> None:
    good = {"model": "python/judge:good"}
    summary = await judged(write(tmp_path, 100, good, REFUSE))
    assert isinstance(summary.stopped, NoVerdicts)
    assert "python/judge:refuse" in summary.stopped.what
    assert sum(summary.counts.failures.values()) == 20
    assert summary.counts.verdicts > 0


async def test_recorded_replies_are_read_to_the_end(tmp_path: Path) -> None:
    write(tmp_path, 50, {"model": "replay/replies.jsonl"})
    rows = [{"unit": unit["id"], "reply": "no"} for unit in samples(50)]
    write_rows(tmp_path, rows, "replies.jsonl")
    summary = await judged(tmp_path)
    assert summary.stopped is None
    assert summary.counts.failures == {"not_json": 50}


async def test_replies_that_the_ledger_has_are_read_to_the_end(tmp_path: Path) -> None:
    """The same questions under another name of a suite: nothing is sent."""
    write(tmp_path, 60, REFUSE)
    for _ in range(3):
        await judged(tmp_path)
    write(tmp_path, 60, REFUSE, name="again")
    again = await judged(tmp_path)
    assert (again.stopped, again.tally.sent) == (None, 0)
    assert again.counts.failures == {"refused": 60}


@pytest.mark.parametrize("units", [3, 50])
def test_from_python_it_is_a_warning(tmp_path: Path, units: int) -> None:
    write(tmp_path, units, REFUSE)
    with pytest.warns(evenhand.NoVerdictsWarning, match="declines the task") as caught:
        run = evenhand.run(tmp_path)
    assert run.summary["failures"] == {"refused": min(units, 20)}
    assert [entry.filename for entry in caught] == [__file__]


async def test_from_async_python_it_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, 3, REFUSE)
    with pytest.warns(evenhand.NoVerdictsWarning, match="3 x refused") as caught:
        await evenhand.run_async(tmp_path)
    assert [entry.filename for entry in caught] == [__file__]


def test_a_run_with_verdicts_gives_no_warning(tmp_path: Path) -> None:
    write(tmp_path, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evenhand.run(tmp_path).summary["verdicts"] == 3
