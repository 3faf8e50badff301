"""The transport of remote judges: where it goes, what it reads, how responses end, proxies,
deadlines, and what it leaves alone."""

from __future__ import annotations

import asyncio
import base64
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from evenhand import limits
from evenhand.errors import CallLost, ProviderRefused, UsageError
from evenhand.exchange import Message, Question
from evenhand.judges import JudgeOptions, open_judge
from evenhand.judges.transport import (
    HttpResponse,
    Transport,
    is_loopback,
    make_socket,
    parse_proxy,
    proxy_for,
)
from evenhand.judges.trust import base_url
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
        b"HTTP/1.1 100 Continue\r\n\r\n" + WELL,
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + WELL,
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nX: \xff\r\n\r\nwell",
    ],
    ids=["length", "chunked", "continue", "hints", "latin"],
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


async def test_what_comes_in_small_pieces_is_one_answer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        for byte in WELL:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read()

    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        assert (await client.post(b"{}")).body == b"well"


async def test_headers_are_found_in_whatever_case() -> None:
    answer = b"HTTP/1.1 429 No\r\nRETRY-after: 7\r\nRetry-After: 8\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(answer)) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        answered = await client.post(b"{}")
    assert (answered.headers.get("Retry-After"), answered.headers.get("x-none")) == ("7", None)


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


# Ways through proxies


