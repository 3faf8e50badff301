"""The client's connections: how answers end, when a connection is used again, and ways through
proxies."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from yarl import URL

from evenhand.errors import CallLost, ProviderRefused, UsageError
from evenhand.judges.connection import Connection
from evenhand.judges.http import HttpClient

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell"


@asynccontextmanager
async def serving(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on loopback; gives its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def opened(
    url: str, *, seconds: float = 10.0, proxy: str = "", most_bytes: int = 1 << 20
) -> AsyncIterator[HttpClient]:
    environment = {"http_proxy": proxy, "https_proxy": proxy} if proxy else {}
    client = HttpClient(
        URL(url), secret=None, environment=environment, seconds=seconds, most_bytes=most_bytes
    )
    yield client
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
    assert list(answered.headers) == ["content-length", "retry-after"]


def counted(serve: Serve) -> tuple[Serve, list[int]]:
    """A server that counts its connections."""
    connections: list[int] = []

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await serve(reader, writer)

    return count, connections


@pytest.mark.parametrize(
    ("answers", "connections"),
    [
        ((WELL, WELL), 1),
        ((WELL.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),), 2),
        ((WELL.replace(b"/1.1", b"/1.0"),), 2),
        ((WELL + WELL,), 2),
        ((WELL + b"more",), 2),
    ],
    ids=["kept", "closed", "old", "answered twice", "more than it says"],
)
async def test_a_connection_is_used_again_only_after_an_answer_that_ended_in_order(
    answers: tuple[bytes, ...], connections: int
) -> None:
    serve, opened_so_far = counted(answering(*answers))
    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        assert (await client.post(b"{}")).body == b"well"
        assert (await client.post(b"{}")).body == b"well"
    assert len(opened_so_far) == connections


async def test_a_connection_that_the_other_side_closed_is_not_used_again() -> None:
    serve, connections = counted(answering(WELL, then_close=True))
    async with serving(serve) as port, opened(f"http://127.0.0.1:{port}/v1") as client:
        for _ in range(3):
            assert (await client.post(b"{}")).body == b"well"
            await asyncio.sleep(0.05)  # the end of the connection arrives
    assert len(connections) == 3


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
    """One timer serves all calls: it goes off for the first, and then for the next."""

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


@pytest.fixture
def is_answered(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set as soon as an answer is complete, before the call that waits for it goes on."""
    event, complete = asyncio.Event(), Connection.on_message_complete

    def set_first(connection: Connection) -> None:
        event.set()
        complete(connection)

    monkeypatch.setattr(Connection, "on_message_complete", set_first)
    return event


async def test_a_call_ends_without_the_deadline_of_the_next(is_answered: asyncio.Event) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            if (await request_of(reader)).endswith(b"quick"):
                writer.write(WELL)

    async with (
        asyncio.timeout(30),
        serving(serve) as port,
        opened(f"http://127.0.0.1:{port}/v1", seconds=1.0) as client,
    ):
        quick = asyncio.create_task(client.post(b"quick"))
        await is_answered.wait()
        with pytest.raises(CallLost, match="no complete answer"):
            await client.post(b"never answered")
        assert (await quick).body == b"well"


async def test_a_call_that_is_cancelled_with_its_answer_takes_nothing_from_the_next(
    is_answered: asyncio.Event,
) -> None:
    async with (
        serving(answering(*[WELL] * 2)) as port,
        opened(f"http://127.0.0.1:{port}/v1") as client,
    ):
        call = asyncio.create_task(client.post(b"{}"))
        await is_answered.wait()
        call.cancel()
        assert (await client.post(b"{}")).body == b"well"
        with pytest.raises(asyncio.CancelledError):
            await call


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
    assert requests[1].endswith(b"\r\nContent-Length: 3\r\n\r\nabc")
    assert b"application/json\r\nContent-Type" not in requests[1]
    assert requests[1].lower().count(b"content-type: ") == 1


async def test_a_header_cannot_carry_another() -> None:
    async with opened("http://127.0.0.1:1/v1") as client:
        with pytest.raises(ValueError, match="none can have"):
            await client.send("GET", URL("http://127.0.0.1:1/"), b"", {"X": "1\r\nY: 2"})


# Ways through proxies


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and host.test that is its own authority, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the command openssl")
    place = tmp_path_factory.mktemp("tls") / "certificate.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:host.test"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", names, "-keyout", str(place), "-out", str(place)]
    subprocess.run(command, check=True, capture_output=True)
    return place


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
        await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))

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
    assert [head.split(b"\r\n")[0] for head in heads] == [b"CONNECT host.test:443 HTTP/1.1"]
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
