"""kill -9 at any moment: nothing recorded is lost, nothing is paid twice beyond what was in flight.

A real process against a provider in a process of its own. Afterwards the same command runs again.
"""

import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.crash.watching import DYING, counts, ended, finished, kept, killed_at_random, until
from tests.provider import child
from tests.suites import JUDGE, at, evenhand, samples, started, write_rows, write_suite

UNITS = 160


@pytest.mark.parametrize("concurrency", [1, 64])
def test_killed_at_random_moments(tmp_path, concurrency, long):
    with child(delay=0.01) as url:
        write_suite(tmp_path, UNITS, at(url), limits={"concurrency": concurrency})
        kills = {"kills": 25 if long else 3, "concurrency": concurrency}
        killed_at_random(tmp_path, url, calls=UNITS, units=UNITS, **kills)


def test_killed_while_the_provider_holds_its_answers(tmp_path):
    """Every call in flight is lost, and only those; their reservations count as spent."""
    price = {"input": 1, "output": 1}
    with child("never") as url:
        limits = {"concurrency": 8, "budget_usd": "1"}
        write_suite(tmp_path, 20, at(url, price=price), limits=limits)
        process = started("run", cwd=tmp_path)
        assert until(lambda: counts(url)["calls"] == 8, process)
        process.kill()
        ended(process)
    shown = json.loads(evenhand("runs", "--json", cwd=tmp_path).stdout)["runs"][0]
    assert (shown["planned"], shown["pending"], shown["cost_usd"]) == (20, 20, 0)
    reserved = _reserved(tmp_path)
    assert reserved > 0
    # A budget that the reservations have used up lets nothing through; a raised one does.
    cap = str(reserved / 10**12)
    stopped = evenhand("run", cwd=tmp_path, env={"EVENHAND_LIMITS__BUDGET_USD": cap})
    assert (stopped.returncode, "budget" in stopped.stderr) == (5, True), stopped.stderr
    assert _reserved(tmp_path) == reserved


def _reserved(folder):
    from evenhand.runs.recorded import find_run
    from evenhand.runs.stores import open_archive

    store = open_archive("sqlite:evenhand.db", folder)
    try:
        return store.spent(find_run(store, "latest").row.id).reserved
    finally:
        store.close()


KILLING = (
    JUDGE
    + DYING
    + """
async def before(messages, schema, params):
    if count() == 5 and not DEAD.exists():
        die()
    return reply(messages)

async def after(messages, schema, params):
    if count() == 5 and not DEAD.exists():
        asyncio.get_running_loop().call_soon(die)
    return reply(messages)

async def at_reask(messages, schema, params):
    count()
    if params["reask"] and not DEAD.exists():
        die()
    return reply(messages) if params["reask"] else "{}"

async def last(messages, schema, params):
    if count() == 12 and not DEAD.exists():
        asyncio.get_running_loop().call_soon(die)
    return reply(messages)
"""
)


@pytest.mark.parametrize("concurrency", [1, 64])
@pytest.mark.parametrize(
    ("point", "calls"), [("before", 12), ("after", 12), ("at_reask", 24), ("last", 12)]
)
def test_killed_at_a_named_point(tmp_path, point, calls, concurrency):
    judge = {"model": f"python/judge:{point}"}
    write_suite(tmp_path, 12, judge, judge=KILLING, limits={"concurrency": concurrency})
    killed = evenhand("run", cwd=tmp_path)
    assert killed.returncode == -9, killed.stderr
    before = kept(tmp_path)
    finished(tmp_path, 12)
    assert before.items() <= kept(tmp_path).items()
    assert len((tmp_path / "log").read_text()) <= calls + concurrency


def _reads(process, file):
    """Whether a process has a file open."""
    handles = Path(f"/proc/{process.pid}/fd").iterdir()
    with suppress(FileNotFoundError):  # one that was closed meanwhile
        return any(handle.resolve() == file.resolve() for handle in handles)
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc tells what a process reads")
def test_killed_while_the_data_is_read(tmp_path):
    """A data file that was not read to its end: nothing of it is noted, nothing was sent."""
    write_suite(tmp_path, samples(200_000))
    process = started("run", cwd=tmp_path)
    assert until(partial(_reads, process, tmp_path / "samples.jsonl"), process)
    process.kill()
    ended(process)
    write_rows(tmp_path, samples(3))
    assert json.loads(evenhand("runs", "--json", cwd=tmp_path).stdout)["runs"] == []
    assert evenhand("run", cwd=tmp_path).returncode == 0


HOLDING = (
    JUDGE
    + """
import asyncio, pathlib

async def holding(messages, schema, params):
    pathlib.Path("began").touch()
    while pathlib.Path("hold").exists():
        await asyncio.sleep(0.01)
    return reply(messages)
"""
)


def test_a_second_process_is_refused_while_the_first_lives(tmp_path):
    write_suite(tmp_path, 3, {"model": "python/judge:holding"}, judge=HOLDING)
    (tmp_path / "hold").touch()
    first = started("run", cwd=tmp_path)
    assert until((tmp_path / "began").exists, first)
    second = evenhand("run", cwd=tmp_path)
    assert (second.returncode, f"pid {first.pid}" in second.stderr) == (6, True), second.stderr
    settle = evenhand("settle", cwd=tmp_path)
    assert settle.returncode == 6
    # Others may look.
    assert evenhand("runs", cwd=tmp_path).returncode == 0
    first.kill()
    ended(first)
    (tmp_path / "hold").unlink()
    finished(tmp_path, 3)


def test_two_runs_share_a_store(tmp_path):
    """Different runs in one file, judged at the same time."""
    for name in ("one", "two"):
        write_suite(tmp_path / name, 60, name=name)
    shared = ("--store", f"sqlite:{tmp_path / 'shared.db'}")
    processes = [started("run", "--json", *shared, cwd=tmp_path / name) for name in ("one", "two")]
    told = [json.loads(ended(process)[1]) for process in processes]
    assert [one["verdicts"] for one in told] == [60, 60]
    assert evenhand("store", "verify", "--store", "sqlite:shared.db", cwd=tmp_path).returncode == 0
