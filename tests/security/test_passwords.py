"""A password in an address is told to the server that the user named, and is shown, logged and
kept nowhere: it stands between `//` and the last `@`, or in a parameter."""

from __future__ import annotations

import json
import os
from itertools import cycle
from urllib.parse import quote as percent_encode
from urllib.parse import unquote

import asyncpg
import pytest

import evenhand
from evenhand.errors import (
    CallError,
    EvenhandError,
    UsageError,
    hide_credentials,
    hide_in_address,
    quote,
)
from evenhand.store.address import read_address, shown_url
from evenhand.suite import load_suite
from tests.cases import cases
from tests.postgres import LOCKED, PASSWORD, USER, new_store_url, shared_server
from tests.suites import write_suite
from tests.unit.cli.conftest import call

__all__ = ["call"]

PASSWORDS = [
    *("a/s3cret", "a@s3cret", "a:s3cret", "a#s3cret", "a?s3cret", "a%s3cret", "12/s3cret"),
    *("ü/пароль/s3cret", "/@:#?%s3cret%?#:@/", "a//b@s3cret", "a?x=1/s3cret", "a%2Fs3cret"),
    *("a s3cret", "a\ns3cret", "a[s3cret", "a]s3cret", "a=s3cret&b"),
]
SCHEMES = ["postgresql", "postgres", "http", "https", "ray", "socks5", "mysql+x"]
QUOTED = percent_encode(PASSWORD, safe="")
PARTS = (PASSWORD, QUOTED, "s3cret", "w@rd", "w%40rd", "somebody")


def assert_untold(text):
    assert not [part for part in PARTS if part in text], text


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_address_alone_and_in_a_message_is_shown_without_it(scheme):
    for password in PASSWORDS:
        url = f"{scheme}://somebody:{password}@host:1/db"
        hidden = f"{scheme}://***@host:1/db"
        assert hide_in_address(url) == hidden
        long = f"{scheme}://somebody:{password}{'x' * 300}@host:1/db"
        assert_untold(f"{shown_url(url)} {quote(url)} {quote(long)}")
        if password.split() == [password]:
            assert hide_credentials(f"cannot open {url}: no") == f"cannot open {hidden}: no"
            error = EvenhandError(f"no {url}", where=url, advice=f"Try {url}")
            assert_untold(f"{error} {error.args} {error.what} {error.where} {error.advice}")
            assert_untold(str(CallError("transport", f"{url} does not answer")))


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
def test_an_address_of_any_form_is_shown_without_it(url):
    assert_untold(shown_url(url))
    try:
        address = read_address(url)
    except UsageError as error:
        assert_untold(str(error))
    else:
        assert_untold(repr(address) + address.shown)


@pytest.mark.parametrize(
    "text",
    [
        "write to me@example.com, or see https://example.com/a",
        "sqlite:/home/me@work/evenhand.db cannot be opened",
        "https://example.com/v1 refused: ask support@example.com",
        "C:/Users/me@work/evenhand.db",
        "It looks like postgresql://USER@HOST:PORT/DATABASE, e.g. postgresql://me@localhost/x.",
        "Set it to http://user:password@host:port (with % escapes).",
        "",
    ],
)
def test_what_is_no_password_is_left_as_it_is(text):
    assert hide_credentials(text) == text


@pytest.mark.parametrize("password", [p for p in PASSWORDS if "\n" not in p])
def test_a_password_of_any_signs_reaches_the_driver_and_nobody_else(password):
    if set(password) & set("/?#@[]"):  # they end the part of an address that holds a password
        with pytest.raises(UsageError) as refused:
            read_address(f"postgresql://somebody:{password}@127.0.0.1:5432/db?schema=a")
        assert_untold(str(refused.value))
        password = percent_encode(password, safe="")
    address = read_address(f"postgresql://somebody:{password}@127.0.0.1:5432/db?schema=a")
    names = "host port user password passfile database ssl direct_tls server_settings"
    names += " target_session_attrs krbsrvname gsslib service servicefile"
    given = asyncpg.connect_utils._parse_connect_dsn_and_args(
        dsn=address.dsn, **dict.fromkeys(names.split())
    )[1]
    assert (given.user, given.password) == ("somebody", unquote(password))
    assert_untold(repr(address) + address.shown)


