"""The transport of remote judges through proxies, and the certificates that it trusts."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from yarl import URL

from evenhand.errors import CallLost, ProviderRefused, UsageError
from evenhand.exchange import Message, Question
from evenhand.judges import JudgeOptions, open_judge
from evenhand.judges.transport import Transport
from tests.provider import Provider, sending
from tests.unit.judges.conftest import Serve, serving
from tests.unit.judges.test_transport import WELL, Client, answering, client, opened, request_of


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


async def test_a_request_goes_through_the_proxy_that_the_environment_names() -> None:
    async with Provider(sending(b"by proxy")) as proxy:
        environment = {"http_proxy": proxy.url.removesuffix("/v1")}
        opened = client("http://host.test/v1", environment=environment)
        answered = await opened.post(b"{}")
        await opened.close()
    assert answered.body == b"by proxy"
    assert proxy.calls[0].headers["Host"] == "host.test"


PASSWORD = "hunter2-of-the-user"


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
        environment={f"{scheme}_proxy": f"http://127.0.0.1:{port}"},
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
