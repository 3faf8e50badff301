"""Batches on the command line: asked by them, listed, cancelled, given up; and files of them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest

from evenhand.runs.batch_files import begin_run
from evenhand.runs.stores import open_store
from evenhand.store.batches import NewBatch
from tests.batch_provider import BatchProvider, fitting
from tests.cases import table_rows
from tests.sentences import is_told
from tests.suites import at, evenhand_here, prepared, stored, write_pairs, write_suite
from tests.unit.cli.conftest import values
from tests.unit.runs.test_batch import ENV, KEY, contradicting

IMPORT = "import --batch-file answers.jsonl --for latest"
NO_PROVIDER = at("http://127.0.0.1:9/v1")


async def ended(*words, cwd, env=ENV):
    """A command, while this event loop goes on serving."""
    return await asyncio.to_thread(evenhand_here, *words, cwd=cwd, env=env)


async def done(*words, cwd, env=ENV):
    """A command that must work."""
    command = await ended(*words, cwd=cwd, env=env)
    assert command.returncode == 0, command.stderr
    return command


async def answered(*words, cwd, env=ENV):
    """What such a command says in JSON."""
    return json.loads((await done(*words, "--json", cwd=cwd, env=env)).stdout)


async def refusal(*words, cwd, env=ENV, code=2):
    command = await ended(*words, cwd=cwd, env=env)
    assert command.returncode == code, command.stderr
    return command.stderr


async def test_run_batch_asks_by_batches_and_the_last_few_live(tmp_path):
    async with BatchProvider() as server:
        write_suite(tmp_path, 60, server.judge("openai"))
        command = await done("run --batch --json", cwd=tmp_path)
        found = json.loads(command.stdout)
        assert (found["verdicts"], found["calls"], server.live) == (60, 60, 0)
        assert is_told(command.stderr, "engine.batch_made", batch="batch_0", n="60 requests")
        assert is_told(command.stderr, "engine.batch_ended", batch="batch_0", answered=60)
        write_suite(tmp_path, 70, server.judge("openai"))
        command = await done("run --batch", cwd=tmp_path)
        assert (server.live, len(server.batches)) == (10, 1)
        assert is_told(command.stderr, "engine.rest_live", n="10 requests")
        await done("run --batch --batch-then-live 0", cwd=tmp_path)


async def test_a_dry_run_tells_the_price_of_batches(tmp_path):
    write_suite(tmp_path, 10, {"model": "openai/gpt-4.1-mini", "max_tokens": 256})
    env = {"OPENAI_API_KEY": KEY}
    live, batch = [
        (await answered(f"run --dry-run {flags}", cwd=tmp_path, env=env))["price_usd"]["most"]
        for flags in ("", "--batch")
    ]
    assert batch == pytest.approx(live / 2, rel=0.01)


async def test_what_cannot_be_is_refused(tmp_path):
    write_suite(tmp_path, 3, compare={"by": "model"}, stop={"until_decided": False})
    for line, key in table_rows(__file__, "what_cannot_be_is_refused"):
        assert is_told(await refusal(line, cwd=tmp_path), key), line
    write_suite(tmp_path, 3, {"model": "anthropic/claude-haiku-4-5"})
    assert "openai/MODEL" in await refusal("export . --batch-file 1.jsonl", cwd=tmp_path)


async def leave_under_way(folder, server, *judge, **rest):
    """A batch that has not ended, and a command that gave up waiting for it."""
    write_suite(folder, 60, server.judge(*judge, **rest))
    server.faults.looks, server.faults.state = 10**6, ["", *["broken"] * 20]
    env = ENV | {"EVENHAND_LIMITS__RUN_SECONDS": "0.5"}
    error = await refusal("run --batch", cwd=folder, env=env, code=5)
    assert is_told(error, "cli.open_batches", n=1) and "evenhand batches" in error
    server.faults.state = []


async def test_batches_are_listed_everywhere_and_cancelled(tmp_path):
    async with BatchProvider() as server:
        await leave_under_way(tmp_path, server, "anthropic")
        listed, runs, shown = [
            (await done(command, cwd=tmp_path)).stdout for command in ("batches", "runs", "show")
        ]
        (batch,) = (await answered("batches latest", cwd=tmp_path))["batches"]
        assert [batch[key] for key in ("batch", "open", "stage")] == ["batch_0", 60, "waiting"]
        await done("batches cancel batch_0", cwd=tmp_path)
        server.faults.looks = 0
        assert (await answered("run --batch", cwd=tmp_path))["verdicts"] == 60
        none = (await done("batches", cwd=tmp_path)).stdout
        every = (await answered("batches --all", cwd=tmp_path))["batches"]
    assert "batch_0" in listed and "0 of 60" in listed and is_told(none, "terminal.no_open_batches")
    assert is_told(runs, "cli.batches_of_run", n="1 batch", waiting="60 questions")
    assert is_told(shown, "cli.batches_under_way", n="1 batch")
    assert [batch["answered"] for batch in every] == [0] and server.live == 60


async def test_a_batch_that_is_lost_is_given_up_and_its_money_stays_counted(tmp_path):
    async with BatchProvider() as server:
        await leave_under_way(tmp_path, server, "openai", price={"input": 1, "output": 1})
        server.batches.clear()
        lost = await refusal("run --batch", cwd=tmp_path, code=4)
        assert "evenhand batches forget batch_0" in lost
        await done("batches forget batch_0", cwd=tmp_path)
        server.faults.looks = 0
        assert (await answered("run --batch", cwd=tmp_path))["verdicts"] == 60


async def test_a_provider_that_cannot_cancel_says_so(tmp_path):
    async with BatchProvider() as server:
        await leave_under_way(tmp_path, server, "openrouter")
        error = await refusal("batches cancel batch_0", cwd=tmp_path, code=4)
    assert is_told(error, "judges.openrouter_no_cancel")


# Files


def answer_file(questions, answer):
    """Write what a server does that reads a file of questions, and return its lines: the last
    answer first, one twice."""
    lines = []
    for line in map(json.loads, questions.read_text().splitlines()):
        assert values(line, "method url") == ["POST", "/v1/chat/completions"]
        form = line["body"]["response_format"]["json_schema"]
        text = answer({"messages": line["body"]["messages"], "schema": form["schema"]})
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        body = {"model": "test-model", "choices": [choice], "usage": usage}
        response = {"status_code": 200, "request_id": "r", "body": body}
        lines.append({"id": "vllm-1", "custom_id": line["custom_id"], "response": response})
    lines = [*lines[::-1], lines[0], {"custom_id": "another", "response": None}]
    texts = [json.dumps(line) for line in lines]
    (questions.parent / "answers.jsonl").write_text("\n".join(texts))
    return texts


async def test_waves_go_through_files_until_none_is_left(tmp_path):
    live, folder = tmp_path / "live", tmp_path / "files"
    async with BatchProvider(contradicting) as server:
        for each in (live, folder):
            write_pairs(each, 12, server.judge("openai"))
        await done("run", cwd=live)
        server.live = 0
        for wave in range(1, 5):
            source, file = "evenhand.toml" if wave == 1 else "latest", f"{wave}.jsonl"
            written = await done(f"export {source} --batch-file {file}", cwd=folder, env={})
            if is_told(written.stderr, "cli.no_open_question"):
                break
            answer_file(folder / file, contradicting)
            taken = await done(IMPORT, cwd=folder, env={})
            assert is_told(taken.stderr, "cli.lines_doubled", n="1 line")
    assert wave > 2 and is_told(taken.stdout, "cli.no_question_left")
    assert server.live == 0
    assert stored(folder) == stored(live)


async def test_lines_without_a_reply_are_told_and_left(tmp_path):
    write_suite(tmp_path, 4, NO_PROVIDER)
    await done("export . --batch-file 1.jsonl", cwd=tmp_path)
    lines = answer_file(tmp_path / "1.jsonl", fitting)
    answers = tmp_path / "answers.jsonl"
    for text in ("", "{}\n", '{"custom_id": "mine"}\n'):
        answers.write_text(text)
        await refusal(IMPORT, cwd=tmp_path, code=3)
    first = json.loads(lines[0])
    first["response"] = {"status_code": 500, "body": {"error": {"message": "CUDA out of memory"}}}
    answers.write_text("\n".join([json.dumps(first), lines[1], "{cut"]))
    taken = await done(f"{IMPORT} --json", cwd=tmp_path)
    found = json.loads(taken.stdout)
    assert [found[key] for key in ("answered", "failed", "verdicts", "left")] == [1, 1, 1, 3]
    assert "CUDA out of memory" in taken.stderr


async def test_the_report_of_a_run_by_the_batch_is_that_of_the_live_one(tmp_path):
    """Byte for byte, but for when they were made."""
    reports = []
    async with BatchProvider() as server:
        for flags in ("", "--batch --batch-then-live 0"):
            folder = tmp_path / str(len(flags))
            write_suite(folder, 12, server.judge("openai", price={"input": 1, "output": 1}))
            await done(f"run {flags}", cwd=folder)
            with closing(sqlite3.connect(folder / "evenhand.db")) as store, store:
                store.execute("UPDATE runs SET created='2026-01-01', started='2026-01-01'")
            await done("report latest -o report.html", cwd=folder)
            reports.append((folder / "report.html").read_bytes())
        assert (server.live, len(server.batches)) == (12, 1)
    assert reports[0] == reports[1]


async def test_a_key_goes_to_no_address_that_only_a_store_names(tmp_path):
    write_suite(tmp_path, 1, at("https://elsewhere.example/v1", model="openai/m"))
    plan, store = prepared(tmp_path), open_store("sqlite:evenhand.db", tmp_path)
    run = await begin_run(plan, store)
    async with store.batches() as book:
        await book.prepare(NewBatch(name="b", run=run, judge="openai/m", place="p", items=[]))
        await book.attach("b", "batch_7", "in_progress")
    store.close()
    env = {"OPENAI_API_KEY": KEY}
    error = await refusal("batches cancel batch_7", cwd=tmp_path, env=env)
    assert "elsewhere.example" in error and KEY not in error
