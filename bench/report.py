"""A report of many units: time to write it, its size, time and memory to open it in chromium.

    python bench/report.py [--units 10000] [--kind rubric] [--keep FOLDER]

The units are judged by a scripted judge first; that is not measured. Also what `evenhand report`
and `evenhand run --dry-run` take as a user starts them, in CPU seconds: of few units, most of it is
what every start takes.

    python bench/report.py --units 80
    python bench/report.py --units 750 --kind pairwise
    python bench/report.py --open report.html
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from evenhand.results.report import ReportOptions, make_report, write_report
from evenhand.runs.judge import judge_run
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_store
from evenhand.suite import load_suite
from tests.suites import PAIR_JUDGE, pair_row, write_pairs, write_suite

PROSE = (
    "The answer goes on for a while, as answers do, with a reason for each thing it says and an"
    " example where one helps. "
)
JUDGE = r"""
import json, re, zlib
ANSWER = re.compile(r"\[\[answer ([0-9a-f]+)\]\]\n(.*?)\n\[\[/answer \1\]\]", re.DOTALL)

async def judge(messages, schema, params):
    text = ANSWER.search(messages[-1]["content"])[2]
    chance = zlib.crc32(text.encode())
    def given(shift):
        quotes = [text[shift * 9 : shift * 9 + 40], text[-60:-20]]
        why = f"The answer {chance} says so, and that is what the band asks for. " * 3
        return {"evidence": quotes, "rationale": why, "score": (1, 3, 5)[(chance >> shift) % 3]}
    scores = {"correct": given(1), "clear": given(4)}
    tags = ["B"] if chance % 9 == 0 else []
    return json.dumps({"scores": scores, "failure_tags": tags, "notes": ""})
"""


def suite(folder: Path, kind: str, units: int) -> Path:
    if kind == "pairwise":
        rows = [
            pair_row(f"p{i}", 1 + i % 9, 1 + i * 7 % 9, topic=f"Topic {i}? {PROSE}")
            for i in range(units)
        ]
        for i, row in enumerate(rows):
            for one in row["candidates"]:
                one["text"] += f" ({i}) {PROSE * (2 + i % 9)}"
        write_pairs(folder, rows, {"model": "python/judge:content"}, judge=PAIR_JUDGE)
        return folder
    rows = [
        {"meta": {"model": "m", "prompt_variant": f"v{1 + i % 2}", "question_id": f"q{i // 2}"}}
        | {"question": f"Question {i // 2}? {PROSE}"}
        | {"model_output": f"Answer number {i}. {PROSE * (2 + i * 13 % 17)}"}
        for i in range(units)
    ]
    write_suite(folder, rows, {"model": "python/judge:judge"}, judge=JUDGE)
    return folder


async def judged(path: Path, store: Any) -> None:
    await judge_run(prepare(load_suite(path, {}), {}, lambda said: None), store)


def command_seconds(folder: Path, *arguments: str) -> float:
    """The CPU seconds of a command, in the folder of the suite; the second time, when bytecode is
    there."""
    command = [sys.executable, "-m", "evenhand", *arguments]
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    worked = 0.0
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(worked, 2)


def opening(path: Path) -> dict[str, Any]:
    """How long chromium takes to open a file and show its rows, and the memory of its page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        binary = os.environ.get("EVENHAND_CHROMIUM") or shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        page = browser.new_page()
        started = time.perf_counter()
        page.goto(path.resolve().as_uri())
        page.locator(".unit").first.wait_for()
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        page.fill("#search", "number 77")
        page.wait_for_timeout(150)
        page.locator("#count").inner_text()
        search = time.perf_counter() - started
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        metrics = session.send("Performance.getMetrics")["metrics"]
        heap = {one["name"]: one["value"] for one in metrics}["JSHeapUsedSize"]
        browser.close()
    return {
        "open_seconds": round(seconds, 2),
        "search_seconds": round(search, 2),
        "page_heap_mb": round(heap / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--kind", choices=("rubric", "pairwise"), default="rubric")
    parser.add_argument("--keep", type=Path, help="a folder to leave the report in")
    parser.add_argument("--open", type=Path, help="a report that is there: only open it")
    given = parser.parse_args()
    if given.open:
        size = given.open.stat().st_size
        print(json.dumps({"size_mb": round(size / 1e6, 2), **opening(given.open)}, indent=2))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = open_store("sqlite:bench.db", folder)
        asyncio.run(judged(suite(folder, given.kind, given.units), store))
        archive = store.archive
        run = find_run(archive, "latest")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        path = folder / "report.html"
        started = time.perf_counter()
        size = write_report(path, archive, run)
        written = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        make_report(archive, run, ReportOptions(summary=True))
        figures = time.perf_counter() - started
        small = write_report(folder / "summary.html", archive, run, ReportOptions(summary=True))
        store.close()
        report = ("report", "latest", "--store", "sqlite:bench.db", "--force", "-o", "again.html")
        found = {
            "kind": given.kind,
            "units": given.units,
            "write_seconds": round(written, 1),
            "of_it_figures": round(figures, 1),
            "memory_mb": round(peak / 1024),
            "memory_before_mb": round(before / 1024),
            "size_mb": round(size / 1e6, 1),
            "summary_mb": round(small / 1e6, 2),
            "report_cpu_seconds": command_seconds(folder, *report),
            "dry_run_cpu_seconds": command_seconds(folder, "run", "--dry-run"),
            **opening(path),
        }
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, given.keep / f"{given.kind}-{given.units}.html")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
