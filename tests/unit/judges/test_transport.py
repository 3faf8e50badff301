"""The transport of remote judges: where it goes, what it reads, how responses end, deadlines, and
what it leaves alone."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from yarl import URL

from evenhand import limits
from evenhand.errors import CallLost, UsageError
from evenhand.judges.transport import HttpResponse, Transport, make_socket
from tests.provider import Provider, completion, sending
from tests.unit.judges.conftest import Serve, serving

WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"


class Client(Transport):
    """Posts to its own address."""

    async def post(self, body: bytes) -> HttpResponse:
        return await self.send("POST", self._url, body)


@asynccontextmanager
async def opened(
    url: str, *, seconds: float = 10.0, proxy: str = "", most_bytes: int = 1 << 20, **rest: Any
) -> AsyncIterator[Client]:
    environment = {"http_proxy": proxy, "https_proxy": proxy} if proxy else {}
    client = Client(
        URL(url),
        secret=None,
        environment=environment,
        seconds=seconds,
        most_bytes=most_bytes,
        **rest,
    )
    try:
        yield client
    finally:
        await client.close()


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """One whole request."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head + await reader.readexactly(int(size or 0))


def answering(*answers: bytes, then_close: bool = False) -> Serve:
    """So many answers on each connection, one for each request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await request_of(reader)
            writer.write(answer)
        if not then_close:
            await reader.read()

    return serve


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        WELL,
        CHUNKED + b"2\r\nwe\r\n2;name=value\r\nll\r\n0\r\nX-Trailer: 1\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + WELL,
    ],
    ids=["length", "chunked", "hints"],
)
async def test_an_answer_ends_where_it_says(answer: bytes) -> None:
    async with serving(answering(answer)) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        assert (await client.post(b"{}")).body == b"well"


async def test_what_follows_a_body_has_no_say_in_how_it_is_read() -> None:
    answer = CHUNKED + b"4\r\nwell\r\n0\r\nContent-Encoding: gzip\r\n\r\n"
    async with serving(answering(answer)) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        answered = await client.post(b"{}")
    assert (answered.body, answered.headers.get("Content-Encoding")) == (b"well", None)


async def test_what_follows_a_body_is_bounded() -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request_of(reader)
        writer.write(CHUNKED + b"4\r\nwell\r\n0\r\nX: ")
        while sent < 64 << 20:
            writer.write(b"x" * (1 << 16))
            sent += 1 << 16
            await writer.drain()

    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        with pytest.raises(CallLost, match="broke"):
            await client.post(b"{}")
    assert sent < 64 << 20


async def test_an_answer_of_no_stated_length_ends_with_its_connection() -> None:
    serve = answering(b"HTTP/1.1 200 OK\r\n\r\nwell", then_close=True)
    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        assert (await client.post(b"{}")).body == b"well"


async def test_a_call_that_is_cancelled_ends_its_connection() -> None:
    is_asked, is_over = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        is_asked.set()
        with suppress(ConnectionError):
            await reader.read()
        is_over.set()

    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        call = asyncio.create_task(client.post(b"{}"))
        await is_asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await is_over.wait()


async def test_an_answer_that_is_late_is_billed_and_others_go_on() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"quick" in await request_of(reader):
            writer.write(WELL)
        await reader.read()

    async with (
        serving(serve) as port,
        opened(f"http://127.0.0.1:{port}/v1", seconds=0.2) as client,
    ):
        calls = [asyncio.create_task(client.post(b"slow")) for _ in range(3)]
        assert (await client.post(b"quick")).body == b"well"
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(lost, CallLost) and lost.reason == "timeout" for lost in outcomes)
    assert all(isinstance(lost, CallLost) and lost.billed for lost in outcomes)


async def test_a_head_without_end_is_given_up() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            writer.write(b"x" * 4096)
            await writer.drain()

    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        with pytest.raises(CallLost, match="no valid HTTP"):
            await client.post(b"{}")


async def test_other_requests_go_to_the_same_origin_and_to_no_other() -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            requests.append(await request_of(reader))
            writer.write(WELL)

    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1/chat") as client:
        url = URL(f"http://127.0.0.1:{port}/v1/files?after=a%20b")
        assert (await client.send("GET", url)).body == b"well"
        await client.send("POST", url, b"abc", {"content-type": "text/plain"})
        with pytest.raises(UsageError, match="where the key may go"):
            await client.send("GET", URL("http://127.0.0.1:1/v1/files"))
    assert requests[0].startswith(b"GET /v1/files?after=a%20b HTTP/1.1\r\n")
    assert requests[1].endswith(b"\r\n\r\nabc") and b"\r\nContent-Length: 3\r\n" in requests[1]
    assert b"application/json\r\nContent-Type" not in requests[1]
    assert requests[1].lower().count(b"content-type: ") == 1


async def test_a_header_cannot_carry_another() -> None:
    async with serving(answering(WELL)) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        with pytest.raises(ValueError, match="header"):
            await client.send("GET", URL(f"http://127.0.0.1:{port}/"), b"", {"X": "1\r\nY: 2"})


async def test_a_body_that_falls_silent_is_given_up_before_its_whole_time() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(WELL[:-2])
        await reader.read()

    async with (
        serving(serve) as port,
        opened(f"http://127.0.0.1:{port}/v1", seconds=600, idle_seconds=0.1) as client,
    ):
        with pytest.raises(CallLost, match="sent nothing for") as lost:
            await client.post(b"{}")
    assert (lost.value.reason, lost.value.billed) == ("timeout", True)


async def test_an_answer_that_takes_long_to_begin_is_waited_for() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        await asyncio.sleep(0.3)
        writer.write(WELL)
        await reader.read()

    async with (
        serving(serve) as port,
        opened(f"http://127.0.0.1:{port}/v1", idle_seconds=0.1) as client,
    ):
        assert (await client.post(b"{}")).body == b"well"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_a_request_whose_connection_breaks_is_not_sent_again(method: str) -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await request_of(reader))

    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        with pytest.raises(CallLost, match="hung up") as lost:
            await client.send(method, URL(f"http://127.0.0.1:{port}/v1"))
    assert len(requests) == 1 and lost.value.billed


def test_a_silent_connection_is_kept_alive() -> None:
    with make_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as line:
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE")  # noqa: B009
        assert line.getsockopt(socket.IPPROTO_TCP, idle) == 30


# By a provider's whole server


def client(
    url: str, *, seconds: float = 10.0, environment: Mapping[str, str] | None = None
) -> Client:
    target = URL(url) / "chat" / "completions"
    return Client(target, secret=None, environment=environment or {}, seconds=seconds)


async def posted(provider: Provider, body: bytes = b"{}") -> bytes:
    opened = client(provider.url)
    try:
        return (await opened.post(body)).body
    finally:
        await opened.close()


# Reading


@pytest.mark.parametrize("size", [0, 1, 2**16, 2**17 + 1, limits.BODY_BYTES])
async def test_a_body_of_any_allowed_size_is_read_whole(size: int) -> None:
    async with Provider(sending(b"x" * size)) as provider:
        assert await posted(provider) == b"x" * size


async def test_one_byte_too_many_is_refused() -> None:
    async with Provider(sending(b"x" * (limits.BODY_BYTES + 1))) as provider:
        with pytest.raises(CallLost, match="the rest was not read"):
            await posted(provider)


@pytest.mark.parametrize("size", [11, 5000])
async def test_the_first_chunk_too_is_held_to_the_limit(size: int) -> None:
    """It comes with the headers, and may be all there is."""
    async with Provider(sending(b"x" * size)) as provider:
        target = URL(provider.url) / "chat" / "completions"
        opened = Client(target, secret=None, environment={}, seconds=10, most_bytes=10)
        with pytest.raises(CallLost, match="more than 10 bytes"):
            await opened.post(b"{}")
        await opened.close()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"well", mtime=0)),
        ("GZIP", gzip.compress(b"well", mtime=0)),
        ("identity", b"well"),
    ],
    ids=["gzip", "GZIP", "identity"],
)
async def test_a_packed_body_is_unpacked(encoding: str, packed: bytes) -> None:
    async with Provider(sending(packed, headers={"Content-Encoding": encoding})) as provider:
        assert await posted(provider) == b"well"


async def test_a_small_body_that_unpacks_to_a_large_one_is_refused() -> None:
    bomb = gzip.compress(bytes(limits.BODY_BYTES * 4))
    assert len(bomb) < 2**16
    async with Provider(sending(bomb, headers={"Content-Encoding": "gzip"})) as provider:
        with pytest.raises(CallLost, match="the rest was not read"):
            await posted(provider)


PACKED = gzip.compress(completion("well"))


@pytest.mark.parametrize("packed", [PACKED + gzip.compress(b"more"), PACKED[:-20]])
async def test_a_packed_body_that_ends_late_or_early_is_no_answer(packed: bytes) -> None:
    async with Provider(sending(packed, headers={"Content-Encoding": "gzip"})) as provider:
        with pytest.raises(CallLost, match="does not end where"):
            await posted(provider)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"garbage\r\n\r\n",
        b"\x16\x03\x01\x00",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nX: 0123456789\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"0123456789" * 9999 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: 0123456789\r\n" * 9999 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0123456789zz\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: \x000123456789\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_what_is_no_http_is_lost_and_not_quoted(raw: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(64)
        writer.write(raw)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        opened = client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(CallLost) as lost:
            await opened.post(b"{}")
        await opened.close()
    assert (lost.value.reason, lost.value.billed) == ("transport", True)
    assert "0123456789" not in str(lost.value)


async def test_a_host_that_takes_no_connection_is_a_timeout_that_cost_nothing() -> None:
    with socket.socket() as listener:
        # A full backlog: further connections are neither taken nor refused.
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        with socket.socket() as first, socket.socket() as second:
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(address)
            opened = client(f"http://127.0.0.1:{address[1]}", seconds=0.15)
            with pytest.raises(CallLost) as lost:
                await opened.post(b"{}")
            await opened.close()
    assert lost.value.reason == "timeout"
