"""How quick `evenhand view` stays: time of every page and memory of the server, on a large run.

    python bench/view.py                            1,000,000 samples
    python bench/view.py --units 20000 --store view.db

The store is made by the engine of `evenhand run` with a judge that answers at once (some minutes
for a million), and kept where `--store` says, for the next time. Then the server is started as a
user starts it, and every page is asked for, one after the other: the first time, and the median of
the times after it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil
from overhead import RUBRIC, answer

JUDGE = '''
import json, random
NAMES = ("correct", "complete", "clear")

async def answer(messages, schema, params):
    """Scores by chance, with the beginning of the answer as evidence; some replies are no JSON."""
    text = messages[-1]["content"]
    chance = random.Random(text)
    if chance.random() < 0.002:
        return "I cannot say."
    start = text.index("statement")
    given = {
        name: {"evidence": [text[start : start + 24]], "score": chance.randint(1, 5),
               "rationale": f"It is {name} as far as it goes."}
        for name in NAMES
    }
    tags = [tag for tag in "ABCDE" if chance.random() < 0.01]
    return json.dumps({"scores": given, "failure_tags": tags, "notes": ""})
'''
NEEDLE = "needle in the last of them"


def write_suite(folder: Path, units: int) -> None:
    """A suite of so many samples of two variants."""
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    (folder / "judge.py").write_text(JUDGE)
    with (folder / "units.jsonl").open("w") as out:
        for i in range(units):
            out.write(json.dumps(_sample(i, units)) + "\n")
    (folder / "evenhand.toml").write_text(
        'name = "bench"\nprotocol = "rubric"\ndata = ["units.jsonl"]\nrubric = "rubric.json"\n'
        '[[judges]]\nmodel = "python/judge:answer"\n[settings]\nrepairs = 0\n'
        "[limits]\nconcurrency = 1024\n"
    )


def _sample(i: int, units: int) -> dict[str, Any]:
    meta = {"run_id": "bench", "model": "m", "prompt_variant": f"v{i % 2}", "question_id": str(i)}
    text = answer(i) + (f" {NEEDLE}" if i == units - 1 else "")
    return {"meta": meta, "question": f"Question {i}?", "model_output": text}


def judge(store: Path, units: int) -> None:
    """Make the store."""
    from evenhand.runs.judge import judge_run
    from evenhand.runs.prepare import prepare
    from evenhand.runs.stores import open_store
    from evenhand.suite import load_suite

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder, units)
        prepared = prepare(load_suite(folder, {}), {}, print)
        opened = open_store(f"sqlite:{store.resolve()}")
        begun = time.perf_counter()
        asyncio.run(judge_run(prepared, opened))
        opened.close()
    print(f"judged {units} units in {time.perf_counter() - begun:.0f} s", file=sys.stderr)


PAGES = {
    "runs": "/",
    "run": "/runs/latest",
    "units, first page": "/runs/latest/units",
    "units, last page": "/runs/latest/units?before=100000000000000000",
    "units, in the middle": "/runs/latest/units?after={middle}",
    "failures": "/runs/latest/units?status=failure",
    "one reason": "/runs/latest/units?reason=not_json",
    "pending (none)": "/runs/latest/units?status=pending",
    "tag": "/runs/latest/units?tag=C",
    "flag (none)": "/runs/latest/units?flag=masked",
    "variant": "/runs/latest/units?field=prompt_variant&value=v1",
    "search, common": "/runs/latest/units?text=as+far+as",
    "search, in no text": "/runs/latest/units?text=nowhere",
    "search, only in keys": "/runs/latest/units?text=rationale",
    "one unit": "/runs/latest/unit?id={unit}",
}


def measure(store: Path, units: int, times: int) -> None:
    """Ask for every page of a server over the store."""
    command = [str(Path(sys.executable).with_name("evenhand")), "view", "--no-open"]
    server = subprocess.Popen(
        [*command, "--store", f"sqlite:{store.resolve()}"], stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    base = server.stderr.readline().split()[-1].partition("#")[0].rstrip("/")
    process = psutil.Process(server.pid)
    places = {"middle": units // 2, "unit": quote(f"bench/m/v0/{units // 2 // 2 * 2}", safe="")}
    try:
        with httpx.Client(base_url=base, timeout=600) as client:
            print(f"{'page':24} {'first':>9} {'median':>9}")
            for name, path in PAGES.items():
                ask(client, name, path.format(**places), times)
            print(f"needle found after {search_on(client)} pages")
            print(f"memory of the server: {process.memory_info().rss / 2**20:.0f} MB")
            begun, worked = time.perf_counter(), cpu_seconds(process)
            while 'data-ready="no"' in client.get("/runs/latest?figures=1").text:
                time.sleep(1)
            seconds, busy = time.perf_counter() - begun, cpu_seconds(process) - worked
            print(f"figures, in the background: {seconds:.0f} s, {busy:.1f} s of CPU")
            print(f"memory after them: {process.memory_info().rss / 2**20:.0f} MB")
    finally:
        server.terminate()
        server.wait()


def ask(client: httpx.Client, name: str, path: str, times: int) -> None:
    """Print how long a page takes the first time, and then."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        client.get(path).raise_for_status()
        taken.append(1000 * (time.perf_counter() - begun))
    rest = statistics.median(taken[1:])
    print(f"{name:24} {taken[0]:6.0f} ms {rest:6.0f} ms")


def cpu_seconds(process: psutil.Process) -> float:
    """What a process has worked so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def search_on(client: httpx.Client) -> int:
    """How many pages a search for something in the last unit of all takes."""
    path, pages = f"/runs/latest/units?text={quote(NEEDLE)}", 0
    while True:
        pages += 1
        page = client.get(path).text
        if '<tr class="row">' in page:
            return pages
        following = re.search(r'href="([^"]*)" rel="next"', page)
        assert following is not None, "the needle is gone"
        path = unescape(following[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--store", type=Path, help="where the store is, or is to be made")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or Path(folder, "view.db")
        if not store.exists():
            judge(store, given.units)
        measure(store, given.units, given.times)


if __name__ == "__main__":
    main()
