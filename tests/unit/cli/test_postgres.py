"""Commands on a PostgreSQL store: what they do on a file, and what they say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgres import new_store_url, shared_server
from tests.sentences import is_told
from tests.suites import write_pairs, write_suite
from tests.unit.cli.conftest import values

FILE = "sqlite:evenhand.db"
READERS = (
    *("runs --json", "show {run} --json", "compare {run} --by model --json"),
    *("gate {run} --min-score correctness=1 --json", "leaderboard {run} --json"),
    *("export {run} --full -o {number}.jsonl", "report {run} -o {number}.html"),
)


@pytest.fixture
def url():
    return new_store_url()


def test_a_run_on_postgresql_is_judged_continued_settled_and_read(call, url):
    on = f"--store {url}"
    write_suite(Path(), 4)
    # A store that is not there is told and not made.
    call.refused(f"runs {on}", code=6)
    call.json(f"run --dry-run {on}")
    call.refused(f"runs {on}", code=6)
    call.run(f"{on} --limit 3")
    again = call.json(f"run {on}")
    assert [again[key] for key in ("planned", "verdicts", "calls")] == [4, 4, 1]
    settled = call.json(f"settle {on}")
    assert values(settled, "verdicts calls") == [4, 0]
    for command in ("runs", "show", "show latest u1", "store verify"):
        assert call(f"{command} {on}").code == 0
    rows = [
        {"unit": f"u{i}", "judge": "j", "first": "a", "second": "b", "winner": winner}
        for i, winner in enumerate(["a", "b", "tie", "a"])
    ]
    assert not Path("evenhand.db").exists()
    call.take("votes", rows)
    call.json(f"import rows.jsonl --kind votes {on}")
    assert call.json(f"leaderboard rows {on}")["rows"][0]["candidate"] == "a"
    # A store of another version is refused.
    schema = url.partition("schema=")[2]
    shared_server().execute(f"UPDATE {schema}.store SET version = 9999")
    assert "9999" in call.refused(f"runs {on}", code=6)


@pytest.mark.parametrize("write", [write_pairs, write_suite], ids=["pairwise", "rubric"])
def test_a_copy_reads_byte_for_byte_like_its_source(call, url, write):
    write(Path(), 6)
    run = call.run()
    copied = call.json(f"store copy {FILE} {url}")
    assert copied["copied"]["units"] == 6 and copied["ok"]
    assert call.json(f"store copy {url} sqlite:back.db")["copied"] == copied["copied"]
    for command in READERS:
        texts = set()
        for number, store in enumerate((FILE, url, "sqlite:back.db")):
            line = command.format(run=run, number=number)
            said = call(f"{line} --store {store}")
            _, _, file = line.partition(" -o ")
            texts.add((said.code, Path(file).read_bytes() if file else said.out))
        assert len(texts) == 1, command


def test_a_copy_brings_what_is_new_and_nothing_that_was_altered(call, url):
    write_suite(Path(), 5)
    call.run("--limit 2")
    copy = f"store copy {FILE}"
    assert is_told(call(f"{copy} {url}").out, "cli.new_rows")
    call.run()
    new = {"units": 0, "runs": 0, "judgments": 3, "calls": 3}
    for expected in (new, dict.fromkeys(new, 0)):
        assert call.json(f"{copy} {url}")["copied"] == expected
    there = call.json(f"run --store {url}")
    assert [there[key] for key in ("verdicts", "calls", "cost_usd")] == [5, 0, 0]
    with closing(sqlite3.connect("evenhand.db")) as database, database:
        database.execute("UPDATE calls SET reply=reply||' '")
    call.refused(f"{copy} {new_store_url()}", code=6, key="store.copy_altered")
    call.refused(f"{copy} sqlite:./evenhand.db")


def test_a_schema_with_tables_of_another_program_is_left_as_it_is(call, url):
    write_suite(Path(), 1)
    schema, server = url.partition("schema=")[2], shared_server()
    server.execute(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.calls (no int)")
    error = call.refused(f"run --store {url}", code=6)
    assert "tables of another program" in error and "?schema=" in error
    tables = f"SELECT relname FROM pg_class WHERE relnamespace='{schema}'::regnamespace"
    assert server.execute(tables) == [("calls",)]
