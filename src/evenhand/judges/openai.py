"""Judges behind the OpenAI chat completions protocol: OpenAI, Azure, OpenRouter, Ollama, vLLM,
llama.cpp, gateways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from yarl import URL

from evenhand.exchange import Finish, Message, Usage
from evenhand.judges.dialect import Dialect, dialect_for, response_format
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
from evenhand.limits import TOKENS_MOST

_FINISH: dict[str | None, Finish] = {"length": "length", "content_filter": "filtered"}


class OpenAIJudge(RemoteJudge):
    """A judge that speaks chat completions, at whatever service."""

    holder = "choices"
    reserved = (
        *("model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens"),
        *("temperature", "seed", "response_format", "n", "logprobs", "top_logprobs"),
    )

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        super().__init__(provider, options, model, dialect_for(model))

    def _endpoint(self, base: URL, *, stream: bool) -> URL:
        return (base / "chat" / "completions").with_query(base.query)

    def _request(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        sampled: Mapping[str, float],
        dialect: Dialect,
    ) -> dict[str, Any]:
        turns = [message.json() for message in messages]
        request = {"messages": turns, "model": self._model, dialect.tokens: self._max_tokens}
        request |= sampled
        form = response_format(dialect.mode, schema)
        if form is not None:
            request["response_format"] = form
        if dialect.logprobs:
            request |= {"logprobs": True, "top_logprobs": dialect.logprobs}
        return request

    def _stream_settings(self, dialect: Dialect) -> dict[str, Any]:
        usage = {"stream_options": {"include_usage": True}} if dialect.stream_usage else {}
        return {"stream": True, **usage}

    def _joiner(self) -> ChatStream:
        return ChatStream()

    def _decode(self, body: Any) -> Decoded:
        usage = _usage(body.get("usage"))
        model, host = text_of(body.get("model")), text_of(body.get("provider"))
        # At OpenRouter the host that ran the model too: hosts of one model differ in precision.
        model = f"{model} via {host}" if host else model
        return one_reply([_choice(choice, usage, model) for choice in body["choices"]])


class ChatStream:
    """Joins the chunks of a chat completion."""

    def __init__(self) -> None:
        self._body: dict[str, Any] = {}
        self._choices: dict[int, _ChoiceParts] = {}

    def add(self, event: Any) -> None:
        """Take a chunk."""
        for name in ("model", "provider", "usage", "error"):
            if event.get(name):
                self._body[name] = event[name]
        for choice in event.get("choices") or ():
            self._choices.setdefault(choice.get("index") or 0, _ChoiceParts()).add(choice)

    def body(self) -> dict[str, Any] | None:
        """Return the whole completion; None before each of its choices has ended."""
        if "error" in self._body:
            return stream_error(self._body["error"], has_begun=bool(self._choices))
        choices = [parts.body() for parts in self._choices.values()]
        is_whole = choices and all(choice["finish_reason"] for choice in choices)
        return {**self._body, "choices": choices} if is_whole else None


_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


class _ChoiceParts:
    """What came of one choice."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._tokens: list[Any] = []
        self._finish: Any = None

    def add(self, choice: Any) -> None:
        delta = choice.get("delta") or choice.get("message") or {}
        for name in _TEXTS:
            if isinstance(text := delta.get(name), str):
                self._texts.setdefault(name, []).append(text)
        listed = choice.get("logprobs")
        if is_object(listed) and is_list(listed.get("content")):
            self._tokens += listed["content"]
        self._finish = choice.get("finish_reason") or self._finish

    def body(self) -> dict[str, Any]:
        return {
            "message": {name: "".join(parts) for name, parts in self._texts.items()},
            "finish_reason": self._finish,
            "logprobs": {"content": self._tokens} if self._tokens else None,
        }


def _choice(choice: Any, usage: Usage, model: str) -> Decoded:
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
        reasoning=text_of(message.get("reasoning_content")) or text_of(message.get("reasoning")),
    )


def _text(content: Any) -> str:
    """Return the text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if is_list(content) else []
    return "".join(
        text_of(p.get("text")) for p in parts if is_object(p) and p.get("type") == "text"
    )


def _usage(counts: Any) -> Usage:
    if not is_object(counts):
        return Usage()
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if is_object(details) else None
    usage = usage_of([counts.get("prompt_tokens")], [counts.get("completion_tokens")], cached)
    return _with_thoughts(usage, counts.get("total_tokens"))


def _with_thoughts(usage: Usage, total: Any) -> Usage:
    """Count thoughts as output. Some services (Grok, Gemini's compatible one) leave them out of
    `completion_tokens`, and bill them: the total has them."""
    if usage.input_tokens is None or usage.output_tokens is None or type(total) is not int:
        return usage
    written = total - usage.input_tokens
    if not usage.output_tokens < written <= TOKENS_MOST:
        return usage
    return replace(usage, output_tokens=written)


def _tokens(listed: Any) -> list[Token]:
    """Return the tokens of a reply with their alternatives; none where the list is not in order."""
    try:
        return [
            token(
                _raw(item),
                item["logprob"],
                [(_raw(top), top["logprob"]) for top in item["top_logprobs"]],
            )
            for item in listed["content"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


def _raw(item: Mapping[str, Any]) -> bytes:
    """Return a token's bytes; where the endpoint lists none, those of its text."""
    raw = item.get("bytes")
    return bytes(raw) if is_list(raw) else item["token"].encode()
