"""Batches on the command line: asked by them, listed, cancelled, given up; and files of them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from evenhand.runs.batch_files import begin_run
from evenhand.runs.stores import open_store
from evenhand.store.batches import NewBatch
from tests.batch_provider import BatchProvider, fitting
from tests.suites import at, evenhand_here, prepared, stored, write_pairs, write_suite
from tests.unit.runs.test_batch import ENV, KEY, contradicting


async def command(*words: str, cwd: Path, env: dict[str, str] = ENV) -> CompletedProcess[str]:
    """A command, while this event loop goes on serving."""
    return await asyncio.to_thread(evenhand_here, *words, cwd=cwd, env=env)


async def test_run_batch_says_what_becomes_of_batches(tmp_path: Path) -> None:
    async with BatchProvider() as server:
        write_suite(tmp_path, 60, server.judge("openai"))
        done = await command("run", "--batch", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["verdicts"], told["calls"], server.live) == (60, 60, 0)
    assert "batch batch_0: 60 questions to openai/test-model" in done.stderr
    assert "batch batch_0 has ended (completed): 60 answered" in done.stderr


async def test_a_few_questions_are_asked_live(tmp_path: Path) -> None:
    async with BatchProvider() as server:
        write_suite(tmp_path, 10, server.judge("openai"))
        done = await command("run", "--batch", "--json", cwd=tmp_path)
        assert (server.live, len(server.batches)) == (10, 0)
        again = await command("run", "--batch", "--batch-then-live", "0", cwd=tmp_path)
    assert json.loads(done.stdout)["verdicts"] == 10
    assert "10 questions are left: they are asked live" in done.stderr
    assert again.returncode == 0


async def test_a_dry_run_tells_the_price_of_batches(tmp_path: Path) -> None:
    judge = {"model": "openai/gpt-4.1-mini", "max_tokens": 256}
    write_suite(tmp_path, 10, judge)
    env = {"OPENAI_API_KEY": KEY}
    live = await command("run", "--dry-run", "--json", cwd=tmp_path, env=env)
    batch = await command("run", "--dry-run", "--batch", "--json", cwd=tmp_path, env=env)
    prices = [json.loads(done.stdout)["price_usd"] for done in (live, batch)]
    assert prices[1]["most"] == pytest.approx(prices[0]["most"] / 2, rel=0.01)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--batch-then-live", "3"], "goes with --batch"),
        (["run", "--batch", "--until-decided"], "cannot be judged by the batch"),
        (["run", "--batch"], "no judge of this suite can be asked by the batch"),
        (["batches", "cancel"], "takes the id of one batch"),
        (["export", "latest"], "-o FILE or --batch-file FILE"),
        (["import", "--batch-file", "judge.py"], "goes with --for RUN"),
    ],
)
async def test_what_cannot_be_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    write_suite(tmp_path, 3, compare={"by": "model"}, stop={"until_decided": False})
    done = await command(*words, cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


async def _under_way(folder: Path, server: BatchProvider) -> None:
    """A batch that has not ended, and a command that gave up waiting for it."""
    server.faults.looks, server.faults.state = 10**6, ["", *["broken"] * 20]
    env = ENV | {"EVENHAND_LIMITS__RUN_SECONDS": "0.5"}
    left = await command("run", "--batch", cwd=folder, env=env)
    assert left.returncode == 5, left.stderr
    assert "Batches at the provider: 1" in left.stderr
    assert "evenhand batches" in left.stderr
    server.faults.state = []


async def test_batches_are_listed_everywhere_and_cancelled(tmp_path: Path) -> None:
    async with BatchProvider() as server:
        write_suite(tmp_path, 60, server.judge("anthropic"))
        await _under_way(tmp_path, server)
        listed = await command("batches", cwd=tmp_path)
        told = json.loads((await command("batches", "latest", "--json", cwd=tmp_path)).stdout)
        runs = await command("runs", cwd=tmp_path)
        shown = await command("show", cwd=tmp_path)
        cancelled = await command("batches", "cancel", "batch_0", cwd=tmp_path)
        assert cancelled.returncode == 0, cancelled.stderr
        server.faults.looks = 0
        done = await command("run", "--batch", "--json", cwd=tmp_path)
        none = await command("batches", cwd=tmp_path)
        ended = json.loads((await command("batches", "--all", "--json", cwd=tmp_path)).stdout)
    assert "batch_0" in listed.stdout and "0 of 60" in listed.stdout
    assert [(b["batch"], b["open"], b["stage"]) for b in told["batches"]] == [
        ("batch_0", 60, "waiting")
    ]
    assert "1 batch under way, 60 questions without an answer" in runs.stdout
    assert "1 batch under way" in shown.stdout
    assert json.loads(done.stdout)["verdicts"] == 60
    assert "no batch is under way" in none.stdout
    assert [b["answered"] for b in ended["batches"]] == [0]
    assert server.live == 60


async def test_a_batch_that_is_lost_is_given_up_and_its_money_stays_counted(tmp_path: Path) -> None:
    async with BatchProvider() as server:
        write_suite(tmp_path, 60, server.judge("openai", price={"input": 1, "output": 1}))
        await _under_way(tmp_path, server)
        server.batches.clear()
        lost = await command("run", "--batch", cwd=tmp_path)
        assert lost.returncode == 4
        assert "evenhand batches forget batch_0" in lost.stderr
        forgotten = await command("batches", "forget", "batch_0", cwd=tmp_path)
        assert forgotten.returncode == 0, forgotten.stderr
        server.faults.looks = 0
        done = await command("run", "--batch", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["verdicts"] == 60


async def test_a_provider_that_cannot_cancel_says_so(tmp_path: Path) -> None:
    async with BatchProvider() as server:
        write_suite(tmp_path, 60, server.judge("openrouter"))
        await _under_way(tmp_path, server)
        done = await command("batches", "cancel", "batch_0", cwd=tmp_path)
    assert (done.returncode, "no way to cancel" in done.stderr) == (4, True)


# Files


def answer_file(questions: Path, answers: Path, answer: Any) -> None:
    """What a server writes that reads a file of questions: the last answer first, one twice."""
    lines = []
    for line in map(json.loads, questions.read_text().splitlines()):
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        form = line["body"]["response_format"]["json_schema"]
        text = answer({"messages": line["body"]["messages"], "schema": form["schema"]})
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        body = {"model": "test-model", "choices": [choice], "usage": usage}
        response = {"status_code": 200, "request_id": "r", "body": body}
        lines.append({"id": "vllm-1", "custom_id": line["custom_id"], "response": response})
    lines = [*lines[::-1], lines[0], {"custom_id": "another", "response": None}]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))


async def test_waves_go_through_files_until_none_is_left(tmp_path: Path) -> None:
    async with BatchProvider(contradicting) as server:
        write_pairs(tmp_path / "live", 12, server.judge("openai"))
        assert (await command("run", cwd=tmp_path / "live")).returncode == 0
        write_pairs(tmp_path / "files", 12, server.judge("openai"))
        server.live = 0
        folder, env = tmp_path / "files", {}
        for wave in range(1, 5):
            source = "evenhand.toml" if wave == 1 else "latest"
            written = await command(
                "export", source, "--batch-file", f"{wave}.jsonl", cwd=folder, env=env
            )
            assert written.returncode == 0, written.stderr
            if "no question is open" in written.stderr:
                break
            answer_file(folder / f"{wave}.jsonl", folder / "answers.jsonl", contradicting)
            words = ("import", "--batch-file", "answers.jsonl", "--for", "latest")
            taken = await command(*words, cwd=folder, env=env)
            assert taken.returncode == 0, taken.stderr
            assert "1 line came twice" in taken.stderr
    assert wave > 2
    assert "no question is left" in taken.stdout
    assert server.live == 0
    assert stored(folder) == stored(tmp_path / "live")


async def test_lines_without_a_reply_are_told_and_left(tmp_path: Path) -> None:
    write_suite(tmp_path, 4, at("http://127.0.0.1:9/v1"))
    await command("export", ".", "--batch-file", "1.jsonl", cwd=tmp_path)
    answer_file(tmp_path / "1.jsonl", tmp_path / "answers.jsonl", fitting)
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["response"] = {"status_code": 500, "body": {"error": {"message": "CUDA out of memory"}}}
    (tmp_path / "answers.jsonl").write_text("\n".join([json.dumps(first), *lines[1:2], "{cut"]))
    words = ("import", "--batch-file", "answers.jsonl", "--for", "latest", "--json")
    taken = await command(*words, cwd=tmp_path)
    assert taken.returncode == 0, taken.stderr
    told = json.loads(taken.stdout)
    assert (told["answered"], told["failed"], told["verdicts"], told["left"]) == (1, 1, 1, 3)
    assert "CUDA out of memory" in taken.stderr


@pytest.mark.parametrize("text", ["", "{}\n", '{"custom_id": "mine"}\n'])
async def test_a_file_of_no_answers_is_a_data_error(tmp_path: Path, text: str) -> None:
    write_suite(tmp_path, 4, at("http://127.0.0.1:9/v1"))
    await command("export", ".", "--batch-file", "1.jsonl", cwd=tmp_path)
    (tmp_path / "answers.jsonl").write_text(text)
    words = ("import", "--batch-file", "answers.jsonl", "--for", "latest")
    assert (await command(*words, cwd=tmp_path)).returncode == 3


async def test_files_are_for_judges_that_speak_the_protocol(tmp_path: Path) -> None:
    write_suite(tmp_path, 3, {"model": "anthropic/claude-haiku-4-5"})
    done = await command("export", ".", "--batch-file", "1.jsonl", cwd=tmp_path)
    assert (done.returncode, "openai/MODEL" in done.stderr) == (2, True), done.stderr


async def test_the_report_of_a_run_by_the_batch_is_that_of_the_live_one(tmp_path: Path) -> None:
    """Byte for byte, but for when they were made."""
    async with BatchProvider() as server:
        for name in ("live", "batch"):
            judge = server.judge("openai", price={"input": 1, "output": 1})
            write_suite(tmp_path / name, 12, judge)
        await command("run", cwd=tmp_path / "live")
        await command("run", "--batch", "--batch-then-live", "0", cwd=tmp_path / "batch")
        assert (server.live, len(server.batches)) == (12, 1)
    reports = []
    for name in ("live", "batch"):
        with closing(sqlite3.connect(tmp_path / name / "evenhand.db")) as store, store:
            store.execute("UPDATE runs SET created='2026-01-01', started='2026-01-01'")
        done = await command("report", "latest", "-o", "report.html", cwd=tmp_path / name)
        assert done.returncode == 0, done.stderr
        reports.append((tmp_path / name / "report.html").read_bytes())
    assert reports[0] == reports[1]


async def test_a_key_goes_to_no_address_that_only_a_store_names(tmp_path: Path) -> None:
    judge = {"model": "openai/m", "base_url": "https://elsewhere.example/v1", "max_tokens": 9}
    write_suite(tmp_path, 1, judge)
    plan, store = prepared(tmp_path), open_store("sqlite:evenhand.db", tmp_path)
    run = await begin_run(plan, store)
    async with store.batches() as book:
        batch = NewBatch(name="b", run=run, judge="openai/m", place="p", items=[])
        await book.prepare(batch)
        await book.attach("b", "batch_7", "in_progress")
    store.close()
    done = await command("batches", "cancel", "batch_7", cwd=tmp_path, env={"OPENAI_API_KEY": KEY})
    assert (done.returncode, "elsewhere.example" in done.stderr) == (2, True), done.stderr
    assert KEY not in done.stderr
