"""Judges behind Gemini's generateContent. The key goes in a header, never in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.exchange import Finish, Message, Usage
from evenhand.jsontext import compact
from evenhand.judges.complaint import is_object
from evenhand.judges.dialect import PLAIN, SCHEMA, Dialect
from evenhand.judges.logprobs import Token, token
from evenhand.judges.remote import RemoteJudge, Said, count, text_of
from evenhand.judges.services import GOOGLE

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

    def __init__(self, **rest: Any) -> None:
        super().__init__(service=GOOGLE, dialect=Dialect(), **rest)

    def _endpoint(self, base: URL) -> URL:
        folder = base if "/" in self._model else base / "models"
        return folder / f"{self._model}:generateContent"

    def _turns(self, messages: Sequence[Message]) -> str:
        system = [_part(m) for m in messages if m.role == "system"]
        turns = [
            {"role": _ROLES[m.role], "parts": [_part(m)]} for m in messages if m.role != "system"
        ]
        told = {"systemInstruction": {"parts": system}} if system else {}
        return compact({**told, "contents": turns})[:-1]

    def _settings(
        self, schema: Mapping[str, Any] | None, drawn: Mapping[str, float], spoken: Dialect
    ) -> dict[str, Any]:
        settings: dict[str, Any] = {"maxOutputTokens": self._max_tokens, **drawn}
        if schema is not None and spoken.mode < PLAIN:
            settings["responseMimeType"] = "application/json"
        if schema is not None and spoken.mode == SCHEMA:
            settings["responseJsonSchema"] = schema
        if spoken.logprobs:
            settings |= {"responseLogprobs": True, "logprobs": spoken.logprobs}
        return {"generationConfig": settings}

    def _said(self, found: Any) -> Said:
        usage, model = _usage(found.get("usageMetadata")), text_of(found.get("modelVersion"))
        if not found.get("candidates") and found["promptFeedback"]["blockReason"]:
            return Said("", "filtered", usage, model)
        candidate = found["candidates"][0]
        parts = (candidate.get("content") or {}).get("parts") or []
        listed = candidate.get("logprobsResult")
        return Said(
            text="".join(p.get("text", "") for p in parts if not p.get("thought")),
            finish=_FINISH.get(candidate.get("finishReason"), "stop"),
            usage=usage,
            model=model,
            tokens=_tokens(listed) if listed else (),
        )


def _part(message: Message) -> dict[str, str]:
    return {"text": message.content}


def _usage(found: Any) -> Usage:
    """Thoughts are billed as output; a field that would be zero is left out."""
    if not is_object(found) or count(found.get("promptTokenCount")) is None:
        return Usage()
    made = (count(found.get(name, 0)) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
    known = [number for number in made if number is not None]
    return Usage(
        input_tokens=count(found["promptTokenCount"]),
        output_tokens=sum(known) if len(known) == 2 else None,
        cached_tokens=count(found.get("cachedContentTokenCount")) or 0,
    )


def _tokens(listed: Any) -> list[Token]:
    """The tokens of a reply with their alternatives; none where the lists are not in order."""
    try:
        return [
            token(*_scored(one), [_scored(top) for top in tops["candidates"]])
            for one, tops in zip(listed["chosenCandidates"], listed["topCandidates"], strict=True)
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


def _scored(one: Mapping[str, Any]) -> tuple[bytes, float]:
    return one["token"].encode(), one["logProbability"]
