"""How long an import takes, and how much memory: votes and scores, each in a process of its own.

The rows are made up: a judge in two votes each pair in both orders; a judge scores each answer of
four models on five dimensions. Time and memory are those of `evenhand import` from the file to the
durable run, the store's file included. The floor is what SQLite alone takes for the units and
judgments of the same run, written into a store of their own as they are.

    python bench/importing.py                    100,000 rows of each, as CSV
    python bench/importing.py --rows 1000000
    python bench/importing.py --format jsonl     or parquet
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
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


def write(file: Path, rows: Iterator[tuple[object, ...]]) -> None:
    """A header and rows as a file of the format that its name ends with."""
    if file.suffix == ".csv":
        with file.open("w", newline="") as opened:
            csv.writer(opened).writerows(rows)
        return
    names = [str(name) for name in next(rows)]
    objects = ({n: None if c == "" else c for n, c in zip(names, row, strict=True)} for row in rows)
    if file.suffix == ".jsonl":
        with file.open("w") as opened:
            opened.writelines(json.dumps(row) + "\n" for row in objects)
        return
    import pyarrow
    from pyarrow import parquet

    # Some at a time: a process begins with the peak memory of the one that starts it.
    first = pyarrow.Table.from_pylist(list(islice(objects, 10_000)))
    with parquet.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        while some := list(islice(objects, 10_000)):
            writer.write_table(pyarrow.Table.from_pylist(some, schema=first.schema))


def floor(store: Path) -> float:
    """The processor's seconds that writing the units and judgments of a store again takes."""
    from evenhand.store.session import schema

    with closing(sqlite3.connect(store.with_suffix(".floor"), isolation_level=None)) as target:
        target.execute("PRAGMA journal_mode = WAL")
        for statement in schema():
            target.execute(statement)
        target.execute("ATTACH ? AS source", (str(store),))
        seconds = 0.0
        target.execute("BEGIN")
        for name in ("units", "run_units", "judgments"):
            source = target.execute(f"SELECT * FROM source.{name}")
            marks = ",".join("?" * len(source.description))
            while batch := source.fetchmany(512):
                began = time.process_time()
                target.executemany(f"INSERT INTO main.{name} VALUES ({marks})", batch)
                seconds += time.process_time() - began
        began = time.process_time()
        target.execute("COMMIT")
        return seconds + time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--format", choices=("csv", "jsonl", "parquet"), default="csv")
    options = parser.parse_args()
    rows: int = options.rows
    print(f"{'kind':8}{'rows':>10}{'units':>10}{'judgments':>11}{'file MB':>9}", end="")
    print(f"{'store MB':>10}{'seconds':>9}{'CPU s':>7}{'floor s':>9}{'peak MB':>9}", flush=True)
    for kind, made in (("votes", votes), ("scores", scores)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            file = folder / f"{kind}.{options.format}"
            write(file, made(rows))
            said = measured(kind, file, folder)
            print(
                f"{kind:8}{said['rows']:>10}{said['units']:>10}{said['planned']:>11}"
                f"{file.stat().st_size / 1e6:>9.1f}{said['store']:>10.1f}{said['seconds']:>9.1f}"
                f"{said['processor']:>7.1f}{floor(folder / f'{kind}.db'):>9.1f}"
                f"{said['peak']:>9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
