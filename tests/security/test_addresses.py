"""What stands between `//` and the last `@` of an address is shown, logged and kept nowhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
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
from tests.suites import write_suite
from tests.unit.cli.conftest import CallCommand, call

__all__ = ["call"]

PASSWORDS = [
    *("a/s3cret", "a@s3cret", "a:s3cret", "a#s3cret", "a?s3cret", "a%s3cret", "12/s3cret"),
    *("ü/пароль/s3cret", "/@:#?%s3cret%?#:@/", "a//b@s3cret", "a?x=1/s3cret", "a%2Fs3cret"),
    *("a s3cret", "a\ns3cret", "a[s3cret", "a]s3cret", "a=s3cret&b"),
]
SCHEMES = ["postgresql", "postgres", "http", "https", "ray", "socks5", "mysql+x"]


def assert_untold(text: str) -> None:
    assert "s3cret" not in text and "judge" not in text, text


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_address_alone_and_in_a_message_is_shown_without_it(scheme: str, password: str) -> None:
    url = f"{scheme}://judge:{password}@host:1/db"
    assert hide_in_address(url) == f"{scheme}://***@host:1/db"
    assert_untold(shown_url(url))
    assert_untold(quote(url))
    assert_untold(quote(f"{scheme}://judge:{password}{'x' * 300}@host:1/db"))
    if password.split() == [password]:
        assert hide_credentials(f"cannot open {url}: no") == (
            f"cannot open {scheme}://***@host:1/db: no"
        )
        error = EvenhandError(f"no {url}", where=url, advice=f"Try {url}")
        assert_untold(f"{error} {error.args} {error.what} {error.where} {error.advice}")
        assert_untold(str(CallError("transport", f"{url} does not answer")))


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
def test_what_is_no_password_is_left_as_it_is(text: str) -> None:
    assert hide_credentials(text) == text


SPLIT = re.compile(r"[/?#@\[\]]")
"""What ends the part of an address that holds a password."""


@pytest.mark.parametrize("password", [p for p in PASSWORDS if "\n" not in p])
def test_a_password_of_any_signs_reaches_the_driver_and_nobody_else(password: str) -> None:
    if SPLIT.search(password):
        with pytest.raises(UsageError) as refused:
            read_address(f"postgresql://judge:{password}@127.0.0.1:5432/db?schema=a")
        assert_untold(str(refused.value))
        password = percent_encode(password, safe="")
    address = read_address(f"postgresql://judge:{password}@127.0.0.1:5432/db?schema=a")
    assert (address.hosts, address.database) == (("127.0.0.1:5432",), "db")
    given = asyncpg.connect_utils._parse_connect_dsn_and_args(
        dsn=address.dsn,
        **dict.fromkeys(
            ("host", "port", "user", "password", "passfile", "database", "ssl", "direct_tls")
        ),
        server_settings=None,
        target_session_attrs=None,
        krbsrvname=None,
        gsslib=None,
        service=None,
        servicefile=None,
    )[1]
    assert (given.user, given.password) == ("judge", unquote(password))
    assert_untold(repr(address) + address.shown)


@pytest.mark.parametrize(
    ("url", "hosts", "database"),
    [
        ("postgresql://h:5432/db?user=a%40b", ("h:5432",), "db"),
        ("postgresql:///db?host=h&user=u%40realm", ("h",), "db"),
        ("postgresql://u@h1:1,h2/db", ("h1:1", "h2"), "db"),
        ("postgresql://u@[::1]:5432/db", ("[::1]:5432",), "db"),
    ],
)
def test_hosts_and_database_of_an_address_are_read(
    url: str, hosts: tuple[str, ...], database: str
) -> None:
    address = read_address(url)
    assert (address.hosts, address.database) == (hosts, database)


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("command", [("run",), ("runs",), ("show",), ("store", "verify")])
def test_no_error_of_a_command_shows_the_password_of_a_store(
    call: CallCommand, tmp_path: Path, command: tuple[str, ...], password: str
) -> None:
    write_suite(tmp_path, 1)
    outcome = call(*command, "--store", f"postgresql://judge:{password}@127.0.0.1:9/db")
    assert outcome.code in (2, 6), outcome.err
    assert_untold(outcome.out + outcome.err)


ODD_PORTS = ["65536", "99999", "1000000000000000000000", "x", "-1", "0"]


@pytest.mark.parametrize("port", ODD_PORTS)
def test_a_port_that_is_none_is_a_wrong_address_of_a_store(
    call: CallCommand, tmp_path: Path, port: str
) -> None:
    write_suite(tmp_path, 1)
    places = (f"127.0.0.1:{port}/db", f"u:p@h1:1,h2:{port}/db", f"[::1]:{port}/db")
    for place in (*places, f"/db?host=h&port={port}"):
        outcome = call("runs", "--store", f"postgresql://{place}")
        assert (outcome.code, "from 1 to 65535" in outcome.err) == (2, True), outcome.err


@pytest.mark.parametrize("port", ["65536", "1000000000000000000000", "x", "-1"])
@pytest.mark.parametrize("place", ["suite", "environment", "proxy"])
def test_a_port_that_is_none_is_a_wrong_address_of_a_judge(
    call: CallCommand,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    port: str,
    place: str,
) -> None:
    judge = {"model": "openai/m"}
    if place == "suite":
        judge["base_url"] = f"http://127.0.0.1:{port}/v1"
    elif place == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    else:
        judge["base_url"] = "http://example.invalid/v1"
        monkeypatch.setenv("http_proxy", f"http://judge:s3cret@127.0.0.1:{port}")
    write_suite(tmp_path, 1, judge)
    for command in (("run",), ("run", "--dry-run")):
        outcome = call(*command)
        assert outcome.code == 2, outcome.err
        assert_untold(outcome.err.replace("[[judges]]", ""))


@pytest.mark.parametrize("password", PASSWORDS)
def test_no_error_shows_the_password_of_the_address_of_a_judge(
    call: CallCommand, tmp_path: Path, password: str
) -> None:
    url = f"https://me:{password}@127.0.0.1:9/v1"
    write_suite(tmp_path, 1)
    text = (tmp_path / "evenhand.toml").read_text()
    line = f'model = "openai/m"\nbase_url = {json.dumps(url, ensure_ascii=False)}\n'
    start = text.index("[[judges]]\n") + len("[[judges]]\n")
    (tmp_path / "evenhand.toml").write_text(text[:start] + line, encoding="utf-8")
    outcome = call("run")
    assert outcome.code == 2, outcome.err
    assert "s3cret" not in outcome.out + outcome.err


def test_a_traceback_shows_none(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("lost postgresql://judge:a/s3cret@host/db")

    monkeypatch.setattr("evenhand.cli.show.archive_at", fail)
    outcome = call("runs")
    assert (outcome.code, "***@host/db" in outcome.err) == (70, True)
    assert_untold(outcome.err)


def test_python_shows_none(tmp_path: Path) -> None:
    with pytest.raises(evenhand.EvenhandError) as refused:
        evenhand.open(store="postgresql://judge:a/s3cret@127.0.0.1:9/db")
    assert_untold(str(refused.value))
    with pytest.raises(UsageError) as unknown:
        evenhand.open(store="mysql://judge:a/s3cret@127.0.0.1:9/db")
    assert_untold(str(unknown.value))
