"""Replies inside HTTP responses: JSON within bounds, streams of events joined to one body, token
counts that can be true.

Total: whatever a provider sends is a value that a store can hold, or None, or one of UNREADABLE.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeGuard, cast

from msgspec import Struct
from msgspec.structs import replace

from evenhand import jsontext, limits
from evenhand.errors import CallLost
from evenhand.exchange import Finish, Usage
from evenhand.judges.logprobs import Token
from evenhand.judges.transport import HttpResponse

UNREADABLE = (KeyError, IndexError, TypeError, AttributeError)
"""What reading a body of another form raises."""
DIGITS_TOLD = 24
EVENTS_AT_ONCE = 256
"""So many events are joined before other calls have their turn."""
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Decoded(Struct, frozen=True):
    """A reply as its protocol reads it. `tokens` spell the text, where they were asked for;
    `reasoning` is what the model thought before, and no part of the reply."""

    text: str
    finish: Finish
    usage: Usage
    model: str
    tokens: Sequence[Token] = ()
    reasoning: str = ""


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return True if a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return True if a decoded JSON value is an array."""
    return isinstance(value, list)


def text_of(value: Any) -> str:
    """Return a decoded value that should be a string; empty where it is none."""
    return value if isinstance(value, str) else ""


def load_json(text: str) -> Any:
    """Return the value of a text from outside. Raises ValueError, before anything is built of one
    that nests too deep or holds too many values."""
    jsontext.require_bounds(text, limits.STORED_DEPTH, limits.BODY_ELEMENTS)
    return json.loads(text)


def parse_body(body: bytes) -> Any:
    """Return the value of a body, or the CallLost that it amounts to."""
    if not body:
        return nonsense("an empty body")
    try:
        return load_json(body.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError:
        return nonsense("a body that is no UTF-8")
    except ValueError:
        return nonsense("a body that is no JSON")


def nonsense(what: str) -> CallLost:
    """Return the error for a response that says nothing."""
    return CallLost("transport", f"the provider answered 200 with {what}", billed=True)


# Streams


class StreamJoiner(Protocol):
    """Joins the events of one stream."""

    def add(self, event: Any) -> None:
        """Take the next event; raises one of UNREADABLE for what is none."""
        ...

    def body(self) -> dict[str, Any] | None:
        """Return the body that the same reply would have in one piece, or that of its error; None
        where the stream broke off before its end."""
        ...


def is_stream(response: HttpResponse) -> bool:
    """Return True if a response is a stream of events, whatever was asked for."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return 200 <= response.status < 300 and kind == "text/event-stream"


async def join_stream(response: HttpResponse, joiner: StreamJoiner) -> HttpResponse:
    """Return the response as it would be in one piece. Raises CallLost for a stream that breaks
    off, however much of it came: a short reply is none."""
    joined = await _join(response, joiner)
    if isinstance(joined, CallLost):
        # Here, where no frame holds what came: it may repeat the key.
        raise joined
    return joined


async def _join(response: HttpResponse, joiner: StreamJoiner) -> HttpResponse | CallLost:
    try:
        for number, data in enumerate(_events(response.body)):
            if data != b"[DONE]":
                joiner.add(load_json(data.decode()))
            if number % EVENTS_AT_ONCE == EVENTS_AT_ONCE - 1:
                await asyncio.sleep(0)
        body = joiner.body()
    except (ValueError, *UNREADABLE):
        return nonsense("a stream that cannot be read")
    if body is None:
        return CallLost("transport", "the stream broke off before its end", billed=True)
    return HttpResponse(response.status, response.headers, jsontext.encoded(body))


def stream_error(error: Any, *, has_begun: bool) -> dict[str, Any]:
    """Return the body of an error inside a stream. What was written before it may be billed,
    whatever status the error names, so then it keeps its words alone."""
    said = text_of(error.get("message")) if is_object(error) else text_of(error)
    return {"error": {"message": said or str(error)} if has_begun else error}


def _events(body: bytes) -> Iterator[bytes]:
    """Yield the data of each server-sent event. One that breaks off within a line is broken
    JSON."""
    data: list[bytes] = []
    for line in _lines(body.removeprefix(b"\xef\xbb\xbf")):
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _lines(body: bytes) -> Iterator[bytes]:
    start = 0
    for end in _LINE_END.finditer(body):
        yield body[start : end.start()]
        start = end.end()
    yield body[start:]


# Several choices


def one_reply(choices: Sequence[Decoded]) -> Decoded:
    """Return the reply that several choices amount to; one was asked for. Equal ones are one;
    different ones stand one after the other, so that two verdicts are seen as two."""
    first = choices[0]
    if len(choices) == 1:
        return first
    texts = {_meaning(choice.text): choice.text for choice in reversed(choices)}
    finish = next((choice.finish for choice in choices if choice.finish != "stop"), first.finish)
    if len(texts) == 1 and finish == first.finish:
        return first
    return replace(first, text="\n\n".join(reversed(texts.values())), finish=finish, tokens=())


def _meaning(text: str) -> str:
    """Return what a text says: of JSON its value, of anything else the text."""
    try:
        return jsontext.canonical(jsontext.parse(text))
    except ValueError:
        return text.strip()


# Tokens


def usage_of(
    read: Sequence[Any], written: Sequence[Any], cached: Any = None, stored: Any = None
) -> Usage:
    """Return the usage of a reply, from the decoded counts that make up its input and its output,
    and the parts of the input that were read from a cache and written to one. A count that is
    missing leaves its sum unknown. Where one cannot be true none of them is believed."""
    if all(map(_is_possible, (*read, *written, cached, stored))):
        input_tokens, output_tokens = _sum(read), _sum(written)
        cached, stored = cached or 0, stored or 0
        if cached + stored <= (input_tokens or 0):
            return Usage(
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cached_tokens=cached,
                cache_write_tokens=stored,
            )
    claims = {"input": read, "output": written, "cached": [cached], "stored": [stored]}
    return Usage(implausible=_in_words(claims))


def _is_possible(count: Any) -> bool:
    return count is None or (type(count) is int and 0 <= count <= limits.TOKENS_MOST)


def _sum(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(cast("Sequence[int]", counts))


def _in_words(claims: dict[str, Sequence[Any]]) -> str:
    """Return the counts in words. Of what is no number only its type is told: it may repeat the
    key."""
    return ", ".join(
        f"{name} {' + '.join(map(_word, counts))}"
        for name, counts in claims.items()
        if any(count is not None for count in counts)
    )


def _word(count: Any) -> str:
    if not isinstance(count, int | float):
        return type(count).__name__
    text = str(count)
    return text if len(text) <= DIGITS_TOLD else f"a number of {len(text)} digits"
