"""The password of a PostgreSQL store is told to the server alone, and to that server alone which
the user named."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest

from evenhand.errors import UsageError
from evenhand.store.address import read_address, shown_url
from evenhand.suite import load_suite
from tests.postgres import LOCKED, PASSWORD, USER, PostgresServer, new_store_url, shared_server
from tests.suites import write_suite
from tests.unit.cli.conftest import CallCommand, call

__all__ = ["call"]

QUOTED = quote(PASSWORD, safe="")
PARTS = (PASSWORD, QUOTED, "s3cret", "w@rd", "w%40rd")


def with_password(url: str) -> str:
    return url.replace(f"{USER}@", f"{USER}:{QUOTED}@")


def assert_untold(text: str) -> None:
    assert not [part for part in PARTS if part in text], text


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{QUOTED}@host:1/db?schema=a",
        f"postgres://u:{QUOTED}@host/db?sslmode=require&password={QUOTED}",
        f"postgresql:///db?host=h&user=u&password={QUOTED}&sslpassword={QUOTED}",
        f"postgresql://u:{PASSWORD}",
        f"postgresql://u:{QUOTED}@[half/db",
        f"postgresql://u:{QUOTED}@host:port/db",
    ],
)
def test_an_address_is_shown_without_it(url: str) -> None:
    assert_untold(shown_url(url))
    try:
        address = read_address(url)
    except UsageError as error:
        assert_untold(str(error))
    else:
        assert_untold(repr(address))
        assert_untold(address.shown)


def test_no_command_prints_or_keeps_it(call: CallCommand, tmp_path: Path) -> None:
    server = shared_server()
    url = with_password(new_store_url())
    write_suite(tmp_path, 2, store={"url": url})
    before = (tmp_path / "evenhand.toml").read_text()
    assert QUOTED in before
    named = (("--store", url), (f"--store={url}",), ())
    for options in named:
        for command in (("run",), ("runs", "--json"), ("show",), ("settle",), ("doctor",)):
            flags = () if command == ("doctor",) else options
            outcome = call(*command, *flags)
            assert outcome.code in (0, 1), outcome.err
            assert_untold(outcome.out + outcome.err)
    call("report", "-o", "report.html", "--store", url)
    call("export", "-o", "all.jsonl", "--full", "--store", url)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "evenhand.toml":
            assert_untold(path.read_text(encoding="utf-8", errors="replace"))
    schema = url.partition("schema=")[2]
    held = server.execute(
        f"SELECT CAST(r AS TEXT) FROM {schema}.runs r UNION ALL"
        f" SELECT CAST(g AS TEXT) FROM {schema}.judgings g"
    )
    assert_untold(str(held))


@pytest.mark.parametrize("place", ["127.0.0.1:9/db", "no-such-host.invalid/db", "127.0.0.1:x/db"])
def test_no_error_prints_it(call: CallCommand, tmp_path: Path, place: str) -> None:
    write_suite(tmp_path, 1)
    outcome = call("run", "--store", f"postgresql://u:{QUOTED}@{place}")
    assert outcome.code in (2, 6)
    assert_untold(outcome.out + outcome.err)


@pytest.fixture(scope="module")
def locked() -> PostgresServer:
    """A server with a database whose users need a password."""
    server = shared_server()
    if not server.execute(f"SELECT 1 FROM pg_database WHERE datname='{LOCKED}'"):
        server.execute(f"CREATE DATABASE {LOCKED}")
        server.execute(f"ALTER ROLE {USER} PASSWORD '{PASSWORD}'")
    return server


@pytest.mark.parametrize("way", ["address", "PGPASSWORD", "PGPASSFILE", "none", "wrong"])
def test_it_is_given_as_everywhere_else(
    call: CallCommand,
    tmp_path: Path,
    locked: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    write_suite(tmp_path, 1)
    monkeypatch.setenv("HOME", str(tmp_path))
    url = locked.url(f"by_{way.lower()}", database=LOCKED)
    if way in ("PGPASSWORD", "wrong"):
        monkeypatch.setenv("PGPASSWORD", PASSWORD if way == "PGPASSWORD" else "another")
    if way == "PGPASSFILE":
        file = tmp_path / "passwords"
        file.write_text(f"127.0.0.1:{locked.port}:{LOCKED}:{USER}:{PASSWORD}\n")
        file.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(file))
    outcome = call("run", "--store", with_password(url) if way == "address" else url)
    assert outcome.code == (6 if way in ("none", "wrong") else 0), outcome.err
    assert_untold(outcome.out + outcome.err)
    if outcome.code:
        assert "PGPASSWORD" in outcome.err


STRANGERS = [
    "postgresql://u@db.example.com/x",
    "postgresql://u@127.0.0.1,db.example.com/x",
    "postgresql://u@localhost%2Cdb.example.com/x",
    "postgresql:///x?host=db.example.com",
    "postgresql://u@127.0.0.1/x?passfile=/home/me/.pgpass",
    "postgresql://u@127.0.0.1/x?service=mine",
    "postgresql://u@127.0.0.1/x?sslkey=/home/me/.ssh/id_rsa",
]


@pytest.mark.parametrize("url", STRANGERS)
def test_a_server_that_only_the_suite_names_is_not_spoken_to(tmp_path: Path, url: str) -> None:
    write_suite(tmp_path, 1, store={"url": url})
    with pytest.raises(UsageError, match="you have not named") as refused:
        _ = load_suite(tmp_path, {}).store_url
    assert "--store" in refused.value.advice
    assert refused.value.where.startswith(str(tmp_path))
    assert load_suite(tmp_path, {"EVENHAND_STORE__URL": url}).store_url == url
    assert load_suite(tmp_path, {}, {"store": {"url": url}}).store_url == url


def test_one_on_this_machine_or_one_that_is_trusted_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_TRUST_HOSTS", "db.example.com")
    for place in ("127.0.0.1:5432", "localhost", "[::1]:5432", "db.example.com:5433", ""):
        url = f"postgresql://{place}/x?schema=team&sslmode=verify-full"
        write_suite(tmp_path, 1, store={"url": url})
        assert load_suite(tmp_path, {}).store_url == url
    assert "PGPASSWORD" not in os.environ
