"""What Evenhand costs on top of the bare requests: one run, side by side.

A loopback server in a process of its own answers at once. The same samples go through the engine
of `evenhand run` with the durable ledger, and the same request bodies through a bare aiohttp loop.

    python bench/overhead.py                     5,000 samples, 64 and 256 wide
    python bench/overhead.py --samples 100000 --widths 64
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
from itertools import chain
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


def write_suite(folder: Path, samples: int, width: int, url: str) -> None:
    """A suite of so many different samples of about 700 characters."""
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    with (folder / "samples.jsonl").open("w") as out:
        for i in range(samples):
            words = " ".join(f"statement{(i * 31 + k) % 997} holds." for k in range(30))
            meta = {"run_id": "bench", "model": "m", "prompt_variant": "v1", "question_id": str(i)}
            row = {"meta": meta, "question": f"Question {i}?", "model_output": words}
            out.write(json.dumps(row) + "\n")
    (folder / "evenhand.toml").write_text(
        f'name = "bench"\nprotocol = "rubric"\ndata = ["samples.jsonl"]\nrubric = "rubric.json"\n'
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
    import evenhand.data.read
    import evenhand.judges.openai
    import evenhand.ledger.sqlite  # noqa: F401
    from evenhand.app import Prepared, open_store
    from evenhand.runs import judge_run
    from evenhand.suite import load_suite

    def work() -> None:
        prepared = Prepared(load_suite(folder, {}), {}, print)
        store = open_store("sqlite:bench.db", folder)
        summary = asyncio.run(judge_run(prepared, store))
        store.close()
        assert summary.counts.pending == 0 and not summary.counts.failures, summary

    return measured(work)


def bodies(folder: Path) -> list[bytes]:
    """The request bodies that Evenhand sends for the suite, made beforehand."""
    from evenhand.app import Prepared
    from evenhand.runs import first_question
    from evenhand.suite import load_suite

    prepared = Prepared(load_suite(folder, {}), {}, print)
    seat = prepared.seats[0]

    async def made() -> list[bytes]:
        return [
            _body(seat.judge, await first_question(prepared, seat, unit.body))
            for unit in prepared.units()
        ]

    return asyncio.run(made())


def _body(judge: Any, question: Any) -> bytes:
    return judge._body(question, judge._dialect)


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
    given = {"--side": side, "--folder": folder, "--url": url, "--width": str(width)}
    done = subprocess.run(
        [sys.executable, __file__, *chain.from_iterable(given.items())],
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    return json.loads(done.stdout)


def compare(samples: int, width: int, url: str) -> None:
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder, samples, width, url)
        for side in ("bare", "evenhand"):
            found[side] = in_child(side, folder, url, width)
        found["again, from the ledger"] = in_child("evenhand", folder, url, width)
    bare = found["bare"]["cpu"]
    print(f"\n{samples} samples, {width} wide")
    print(f"{'':24}{'judged/s':>10}{'CPU ms':>10}{'ratio':>8}{'peak MB':>9}{'wall s':>8}")
    for side, got in found.items():
        each = 1000 * got["cpu"] / samples
        print(
            f"{side:24}{samples / got['wall']:>10.0f}{each:>10.3f}{got['cpu'] / bare:>8.2f}"
            f"{got['peak_mb']:>9.0f}{got['wall']:>8.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=5000)
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
            for width in given.widths:
                compare(given.samples, width, url)


if __name__ == "__main__":
    main()
