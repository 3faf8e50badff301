"""The parts that the wire formats of providers share: the request, the dialect of an endpoint, the
decoded reply, JSON within bounds, server-sent events, and token counts that can be true.

Total: a provider's body becomes a value that a store can hold, or None, or one of UNREADABLE.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from yarl import URL

from evenhand import jsontext, limits
from evenhand.errors import CallLost
from evenhand.exchange import Finish, Message, Usage
from evenhand.judges.transport import HttpResponse

UNREADABLE = (KeyError, IndexError, TypeError, AttributeError)
"""Raised by reading a body of another form."""
SCHEMA, OBJECT, PLAIN = 0, 1, 2
"""Structured output: by a JSON Schema, any JSON object, none."""
RESPONSE_FORMAT = "response_format"
EVENTS_AT_ONCE = 256
"""Events that are parsed before other calls have their turn."""
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Dialect(NamedTuple):
    """The optional parts of a request that one endpoint takes. It only ever narrows, so asking
    again after a narrowing always ends. It is no part of a judge's identity: the question stays the
    same."""

    mode: int = SCHEMA
    refused: frozenset[str] = frozenset()
    """Parameters that are left out."""

    def without(self, part: str) -> Dialect | None:
        """Return this dialect less a part that was refused; None if that leaves it as it is."""
        if part == RESPONSE_FORMAT and self.mode < PLAIN:
            return self._replace(mode=self.mode + 1)
        is_new = part and part != RESPONSE_FORMAT and part not in self.refused
        return self._replace(refused=self.refused | {part}) if is_new else None

    def join(self, other: Dialect) -> Dialect:
        """Return what is left where both narrowings, learned by calls side by side, hold."""
        return Dialect(max(self.mode, other.mode), self.refused | other.refused)


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
    content: str
    """The field of a response that holds the reply."""
    reserved: tuple[str, ...]
    """Fields that Evenhand sets, and the user's params may not."""
    first_dialect: Callable[[str], Dialect] = lambda model: Dialect()
    """Returns the dialect to start with, by the name of the model."""
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


async def read_body(response: HttpResponse, wire: WireFormat) -> Any:
    """Return the value of a body, that of a stream as it would be in one piece; or the CallLost
    that it amounts to. A stream that breaks off is lost, however much of it came."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        return parse_body(response.body)
    events: list[Any] = []
    try:
        for data in _events(response.body):
            if data != b"[DONE]":
                events.append(load_json(data.decode()))
            if len(events) % EVENTS_AT_ONCE == 0:
                await asyncio.sleep(0)
        joined = wire.join_events(events)
    except (ValueError, *UNREADABLE):
        return unreadable("a stream that cannot be read")
    if joined is None:
        return CallLost("transport", "the stream broke off before its end", billed=True)
    return joined


def _events(body: bytes) -> Iterator[bytes]:
    """Yield the data of each server-sent event."""
    data: list[bytes] = []
    for line in (*_LINE_END.split(body.removeprefix(b"\xef\xbb\xbf")), b""):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []


def stream_error(error: Any, *, has_begun: bool) -> dict[str, Any]:
    """Return the body of an error inside a stream. What was written before it may be billed,
    whatever status the error names, so then it keeps its message alone."""
    message = text_of(object_of(error).get("message")) or str(error)
    return {"error": {"message": message} if has_begun else error}


def join_choices(choices: Sequence[Decoded]) -> Decoded:
    """Return all choices as one reply; one was asked for. Different texts stand one after the
    other, so that two verdicts are seen as two."""
    texts = dict.fromkeys(choice.text for choice in choices)
    last = next((choice for choice in choices if choice.finish != "stop"), choices[0])
    return last._replace(text="\n\n".join(texts))


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
