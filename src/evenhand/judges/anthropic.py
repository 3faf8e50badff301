"""Judges behind Anthropic's messages protocol. It has no seed and gives no log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.errors import UsageError
from evenhand.exchange import Finish, Message, Usage
from evenhand.jsontext import encoded
from evenhand.judges.complaint import is_object
from evenhand.judges.dialect import SCHEMA, Dialect
from evenhand.judges.provider import JudgeOptions, Provider
from evenhand.judges.remote import Decoded, RemoteJudge, text_of
from evenhand.judges.usage import usage_of

HOTTEST = 1.0
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class AnthropicJudge(RemoteJudge):
    """A judge that speaks the messages protocol."""

    holder = "content"

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        temperature = options.temperature
        if temperature is not None and temperature > HOTTEST:
            raise UsageError(
                f"anthropic takes temperatures from 0 to {HOTTEST:g}, not {temperature:g}",
                where="[[judges]]",
                advice="Lower temperature; it is not changed silently.",
            )
        super().__init__(provider, options, model, Dialect(seed=False))

    def _endpoint(self, base: URL) -> URL:
        return base / "messages"

    def _turns(self, messages: Sequence[Message]) -> bytes:
        marked = _last_fixed(messages)
        contents = [_content(m, is_marked=m is marked) for m in messages]
        system = [c for m, c in zip(messages, contents, strict=True) if m.role == "system"]
        turns = [
            {"role": m.role, "content": content}
            for m, content in zip(messages, contents, strict=True)
            if m.role != "system"
        ]
        instructions = {"system": _joined(system)} if system else {}
        return encoded({**instructions, "messages": turns})[:-1]

    def _settings(
        self, schema: Mapping[str, Any] | None, sampled: Mapping[str, float], dialect: Dialect
    ) -> dict[str, Any]:
        settings = {"model": self._model, "max_tokens": self._max_tokens, **sampled}
        if schema is not None and dialect.mode == SCHEMA:
            settings["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return settings

    def _decode(self, body: Any) -> Decoded:
        texts = [part["text"] for part in body["content"] if part["type"] == "text"]
        return Decoded(
            text="".join(texts),
            finish=_FINISH.get(body.get("stop_reason"), "stop"),
            usage=_usage(body.get("usage")),
            model=text_of(body.get("model")),
        )


Content = str | list[dict[str, Any]]
"""What a turn says: a text, or parts of one, of which the first is marked."""


def _last_fixed(messages: Sequence[Message]) -> Message | None:
    """The message in which the unchanging part of a conversation ends; None where nothing is alike
    for all units."""
    last: Message | None = None
    for message in messages:
        if message.content[: message.fixed].strip():
            last = message
        if message.fixed < len(message.content):
            break
    return last


def _content(message: Message, *, is_marked: bool) -> Content:
    """The text of a turn, cut where the provider's cache is to end."""
    if not is_marked:
        return message.content
    beginning, rest = message.content[: message.fixed], message.content[message.fixed :]
    mark = {"type": "text", "text": beginning, "cache_control": {"type": "ephemeral"}}
    if not rest:
        return [mark]
    # A part of white space alone is refused.
    return [mark, {"type": "text", "text": rest}] if rest.strip() else message.content


def _joined(contents: Sequence[Content]) -> Content:
    """The instructions: in parts, where one of them is."""
    texts = [content for content in contents if isinstance(content, str)]
    if len(texts) == len(contents):
        return "\n\n".join(texts)
    parts: list[dict[str, Any]] = []
    for content in contents:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return parts


def _usage(counts: Any) -> Usage:
    """`input_tokens` leaves out what was read from a cache or written to one."""
    if not is_object(counts):
        return Usage()
    cached, stored = (
        0 if (count := counts.get(f"cache_{name}_input_tokens")) is None else count
        for name in ("read", "creation")
    )
    read = [counts.get("input_tokens"), cached, stored]
    return usage_of(read, [counts.get("output_tokens")], cached, stored)
