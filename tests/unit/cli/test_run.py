"""The command `run`: JSON, exit codes, what it says, and runs as their data change."""

from __future__ import annotations

import json
import random
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

import evenhand
from evenhand import manifest
from evenhand.cli.watch import Watcher
from evenhand.errors import KeyMissing, ProviderRefused
from evenhand.limits import LOST_IN_A_ROW
from tests.cases import cases
from tests.crash.watching import ended
from tests.provider import Provider, child
from tests.sentences import is_told
from tests.suites import (
    JUDGE,
    RUBRIC,
    Scripted,
    at,
    good_reply,
    json_here,
    judged,
    ok_here,
    pairs,
    prepared,
    samples,
    started,
    stored,
    with_judges,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.unit.cli.conftest import put, values
from tests.unit.web.serving import counts, served

GPT = {"model": "openai/gpt-4.1-mini"}


NOWHERE = "http://127.0.0.1:9/v1"


SUMMARY = {
    **{"run": str, "planned": int, "verdicts": int, "failures": dict, "pending": int},
    **{"left_out": int, "calls": int, "cached": int, "reasks": int, "usage": dict},
    **{"cost_usd": float, "spent_usd": float},
}


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def exported(call, run="latest"):
    """Everything that a run says of its units, by unit."""
    return {row["unit"]: row for row in call.export(f"{run} --full")}


def totals(found):
    failed = sum(found["failures"].values())
    assert found["planned"] == found["verdicts"] + failed + found["pending"]
    return found["planned"], found["verdicts"], found["pending"]


def test_json_alone_stands_on_stdout_of_run_and_settle(call, tmp_path):
    write_suite(tmp_path, 3)
    said = call("run --json")
    assert {name: type(value) for name, value in said.json.items()} == SUMMARY | {"rubric": dict}
    tokens = {"input_tokens", "output_tokens", "cached_tokens", "stored_tokens"}
    assert said.json["usage"].keys() == tokens
    assert (said.code, totals(said.json), said.json["calls"]) == (0, (3, 3, 0), 3)
    again = call("run --json")
    assert (again.json["calls"], again.json["cached"]) == (0, 3)
    write_suite(tmp_path, 2, "bad")
    run = call("run --json").json["run"]
    settled = call.json(f"settle {run[:6]}")
    assert settled.keys() == SUMMARY.keys() | {"settled_from", "rules"}
    assert values(settled, "failures calls") == [{"schema": 2}, 0]


def test_one_of_something_is_called_so(call, tmp_path):
    write_suite(tmp_path, 1, "bad")
    ahead = call("run --dry-run").out
    assert is_told(ahead, "cli.dry_planned", planned="1 judgment")
    assert is_told(ahead, "cli.dry_calls", least="1 call")
    done = call("run")
    counts = {"verdicts": "0 verdicts", "failures": "1 failure", "pending": "0 pending"}
    assert is_told(done.out, "cli.failures", n="1 failure")
    assert is_told(done.err, "runs.judged", n=1, of=1)
    assert is_told(call("show latest").out, "cli.outcome", **counts, planned="1 planned")


def test_a_dry_run_sends_and_writes_nothing_and_knows_the_ledger(call, tmp_path):
    write_suite(tmp_path, 3, at(NOWHERE, price={"input": 1, "output": 2}, repeats=2))
    before = files(tmp_path)
    said = call("run --dry-run --json")
    assert (said.code, said.json["calls"]) == (0, {"least": 6, "most": 18})
    assert 0 < said.json["price_usd"]["least"] < said.json["price_usd"]["most"]
    assert is_told(call("run --dry-run").out, "cli.dry") and files(tmp_path) == before
    write_suite(tmp_path, 3)
    call("run --limit 2")
    before = files(tmp_path)
    found = call.json("run --dry-run")
    assert (found["planned"], found["cached"], found["calls"]["least"]) == (3, 2, 1)
    assert files(tmp_path) == before


def test_too_many_failures_are_exit_1(call, tmp_path):
    for rate, code in ((0.4, 1), (0.5, 0)):
        write_suite(tmp_path, 2, "good", "bad", limits={"max_failure_rate": rate})
        said = call("run --json")
        assert (said.code, said.json["failures"]) == (code, {"schema": 2})
        assert ("max_failure_rate" in said.err) is bool(code)


@pytest.mark.parametrize("units", [1, 10])
def test_few_units_that_all_crash_are_exit_5(call, tmp_path, units):
    write_suite(tmp_path, units, "crash")
    said = call("run --json")
    assert (said.code, said.json["failures"]) == (5, {"judge_crash": units})
    write_suite(tmp_path, units, "crash", "good")
    call.ok("run")


@cases
def test_a_suite_that_is_wrong_is_exit_2(call, tmp_path, judge, given, says):
    write_suite(tmp_path, 1, judge, **given)
    call.refused("run --json", says=[says])


def test_no_suite_is_exit_2(call):
    call.refused("run", says=["evenhand init"])


def test_data_that_is_wrong_is_exit_3_and_leaves_no_run(call, tmp_path):
    bad = {"id": "u9", "question": 5, "model_output": "x"}
    for rows, says in (
        ([*samples(3), bad], 'samples.jsonl:4: "question"'),
        ([*samples(2), samples(1)[0]], '"u0" (samples.jsonl:1, samples.jsonl:3)'),
    ):
        write_suite(tmp_path, rows)
        call.refused("run --json", code=3, says=[says])
    assert call.json("runs") == {"runs": []}


def test_an_id_like_a_path_is_data(call, tmp_path):
    write_suite(tmp_path, [samples(1)[0] | {"id": "../../etc/passwd"}])
    call.ok("run")
    assert call.json("show latest ../../etc/passwd")["unit"]["id"].startswith("..")


@pytest.mark.parametrize("behaviour", ["unauthorized", "quota"])
def test_a_provider_that_refuses_is_exit_4(call, tmp_path, behaviour):
    with child(behaviour) as url:
        write_suite(tmp_path, 2, at(url))
        done = call("run --json")
    assert (done.code, done.json["pending"]) == (4, 2), done.err


@pytest.mark.parametrize("more", ["", "--dry-run"], ids=["run", "dry"])
def test_a_store_that_cannot_be_used_is_exit_6(call, tmp_path, more):
    write_suite(tmp_path, 1)
    put("junk.db", "no database at all, as anyone can see" * 20)
    codes = {"junk.db": 6, "samples.jsonl": 6, ".": 6, "no/folder.db": 6, "new.db": 0}
    codes = {f"sqlite:{name}": code for name, code in codes.items()}
    codes |= {"postgresql://127.0.0.1:9/x": 6, "mysql://x": 2}
    if more:  # what is yet to be made is no fault
        del codes["sqlite:no/folder.db"]
    assert {url: call(f"run {more} --store {url}").code for url in codes} == codes
    assert Path("new.db").exists() is not bool(more)


def test_the_command_line_beats_the_environment_beats_the_file(call, tmp_path, monkeypatch):
    write_suite(tmp_path, 1, "bad", settings={"repairs": 1})
    assert call("run --json").json["calls"] == 2
    monkeypatch.setenv("EVENHAND_SETTINGS__REPAIRS", "0")
    assert call("run --json").json["cached"] == 1
    said = call("run --judge python/judge:good --store sqlite:other.db --json")
    assert said.json["verdicts"] == 1 and Path("other.db").exists()


def test_a_suite_elsewhere_is_judged_beside_its_own_files(call, tmp_path):
    write_suite(tmp_path / "deep", 2)
    call.ok("run deep")
    assert call.json("run deep/evenhand.toml")["cached"] == 2
    assert (tmp_path / "deep" / "evenhand.db").exists()


def test_the_scores_are_those_of_the_units_that_are_counted(call, tmp_path):
    write_suite(tmp_path, 3)
    call("run")
    said = call("run --limit 1").out
    assert is_told(said, "cli.calls", sent=0, cached=1) and re.search(
        r"correct +1 +3 +3 to 3", said
    )


@pytest.mark.parametrize("store", [[], ["--store", "sqlite:my results.db"]], ids=["own", "named"])
@pytest.mark.parametrize("suite", [".", "deep"])
def test_the_next_steps_work_as_they_are_printed(call, tmp_path, suite, store):
    write_suite(tmp_path / suite, 1)
    said = call(f"run {suite}", *store).out
    steps = [line.partition(" evenhand ")[2] for line in said.splitlines()]
    commands = {step.split()[0]: shlex.split(step) for step in steps if step}
    assert list(commands) == ["show", "report", "view", "export"]
    assert ("--store" in commands["show"]) is (bool(store) or suite == "deep")
    assert {call(*commands[name]).code for name in ("show", "export")} == {0}


def test_failures_are_told_with_what_went_wrong(call, tmp_path):
    long = (
        JUDGE.replace("no luck", "no luck" + " at all" * 20 + ", lastly")
        + """
async def several(messages, schema, params):
    raise RuntimeError(f"no luck {hash(str(messages))}")

async def short(messages, schema, params):
    return '{"scores": {"corr'
"""
    )
    write_suite(tmp_path, 3, "crash", judge=long)
    said = call("run").out
    assert is_told(said, "cli.failures", n="3 failures")
    (line,) = (line for line in said.splitlines() if line.endswith(' at all, lastly"'))
    assert line.startswith("    …"), "the error, not its path"
    assert len(line) <= 120 and "evenhand show" in said and "export" not in said
    for name, says in (("several", "no luck "), ("short", "max_tokens")):
        write_suite(tmp_path, 3, name, judge=long)
        said = call("run").out
        assert is_told(said, "cli.failures", n="3 failures") and says in said


def test_notices_that_differ_in_numbers_alone_are_of_one_kind(capsys):
    watcher = Watcher("evenhand run")
    for number in range(100):
        watcher.notice(f"429: used {number} of 30 by req_a{number}, wait {number / 7:.3g} s")
    watcher.notice("503: overloaded")
    ends = [line.partition("(")[2] for line in capsys.readouterr().err.splitlines()]
    assert ends == ["", "10 times); trying again", "100 times); trying again", ""]


def test_reasks_are_counted_alike_by_every_command(call, tmp_path):
    second = """
async def second(messages, schema, params):
    return reply(messages) if any(m["role"] == "assistant" for m in messages) else "{}"
"""
    write_suite(tmp_path, 3, "second", "bad", judge=JUDGE + second)
    first = call.json("run")
    assert values(first, "verdicts failures") == [3, {"schema": 3}]
    assert values(first, "calls reasks") == [6 + 9, 3 + 6]
    again = call.json("run")
    assert values(again, "calls reasks") == [0, 9]
    assert call.json("show")["reasks"] == 9
    assert call.json(f"settle {first['run']}")["reasks"] == 9
    with served(tmp_path / "evenhand.db") as site:
        assert counts(site, "latest")["reasks"] == 9
    # Of the units that a command is about.
    write_pairs(tmp_path, 3, "bad")
    for limit, calls, reasks in (("1", 6, 4), ("3", 12, 12), ("1", 0, 4)):
        found = call(f"run --limit {limit} --json").json
        assert values(found, "calls reasks") == [calls, reasks]
    assert call.json("show")["reasks"] == 12


@pytest.fixture
def no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_key")
@pytest.mark.parametrize("write", [write_suite, write_pairs])
def test_a_missing_key_is_told_once_and_no_run_is_left(call, tmp_path, write):
    write(tmp_path, 3, GPT)
    (lack,) = call.json("run --dry-run")["lacking"]
    assert "OPENAI_API_KEY" in lack and "OPENAI_API_KEY" in call("run --dry-run").err
    assert not Path("evenhand.db").exists()
    refused = call("run")
    assert (refused.code, "OPENAI_API_KEY" in refused.err) == (4, True)
    assert not is_told(refused.err + refused.out, "cli.calls")
    assert call.json("runs") == {"runs": []}
    write(tmp_path, [{"id": "u1"}], GPT)
    assert call("run").code == 3, "wrong data are told first"


class Locked(Scripted):
    """A judge whose key was taken away."""

    unavailable_reason: ProviderRefused | None = KeyMissing("no key is set; nothing was sent")


async def test_what_is_in_the_ledger_needs_no_key(tmp_path):
    async def reply(question):
        return good_reply(question)

    write_suite(tmp_path, 3)
    for judge in (Scripted, Locked):
        ready = with_judges(prepared(tmp_path), judge(reply))
        assert (await judged(ready)).counts.verdicts == 3
    write_suite(tmp_path, 4)
    locked = Locked(reply)
    with pytest.raises(KeyMissing):
        await judged(with_judges(prepared(tmp_path), locked))
    assert locked.asked == []


async def test_other_params_are_another_judge_and_a_stream_is_not(tmp_path):
    async with Provider() as provider:
        for effort, stream in (("low", False), ("high", False), ("low", True)):
            more = {"params": {"reasoning_effort": effort}, "stream": stream}
            write_suite(tmp_path, 1, at(provider.url, **more))
            assert (await judged(tmp_path)).counts.verdicts == 1
    assert [call.body["reasoning_effort"] for call in provider.calls] == ["low", "high"]


def test_a_deleted_row_is_in_no_figure(call, tmp_path):
    rows = [
        row | {"id": f"q{i}-{v}", "meta": {"prompt_variant": v, "question_id": f"q{i}"}}
        for i, row in enumerate(samples(4))
        for v in ("v1", "v2")
    ]
    compare = ("compare", "--by", "prompt_variant", "--pair-by", "question_id", "--json")
    write_suite(tmp_path, rows)
    first = call.json("run")
    assert "changed" not in first
    assert {row["n"] for row in call(*compare).json["rows"]} == {4}
    write_rows(tmp_path, rows[:-1])
    second = call.json("run")
    assert second["run"] != first["run"]
    assert (second["calls"], second["cached"], totals(second)) == (0, 7, (7, 7, 0))
    assert second["changed"] == {"added": 0, "removed": 1, "changed": 0}
    assert "q3-v2" not in call("show").out
    assert exported(call).keys() == {row["id"] for row in rows[:-1]}
    assert exported(call, first["run"]).keys() == {row["id"] for row in rows}
    assert {row["n"] for row in call(*compare).json["rows"]} == {3}


def test_a_changed_row_is_judged_anew_and_the_old_run_keeps_its_judgment(call, tmp_path):
    write_suite(tmp_path, 3)
    call("run")
    before, rows = exported(call), samples(3)
    rows[1]["model_output"] = "Quite another answer than there was."
    write_rows(tmp_path, rows)
    said = call("run --json")
    assert (said.json["calls"], totals(said.json)) == (1, (3, 3, 0))
    assert said.json["changed"] == {"added": 0, "removed": 0, "changed": 1}
    assert is_told(said.err, "cli.data_changed", added=0, removed=0, changed=1)
    after = exported(call)
    assert exported(call, "latest~1") == before and exported(call, "test") == after
    assert {unit for unit in before if before[unit] != after[unit]} == {"u1"}
    assert "Answer number 1" in json.dumps(before["u1"]["output"])
    assert "Quite another" in json.dumps(after["u1"]["output"])
    call.ok("store verify")
    rows[0]["meta"]["model"] = "renamed"  # which no judge sees
    write_rows(tmp_path, rows)
    found = call.json("run")
    assert (found["calls"], found["verdicts"], found["changed"]["changed"]) == (0, 3, 1)


@pytest.mark.parametrize("write", [write_suite, write_pairs, write_answers])
def test_other_file_order_is_the_same_run(call, tmp_path, write):
    write(tmp_path, 9)
    first = call.json("run")
    (file,) = tmp_path.glob("*s.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    file.write_text("".join(lines))
    again = call.json("run")
    assert (again["run"], again["calls"], "changed" in again) == (first["run"], 0, False)
    assert len(call.json("runs")["runs"]) == 1


def test_another_data_file_is_another_run_and_the_same_rows_elsewhere_are_not(call, tmp_path):
    write_suite(tmp_path, 3)
    runs = [call.json("run")]
    for name in ("other", "moved"):
        write_suite(tmp_path, 3, data=[f"{name}.jsonl"])
        write_rows(tmp_path, samples(3, start=10), f"{name}.jsonl")
        runs.append(call.json("run"))
    first, other, moved = runs
    assert first["run"] != other["run"] == moved["run"]
    assert other["changed"] == {"added": 3, "removed": 3, "changed": 0} and "changed" not in moved
    assert exported(call).keys() == {"u10", "u11", "u12"}


def test_candidates_exchanged_in_the_file_cost_nothing(call, tmp_path):
    write_pairs(tmp_path, 6, "late")
    call("run")
    before, rows = exported(call), pairs(6)
    for row in rows:
        row["candidates"].reverse()
    write_rows(tmp_path, rows, "pairs.jsonl")
    found = call.json("run")
    assert values(found, "calls changed") == [0, {"added": 0, "removed": 0, "changed": 6}]
    turned = {"A": "B", "B": "A", "tie": "tie", "12": "21", "21": "12"}
    for unit, new in exported(call).items():
        old = before[unit]
        assert new["output"]["winner"] == turned[old["output"]["winner"]]
        assert new["calls"] == old["calls"]
        assert [p["order"] for p in new["passes"]] == [turned[p["order"]] for p in old["passes"]]


def test_runs_are_named_in_several_ways(call, tmp_path):
    names = {}
    for number, name in ((2, "alpha"), (3, "alpha"), (2, "beta"), (4, "alpha")):
        write_suite(tmp_path, number, name=name)
        names[f"{name}{number}"] = call.run()
    beta = names["beta2"]
    for words, expected in {
        ("latest", "alpha", "latest~0"): "alpha4",
        ("latest~1", "alpha~1"): "alpha3",
        ("latest~2", f"{names['alpha3']}~1"): "alpha2",
        ("beta", beta[:6]): "beta2",
    }.items():
        for word in words:
            assert call.json(f"show {word}")["run"] == names[expected], word
    # Started again, a run is the latest.
    write_suite(tmp_path, 2, name="beta")
    call("run")
    assert call.json("show latest")["run"] == beta
    for wrong in ("gamma", "latest~3", "alpha~7"):
        refused = call(f"show {wrong}")
        assert refused.code == 2 and (names["alpha4"] in refused.err or beta in refused.err)


class Counter:
    """Steps of the database, records that are parsed, and bytes on the disk: not time."""

    def __init__(self, path, patch):
        self.path, self.steps, self.parsed = path, 0, 0
        connect, read_judging = sqlite3.connect, manifest.read_judging

        def step():
            self.steps += 1

        def watched(*values, **named):
            connection = connect(*values, **named)
            connection.set_progress_handler(step, 50)
            return connection

        def counted(text):
            self.parsed += 1
            return read_judging(text)

        patch.setattr("evenhand.store.sqlite.sqlite3.connect", watched)
        patch.setattr("evenhand.store.archive.read_judging", counted)

    def size(self):
        with sqlite3.connect(self.path) as beside:
            beside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        beside.close()
        return self.path.stat().st_size


def test_a_question_on_a_store_reads_and_adds_no_more_however_many_went_before(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text(JUDGE)
    counter = Counter(tmp_path / "scores.db", monkeypatch)

    def ask(numbers):
        before = counter.size()
        counter.steps = counter.parsed = 0
        for number in numbers:
            evenhand.score(
                f"Question {number}?",
                f"Answer {number}.",
                rubric=RUBRIC,
                judge="python/judge:good",
                store=f"sqlite:{counter.path}",
                meta={"n": number},
            )
        return counter.steps, counter.parsed, counter.size() - before

    ask(range(1))
    early = ask(range(1, 21))
    ask(range(100, 220))
    steps, parsed, size = ask(range(300, 320))
    assert steps <= 1.5 * early[0] and parsed <= early[1] and size <= 20 * 8_000


MEETING = """
import asyncio, os, pathlib

async def meeting(messages, schema, params):
    "Answers when both processes have asked, so that each writes the judgments of the other too."
    pathlib.Path(f"asked-{os.getpid()}").touch()
    while len(list(pathlib.Path().glob("asked-*"))) < 2:
        await asyncio.sleep(0.01)
    return reply(messages)
"""


def test_what_two_processes_judge_at_once_counts_once_in_each_run(tmp_path):
    write_suite(tmp_path, samples(3), "meeting", judge=JUDGE + MEETING)
    # The second run has two of the units, and one of its own.
    write_rows(tmp_path, samples(3, 1), "others.jsonl")
    text = (tmp_path / "evenhand.toml").read_text()
    others = text.replace("samples.jsonl", "others.jsonl").replace('"test"', '"others"')
    (tmp_path / "others.toml").write_text(others)
    processes = [started(f"run {name}", cwd=tmp_path) for name in ("evenhand.toml", "others.toml")]
    for process in processes:
        code, _, error = ended(process)
        assert code == 0, error
    for name, units in (("test", ["u0", "u1", "u2"]), ("others", ["u1", "u2", "u3"])):
        assert [row["unit"] for row in stored(tmp_path, name)] == units
        found = json_here(f"show {name}", cwd=tmp_path)
        # Each process paid for what it asked.
        assert (totals(found), found["calls"]) == ((3, 3, 0), 3)
    ok_here("store verify", cwd=tmp_path)
    again = json_here("run evenhand.toml", cwd=tmp_path)
    assert values(again, "calls cached") == [0, 3]


def test_a_judge_that_always_crashes_stops_the_run(call, tmp_path):
    write_suite(tmp_path, 200, "crash", limits={"concurrency": 4})
    said = call("run --json")
    lost = said.json["failures"]["judge_crash"]
    assert (said.code, said.json["pending"]) == (5, 200 - lost)
    assert LOST_IN_A_ROW <= lost < LOST_IN_A_ROW + 4 and "no luck" in said.err


def test_units_without_a_recorded_reply_are_pending(call, tmp_path):
    write_suite(tmp_path, 3, {"model": "replay/replies.jsonl"})
    band = {"evidence": [], "rationale": "no evidence found", "score": 3}
    reply = {"scores": {"correct": band, "clear": band}, "failure_tags": [], "notes": ""}
    for unit, code, verdicts in (("another", 5, 0), ("u0", 0, 1), ("u0", 0, 1)):
        write_rows(tmp_path, [{"unit": unit, "reply": json.dumps(reply)}], "replies.jsonl")
        said = call("run --json")
        assert (said.code, totals(said.json)) == (code, (3, verdicts, 3 - verdicts))
        assert is_told(said.err, "cli.unrecorded", n="2 judgments") is bool(verdicts)


def test_retry_failures_asks_again(call, tmp_path, monkeypatch):
    flaky = (
        JUDGE
        + """
import os
async def flaky(messages, schema, params):
    return reply(messages) if os.environ.get("WELL") else "no"
"""
    )
    write_suite(tmp_path, 2, "flaky", judge=flaky)
    for more, verdicts in (("", 0), ("", 0), ("--retry-failures", 2)):
        assert call(f"run --json {more}").json["verdicts"] == verdicts
        monkeypatch.setenv("WELL", "1")


def test_a_limit_judges_the_first_units_and_the_run_holds_all(call, tmp_path):
    write_suite(tmp_path, 5, {"model": "python/judge:good", "repeats": 2})
    first = call.json("run --limit 2")
    assert (first["calls"], totals(first)) == (4, (4, 4, 0))
    (listed,) = call.json("runs")["runs"]
    assert totals(call.json("show")) == totals(listed) == (10, 4, 6)
    assert exported(call).keys() == {"u0", "u1"}
    ahead = call.json("run --limit 3 --dry-run")
    assert values(ahead, "run planned done") == [first["run"], 6, 4]
    rest = call.json("run")
    assert (rest["run"], rest["calls"], totals(rest)) == (first["run"], 6, (10, 10, 0))
    assert totals(call.json("run --limit 1")) == (2, 2, 0)


def test_a_run_keeps_who_began_it_and_its_note_and_tags_until_there_are_new_ones(
    call, tmp_path, monkeypatch
):
    write_suite(tmp_path, 2)
    steps = (
        ("anna", 'run --note "first try" --tag a --tag b --tag a', ("first try", ["a", "b"])),
        ("boris", "run", ("first try", ["a", "b"])),
        ("boris", "run --tag 第二版", ("first try", ["第二版"])),
        ("boris", "run --note Заметка", ("Заметка", ["第二版"])),
    )
    for name, line, labels in steps:
        monkeypatch.setenv("EVENHAND_AUTHOR", name)
        assert call.json(line)["verdicts"] == 2
        (listed,) = call.json("runs")["runs"]
        assert values(listed, "author note tags") == ["anna", *labels]
    assert "Заметка #第二版" in call("runs").text
    shown = call("show").text
    assert all(text in shown for text in ("anna", "Заметка", "第二版"))
    call("report -o report.html")
    assert "anna" not in Path("report.html").read_text()
    call("store copy sqlite:evenhand.db sqlite:copy.db")
    (copied,) = call.json("runs --store sqlite:copy.db")["runs"]
    assert values(copied, "author note tags") == ["anna", "Заметка", ["第二版"]]


@pytest.mark.parametrize(
    "words",
    [
        ("--note", "two\nlines"),
        ("--note", "x" * 501),
        ("--tag", "hidden\u202e"),
        ("--tag", "x" * 51),
        [word for n in range(21) for word in ("--tag", str(n))],
    ],
)
def test_a_label_that_is_no_short_line_is_refused(call, tmp_path, words):
    write_suite(tmp_path, 1)
    call.refused("run", *words)
    assert not (tmp_path / "evenhand.db").exists()
