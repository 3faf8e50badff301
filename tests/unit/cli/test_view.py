"""`evenhand view` as a user calls it."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
from contextlib import contextmanager

import httpx
import pytest

from tests.suites import evenhand_here, judged, started, write_suite
from tests.waiting import PATIENCE

TOKEN = "so-it-is-said-here"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a judged suite; no test here changes what is in its store."""
    suite = write_suite(tmp_path_factory.mktemp("viewed"), 2)
    asyncio.run(judged(suite))
    return suite


@contextmanager
def viewed(folder, *options):
    """The command, under way, and the address that it prints."""
    view = started("view", "--no-open", *options, cwd=folder)
    try:
        address = re.search(r"http://\S+", view.stderr.readline())
        yield view, address[0]
    finally:
        view.terminate()
        view.communicate(timeout=PATIENCE)


def refused(folder, *options, code=2):
    done = evenhand_here("view", "--no-open", *options, cwd=folder)
    assert done.returncode == code
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_at_a_free_port_until_it_is_stopped(folder, how):
    with viewed(folder) as (view, base):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", base)
        with httpx.Client(base_url=base, timeout=PATIENCE) as reader:
            assert reader.get("").status_code == 200
            assert reader.post("").status_code == 405
        view.send_signal(how)
        assert "Traceback" not in view.stderr.read()
        assert view.wait(PATIENCE) == (0 if how is signal.SIGINT else -signal.SIGTERM)
        with pytest.raises(httpx.ConnectError):
            httpx.get(base)


def test_bound_elsewhere_every_request_needs_the_token(folder):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        assert "--token" in refused(folder, "--host", host)
    with viewed(folder, "--host", "0.0.0.0", "--token", TOKEN) as (_, address):
        base, _, query = address.partition("?")
        assert query == f"token={TOKEN}"
        base = base.replace("0.0.0.0", "127.0.0.1")
        with httpx.Client(follow_redirects=True, timeout=PATIENCE) as reader:
            assert reader.get(base).status_code == 401
            assert reader.get(f"{base}?{query}").status_code == 200
            assert reader.get(base).status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_that_is_short_or_cannot_be_sent_is_refused(folder, host):
    for token in ("x", "ключ-ключ-ключ-ключ", "a;b" * 9, "a&b c" * 9, "fifteen-letters"):
        error = refused(folder, "--host", host, "--token", token)
        assert "16 or more" in error
    refused(folder, "--host", host, "--token", "a" * 20 + "\n")


def test_a_store_or_a_port_that_cannot_be_had_is_said(folder, tmp_path):
    refused(tmp_path, code=6)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port}" in refused(folder, "--port", port)
