"""The parts that the wire formats of providers share: the request record, the decoded reply, JSON
within bounds, server-sent events, and token counts that can be true.

Total: a provider's body becomes a value that a store can hold, or None, or one of UNREADABLE.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from yarl import URL

from evenhand import jsontext, limits
from evenhand.errors import CallLost
from evenhand.exchange import Finish, Message, Usage
from evenhand.judges.transport import HttpResponse

if TYPE_CHECKING:
    from evenhand.judges.dialect import Dialect

UNREADABLE = (KeyError, IndexError, TypeError, AttributeError)
"""Raised by reading a body of another form."""
EVENTS_AT_ONCE = 256
"""Events that are parsed before other calls have their turn."""
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Request(NamedTuple):
    """One question to one model, before it is written in a provider's format."""

    model: str
    messages: Sequence[Message]
    schema: Mapping[str, Any] | None
    max_tokens: int
    sampling: Mapping[str, float]
    """Temperature and seed, as far as they are sent."""
    stream: bool = False


class Decoded(NamedTuple):
    """A reply as its format reads it; `reasoning` is no part of the reply."""

    text: str
    finish: Finish
    usage: Usage
    model: str
    reasoning: str = ""


class WireFormat(NamedTuple):
    """One protocol over HTTP: how a request is written and a reply read."""

    build_request: Callable[[Request, Dialect], dict[str, Any]]
    read_reply: Callable[[Any], Decoded]
    """Raises one of UNREADABLE for a body without a reply."""
    join_events: Callable[[Sequence[Any]], dict[str, Any] | None]
    """Returns the body that the same reply has in one piece; None for a stream that broke off."""
    endpoint: Callable[[URL, Request], URL]
    first_dialect: Callable[[str], Dialect]
    """Returns the dialect to start with, by the name of the model."""
    content: str
    """The field of a response that holds the reply."""
    reserved: tuple[str, ...]
    """Fields that Evenhand sets, and the user's params may not."""
    max_temperature: float = math.inf


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return True if a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return True if a decoded JSON value is an array."""
    return isinstance(value, list)


def text_of(value: Any) -> str:
    """Return a decoded value that should be a string; empty if it is none."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> dict[str, Any]:
    """Return a decoded value that should be an object; empty if it is none."""
    return value if is_object(value) else {}


def load_json(text: str, most: int = limits.BODY_ELEMENTS) -> Any:
    """Return the value of a text from outside. Raises ValueError, before anything is built of one
    that nests too deep or holds too many values."""
    jsontext.require_bounds(text, limits.STORED_DEPTH, most)
    return json.loads(text)


def parse_body(body: bytes) -> Any:
    """Return the value of a body, or the CallLost that it amounts to."""
    if not body:
        return unreadable("an empty body")
    try:
        return load_json(body.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError:
        return unreadable("a body that is no UTF-8")
    except ValueError:
        return unreadable("a body that is no JSON")


def unreadable(what: str) -> CallLost:
    """Return the error for a 200 without a reply."""
    return CallLost("transport", f"the provider answered 200 with {what}", billed=True)


def is_stream(response: HttpResponse) -> bool:
    """Return True if a response is a stream of events, whatever was asked for."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return 200 <= response.status < 300 and kind == "text/event-stream"


async def join_stream(response: HttpResponse, wire: WireFormat) -> HttpResponse:
    """Return the response as it would be in one piece. Raises CallLost for a stream that breaks
    off, however much of it came: a short reply is none."""
    joined = await _join(response, wire)
    if isinstance(joined, CallLost):
        raise joined  # here, where no frame holds what came: it may repeat the key
    return joined


async def _join(response: HttpResponse, wire: WireFormat) -> HttpResponse | CallLost:
    events: list[Any] = []
    try:
        for data in _events(response.body):
            if data != b"[DONE]":
                events.append(load_json(data.decode()))
            if len(events) % EVENTS_AT_ONCE == 0:
                await asyncio.sleep(0)
        body = wire.join_events(events)
    except (ValueError, *UNREADABLE):
        return unreadable("a stream that cannot be read")
    if body is None:
        return CallLost("transport", "the stream broke off before its end", billed=True)
    return HttpResponse(response.status, response.headers, jsontext.encoded(body))


def stream_error(error: Any, *, has_begun: bool) -> dict[str, Any]:
    """Return the body of an error inside a stream. What was written before it may be billed,
    whatever status the error names, so then it keeps its message alone."""
    message = text_of(error.get("message")) if is_object(error) else text_of(error)
    return {"error": {"message": message or str(error)} if has_begun else error}


def _events(body: bytes) -> Iterator[bytes]:
    """Yield the data of each server-sent event."""
    data: list[bytes] = []
    for line in _LINE_END.split(body.removeprefix(b"\xef\xbb\xbf")):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def one_reply(choices: Sequence[Decoded]) -> Decoded:
    """Return the reply that several choices amount to; one was asked for. Different ones stand one
    after the other, so that two verdicts are seen as two."""
    first = choices[0]
    if len(choices) == 1:
        return first
    texts = {_meaning(choice.text): choice.text for choice in reversed(choices)}
    finish = next((choice.finish for choice in choices if choice.finish != "stop"), first.finish)
    if len(texts) == 1 and finish == first.finish:
        return first
    return first._replace(text="\n\n".join(reversed(texts.values())), finish=finish)


def _meaning(text: str) -> str:
    """Return the canonical form of a text that is JSON, else the text."""
    try:
        return jsontext.canonical(jsontext.parse(text))
    except ValueError:
        return text.strip()


def usage_of(
    read: Sequence[Any], written: Sequence[Any], cached: Any = None, stored: Any = None
) -> Usage:
    """Return the usage of a reply, from the counts that add up to its input and to its output, and
    the parts of the input that a cache held or took in. A missing count leaves its sum unknown; if
    one cannot be true none is believed."""
    counts = (*read, *written, cached, stored)
    if all(count is None or _is_possible(count) for count in counts):
        usage = Usage(
            input_tokens=None if None in read else sum(read),
            output_tokens=None if None in written else sum(written),
            cached_tokens=cached or 0,
            cache_write_tokens=stored or 0,
        )
        if usage.cached_tokens + usage.cache_write_tokens <= (usage.input_tokens or 0):
            return usage
    # Of what is no number only its type is told: it may repeat the key.
    claims = {"input": read, "output": written, "cached": [cached], "stored": [stored]}
    told = (
        f"{name} {' + '.join(map(_describe, claimed))}"
        for name, claimed in claims.items()
        if any(count is not None for count in claimed)
    )
    return Usage(implausible=", ".join(told))


def _is_possible(count: Any) -> bool:
    return type(count) is int and 0 <= count <= limits.TOKENS_MOST


def _describe(count: Any) -> str:
    is_number = isinstance(count, int | float) and abs(count) < 1e24
    return str(count) if is_number else type(count).__name__
