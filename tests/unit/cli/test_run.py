"""`run` and `settle`: shapes of JSON, exit codes, and messages that say where."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.watch import Watcher
from evenhand.limits import LOST_IN_A_ROW
from tests.provider import child
from tests.suites import JUDGE, at, evenhand, samples, write_rows, write_suite
from tests.unit.cli.conftest import CallCommand

BAD = {"model": "python/judge:bad"}
SUMMARY = {
    "run": str,
    "planned": int,
    "verdicts": int,
    "failures": dict,
    "pending": int,
    "left_out": int,
    "calls": int,
    "cached": int,
    "reasks": int,
    "cost_usd": float,
    "spent_usd": float,
    "usage": dict,
}


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def test_json_alone_stands_on_stdout(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    said = call("run", "--json")
    assert said.code == 0
    types = {name: type(value) for name, value in said.json.items()}
    assert types == SUMMARY | {"rubric": dict}
    tokens = {"input_tokens", "output_tokens", "cached_tokens", "stored_tokens"}
    assert said.json["usage"].keys() == tokens
    assert (said.json["planned"], said.json["verdicts"], said.json["calls"]) == (3, 3, 3)
    again = call("run", "--json")
    assert (again.json["calls"], again.json["cached"]) == (0, 3)


def test_settle_prints_the_same_shape(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 2, BAD)
    run = call("run", "--json").json
    settled = call("settle", run["run"][:6], "--json")
    assert settled.code == 0
    assert settled.json.keys() == SUMMARY.keys() | {"settled_from", "rules"}
    assert settled.json["failures"] == {"schema": 2}
    assert settled.json["calls"] == 0


def test_people_get_a_table_and_the_next_step(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    said = call("run")
    assert "3 verdicts + 0 failures + 0 pending = 3 planned" in said.out
    assert "evenhand show" in said.out
    assert "3/3 judged" in said.err


def test_one_of_something_is_called_so(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 1, BAD)
    ahead = call("run", "--dry-run").out
    assert "1 judgment planned" in ahead and "\n1 call to send, at most" in ahead
    done = call("run").out
    assert "0 verdicts + 1 failure + 0 pending = 1 planned" in done
    assert "1 = 0 verdicts + 1 failure + 0 pending" in call("show", "latest").out


def test_a_dry_run_sends_nothing_and_writes_nothing(call: CallCommand, tmp_path: Path) -> None:
    judge = at("http://127.0.0.1:9/v1", price={"input": 1, "output": 2}, repeats=2)
    write_suite(tmp_path, 3, judge)
    before = files(tmp_path)
    said = call("run", "--dry-run", "--json")
    assert said.code == 0
    assert said.json["calls"] == {"least": 6, "most": 18}
    assert 0 < said.json["price_usd"]["least"] < said.json["price_usd"]["most"]
    assert "nothing was sent" in call("run", "--dry-run").out
    assert files(tmp_path) == before


def test_a_dry_run_knows_what_the_ledger_holds(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    call("run", "--limit", "2")
    before = files(tmp_path)
    found = call("run", "--dry-run", "--json").json
    assert (found["planned"], found["cached"], found["calls"]["least"]) == (3, 2, 1)
    assert files(tmp_path) == before


def test_too_many_failures_are_exit_1(call: CallCommand, tmp_path: Path) -> None:
    mixed = [{"model": "python/judge:good"}, BAD]
    write_suite(tmp_path, 2, *mixed, limits={"max_failure_rate": 0.4})
    said = call("run", "--json")
    assert said.code == 1
    assert said.json["failures"] == {"schema": 2}
    assert "max_failure_rate" in said.err
    write_suite(tmp_path, 2, *mixed, limits={"max_failure_rate": 0.5})
    assert call("run").code == 0


# A run in which nothing could be judged


def test_a_judge_that_always_crashes_stops_the_run(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 200, {"model": "python/judge:crash"}, limits={"concurrency": 4})
    said = call("run", "--json")
    assert said.code == 5
    lost = said.json["failures"]["judge_crash"]
    assert LOST_IN_A_ROW <= lost < LOST_IN_A_ROW + 4
    assert said.json["pending"] == 200 - lost
    assert f"{LOST_IN_A_ROW} calls in a row" in said.err
    assert "no luck" in said.err


@pytest.mark.parametrize("units", [1, 10])
def test_few_units_that_all_crash_are_exit_5(call: CallCommand, tmp_path: Path, units: int) -> None:
    write_suite(tmp_path, units, {"model": "python/judge:crash"})
    said = call("run", "--json")
    assert (said.code, said.json["failures"]) == (5, {"judge_crash": units})
    assert "nothing could be judged" in said.err
    (tmp_path / "judge.py").write_text(JUDGE.replace('raise RuntimeError("no luck")', "return"))
    assert call("run").code == 5
    (tmp_path / "judge.py").write_text(JUDGE.replace("async def crash", "async def no_crash"))
    assert call("run", "--judge", "python/judge:good").code == 0


def test_an_address_where_nobody_listens_is_exit_5(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    write_suite(tmp_path, 10, at(url))
    done = evenhand("run", "--json", cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["failures"], summary["pending"]) == ({}, 10)
    assert "is not there: cannot connect" in done.stderr


def test_replies_that_all_break_the_contract_are_exit_1(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 2, BAD, limits={"max_failure_rate": 1})
    for _ in range(2):
        said = call("run", "--json")
        assert (said.code, said.json["failures"]) == (1, {"schema": 2})
        assert "nothing could be judged" in said.err
        assert "--retry-failures" in said.err


def test_recorded_replies_of_other_units_are_exit_5(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 2, {"model": "replay/replies.jsonl"})
    (tmp_path / "replies.jsonl").write_text('{"unit": "another", "reply": "{}"}\n')
    said = call("run", "--json")
    assert (said.code, said.json["pending"]) == (5, 2)
    assert "nothing could be judged" in said.err


def test_units_without_a_recorded_reply_are_told(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 3, {"model": "replay/replies.jsonl"})
    band = {"evidence": [], "rationale": "no evidence found", "score": 3}
    reply = {"scores": {"correct": band, "clear": band}, "failure_tags": [], "notes": ""}
    row = {"unit": samples(1)[0]["id"], "reply": json.dumps(reply)}
    (tmp_path / "replies.jsonl").write_text(json.dumps(row) + "\n")
    told = '"replay/replies.jsonl" has no recorded reply for some units: 2 judgments pending'
    for _ in range(2):
        said = call("run", "--json")
        assert (said.code, said.json["verdicts"], said.json["pending"]) == (0, 1, 2)
        assert said.err.count(told) == 1


def test_a_run_with_one_verdict_is_complete(call: CallCommand, tmp_path: Path) -> None:
    mixed = [{"model": "python/judge:crash"}, {"model": "python/judge:good"}]
    write_suite(tmp_path, 1, *mixed)
    assert call("run").code == 0


USAGE: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"limits": {"concurency": 3}}, "evenhand.toml:8: unknown key"),
    "unknown language": (
        {"language": "fr"},
        'evenhand.toml: the protocol rubric has no prompt in "fr"',
    ),
    "no language": ({"language": "Français"}, "evenhand.toml:5: language"),
    "unknown protocol": ({"protocol": "rubrik"}, "no protocol is called"),
    "no rubric": ({"rubric": "none.json"}, "none.json"),
    "no store": ({"store": {"url": "oracle:x"}}, "not of a known kind"),
    "no data": ({"data": ["samples.jsnl"]}, "samples.jsnl"),
}


@pytest.mark.parametrize("what", USAGE)
def test_a_suite_that_is_wrong_is_exit_2(call: CallCommand, tmp_path: Path, what: str) -> None:
    given, told = USAGE[what]
    write_suite(tmp_path, 1, **given)
    said = call("run", "--json")
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert not (tmp_path / "log").exists()


def test_no_suite_is_exit_2(call: CallCommand) -> None:
    said = call("run")
    assert said.code == 2
    assert "evenhand init" in said.err


def test_a_judge_that_is_not_there_is_exit_2(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 1)
    for judge in ("python/judge:nobody", "python/nowhere:f", "opnai/x"):
        said = call("run", "--judge", judge)
        assert (said.code, said.out) == (2, ""), said


def test_a_price_that_is_not_known_with_a_budget_is_exit_2(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1"), limits={"budget_usd": "1"})
    said = call("run")
    assert said.code == 2
    assert "price" in said.err


def test_data_that_is_wrong_is_exit_3_and_leaves_no_run(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write('{"id": "u9", "question": 5, "model_output": "x"}\n')
    said = call("run", "--json")
    assert (said.code, said.out) == (3, "")
    assert 'samples.jsonl:4: "question" must be a text' in said.err
    assert call("runs", "--json").json == {"runs": []}


def test_ids_that_repeat_are_exit_3_with_their_lines(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, [*samples(2), samples(1)[0]])
    said = call("run")
    assert said.code == 3
    assert '"u0" at samples.jsonl:1 and samples.jsonl:3' in said.err


def test_an_id_like_a_path_is_data(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, [samples(1)[0] | {"id": "../../etc/passwd"}])
    assert call("run").code == 0
    assert call("show", "latest", "../../etc/passwd", "--json").json["unit"]["id"].startswith("..")


@pytest.mark.parametrize(("behaviour", "code"), [("unauthorized", 4), ("quota", 4), ("fast", 0)])
def test_a_provider_that_refuses_is_exit_4(tmp_path: Path, behaviour: str, code: int) -> None:
    with child(behaviour) as url:
        write_suite(tmp_path, 2, at(url))
        done = evenhand("run", "--json", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    told = json.loads(done.stdout)
    assert told["pending"] == (2 if code else 0)


def test_a_budget_that_is_reached_is_exit_5_and_the_summary_is_printed(
    tmp_path: Path,
) -> None:
    with child() as url:
        judge = at(url, price={"input": 1000, "output": 1000})
        write_suite(tmp_path, 20, judge, limits={"budget_usd": "8"})
        done = evenhand("run", "--json", cwd=tmp_path)
        assert done.returncode == 5, done.stderr
        told = json.loads(done.stdout)
        assert 0 < told["pending"] < 20
        assert told["cost_usd"] <= 8
        assert "budget_usd" in done.stderr
        more = evenhand("run", "--json", cwd=tmp_path, env={"EVENHAND_LIMITS__BUDGET_USD": "99"})
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout)["verdicts"] == 20


def test_a_store_that_cannot_be_used_is_exit_6(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "evenhand.db").write_text("no database at all, as anyone can see" * 20)
    said = call("run", "--json")
    assert (said.code, said.out) == (6, "")
    assert "evenhand.db" in said.err


def test_the_command_line_beats_the_environment_beats_the_file(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(tmp_path, 1, BAD, settings={"repairs": 1})
    assert call("run", "--json").json["calls"] == 2
    monkeypatch.setenv("EVENHAND_SETTINGS__REPAIRS", "0")
    assert call("run", "--json").json["cached"] == 1
    said = call("run", "--judge", "python/judge:good", "--store", "sqlite:other.db", "--json")
    assert said.json["verdicts"] == 1
    assert (tmp_path / "other.db").exists()


def test_a_suite_elsewhere_is_judged_beside_its_own_files(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path / "deep", 2)
    assert call("run", "deep").code == 0
    assert call("run", "deep/evenhand.toml", "--json").json["cached"] == 2
    assert (tmp_path / "deep" / "evenhand.db").exists()


def test_retry_failures_asks_again(call: CallCommand, tmp_path: Path) -> None:
    flaky = JUDGE + (
        "\nimport os\nasync def flaky(messages, schema, params):\n"
        "    return reply(messages) if os.environ.get('WELL') else 'no'\n"
    )
    write_suite(tmp_path, 2, {"model": "python/judge:flaky"}, judge=flaky)
    assert call("run", "--json").json["failures"] == {"not_json": 2}
    os.environ["WELL"] = "1"
    try:
        assert call("run", "--json").json["failures"] == {"not_json": 2}
        assert call("run", "--retry-failures", "--json").json["verdicts"] == 2
    finally:
        del os.environ["WELL"]


def test_units_that_were_added_are_judged(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 2)
    run = call("run", "--limit", "1", "--json").json["run"]
    write_rows(tmp_path, samples(4))
    told = call("run", "--json").json
    assert told["run"] != run
    assert (told["planned"], told["calls"], told["changed"]["added"]) == (4, 3, 2)


def test_the_scores_are_those_of_the_units_that_are_counted(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 3)
    call("run")
    said = call("run", "--limit", "1").out
    assert "1 verdict +" in said
    assert re.search(r"correct +1 +3\.00 +3 to 3", said)


def test_a_dry_run_passes_over_nothing_but_a_store_that_is_yet_to_be_made(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "junk.db").write_text("no database at all, as anyone can see" * 20)
    nobody = "postgresql://127.0.0.1:9/x"
    codes = {"sqlite:new.db": 0, "sqlite:junk.db": 6, nobody: 6, "mysql://x": 2}
    assert {url: call("run", "--dry-run", "--store", url).code for url in codes} == codes
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("store", [[], ["--store", "sqlite:my results.db"]])
@pytest.mark.parametrize("suite", [".", "deep"])
def test_the_next_steps_work_as_they_are_printed(
    call: CallCommand, tmp_path: Path, suite: str, store: list[str]
) -> None:
    write_suite(tmp_path / suite, 1)
    said = call("run", suite, *store).out
    steps = [line.partition(" evenhand ")[2] for line in said.splitlines()]
    commands = {step.split()[0]: shlex.split(step) for step in steps if step}
    assert list(commands) == ["show", "report", "view", "export"]
    assert ("--store" in commands["show"]) is (bool(store) or suite == "deep")
    assert {call(*commands[name]).code for name in ("show", "export")} == {0}


def test_a_failure_is_told_as_an_instance_where_others_say_otherwise(
    call: CallCommand, tmp_path: Path
) -> None:
    several = JUDGE.replace('"no luck"', 'f"no luck {hash(str(messages))}"')
    assert several != JUDGE
    write_suite(tmp_path, 3, {"model": "python/judge:crash"}, judge=several)
    assert "3 x judge_crash, for instance: " in call("run").out


def test_failures_are_told_with_what_went_wrong(call: CallCommand, tmp_path: Path) -> None:
    long = JUDGE.replace("no luck", "no luck" + " at all" * 20 + ", lastly")
    write_suite(tmp_path, 3, {"model": "python/judge:crash"}, judge=long)
    said = call("run").out
    (line,) = (line for line in said.splitlines() if "3 x judge_crash: " in line)
    assert line.endswith(' at all, lastly"') and "judge_crash: …" in line, "the error, not its path"
    assert len(line) <= 120
    assert "Look closer:  evenhand show" in said
    assert "export" not in said


def test_a_reply_cut_off_says_what_to_do(call: CallCommand, tmp_path: Path) -> None:
    cut_off = 'async def short(messages, schema, params):\n    return \'{"scores": {"corr\'\n'
    write_suite(tmp_path, 2, {"model": "python/judge:short"}, judge=cut_off)
    assert "2 x truncated: the reply was cut off: raise max_tokens" in call("run").out


def test_notices_that_differ_in_numbers_alone_are_of_one_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watcher = Watcher("evenhand run")
    for number in range(100):
        watcher.notice(f"429: used {number} of 30 by req_a{number}, wait {number / 7:.3g} s")
    watcher.notice("503: overloaded")
    told = capsys.readouterr().err.splitlines()
    assert [line.partition("(")[2] for line in told] == [
        "",
        "10 times); trying again",
        "100 times); trying again",
        "",
    ]
