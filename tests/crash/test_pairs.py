"""Killed or interrupted between the two passes of a pair, or between its rounds."""

from __future__ import annotations

import json
import random
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.crash.watching import DYING, counts, ended, kept, until
from tests.provider import child
from tests.suites import PAIR_JUDGE, at, evenhand, started, write_pairs

PAIRS = 24
CALLS = 6 * PAIRS
"""Every pair takes three rounds of two passes from a judge that always says first."""


def finished(folder: Path, planned: int = PAIRS) -> dict[str, object]:
    """The same command to its end: everything is settled and all is well."""
    done = evenhand("run", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads(done.stdout)
    assert (told["planned"], told["verdicts"], told["pending"]) == (planned, planned, 0)
    assert evenhand("store", "verify", cwd=folder).returncode == 0
    return told


def _reached(url: str, calls: int) -> bool:
    return bool(counts(url)["calls"] >= calls)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_killed_at_random_moments(tmp_path: Path, concurrency: int, long: bool) -> None:
    kills, chance = 15 if long else 3, random.Random(concurrency)
    with child("first", delay=0.01) as url:
        write_pairs(tmp_path, PAIRS, at(url), limits={"concurrency": concurrency})
        allowed, recorded = 0, kept(tmp_path)
        for _ in range(kills):
            moment = counts(url)["calls"] + chance.randrange(CALLS // kills)
            process = started("run", "--json", cwd=tmp_path)
            if until(partial(_reached, url, moment), process):
                process.kill()
                allowed += concurrency
            ended(process)
            now = kept(tmp_path)
            assert recorded.items() <= now.items(), "a recorded reply is lost or altered"
            recorded = now
        told = finished(tmp_path)
        assert told["pairwise"]["outcomes"]["uncertain"] == PAIRS  # type: ignore[index]
        seen = counts(url)
        assert len(seen["by_request"]) == len(kept(tmp_path)) == CALLS
        assert seen["calls"] - CALLS <= allowed
        assert finished(tmp_path)["calls"] == 0
        assert counts(url)["calls"] == seen["calls"]


KILLING = (
    PAIR_JUDGE
    + DYING
    + """
def killing(number):
    async def ask(messages, schema, params):
        # The call before it is in the ledger, this one is lost.
        if count() == number and not DEAD.exists():
            die()
        return alike("A")
    return ask

second_pass, second_round, third_round, next_pair = map(killing, (2, 3, 5, 7))
"""
)


@pytest.mark.parametrize(
    ("point", "before"),
    [("second_pass", 1), ("second_round", 2), ("third_round", 4), ("next_pair", 6)],
)
def test_killed_at_a_named_point_pays_only_for_the_call_in_flight(
    tmp_path: Path, point: str, before: int
) -> None:
    judge = {"model": f"python/judge:{point}"}
    write_pairs(tmp_path, 2, judge, judge=KILLING, limits={"concurrency": 1})
    killed = evenhand("run", cwd=tmp_path)
    assert killed.returncode == -9, killed.stderr
    recorded = kept(tmp_path)
    assert len(recorded) == before
    told = finished(tmp_path, 2)
    assert told["calls"] == 12 - before
    assert recorded.items() <= kept(tmp_path).items()
    assert len((tmp_path / "log").read_text()) == 13


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_drains_and_the_next_run_pays_for_the_rest_only(
    tmp_path: Path, number: int
) -> None:
    with child("first", delay=0.05) as url:
        write_pairs(tmp_path, PAIRS, at(url), limits={"concurrency": 5})
        process = started("run", cwd=tmp_path)
        assert until(lambda: counts(url)["calls"] >= 17, process)
        process.send_signal(number)
        code, _, told = ended(process)
        assert (code, "To continue: evenhand run" in told) == (130, True), told
        sent = counts(url)
        assert sent["calls"] == sent["answered"] == len(kept(tmp_path)) < CALLS
        finished(tmp_path)
        assert counts(url)["calls"] == CALLS
