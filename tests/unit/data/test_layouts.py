"""The layouts of other tools, in small samples of each, as tidy rows."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from evenhand import limits
from evenhand.data.layouts import LAYOUTS, JudgmentFile
from evenhand.data.layouts.benchmarks import arena_verdict
from evenhand.data.layouts.logs import zip_module
from evenhand.data.layouts.tidy import lengths_of, read_candidate, read_score, read_vote
from evenhand.errors import DataError, UsageError
from tests.cases import cases
from tests.sentences import refused

arrow = pytest.importorskip("pyarrow")
DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
HEADER, SAMPLES, CASES = (DATA[name] for name in ("header", "samples", "cases"))


def found(path, kind):
    return list(LAYOUTS[kind].read(JudgmentFile(path=path)))


def lines(folder, *rows):
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def said(rows):
    """Who won each vote, by name; the reason of a failure."""
    votes = [(row.value, read(row)) for row in rows]
    return [
        str(value[vote.side]) if vote.side in ("first", "second") else vote.side or vote.failed
        for value, vote in votes
    ]


def read(row):
    first, second = (read_candidate(row.value, name, row.where) for name in ("first", "second"))
    return read_vote(row.value, first, second)


def summary(row, fields):
    """Return these fields of a tidy row, and what it says, without what is empty."""
    told = {name: row.value.get(name) for name in fields.split()} | {"flag": row.flag}
    if "first" in row.value:
        told |= {"said": said([row])[0], "preference": read(row).preference}
    else:
        score = read_score(row.value)
        told |= {name: getattr(score, name) for name in ("dimension", "score", "failed", "detail")}
    return {name: value for name, value in told.items() if value not in (None, "")}


@pytest.mark.parametrize("title", CASES)
def test_a_file_of_another_tool_becomes_these_rows(tmp_path, title):
    """`kind`, `content` and `rows` of each case are beside this file."""
    case = CASES[title]
    content, path = case["content"], tmp_path / case["file"]
    is_lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, content)) if is_lines else json.dumps(content))
    rows = found(path, case["kind"])
    assert [summary(row, case["fields"]) for row in rows] == case["rows"]


def test_a_vote_brings_the_lengths_of_its_texts(tmp_path):
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(CASES["alpacaeval"]["content"], indent=2))
    assert lengths_of(found(path, "alpacaeval")[0].value, ("", "")) == [10, 5]


def scored(rows):
    """The score of each dimension; of a failure its detail."""
    found = [read_score(row.value) for row in rows]
    return {one.dimension: one.detail if one.failed else one.score for one in found}


def test_a_fastchat_file_of_another_kind_is_refused(tmp_path):
    with refused(DataError, "data.no_column", "g1_winner, winner, score"):
        found(lines(tmp_path, {"question_id": 1, "turns": ["a question"]}), "fastchat")
    with refused(DataError, "data.no_column", "question_id"):
        found(lines(tmp_path, {"model": "m", "score": 3}), "fastchat")


@cases
def test_an_arena_label_says_the_same_either_way_round(label, winner, flag):
    assert arena_verdict(label) == (winner, flag)
    assert arena_verdict(None) == (None, "")


def promptfoo(folder, whole):
    path = folder / "results.json"
    path.write_text(json.dumps(whole, indent=1))
    return found(path, "promptfoo")


def test_a_file_without_results_is_refused(tmp_path):
    with refused(DataError, "data.no_results"):
        promptfoo(tmp_path, {"prompts": []})
    with refused(DataError, "data.file_without_rows"):
        promptfoo(tmp_path, [])
    with refused(UsageError, "data.no_table_kind"):
        file = JudgmentFile(path=tmp_path / "results.json", columns={"a": "b"})
        next(LAYOUTS["promptfoo"].read(file))


def test_results_may_be_packed_and_damage_is_told(tmp_path):
    path = tmp_path / "results.json.gz"
    packed = gzip.compress(json.dumps({"results": [DATA["result"]]}).encode())
    path.write_bytes(packed)
    assert len(found(path, "promptfoo")) == 5
    path.write_bytes(packed[:-20])
    with refused(DataError, "data.bad_gzip"):
        found(path, "promptfoo")


def packed(path, files, module=zipfile, method=8):
    with module.ZipFile(path, "w", method) as archive:
        for name, value in files.items():
            archive.writestr(name, json.dumps(value))
    return path


def check_inspect(made):
    by_sample = {}
    for one in made:
        by_sample.setdefault((one.value["unit"], one.value["repeat"]), []).append(one)
    assert scored(by_sample["s1", 1]) == {
        "match": 1,
        "graded/tone": 0.5,
        "graded/sense": 1,
        "length": 12,
        "words": 'score "maybe" is not a number',
    }
    assert scored(by_sample["s1", 2]) == {"match": 0}
    assert scored(by_sample[2, 1]) == {None: "error: out of memory"}
    assert scored(by_sample[3, 1]) == {"match": "there is no score"}
    assert scored(by_sample[4, 1]) == {None: "there is no score"}
    value = by_sample["s1", 1][0].value
    assert (value["model"], value["task"], value["input"]) == ("openai/gpt-4", "sums", "1+1?")
    assert value["metadata.area"] == "plus" and "metadata.deep" not in value


def _log(path):
    whole = HEADER | {"plan": {"steps": ["a", {"b": "}"}]}, "samples": SAMPLES, "n": 1.5}
    path.write_text(json.dumps(whole, indent=2))
    return path


def _zstandard(path):
    module = zip_module()
    packed(path, SUMMARIES, module, module.ZIP_ZSTANDARD)
    assert {entry.compress_type for entry in zipfile.ZipFile(path).infolist()} == {93}
    return path


PARTS = {f"samples/{i}.json": one for i, one in enumerate(SAMPLES)} | {"header.json": HEADER}
SUMMARIES = {"header.json": HEADER, "summaries.json": SAMPLES}
UNREAD = SUMMARIES | {"samples/s1_epoch_1.json": {"id": "not read"}}
LOGS = {
    "summaries.eval": lambda path: packed(path, UNREAD),
    "samples.eval": lambda path: packed(path, PARTS),
    "whole.json": _log,
    "zstandard.eval": _zstandard,
}


@pytest.mark.parametrize("name", LOGS)
def test_inspect_logs_of_every_form(tmp_path, name):
    check_inspect(found(LOGS[name](tmp_path / name), "inspect"))


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "UNPACKED_BYTES", 100_000)
    bomb = [{"id": i, "input": "x" * 1000} for i in range(1000)]
    path = packed(tmp_path / "log.eval", {"header.json": HEADER, "summaries.json": bomb})
    assert path.stat().st_size < 20_000
    with refused(DataError, "data.log_too_large"):
        found(path, "inspect")


def test_an_archive_with_a_gigantic_sample_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LINE_BYTES", 10_000)
    files = {"header.json": HEADER, "samples/1.json": {"id": "x" * 1_000_000}}
    with refused(DataError, "data.row_too_long"):
        found(packed(tmp_path / "log.eval", files), "inspect")


def test_a_damaged_archive_is_refused(tmp_path):
    path = packed(tmp_path / "log.eval", SUMMARIES)
    whole = path.read_bytes()
    middle = whole.find(b"summaries.json") + 30
    changed = whole[:middle] + b"\xff" * 8 + whole[middle + 8 :]
    for damaged in (whole[: len(whole) // 2], changed, b"no zip"):
        path.write_bytes(damaged)
        with refused(DataError, "data.bad_zip"):
            found(path, "inspect")


def test_an_archive_of_something_else_is_refused(tmp_path):
    with refused(DataError, "data.no_header_json"):
        found(packed(tmp_path / "log.eval", {"other.json": {}}), "inspect")
    with refused(DataError, "data.no_samples"):
        found(packed(tmp_path / "log.eval", {"header.json": HEADER}), "inspect")
