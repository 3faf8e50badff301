"""A judge without its key: told before a run begins, and nothing is kept of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.errors import KeyMissing, ProviderRefused
from evenhand.exchange import Question, Reply
from evenhand.runs.judge import judge_run
from evenhand.runs.plan import Plan
from evenhand.runs.stores import open_store
from tests.suites import Scripted, good_reply, prepared, with_judges, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand

GPT = {"model": "openai/gpt-4.1-mini"}
LACK = KeyMissing("no key is set; nothing was sent")


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("write", [write_suite, write_pairs])
def test_it_is_said_once_and_no_run_is_left(
    call: CallCommand, tmp_path: Path, write: Callable[..., Path]
) -> None:
    write(tmp_path, 3, GPT)
    told = call("run")
    assert told.code == 4
    assert "nothing was sent" in told.err and "OPENAI_API_KEY" in told.err
    assert "calls sent" not in told.err + told.out and "1 call" not in told.err + told.out
    assert call("runs", "--json").json == {"runs": []}


def test_a_dry_run_says_it_beside_the_price(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 3, GPT)
    told = call("run", "--dry-run")
    assert told.code == 0 and "3 calls to send" in told.out and "OPENAI_API_KEY" in told.err
    (lack,) = call("run", "--dry-run", "--json").json["lacking"]
    assert "OPENAI_API_KEY" in lack
    assert not (tmp_path / "evenhand.db").exists()


def test_wrong_data_are_said_first(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, [{"id": "u1"}], GPT)
    assert call("run").code == 3


class Locked(Scripted):
    """A judge whose key was taken away."""

    unavailable_reason: ProviderRefused | None = LACK


async def reply(question: Question) -> Reply:
    return good_reply(question)


def judged(ready: Plan, folder: Path) -> int:
    store = open_store("sqlite:evenhand.db", folder)
    try:
        return asyncio.run(judge_run(ready, store)).counts.verdicts
    finally:
        store.close()


def test_what_is_in_the_ledger_needs_no_key(tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    assert judged(with_judges(prepared(tmp_path), Scripted(reply)), tmp_path) == 3
    assert judged(with_judges(prepared(tmp_path), Locked(reply)), tmp_path) == 3
    write_suite(tmp_path, 4)
    locked = Locked(reply)
    with pytest.raises(KeyMissing):
        judged(with_judges(prepared(tmp_path), locked), tmp_path)
    assert locked.asked == []
