"""The package from Python: score and run, sync and async."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.errors import UsageError
from tests import provider as p
from tests.suites import RUBRIC, at, pair_row, samples, write_pairs, write_suite

QUESTION, OUTPUT = "How many?", "There are exactly seven of them."


def settings(provider: p.Provider) -> dict[str, Any]:
    given = at(provider.url)
    return {"judge": given.pop("model"), "rubric": RUBRIC, **given}


async def test_score_gives_a_judgment_with_evidence() -> None:
    async with p.Provider() as provider:
        found = await evenhand.score_async(QUESTION, OUTPUT, meta={"n": 1}, **settings(provider))
    assert found.status == "verdict"
    assert found.output is not None
    assert found.output["meta"] == {"n": 1}
    quote = found.output["scores"]["correct"]["evidence"][0]
    assert OUTPUT[found.evidence[0].start : found.evidence[0].end] == quote


async def test_a_failure_is_a_value() -> None:
    async with p.Provider(p.saying("{}")) as provider:
        found = await evenhand.score_async(QUESTION, OUTPUT, **settings(provider))
    assert (found.status, found.reason, found.output) == ("failure", "schema", None)


async def test_a_refusal_is_raised() -> None:
    async with p.Provider(p.failing(401)) as provider:
        with pytest.raises(evenhand.EvenhandError, match="key is not accepted"):
            await evenhand.score_async(QUESTION, OUTPUT, **settings(provider))


async def test_a_store_that_is_a_file_is_asked_first(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'scores.db'}"
    async with p.Provider() as provider:
        for output in (OUTPUT, OUTPUT, "Another."):
            await evenhand.score_async(QUESTION, output, store=store, **settings(provider))
    assert len(provider.calls) == 2


async def test_repeats_give_the_first_judgment() -> None:
    async with p.Provider() as provider:
        found = await evenhand.score_async(QUESTION, OUTPUT, repeats=2, **settings(provider))
    assert found.status == "verdict"


@pytest.mark.parametrize(
    "wrong", [{"language": "fr"}, {"temperature": "hot"}, {"max_tokns": 5}, {"rubric": {}}]
)
async def test_what_is_wrong_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(evenhand.EvenhandError):
        await evenhand.score_async(
            QUESTION, OUTPUT, **{"judge": "openai/m", "rubric": RUBRIC, **wrong}
        )


def test_the_sync_forms_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_suite(tmp_path, 3)
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    run = evenhand.run(tmp_path, limit=2)
    assert run.summary["verdicts"] == 2
    assert [row["unit"] for row in run.judgments()] == ["u0", "u1"]
    monkeypatch.chdir(tmp_path)
    found = evenhand.score(QUESTION, OUTPUT, rubric="rubric.json", judge="python/judge:good")
    assert found.status == "verdict"


async def test_run_async_takes_keys_of_the_suite(tmp_path: Path) -> None:
    write_suite(tmp_path, 2)
    first = await evenhand.run_async(tmp_path / "evenhand.toml")
    other = await evenhand.run_async(tmp_path, seed=3)
    assert first.id != other.id
    assert first.stopped is None
    assert {row["status"] for row in first.judgments()} == {"verdict"}


async def test_inside_a_running_loop_the_sync_forms_wait_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    loop = asyncio.get_running_loop()
    assert evenhand.run(tmp_path).summary["verdicts"] == 2
    judgment = evenhand.score(QUESTION, OUTPUT, rubric="rubric.json", judge="python/judge:good")
    assert judgment.status == "verdict"
    assert asyncio.get_running_loop() is loop
    with pytest.raises(evenhand.EvenhandError, match="no judge is called"):
        evenhand.score(QUESTION, OUTPUT, rubric=RUBRIC, judge="nobody/m")


async def test_outputs_scored_at_the_same_time_share_a_store(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'scores.db'}"
    async with p.Provider() as provider:
        asked = [
            evenhand.score_async(QUESTION, f"{OUTPUT} {n}", store=store, **settings(provider))
            for n in range(3)
        ]
        found = await asyncio.gather(*asked)
    assert [one.status for one in found] == ["verdict"] * 3


async def test_a_reply_that_was_not_recorded_is_named(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text('{"unit": "elsewhere", "reply": "{}"}\n')
    with pytest.raises(evenhand.EvenhandError, match='no reply for unit "r1') as caught:
        await evenhand.score_async(
            QUESTION, OUTPUT, rubric=RUBRIC, judge=f"replay/{path}", meta={"run_id": "r1"}
        )
    assert "replies.jsonl" in str(caught.value)


def test_a_run_says_what_may_be_concluded(tmp_path: Path) -> None:
    rows = samples(6)
    for i, row in enumerate(rows):
        del row["id"]
        row["meta"] = {"prompt_variant": f"v{i % 2 + 1}", "question_id": f"q{i // 2}"}
    run = evenhand.run(write_suite(tmp_path, rows))
    found = run.compare("prompt_variant", "v1")
    assert [(row.dimension, row.n, row.difference) for row in found.rows] == [
        ("correct", 3, 0.0),
        ("clear", 3, 0.0),
        ("overall", 3, 0.0),
    ]
    with pytest.raises(UsageError, match="has no votes"):
        run.leaderboard()


def test_a_run_of_pairs_ranks_its_candidates(tmp_path: Path) -> None:
    run = evenhand.run(write_pairs(tmp_path, [pair_row(f"p{i}", 9, 2) for i in range(8)]))
    rows = run.leaderboard().json()["rows"]
    assert [(row["candidate"], row["win_rate"]) for row in rows] == [("c1", 1.0), ("c2", 0.0)]


async def test_a_rubric_given_as_a_value_to_a_suite_is_that_rubric(tmp_path: Path) -> None:
    write_suite(tmp_path, 1)
    value = json.loads((tmp_path / "rubric.json").read_text())
    run = await evenhand.run_async(tmp_path, rubric=value)
    (judgment,) = run.judgments()
    assert list(judgment["output"]["scores"]) == [part["id"] for part in value["dimensions"]]


def test_the_value_of_an_unknown_key_is_never_told() -> None:
    with pytest.raises(evenhand.EvenhandError) as told:
        evenhand.score("q", "a", rubric="Is it right?", judge="openai/gpt-4.1", api_key="sk-secret")
    assert "sk-secret" not in str(told.value)
    assert "api_key" in str(told.value)
