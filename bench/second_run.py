"""What a second run costs whose data have one row more: seconds by the clock and of the processor,
calls, and megabytes on the disk.

    python bench/second_run.py                      100,000 units
    python bench/second_run.py --units 10000

The judge answers at once, so that the first run is as quick as it can be; with a provider it takes
as long as the provider does, and the second run takes what it takes here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from evenhand.ledger.ports import Changes
from evenhand.runs.judge import Options, judge_run
from evenhand.runs.prepare import prepare
from evenhand.runs.stores import open_store
from evenhand.suite import load_suite

SUITE = """
name = "second run"
protocol = "rubric"
data = ["samples.jsonl"]
rubric = "rubric.json"

[[judges]]
model = "python/at_once:judge"

[limits]
concurrency = 64
"""
JUDGE = """
SCORE = '{"score":3,"evidence":["of some length"],"rationale":"It says what was asked for."}'

async def judge(messages, schema, params):
    return '{"scores":{"clear":' + SCORE + '},"failure_tags":[],"notes":""}'
"""
RUBRIC = {
    "dimensions": [
        {
            "id": "clear",
            "name": "Clear",
            "scale": "1, 3, 5",
            "definition": "Is it clear?",
            "bands": [
                {"score": score, "criteria": f"clear to degree {score}"} for score in (1, 3, 5)
            ],
        }
    ]
}
ANSWER = "An answer of some length, number {0}, as long as answers in tables mostly are. " * 8


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--units", type=int, default=100_000)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="evenhand-bench-") as name:
        folder = Path(name)
        (folder / "evenhand.toml").write_text(SUITE)
        (folder / "at_once.py").write_text(JUDGE)
        (folder / "rubric.json").write_text(json.dumps(RUBRIC))
        print(f"{'':24}{'seconds':>10}{'CPU':>10}{'calls':>10}{'MB':>10}")
        for label, units in (("first run", given.units), ("one row more", given.units + 1)):
            write_data(folder / "samples.jsonl", units)
            before = size(folder)
            begun, worked = time.perf_counter(), time.process_time()
            calls = asyncio.run(judged(folder))
            seconds, busy = time.perf_counter() - begun, time.process_time() - worked
            added = (size(folder) - before) / 1e6
            print(f"{label:24}{seconds:10.1f}{busy:10.1f}{calls:10,}{added:10.1f}")


def write_data(path: Path, units: int) -> None:
    with path.open("w") as file:
        for number in range(units):
            meta = {"model": f"m{number % 7}", "n": number}
            row = {"id": f"u{number}", "question": f"Question {number}?", "meta": meta}
            file.write(json.dumps(row | {"model_output": ANSWER.format(number)}) + "\n")


async def judged(folder: Path) -> int:
    """The calls of a run."""
    changed: list[Changes] = []
    store = open_store("sqlite:evenhand.db", folder)
    try:
        plan = prepare(load_suite(folder, {}), {}, lambda message: None)
        options = Options(tell_changes=lambda changes, differences: changed.append(changes))
        summary = await judge_run(plan, store, options)
    finally:
        store.close()
    assert not summary.counts.pending
    return summary.tally.sent


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("evenhand.db*"))


if __name__ == "__main__":
    main()
