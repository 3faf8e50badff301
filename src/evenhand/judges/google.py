"""Judges behind Gemini's generateContent. The key goes in a header, never in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.exchange import Finish, Message, Usage
from evenhand.jsontext import encoded
from evenhand.judges.complaint import is_object
from evenhand.judges.dialect import PLAIN, SCHEMA, Dialect
from evenhand.judges.logprobs import Token, token
from evenhand.judges.provider import JudgeOptions, Provider
from evenhand.judges.remote import Decoded, RemoteJudge, one_reply, text_of
from evenhand.judges.usage import usage_of

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

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        super().__init__(provider, options, model, Dialect())

    def _endpoint(self, base: URL) -> URL:
        folder = base if "/" in self._model else base / "models"
        return folder / f"{self._model}:generateContent"

    def _turns(self, messages: Sequence[Message]) -> bytes:
        system = [_part(m) for m in messages if m.role == "system"]
        turns = [
            {"role": _ROLES[m.role], "parts": [_part(m)]} for m in messages if m.role != "system"
        ]
        instructions = {"systemInstruction": {"parts": system}} if system else {}
        return encoded({**instructions, "contents": turns})[:-1]

    def _settings(
        self, schema: Mapping[str, Any] | None, sampled: Mapping[str, float], dialect: Dialect
    ) -> dict[str, Any]:
        settings: dict[str, Any] = {"maxOutputTokens": self._max_tokens, **sampled}
        if schema is not None and dialect.mode < PLAIN:
            settings["responseMimeType"] = "application/json"
        if schema is not None and dialect.mode == SCHEMA:
            settings["responseJsonSchema"] = schema
        if dialect.logprobs:
            settings |= {"responseLogprobs": True, "logprobs": dialect.logprobs}
        return {"generationConfig": settings}

    def _decode(self, body: Any) -> Decoded:
        usage, model = _usage(body.get("usageMetadata")), text_of(body.get("modelVersion"))
        if not body.get("candidates") and body["promptFeedback"]["blockReason"]:
            return Decoded("", "filtered", usage, model)
        return one_reply([_chosen(candidate, usage, model) for candidate in body["candidates"]])


def _chosen(candidate: Any, usage: Usage, model: str) -> Decoded:
    parts = (candidate.get("content") or {}).get("parts") or []
    listed = candidate.get("logprobsResult")
    return Decoded(
        text="".join(p.get("text", "") for p in parts if not p.get("thought")),
        finish=_FINISH.get(candidate.get("finishReason"), "stop"),
        usage=usage,
        model=model,
        tokens=_tokens(listed) if listed else (),
    )


def _part(message: Message) -> dict[str, str]:
    return {"text": message.content}


def _usage(counts: Any) -> Usage:
    """Thoughts are billed as output; a field that would be zero is left out."""
    if not is_object(counts) or counts.get("promptTokenCount") is None:
        return Usage()
    written = [counts.get(name, 0) for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    return usage_of([counts["promptTokenCount"]], written, counts.get("cachedContentTokenCount"))


def _tokens(listed: Any) -> list[Token]:
    """The tokens of a reply with their alternatives; none where the lists are not in order."""
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
