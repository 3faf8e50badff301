"""Ways to damage a store, and `store verify`, which finds each of them."""

import json
import shutil
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgres import new_store_url, shared_server
from tests.suites import evenhand_here, write_rows, write_suite
from tests.suites import samples as rows

Damage = Callable[[Path], None]


def by_sql(*statements):
    """Another hand in the tables."""

    def damage(store):
        with closing(sqlite3.connect(store)) as database:
            for sql in statements:
                assert database.execute(sql).rowcount, f"nothing changed by {sql}"
            database.commit()

    return damage


def flipped(sql):
    """One bit of a value turned, in the file itself: of the first that the query finds."""

    def damage(store):
        with closing(sqlite3.connect(store)) as database:
            (value,) = database.execute(sql).fetchone()
        needle = value if isinstance(value, bytes) else str(value).encode()
        data = bytearray(store.read_bytes())
        at = data.find(needle[:40])
        assert at >= 0, f"{needle[:40]!r} is not in the file"
        while at >= 0:
            data[at + min(len(needle), 40) // 2] ^= 1
            at = data.find(needle[:40])
        store.write_bytes(data)

    return damage


def overwritten(name):
    """The first page of a table or an index filled with noise."""

    def damage(store):
        with closing(sqlite3.connect(store)) as database:
            (page,) = database.execute(
                "SELECT rootpage FROM sqlite_master WHERE name=?", (name,)
            ).fetchone()
            (size,) = database.execute("PRAGMA page_size").fetchone()
        data = bytearray(store.read_bytes())
        data[(page - 1) * size : (page - 1) * size + 64] = b"\xa5" * 64
        store.write_bytes(data)

    return damage


def cut(share):
    def damage(store):
        data = store.read_bytes()
        store.write_bytes(data[: int(len(data) * share)])

    return damage


def index_without(sql):
    """A row changed behind the back of its indexes."""

    def damage(store):
        with closing(sqlite3.connect(store, isolation_level=None)) as database:
            database.execute("PRAGMA writable_schema = ON")
            database.execute("DELETE FROM sqlite_master WHERE name='calls_by_key'")
            version = database.execute("PRAGMA schema_version").fetchone()[0]
            database.execute(f"PRAGMA schema_version = {version + 1}")
        with closing(sqlite3.connect(store, isolation_level=None)) as database:
            database.execute(sql)

    return damage


CASES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
BY_SQL = CASES["by_sql"]
CALL = "(SELECT MIN(no) FROM calls)"
DAMAGES = {
    **{name: by_sql(*statements) for name, statements in BY_SQL.items()},
    "an index lost": index_without("SELECT 1"),
    "a bit of a reply": flipped("SELECT substr(reply, 30, 40) FROM calls"),
    "a bit of a verdict": flipped("SELECT substr(body, 30, 40) FROM judgments"),
    "a bit of a unit": flipped("SELECT substr(body, 30, 40) FROM units"),
    "a bit of a prompt": flipped("SELECT substr(text, 100, 40) FROM texts"),
    "a bit of a manifest": flipped("SELECT substr(manifest, 10, 40) FROM runs"),
    "a bit of a judging": flipped("SELECT substr(record, 10, 40) FROM judgings"),
    "a bit of a digest": flipped("SELECT digest FROM calls"),
    "noise in calls": overwritten("calls"),
    "noise in judgments": overwritten("judgments"),
    "noise in an index": overwritten("calls_of_run"),
    "half of the file": cut(0.5),
    "the last page cut": cut(0.97),
    "the first page alone": cut(0.02),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The folder of a store in which all is well."""
    folder = tmp_path_factory.mktemp("sound")
    write_suite(folder, rows(3), {"model": "python/judge:good", "price": {"input": 1, "output": 1}})
    assert evenhand_here("run", cwd=folder).returncode == 0
    assert evenhand_here("store", "verify", cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_finds(sound, tmp_path, damage):
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    DAMAGES[damage](tmp_path / "evenhand.db")
    verified = evenhand_here("store", "verify", "--json", cwd=tmp_path)
    assert verified.returncode == 6, verified.stdout + verified.stderr
    if verified.stdout:
        assert json.loads(verified.stdout)["problems"]


def altered_reply(folder, sound):
    """A store in which one reply was altered and its judgment is to be made anew."""
    shutil.copytree(sound, folder, dirs_exist_ok=True)
    by_sql(
        f"UPDATE calls SET reply=replace(reply, '3', '5') WHERE no={CALL}",
        "DELETE FROM judgments",
    )(folder / "evenhand.db")
    with closing(sqlite3.connect(folder / "evenhand.db")) as database:
        return [key for (key,) in database.execute(f"SELECT key FROM calls WHERE no={CALL}")]


def test_settle_uses_no_reply_that_was_altered(sound, tmp_path):
    [key] = altered_reply(tmp_path, sound)
    outcome = evenhand_here("settle", cwd=tmp_path)
    assert (outcome.returncode, key in outcome.stderr) == (6, True)


def test_an_altered_reply_is_not_shown_as_what_was_said(sound, tmp_path):
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    by_sql(f"UPDATE calls SET reply='forged' WHERE no={CALL}")(tmp_path / "evenhand.db")
    for unit in ("u0", "u1", "u2"):
        outcome = evenhand_here("show", "latest", unit, cwd=tmp_path)
        assert (outcome.returncode, "forged" in outcome.stdout) == (0, False), outcome.stderr
    assert evenhand_here("report", "-o", "report.html", cwd=tmp_path).returncode == 0


def test_run_asks_again_for_a_reply_that_was_altered(sound, tmp_path):
    altered_reply(tmp_path, sound)
    outcome = evenhand_here("run", "--json", cwd=tmp_path)
    assert json.loads(outcome.stdout)["calls"] == 1
    scores = evenhand_here("export", "-o", "-", cwd=tmp_path).stdout
    assert '"score":5' not in scores.replace(" ", "")
    assert evenhand_here("settle", cwd=tmp_path).returncode == 0
    write_rows(tmp_path, rows(3))
    assert json.loads(evenhand_here("run", "--json", cwd=tmp_path).stdout)["calls"] == 0


@pytest.fixture(scope="module")
def on_server(sound):
    """The same store on a server."""
    url = new_store_url()
    assert evenhand_here("store", "copy", "sqlite:evenhand.db", url, cwd=sound).returncode == 0
    return url


@pytest.mark.parametrize("damage", CASES["on_server"])
def test_verify_finds_on_a_server(on_server, sound, damage):
    copy = new_store_url()
    assert evenhand_here("store", "copy", on_server, copy, cwd=sound).returncode == 0
    shared_server().execute(f"SET search_path={copy.rpartition('=')[2]}", *BY_SQL[damage])
    verified = evenhand_here("store", "verify", "--store", copy, "--json", cwd=sound)
    assert verified.returncode == 6, verified.stdout + verified.stderr
    assert json.loads(verified.stdout)["problems"]
