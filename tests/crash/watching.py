"""Looking at a process and a provider from outside: by what they did, never by the clock."""

import json
import random
import sqlite3
import subprocess
import time
import urllib.request
from contextlib import suppress
from functools import partial

from tests.suites import evenhand_here, started
from tests.waiting import PATIENCE


def counts(url):
    """What the provider has seen."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/counts") as answer:
        return json.load(answer)


def until(seen, process):
    """Look again and again until it is `seen`; False where the process ended before."""
    end = time.monotonic() + PATIENCE
    while not seen():
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.005)
            return False
        if time.monotonic() > end:
            process.kill()
            raise AssertionError("it never happened")
    return True


def kept(folder):
    """Every reply in the ledger by its key."""
    if not (folder / "evenhand.db").exists():
        return {}
    beside = sqlite3.connect(folder / "evenhand.db")
    try:
        return dict(beside.execute("SELECT key, reply FROM calls"))
    except sqlite3.OperationalError:
        return {}
    finally:
        beside.close()


def has_calls(url, number):
    return bool(counts(url)["calls"] >= number)


def finished(folder, planned):
    """Run the same command to its end: everything is settled and all is well."""
    done = evenhand_here("run", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["planned"], told["verdicts"], told["pending"]) == (planned, planned, 0)
    assert evenhand_here("store", "verify", cwd=folder).returncode == 0
    return told


def killed_at_random(folder, url, *, calls, units, concurrency, kills):
    """Start the command and kill it, some times, and then run it to its end, twice: of so many
    calls none is lost, and no more is paid twice than was under way."""
    chance = random.Random(concurrency)
    allowed, recorded = 0, kept(folder)
    for _ in range(kills):
        moment = counts(url)["calls"] + chance.randrange(2 * calls // kills)
        process = started("run", "--json", cwd=folder)
        if until(partial(has_calls, url, moment), process):
            process.kill()
            allowed += concurrency
        ended(process)
        now = kept(folder)
        assert recorded.items() <= now.items(), "a recorded reply is lost or altered"
        recorded = now
    told = finished(folder, units)
    seen = counts(url)
    assert kept(folder).keys() >= recorded.keys()
    assert len(seen["by_request"]) == len(kept(folder)) == calls
    assert seen["calls"] - calls <= allowed
    # Once more: it is all there.
    assert finished(folder, units)["calls"] == 0
    assert counts(url)["calls"] == seen["calls"]
    return told


def ended(process):
    """The exit code and what was said."""
    said, told = process.communicate(timeout=PATIENCE)
    return process.returncode, said, told


DYING = """
import asyncio, os, pathlib, signal

LOG, DEAD = pathlib.Path("log"), pathlib.Path("dead")

def count():
    with LOG.open("a") as log:
        log.write(".")
    return len(LOG.read_text())

def die():
    DEAD.touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""Added to the code of a judge: counts its calls, and kills the process it runs in, once."""
