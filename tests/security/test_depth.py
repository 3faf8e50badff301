"""How deep anything nests is bounded at the door, whichever door it comes through: refused in words
before a call is paid, and never a crash of what reads it afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas
import pyarrow
import pytest
from pyarrow import parquet

import evenhand
from evenhand.errors import DataError, UsageError
from evenhand.limits import JSON_DEPTH, NAME_PARTS
from evenhand.tomltext import TomlError, parse_toml
from tests.sentences import refused
from tests.suites import (
    JUDGE,
    RUBRIC,
    evenhand_here,
    samples,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.unit.data.workbooks import write_workbook
from tests.work import calls_of

DEPTHS = [JSON_DEPTH + 1, 20_000]


def value(depth):
    """Objects in objects, so many."""
    inner = 1
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def text(depth):
    """The same as JSON: its writer would run out of stack."""
    return '{"a":' * depth + "1" + "}" * depth


def dotted(depth):
    return ".".join("a" * depth)


def line(row, field, depth):
    """A row as JSON with something deep in a field."""
    return json.dumps({**row, field: "DEEP"}).replace('"DEEP"', text(depth)) + "\n"


class Door(NamedTuple):
    """What is written into a file of a suite, by its depth, and the command that reads it."""

    file: str
    content: Callable[[int], str]
    command: str = "run"
    keys: Mapping[str, Any] = MappingProxyType({})
    before: str = ""
    write: Callable[..., Path] = write_suite
    mode: str = "w"


def of_row(field, row=None):
    return lambda depth: line(row or samples(1)[0], field, depth)


def in_suite(table):
    """Something that stands in the suite's own file, in which a star is a deep name."""
    return Door("evenhand.toml", lambda depth: table.replace("*", dotted(depth)), mode="a")


def brackets(depth):
    return "[" * depth + "]" * depth


def placed(depth):
    """What is just shallow enough, placed deeper."""
    return line(samples(1)[0], "deep", min(depth - 2, JSON_DEPTH - 1))


def data(name):
    return {"data": [name]}


CONSTANT = """protocol = "rubric"
rubric = "rubric.json"
data = [{ file = "samples.jsonl", "*" = 1 }]
[[judges]]
model = "python/judge:good"
"""
VOTE = {"unit": "q", "judge": "j", "first": "a", "second": "b", "winner": "first"}
FOREIGN = {
    "votes": (VOTE, "area"),
    "fastchat": ({"question_id": 1, "model": "m", "judge": ["j", "p"], "score": 3}, "turn"),
    "arena-hard": ({"question_id": "q", "model": "m", "judge": "j"}, "games"),
}
NEW = "protocols new mine --from rubric"
CHECK = "check --rubric r.toml"
REPLIES = "check --units samples.jsonl --replies replies.jsonl --rubric rubric.json"
DOORS = {
    "meta": Door("samples.jsonl", of_row("meta")),
    "json": Door("samples.json", lambda n: f"[{of_row('meta')(n)}]", keys=data("samples.json")),
    "rubric in row": Door("samples.jsonl", of_row("rubric")),
    "messages": Door("samples.jsonl", of_row("messages"), keys={"use": ["messages"]}),
    "column": Door(
        "rows.csv",
        lambda depth: f"id,question,answer,meta.{dotted(depth)}\n1,q,a,m\n",
        keys=data("rows.csv"),
    ),
    "columns table": in_suite('[columns]\n"meta.*" = "question"\n'),
    "constant": in_suite(CONSTANT)._replace(mode="w"),
    "placed": Door("samples.jsonl", placed, keys={"columns": {"meta.x.y": "deep"}}),
    "suite array": Door(
        "evenhand.toml", lambda depth: f"[settings]\nrepairs = {brackets(depth)}\n", mode="a"
    ),
    "suite table": in_suite("[*]\n"),
    "rubric json": Door("rubric.json", text),
    "rubric toml": Door("r.toml", lambda depth: f"dimensions = {brackets(depth)}", CHECK),
    "protocol": Door(
        "mine/protocol.toml",
        lambda depth: f"\n[{dotted(depth)}]\n",
        keys={"protocol": "mine"},
        before=NEW,
        mode="a",
    ),
    "weights": Door(
        "weights.json",
        text,
        "settle latest --weights weights.json",
        before="run",
        write=write_answers,
    ),
    "recorded reply": Door(
        "replies.jsonl", of_row("reply", {"unit": "u0"}), "run --judge replay/replies.jsonl"
    ),
    "checked reply": Door("replies.jsonl", of_row("reply", {"unit": "u0"}), REPLIES),
    "log": Door(
        "log.json",
        lambda depth: f'{{"eval": {{"task": "t"}}, "samples": [{text(depth)}]}}',
        "import log.json --kind inspect",
    ),
    "promptfoo": Door(
        "log.json",
        lambda depth: f'{{"results": {{"results": [{text(depth)}]}}}}',
        "import log.json --kind promptfoo",
    ),
    "labels": Door(
        "labels.jsonl",
        of_row("annotator", {"unit": "p0", "winner": "A"}),
        "import labels.jsonl --for latest",
        before="run",
        write=write_pairs,
    ),
} | {
    f"import {kind}": Door("rows.jsonl", of_row(field, row), f"import rows.jsonl --kind {kind}")
    for kind, (row, field) in FOREIGN.items()
}


