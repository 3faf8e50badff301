"""Behaviours of a provider that is not well: errors, refusals, and connections that break."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.provider.answers import sending, valid
from tests.provider.call import Behaviour, Call
from tests.provider.replies import completion


def failing(
    status: int,
    message: str = "Something is wrong.",
    *,
    headers: Mapping[str, str] | None = None,
    **error: Any,
) -> Behaviour:
    """An error in OpenAI's form: `code`, `param` and `type` may be given."""
    body = {"error": {"message": message, "type": "error", **error}}
    return sending(json.dumps(body).encode(), status=status, headers=headers)


def busy(retry_after: str | None = None, **headers: str) -> Behaviour:
    """429, with a Retry-After in whatever form, and other headers (`_` stands for `-`)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if retry_after is not None:
        named["Retry-After"] = retry_after
    return failing(429, "Rate limit reached.", code="rate_limit_exceeded", headers=named)


def out_of_quota() -> Behaviour:
    return failing(429, "You exceeded your current quota.", code="insufficient_quota")


def overflowing() -> Behaviour:
    message = "This model's maximum context length is 4096 tokens. Please reduce the length."
    return failing(400, message, code="context_length_exceeded", param="messages")


def refusing(name: str, message: str, *, then: Behaviour | None = None, **value: Any) -> Behaviour:
    """400 for a body that has the field `name` (with the type `type`, if given); else `then`."""
    refusal, accepted = failing(400, message, param=name), then or valid()

    async def behaviour(call: Call) -> web.StreamResponse:
        _ = call.schema
        sent = call.body.get(name)
        refused = sent is not None and ("type" not in value or sent["type"] == value["type"])
        return await (refusal if refused else accepted)(call)

    return behaviour


def refusing_schema(*, then: Behaviour | None = None) -> Behaviour:
    """An endpoint that takes json_object but no json_schema."""
    message = "'response_format' of type 'json_schema' is not supported with this model."
    return refusing("response_format", message, type="json_schema", then=then)


def refusing_temperature(*, then: Behaviour | None = None) -> Behaviour:
    """A reasoning model."""
    message = "Unsupported value: 'temperature' does not support 0 with this model."
    return refusing("temperature", message, then=then)


def redirecting(location: str, status: int = 307) -> Behaviour:
    return sending(b"", status=status, headers={"Location": location})


def echoing_key(status: int = 401) -> Behaviour:
    """An error that repeats the key, plain and encoded, in its body and in a header."""

    async def behaviour(call: Call) -> web.StreamResponse:
        sent = call.headers["Authorization"]
        packed = base64.b64encode(sent.encode()).decode()
        error = {"message": f"Incorrect key {call.key} ({sent}, {packed})", "code": call.key}
        headers = {"X-Echo": sent, "Retry-After": call.key}
        return web.json_response({"error": error}, status=status, headers=headers)

    return behaviour


def resetting(sent: bytes = b'{"choices": [') -> Behaviour:
    """The connection is reset in the middle of the body (before any of it with `b""`)."""

    async def behaviour(call: Call) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        if sent:
            await response.prepare(call.web)
            await response.write(sent)
        transport = call.web.transport
        assert transport is not None
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
        return response

    return behaviour


def pausing(seconds: float, then: Behaviour | None = None) -> Behaviour:
    """Slow: `then` after some seconds."""

    async def behaviour(call: Call) -> web.StreamResponse:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(call.provider.stopping.wait(), seconds)
        return await (then or valid())(call)

    return behaviour


def never() -> Behaviour:
    """Takes the request and says nothing until the server stops."""

    async def behaviour(call: Call) -> web.StreamResponse:
        await call.provider.stopping.wait()
        return web.Response(status=503)

    return behaviour


def flooding(megabytes: int = 200, chunk: bytes = b" " * 2**16) -> Behaviour:
    """A body of that size, made while it is sent."""

    async def behaviour(call: Call) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(call.web)
        with contextlib.suppress(ConnectionError):
            for _ in range(megabytes * 2**20 // len(chunk)):
                await response.write(chunk)
        return response

    return behaviour


HTML = sending(b"<html><body>Welcome to the captive portal</body></html>", content_type="text/html")
EMPTY = sending(b"")
WRONG_CHARSET = sending(
    completion("оценка").decode("unicode_escape").encode("cp1251", "replace"),
    content_type="application/json; charset=windows-1251",
)
