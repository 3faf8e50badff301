"""What several workers on one PostgreSQL server make of a run, beside one process on a file.

A loopback provider in a process of its own answers at once. The same suite is judged by one process
on SQLite, then by 1, 2 and 4 processes on a server started for it, each on a new store. Told
are judgments per second and CPU per judgment: of the workers, and of the server. Everything shares
the cores of this machine, so that the sum stops growing when they are used up.

    python bench/workers.py                      2,000 units
    python bench/workers.py --units 20000 --workers 1 2 4 8
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

EVENHAND = str(Path(sys.executable).with_name("evenhand"))
WIDTH = 64


class Figures(NamedTuple):
    """Of one way to judge the suite."""

    name: str
    seconds: float
    workers: float
    """CPU seconds of the processes that judge."""
    server: float
    """CPU seconds of the database."""


def main() -> None:
    from tests.postgres import own_server
    from tests.provider import child

    options = argparse.ArgumentParser()
    options.add_argument("--units", type=int, default=2000)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    chosen = options.parse_args()
    server = own_server("fsync=on", "autovacuum=on")
    try:
        with child() as url, tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            write_suite(place, chosen.units, url)
            rows = [measured(place, "one process, SQLite", 1, "sqlite:evenhand.db", [])]
            for number in chosen.workers:
                store = server.url(f"workers_{number}")
                name = f"{number} on PostgreSQL"
                rows.append(measured(place, name, number, store, processes(server.data)))
    finally:
        server.end()
    show(rows, chosen.units)


def write_suite(folder: Path, units: int, url: str) -> None:
    """Units that differ from each other, to be judged at the provider."""
    overhead: Any = import_module("overhead")
    lines = (json.dumps(overhead.sample(number)) for number in range(units))
    (folder / "samples.jsonl").write_text("\n".join(lines))
    (folder / "rubric.json").write_text(json.dumps(overhead.RUBRIC))
    (folder / "evenhand.toml").write_text(
        'name = "workers"\nprotocol = "rubric"\ndata = ["samples.jsonl"]\nrubric = "rubric.json"\n'
        f'[[judges]]\nmodel = "openai/test"\nbase_url = "{url}"\n'
        f"[limits]\nconcurrency = {WIDTH}\n"
    )


def processes(data: Path) -> list[str]:
    """The process of a server, as /proc calls it."""
    return [(data / "postmaster.pid").read_text().split()[0]]


def server_cpu(postmaster: list[str]) -> float:
    """CPU seconds of a server and of all its processes, those that have ended too."""
    ticks = 0
    for pid in postmaster:
        group = [pid, *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for number, member in enumerate(group):
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11 : 15 if number == 0 else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(folder: Path, name: str, number: int, store: str, postmaster: list[str]) -> Figures:
    """Judge the suite with so many processes: `run`, and workers beside it."""
    before, server = resource.getrusage(resource.RUSAGE_CHILDREN), server_cpu(postmaster)
    start = time.monotonic()
    commands = [started(folder, "run", "--json", "--store", store)]
    for _ in range(number - 1):
        commands.append(started(folder, "worker", "--store", store, "--idle-exit", "1"))
    output, _ = commands[0].communicate()
    seconds = time.monotonic() - start
    server = server_cpu(postmaster) - server
    for command in commands[1:]:
        command.communicate()
    assert json.loads(output)["pending"] == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figures(name, seconds, cpu, server)


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A command under way."""
    return subprocess.Popen(
        [EVENHAND, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def show(rows: list[Figures], units: int) -> None:
    print(f"{units} judgments, {WIDTH} wide per process, {os.cpu_count()} cores shared by all")
    print(f"{'':24}{'per second':>12}{'ms CPU each':>14}{'of the server':>16}")
    for row in rows:
        speed, each = units / row.seconds, 1000 * row.workers / units
        server = f"{1000 * row.server / units:.2f}" if row.server else "-"
        print(f"{row.name:24}{speed:>12.0f}{each:>14.2f}{server:>16}")


if __name__ == "__main__":
    main()
