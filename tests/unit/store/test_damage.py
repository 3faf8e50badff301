"""Ways to damage a store, and `store verify`, which finds each of them."""

import json
import shutil
import sqlite3
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


CALL, OTHER = "(SELECT MIN(no) FROM calls)", "(SELECT MAX(no) FROM calls)"
JUDGED = "(SELECT MIN(unit) FROM judgments)"
SWAPPED = (
    "UPDATE calls SET reply=(SELECT reply FROM calls c WHERE c.no="
    f"CASE calls.no WHEN {CALL} THEN {OTHER} ELSE {CALL} END) WHERE no IN ({CALL}, {OTHER})"
)
COLUMNS = {
    **{"reply": "reply||' '", "digest": "'row1:0'", "key": "key||'0'", "cost": 7},
    **{"input_tokens": 1, "cached_tokens": 9, "run": "'somebody'", "judge": "'another'"},
    **{"finish": "'length'", "model": "'another'", "odds": "'{}'", "at": "'2001-01-01'"},
}
BY_SQL = {
    **{
        f"{name} altered": (f"UPDATE calls SET {name}={to} WHERE no={CALL}",)
        for name, to in COLUMNS.items()
    },
    "two replies swapped": (SWAPPED,),
    "two replies swapped with their digests": (
        SWAPPED,
        SWAPPED.replace("reply", "digest"),
    ),
    "a key of an unknown form": (f"UPDATE calls SET key='x' WHERE no={CALL}",),
    "a cost dropped": (f"UPDATE calls SET cost=NULL WHERE no={OTHER}",),
    "a call deleted": (f"DELETE FROM calls WHERE no={CALL}",),
    "the last call deleted": (f"DELETE FROM calls WHERE no={OTHER}",),
    "all calls deleted": ("DELETE FROM calls",),
    "a verdict altered": (
        f"UPDATE judgments SET body=replace(body, '3', '5') WHERE unit={JUDGED}",
    ),
    "a verdict made a failure": (
        f"UPDATE judgments SET status='failure', reason='schema' WHERE unit={JUDGED}",
    ),
    "a verdict given to another judge": (f"UPDATE judgments SET judge=1 WHERE unit={JUDGED}",),
    "a count of calls altered": (f"UPDATE judgments SET calls=9 WHERE unit={JUDGED}",),
    "re-asks altered": (f"UPDATE judgments SET reasks=9 WHERE unit={JUDGED}",),
    "verdicts swapped between units": (
        "UPDATE judgments SET unit=-unit",
        "UPDATE judgments SET unit=4+unit WHERE unit<0",
    ),
    "a unit's text altered": ("UPDATE units SET body=replace(body, 'long', 'short')",),
    "a unit's id altered": ("UPDATE units SET id='another' WHERE id='u1'",),
    "a unit's digest altered": ("UPDATE units SET digest=zeroblob(16) WHERE id='u1'",),
    "a unit deleted": ("DELETE FROM units WHERE id='u1'",),
    "a unit taken out of its run": ("DELETE FROM run_units WHERE position=2",),
    "units in another order": (
        "UPDATE run_units SET position=-position",
        "UPDATE run_units SET position=4+position",
    ),
    "a place with a dangling unit": ("UPDATE run_units SET unit=99 WHERE position=2",),
    "a manifest altered": ("UPDATE runs SET manifest=replace(manifest, '{', '{ ')",),
    "a run's name altered": ("UPDATE runs SET name='another'",),
    "a run's start altered": ("UPDATE runs SET started='2001-01-01'",),
    "a run of a dangling judging": ("UPDATE runs SET judging=99",),
    "a run deleted": ("DELETE FROM runs",),
    "a judging altered": ("UPDATE judgings SET record=replace(record, '\"en\"', '\"ru\"')",),
    "a judging deleted": ("DELETE FROM judgings",),
    "a prompt altered": ("UPDATE texts SET text=text||'Be kind.'",),
    "a prompt deleted": ("DELETE FROM texts",),
}
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


ON_SERVER = (
    *("reply altered", "a key of an unknown form", "cost altered", "a call deleted"),
    *("a verdict altered", "a verdict made a failure", "a unit's text altered", "a unit deleted"),
    *("a unit taken out of its run", "units in another order", "a manifest altered"),
    *("a run deleted", "a judging altered", "a prompt altered", "a prompt deleted"),
)


@pytest.fixture(scope="module")
def on_server(sound):
    """The same store on a server."""
    url = new_store_url()
    assert evenhand_here("store", "copy", "sqlite:evenhand.db", url, cwd=sound).returncode == 0
    return url


@pytest.mark.parametrize("damage", ON_SERVER)
def test_verify_finds_on_a_server(on_server, sound, damage):
    copy = new_store_url()
    assert evenhand_here("store", "copy", on_server, copy, cwd=sound).returncode == 0
    shared_server().execute(f"SET search_path={copy.rpartition('=')[2]}", *BY_SQL[damage])
    verified = evenhand_here("store", "verify", "--store", copy, "--json", cwd=sound)
    assert verified.returncode == 6, verified.stdout + verified.stderr
    assert json.loads(verified.stdout)["problems"]
