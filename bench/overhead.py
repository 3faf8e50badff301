"""What Evenhand costs on top of the bare requests: one run, side by side.

A loopback server in a process of its own answers at once. The same units go through the engine of
`evenhand run` with the durable ledger, the same request bodies through a bare aiohttp loop, and
the same bytes, made beforehand, through raw sockets: the floor, which reads and writes no JSON. The
bare loop keeps its connections; once more it opens one for each request, as Evenhand does. A sample
is one call, a pair is two; figures are by call, in CPU of the client, as ratios to the bare loops.
Sides take turns, several rounds of them: a ratio is the median of those of the rounds, with the
least and the most beside it. Where there are several processors the server has one to itself: on
that of a client it would take its caches, from a side with two threads more often than from one
that never waits.

    python bench/overhead.py                     5,000 calls of each protocol, 64 and 256 wide
    python bench/overhead.py --protocols rubric --calls 100000 --widths 64 --rounds 1
    python bench/overhead.py --schemes https     over TLS; needs the command openssl
    python bench/overhead.py --store postgresql://user@host/database
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

RUBRIC = {
    "dimensions": [
        {
            "id": name,
            "name": name.title(),
            "scale": "1-5",
            "definition": f"How {name} the answer is to a reader who knows the subject.",
            "bands": [
                {"score": s, "criteria": f"The answer is {name} to degree {s} of 5."}
                for s in (1, 2, 3, 4, 5)
            ],
        }
        for name in ("correct", "complete", "clear")
    ]
}


def sample(i: int, salt: str = "") -> dict[str, Any]:
    """An answer of about 700 characters, unlike all others."""
    meta = {"run_id": "bench", "model": "m", "prompt_variant": "v1", "question_id": str(i)}
    return {"meta": meta, "question": f"Question {i}{salt}?", "model_output": answer(i)}


def pair(i: int, salt: str = "") -> dict[str, Any]:
    candidates = [{"id": name, "text": answer(2 * i + k)} for k, name in enumerate("ab")]
    topic = f"Question {i}{salt}?"
    return {"pair_id": str(i), "topic": topic, "candidates": candidates, "meta": {}}


def answer(i: int) -> str:
    return " ".join(f"statement{(i * 31 + k) % 99991} holds." for k in range(30))


ROWS = {"rubric": (sample, 1), "pairwise": (pair, 2)}
"""How a unit is made, and how many calls it takes."""


def write_suite(folder: Path, protocol: str, calls: int, width: int, url: str) -> None:
    """A suite of units that take so many calls, different from those of all other suites: a store
    that several rounds share must not know them."""
    make, each = ROWS[protocol]
    salt = f" in {os.urandom(4).hex()}"
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    with (folder / "units.jsonl").open("w") as out:
        out.writelines(json.dumps(make(i, salt)) + "\n" for i in range(calls // each))
    rubric = 'rubric = "rubric.json"\n' if protocol == "rubric" else ""
    (folder / "evenhand.toml").write_text(
        f'name = "bench"\nprotocol = "{protocol}"\ndata = ["units.jsonl"]\n{rubric}'
        f'[[judges]]\nmodel = "openai/bench"\nbase_url = "{url}"\nmax_tokens = 512\n'
        f"price = {{ input = 0.4, output = 1.6 }}\n[limits]\nconcurrency = {width}\n"
    )


def measured(work: Any) -> dict[str, float]:
    """Wall and CPU seconds of this process, and its peak memory in MB so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


LOADED_LATE = (
    *("evenhand.data.read", "evenhand.judges.openai", "aiohttp"),
    *("evenhand.store.sqlite", "evenhand.runs.forecast", "uvloop"),
    *("evenhand.kinds.rubric.kind", "evenhand.kinds.pairwise.kind"),
)
"""What Evenhand loads only when it is needed."""


