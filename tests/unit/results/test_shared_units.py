"""Two runs over the same units: what differs is said to differ, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.data.write import write
from evenhand.results.pages import agreement, differences
from evenhand.runs.imports import Options, import_files
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import open_store
from evenhand.store.ports import Archive
from tests.suites import judged, pairs, samples, write_pairs, write_suite

NUMBER = 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Archive]:
    opened = open_store("sqlite:evenhand.db", tmp_path)
    yield opened.archive
    opened.close()


def run_pairs(folder: Path, name: str, rows: list[dict[str, Any]], seed: int = 0) -> None:
    asyncio.run(judged(write_pairs(folder, rows, name=name, seed=seed)))


def named(store: Archive, *names: str) -> list[Recorded]:
    ids = {row.name: row.id for row in store.runs()}
    return [find_run(store, ids[name]) for name in names]


def compared(store: Archive, first: str, second: str) -> dict[str, Any]:
    return agreement(store, *named(store, first, second))


def test_another_seed_and_another_order_of_rows_change_no_text(
    tmp_path: Path, store: Archive
) -> None:
    rows = pairs(NUMBER)
    run_pairs(tmp_path, "first", rows)
    run_pairs(tmp_path, "second", rows[::-1], seed=3)
    found = compared(store, "first", "second")
    assert (found["shared"], found["text_differs"], found["same"]) == (NUMBER, 0, NUMBER)


def test_fields_about_a_unit_are_no_text(tmp_path: Path, store: Archive) -> None:
    for name in ("first", "second"):
        rows = [row | {"meta": row["meta"] | {"run_id": name}} for row in samples(NUMBER)]
        asyncio.run(judged(write_suite(tmp_path, rows, name=name)))
    assert compared(store, "first", "second")["text_differs"] == 0


@pytest.mark.parametrize("changed", ["topic", "text", "candidate", "reference"])
def test_what_a_person_reads_otherwise_differs(
    tmp_path: Path, store: Archive, changed: str
) -> None:
    rows = [row | {"reference": "So it is."} for row in pairs(NUMBER)]
    run_pairs(tmp_path, "first", rows)
    other = [row | {"candidates": [dict(one) for one in row["candidates"]]} for row in rows]
    if changed == "text":
        other[2]["candidates"][1]["text"] += " Or so."
    elif changed == "candidate":
        other[2]["candidates"][1]["id"] = "c9"
    else:
        other[2][changed] = "Something else."
    run_pairs(tmp_path, "second", other)
    runs = named(store, "first", "second")
    assert agreement(store, *runs)["text_differs"] == 1
    rest, _ = differences(store, *runs, changed_only=False, limit=NUMBER)
    assert [pair.name for pair in rest if not pair.same_text] == ["p2"]


def test_candidates_that_stand_the_other_way_round_are_the_same_and_win_alike(
    tmp_path: Path, store: Archive
) -> None:
    rows = pairs(NUMBER)
    turned = [row | {"candidates": row["candidates"][::-1]} for row in rows]
    run_pairs(tmp_path, "first", rows)
    run_pairs(tmp_path, "second", turned)
    found = compared(store, "first", "second")
    assert (found["text_differs"], found["same"]) == (0, NUMBER)


def test_votes_of_two_judges_that_saw_other_orders_are_about_the_same_units(
    tmp_path: Path, store: Archive
) -> None:
    def votes(judge: str, first: str, second: str) -> Path:
        path = tmp_path / f"{judge}.csv"
        names = {"judge": judge, "first": first, "second": second, "winner": "a"}
        write(path, [{"unit": f"q{number}", **names} for number in range(NUMBER)])
        return path

    for path in (votes("one", "a", "b"), votes("two", "b", "a")):
        opened = open_store("sqlite:evenhand.db", tmp_path)
        asyncio.run(import_files(opened, [path], "votes", Options(name=path.stem)))
        opened.close()
    found = compared(store, "one", "two")
    assert (found["shared"], found["text_differs"], found["same"]) == (NUMBER, 0, NUMBER)
