"""Judges behind the OpenAI chat completions protocol: OpenAI, Azure, OpenRouter, Ollama, vLLM,
llama.cpp, gateways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from yarl import URL

from evenhand.errors import UsageError
from evenhand.exchange import Finish, Message, Usage
from evenhand.jsontext import compact
from evenhand.judges.complaint import is_list, is_object
from evenhand.judges.dialect import Dialect, dialect_for, response_format
from evenhand.judges.logprobs import Token, token
from evenhand.judges.remote import RemoteJudge, Said, count, text_of
from evenhand.judges.services import OPENAI, Service

_OWN_FIELDS = frozenset(
    (
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "response_format",
        "seed",
        "stream",
        "temperature",
        "top_logprobs",
    )
)
_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "filtered"}


class OpenAIJudge(RemoteJudge):
    """A judge that speaks chat completions, at whatever service."""

    holder = "choices"

    def __init__(
        self,
        *,
        model: str,
        extra: Mapping[str, Any],
        service: Service = OPENAI,
        **rest: Any,
    ) -> None:
        super().__init__(model=model, service=service, dialect=dialect_for(model), **rest)
        self._extra = _checked(extra)
        self.identity = {**self.identity, "extra": self._extra}

    def _endpoint(self, base: URL) -> URL:
        return (base / "chat" / "completions").with_query(base.query)

    def _turns(self, messages: Sequence[Message]) -> str:
        return f'{{"messages":[{",".join(map(_turn, messages))}]'

    def _settings(
        self, schema: Mapping[str, Any] | None, drawn: Mapping[str, float], spoken: Dialect
    ) -> dict[str, Any]:
        settings = {"model": self._model, spoken.tokens: self._max_tokens, **self._extra, **drawn}
        asked = response_format(spoken.mode, schema)
        if asked is not None:
            settings["response_format"] = asked
        if spoken.logprobs:
            settings |= {"logprobs": True, "top_logprobs": spoken.logprobs}
        return settings

    def _said(self, found: Any) -> Said:
        choice = found["choices"][0]
        message = choice["message"]
        finish = choice.get("finish_reason")
        if finish == "error":
            raise KeyError
        refusal = text_of(message.get("refusal"))
        listed = choice.get("logprobs")
        return Said(
            text=refusal or _text(message.get("content")),
            finish="refused" if refusal else _FINISH.get(finish, "stop"),
            usage=_usage(found.get("usage")),
            model=_served_by(found),
            tokens=_tokens(listed) if listed else (),
        )


def _turn(message: Message) -> str:
    return _system(message.content) if message.role == "system" else _written(message)


@lru_cache(maxsize=16)
def _system(content: str) -> str:
    """The system message is the longest and the same for all: it is written once."""
    return _written(Message("system", content))


def _written(message: Message) -> str:
    return compact({"role": message.role, "content": message.content})


def _checked(extra: Mapping[str, Any]) -> dict[str, Any]:
    own = sorted(_OWN_FIELDS & extra.keys())
    if own:
        raise UsageError(
            f"extra may not hold {', '.join(own)}",
            where="[[judges]]",
            advice="temperature, max_tokens and seed stand beside model; the rest is Evenhand's.",
        )
    return dict(extra)


def _text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if is_list(content) else []
    texts = (p.get("text") for p in parts if is_object(p) and p.get("type") == "text")
    return "".join(t for t in texts if isinstance(t, str))


def _served_by(found: Mapping[str, Any]) -> str:
    """The model that answered, and at OpenRouter the host that ran it: hosts of one model differ
    in precision."""
    model, host = text_of(found.get("model")), found.get("provider")
    return f"{model} via {host}" if isinstance(host, str) and host else model


def _usage(found: Any) -> Usage:
    if not is_object(found):
        return Usage()
    details = found.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if is_object(details) else None
    return Usage(
        input_tokens=count(found.get("prompt_tokens")),
        output_tokens=count(found.get("completion_tokens")),
        cached_tokens=count(cached) or 0,
    )


def _tokens(listed: Any) -> list[Token]:
    """The tokens of a reply with their alternatives; none where the list is not in order."""
    try:
        return [
            token(_raw(one), one["logprob"], [(_raw(t), t["logprob"]) for t in one["top_logprobs"]])
            for one in listed["content"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


def _raw(one: Mapping[str, Any]) -> bytes:
    """A token's bytes; where the endpoint lists none, those of its text."""
    raw = one.get("bytes")
    return bytes(raw) if is_list(raw) else one["token"].encode()