@cases
def test_hosts_and_database_of_an_address_are_read(url, hosts, database):
    address = read_address(url)
    assert ([*address.hosts], address.database) == (hosts, database)


REFUSED = [
    *(f"somebody:{password}@127.0.0.1:9/db" for password in PASSWORDS),
    *(f"u:{QUOTED}@{place}" for place in ("no-such-host.invalid/db", "127.0.0.1:x/db")),
]
COMMANDS = cycle(["run", "runs", "show", "store verify"])


@pytest.mark.parametrize(("address", "command"), list(zip(REFUSED, COMMANDS, strict=False)))
def test_no_error_of_a_command_shows_the_password_of_a_store(call, tmp_path, command, address):
    write_suite(tmp_path, 1)
    outcome = call(command, "--store", f"postgresql://{address}")
    assert outcome.code in (2, 6), outcome.err
    assert_untold(outcome.out + outcome.err)


@pytest.mark.parametrize("port", ["65536", "1000000000000000000000", "x", "-1"])
def test_a_port_that_is_none_is_a_wrong_address(call, tmp_path, monkeypatch, port):
    """Of a store, and of a judge by its suite, its environment or its proxy."""
    write_suite(tmp_path, 1)
    places = (f"127.0.0.1:{port}/db", f"u:p@h1:1,h2:{port}/db", f"[::1]:{port}/db")
    for place in (*places, "127.0.0.1:0/db", f"/db?host=h&port={port}"):
        outcome = call("runs --store", f"postgresql://{place}")
        assert (outcome.code, "from 1 to 65535" in outcome.err) == (2, True), outcome.err
    url = f"http://127.0.0.1:{port}/v1"
    proxy = f"http://somebody:s3cret@127.0.0.1:{port}"
    for address, environ in (
        ({"base_url": url}, {}),
        ({}, {"OPENAI_BASE_URL": url}),
        ({"base_url": "http://example.invalid/v1"}, {"http_proxy": proxy}),
    ):
        write_suite(tmp_path, 1, {"model": "openai/m", **address})
        for flags in ((), ("--dry-run",)):
            with monkeypatch.context() as patch:
                for name, value in environ.items():
                    patch.setenv(name, value)
                outcome = call("run", *flags)
            assert outcome.code == 2, outcome.err
            assert_untold(outcome.err)


@pytest.mark.parametrize("password", PASSWORDS)
def test_no_error_shows_the_password_of_the_address_of_a_judge(call, tmp_path, password):
    write_suite(tmp_path, 1)
    text = (tmp_path / "evenhand.toml").read_text()
    url = json.dumps(f"https://me:{password}@127.0.0.1:9/v1", ensure_ascii=False)
    head = text.partition("[[judges]]\n")[0]
    judge = f'[[judges]]\nmodel = "openai/m"\nbase_url = {url}\n'
    (tmp_path / "evenhand.toml").write_text(head + judge, encoding="utf-8")
    outcome = call("run")
    assert outcome.code == 2, outcome.err
    assert "s3cret" not in outcome.out + outcome.err


