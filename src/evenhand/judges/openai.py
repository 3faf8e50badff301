"""Judges behind the OpenAI chat completions protocol: OpenAI, Azure, OpenRouter, Ollama, vLLM,
llama.cpp, gateways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace
from yarl import URL

from evenhand.exchange import Finish, Message, Usage
from evenhand.jsontext import encoded
from evenhand.judges.complaint import is_list, is_object
from evenhand.judges.dialect import Dialect, dialect_for, response_format
from evenhand.judges.logprobs import Token, token
from evenhand.judges.provider import JudgeOptions, Provider
from evenhand.judges.remote import Decoded, RemoteJudge, one_reply, text_of
from evenhand.judges.usage import usage_of
from evenhand.limits import TOKENS_MOST

_FINISH: dict[str, Finish] = {"length": "length", "content_filter": "filtered"}


class OpenAIJudge(RemoteJudge):
    """A judge that speaks chat completions, at whatever service."""

    holder = "choices"

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        super().__init__(provider, options, model, dialect_for(model))

    def _endpoint(self, base: URL) -> URL:
        return (base / "chat" / "completions").with_query(base.query)

    def _turns(self, messages: Sequence[Message]) -> bytes:
        return b'{"messages":[%b]' % b",".join(map(_turn, messages))

    def _settings(
        self, schema: Mapping[str, Any] | None, sampled: Mapping[str, float], dialect: Dialect
    ) -> dict[str, Any]:
        settings = {"model": self._model, dialect.tokens: self._max_tokens, **sampled}
        form = response_format(dialect.mode, schema)
        if form is not None:
            settings["response_format"] = form
        if dialect.logprobs:
            settings |= {"logprobs": True, "top_logprobs": dialect.logprobs}
        return settings

    def _decode(self, body: Any) -> Decoded:
        usage, model = _usage(body.get("usage")), _served_by(body)
        return one_reply([_chosen(choice, usage, model) for choice in body["choices"]])


def _chosen(choice: Any, usage: Usage, model: str) -> Decoded:
    message = choice["message"]
    finish = choice.get("finish_reason")
    if finish == "error":
        raise KeyError
    refusal = text_of(message.get("refusal"))
    listed = choice.get("logprobs")
    return Decoded(
        text=refusal or _text(message.get("content")),
        finish="refused" if refusal else _FINISH.get(finish, "stop"),
        usage=usage,
        model=model,
        tokens=_tokens(listed) if listed else (),
    )


def _turn(message: Message) -> bytes:
    return _system(message.content) if message.role == "system" else _written(message)


@lru_cache(maxsize=16)
def _system(content: str) -> bytes:
    """The system message is the longest and the same for all: it is written once."""
    return _written(Message("system", content))


def _written(message: Message) -> bytes:
    return encoded({"role": message.role, "content": message.content})


def _text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if is_list(content) else []
    texts = (p.get("text") for p in parts if is_object(p) and p.get("type") == "text")
    return "".join(t for t in texts if isinstance(t, str))


def _served_by(body: Mapping[str, Any]) -> str:
    """The model that answered, and at OpenRouter the host that ran it: hosts of one model differ
    in precision."""
    model, host = text_of(body.get("model")), body.get("provider")
    return f"{model} via {host}" if isinstance(host, str) and host else model


def _usage(counts: Any) -> Usage:
    if not is_object(counts):
        return Usage()
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if is_object(details) else None
    usage = usage_of([counts.get("prompt_tokens")], [counts.get("completion_tokens")], cached)
    return _with_thoughts(usage, counts.get("total_tokens"))


def _with_thoughts(usage: Usage, total: Any) -> Usage:
    """Some services (Grok, Gemini's compatible one) leave thoughts out of `completion_tokens`, and
    bill them: the total has them."""
    if usage.input_tokens is None or usage.output_tokens is None or type(total) is not int:
        return usage
    written = total - usage.input_tokens
    if not usage.output_tokens < written <= TOKENS_MOST:
        return usage
    return replace(usage, output_tokens=written)


def _tokens(listed: Any) -> list[Token]:
    """The tokens of a reply with their alternatives; none where the list is not in order."""
    try:
        return [
            token(_raw(item), item["logprob"], _alternatives(item["top_logprobs"]))
            for item in listed["content"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


def _alternatives(tops: Any) -> list[tuple[bytes, Any]]:
    return [(_raw(top), top["logprob"]) for top in tops]


def _raw(item: Mapping[str, Any]) -> bytes:
    """A token's bytes; where the endpoint lists none, those of its text."""
    raw = item.get("bytes")
    return bytes(raw) if is_list(raw) else item["token"].encode()
