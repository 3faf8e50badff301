"""How many values anything holds is bounded before one of them is built: a few bytes of JSON can
ask for a hundred of memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.kinds.reply import Unreadable, read
from evenhand.limits import BODY_ELEMENTS, JSON_ELEMENTS, REPLY_ELEMENTS, TOML_ELEMENTS
from tests.provider import Provider, sending, valid
from tests.suites import at, evenhand_here, judged, samples, stored, write_suite

Door = Callable[[Path], tuple[str, ...]]


def crowd(number: int) -> str:
    return "[" + "[]," * number + "[]]"


def crowded_row(folder: Path) -> tuple[str, ...]:
    write_suite(folder)
    row = json.dumps(samples(1)[0] | {"meta": {"crowd": "CROWD"}})
    (folder / "samples.jsonl").write_text(row.replace('"CROWD"', crowd(JSON_ELEMENTS)))
    return ("run",)


def crowded_array(folder: Path) -> tuple[str, ...]:
    crowded_row(folder)
    (folder / "samples.jsonl").rename(folder / "samples.json")
    suite = (folder / "evenhand.toml").read_text()
    (folder / "evenhand.toml").write_text(suite.replace("samples.jsonl", "samples.json"))
    return ("run",)


def crowded_rubric(folder: Path) -> tuple[str, ...]:
    write_suite(folder)
    (folder / "rubric.json").write_text(crowd(JSON_ELEMENTS))
    return ("run",)


def crowded_rubric_toml(folder: Path) -> tuple[str, ...]:
    write_suite(folder, rubric="rubric.toml")
    (folder / "rubric.toml").write_text(f"dimensions = {crowd(TOML_ELEMENTS)}")
    return ("run",)


def crowded_suite(folder: Path) -> tuple[str, ...]:
    write_suite(folder)
    with (folder / "evenhand.toml").open("a") as file:
        file.write(f"[settings]\nrepairs = {crowd(TOML_ELEMENTS)}\n")
    return ("run",)


def crowded_recording(folder: Path) -> tuple[str, ...]:
    write_suite(folder, 1, {"model": "replay/replies.jsonl"})
    reply = f'{{"unit": "u0", "reply": {{"scores": {crowd(JSON_ELEMENTS)}}}}}'
    (folder / "replies.jsonl").write_text(reply)
    return ("run",)


DOORS: dict[str, Door] = {
    door.__name__.removeprefix("crowded_"): door
    for door in (
        *(crowded_row, crowded_array, crowded_rubric, crowded_rubric_toml, crowded_suite),
        crowded_recording,
    )
}


@pytest.mark.parametrize("door", DOORS)
def test_a_crowd_is_refused_in_words(door: str, tmp_path: Path) -> None:
    outcome = evenhand_here(*DOORS[door](tmp_path), cwd=tmp_path)
    assert outcome.returncode in (2, 3)
    assert "values" in outcome.stderr
    assert "Traceback" not in outcome.stderr


async def test_a_body_that_is_a_crowd_is_nonsense_and_asked_again(tmp_path: Path) -> None:
    body = crowd(BODY_ELEMENTS).encode()
    async with Provider([sending(body), sending(body, status=500), valid()]) as provider:
        write_suite(tmp_path, 1, at(provider.url))
        await judged(tmp_path, {"OPENAI_API_KEY": "k"})
    assert len(provider.calls) == 3
    assert stored(tmp_path)[0]["status"] == "verdict"


REPLIES = {
    "lists": crowd(REPLY_ELEMENTS),
    "inside": f'{{"scores": {crowd(REPLY_ELEMENTS)}}}',
    "objects side by side": '{"a":1}' * (REPLY_ELEMENTS + 1),
    "braces in prose": "so { " * (REPLY_ELEMENTS + 1),
}


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_that_is_a_crowd_costs_no_more_than_its_text(reply: str) -> None:
    text = REPLIES[reply]
    tracemalloc.start()
    try:
        reading = read(text)
        assert isinstance(reading, Unreadable) and reading.code == "not_json"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * len(text)
