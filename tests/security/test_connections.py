"""Who says nothing on a connection, little at a time, or does not read, keeps the web interface
from nobody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from evenhand.web.connections import ConnectionLimits
from tests.suites import write_suite
from tests.unit.web.serving import TOKEN, Site, judge_all, served
from tests.waiting import PATIENCE

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1"
SHORT = ConnectionLimits(request_seconds=0.05, reading_seconds=0.05)
LONG = ConnectionLimits(request_seconds=PATIENCE, reading_seconds=PATIENCE, most=8)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_suite(tmp_path_factory.mktemp("held"), 2)
    judge_all(folder)
    return folder / "evenhand.db"


def connected(site: Site, sent: bytes = HALF) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE)
    line.sendall(sent)
    return line


def is_ended(line: socket.socket) -> bool:
    """Whether the other side has closed; waits until it says anything."""
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


@contextmanager
def crowd(site: Site, number: int, sent: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as lines:
        yield [lines.enter_context(connected(site, sent)) for _ in range(number)]


POST = (
    f"POST /api/runs/latest/settle HTTP/1.1\r\nHost: 127.0.0.1:{{port}}\r\n"
    f"X-Evenhand-Token: {TOKEN}\r\nContent-Length: 1000\r\n\r\nx"
)


@pytest.mark.parametrize("sent", ["", HALF.decode(), POST], ids=["nothing", "half", "body"])
def test_half_open_connections_make_room_for_an_honest_page(store: Path, sent: str) -> None:
    with served(store, limits=LONG) as site:
        half = sent.format(port=site.port).encode()
        with crowd(site, 100, half) as lines:
            assert site.get("/api/runs").status_code == 200
            # The honest one took a place too; the oldest went first, the youngest are still there.
            assert all(is_ended(line) for line in lines[: 100 - LONG.most])
            if sent == HALF.decode():
                lines[-1].sendall(f":{site.port}\r\nConnection: close\r\n\r\n".encode())
                assert lines[-1].recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize("sent", ["", HALF.decode(), POST], ids=["nothing", "half", "body"])
def test_a_request_that_does_not_come_is_not_waited_for(store: Path, sent: str) -> None:
    with (
        served(store, limits=SHORT) as site,
        connected(site, sent.format(port=site.port).encode()) as line,
    ):
        assert is_ended(line)


def test_a_request_that_comes_letter_by_letter_is_cut_off(store: Path) -> None:
    with served(store, limits=SHORT) as site, connected(site) as line:
        line.settimeout(0.01)
        with pytest.raises(ConnectionError):
            while True:  # as long as somebody listens
                line.sendall(b"x")
                with suppress(TimeoutError):
                    assert is_ended(line)
                    raise ConnectionResetError


def test_an_answer_that_is_not_read_is_not_kept(store: Path) -> None:
    request = "GET /static/page.css HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    limits = ConnectionLimits(request_seconds=PATIENCE, reading_seconds=0.05)
    with served(store, limits=limits) as site:
        line = connected(site, b"")
        with line, pytest.raises(ConnectionError):
            while True:  # until the other side has answers to spare, and gives up
                line.sendall(request.format(port=site.port).encode() * 100)


def test_a_kept_connection_has_its_time_for_every_request(store: Path) -> None:
    with (
        served(store, limits=LONG) as site,
        closing(HTTPConnection("127.0.0.1", site.port)) as kept,
    ):
        for _ in range(3):
            kept.request("GET", "/api/runs")
            answer = kept.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)


def test_a_change_whose_request_breaks_off_is_not_made(store: Path) -> None:
    with served(store, limits=LONG) as site:
        before = site.json("/api/runs")
        with connected(site, POST.format(port=site.port).encode()):
            pass
        assert site.json("/api/runs") == before
