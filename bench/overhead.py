"""What Evenhand costs on top of the bare requests: one run, side by side.

A loopback server in a process of its own answers at once. The same units go through the engine of
`evenhand run` with the durable ledger, and the same request bodies through a bare aiohttp loop. A
sample is one call, a pair is two; figures are by call.

    python bench/overhead.py                     5,000 calls of each protocol, 64 and 256 wide
    python bench/overhead.py --protocols rubric --calls 100000 --widths 64
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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


def sample(i: int) -> dict[str, Any]:
    """An answer of about 700 characters, unlike all others."""
    meta = {"run_id": "bench", "model": "m", "prompt_variant": "v1", "question_id": str(i)}
    return {"meta": meta, "question": f"Question {i}?", "model_output": answer(i)}


def pair(i: int) -> dict[str, Any]:
    candidates = [{"id": name, "text": answer(2 * i + k)} for k, name in enumerate("ab")]
    return {"pair_id": str(i), "topic": f"Question {i}?", "candidates": candidates, "meta": {}}


def answer(i: int) -> str:
    return " ".join(f"statement{(i * 31 + k) % 99991} holds." for k in range(30))


ROWS = {"rubric": (sample, 1), "pairwise": (pair, 2)}
"""How a unit is made, and how many calls it takes."""


def write_suite(folder: Path, protocol: str, calls: int, width: int, url: str) -> None:
    """A suite of different units that take so many calls."""
    make, each = ROWS[protocol]
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    with (folder / "units.jsonl").open("w") as out:
        out.writelines(json.dumps(make(i)) + "\n" for i in range(calls // each))
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


def evenhand_side(folder: Path) -> dict[str, float]:
    # Both sides begin with everything loaded: this is about what a judgment costs.
    import uvloop  # noqa: F401

    from evenhand.engine.loop import run_in_loop
    from evenhand.runs.judge import judge_run
    from evenhand.runs.prepare import prepare
    from evenhand.runs.stores import open_store
    from evenhand.suite import load_suite

    def work() -> None:
        prepared = prepare(load_suite(folder, {}), {}, print)
        store = open_store("sqlite:bench.db", folder)
        summary = run_in_loop(judge_run(prepared, store))
        store.close()
        assert summary.counts.pending == 0 and not summary.counts.failures, summary

    return measured(work)


def bodies(folder: Path) -> list[bytes]:
    """The request bodies that Evenhand sends for the suite, made beforehand."""
    from evenhand.exchange import Question
    from evenhand.kinds.shared.asking import Asking
    from evenhand.runs.prepare import prepare
    from evenhand.suite import load_suite

    async def nobody(question: Any) -> Any:
        raise AssertionError

    prepared = prepare(load_suite(folder, {}), {}, print)
    judge: Any = prepared.seats[0].judge

    def body(question: Question) -> bytes:
        tail = judge._tail(question.schema, judge._dialect, question.round, question.repeat)
        written: bytes = judge._body(question, tail)
        return written

    return [
        body(question)
        for unit in prepared.units(prepared.judging)
        for question in prepared.judging.opening(unit.body, Asking(ask=nobody))
    ]


def bare_side(folder: Path, url: str, width: int) -> dict[str, float]:
    import aiohttp

    ready = [json.loads(body) for body in bodies(folder)]

    async def loop() -> None:
        source = iter(ready)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

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


def in_child(side: str, folder: Path, url: str, width: int) -> dict[str, float]:
    """One side in a fresh process, so that peaks and CPU are its own."""
    options = ["--side", side, "--folder", str(folder), "--url", url, "--width", str(width)]
    done = subprocess.run(
        [sys.executable, __file__, *options],
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    measures: dict[str, float] = json.loads(done.stdout)
    return measures


def compare(protocol: str, calls: int, width: int, url: str) -> None:
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder, protocol, calls, width, url)
        for side in ("bare", "evenhand"):
            found[side] = in_child(side, folder, url, width)
        found["again, from the ledger"] = in_child("evenhand", folder, url, width)
    bare = found["bare"]["cpu"]
    print(f"\n{protocol}, {calls} calls, {width} wide")
    print(f"{'':24}{'calls/s':>10}{'CPU ms':>10}{'ratio':>8}{'peak MB':>9}{'wall s':>8}")
    for side, got in found.items():
        each = 1000 * got["cpu"] / calls
        print(
            f"{side:24}{calls / got['wall']:>10.0f}{each:>10.3f}{got['cpu'] / bare:>8.2f}"
            f"{got['peak_mb']:>9.0f}{got['wall']:>8.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protocols", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--side", choices=["bare", "evenhand"])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--width", type=int)
    given = parser.parse_args()
    if given.side == "bare":
        print(json.dumps(bare_side(given.folder, given.url, given.width)))
    elif given.side == "evenhand":
        print(json.dumps(evenhand_side(given.folder)))
    else:
        from tests.provider import child

        with child("fast") as url:
            for protocol in given.protocols:
                for width in given.widths:
                    compare(protocol, given.calls, width, url)


if __name__ == "__main__":
    main()
