"""Two processes under one judging on one store: what both judge counts once in each run."""

from __future__ import annotations

from pathlib import Path

from tests.crash.watching import ended
from tests.suites import JUDGE, evenhand_here, samples, started, stored, write_rows, write_suite

MEETING = (
    JUDGE
    + """
import asyncio, os, pathlib

async def meeting(messages, schema, params):
    "Answers when both processes have asked, so that each writes the judgments of the other too."
    pathlib.Path(f"asked-{os.getpid()}").touch()
    while len(list(pathlib.Path().glob("asked-*"))) < 2:
        await asyncio.sleep(0.01)
    return reply(messages)
"""
)


def test_what_two_processes_judge_at_once_counts_once_in_each_run(tmp_path: Path) -> None:
    write_suite(tmp_path, samples(3), {"model": "python/judge:meeting"}, judge=MEETING)
    # The second run has two of the units, and one of its own.
    write_rows(tmp_path, samples(3, 1), "others.jsonl")
    text = (tmp_path / "evenhand.toml").read_text()
    others = text.replace("samples.jsonl", "others.jsonl").replace('"test"', '"others"')
    (tmp_path / "others.toml").write_text(others)
    processes = [started("run", name, cwd=tmp_path) for name in ("evenhand.toml", "others.toml")]
    for process in processes:
        code, _, told = ended(process)
        assert code == 0, told
    for name, units in (("test", ["u0", "u1", "u2"]), ("others", ["u1", "u2", "u3"])):
        assert [row["unit"] for row in stored(tmp_path, name)] == units
        said = evenhand_here("show", name, "--json", cwd=tmp_path)
        assert '"planned": 3, "verdicts": 3, "failures": {}, "pending": 0' in said.stdout
        # Each process paid for what it asked.
        assert '"calls": 3,' in said.stdout
    assert evenhand_here("store", "verify", cwd=tmp_path).returncode == 0
    again = evenhand_here("run", "evenhand.toml", "--json", cwd=tmp_path)
    assert '"calls": 0, "cached": 3' in again.stdout
