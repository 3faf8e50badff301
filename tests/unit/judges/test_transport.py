"""The transport of remote judges: where requests go, through which proxy and with whose trust, what
is read, how responses end, and deadlines."""

import asyncio
import base64
import gzip
import json
import socket
import ssl
from contextlib import asynccontextmanager, suppress

import pytest
from yarl import URL

from evenhand import limits
from evenhand.errors import CallLost, ProviderRefused, UsageError
from evenhand.judges.transport import Transport, make_socket
from tests.provider import Provider, completion, sending
from tests.sentences import refused
from tests.unit.judges.questions import gist, opened, outcome, question, serving

HEAD = b"HTTP/1.1 200 OK\r\n"
WELL = HEAD + b"Content-Length: 4\r\n\r\nwell"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PASSWORD = "hunter2-of-the-user"


class Client(Transport):
    """Posts to its own address."""

    async def post(self, body=b"{}"):
        return await self.send("POST", self._url, body)


@asynccontextmanager
async def client_of(url, *, proxy="", **rest):
    """A client of an address, or of a port of this machine."""
    url = url if isinstance(url, str) else f"http://127.0.0.1:{url}/v1/chat/completions"
    environment = {"http_proxy": proxy, "https_proxy": proxy} if proxy else {}
    settings = {"environment": environment, "seconds": 10.0, **rest}
    client = Client(URL(url), secret=None, **settings)
    try:
        yield client
    finally:
        await client.close()


async def post_to(serve, **rest):
    """What a server on loopback answers."""
    async with serving(serve) as port, client_of(port, **rest) as client:
        return await client.post()


async def lost(serve, **rest):
    with pytest.raises(CallLost) as raised:
        await post_to(serve, **rest)
    return raised.value


