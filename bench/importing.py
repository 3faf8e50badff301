"""How long an import takes, and how much memory: votes and scores, each in a process of its own.

The rows are made up: a judge in two votes each pair in both orders; a judge scores each answer of
four models on five dimensions. Time and memory are those of `evenhand import` from the CSV file to
the durable run, the store's file included.

    python bench/importing.py                    100,000 rows of each
    python bench/importing.py --rows 1000000
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WINNERS = ("first", "second", "first", "second", "tie")


def votes(rows: int) -> Iterator[tuple[object, ...]]:
    """Both orders of a pair by two judges: four rows."""
    yield "unit", "judge", "first", "second", "winner", "category", "first_length", "second_length"
    draw = random.Random(7)
    names = [f"model-{i}" for i in range(100)]
    for i in range(rows // 4):
        a, b = draw.sample(names, 2)
        for judge in ("judge-1", "judge-2"):
            for first, second in ((a, b), (b, a)):
                # One in a thousand cannot be read.
                winner = draw.choice(WINNERS) if draw.random() > 0.001 else "?"
                yield f"q{i}", judge, first, second, winner, f"c{i % 8}", 400 + i % 99, 500


def scores(rows: int) -> Iterator[tuple[object, ...]]:
    """Five dimensions of the answers of four models: twenty rows. The model tells units apart,
    which the import has to find out."""
    yield "unit", "judge", "dimension", "score", "model", "category"
    draw = random.Random(7)
    for i in range(rows // 20):
        for model in range(4):
            for dimension in range(5):
                score = draw.randint(1, 5) if draw.random() > 0.001 else ""
                yield f"q{i}", "judge-1", f"d{dimension}", score, f"model-{model}", f"c{i % 8}"


def measured(kind: str, file: Path, folder: Path) -> dict[str, Any]:
    """The import's own words, with its seconds by the clock and of the processor, and its peak
    memory in MB."""
    store = folder / f"{kind}.db"
    command = [sys.executable, "-m", "evenhand", "import", str(file), "--kind", kind, "--json"]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--store", f"sqlite:{store}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    summary: dict[str, Any] = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return summary | {
        "seconds": time.perf_counter() - began,
        "processor": usage.ru_utime + usage.ru_stime,
        "store": store.stat().st_size / 1e6,
        "peak": usage.ru_maxrss / 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows: int = parser.parse_args().rows
    print(f"{'kind':8}{'rows':>10}{'units':>10}{'judgments':>11}{'file MB':>9}", end="")
    print(f"{'store MB':>10}{'seconds':>9}{'CPU s':>7}{'peak MB':>9}", flush=True)
    for kind, made in (("votes", votes), ("scores", scores)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            file = folder / f"{kind}.csv"
            with file.open("w", newline="") as opened:
                csv.writer(opened).writerows(made(rows))
            said = measured(kind, file, folder)
            print(
                f"{kind:8}{said['rows']:>10}{said['units']:>10}{said['planned']:>11}"
                f"{file.stat().st_size / 1e6:>9.1f}{said['store']:>10.1f}{said['seconds']:>9.1f}"
                f"{said['processor']:>7.1f}{said['peak']:>9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
