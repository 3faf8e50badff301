"""A long run against a provider that fails in every way it can, killed again and again: is all
settled in the end, does all add up, and does memory stay where it was?

    python bench/soak.py                            50,000 units, killed every 10 to 20 seconds
    python bench/soak.py --units 5000
    python bench/soak.py --units 300 --answers 80   killed after 80 answers each time

Of the requests 5 % meet a fault: 429, 500, no answer at all, a slow one, a connection that is cut,
a reply that breaks off, one that is no JSON and one of another shape. The provider counts what it
answered, and so what had to be paid. Leaves with 1 where anything does not hold.

On two cores with much else to do, 50,000 units took 962 s, 65 kills and 66 starts: 49,999 verdicts
and one failure (truncated), 52,966 requests of which 2,545 met a fault, 50,925 calls recorded, each
once, 689 paid twice of the 4,160 that may have been in flight, no more than 73 MB in any start.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fast_provider import HEAD, Connection, FastProvider  # noqa: E402
from tests.provider import USAGE, completion  # noqa: E402
from tests.provider.process import served_by  # noqa: E402
from tests.suites import EVENHAND, at, environment, write_suite  # noqa: E402

FAULTS = ("busy", "down", "silent", "slow", "cut", "truncated", "not_json", "other_shape")
SHARE = 0.05
WIDTH = 64
SLOW_SECONDS, ATTEMPT_SECONDS = 1.0, 10.0
KILL_SECONDS = (10.0, 20.0)
PRICE = {"input": 1, "output": 2}
RESTS = 200
"""Starts after which it will never end."""


# The provider


def fault_of(digest: bytes) -> str:
    """The fault that a request meets when it comes first; nothing for most."""
    chance = int.from_bytes(digest[:6], "big") / 2**48
    return FAULTS[int(chance / SHARE * len(FAULTS))] if chance < SHARE else ""


class FaultyProvider(FastProvider):
    """Answers, except where a request meets its fault; `faults` counts those."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: Counter[bytes] = Counter()
        self.faults: Counter[str] = Counter()

    async def start(self, port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: FaultyConnection(self), "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def fault(self, raw: bytes) -> str:
        digest = hashlib.blake2b(raw, digest_size=16).digest()
        self.requests[digest] += 1
        fault = fault_of(digest) if self.requests[digest] == 1 else ""
        if fault:
            self.faults[fault] += 1
        return fault

    def counted(self) -> bytes:
        answered = self.counts.total()
        counts = {"answered": answered, "different": len(self.counts)}
        requests = {"requests": self.requests.total(), "faults": dict(self.faults)}
        return json.dumps(counts | requests).encode()

    def instead(self, raw: bytes, text: str, finish: str = "stop") -> bytes:
        """A reply that is paid for and is none."""
        self.counts[hashlib.blake2b(raw, digest_size=16).digest()] += 1
        return completion(text, finish=finish)


class FaultyConnection(Connection):
    """One client of it."""

    provider: FaultyProvider

    def answer(self, raw: bytes) -> None:
        match self.provider.fault(raw):
            case "busy":
                self.fail(b"429 Too Many Requests")
            case "down":
                self.fail(b"500 Internal Server Error")
            case "silent":
                return
            case "slow":
                asyncio.get_running_loop().call_later(SLOW_SECONDS, self.complete, raw)
            case "cut":
                self.transport.write(HEAD % 1000 + b'{"choices": [')
                self.transport.abort()
            case "truncated":
                self.send(self.provider.instead(raw, '{"scores": {"correct": {"ev', "length"))
            case "not_json":
                self.send(self.provider.instead(raw, "I think that it is good."))
            case "other_shape":
                self.send(self.provider.instead(raw, '{"score": 3}'))
            case _:
                self.complete(raw)

    def complete(self, raw: bytes) -> None:
        # Who is no longer there has not been answered, and pays nothing.
        if not self.transport.is_closing():
            self.send(self.provider.completed(raw))

    def fail(self, status: bytes) -> None:
        body = b'{"error": {"message": "later"}}'
        head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)


async def provide() -> None:
    """Be the provider until stdin is closed."""
    provider = FaultyProvider()
    await provider.start()
    print(provider.url, flush=True)
    await asyncio.to_thread(sys.stdin.read)


