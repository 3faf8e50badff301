"""A store by its address: the one place that knows which databases there are."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from evenhand.errors import StoreMissing, UsageError
from evenhand.store.address import FORM, is_postgres, read_address
from evenhand.store.archive import Archive
from evenhand.store.copy import Copied, Copy, Progress
from evenhand.store.ledger import Store
from evenhand.store.rows import digest
from evenhand.store.session import Session
from evenhand.words import Code, Sentence

MEMORY = "sqlite::memory:"
"""The address of a store that vanishes when it is closed."""


def open_store(url: str, folder: Path | None = None, *, must_exist: bool = False) -> Store:
    """Return the store behind a URL such as `sqlite:evenhand.db`, made if there is none, unless it
    must exist; raise StoreError."""
    if is_postgres(url):
        store: Store = _postgres().postgres_store(url, must_exist=must_exist)
        return store
    from evenhand.store.sqlite import sqlite_store

    if url == MEMORY:
        return sqlite_store(None)
    return sqlite_store(_existing(url, folder) if must_exist else store_path(url, folder))


def open_archive(url: str, folder: Path | None = None) -> Archive:
    """Return the archive of a store, for reading only; raise StoreError if there is none."""
    if is_postgres(url):
        archive: Archive = _postgres().postgres_archive(url)
        return archive
    from evenhand.store.sqlite import sqlite_archive

    return sqlite_archive(_existing(url, folder))


def copy_store(source: str, target: str, progress: Progress) -> Copied:
    """Copy all that one store holds into another, which should then be checked by `verify`; raises
    StoreError."""
    archive = open_archive(source)
    try:
        if _place(source) == _place(target):
            raise UsageError(Sentence("runs.same_store"))
        archive.set_frozen(True)
        session = _connect(target)
        try:
            session.require_writable()
            return Copy(archive.session, session, digest(_place(source))[:12], progress).make()
        finally:
            session.close()
    finally:
        archive.close()


def _connect(url: str) -> Session:
    """Return a session of a store, which is made if there is none."""
    if is_postgres(url):
        session: Session = _postgres().connect(url)
        return session
    from evenhand.store.sqlite import SqliteFile

    return SqliteFile(store_path(url)).connect()


def _place(url: str) -> str:
    """Return what identifies a store: the fingerprint of its address in PostgreSQL, else its
    path."""
    return read_address(url).fingerprint if is_postgres(url) else str(store_path(url).resolve())


def _postgres() -> ModuleType:
    """Return the module of the PostgreSQL store; raise UsageError where its driver is not
    installed."""
    try:
        return import_module("evenhand.store.postgres")
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise UsageError(Sentence("runs.no_postgres_driver")) from None


def _existing(url: str, folder: Path | None) -> Path:
    path = store_path(url, folder)
    if not path.exists():
        raise StoreMissing(Sentence("runs.no_store"), where=str(path))
    return path


def store_path(url: str, folder: Path | None = None) -> Path:
    """Return the file of a store; raise UsageError for an address of an unknown kind."""
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite" or not rest or "\0" in rest:
        raise UsageError(Sentence("runs.unknown_store", address=url, form=Code(FORM)))
    return (folder or Path()) / rest.removeprefix("//")