def assert_refused(folder, command):
    outcome = evenhand_here(command, cwd=folder)
    assert outcome.returncode in (2, 3), outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert "deep" in outcome.stderr or f"more than {NAME_PARTS} names" in outcome.stderr
    assert len(outcome.stderr) < 2000


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", DOORS)
def test_what_nests_too_deep_is_refused_in_words(name, depth, tmp_path):
    door = DOORS[name]
    door.write(tmp_path, **door.keys)
    if door.before:
        assert evenhand_here(door.before, cwd=tmp_path).returncode == 0
    with (tmp_path / door.file).open(door.mode) as file:
        file.write(door.content(depth))
    assert_refused(tmp_path, door.command)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_sheet_too_deep_is_refused_in_words(depth, tmp_path):
    write_suite(tmp_path, data=["samples.xlsx"])
    head = ["id", "question", "answer", f"meta.{dotted(depth)}"]
    write_workbook(tmp_path / "samples.xlsx", {"S": [head, ["1", "q", "a", "m"]]})
    assert_refused(tmp_path, "run")


@pytest.mark.parametrize("name", [f"meta.{dotted(NAME_PARTS - 1)}", dotted(DEPTHS[1])], ids=DEPTHS)
def test_a_column_of_parquet_too_deep_is_refused_in_words(name, tmp_path):
    """Named deep, and as deep inside as the format can be."""
    write_suite(tmp_path, data=["samples.parquet"])
    struct = pyarrow.int64()
    for _ in range(40):
        struct = pyarrow.struct([("a", struct)])
    row = {
        "id": ["1"],
        "question": ["q"],
        "answer": ["a"],
        name: pyarrow.array([value(40)], struct),
    }
    parquet.write_table(pyarrow.table(row), tmp_path / "samples.parquet")
    assert_refused(tmp_path, "run")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_variable_of_too_many_names_is_refused_in_words(depth, tmp_path):
    write_suite(tmp_path)
    name = "EVENHAND_LIMITS__" + "__".join("A" * depth)
    outcome = evenhand_here("run", cwd=tmp_path, env={name: "1", f"{name}__B": "2"})
    assert outcome.returncode == 2, outcome.stderr
    assert f"more than {NAME_PARTS} names" in outcome.stderr


def test_what_nests_as_deep_as_may_be_is_judged_and_read_by_all(tmp_path):
    write_suite(tmp_path)
    rows = samples(2)
    deep = [line(row, "deep", JSON_DEPTH - 2) for row in rows]
    inner = [json.loads(row)["deep"] for row in deep]
    metas = [{"prompt_variant": f"v{i}", "deep": part} for i, part in enumerate(inner)]
    write_rows(tmp_path, [{**row, "meta": meta} for row, meta in zip(rows, metas, strict=True)])
    commands = ["run", "show latest u0", "report -o r.html", "export -o e.jsonl", "settle latest"]
    commands += ["export --full -o f.jsonl", "export -o e.csv", "export -o e.parquet"]
    commands += ["compare --by prompt_variant --pair-by deep", "store verify"]
    for command in commands:
        outcome = evenhand_here(command, cwd=tmp_path)
        assert outcome.returncode == 0, (command, outcome.stderr)


TABLES = {
    "dicts": lambda row: [row],
    "pandas": lambda row: pandas.DataFrame([row]),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("depth", DEPTHS)
def test_tables_in_memory_are_held_to_it(table, depth, tmp_path, monkeypatch):
    (tmp_path / "judge.py").write_text(JUDGE)
    monkeypatch.chdir(tmp_path)
    rows = [{"question": "q", "answer": "a", "meta": value(depth)}]
    rows.append({"question": "q", "answer": "a", f"meta.{dotted(depth)}": 1})
    for row in rows:
        with pytest.raises(DataError, match="deep"):
            evenhand.run(TABLES[table](row), rubric=RUBRIC, judge="python/judge:good")


def test_a_row_that_holds_itself_is_too_deep():
    row = {"question": "q", "answer": "a", "meta": {}}
    row["meta"]["again"] = [row["meta"], row["meta"]]
    with pytest.raises(DataError, match="deep"):
        evenhand.run([row], rubric=RUBRIC, judge="python/judge:good")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_rubric_given_from_python_is_held_to_it(depth):
    with pytest.raises(UsageError):
        evenhand.score("q", "a", rubric=value(depth), judge="embedded")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_reply_too_deep_is_a_failure_of_one_judgment(depth, tmp_path):
    judge = f"{JUDGE}\nasync def deep(messages, schema, params):\n    return {text(depth)!r}\n"
    write_suite(tmp_path, 2, {"model": "python/judge:deep"}, judge=judge)
    outcome = evenhand_here("run --json", cwd=tmp_path)
    assert outcome.returncode in (0, 1), outcome.stderr
    assert json.loads(outcome.stdout)["failures"] == {"not_json": 2}


def test_a_dotted_key_takes_work_in_proportion_to_its_length():
    def hold(parts):
        with refused(TomlError, "kinds.toml_names"):
            parse_toml(f"{dotted(parts)} = 1")

    hold(1000)
    assert calls_of(hold, 100_000) < calls_of(hold, 1000) + 10


def test_dots_in_strings_and_comments_are_no_names():
    prose = dotted(1000)
    toml = f"b = '{prose}'\n\"{prose}\" = 1 # {prose}\n"
    assert parse_toml(toml)["b"] == prose


@pytest.mark.parametrize(
    "toml", ["a = " + "9" * 5000, "a = [1, 2", 'a = """x', "a = '", "= 1", "a.b = 1\na = 2", "\0"]
)
def test_what_is_no_toml_is_told(toml):
    with refused(TomlError, "kinds.not_toml"):
        parse_toml(toml)