@pytest.fixture
def context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def passing(port: int, heads: list[bytes]) -> Serve:
    """A proxy that opens a way to a port, whatever host it is asked for."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(4096):
                writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))
        finally:
            to_writer.close()
            with suppress(ConnectionError):
                await to_writer.wait_closed()

    return serve


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_https_goes_through_a_proxy_unread(
    scheme: str, context: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    heads: list[bytes] = []
    async with (
        serving(answering(WELL, WELL), context) as port,
        serving(passing(port, heads), context if scheme == "https" else None) as proxy_port,
    ):
        proxy = f"{scheme}://user:p%40ss@127.0.0.1:{proxy_port}"
        async with opened("https://host.test/v1", proxy=proxy) as client:
            assert (await client.post(b"{}")).body == b"well"
            assert (await client.post(b"{}")).body == b"well"
    assert [head.split(b"\r\n")[0] for head in heads] == [b"CONNECT host.test:443 HTTP/1.1"] * 2
    assert b"Proxy-Authorization: Basic dXNlcjpwQHNz" in heads[0]


async def test_http_is_passed_on_by_a_proxy_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await request_of(reader))
        writer.write(WELL)

    async with serving(serve) as port:
        proxy = f"http://user:word@127.0.0.1:{port}"
        async with opened("http://host.test:81/v1/a%2Fb", proxy=proxy) as client:
            assert (await client.post(b"{}")).body == b"well"
    lines = requests[0].split(b"\r\n")
    assert lines[:2] == [b"POST http://host.test:81/v1/a%2Fb HTTP/1.1", b"Host: host.test:81"]
    assert b"Proxy-Authorization: Basic dXNlcjp3b3Jk" in lines


async def test_a_certificate_that_nobody_vouches_for_is_refused(context: ssl.SSLContext) -> None:
    async with (
        serving(answering(WELL), context) as port,
        opened(f"https://127.0.0.1:{port}/v1") as client,
    ):
        with pytest.raises(ProviderRefused, match="not trusted"):
            await client.post(b"{}")


async def test_a_certificate_of_another_host_is_refused(
    context: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with (
        serving(answering(WELL), context) as port,
        opened(f"https://localhost:{port}/v1") as client,
    ):
        with pytest.raises(ProviderRefused, match="not trusted"):
            await client.post(b"{}")


async def test_what_speaks_no_tls_is_not_there_and_not_billed() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(16)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(serve) as port, opened(f"https://127.0.0.1:{port}/v1") as client:
        with pytest.raises(CallLost, match="cannot connect") as lost:
            await client.post(b"{}")
    assert lost.value.is_unreachable and not lost.value.billed


async def test_an_authority_of_the_judges_own_vouches_for_it(
    context: ssl.SSLContext, certificate: Path
) -> None:
    async with (
        serving(answering(WELL), context) as port,
        opened(f"https://127.0.0.1:{port}/v1", ca_file=certificate) as client,
    ):
        assert (await client.post(b"{}")).body == b"well"


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_without_certificates_is_told_at_once(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match="ca_file cannot be used"):
        Transport(URL("https://h.test"), secret=None, environment={}, seconds=1, ca_file=path)


async def test_a_proxy_of_the_judges_own_is_used_before_that_of_the_environment() -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await request_of(reader))
        writer.write(WELL)

    async with serving(serve) as port:
        client = Client(
            URL("http://host.test/v1"),
            secret=None,
            environment={"http_proxy": "http://127.0.0.1:1"},
            seconds=10,
            proxy=f"127.0.0.1:{port}",
        )
        assert (await client.post(b"{}")).body == b"well"
        await client.close()
    assert requests[0].startswith(b"POST http://host.test/v1 HTTP/1.1")


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
        ("deflate", zlib.compress(b"well")),
        ("identity", b"well"),
    ],
    ids=["gzip", "GZIP", "deflate", "identity"],
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


async def test_a_packed_body_that_goes_on_after_its_end_is_no_answer() -> None:
    double = gzip.compress(completion("well")) + gzip.compress(b"more")
    async with Provider(sending(double, headers={"Content-Encoding": "gzip"})) as provider:
        with pytest.raises(CallLost, match="does not end where"):
            await posted(provider)


async def test_a_packed_body_that_ends_early_is_no_answer() -> None:
    half = gzip.compress(completion("well"))[:-20]
    async with Provider(sending(half, headers={"Content-Encoding": "gzip"})) as provider:
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


# Addresses


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        (" https://api.openai.com/v1/ ", "https://api.openai.com/v1"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://gateway.test/a%2Fb/v1", "https://gateway.test/a%2Fb/v1"),
    ],
)
def test_a_base_url_is_tidied(text: str, url: str) -> None:
    assert str(base_url(text, where="base_url")) == url


@pytest.mark.parametrize(
    "text",
    [
        "api.openai.com/v1",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "http://host:port/v1",
        "http://user:hidden@host:port/v1",
        "http://user:x#hidden@host/v1",
        f"http://{'a' * 70}.test/v1",
        "http://a..test/v1",
        "https://user:hidden@host/v1",
        "https://hidden@host/v1",
        "https://host/v1?key=hidden",
        "https://host/v1#hidden",
        "",
    ],
)
def test_what_is_no_base_url_is_refused_without_showing_secrets(text: str) -> None:
    with pytest.raises(UsageError, match="base_url") as raised:
        base_url(text, where="base_url")
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
def test_this_machine_is_known(host: str) -> None:
    assert is_loopback(URL(f"http://{host}:80/v1"))


@pytest.mark.parametrize(
    "host", ["localhost.evil.test", "a.localhost", "127.0.0.1.evil.test", "10.0.0.1"]
)
def test_other_machines_are_not_this_one(host: str) -> None:
    assert not is_loopback(URL(f"http://{host}/v1"))


# Proxies


async def test_a_request_goes_through_the_proxy_that_the_environment_names() -> None:
    async with Provider(sending(b"by proxy")) as proxy:
        environment = {"http_proxy": proxy.url.removesuffix("/v1")}
        opened = client("http://host.test/v1", environment=environment)
        answered = await opened.post(b"{}")
        await opened.close()
    assert answered.body == b"by proxy"
    assert proxy.calls[0].headers["Host"] == "host.test"


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("http://host.test/v1", {}),
        ("http://host.test/v1", {"https_proxy": "http://proxy:1"}),
        ("http://host.test/v1", {"http_proxy": "http://proxy:1", "no_proxy": "host.test"}),
        ("http://host.test/v1", {"http_proxy": "http://proxy:1", "NO_PROXY": ".test, other"}),
        ("http://host.test/v1", {"http_proxy": "http://proxy:1", "no_proxy": "*"}),
        ("http://127.0.0.1:8000/v1", {"http_proxy": "http://proxy:1"}),
    ],
)
def test_no_proxy_is_used_where_none_is_meant(url: str, environment: dict[str, str]) -> None:
    assert proxy_for(URL(url), environment) is None


def test_a_proxy_may_be_named_without_its_scheme() -> None:
    assert proxy_for(URL("https://h.test/"), {"HTTPS_PROXY": "p:1"}) == URL("http://p:1")


PASSWORD = "hunter2-of-the-user"
MISTYPED = (
    "socks5://user:PASSWORD@p:1",
    "http:/user:PASSWORD@p:1",
    "http//user:PASSWORD@p:1",
    "http://user:PASSWORD@p:port",
    "http://user:PASSWORD@p:99999",
    "http://user:PASSWORD@:1",
    "http://user:PASSWORD@",
    "http://user:PASSWORD/x@p:1",
    "http://user:PASSWORD#x@p:1",
    "http://user:PASSWORD?x@p:1",
    "http://user:PASSWORD@[::1:3",
    "http://user:PASSWORD@p\\q:1",
    "user:PASSWORD@p q",
)


@pytest.mark.parametrize("text", MISTYPED)
def test_a_proxy_that_is_none_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        proxy_for(URL("https://h.test/"), {"https_proxy": text.replace("PASSWORD", PASSWORD)})
    assert raised.value.where == "https_proxy"
    assert PASSWORD not in f"{raised.value}{raised.value!r}"
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("url", ["http://host.test/v1", "https://host.test/v1"])
async def test_a_proxy_that_is_not_there_is_told_without_its_password(url: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    proxy = f"http://user:{PASSWORD}@127.0.0.1:{port}"
    opened = client(url, environment={"http_proxy": proxy, "https_proxy": proxy})
    with pytest.raises(CallLost, match="cannot connect") as raised:
        await opened.post(b"{}")
    await opened.close()
    assert PASSWORD not in str(raised.value) and not raised.value.billed


async def test_an_address_where_nothing_listens_is_told_in_words() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    opened = client(f"http://127.0.0.1:{port}/v1")
    with pytest.raises(CallLost) as raised:
        await opened.post(b"{}")
    await opened.close()
    place = f"cannot connect to 127.0.0.1:{port}"
    assert str(raised.value) == f"{place}: nothing listens there"


@pytest.mark.parametrize("echo", [PASSWORD, base64.b64encode(f"u:{PASSWORD}".encode()).decode()])
async def test_a_proxy_that_echoes_its_password_is_told_without_it(echo: str) -> None:
    async with Provider(sending(echo.encode(), status=502)) as proxy:
        address = proxy.url.removesuffix("/v1").replace("//", f"//u:{PASSWORD}@")
        opened = client("http://host.test/v1", environment={"http_proxy": address})
        answered = await opened.post(b"{}")
        await opened.close()
    assert proxy.calls[0].headers["Proxy-Authorization"]
    assert echo not in opened.scrub(answered.body.decode())


async def _refusing(
    status: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("status", [407, 403, 502])
async def test_what_a_proxy_refuses_was_not_paid_for(scheme: str, status: int) -> None:
    """An answer of the proxy itself, to a request or to the wish for a connection."""
    server = await asyncio.start_server(partial(_refusing, status), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    options = JudgeOptions(
        name="openai/m",
        base_url=f"{scheme}://host.test/v1",
        temperature=0,
        max_tokens=9,
        seed=7,
        attempt_seconds=10,
        folder=Path(),
        environment={f"{scheme}_proxy": f"http://127.0.0.1:{port}"},
        notify=print,
    )
    judge = open_judge(options)
    with pytest.raises((CallLost, ProviderRefused)) as raised:
        await judge.answer(Question(messages=(Message("user", "Judge this."),)))
    await judge.close()
    server.close()
    await server.wait_closed()
    assert not getattr(raised.value, "billed", False)
    assert isinstance(raised.value, ProviderRefused) or status != 407
    assert "proxy" in str(raised.value) or scheme == "http"


@pytest.mark.parametrize("proxy", ["http://proxy..corp:8080", "ftp://proxy:21", "http://", "x y"])
def test_a_mistyped_proxy_is_told_before_anything_is_sent(proxy: str) -> None:
    with pytest.raises(UsageError, match="no http or https proxy"):
        parse_proxy(proxy, "http_proxy")
