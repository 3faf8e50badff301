"""Commands on a PostgreSQL store: what they do on a file, and what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.postgres import new_store_url, shared_server
from tests.suites import write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand

READERS = (
    ("runs", "--json"),
    ("show", "--json"),
    ("compare", "--by", "model", "--json"),
    ("gate", "--min-score", "correctness=1", "--json"),
    ("leaderboard", "--json"),
)


def test_a_run_on_postgresql_is_judged_continued_settled_and_read(
    call: CallCommand, tmp_path: Path
) -> None:
    url = new_store_url()
    write_suite(tmp_path, 4)
    first = call("run", "--store", url, "--limit", "3", "--json")
    assert first.code == 0, first.err
    again = call("run", "--store", url, "--json")
    assert (again.json["planned"], again.json["verdicts"], again.json["calls"]) == (4, 4, 1)
    settled = call("settle", "--store", url, "--json")
    assert (settled.json["verdicts"], settled.json["calls"]) == (4, 0)
    for command in (("runs",), ("show",), ("show", "latest", "u1"), ("store", "verify")):
        outcome = call(*command, "--store", url)
        assert outcome.code == 0, outcome.err
    assert not (tmp_path / "evenhand.db").exists()


@pytest.mark.parametrize("kind", ["pairwise", "rubric"])
def test_a_copy_reads_byte_for_byte_like_its_source(
    call: CallCommand, tmp_path: Path, kind: str
) -> None:
    (write_pairs if kind == "pairwise" else write_suite)(tmp_path, 6)
    run = call("run", "--json").json["run"]
    url = new_store_url()
    copied = call("store", "copy", "sqlite:evenhand.db", url, "--json")
    assert copied.code == 0, copied.err
    assert copied.json["copied"]["units"] == 6 and copied.json["ok"]
    back = call("store", "copy", url, "sqlite:back.db", "--json")
    assert back.json["copied"] == copied.json["copied"]
    stores = ("sqlite:evenhand.db", url, "sqlite:back.db")
    for command in (*READERS, ("export", "-o", "{}.jsonl", "--full"), ("report", "-o", "{}.html")):
        texts = set()
        for number, store in enumerate(stores):
            words = [word.format(number) for word in command]
            words += [run] if words[0] != "runs" and "latest" not in words else []
            outcome = call(*words, "--store", store)
            file = tmp_path / words[2] if words[1] == "-o" else None
            texts.add((outcome.code, file.read_bytes() if file else outcome.out))
        assert len(texts) == 1, command


def test_a_copy_that_was_made_brings_what_is_new_and_nothing_twice(
    call: CallCommand, tmp_path: Path
) -> None:
    url = new_store_url()
    write_suite(tmp_path, 5)
    assert call("run", "--limit", "2").code == 0
    call("store", "copy", "sqlite:evenhand.db", url)
    assert call("run").code == 0
    more = call("store", "copy", "sqlite:evenhand.db", url, "--json").json
    assert more["copied"] == {"units": 0, "runs": 0, "judgments": 3, "calls": 3}
    again = call("store", "copy", "sqlite:evenhand.db", url, "--json").json
    assert set(again["copied"].values()) == {0}
    there = call("run", "--store", url, "--json").json
    assert (there["verdicts"], there["calls"], there["cost_usd"]) == (5, 0, 0)


def test_what_was_altered_is_not_copied(call: CallCommand, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    url = new_store_url()
    write_suite(tmp_path, 2)
    assert call("run").code == 0
    with closing(sqlite3.connect(tmp_path / "evenhand.db")) as database:
        database.execute("UPDATE calls SET reply=reply||' '")
        database.commit()
    outcome = call("store", "copy", "sqlite:evenhand.db", url)
    assert outcome.code == 6
    assert "was altered" in outcome.err
    assert call("store", "copy", "sqlite:evenhand.db", "sqlite:./evenhand.db").code == 2


def test_a_store_that_is_not_there_is_told_and_not_made(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 1)
    url = new_store_url()
    assert call("runs", "--store", url).code == 6
    assert call("run", "--dry-run", "--store", url).code == 0
    assert call("runs", "--store", url).code == 6


def test_a_schema_with_tables_of_another_program_is_left_as_it_is(
    call: CallCommand, tmp_path: Path
) -> None:
    write_suite(tmp_path, 1)
    url = new_store_url()
    schema = url.partition("schema=")[2]
    server = shared_server()
    server.execute(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.calls (no int)")
    outcome = call("run", "--store", url)
    assert outcome.code == 6
    assert "tables of another program" in outcome.err and "?schema=" in outcome.err
    tables = f"SELECT relname FROM pg_class WHERE relnamespace='{schema}'::regnamespace"
    assert server.execute(tables) == [("calls",)]


def test_a_store_of_another_version_is_refused(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 1)
    url = new_store_url()
    assert call("run", "--store", url).code == 0
    schema = url.partition("schema=")[2]
    shared_server().execute(f"UPDATE {schema}.store SET version = 9999")
    outcome = call("runs", "--store", url)
    assert (outcome.code, "9999" in outcome.err) == (6, True)


def test_judgments_made_elsewhere_come_in(call: CallCommand, tmp_path: Path) -> None:
    rows = [
        {"unit": f"u{i}", "judge": "j", "first": "a", "second": "b", "winner": winner}
        for i, winner in enumerate(["a", "b", "tie", "a"])
    ]
    text = "\n".join(map(json.dumps, rows))
    (tmp_path / "votes.jsonl").write_text(text, encoding="utf-8")
    url = new_store_url()
    outcome = call("import", "votes.jsonl", "--kind", "votes", "--store", url)
    assert outcome.code == 0, outcome.err
    board = call("leaderboard", "votes", "--store", url, "--json")
    assert board.json["rows"][0]["candidate"] == "a"
    assert call("store", "verify", "--store", url).code == 0