async def request_of(reader):
    """One whole request."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head + await reader.readexactly(int(size or 0))


def answering(answer=WELL, requests=None, *, then_close=False):
    """The same answer to each request on a connection; `requests` collects what is sent."""

    async def serve(reader, writer):
        while True:
            requests_seen.append(await request_of(reader))
            writer.write(answer)
            if then_close:
                return

    requests_seen = [] if requests is None else requests
    return serve


def flooding(start):
    """Sends without end behind a start; `sent` counts the bytes."""

    async def serve(reader, writer):
        await request_of(reader)
        writer.write(start)
        while serve.sent < 64 << 20:
            writer.write(b"x" * (1 << 16))
            serve.sent += 1 << 16
            await writer.drain()

    serve.sent = 0
    return serve


# How a response ends


@pytest.mark.parametrize(
    "answer",
    [
        WELL,
        CHUNKED + b"2\r\nwe\r\n2;name=value\r\nll\r\n0\r\nX-Trailer: 1\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + WELL,
        HEAD + b"\r\nwell",
    ],
    ids=["length", "chunked", "hints", "close"],
)
async def test_an_answer_ends_where_it_says(answer):
    assert (await post_to(answering(answer, then_close=True))).body == b"well"


async def test_what_follows_a_body_has_no_say_in_how_it_is_read():
    answer = CHUNKED + b"4\r\nwell\r\n0\r\nContent-Encoding: gzip\r\n\r\n"
    answered = await post_to(answering(answer))
    assert (answered.body, answered.headers.get("Content-Encoding")) == (b"well", None)


@pytest.mark.parametrize("start", [CHUNKED + b"4\r\nwell\r\n0\r\nX: ", HEAD + b"X: "])
async def test_a_head_or_trailer_without_end_is_given_up(start):
    serve = flooding(start)
    assert gist(await lost(serve)) == "billed"
    assert serve.sent < 64 << 20


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"garbage\r\n\r\n",
        b"\x16\x03\x01\x00",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        HEAD,
        HEAD + b"X: 0123456789\r\n",
        HEAD + b"X: " + b"0123456789" * 9999 + b"\r\n\r\n",
        HEAD + b"X: 0123456789\r\n" * 9999 + b"\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        HEAD + b"Content-Length: 10\r\n\r\n{}",
        CHUNKED + b"0123456789zz\r\n{}",
        CHUNKED + b"9\r\n{}",
        HEAD + b"Set-Cookie: \x000123456789\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_what_is_no_http_is_lost_and_not_quoted(raw):
    error = await lost(answering(raw, then_close=True))
    assert (gist(error), error.reason) == ("billed", "transport")
    assert "0123456789" not in str(error)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_request_whose_connection_breaks_is_not_sent_again(method):
    requests = []
    serve = answering(b"", requests, then_close=True)
    async with serving(serve) as port, client_of(port) as client:
        with pytest.raises(CallLost, match="hung up") as raised:
            await client.send(method, URL(f"http://127.0.0.1:{port}/v1"))
    assert (len(requests), gist(raised.value)) == (1, "billed")


# Time


async def test_a_call_that_is_cancelled_ends_its_connection():
    is_asked, is_over = asyncio.Event(), asyncio.Event()

    async def serve(reader, writer):
        await request_of(reader)
        is_asked.set()
        with suppress(ConnectionError):
            await reader.read()
        is_over.set()

    async with serving(serve) as port, client_of(port) as client:
        call = asyncio.create_task(client.post())
        await is_asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await is_over.wait()


async def test_an_answer_that_is_late_is_billed_and_others_go_on():
    async def serve(reader, writer):
        if b"quick" in await request_of(reader):
            writer.write(WELL)
        await reader.read()

    async with serving(serve) as port, client_of(port, seconds=0.2) as client:
        calls = [asyncio.create_task(client.post(b"slow")) for _ in range(3)]
        assert (await client.post(b"quick")).body == b"well"
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert {(gist(error), error.reason) for error in errors} == {("billed", "timeout")}


async def test_a_body_that_falls_silent_is_given_up_before_its_whole_time():
    error = await lost(answering(WELL[:-2]), seconds=600, idle_seconds=0.1)
    assert (gist(error), error.reason) == ("billed", "timeout")


async def test_an_answer_that_takes_long_to_begin_is_waited_for():
    async def serve(reader, writer):
        await request_of(reader)
        await asyncio.sleep(0.3)
        writer.write(WELL)
        await reader.read()

    assert (await post_to(serve, idle_seconds=0.1)).body == b"well"


def test_a_silent_connection_is_kept_alive():
    with make_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as line:
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE")  # noqa: B009
        assert line.getsockopt(socket.IPPROTO_TCP, idle) == 30


async def test_a_host_that_takes_no_connection_is_a_timeout_that_cost_nothing():
    with socket.socket() as listener:
        # A full backlog: further connections are neither taken nor refused.
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        with socket.socket() as first, socket.socket() as second:
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(address)
            async with client_of(address[1], seconds=0.15) as client:
                with pytest.raises(CallLost) as raised:
                    await client.post()
    assert (gist(raised.value), raised.value.reason) == ("lost", "timeout")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def test_an_address_where_nothing_listens_is_told_in_words():
    port = free_port()
    async with client_of(port) as client:
        with pytest.raises(CallLost) as raised:
            await client.post()
    assert str(raised.value) == f"cannot connect to 127.0.0.1:{port}: nothing listens there"
    assert gist(raised.value) == "lost"


# What is sent


async def test_other_requests_go_to_the_same_origin_and_to_no_other():
    requests = []
    async with serving(answering(WELL, requests)) as port, client_of(port) as client:
        url = URL(f"http://127.0.0.1:{port}/v1/files?after=a%20b")
        assert (await client.send("GET", url)).body == b"well"
        await client.send("POST", url, b"abc", {"content-type": "text/plain"})
        with refused(UsageError, "judges.key_not_for"):
            await client.send("GET", URL("http://127.0.0.1:1/v1/files"))
        with pytest.raises(ValueError, match="header"):
            await client.send("GET", url, b"", {"X": "1\r\nY: 2"})
    got, posted = requests
    assert got.startswith(b"GET /v1/files?after=a%20b HTTP/1.1\r\n")
    assert posted.endswith(b"\r\n\r\nabc") and b"\r\nContent-Length: 3\r\n" in posted
    assert posted.lower().count(b"content-type: ") == 1


# Reading


async def posted(body, headers=None, **rest):
    async with (
        Provider(sending(body, headers=headers)) as provider,
        client_of(f"{provider.url}/chat/completions", **rest) as client,
    ):
        return (await client.post()).body


@pytest.mark.parametrize("size", [0, 1, 2**17 + 1, limits.BODY_BYTES])
async def test_a_body_of_any_allowed_size_is_read_whole(size):
    assert await posted(b"x" * size) == b"x" * size


async def test_one_byte_too_many_is_refused():
    with pytest.raises(CallLost, match="the rest was not read"):
        await posted(b"x" * (limits.BODY_BYTES + 1))


@pytest.mark.parametrize("size", [11, 5000])
async def test_the_first_chunk_too_is_held_to_the_limit(size):
    """It comes with the headers, and may be all there is."""
    with pytest.raises(CallLost, match="more than 10 bytes"):
        await posted(b"x" * size, most_bytes=10)


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "identity"])
async def test_a_packed_body_is_unpacked(encoding):
    packed = b"well" if encoding == "identity" else gzip.compress(b"well", mtime=0)
    assert await posted(packed, {"Content-Encoding": encoding}) == b"well"


PACKED = gzip.compress(completion("well"))
BOMB = gzip.compress(bytes(limits.BODY_BYTES + (1 << 20)))


@pytest.mark.parametrize(
    ("packed", "word"),
    [
        (PACKED + gzip.compress(b"more"), "does not end where"),
        (PACKED[:-20], "does not end where"),
        (BOMB, "the rest was not read"),
    ],
    ids=["late", "early", "bomb"],
)
async def test_a_packed_body_ends_where_it_says_and_within_the_limit(packed, word):
    with pytest.raises(CallLost, match=word):
        await posted(packed, {"Content-Encoding": "gzip"})


# Certificates and proxies


@pytest.fixture
def context(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def passing(port, heads):
    """A proxy that opens a way to a port, whatever host it is asked for."""

    async def pump(reader, writer):
        with suppress(ConnectionError):
            while data := await reader.read(4096):
                writer.write(data)
        writer.close()

    async def serve(reader, writer):
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
async def test_https_goes_through_a_proxy_unread(scheme, context, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    heads = []
    async with (
        serving(answering(), context) as port,
        serving(passing(port, heads), context if scheme == "https" else None) as proxy_port,
        client_of(
            "https://host.test/v1", proxy=f"{scheme}://user:p%40ss@127.0.0.1:{proxy_port}"
        ) as client,
    ):
        assert [(await client.post()).body for _ in range(2)] == [b"well"] * 2
    assert [head.split(b"\r\n")[0] for head in heads] == [b"CONNECT host.test:443 HTTP/1.1"] * 2
    assert b"Proxy-Authorization: Basic dXNlcjpwQHNz" in heads[0]


async def test_http_is_passed_on_whole_by_the_judges_own_proxy_or_that_of_the_environment():
    requests = []
    async with serving(answering(WELL, requests)) as port:
        named = {"proxy": f"http://user:word@127.0.0.1:{port}"}
        environment = {"http_proxy": "http://127.0.0.1:1"}
        async with client_of("http://host.test:81/v1/a%2Fb", **named) as client:
            assert (await client.post()).body == b"well"
        client = Client(
            URL("http://host.test/v1"),
            secret=None,
            environment=environment,
            seconds=10,
            proxy=f"127.0.0.1:{port}",
        )
        assert (await client.post()).body == b"well"
        await client.close()
    lines = requests[0].split(b"\r\n")
    assert lines[:2] == [b"POST http://host.test:81/v1/a%2Fb HTTP/1.1", b"Host: host.test:81"]
    assert b"Proxy-Authorization: Basic dXNlcjp3b3Jk" in lines
    assert requests[1].startswith(b"POST http://host.test/v1 HTTP/1.1")


@pytest.mark.parametrize(
    ("host", "is_vouched", "is_given", "is_trusted"),
    [
        ("127.0.0.1", False, False, False),
        ("localhost", True, False, False),
        ("127.0.0.1", True, False, True),
        ("127.0.0.1", False, True, True),
    ],
    ids=["nobody vouches", "another host", "the environment vouches", "the judge's own file"],
)
async def test_a_certificate_is_trusted_where_someone_vouches_for_the_host(
    context, certificate, monkeypatch, host, is_vouched, is_given, is_trusted
):
    if is_vouched:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    given = {"ca_file": certificate} if is_given else {}
    async with (
        serving(answering(), context) as port,
        client_of(f"https://{host}:{port}/v1", **given) as client,
    ):
        if is_trusted:
            assert (await client.post()).body == b"well"
        else:
            with refused(ProviderRefused, "judges.certificate_not_trusted"):
                await client.post()


async def test_what_speaks_no_tls_is_not_there_and_not_billed():
    async def serve(reader, writer):
        await reader.read(16)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(serve) as port, client_of(f"https://127.0.0.1:{port}/v1") as client:
        with pytest.raises(CallLost, match="cannot connect") as raised:
            await client.post()
    assert raised.value.is_unreachable and not raised.value.billed


@pytest.mark.parametrize("text", [None, "no certificate"])
async def test_a_file_without_certificates_is_told_at_once(tmp_path, text):
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with refused(UsageError, "judges.ca_file_unusable"):
        async with client_of("https://h.test", ca_file=path):
            pass


@pytest.mark.parametrize("url", ["http://host.test/v1", "https://host.test/v1"])
async def test_a_proxy_that_is_not_there_is_told_without_its_password(url):
    async with client_of(url, proxy=f"http://user:{PASSWORD}@127.0.0.1:{free_port()}") as client:
        with pytest.raises(CallLost, match="cannot connect") as raised:
            await client.post()
    assert PASSWORD not in str(raised.value) and not raised.value.billed


@pytest.mark.parametrize("echo", [PASSWORD, base64.b64encode(f"u:{PASSWORD}".encode()).decode()])
async def test_a_proxy_that_echoes_its_password_is_told_without_it(echo):
    async with Provider(sending(echo.encode(), status=502)) as provider:
        address = provider.url.removesuffix("/v1").replace("//", f"//u:{PASSWORD}@")
        async with client_of("http://host.test/v1/chat/completions", proxy=address) as client:
            answered = await client.post()
    assert provider.calls[0].headers["Proxy-Authorization"]
    assert echo not in client.scrub(answered.body.decode())


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("status", "ends"), [(407, "refused"), (403, "refused"), (502, "lost")])
async def test_what_a_proxy_refuses_was_not_paid_for(scheme, status, ends):
    """An answer of the proxy itself, to a request or to CONNECT."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    async with serving(serve) as port:
        environment = {f"{scheme}_proxy": f"http://127.0.0.1:{port}"}
        judge = opened("openai/m", f"{scheme}://host.test/v1", environment=environment)
        error = await outcome(judge)
        await judge.close()
    assert gist(error) in (ends, "lost") and (status != 407 or gist(error) == "refused")
    assert "proxy" in str(error) or scheme == "http"


