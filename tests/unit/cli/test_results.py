"""`runs`, `show`, `export`, `store verify`: what is in the store, read back."""

from __future__ import annotations

import csv
import gzip
import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.suites import JUDGE, samples, write_suite
from tests.unit.cli.conftest import CallCommand

MIXED = ({"model": "python/judge:good"}, {"model": "python/judge:bad"})


@pytest.fixture
def run(call: CallCommand, tmp_path: Path) -> str:
    """A run of three units by two judges, one of which fails."""
    write_suite(tmp_path, 3, *MIXED)
    found: str = call("run", "--json").json["run"]
    return found


def test_runs_lists_what_the_store_holds(call: CallCommand, run: str) -> None:
    (row,) = call("runs", "--json").json["runs"]
    assert (row["run"], row["planned"], row["verdicts"]) == (run, 6, 3)
    assert row["failures"] == {"schema": 3}
    assert run in call("runs").out


def test_show_gives_an_overview(call: CallCommand, run: str) -> None:
    said = call("show", run[:5])
    assert "6 = 3 verdicts + 3 failures + 0 pending" in said.out
    assert "failed: schema" in said.out
    assert call("show", "--json").json["run"] == run


def test_show_a_unit_with_prompts_replies_checks_and_offsets(call: CallCommand, run: str) -> None:
    found = call("show", run, "u1", "--json").json
    good, bad = found["judgments"]
    output = found["unit"]["model_output"]
    spot = good["evidence"][0]
    quote = good["output"]["scores"]["correct"]["evidence"][0]
    assert output[spot["start"] : spot["end"]] == quote
    assert spot["match"] == "exact"
    assert [one["reask"] for one in bad["exchanges"]] == [0, 1, 2]
    assert bad["exchanges"][0]["reply"] == "{}"
    assert output in bad["exchanges"][0]["messages"][-1]["content"]
    text = call("show", run, "u1").out
    assert f"[{spot['start']}:{spot['end']}]" in text
    assert "Failed: schema" in text


def test_show_of_what_is_not_there_is_exit_2(call: CallCommand, run: str) -> None:
    for arguments in (("show", run, "nobody"), ("show", "ffff"), ("export", "x", "-o", "a.csv")):
        said = call(*arguments)
        assert (said.code, said.out) == (2, "")


def test_without_a_store_reading_is_exit_6(call: CallCommand, tmp_path: Path) -> None:
    for arguments in (("runs",), ("show",), ("settle",), ("store", "verify")):
        assert call(*arguments).code == 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet", "jsonl.gz"])
@pytest.mark.parametrize("full", [False, True])
def test_export_writes_every_format(
    call: CallCommand, run: str, tmp_path: Path, ending: str, full: bool
) -> None:
    out = tmp_path / f"out.{ending}"
    said = call("export", run, "-o", out.name, *(["--full"] if full else []))
    assert (said.code, said.out) == (0, "")
    assert ("failures 3 x schema" in said.err) is not full
    rows = 6 if full else 3
    if ending == "csv":
        with out.open(newline="") as file:
            assert len(list(csv.DictReader(file))) == rows
    elif ending == "parquet":
        import pyarrow.parquet

        assert pyarrow.parquet.read_table(out).num_rows == rows
    elif ending == "json":
        assert len(json.loads(out.read_text())) == rows
    else:
        text = gzip.decompress(out.read_bytes()) if ending.endswith("gz") else out.read_bytes()
        assert len(text.splitlines()) == rows


def test_the_contract_s_own_objects_are_exported(call: CallCommand, run: str) -> None:
    rows = [json.loads(line) for line in call("export", run, "-o", "-").out.splitlines()]
    assert [list(row) for row in rows] == [["meta", "scores", "failure_tags", "notes"]] * 3
    assert [row["meta"] for row in rows] == [row["meta"] for row in samples(3)]


def test_full_rows_have_the_pinned_keys(call: CallCommand, run: str) -> None:
    rows = [json.loads(line) for line in call("export", "--full", "-o", "-").out.splitlines()]
    pinned = {"unit", "judge", "repeat", "status", "reason", "output", "evidence", "passes"}
    assert all(row.keys() >= pinned | {"fixes", "flags"} for row in rows)
    assert [row["reason"] for row in rows] == [None, "schema"] * 3
    assert rows[0]["evidence"][0].keys() == {"dimension", "start", "end", "match"}


def test_export_to_an_unknown_ending_is_exit_2(call: CallCommand, run: str) -> None:
    assert call("export", "-o", "out.docx").code == 2


def test_verify_says_whether_all_is_well(call: CallCommand, run: str, tmp_path: Path) -> None:
    assert call("store", "verify").out == "all is well\n"
    assert call("store", "verify", "--json").json == {"ok": True, "problems": []}
    with sqlite3.connect(tmp_path / "evenhand.db") as beside:
        beside.execute("UPDATE calls SET reply='altered' WHERE rowid=1")
    beside.close()
    said = call("store", "verify", "--json")
    assert said.code == 6
    assert "was altered" in said.json["problems"][0]


def test_at_80_columns_names_and_dates_stay_on_one_line_and_crashes_show_their_end(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    crash, long = {"model": "python/judge:crash"}, JUDGE.replace("no luck", "no luck " * 20)
    write_suite(tmp_path, 3, crash, judge=long, name="prompt-v2-against-v1")
    call("run")
    listed = call("runs").out.splitlines()
    assert len(listed) == 3
    assert re.search(r"prompt-v2-against-v1 .* \d\d-\d\d \d\d:\d\d$", listed[2])
    shown = call("show").out
    assert re.search(r"^u1 +failed: judge_crash: ….*$", shown, re.MULTILINE)
    assert 'no luck no luck "' in shown
    assert "dimension" not in shown
    assert "judge " not in shown


def test_show_parts_its_tables_and_tells_on_one_line_what_is_left_out(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 60)
    run = call("run", "--json").json["run"]
    lines = call("show").out.splitlines()
    assert lines[-1] == f"the first 50; all of them: evenhand export {run} --full -o verdicts.csv"
    headers = [index for index, line in enumerate(lines) if re.match("dimension|unit", line)]
    assert [lines[index - 1] for index in headers] == ["", ""]
