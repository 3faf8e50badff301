"""A run that is started again: the same files are not read again, and any other are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from evenhand.runs.data_files import READING
from evenhand.runs.judge import Summary, judge_run
from evenhand.runs.prepare import prepare
from evenhand.runs.stores import open_store
from evenhand.store.ports import IncomingUnit
from evenhand.suite import load_suite
from tests.suites import (
    TASK,
    answers,
    samples,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)


def _never(judging: Any) -> NoReturn:
    raise AssertionError("the data were read")


async def started(
    folder: Path, remarks: list[str] | None = None, *, reads: bool = True
) -> tuple[str, Summary]:
    """The id of the run that a start is of, and how it ended."""
    store = open_store("sqlite:evenhand.db", folder)
    try:
        tell = (remarks if remarks is not None else []).append
        plan = prepare(load_suite(folder, {}), {}, tell)
        summary = await judge_run(plan if reads else replace(plan, units=_never), store)
        return store.archive.runs(plan.name)[0].id, summary
    finally:
        store.close()


async def test_a_run_on_the_same_files_does_not_read_them_again(tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    first, _ = await started(tmp_path)
    again, summary = await started(tmp_path, reads=False)
    assert again == first and summary.tally.sent == 0
    assert (summary.counts.planned, summary.counts.pending) == (3, 0)


async def test_what_was_said_of_the_data_is_said_again(tmp_path: Path) -> None:
    rows = [{"Question": f"q{i}", "Answer": "" if i else "a"} for i in range(3)]
    write_suite(tmp_path, rows)
    told: list[str] = []
    await started(tmp_path, told)
    repeated: list[str] = []
    await started(tmp_path, repeated, reads=False)
    assert any("empty" in line for line in told) and repeated == told


async def test_another_byte_of_a_file_is_read_whatever_its_size_and_time(tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    first, _ = await started(tmp_path)
    path = tmp_path / "samples.jsonl"
    status, text = path.stat(), path.read_text()
    path.write_text(text.replace("1", "7"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    changed, _ = await started(tmp_path)
    assert changed != first
    path.write_text(text)
    assert (await started(tmp_path))[0] == first


async def test_other_columns_of_the_same_file_are_read(tmp_path: Path) -> None:
    rows = samples(2)
    for row in rows:
        row["other"] = row["model_output"] + " in other words"
    write_suite(tmp_path, rows)
    first, _ = await started(tmp_path)
    write_suite(tmp_path, rows, columns={"model_output": "other"})
    assert (await started(tmp_path))[0] != first


async def test_columns_and_constants_in_another_order_are_read(tmp_path: Path) -> None:
    """Their order is that of `meta`, which is part of a unit."""
    rows = [row | {"x": "1", "y": "2"} for row in samples(2)]
    orders = {"meta.p": "x", "meta.q": "y"}, {"meta.q": "y", "meta.p": "x"}
    runs = []
    for columns in orders:
        write_suite(tmp_path, rows, columns=columns)
        runs.append((await started(tmp_path))[0])
    write_suite(tmp_path, rows)
    suite = (tmp_path / "evenhand.toml").read_text()
    for constants in ('a = "1", b = "2"', 'b = "2", a = "1"'):
        entry = f'[{{ file = "samples.jsonl", {constants} }}]'
        assert '["samples.jsonl"]' in suite
        (tmp_path / "evenhand.toml").write_text(suite.replace('["samples.jsonl"]', entry))
        runs.append((await started(tmp_path))[0])
    assert len(set(runs)) == len(runs)


async def test_a_rubric_file_that_a_row_names_is_read_each_time(tmp_path: Path) -> None:
    write_answers(tmp_path, [row | {"rubric": "own.md"} for row in answers(2)])
    (tmp_path / "own.md").write_text(TASK)
    first, _ = await started(tmp_path)
    (tmp_path / "own.md").write_text(TASK.replace("right", "right and short"))
    assert (await started(tmp_path))[0] != first


async def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    write_suite(tmp_path, 2)
    store = open_store("sqlite:evenhand.db", tmp_path)
    plan = prepare(load_suite(tmp_path, {}), {}, lambda line: None)

    def units(judging: Any) -> Iterator[IncomingUnit]:
        yield from plan.units(judging)
        write_rows(tmp_path, samples(3))

    await judge_run(replace(plan, units=units), store)
    store.close()
    _, summary = await started(tmp_path)
    assert summary.counts.planned == 3
    with pytest.raises(AssertionError, match="were read"):
        write_rows(tmp_path, samples(2))
        await started(tmp_path, reads=False)


UNITS = {5: "b31f235a32643d5b"}
"""By the number of how rows become units, a hash of what becomes of the rows below."""


def test_rows_that_become_other_units_have_a_number_of_their_own(tmp_path: Path) -> None:
    """Where reading changes and the number does not, files that were read before keep their units:
    raise READING, and write the new hash beside it."""
    text = {
        "question": " Что?\n",
        "model_output": "a\u0301 \t《b》",
        "reference": ["x", {"y": 1.50}],
    }
    rows: list[dict[str, Any]] = [
        text | {"meta": {"model": "m/1%", "n": 2, "f": 1e-7, "deep": {"b": 1, "a": None}}},
        text | {"id": 7, "language": "ru", "unknown": "spare", "Prompt_Variant": "v1"},
        {"Question": "Q?", "Answer": "", "model": "m", "tag": True, "note": "n" * 300},
        {"Question": "Q?", "Answer": "b", "model": "m", "tag": False},
    ]
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    long = [{"question": "Q", "model": name, "answer": name * 3} for name in "abc"]
    runs = [row | {"run_id": run} for run in (0, 1) for row in long[:2]]
    runs += [{"question": "Q", "model": "m/1%", "answer": "of m", "run_id": 1}]
    runs += [row | {"question_id": 0, "question": row["answer"]} for row in long[:2]]
    tables = {"a": rows[:2], "b": rows[2:], "c": [{"messages": chat, "model": "m"}]}
    tasks = [{"prompt": "P", "answer": "a", "model": "1", "question_id": n} for n in (1, "2")]
    tasks += [row | {"task_name": "1", "run_id": "r"} for row in tasks]
    tables |= {"d": long, "e": runs, "f": [row | {"rubric": TASK} for row in tasks]}
    both = {"topic": "T", "candidates": [{"id": name, "text": name} for name in "ab"]}
    tables["g"] = [both | {"meta": {"run_id": run}} for run in (0, 1)]
    units: list[tuple[str, str]] = []
    for name, table in tables.items():
        write = {"f": write_answers}.get(name, write_pairs if name in "deg" else write_suite)
        folder = write(tmp_path / name, table)
        plan = prepare(load_suite(folder, {}), {}, lambda line: None)
        units += [(unit.id, unit.body) for unit in plan.units(plan.judging)]
    assert UNITS[READING] == blake2b(repr(units).encode(), digest_size=8).hexdigest(), units
