"""Gemini's generateContent protocol. The key goes in a header, never in the URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yarl import URL

from evenhand.exchange import Finish, Message, Usage
from evenhand.judges.wire import (
    PLAIN,
    SCHEMA,
    Decoded,
    Dialect,
    Request,
    WireFormat,
    is_object,
    join_choices,
    stream_error,
    text_of,
    usage_of,
)

_FINISH: dict[str, Finish] = {
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "filtered"
    ),
}


def _endpoint_url(base: URL, request: Request) -> URL:
    folder = base if "/" in request.model else base / "models"
    if request.stream:
        return (folder / f"{request.model}:streamGenerateContent").with_query(alt="sse")
    return folder / f"{request.model}:generateContent"


def build_request(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return the body of a request."""
    system = [_part(m) for m in request.messages if m.role == "system"]
    turns = [
        {"role": "model" if m.role == "assistant" else "user", "parts": [_part(m)]}
        for m in request.messages
        if m.role != "system"
    ]
    settings: dict[str, Any] = {"maxOutputTokens": request.max_tokens, **request.sampling}
    if request.schema is not None and dialect.mode < PLAIN:
        settings["responseMimeType"] = "application/json"
    if request.schema is not None and dialect.mode == SCHEMA:
        settings["responseJsonSchema"] = request.schema
    instructions = {"systemInstruction": {"parts": system}} if system else {}
    return {**instructions, "contents": turns, "generationConfig": settings}


def _part(message: Message) -> dict[str, str]:
    return {"text": message.content}


def join_events(events: Sequence[Any]) -> dict[str, Any] | None:
    """Return the response that the events add up to; None before each of its candidates ended."""
    body: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    for event in events:
        for name in ("usageMetadata", "modelVersion", "promptFeedback", "error"):
            if event.get(name):
                body[name] = event[name]
        for part in event.get("candidates") or ():
            whole = candidates.setdefault(part.get("index") or 0, {"content": {"parts": []}})
            whole["content"]["parts"] += (part.get("content") or {}).get("parts") or []
            if part.get("finishReason"):
                whole["finishReason"] = part["finishReason"]
    if "error" in body:
        return stream_error(body["error"], has_begun=bool(candidates))
    has_ended = all("finishReason" in candidate for candidate in candidates.values())
    if not has_ended or not (candidates or "promptFeedback" in body):
        return None
    return {**body, "candidates": list(candidates.values())}


def read_reply(body: Any) -> Decoded:
    """Return the reply in a response."""
    usage, model = _usage(body.get("usageMetadata")), text_of(body.get("modelVersion"))
    if not body.get("candidates") and body["promptFeedback"]["blockReason"]:
        return Decoded("", "filtered", usage, model)
    return join_choices([_candidate(each, usage, model) for each in body["candidates"]])


def _candidate(candidate: Any, usage: Usage, model: str) -> Decoded:
    parts = (candidate.get("content") or {}).get("parts") or []
    return Decoded(
        text="".join(p.get("text", "") for p in parts if not p.get("thought")),
        finish=_FINISH.get(candidate.get("finishReason"), "stop"),
        usage=usage,
        model=model,
        reasoning="".join(text_of(p.get("text")) for p in parts if p.get("thought")),
    )


def _usage(counts: Any) -> Usage:
    """Return the usage. Thoughts are billed as output; a field that would be zero is left out."""
    if not is_object(counts) or counts.get("promptTokenCount") is None:
        return Usage()
    written = [counts.get(name, 0) for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    return usage_of([counts["promptTokenCount"]], written, counts.get("cachedContentTokenCount"))


FORMAT = WireFormat(
    build_request=build_request,
    read_reply=read_reply,
    join_events=join_events,
    endpoint=_endpoint_url,
    content="candidates",
    reserved=(
        *("model", "contents", "systemInstruction", "system_instruction", "generation_config"),
        *(
            f"generationConfig.{name}"
            for name in (
                *("maxOutputTokens", "temperature", "seed", "candidateCount", "responseMimeType"),
                *("responseSchema", "responseJsonSchema"),
            )
        ),
    ),
)
