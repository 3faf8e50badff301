"""Judges behind Anthropic's messages protocol. It has no seed and gives no log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.errors import UsageError
from evenhand.exchange import Finish, Message, Usage
from evenhand.judges.dialect import SCHEMA, Dialect
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.judges.remote import RemoteJudge
from evenhand.judges.reply import Decoded, is_object, stream_error, text_of, usage_of

HOTTEST = 1.0
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class AnthropicJudge(RemoteJudge):
    """A judge that speaks the messages protocol."""

    holder = "content"
    reserved = (
        *("model", "messages", "system", "stream", "max_tokens", "temperature"),
        "output_config.format",
    )

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        temperature = options.temperature
        if temperature is not None and temperature > HOTTEST:
            raise UsageError(
                f"anthropic takes temperatures from 0 to {HOTTEST:g}, not {temperature:g}",
                where="[[judges]]",
                advice="Lower temperature; it is not changed silently.",
            )
        super().__init__(provider, options, model, Dialect(seed=False))

    def _endpoint(self, base: URL, *, stream: bool) -> URL:
        return base / "messages"

    def _request(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        sampled: Mapping[str, float],
        dialect: Dialect,
    ) -> dict[str, Any]:
        marked = _last_fixed(messages)
        contents = [_content(m, is_marked=m is marked) for m in messages]
        system = [c for m, c in zip(messages, contents, strict=True) if m.role == "system"]
        turns = [
            {"role": m.role, "content": content}
            for m, content in zip(messages, contents, strict=True)
            if m.role != "system"
        ]
        request: dict[str, Any] = {"system": _joined(system)} if system else {}
        request |= {"messages": turns, "model": self._model, "max_tokens": self._max_tokens}
        request |= sampled
        if schema is not None and dialect.mode == SCHEMA:
            request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return request

    def _stream_settings(self, dialect: Dialect) -> dict[str, Any]:
        return {"stream": True}

    def _joiner(self) -> MessageStream:
        return MessageStream()

    def _decode(self, body: Any) -> Decoded:
        blocks = body["content"]
        return Decoded(
            text="".join(block["text"] for block in blocks if block["type"] == "text"),
            finish=_FINISH.get(body.get("stop_reason"), "stop"),
            usage=_usage(body.get("usage")),
            model=text_of(body.get("model")),
            reasoning="\n\n".join(
                text_of(block.get("thinking")) for block in blocks if block["type"] == "thinking"
            ),
        )


class MessageStream:
    """Joins the events of a message."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}
        self._error: Any = None
        self._is_whole = False

    def add(self, event: Any) -> None:
        """Take an event."""
        kind = event["type"]
        if kind == "message_start":
            self._message = dict(event["message"])
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            for name in ("text", "thinking"):
                if isinstance(text := event["delta"].get(name), str):
                    self._parts.setdefault((event["index"], name), []).append(text)
        elif kind == "message_delta":
            usage = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
            self._message |= {**event["delta"], "usage": usage}
        elif kind == "message_stop":
            self._is_whole = True
        elif kind == "error":
            self._error = event.get("error") or event

    def body(self) -> dict[str, Any] | None:
        """Return the whole message; None before its end."""
        if self._error is not None:
            return stream_error(self._error, has_begun=bool(self._blocks))
        if not self._is_whole:
            return None
        for (index, name), parts in self._parts.items():
            block = self._blocks[index]
            block[name] = text_of(block.get(name)) + "".join(parts)
        return {**self._message, "content": list(self._blocks.values())}


Content = str | list[dict[str, Any]]
"""A turn: a text, or parts of one, of which the first is marked."""


def _last_fixed(messages: Sequence[Message]) -> Message | None:
    """Return the message in which the unchanging part of a conversation ends; None where nothing is
    alike for all units."""
    last: Message | None = None
    for message in messages:
        if message.content[: message.fixed].strip():
            last = message
        if message.fixed < len(message.content):
            break
    return last


def _content(message: Message, *, is_marked: bool) -> Content:
    """Return the text of a turn, cut where the provider's cache is to end."""
    if not is_marked:
        return message.content
    beginning, rest = message.content[: message.fixed], message.content[message.fixed :]
    mark = {"type": "text", "text": beginning, "cache_control": {"type": "ephemeral"}}
    if not rest:
        return [mark]
    # A part of white space alone is refused.
    return [mark, {"type": "text", "text": rest}] if rest.strip() else message.content


def _joined(contents: Sequence[Content]) -> Content:
    """Return the instructions: in parts, where one of them is."""
    texts = [content for content in contents if isinstance(content, str)]
    if len(texts) == len(contents):
        return "\n\n".join(texts)
    parts: list[dict[str, Any]] = []
    for content in contents:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return parts


def _usage(counts: Any) -> Usage:
    """Return the usage; `input_tokens` leaves out what was read from a cache or written to one."""
    if not is_object(counts):
        return Usage()
    cached, stored = (
        0 if (count := counts.get(f"cache_{name}_input_tokens")) is None else count
        for name in ("read", "creation")
    )
    read = [counts.get("input_tokens"), cached, stored]
    return usage_of(read, [counts.get("output_tokens")], cached, stored)