def evenhand_side(folder: Path, store_url: str = "sqlite:bench.db") -> dict[str, float]:
    # Both sides begin with everything loaded: this is about what a judgment costs.
    for module in LOADED_LATE:
        import_module(module)
    from evenhand.engine.loop import run_in_loop
    from evenhand.runs.judge import judge_run
    from evenhand.runs.prepare import prepare
    from evenhand.runs.stores import open_store
    from evenhand.suite import load_suite

    def work() -> None:
        prepared = prepare(load_suite(folder, {}), {}, print)
        store = open_store(store_url, folder)
        summary = run_in_loop(judge_run(prepared, store))
        store.close()
        assert summary.counts.pending == 0 and not summary.counts.failures, summary

    return measured(work)


def bodies(folder: Path) -> list[bytes]:
    """The request bodies that Evenhand sends for the suite, made beforehand."""
    from evenhand.exchange import Question
    from evenhand.kinds.conversation import JudgingContext
    from evenhand.runs.prepare import prepare
    from evenhand.suite import load_suite

    async def nobody(question: Any) -> Any:
        raise AssertionError

    prepared = prepare(load_suite(folder, {}), {}, print)
    judge: Any = prepared.setups[0].judge

    def body(question: Question) -> bytes:
        request: bytes = judge.batch_request("1", question).body
        return request

    return [
        body(question)
        for unit in prepared.units(prepared.judging)
        for question in prepared.judging.first_questions(
            prepared.judging.load(unit.body), JudgingContext(ask=nobody)
        )
    ]


def bare_side(folder: Path, url: str, width: int, *, closes: bool = False) -> dict[str, float]:
    import aiohttp

    ready = [json.loads(body) for body in bodies(folder)]

    async def loop() -> None:
        source = iter(ready)
        connector = aiohttp.TCPConnector(limit=0, force_close=closes)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def worker() -> None:
                for body in source:
                    data = json.dumps(body).encode()
                    headers = {"Content-Type": "application/json"}
                    async with session.post(
                        f"{url}/chat/completions", data=data, headers=headers
                    ) as response:
                        answered = json.loads(await response.read())
                    json.loads(answered["choices"][0]["message"]["content"])

            await asyncio.gather(*(worker() for _ in range(width)))

    return measured(lambda: asyncio.run(loop()))


class Raw(asyncio.Protocol):
    """One kept connection, one answer at a time."""

    def __init__(self) -> None:
        self.buffer = b""
        self.answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n") + 4
        size = self.buffer[:end].lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if end >= 4 and len(self.buffer) >= end + int(size) and self.answer is not None:
            body, self.buffer = self.buffer[end:], b""
            self.answer.set_result(body)


def floor_side(folder: Path, url: str, width: int) -> dict[str, float]:
    from evenhand.engine.loop import run_in_loop

    target = urlsplit(url)
    head = f"POST {target.path}/chat/completions HTTP/1.1\r\nHost: {target.netloc}\r\n"
    ready = [f"{head}Content-Length: {len(b)}\r\n\r\n".encode() + b for b in bodies(folder)]

    async def loop() -> None:
        source, running = iter(ready), asyncio.get_running_loop()
        context = ssl.create_default_context() if target.scheme == "https" else None

        async def worker() -> None:
            transport, raw = await running.create_connection(
                Raw, str(target.hostname), target.port or 0, ssl=context
            )
            for request in source:
                raw.answer = running.create_future()
                transport.write(request)
                await raw.answer
            transport.close()

        await asyncio.gather(*(worker() for _ in range(width)))

    return measured(lambda: run_in_loop(loop()))


SIDES: dict[str, Callable[[Path, str, int], dict[str, float]]] = {
    "floor": floor_side,
    "bare": bare_side,
    "bare, a connection each": partial(bare_side, closes=True),
}
EVENHAND = "evenhand"


