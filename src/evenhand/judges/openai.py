"""The chat completions protocol of OpenAI, Azure, OpenRouter, Ollama, vLLM, llama.cpp, gateways."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from yarl import URL

from evenhand.exchange import Finish, Usage
from evenhand.judges.wire import (
    OBJECT,
    RESPONSE_FORMAT,
    SCHEMA,
    Decoded,
    Dialect,
    Request,
    WireFormat,
    is_list,
    is_object,
    join_choices,
    object_of,
    stream_error,
    text_of,
    usage_of,
)
from evenhand.limits import TOKENS_MOST

_FINISH: dict[str | None, Finish] = {"length": "length", "content_filter": "filtered"}
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
_REASONING = re.compile(r"(.*/)?(o\d|gpt-([5-9]|\d\d))")


def _first_dialect(model: str) -> Dialect:
    """Return the dialect to start with: reasoning models take `max_completion_tokens` alone."""
    return Dialect(refused=frozenset(("max_tokens",) if _REASONING.match(model) else ()))


def _endpoint_url(base: URL, request: Request) -> URL:
    return base / "chat" / "completions"


def build_request(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return the body of a request."""
    takes = "max_tokens" not in dialect.refused
    body: dict[str, Any] = {
        "messages": [message.json() for message in request.messages],
        "model": request.model,
        "max_tokens" if takes else "max_completion_tokens": request.max_tokens,
        **request.sampling,
    }
    if request.schema is not None and dialect.mode == SCHEMA:
        strict = {"name": "reply", "strict": True, "schema": request.schema}
        body[RESPONSE_FORMAT] = {"type": "json_schema", "json_schema": strict}
    elif request.schema is not None and dialect.mode == OBJECT:
        body[RESPONSE_FORMAT] = {"type": "json_object"}
    if request.stream:
        body["stream"] = True
        if "stream_options" not in dialect.refused:
            body["stream_options"] = {"include_usage": True}
    return body


def join_events(events: Sequence[Any]) -> dict[str, Any] | None:
    """Return the completion that the chunks add up to; None before each of its choices ended."""
    body: dict[str, Any] = {}
    ends: dict[int, Any] = {}
    texts: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for event in events:
        body |= {n: event[n] for n in ("model", "provider", "usage", "error") if event.get(n)}
        for choice in event.get("choices") or ():
            index = choice.get("index") or 0
            ends[index] = choice.get("finish_reason") or ends.get(index)
            delta = choice.get("delta") or choice.get("message") or {}
            for name in _TEXTS:
                texts[index, name].append(_text(delta.get(name)))
    if "error" in body:
        return stream_error(body["error"], has_begun=bool(ends))
    if not ends or not all(ends.values()):
        return None
    choices = [
        {"message": {n: "".join(texts[index, n]) for n in _TEXTS}, "finish_reason": end}
        for index, end in ends.items()
    ]
    return {**body, "choices": choices}


def read_reply(body: Any) -> Decoded:
    """Return the reply in a completion."""
    usage = _usage(body.get("usage"))
    model, host = text_of(body.get("model")), text_of(body.get("provider"))
    # At OpenRouter the host that ran the model too: hosts of one model differ in precision.
    model = f"{model} via {host}" if host else model
    return join_choices([_choice(choice, usage, model) for choice in body["choices"]])


def _choice(choice: Any, usage: Usage, model: str) -> Decoded:
    message, finish = choice["message"], choice.get("finish_reason")
    if finish == "error":
        raise KeyError
    refusal = text_of(message.get("refusal"))
    return Decoded(
        text=refusal or _text(message.get("content")),
        finish="refused" if refusal else _FINISH.get(finish, "stop"),
        usage=usage,
        model=model,
        reasoning=text_of(message.get("reasoning_content")) or text_of(message.get("reasoning")),
    )


def _text(content: Any) -> str:
    """Return the text of a message: a string, or the text parts of a list."""
    if not is_list(content):
        return text_of(content)
    parts = [part for part in content if is_object(part) and part.get("type") == "text"]
    return "".join(text_of(part.get("text")) for part in parts)


def _usage(counts: Any) -> Usage:
    """Return the usage. Some services (Grok, Gemini's compatible one) leave thoughts out of
    `completion_tokens`, and bill them: the total has them."""
    if not is_object(counts):
        return Usage()
    cached = object_of(counts.get("prompt_tokens_details")).get("cached_tokens")
    usage = usage_of([counts.get("prompt_tokens")], [counts.get("completion_tokens")], cached)
    total = counts.get("total_tokens")
    if usage.input_tokens is None or usage.output_tokens is None or type(total) is not int:
        return usage
    written = total - usage.input_tokens
    is_more = usage.output_tokens < written <= TOKENS_MOST
    return replace(usage, output_tokens=written) if is_more else usage


FORMAT = WireFormat(
    build_request=build_request,
    read_reply=read_reply,
    join_events=join_events,
    endpoint=_endpoint_url,
    first_dialect=_first_dialect,
    content="choices",
    reserved=(
        *("model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens"),
        *("temperature", "seed", "response_format", "n"),
    ),
)
