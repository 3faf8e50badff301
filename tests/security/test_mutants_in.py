"""Whatever stands in a file, reading it ends in what it says or in an error that says what is
wrong: rows, suites, rubrics, protocols, tables, archives and stores.

The short form tries the same few thousand files every time, the long form new ones. A failure names
its seed: the mutant of this seed is the file again.
"""

from __future__ import annotations

import gzip
import json
import secrets
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

from evenhand import jsontext
from evenhand.data.agent_logs import read_table
from evenhand.data.layouts import LAYOUTS, JudgmentFile
from evenhand.data.read import rows
from evenhand.data.write import write
from evenhand.errors import DataError, EvenhandError, StoreError, UsageError
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import read_rubric
from evenhand.results.units import full_rows
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from evenhand.store.verify import verify
from tests.security.byte_mutants import byte_mutant
from tests.suites import (
    RUBRIC,
    TASK,
    answers,
    evenhand_here,
    pairs,
    prepared,
    samples,
    write_answers,
    write_pairs,
    write_suite,
)
from tests.unit.data.workbooks import write_workbook
from tests.unit.kinds.mutants import mutant

EXPECTED = (UsageError, DataError, StoreError)


LONG = 600
"""So many times as many in the long form."""


@dataclass(frozen=True)
class Files:
    """Mutants of one kind of file, by their seed, what reads one, how many are tried, and what must
    lie beside it."""

    mutant: Callable[[int], bytes] | None
    read: Callable[[Path], object]
    name: str
    short: int
    prepare: Callable[[Path], object] = lambda folder: None
    make: Callable[[Path], Callable[[int], bytes]] | None = None
    """Of a good file that is to be made first: its mutants."""


def raw(goods):
    return lambda seed: byte_mutant(goods, seed)


def tree(goods):
    """Mutants that begin as JSON values."""

    def made(seed):
        text = mutant(goods, seed)
        return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")

    return made


def all_rows(path):
    for row in rows(path):
        jsontext.dump(row.value).encode()


def log_rows(path):
    table, told = read_table(path)
    for row in table:
        jsontext.dump(row.value).encode()
    assert all(map(str, told))


def all_units(path):
    """The units of the suite in whose folder a data file lies."""
    plan = prepared(path.parent)
    for unit in plan.units(plan.judging):
        unit.body.encode()


def rubric(kind):
    protocol = find_protocol(kind)
    return lambda path: jsontext.dump(read_rubric(path, protocol))


def layout(kind):
    return lambda path: [row.value for row in LAYOUTS[kind].read(JudgmentFile(path=path))]


def protocol_folder(path):
    find_protocol("mine", path.parent.parent)


def store(path):
    archive = open_archive(f"sqlite:{path}")
    try:
        verify(archive)
        for row in full_rows(archive, find_run(archive, "latest")):
            jsontext.dump(row)
    finally:
        archive.close()


SAMPLES = [*samples(2), samples(1)[0] | {"rubric": RUBRIC, "reference": "r", "language": "ru"}]
LINES = ["".join(json.dumps(row) + "\n" for row in unit(2)).encode() for unit in (samples, pairs)]
CSV = [
    b'id,question,answer,meta.model\n1,"a ""q"", b",x,m\n2,"line\nbreak",y,m\n',
    "id;вопрос;ответ\r\n1;что?;то\r\n".encode(),
    b"sep=;\nid;question;answer\n1;a;b\n",
]
SUITE = b"""name = "s"
protocol = "rubric"
language = "zh"
data = ["samples.jsonl", { file = "samples.jsonl", prompt_variant = "v" }]
rubric = "rubric.json"
[[judges]]
model = "python/judge:good"
temperature = 0.5
price = { input = "1", output = 2 }
[limits]
concurrency = 4
budget_usd = "5.00"
[settings]
max_rounds = 2
[compare]
by = "model"
[columns]
meta.model = "question"
"x.y" = "id"
"""
RUBRIC_TOML = b"""[[dimensions]]
id = "correct"
name = "Correct"
scale = "1, 3"
definition = '''Is it?'''
bands = [{ score = 1, criteria = "no" }, { score = 3, criteria = "yes" }]
"""
VOTES = b"unit,judge,first,second,winner,preference\nq,j,a,b,first,\nq,j,b,a,second,0.5\n"
PROMPTFOO = {"results": {"results": [{"prompt": {"raw": "p"}, "success": True, "score": 1}]}}


def packed(goods):
    """Mutants before packing, and after."""
    whole = [gzip.compress(good) for good in goods]
    return lambda seed: (
        byte_mutant(whole, seed) if seed % 2 else gzip.compress(byte_mutant(goods, seed), 1)
    )


