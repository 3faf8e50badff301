"""How deep anything nests is bounded at the door, whichever door it comes through: refused in words
before a call is paid, and never a crash of what reads it afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pytest
from pyarrow import parquet

import evenhand
from evenhand.errors import DataError, UsageError
from evenhand.limits import JSON_DEPTH, NAME_PARTS
from evenhand.tomltext import TomlError, parse_toml
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
Door = Callable[[Path, int], tuple[str, ...]]
"""Writes something of that depth into a folder, and names the command that reads it."""


def value(depth: int) -> Any:
    """Objects in objects, so many."""
    inner: Any = 1
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def text(depth: int) -> str:
    """The same as JSON: its writer would run out of stack."""
    return '{"a":' * depth + "1" + "}" * depth


def dotted(depth: int) -> str:
    return ".".join("a" * depth)


def line(row: dict[str, Any], field: str, depth: int) -> str:
    """A row as JSON with something deep in a field."""
    return json.dumps({**row, field: "DEEP"}).replace('"DEEP"', text(depth)) + "\n"


def deep_meta(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder)
    (folder / "samples.jsonl").write_text(line(samples(1)[0], "meta", depth))
    return ("run",)


def deep_json(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder, data=["samples.json"])
    (folder / "samples.json").write_text(f"[{line(samples(1)[0], 'meta', depth)}]")
    return ("run",)


def deep_rubric_in_row(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder)
    (folder / "samples.jsonl").write_text(line(samples(1)[0], "rubric", depth))
    return ("run",)


def deep_messages(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder, use=["messages"])
    (folder / "samples.jsonl").write_text(line(samples(1)[0], "messages", depth))
    return ("run",)


def deep_column(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder, data=["samples.csv"])
    (folder / "samples.csv").write_text(f"id,question,answer,meta.{dotted(depth)}\n1,q,a,m\n")
    return ("run",)


def deep_sheet(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder, data=["samples.xlsx"])
    head = ["id", "question", "answer", f"meta.{dotted(depth)}"]
    write_workbook(folder / "samples.xlsx", {"S": [head, ["1", "q", "a", "m"]]})
    return ("run",)


def deep_parquet(folder: Path, depth: int) -> tuple[str, ...]:
    """Named deep, and as deep inside as the format can be."""
    write_suite(folder, data=["samples.parquet"])
    struct: Any = pyarrow.int64()
    for _ in range(40):
        struct = pyarrow.struct([("a", struct)])
    row = {"id": ["1"], "question": ["q"], "answer": ["a"]}
    name = (
        f"meta.{dotted(min(depth - 40, NAME_PARTS) - 1)}" if depth == DEPTHS[0] else dotted(depth)
    )
    deep = pyarrow.array([value(40)], struct)
    parquet.write_table(pyarrow.table({**row, name: deep}), folder / "samples.parquet")
    return ("run",)


def deep_columns_table(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder, columns={f"meta.{dotted(depth)}": "question"})
    return ("run",)


def deep_constant(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder)
    suite = (folder / "evenhand.toml").read_text()
    entry = f'data = [{{ file = "samples.jsonl", "{dotted(depth)}" = 1 }}]'
    (folder / "evenhand.toml").write_text(suite.replace('data = ["samples.jsonl"]', entry))
    return ("run",)


def deep_placed(folder: Path, depth: int) -> tuple[str, ...]:
    """What is just shallow enough, placed deeper."""
    write_suite(folder, columns={"meta.x.y": "deep"})
    deep = min(depth - 2, JSON_DEPTH - 1)
    (folder / "samples.jsonl").write_text(line(samples(1)[0], "deep", deep))
    return ("run",)


def deep_suite_array(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder)
    with (folder / "evenhand.toml").open("a") as file:
        file.write(f"\n[settings]\nrepairs = {'[' * depth}{']' * depth}\n")
    return ("run",)


def deep_suite_key(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder)
    with (folder / "evenhand.toml").open("a") as file:
        file.write(f"\n[columns]\n{dotted(depth)} = 'question'\n")
    return ("run",)


def deep_suite_table(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder)
    with (folder / "evenhand.toml").open("a") as file:
        file.write(f"\n[{dotted(depth)}]\n")
    return ("run",)


def deep_rubric_json(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder)
    (folder / "rubric.json").write_text(text(depth))
    return ("run",)


def deep_rubric_toml(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder, rubric="rubric.toml")
    (folder / "rubric.toml").write_text(f"dimensions = {'[' * depth}{']' * depth}")
    return ("check", "--rubric", "rubric.toml")


def deep_rubric_key(folder: Path, depth: int) -> tuple[str, ...]:
    (folder / "rubric.toml").write_text(f"{dotted(depth)} = 1")
    return ("check", "--rubric", "rubric.toml")


def deep_protocol(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder, protocol="mine")
    assert evenhand_here("protocols", "new", "mine", "--from", "rubric", cwd=folder).returncode == 0
    with (folder / "mine" / "protocol.toml").open("a") as file:
        file.write(f"\n[{dotted(depth)}]\n")
    return ("run",)


def deep_weights(folder: Path, depth: int) -> tuple[str, ...]:
    write_answers(folder)
    assert evenhand_here("run", cwd=folder).returncode == 0
    (folder / "weights.json").write_text(text(depth))
    return ("settle", "latest", "--weights", "weights.json")


def deep_recorded_reply(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder, 1, {"model": "replay/replies.jsonl"})
    (folder / "replies.jsonl").write_text(line({"unit": "u0"}, "reply", depth))
    return ("run",)


def deep_checked_reply(folder: Path, depth: int) -> tuple[str, ...]:
    write_suite(folder)
    (folder / "replies.jsonl").write_text(line({"unit": "u0"}, "reply", depth))
    data = ("--units", "samples.jsonl", "--replies", "replies.jsonl", "--rubric", "rubric.json")
    return ("check", "--protocol", "rubric", *data)


VOTE = {"unit": "q", "judge": "j", "first": "a", "second": "b", "winner": "first"}
SCORE = {"unit": "q", "judge": "j", "dimension": "d", "score": 1}
ALPACA = {"instruction": "i", "output_1": "a", "generator_1": "x", "output_2": "b"}
ALPACA |= {"generator_2": "y", "annotator": "z", "preference": 1}
FOREIGN: dict[str, tuple[dict[str, Any], str]] = {
    "votes": (VOTE, "area"),
    "scores": (SCORE, "area"),
    "alpacaeval": (ALPACA, "dataset"),
    "fastchat": ({"question_id": 1, "model": "m", "judge": ["j", "p"], "score": 3}, "turn"),
    "arena-hard": ({"question_id": "q", "model": "m", "judge": "j"}, "games"),
}


def foreign(kind: str) -> Door:
    def door(folder: Path, depth: int) -> tuple[str, ...]:
        row, field = FOREIGN[kind]
        (folder / "rows.jsonl").write_text(line(row, field, depth))
        return ("import", "rows.jsonl", "--kind", kind)

    return door


def deep_log(folder: Path, depth: int) -> tuple[str, ...]:
    (folder / "log.json").write_text(f'{{"eval": {{"task": "t"}}, "samples": [{text(depth)}]}}')
    return ("import", "log.json", "--kind", "inspect")


def deep_promptfoo(folder: Path, depth: int) -> tuple[str, ...]:
    (folder / "log.json").write_text(f'{{"results": {{"results": [{text(depth)}]}}}}')
    return ("import", "log.json", "--kind", "promptfoo")


def deep_labels(folder: Path, depth: int) -> tuple[str, ...]:
    write_pairs(folder)
    assert evenhand_here("run", cwd=folder).returncode == 0
    (folder / "labels.jsonl").write_text(line({"unit": "p0", "winner": "A"}, "annotator", depth))
    return ("import", "labels.jsonl", "--for", "latest")


DOORS: dict[str, Door] = {
    door.__name__.removeprefix("deep_"): door
    for door in (
        *(deep_meta, deep_json, deep_rubric_in_row, deep_messages, deep_column),
        *(deep_sheet, deep_parquet, deep_columns_table, deep_constant, deep_placed),
        *(deep_suite_array, deep_suite_key, deep_suite_table, deep_rubric_json, deep_rubric_toml),
        *(deep_rubric_key, deep_protocol, deep_weights, deep_recorded_reply),
        *(deep_checked_reply, deep_log, deep_promptfoo, deep_labels),
    )
} | {f"import {kind}": foreign(kind) for kind in FOREIGN}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("door", DOORS)
def test_what_nests_too_deep_is_refused_in_words(door: str, depth: int, tmp_path: Path) -> None:
    command = DOORS[door](tmp_path, depth)
    outcome = evenhand_here(*command, cwd=tmp_path)
    assert outcome.returncode in (2, 3), outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert "deep" in outcome.stderr or f"more than {NAME_PARTS} names" in outcome.stderr
    assert len(outcome.stderr) < 2000


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_variable_of_too_many_names_is_refused_in_words(depth: int, tmp_path: Path) -> None:
    write_suite(tmp_path)
    name = "EVENHAND_LIMITS__" + "__".join("A" * depth)
    outcome = evenhand_here("run", cwd=tmp_path, env={name: "1", f"{name}__B": "2"})
    assert outcome.returncode == 2, outcome.stderr
    assert f"more than {NAME_PARTS} names" in outcome.stderr


def test_what_nests_as_deep_as_may_be_is_judged_and_read_by_all(tmp_path: Path) -> None:
    write_suite(tmp_path)
    rows = samples(2)
    deep = [line(row, "deep", JSON_DEPTH - 2) for row in rows]
    inner = [json.loads(row)["deep"] for row in deep]
    metas = [{"prompt_variant": f"v{i}", "deep": part} for i, part in enumerate(inner)]
    write_rows(tmp_path, [{**row, "meta": meta} for row, meta in zip(rows, metas, strict=True)])
    commands = ["run", "show latest u0", "report -o r.html", "export -o e.jsonl", "settle latest"]
    commands += [
        "export --full -o f.jsonl",
        "export -o e.csv",
        "compare --by prompt_variant --pair-by deep",
    ]
    commands += ["store verify", "export -o e.parquet"]
    for command in commands:
        outcome = evenhand_here(*command.split(), cwd=tmp_path)
        assert outcome.returncode == 0, (command, outcome.stderr)


TABLES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dicts": lambda row: [row],
    "pandas": lambda row: pandas.DataFrame([row]),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("depth", DEPTHS)
def test_tables_in_memory_are_held_to_it(
    table: str, depth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "judge.py").write_text(JUDGE)
    monkeypatch.chdir(tmp_path)
    rows = [{"question": "q", "answer": "a", "meta": value(depth)}]
    rows.append({"question": "q", "answer": "a", f"meta.{dotted(depth)}": 1})
    cyclic: dict[str, Any] = {"question": "q", "answer": "a", "meta": {}}
    cyclic["meta"]["again"] = [cyclic["meta"], cyclic["meta"]]
    for row in [*rows, *([cyclic] if table == "dicts" else [])]:
        with pytest.raises(DataError, match="deep"):
            evenhand.run(TABLES[table](row), rubric=RUBRIC, judge="python/judge:good")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_rubric_given_from_python_is_held_to_it(depth: int) -> None:
    with pytest.raises(UsageError):
        evenhand.score("q", "a", rubric=value(depth), judge="embedded")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_reply_too_deep_is_a_failure_of_one_judgment(depth: int, tmp_path: Path) -> None:
    judge = f"{JUDGE}\nasync def deep(messages, schema, params):\n    return {text(depth)!r}\n"
    write_suite(tmp_path, 2, {"model": "python/judge:deep"}, judge=judge)
    outcome = evenhand_here("run", "--json", cwd=tmp_path)
    assert outcome.returncode in (0, 1), outcome.stderr
    assert json.loads(outcome.stdout)["failures"] == {"not_json": 2}


def test_a_dotted_key_takes_work_in_proportion_to_its_length() -> None:
    def refused(parts: int) -> None:
        with pytest.raises(TomlError, match="names"):
            parse_toml(f"{dotted(parts)} = 1")

    refused(1000)
    assert calls_of(refused, 100_000) < calls_of(refused, 1000) + 10


def test_dots_in_strings_and_comments_are_no_names() -> None:
    prose = dotted(1000)
    toml = f"b = '{prose}'\n\"{prose}\" = 1 # {prose}\n"
    assert parse_toml(toml)["b"] == prose


@pytest.mark.parametrize(
    "toml", ["a = " + "9" * 5000, "a = [1, 2", 'a = """x', "a = '", "= 1", "a.b = 1\na = 2", "\0"]
)
def test_what_is_no_toml_is_told(toml: str) -> None:
    with pytest.raises(TomlError, match="not TOML"):
        parse_toml(toml)
