"""Whatever stands in a file, reading it ends in what it says or in an error that says what is
wrong: rows, suites, rubrics, protocols, tables, archives and stores.

The short form tries the same few thousand files every time, the long form new ones. A failure names
its seed: `FILES[name].mutant(seed)` is the file again.
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


@dataclass(frozen=True)
class Files:
    """Mutants of one kind of file, how many are tried, and what reads one."""

    mutant: Callable[[int], bytes]
    read: Callable[[Path], object]
    name: str
    short: int
    long: int


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


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """What is tried, by name."""
    folder = tmp_path_factory.mktemp("goods")
    write_workbook(folder / "g.xlsx", {"S": [["id", "question"], ["1", "q"], [2, True]]})
    with zipfile.ZipFile(folder / "g.xlsx") as book:
        parts = {name: book.read(name) for name in book.namelist()}
    write(folder / "g.parquet", SAMPLES)
    parquet = (folder / "g.parquet").read_bytes()
    write_suite(folder / "s", 3)
    assert evenhand_here("run", cwd=folder / "s").returncode == 0
    with sqlite3.connect(folder / "s" / "evenhand.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    stored = (folder / "s" / "evenhand.db").read_bytes()
    log = {
        "header.json": b'{"eval": {"task": "t", "model": "m"}}',
        "summaries.json": b'[{"id": 1, "epoch": 1, "input": "i", "scores": {"s": {"value": "C"}}}]',
    }
    protocol = find_protocol("rubric").texts["protocol.toml"].encode()
    return {
        "lines": Files(tree(SAMPLES), all_rows, "x.jsonl", 700, 1_000_000),
        "line bytes": Files(raw(LINES), all_rows, "x.jsonl", 500, 500_000),
        "array bytes": Files(
            raw([b"[" + line.replace(b"\n", b",\n")[:-2] + b"]" for line in LINES]),
            *(all_rows, "x.json", 500, 500_000),
        ),
        "samples": Files(tree(SAMPLES), all_units, "samples.jsonl", 150, 100_000),
        "pairs": Files(tree(pairs(3)), all_units, "pairs.jsonl", 150, 100_000),
        "answers": Files(tree(answers(3)), all_units, "answers.jsonl", 150, 100_000),
        "csv": Files(raw(CSV), all_rows, "x.csv", 700, 500_000),
        "tsv": Files(raw(CSV), all_rows, "x.tsv", 500, 200_000),
        "csv.gz": Files(packed(CSV), all_rows, "x.csv.gz", 500, 300_000),
        "xlsx": Files(zipped(parts), all_rows, "x.xlsx", 400, 300_000),
        "parquet": Files(raw([parquet]), all_rows, "x.parquet", 120, 300_000),
        "suite": Files(
            raw([SUITE]), lambda path: prepared(path.parent), "evenhand.toml", 500, 300_000
        ),
        "rubric.json": Files(tree([RUBRIC]), rubric("rubric"), "r.json", 1000, 500_000),
        "rubric.toml": Files(raw([RUBRIC_TOML]), rubric("rubric"), "r.toml", 1000, 500_000),
        "task.md": Files(raw([TASK.encode()]), rubric("weighted"), "r.md", 1000, 500_000),
        "protocol": Files(raw([protocol]), protocol_folder, "mine/protocol.toml", 300, 100_000),
        "votes": Files(raw([VOTES]), layout("votes"), "v.csv", 500, 300_000),
        "log": Files(zipped(log), layout("inspect"), "l.eval", 500, 300_000),
        "promptfoo": Files(tree([PROMPTFOO]), layout("promptfoo"), "p.json", 500, 300_000),
        "store": Files(raw([stored]), store, "evenhand.db", 200, 100_000),
    }


_NAMES = "lines,line bytes,array bytes,samples,pairs,answers,csv,tsv,csv.gz,xlsx,parquet,suite"
NAMES = f"{_NAMES},rubric.json,rubric.toml,task.md,protocol,votes,log,promptfoo,store".split(",")


def prepare_folder(name, folder):
    """What must lie beside the file."""
    if name == "pairs":
        write_pairs(folder)
    elif name == "answers":
        write_answers(folder)
    elif name in ("samples", "suite"):
        write_suite(folder)
    elif name == "protocol":
        assert (
            evenhand_here("protocols", "new", "mine", "--from", "rubric", cwd=folder).returncode
            == 0
        )


@pytest.mark.parametrize("name", NAMES)
def test_no_file_makes_its_reader_stumble(name, kinds, tmp_path, long):
    tried = kinds[name]
    prepare_folder(name, tmp_path)
    first = secrets.randbelow(2**40) if long else 0
    read = 0
    for seed in range(first, first + (tried.long if long else tried.short)):
        data = tried.mutant(seed)
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


def test_all_kinds_are_tried(kinds):
    assert list(kinds) == NAMES