def zipped(parts):
    """Mutants of the parts, and of the archive."""

    def archive(changed):
        out = BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in changed.items():
                file.writestr(name, data)
        return out.getvalue()

    whole = archive(parts)

    def made(seed):
        if seed % 2:
            return byte_mutant([whole], seed)
        name = sorted(parts)[seed // 2 % len(parts)]
        return archive({**parts, name: byte_mutant([parts[name]], seed)})

    return made


def sheet(folder):
    write_workbook(folder / "g.xlsx", {"S": [["id", "question"], ["1", "q"], [2, True]]})
    with zipfile.ZipFile(folder / "g.xlsx") as book:
        return zipped({name: book.read(name) for name in book.namelist()})


def parquet(folder):
    write(folder / "g.parquet", SAMPLES)
    return raw([(folder / "g.parquet").read_bytes()])


def judged_store(folder):
    write_suite(folder, 3)
    assert evenhand_here("run", cwd=folder).returncode == 0
    with sqlite3.connect(folder / "evenhand.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return raw([(folder / "evenhand.db").read_bytes()])


def new_protocol(folder):
    made = evenhand_here("protocols new mine --from rubric", cwd=folder)
    assert made.returncode == 0


LOG = {
    "header.json": b'{"eval": {"task": "t", "model": "m"}}',
    "summaries.json": b'[{"id": 1, "epoch": 1, "input": "i", "scores": {"s": {"value": "C"}}}]',
}
TURNS = [
    {"role": "user", "content": "q"},
    {"type": "ai", "content": "a", "tool_calls": [{"name": "f", "args": {}}]},
]
WHOLE_LOG = {
    "header.json": LOG["header.json"],
    "samples/1.json": json.dumps(
        {"id": 1, "target": ["t"], "messages": [TURNS[0], TURNS[1] | {"role": "assistant"}]}
    ).encode(),
}
RESULTS = [
    {"provider": "p", "vars": {"question": "q"}, "prompt": {"raw": json.dumps(TURNS)}}
    | {"response": {"output": output}}
    for output in ("a", TURNS)
]
SPANS = [
    {"traceId": "t", "startTimeUnixNano": 1, "attributes": attributes, "events": []}
    for attributes in (
        {f"gen_ai.{way}.messages": json.dumps(TURNS) for way in ("input", "output")},
        [{"key": "gen_ai.input.messages", "value": {"arrayValue": {"values": []}}}],
    )
]
RUNS = [
    {"run_type": "llm", "inputs": {"messages": [TURNS]}, "outputs": outputs, "extra": {}}
    for outputs in ({"messages": TURNS}, {"generations": [[{"message": TURNS[1]}]]})
]
PROTOCOL = find_protocol("rubric").texts["protocol.toml"].encode()
ARRAYS = [b"[" + line.replace(b"\n", b",\n")[:-2] + b"]" for line in LINES]
FILES = {
    "lines": Files(tree(SAMPLES), all_rows, "x.jsonl", 700),
    "line bytes": Files(raw(LINES), all_rows, "x.jsonl", 500),
    "array bytes": Files(raw(ARRAYS), all_rows, "x.json", 500),
    "samples": Files(tree(SAMPLES), all_units, "samples.jsonl", 150, write_suite),
    "pairs": Files(tree(pairs(3)), all_units, "pairs.jsonl", 150, write_pairs),
    "answers": Files(tree(answers(3)), all_units, "answers.jsonl", 150, write_answers),
    "csv": Files(raw(CSV), all_rows, "x.csv", 700),
    "tsv": Files(raw(CSV), all_rows, "x.tsv", 300),
    "csv.gz": Files(packed(CSV), all_rows, "x.csv.gz", 300),
    "xlsx": Files(None, all_rows, "x.xlsx", 300, make=sheet),
    "parquet": Files(None, all_rows, "x.parquet", 120, make=parquet),
    "suite": Files(raw([SUITE]), lambda p: prepared(p.parent), "evenhand.toml", 500, write_suite),
    "rubric.json": Files(tree([RUBRIC]), rubric("rubric"), "r.json", 600),
    "rubric.toml": Files(raw([RUBRIC_TOML]), rubric("rubric"), "r.toml", 600),
    "task.md": Files(raw([TASK.encode()]), rubric("weighted"), "r.md", 1000),
    "protocol": Files(raw([PROTOCOL]), protocol_folder, "mine/protocol.toml", 300, new_protocol),
    "votes": Files(raw([VOTES]), layout("votes"), "v.csv", 500),
    "log": Files(zipped(LOG), layout("inspect"), "l.eval", 500),
    "promptfoo": Files(tree([PROMPTFOO]), layout("promptfoo"), "p.json", 500),
    "log data": Files(zipped(WHOLE_LOG), log_rows, "l.eval", 500),
    "promptfoo data": Files(tree([{"results": RESULTS}, *RESULTS]), log_rows, "p.json", 500),
    "trace data": Files(
        tree([*SPANS, {"resourceSpans": [{"scopeSpans": [{"spans": SPANS}]}]}, *RUNS]),
        *(log_rows, "t.json", 1000),
    ),
    "store": Files(None, store, "evenhand.db", 200, make=judged_store),
}


@pytest.mark.parametrize("name", FILES)
def test_no_file_makes_its_reader_stumble(name, tmp_path, long):
    tried = FILES[name]
    tried.prepare(tmp_path)
    (tmp_path / "good").mkdir()
    mutant = tried.mutant or tried.make(tmp_path / "good")
    first = secrets.randbelow(2**40) if long else 0
    read = 0
    for seed in range(first, first + (LONG if long else 1) * tried.short):
        data = mutant(seed)
        (tmp_path / tried.name).write_bytes(data)
        try:
            tried.read(tmp_path / tried.name)
            read += 1
        except EXPECTED as error:
            f"{error}".encode("utf-8", "surrogateescape")
        except EvenhandError:
            raise
        except Exception as error:
            error.add_note(f"{name}, seed {seed}: {data[:2000]!r}")
            raise
    assert read > 0, "none is read: the mutants are not near what is good"
