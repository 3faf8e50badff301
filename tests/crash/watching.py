"""Looking at a process and a provider from outside: by what they did, never by the clock."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE


def counts(url: str) -> dict[str, Any]:
    """What the provider has seen."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/counts") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def until(seen: Callable[[], bool], process: subprocess.Popen[str]) -> bool:
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


def kept(folder: Path) -> dict[str, str]:
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


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
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
