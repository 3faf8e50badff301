"""Whose file is it? What is not a store is refused, and left as it is."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import pytest

from evenhand.errors import StoreError
from evenhand.store.ports import IncomingUnit
from evenhand.store.session import VERSION
from evenhand.store.sqlite import APPLICATION, sqlite_archive, sqlite_store
from evenhand.store.verify import verify
from tests.contract.stores import begun_in


def incoming(number: int) -> list[IncomingUnit]:
    return [IncomingUnit(f"u{i}", f"a:{i + 1}", "{}") for i in range(number)]


def written(*statements: str) -> Callable[[Path], None]:
    """A database in which another hand has done this."""

    def write(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            for sql in statements:
                database.execute(sql)

    return write


def in_the_middle_of_a_write(path: Path) -> None:
    """A database with a journal that is yet to be rolled back."""
    written("CREATE TABLE bookmarks (url)", "INSERT INTO bookmarks VALUES (zeroblob(9000))")(path)
    work = path.with_name("work.db")
    shutil.copy(path, work)
    with closing(sqlite3.connect(work, isolation_level=None)) as database:
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN")
        database.execute("UPDATE bookmarks SET url = zeroblob(90000)")
        shutil.copy(work, path)
        shutil.copy(f"{work}-journal", f"{path}-journal")
    work.unlink()


FOREIGN: dict[str, Callable[[Path], object]] = {
    "tables": written("CREATE TABLE bookmarks (url)"),
    "a table called like ours": written("CREATE TABLE runs (id TEXT, name TEXT)"),
    "an application id alone": written("PRAGMA application_id = 7"),
    "nothing in it": written("VACUUM"),
    "a version alone": written("PRAGMA user_version = 3"),
    "a log": written("PRAGMA journal_mode = WAL", "CREATE TABLE moz_places (id INTEGER)"),
    "migrations of its own": written("CREATE TABLE migrations (name)"),
    "a journal to be rolled back": in_the_middle_of_a_write,
}
NOT_DATABASES: dict[str, Callable[[Path], object]] = {
    "a text": lambda path: path.write_text("this is no database, but long enough to be read" * 9),
    "a short text": lambda path: path.write_text("x"),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
}


def contents(folder: Path) -> dict[str, str]:
    """All files of a folder, each with a hash and the time of its last change."""
    return {
        file.name: f"{file.stat().st_mtime_ns} {blake2b(file.read_bytes()).hexdigest()}"
        for file in folder.iterdir()
        if file.is_file() and not file.is_symlink()
    }


@pytest.mark.parametrize("make", FOREIGN)
def test_a_database_of_another_program_is_refused_untouched(path: Path, make: str) -> None:
    FOREIGN[make](path)
    before = contents(path.parent)
    for opening in (sqlite_store, sqlite_archive):
        with pytest.raises(StoreError, match="another program") as refused:
            opening(path)
    assert refused.value.exit_code == 6
    assert contents(path.parent) == before


@pytest.mark.parametrize("make", NOT_DATABASES)
def test_what_is_no_database_is_refused_untouched(path: Path, make: str) -> None:
    NOT_DATABASES[make](path)
    before = contents(path.parent)
    with pytest.raises(StoreError, match="cannot be opened") as refused:
        sqlite_store(path)
    assert refused.value.exit_code == 6
    assert contents(path.parent) == before


def test_a_store_in_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        sqlite_store(tmp_path / "no/such/folder.db")


def test_a_store_says_whose_it_is(path: Path) -> None:
    sqlite_store(path).close()
    assert path.read_bytes()[68:72] == APPLICATION.to_bytes(4) == b"EVNH"


def test_a_store_is_its_owners_alone(path: Path) -> None:
    begun_in(sqlite_store(path), incoming(1))
    store = sqlite_store(path)
    assert store.archive.runs()
    assert {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {
        "store.db": 0o600,
        "store.db-wal": 0o600,
        "store.db-shm": 0o600,
    }
    store.close()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (f"UPDATE store SET version={VERSION + 1}", f"version {VERSION + 1}"),
        ("DROP TABLE store", "version unknown"),
    ],
    ids=["a later one", "from before there were versions"],
)
def test_a_store_of_another_version_is_refused_untouched(path: Path, sql: str, told: str) -> None:
    sqlite_store(path).close()
    written(sql)(path)
    before = contents(path.parent)
    for opening in (sqlite_store, sqlite_archive):
        with pytest.raises(StoreError, match=rf"another version of evenhand .*{told}") as refused:
            opening(path)
    assert refused.value.exit_code == 6
    assert "with the version that made it" in refused.value.advice
    assert contents(path.parent).items() >= before.items()


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    store = sqlite_store(path)
    assert store.archive.runs() == []
    store.close()


def test_a_store_that_was_emptied_does_not_lose_its_log_as_well(path: Path) -> None:
    path.touch()
    Path(f"{path}-wal").write_bytes(b"what was recorded last")
    before = contents(path.parent)
    with pytest.raises(StoreError, match=r"empty, and the log store\.db-wal beside it is not"):
        sqlite_store(path)
    assert contents(path.parent) == before


def test_a_store_with_a_second_name_is_refused(path: Path) -> None:
    """SQLite keeps a log beside each name, and neither is seen under the other."""
    sqlite_store(path).close()
    snapshot = path.with_name("snapshot.db")
    os.link(path, snapshot)
    before = contents(path.parent)
    for name in (path, snapshot):
        with pytest.raises(StoreError, match="second name"):
            sqlite_archive(name)
    assert contents(path.parent) == before
    snapshot.unlink()
    begun_in(sqlite_store(path), incoming(4))


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_link_beside_a_store_leads_to_no_file_of_the_users(path: Path, end: str) -> None:
    sqlite_store(path).close()
    treasure = path.parent / "treasure.txt"
    treasure.write_text("mine")
    Path(f"{path}{end}").symlink_to(treasure)
    try:
        store = sqlite_store(path)
        begun_in(store, incoming(1))
        store.close()
    except StoreError as error:
        assert error.exit_code == 6
    assert treasure.read_text() == "mine"


def test_who_writes_before_there_is_a_log_is_waited_for(path: Path) -> None:
    sqlite_store(path).close()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.3, other.execute, ["COMMIT"])
        ending.start()
        store = sqlite_store(path)
        ending.join()
    begun_in(store, incoming(1))
    store.close()


def test_many_make_one_store_at_the_same_time(path: Path) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        try:
            begun_in(sqlite_store(path), incoming(3))
        except StoreError as error:
            if "another process" not in str(error):
                errors.append(error)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    store = sqlite_store(path)
    assert len(store.archive.runs()) == 1
    assert verify(store.archive) == []
    store.close()
