"""Judges behind Gemini's generateContent. The key goes in a header, never in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.exchange import Finish, Message, Usage
from evenhand.judges.dialect import PLAIN, SCHEMA, Dialect
from evenhand.judges.logprobs import Token, token
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.judges.remote import RemoteJudge
from evenhand.judges.reply import (
    Decoded,
    is_list,
    is_object,
    one_reply,
    stream_error,
    text_of,
    usage_of,
)

_ROLES = {"user": "user", "assistant": "model"}
_FINISH: dict[str, Finish] = {
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
}


class GoogleJudge(RemoteJudge):
    """A judge that speaks generateContent."""

    holder = "candidates"
    reserved = (
        *("model", "contents", "systemInstruction", "system_instruction", "generation_config"),
        *(
            f"generationConfig.{name}"
            for name in (
                *("maxOutputTokens", "temperature", "seed", "candidateCount", "responseMimeType"),
                *("responseSchema", "responseJsonSchema", "responseLogprobs", "logprobs"),
            )
        ),
    )

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        super().__init__(provider, options, model, Dialect())

    def _endpoint(self, base: URL, *, stream: bool) -> URL:
        folder = base if "/" in self._model else base / "models"
        if stream:
            return (folder / f"{self._model}:streamGenerateContent").with_query(alt="sse")
        return folder / f"{self._model}:generateContent"

    def _request(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        sampled: Mapping[str, float],
        dialect: Dialect,
    ) -> dict[str, Any]:
        system = [_part(m) for m in messages if m.role == "system"]
        turns = [
            {"role": _ROLES[m.role], "parts": [_part(m)]} for m in messages if m.role != "system"
        ]
        settings: dict[str, Any] = {"maxOutputTokens": self._max_tokens, **sampled}
        if schema is not None and dialect.mode < PLAIN:
            settings["responseMimeType"] = "application/json"
        if schema is not None and dialect.mode == SCHEMA:
            settings["responseJsonSchema"] = schema
        if dialect.logprobs:
            settings |= {"responseLogprobs": True, "logprobs": dialect.logprobs}
        instructions = {"systemInstruction": {"parts": system}} if system else {}
        return {**instructions, "contents": turns, "generationConfig": settings}

    def _stream_settings(self, dialect: Dialect) -> dict[str, Any]:
        return {}

    def _joiner(self) -> CandidateStream:
        return CandidateStream()

    def _decode(self, body: Any) -> Decoded:
        usage, model = _usage(body.get("usageMetadata")), text_of(body.get("modelVersion"))
        if not body.get("candidates") and body["promptFeedback"]["blockReason"]:
            return Decoded("", "filtered", usage, model)
        return one_reply([_candidate(each, usage, model) for each in body["candidates"]])


class CandidateStream:
    """Joins the responses of a stream, each with the next parts of its candidates."""

    def __init__(self) -> None:
        self._body: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}

    def add(self, event: Any) -> None:
        """Take a response."""
        for name in ("usageMetadata", "modelVersion", "promptFeedback", "error"):
            if event.get(name):
                self._body[name] = event[name]
        for candidate in event.get("candidates") or ():
            whole = self._candidates.setdefault(
                candidate.get("index") or 0, {"content": {"parts": []}}
            )
            whole["content"]["parts"] += (candidate.get("content") or {}).get("parts") or []
            if candidate.get("finishReason"):
                whole["finishReason"] = candidate["finishReason"]
            for name, listed in (candidate.get("logprobsResult") or {}).items():
                if is_list(listed):
                    whole.setdefault("logprobsResult", {}).setdefault(name, []).extend(listed)

    def body(self) -> dict[str, Any] | None:
        """Return the whole response; None before each of its candidates has ended."""
        if "error" in self._body:
            return stream_error(self._body["error"], has_begun=bool(self._candidates))
        candidates = list(self._candidates.values())
        if not all("finishReason" in candidate for candidate in candidates):
            return None
        if not candidates and "promptFeedback" not in self._body:
            return None
        return {**self._body, "candidates": candidates}


def _candidate(candidate: Any, usage: Usage, model: str) -> Decoded:
    parts = (candidate.get("content") or {}).get("parts") or []
    listed = candidate.get("logprobsResult")
    return Decoded(
        text="".join(p.get("text", "") for p in parts if not p.get("thought")),
        finish=_FINISH.get(candidate.get("finishReason"), "stop"),
        usage=usage,
        model=model,
        tokens=_tokens(listed) if listed else (),
        reasoning="".join(text_of(p.get("text")) for p in parts if p.get("thought")),
    )


def _part(message: Message) -> dict[str, str]:
    return {"text": message.content}


def _usage(counts: Any) -> Usage:
    """Return the usage. Thoughts are billed as output; a field that would be zero is left out."""
    if not is_object(counts) or counts.get("promptTokenCount") is None:
        return Usage()
    written = [counts.get(name, 0) for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    return usage_of([counts["promptTokenCount"]], written, counts.get("cachedContentTokenCount"))


def _tokens(listed: Any) -> list[Token]:
    """Return the tokens of a reply with their alternatives; none where the lists are not in
    order."""
    try:
        return [
            token(*_scored(chosen), [_scored(top) for top in tops["candidates"]])
            for chosen, tops in zip(
                listed["chosenCandidates"], listed["topCandidates"], strict=True
            )
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


def _scored(candidate: Mapping[str, Any]) -> tuple[bytes, float]:
    return candidate["token"].encode(), candidate["logProbability"]