def test_a_traceback_shows_none(call, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("lost postgresql://somebody:a/s3cret@host/db")

    monkeypatch.setattr("evenhand.cli.show.archive_at", fail)
    outcome = call("runs")
    assert (outcome.code, "***@host/db" in outcome.err) == (70, True)
    assert_untold(outcome.err)


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_python_shows_none(tmp_path, scheme):
    with pytest.raises(evenhand.EvenhandError) as refused:
        evenhand.open(store=f"{scheme}://somebody:a/s3cret@127.0.0.1:9/db")
    assert_untold(str(refused.value))


# A server that there is


def with_password(url):
    return url.replace(f"{USER}@", f"{USER}:{QUOTED}@")


def test_no_command_prints_or_keeps_it(call, tmp_path):
    url = with_password(new_store_url())
    write_suite(tmp_path, 2, store={"url": url})
    assert QUOTED in (tmp_path / "evenhand.toml").read_text()
    options = cycle([("--store", url), (f"--store={url}",), ()])
    commands = ["run", "run", "run", "runs --json", "show", "settle", "settle"]
    for command in (*commands, "report -o r.html", "export -o all.jsonl --full", "show", "doctor"):
        outcome = call(command, *(next(options) if command != "doctor" else ()))
        assert outcome.code in (0, 1), outcome.err
        assert_untold(outcome.out + outcome.err)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "evenhand.toml":
            assert_untold(path.read_text(encoding="utf-8", errors="replace"))
    schema = url.partition("schema=")[2]
    held = shared_server().execute(
        f"SELECT CAST(r AS TEXT) FROM {schema}.runs r UNION ALL"
        f" SELECT CAST(g AS TEXT) FROM {schema}.judgings g"
    )
    assert_untold(str(held))


@pytest.fixture(scope="module")
def locked():
    """A server with a database whose users need a password."""
    server = shared_server()
    if not server.execute(f"SELECT 1 FROM pg_database WHERE datname='{LOCKED}'"):
        server.execute(f"CREATE DATABASE {LOCKED}")
        server.execute(f"ALTER ROLE {USER} PASSWORD '{PASSWORD}'")
    return server


@pytest.mark.parametrize("way", ["address", "PGPASSWORD", "PGPASSFILE", "none", "wrong"])
def test_it_is_given_as_everywhere_else(call, tmp_path, locked, monkeypatch, way):
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
    outcome = call("run --store", with_password(url) if way == "address" else url)
    assert outcome.code == (6 if way in ("none", "wrong") else 0), outcome.err
    assert_untold(outcome.out + outcome.err)
    assert not outcome.code or "PGPASSWORD" in outcome.err


@pytest.mark.parametrize(
    "place",
    [
        "u@db.example.com/x",
        "u@127.0.0.1,db.example.com/x",
        "u@localhost%2Cdb.example.com/x",
        "/x?host=db.example.com",
        "u@127.0.0.1/x?passfile=/home/me/.pgpass",
        "u@127.0.0.1/x?service=mine",
        "u@127.0.0.1/x?sslkey=/home/me/.ssh/id_rsa",
    ],
)
def test_a_server_that_only_the_suite_names_is_not_spoken_to(tmp_path, place):
    url = f"postgresql://{place}"
    write_suite(tmp_path, 1, store={"url": url})
    with pytest.raises(UsageError) as caught:
        _ = load_suite(tmp_path, {}).store_url
    assert caught.value.key in ("suite.strange_host", "suite.strange_setting")
    assert "--store" in caught.value.advice
    assert caught.value.where.startswith(str(tmp_path))
    assert load_suite(tmp_path, {"EVENHAND_STORE__URL": url}).store_url == url
    assert load_suite(tmp_path, {}, {"store": {"url": url}}).store_url == url


def test_one_on_this_machine_or_one_that_is_trusted_is(tmp_path, monkeypatch):
    monkeypatch.setenv("EVENHAND_TRUST_HOSTS", "db.example.com")
    for place in ("127.0.0.1:5432", "localhost", "[::1]:5432", "db.example.com:5433", ""):
        url = f"postgresql://{place}/x?schema=team&sslmode=verify-full"
        write_suite(tmp_path, 1, store={"url": url})
        assert load_suite(tmp_path, {}).store_url == url
    assert "PGPASSWORD" not in os.environ