def in_child(side: str, folder: Path, url: str, width: int, store: str) -> dict[str, float]:
    """One side in a fresh process, so that peaks and CPU are its own."""
    options = ["--side", side, "--folder", str(folder), "--url", url, "--width", str(width)]
    done = subprocess.run(
        [sys.executable, __file__, *options, "--store", store],
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    measures: dict[str, float] = json.loads(done.stdout)
    return measures


def one_round(
    protocol: str, calls: int, width: int, url: str, store: str
) -> dict[str, dict[str, float]]:
    """Each side once, and Evenhand a second time with everything in its store."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder, protocol, calls, width, url)
        sides = {side: in_child(side, folder, url, width, store) for side in (*SIDES, EVENHAND)}
        sides["again, from the ledger"] = in_child(EVENHAND, folder, url, width, store)
    return sides


def compare(protocol: str, calls: int, width: int, url: str, store: str, rounds: int) -> None:
    """One table: each side with its ratios to the two bare loops."""
    all_rounds = [one_round(protocol, calls, width, url, store) for _ in range(rounds)]
    kind = store.partition(":")[0]
    print(f"\n{protocol}, {calls} calls, {width} wide, {urlsplit(url).scheme}, {kind}")
    print(
        f"{'':24}{'calls/s':>9}{'CPU ms':>9}{'of bare':>9}{'least to most':>15}{'of closing':>12}"
        f"{'peak MB':>9}"
    )
    for side in all_rounds[0]:
        measures = {
            name: statistics.median(each[side][name] for each in all_rounds)
            for name in ("wall", "cpu", "peak_mb")
        }
        of_bare, of_closing = (
            sorted(each[side]["cpu"] / each[other]["cpu"] for each in all_rounds)
            for other in ("bare", "bare, a connection each")
        )
        print(
            f"{side:24}{calls / measures['wall']:>9.0f}{1000 * measures['cpu'] / calls:>9.3f}"
            f"{statistics.median(of_bare):>9.2f}{f'{of_bare[0]:.2f} to {of_bare[-1]:.2f}':>15}"
            f"{statistics.median(of_closing):>12.2f}{measures['peak_mb']:>9.0f}"
        )


@contextmanager
def set_apart(server: AbstractContextManager[str]) -> Iterator[str]:
    """A server on a processor of its own, and all that is started later on the others; where the
    system does not place processes, or has one processor, it is as it is."""
    places = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    if len(places) < 2:
        with server as url:
            yield url
        return
    own = max(places)
    try:
        os.sched_setaffinity(0, {own})
        with server as url:
            os.sched_setaffinity(0, places - {own})
            yield url
    finally:
        os.sched_setaffinity(0, places)


@contextmanager
def certified(scheme: str) -> Iterator[str]:
    """The file of a certificate for this machine with its key, which this process and its children
    trust; empty for http."""
    if scheme == "http":
        yield ""
        return
    with tempfile.TemporaryDirectory() as name:
        certificate = Path(name) / "certificate.pem"
        subprocess.run(
            [*OPENSSL, "-keyout", str(certificate), "-out", str(certificate)],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        os.environ["SSL_CERT_FILE"] = str(certificate)
        yield str(certificate)
        del os.environ["SSL_CERT_FILE"]


OPENSSL = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    *("-nodes", "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protocols", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--schemes", nargs="+", choices=["http", "https"], default=["http"])
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", default="sqlite:bench.db")
    parser.add_argument("--side", choices=[*SIDES, EVENHAND])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--width", type=int)
    options = parser.parse_args()
    if options.side == EVENHAND:
        print(json.dumps(evenhand_side(options.folder, options.store)))
        return
    if options.side:
        print(json.dumps(SIDES[options.side](options.folder, options.url, options.width)))
        return
    from tests.provider import child

    for scheme in options.schemes:
        with (
            certified(scheme) as certificate,
            set_apart(child("fast", certificate=certificate)) as url,
        ):
            for protocol in options.protocols:
                for width in options.widths:
                    compare(protocol, options.calls, width, url, options.store, options.rounds)


if __name__ == "__main__":
    main()
