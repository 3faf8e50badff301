"""Over random fates of calls and random stops: the sums hold, and running again completes."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.engine.progress import Tally
from evenhand.engine.stop import Stop
from evenhand.errors import (
    CallLost,
    CallRejected,
    Interrupted,
    JudgeCrashed,
    ProviderRefused,
)
from evenhand.exchange import Question, Reply
from evenhand.runs.judge import Summary
from tests.suites import (
    JUDGE,
    Scripted,
    evenhand,
    good_reply,
    judged,
    prepared,
    samples,
    stored,
    with_judges,
    write_suite,
)

UNITS = 12
FATES = {
    "lost": CallLost("transport", "lost"),
    "timeout": CallLost("timeout", "late", billed=True),
    "rejected": CallRejected("context_overflow", "too long"),
    "crash": JudgeCrashed("died"),
    "refused": ProviderRefused("the key is not accepted"),
}
fates = st.lists(
    st.sampled_from(["good", "good", "good", "bad", *FATES, "interrupt"]), min_size=1, max_size=40
)


class Fated:
    """Answers by a script of fates; may throw the switch, as Ctrl-C does."""

    def __init__(self, script: list[str]) -> None:
        self.script, self.stop = iter(script), Stop()
        self.answered: Counter[tuple[str, int]] = Counter()

    async def __call__(self, question: Question) -> Reply:
        fate = next(self.script, "good")
        await asyncio.sleep(0)
        if fate in FATES:
            raise FATES[fate]
        if fate == "interrupt":
            self.stop.request(Interrupted("interrupted"))
        self.answered[question.unit, question.reask] += 1
        return Reply(text="{}") if fate == "bad" else good_reply(question)

    @contextmanager
    def watch(self, tally: Tally, planned: int, stop: Stop) -> Iterator[None]:
        self.stop = stop
        yield


def check(summary: Summary, folder: Path) -> None:
    told = summary.json()
    failed = sum(told["failures"].values())
    assert told["planned"] == told["verdicts"] + failed + told["pending"] == UNITS
    rows = Counter(row["status"] for row in stored(folder))
    assert rows == Counter(verdict=told["verdicts"], failure=failed)
    assert (told["pending"] > 0) <= (summary.stopped is not None)


@given(script=fates, width=st.sampled_from([1, 3, 12]))
def test_the_sums_hold_and_running_again_completes(script: list[str], width: int) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        asyncio.run(_runs(folder, script, width))
    finally:
        shutil.rmtree(folder)


async def _runs(folder: Path, script: list[str], width: int) -> None:
    write_suite(folder, UNITS, limits={"concurrency": width})
    fated = Fated(script)
    judge = Scripted(fated)
    verdicts: dict[str, object] = {}
    for _ in range(len(script) + 2):
        summary = await judged(
            with_judges(prepared(folder), judge), watch=fated.watch, retry_failures=True
        )
        check(summary, folder)
        rows = {row["unit"]: row["output"] for row in stored(folder) if row["output"]}
        assert verdicts.items() <= rows.items(), "a verdict that stood is gone or changed"
        verdicts = rows
        if summary.counts.verdicts == UNITS:
            break
    assert len(verdicts) == UNITS


PEAK = """
import atexit, pathlib, re

@atexit.register
def tell():
    status = pathlib.Path("/proc/self/status").read_text()
    pathlib.Path("peak").write_text(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])
"""


def test_memory_grows_with_the_table_alone(tmp_path: Path, long: bool) -> None:
    """With four times as many units, whose texts alone take 30 MB more, the process grows by less
    than twice these: the table is read into memory, once, and nothing else is held."""
    few, words = (5_000, 400) if long else (1_000, 2_000)
    peaks = []
    for number in (few, 4 * few):
        rows = [row | {"context": f"{row['id']} " * words} for row in samples(number)]
        limits = {"concurrency": 64}
        folder = write_suite(tmp_path / str(number), rows, judge=JUDGE + PEAK, limits=limits)
        done = evenhand("run", "--json", cwd=folder)
        assert (done.returncode, json.loads(done.stdout)["verdicts"]) == (0, number)
        peaks.append(int((folder / "peak").read_text()) / 1024)
    assert peaks[1] - peaks[0] < 64, peaks


@pytest.mark.parametrize("width", [1, 16])
async def test_a_run_answered_by_the_ledger_still_hears_ctrl_c(tmp_path: Path, width: int) -> None:
    write_suite(tmp_path, 50, limits={"concurrency": width})
    await judged(tmp_path)
    # Another judging with the same questions.
    write_suite(tmp_path, 50, settings={"repairs": 1}, limits={"concurrency": width})

    @contextmanager
    def interrupting(tally: Tally, planned: int, stop: Stop) -> Iterator[None]:
        asyncio.get_running_loop().call_soon(stop.request, Interrupted("interrupted"))
        yield

    summary = await judged(tmp_path, watch=interrupting)
    assert summary.counts.pending > 0
