"""Judges behind the OpenAI chat completions protocol: OpenAI, Azure, OpenRouter, Ollama, vLLM,
llama.cpp, gateways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from yarl import URL

from evenhand.exchange import Message
from evenhand.jsontext import encoded
from evenhand.judges import completion
from evenhand.judges.dialect import Dialect, dialect_for, response_format
from evenhand.judges.provider import JudgeOptions, Provider
from evenhand.judges.remote import Decoded, RemoteJudge


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

    def _decode_usual(self, data: bytes) -> Decoded | None:
        return completion.decoded_usual(data)

    def _decode(self, body: Any) -> Decoded:
        return completion.decoded(body)


def _turn(message: Message) -> bytes:
    return _system(message.content) if message.role == "system" else _written(message)


@lru_cache(maxsize=16)
def _system(content: str) -> bytes:
    """The system message is the longest and the same for all: it is written once."""
    return _written(Message("system", content))


def _written(message: Message) -> bytes:
    return encoded(message.json())