# A second answer on a connection

CALLS, AT_ONCE = 100, 8


def answering_twice(seconds, ending, peers):
    """Repeats the prompt as the reply, and once more after some seconds, on each connection."""

    async def serve(reader, writer):
        peers.append(writer.get_extra_info("peername"))
        while True:
            asked = json.loads((await request_of(reader)).partition(b"\r\n\r\n")[2])
            body = completion(asked["messages"][-1]["content"])
            answer = HEAD + ending + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            writer.write(answer)
            if seconds:
                await writer.drain()
                await asyncio.sleep(seconds)
            writer.write(answer)
            await writer.drain()

    return serve


@pytest.mark.parametrize("ending", [b"", b"Connection: close\r\n"], ids=["kept", "closing"])
@pytest.mark.parametrize("seconds", [0, 0.002, 0.02])
async def test_a_second_answer_reaches_no_other_question(seconds, ending):
    """Each request has a connection of its own."""
    peers, permits = [], asyncio.Semaphore(AT_ONCE)
    async with serving(answering_twice(seconds, ending, peers)) as port:
        judge = opened("openai/m", f"http://127.0.0.1:{port}/v1")

        async def ask(number):
            async with permits:
                return await outcome(judge, question(f"question {number}"))

        outcomes = await asyncio.gather(*map(ask, range(CALLS)))
        await judge.close()
    texts = [getattr(one, "text", None) for one in outcomes]
    # What says that it closes and goes on at once is no HTTP, and lost.
    is_lost = ending and not seconds
    assert texts == [None if is_lost else f"question {number}" for number in range(CALLS)]
    assert len(set(peers)) == CALLS
