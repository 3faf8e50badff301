"""Anthropic's messages protocol. It has no seed and gives no log-probabilities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from yarl import URL

from evenhand.exchange import Finish, Message, Usage
from evenhand.judges.wire import (
    SCHEMA,
    Decoded,
    Dialect,
    Request,
    WireFormat,
    is_object,
    stream_error,
    text_of,
    usage_of,
)

_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


def _endpoint_url(base: URL, request: Request) -> URL:
    return base / "messages"


def build_request(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return the body of a request."""
    marked = _last_fixed(request.messages)
    parts = [(m.role, _parts(m, is_marked=m is marked)) for m in request.messages]
    system = [part for role, listed in parts if role == "system" for part in listed]
    body: dict[str, Any] = {"system": _content(system)} if system else {}
    body |= {
        "messages": [
            {"role": role, "content": _content(p)} for role, p in parts if role != "system"
        ],
        "model": request.model,
        "max_tokens": request.max_tokens,
        **request.sampling,
    }
    if request.schema is not None and dialect.mode == SCHEMA:
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
    return body | {"stream": True} if request.stream else body


def _last_fixed(messages: Sequence[Message]) -> Message | None:
    """Return the message in which the part that all units share ends; None if they share none."""
    last: Message | None = None
    for message in messages:
        if message.content[: message.fixed].strip():
            last = message
        if message.fixed < len(message.content):
            break
    return last


def _parts(message: Message, *, is_marked: bool) -> list[dict[str, Any]]:
    """Return the text of a turn, cut where the provider's cache is to end."""
    start, rest = message.content[: message.fixed], message.content[message.fixed :]
    # A part of white space alone is refused.
    if not is_marked or (rest and not rest.strip()):
        return [{"type": "text", "text": message.content}]
    cached = {"type": "text", "text": start, "cache_control": {"type": "ephemeral"}}
    return [cached, {"type": "text", "text": rest}] if rest else [cached]


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return plain text where there is nothing to mark, which every gateway takes."""
    is_plain = len(parts) == 1 and "cache_control" not in parts[0]
    return parts[0]["text"] if is_plain else parts


def join_events(events: Sequence[Any]) -> dict[str, Any] | None:
    """Return the message that the events add up to; None before its end."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    texts: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    has_ended = False
    for event in events:
        match event["type"]:
            case "message_start":
                message = dict(event["message"])
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                for name in ("text", "thinking"):
                    texts[event["index"], name].append(text_of(event["delta"].get(name)))
            case "message_delta":
                usage = {**(message.get("usage") or {}), **(event.get("usage") or {})}
                message |= {**event["delta"], "usage": usage}
            case "message_stop":
                has_ended = True
            case "error":
                return stream_error(event.get("error") or event, has_begun=bool(blocks))
            case _:
                pass
    for (index, name), parts in texts.items():
        blocks[index][name] = text_of(blocks[index].get(name)) + "".join(parts)
    return {**message, "content": list(blocks.values())} if has_ended else None


def read_reply(body: Any) -> Decoded:
    """Return the reply in a message."""
    blocks = body["content"]
    thoughts = [text_of(block.get("thinking")) for block in blocks if block["type"] == "thinking"]
    return Decoded(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        finish=_FINISH.get(body.get("stop_reason"), "stop"),
        usage=_usage(body.get("usage")),
        model=text_of(body.get("model")),
        reasoning="\n\n".join(thoughts),
    )


def _usage(counts: Any) -> Usage:
    """Return the usage; `input_tokens` leaves out what a cache held or took in."""
    if not is_object(counts):
        return Usage()
    cached, stored = (
        0 if (count := counts.get(f"cache_{name}_input_tokens")) is None else count
        for name in ("read", "creation")
    )
    read = [counts.get("input_tokens"), cached, stored]
    return usage_of(read, [counts.get("output_tokens")], cached, stored)


FORMAT = WireFormat(
    build_request=build_request,
    read_reply=read_reply,
    join_events=join_events,
    endpoint=_endpoint_url,
    first_dialect=lambda model: Dialect(refused=frozenset(("seed",))),
    content="content",
    reserved=(
        *("model", "messages", "system", "stream", "max_tokens", "temperature"),
        "output_config.format",
    ),
    max_temperature=1.0,
)