def provider_counts(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/counts") as answer:
        counts: dict[str, Any] = json.load(answer)
    return counts


# The runs


@dataclass
class Soak:
    """What was seen from outside."""

    kills: int = 0
    starts: int = 0
    peaks: list[float] = field(default_factory=list)
    """Most memory of each start, in megabytes."""
    seconds: float = 0.0


def samples(number: int) -> list[dict[str, Any]]:
    return [
        {"id": f"u{i}", "meta": {"model": f"m{i % 3}", "n": i}, "question": f"Question {i}?"}
        | {"model_output": f"Answer number {i} is long enough to be quoted, and a little longer."}
        for i in range(number)
    ]


def soak(folder: Path, url: str, units: int, due: Callable[[], Callable[[], bool]]) -> Soak:
    """Run the same command until it ends by itself; `due` gives, at each start, what says that it
    is time to kill."""
    limits = {"concurrency": WIDTH, "attempt_seconds": ATTEMPT_SECONDS, "budget_usd": "1000000"}
    write_suite(folder, samples(units), at(url, price=PRICE), limits=limits)
    seen, began = Soak(), time.monotonic()
    while True:
        seen.starts += 1
        assert seen.starts < RESTS, "it never ends"
        code = _one_start(folder, due(), seen)
        if code == 0:
            break
        assert code in (-9, 5), f"left with {code}: {(folder / 'said').read_text()[-2000:]}"
        seen.kills += code == -9
    seen.seconds = time.monotonic() - began
    return seen


def _one_start(folder: Path, is_due: Callable[[], bool], seen: Soak) -> int:
    with (folder / "said").open("w") as said:
        command = [EVENHAND, "run", "--json"]
        process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=said, stderr=subprocess.STDOUT
        )
    peak, watched = 0.0, psutil.Process(process.pid)
    while process.poll() is None:
        with suppress(psutil.Error):
            peak = max(peak, watched.memory_info().rss / 1024**2)
        if is_due():
            process.kill()
            break
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    code = process.wait()
    seen.peaks.append(peak)
    return code


# What must hold


def verdict_on(folder: Path, url: str, units: int, seen: Soak) -> dict[str, Any]:
    """The figures, and under `broken` whatever does not hold."""
    again = _told(folder, "run", "--json")
    ledger, counts = _ledger(folder), provider_counts(url)
    failures = sum(again["failures"].values())
    tokens: Any = USAGE
    cost = tokens["prompt_tokens"] * PRICE["input"] + tokens["completion_tokens"] * PRICE["output"]
    paid_twice = counts["answered"] - ledger["calls"]
    rules = {
        "planned = verdicts + failures": again["planned"] == again["verdicts"] + failures == units,
        "nothing pending": again["pending"] == 0,
        "a finished run asks nothing": again["calls"] == 0,
        "cost is the sum of the calls": round(again["cost_usd"] * 10**6) == ledger["cost"] // 10**6,
        "each call costs what its tokens do": ledger["cost"] == ledger["calls"] * cost * 10**6,
        "no request is recorded twice": ledger["calls"] == ledger["keys"],
        "nothing answered is lost but what was in flight": 0 <= paid_twice <= seen.kills * WIDTH,
        "the store is sound": _called(folder, "store", "verify").returncode == 0,
        "memory is steady": _is_steady(seen.peaks),
    }
    return {
        "units": units,
        "verdicts": again["verdicts"],
        "failures": again["failures"],
        "requests": counts["requests"],
        "faults": counts["faults"],
        "calls": ledger["calls"],
        "paid twice": paid_twice,
        "kills": seen.kills,
        "starts": seen.starts,
        "seconds": round(seen.seconds),
        "peak MB": [round(peak) for peak in seen.peaks],
        "broken": [rule for rule, holds in rules.items() if not holds],
    }


def _is_steady(peaks: list[float]) -> bool:
    """Whether no later start took half as much again as the middle one."""
    return max(peaks) < 1.5 * sorted(peaks)[len(peaks) // 2] + 50


def _told(folder: Path, *arguments: str) -> dict[str, Any]:
    outcome = _called(folder, *arguments)
    assert outcome.returncode == 0, outcome.stderr
    figures: dict[str, Any] = json.loads(outcome.stdout)
    return figures


def _called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EVENHAND, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def _ledger(folder: Path) -> dict[str, int]:
    store = sqlite3.connect(folder / "evenhand.db")
    try:
        row = store.execute("SELECT COUNT(*), COUNT(DISTINCT key), SUM(cost) FROM calls").fetchone()
    finally:
        store.close()
    return dict(zip(("calls", "keys", "cost"), row, strict=True))


def every_few_seconds(chance: random.Random) -> Callable[[], Callable[[], bool]]:
    def due() -> Callable[[], bool]:
        end = time.monotonic() + chance.uniform(*KILL_SECONDS)
        return lambda: time.monotonic() > end

    return due


def after_answers(url: str, number: int) -> Callable[[], Callable[[], bool]]:
    def due() -> Callable[[], bool]:
        end = provider_counts(url)["answered"] + number
        return lambda: provider_counts(url)["answered"] >= end

    return due


def soaked(folder: Path, units: int, answers: int = 0) -> dict[str, Any]:
    """The figures of a whole soak in a folder."""
    with served_by([sys.executable, str(Path(__file__).resolve()), "--provide"]) as url:
        due = after_answers(url, answers) if answers else every_few_seconds(random.Random(7))
        return verdict_on(folder, url, units, soak(folder, url, units, due))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--units", type=int, default=50_000)
    parser.add_argument("--answers", type=int, default=0, help="kill after so many, not by seconds")
    parser.add_argument("--provide", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.provide:
        asyncio.run(provide())
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = soaked(Path(folder), options.units, options.answers)
    for name, figure in figures.items():
        print(f"{name:>10}  {figure}")
    sys.exit(1 if figures["broken"] else 0)


if __name__ == "__main__":
    main()
