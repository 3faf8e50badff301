"""What a run of many units costs, what it costs to start it again when it is finished, and what a
run costs whose data have one row more: seconds by the clock and of the processor, the most memory,
calls, and megabytes on the disk. Each is the command as a user starts it.

    python bench/second_run.py                      100,000 units
    python bench/second_run.py --units 10000

The judge answers at once, so that the first run is as quick as it can be; with a provider it takes
as long as the provider does, and the others take what they take here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

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
    units: int = arguments.parse_args().units
    with tempfile.TemporaryDirectory(prefix="evenhand-bench-") as name:
        folder = Path(name)
        (folder / "evenhand.toml").write_text(SUITE)
        (folder / "at_once.py").write_text(JUDGE)
        (folder / "rubric.json").write_text(json.dumps(RUBRIC))
        heads = ("seconds", "CPU", "peak MB", "calls", "MB more")
        print(f"{'':24}{''.join(f'{head:>10}' for head in heads)}")
        for label, number in (
            ("first run", units),
            ("the same again", units),
            ("one row more", units + 1),
        ):
            write_data(folder / "samples.jsonl", number)
            before = size(folder)
            costs = started(folder)
            added = (size(folder) - before) / 1e6
            print(
                f"{label:24}{costs.seconds:10.1f}{costs.cpu:10.1f}{costs.peak_mb:10.0f}"
                f"{costs.calls:10,}{added:10.1f}",
                flush=True,
            )


def write_data(path: Path, units: int) -> None:
    with path.open("w") as file:
        for number in range(units):
            meta = {"model": f"m{number % 7}", "n": number}
            row = {"id": f"u{number}", "question": f"Question {number}?", "meta": meta}
            file.write(json.dumps(row | {"model_output": ANSWER.format(number)}) + "\n")


class Costs(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    peak_mb: float
    calls: int


def started(folder: Path) -> Costs:
    """The costs of `evenhand run` in a folder; raises where anything is left."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", "run", "--json"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    told = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0 and not told["pending"]
    cpu = usage.ru_utime + usage.ru_stime
    return Costs(time.perf_counter() - begun, cpu, usage.ru_maxrss / 1024, told["calls"])


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("evenhand.db*"))


if __name__ == "__main__":
    main()
