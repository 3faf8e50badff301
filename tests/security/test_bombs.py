"""What is no plain file is not opened, and what unpacks without end is not unpacked: each is told
in words, and large files go through all the same."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
import zipfile

import pytest

from evenhand import limits
from evenhand.data.read import rows
from evenhand.errors import DataError
from evenhand.kinds.reply import Unreadable, read
from evenhand.limits import BODY_ELEMENTS, JSON_ELEMENTS, REPLY_ELEMENTS, TOML_ELEMENTS
from tests.provider import Provider, sending, valid
from tests.sentences import is_told, refused
from tests.suites import (
    GOOD,
    answers,
    at,
    evenhand_here,
    judged,
    samples,
    stored,
    write_answers,
    write_suite,
)
from tests.unit.data.workbooks import write_workbook

DOORS = {
    **{
        f"data {ending}": (f"rows.{ending}", "run", {"data": [f"rows.{ending}"]})
        for ending in (
            *("jsonl", "json", "csv", "tsv", "xlsx", "parquet", "eval"),
            *("jsonl.gz", "parquet.gz", "eval.gz"),
        )
    },
    "import votes": ("votes.csv", "import votes.csv --kind votes", {}),
    "import eval": ("log.eval", "import log.eval --kind inspect", {}),
    "suite": ("evenhand.toml", "run", {}),
    "rubric": ("rubric.json", "run", {}),
    "prompt": ("prompt.md", "run", {"prompt": "prompt.md"}),
    "environment": (".env", "run", {}),
    "row": ("task.md", "run", None),
    "replies": ("replies.jsonl", "run --judge replay/replies.jsonl", {}),
    "checked rubric": ("r.toml", "check --rubric r.toml", {}),
}
"""The file that is something else, the command that would read it, and keys of the suite; None is a
suite of which a row names the file."""
REFUSALS = ("files.not_plain", "files.outside", "files.rubric_outside", "suite.outside")
KINDS = {
    "pipe": os.mkfifo,
    "endless": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_plain_file_is_refused(door, kind, tmp_path):
    name, command, keys = DOORS[door]
    if keys is None:
        write_answers(tmp_path, [row | {"rubric": name} for row in answers(1)])
    else:
        write_suite(tmp_path, 1, **keys)
    (tmp_path / name).unlink(missing_ok=True)
    KINDS[kind](tmp_path / name)
    outcome = evenhand_here(command, cwd=tmp_path)
    assert outcome.returncode in (2, 3), outcome.stderr
    assert any(is_told(outcome.stderr, key) for key in REFUSALS), outcome.stderr


@pytest.mark.parametrize("command", ["report -o pipe.html", "export -o pipe.jsonl"])
def test_an_output_waits_for_no_pipe(command, tmp_path):
    write_suite(tmp_path)
    assert evenhand_here("run", cwd=tmp_path).returncode == 0
    os.mkfifo(tmp_path / command.rsplit(maxsplit=1)[-1])
    outcome = evenhand_here(command, cwd=tmp_path)
    assert outcome.returncode == 2
    assert is_told(outcome.stderr, "data.pipe_without_reader", path=tmp_path / command.split()[-1])


@pytest.fixture
def small(monkeypatch):
    """Bounds that a test can reach."""
    monkeypatch.setattr(limits, "RATIO_FREE_BYTES", 1 << 20)
    monkeypatch.setattr(limits, "WORKBOOK_BYTES", 4 << 20)


BOMBS = {"line breaks": b"\n", "spaces": b" ", "zeros": b"\0", "rows": b"{}\n", "commas": b",\n"}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet", "xlsx"])
def test_a_gzip_bomb_is_told_long_before_its_end(bomb, ending, tmp_path, small):
    path = tmp_path / f"bomb.{ending}.gz"
    path.write_bytes(gzip.compress(BOMBS[bomb] * (8 << 20)))
    with pytest.raises(DataError) as caught:
        for _ in rows(path):
            pass
    assert caught.value.key and len(str(caught.value)) < 1000


def test_a_large_file_that_packs_well_goes_through(tmp_path, small):
    """A hundred times its size, and beyond the part that is free."""
    path = tmp_path / "rows.jsonl.gz"
    lines = (json.dumps(row | {"rubric": "the same " * 100}) + "\n" for row in samples(3000))
    path.write_bytes(gzip.compress("".join(lines).encode()))
    assert sum(1 for _ in rows(path)) == 3000


def test_a_file_larger_than_memory_should_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "TABLE_BYTES", 1 << 20)
    for name in ("rows.parquet", "rows.parquet.gz"):
        raw = os.urandom(3 << 20)
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
        with refused(DataError, "data.file_too_large"):
            rows(tmp_path / name)


def _edited(path, part, old, new):
    """A workbook with one of its parts changed."""
    edited = path.with_name(f"edited-{path.name}")
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(edited, "w", 8) as out:
        for name in archive.namelist():
            data = archive.read(name)
            out.writestr(name, data.replace(old, new) if part in name else data)
    return edited


FAR = {
    "plain": b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row>',
    "quotes": b"<row r='1048576'><c r='XFD1048576' t='inlineStr'><is><t>x</t></is></c></row>",
    "blanks": b'<row r="9"><c \n r  =\n "XFD1048576" t="n"><v>1</v></c></row>',
    "zeros": b'<row r="9"><c r="XFD0001048576" t="n"><v>1</v></c></row>',
}


@pytest.mark.parametrize("far", FAR)
def test_a_cell_far_away_does_not_ask_for_all_between(far, tmp_path):
    write_workbook(tmp_path / "rows.xlsx", {"S": [["id", "question"], ["1", "q"]]})
    end = b"</sheetData>"
    path = _edited(tmp_path / "rows.xlsx", "sheet1", end, FAR[far] + end)
    with refused(DataError, "data.sheet_too_large"):
        list(rows(path))


def test_a_stray_cell_below_is_borne(tmp_path):
    write_workbook(tmp_path / "rows.xlsx", {"S": [["id", "question"], ["1", "q"]]})
    end, cell = b"</sheetData>", b'<row r="5000"><c r="C5000"/></row>'
    path = _edited(tmp_path / "rows.xlsx", "sheet1", end, cell + end)
    assert rows(path)[0].value == {"id": "1", "question": "q"}


@pytest.mark.parametrize("part", ["content.xml", "xl/workbook.bin"])
def test_other_workbooks_are_not_taken_for_it(part, tmp_path):
    with zipfile.ZipFile(tmp_path / "rows.xlsx", "w") as archive:
        archive.writestr(part, "<x/>")
    with refused(DataError, "data.not_xlsx"):
        list(rows(tmp_path / "rows.xlsx"))


def test_a_log_that_unpacks_without_end_is_told(tmp_path, small):
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {"task": "t"}}')
        archive.writestr("summaries.json", "[" + " " * (8 << 20) + "]")
    outcome = evenhand_here("import log.eval --kind inspect", cwd=tmp_path)
    assert outcome.returncode == 3
    assert is_told(outcome.stderr, "data.unpacks_to_too_much")


LONG = "a" * 5000


@pytest.mark.parametrize("key", ["data", "rubric", "protocol", "prompt"])
def test_a_name_that_no_file_can_have_is_told(key, tmp_path):
    write_suite(tmp_path, **{key: [f"{LONG}.jsonl"] if key == "data" else f"{LONG}.json"})
    outcome = evenhand_here("run", cwd=tmp_path)
    assert outcome.returncode == 2, outcome.stderr


@pytest.mark.parametrize("command", ["run", "import", "check --rubric", "init --data", "show"])
def test_an_argument_that_no_file_can_be_called_is_told(command, tmp_path):
    outcome = evenhand_here(command, f"{LONG}.csv", cwd=tmp_path)
    assert outcome.returncode in (2, 6), outcome.stderr
    assert "Traceback" not in outcome.stderr


ENCODINGS = "idna punycode rot13 base64 undefined unicode_escape mbcs utf-7 raw_unicode_escape zlib"


@pytest.mark.parametrize(
    "encoding", ["utf\\u0000", "x" * 1000, *ENCODINGS.split(), "hex", "utf-16", "cp037", "charmap"]
)
def test_an_encoding_of_any_name_is_read_or_told(encoding, tmp_path):
    write_suite(tmp_path)
    suite = (tmp_path / "evenhand.toml").read_text()
    entry = f'data = [{{ file = "samples.jsonl", encoding = "{encoding}" }}]'
    (tmp_path / "evenhand.toml").write_text(suite.replace('data = ["samples.jsonl"]', entry))
    outcome = evenhand_here("run", cwd=tmp_path)
    assert outcome.returncode in (0, 2, 3), outcome.stderr


# Many values: a few bytes of JSON can ask for a hundred of memory


def crowd(number):
    return "[" + "[]," * number + "[]]"


CROWD = crowd(JSON_ELEMENTS)
ROW = json.dumps(samples(1)[0] | {"meta": "CROWD"}).replace('"CROWD"', CROWD)
SETTINGS = f"[settings]\nrepairs = {crowd(TOML_ELEMENTS)}\n"
CROWDS = {
    "row": ("samples.jsonl", ROW, {}),
    "array": ("samples.json", ROW, {"data": ["samples.json"]}),
    "rubric": ("rubric.json", CROWD, {}),
    "rubric_toml": (
        "rubric.toml",
        f"dimensions = {crowd(TOML_ELEMENTS)}",
        {"rubric": "rubric.toml"},
    ),
    "suite": ("evenhand.toml", SETTINGS, {}),
    "recording": ("replies.jsonl", f'{{"unit": "u0", "reply": {{"scores": {CROWD}}}}}', {}),
}
"""The file, what is added to it or stands in it, and keys of the suite that reads it."""


@pytest.mark.parametrize("door", CROWDS)
def test_a_crowd_is_refused_in_words(door, tmp_path):
    name, text, keys = CROWDS[door]
    judge = {"model": "replay/replies.jsonl"} if door == "recording" else GOOD
    write_suite(tmp_path, 1, judge, **keys)
    with (tmp_path / name).open("a" if door == "suite" else "w") as file:
        file.write(text)
    outcome = evenhand_here("run", cwd=tmp_path)
    assert outcome.returncode in (2, 3)
    assert "values" in outcome.stderr
    assert "Traceback" not in outcome.stderr


async def test_a_body_that_is_a_crowd_is_nonsense_and_asked_again(tmp_path):
    body = crowd(BODY_ELEMENTS).encode()
    async with Provider([sending(body), sending(body, status=500), valid()]) as provider:
        write_suite(tmp_path, 1, at(provider.url))
        await judged(tmp_path, {"OPENAI_API_KEY": "k"})
    assert len(provider.calls) == 3
    assert stored(tmp_path)[0]["status"] == "verdict"


REPLIES = {
    "lists": crowd(REPLY_ELEMENTS),
    "inside": f'{{"scores": {crowd(REPLY_ELEMENTS)}}}',
    "objects side by side": '{"a":1}' * (REPLY_ELEMENTS + 1),
    "braces in prose": "so { " * (REPLY_ELEMENTS + 1),
}


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_that_is_a_crowd_costs_no_more_than_its_text(reply):
    text = REPLIES[reply]
    tracemalloc.start()
    try:
        reading = read(text)
        assert isinstance(reading, Unreadable) and reading.code == "not_json"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * len(text)
