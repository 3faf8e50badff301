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
        system = "\n\n".join(m.content for m in messages if m.role == "system")
        turns = [{"role": m.role, "content": m.content} for m in messages if m.role != "system"]
        instructions = {"system": system} if system else {}
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


def _usage(counts: Any) -> Usage:
    """`input_tokens` leaves out what was read from a cache or written to one."""
    if not is_object(counts):
        return Usage()
    cached, stored = (
        0 if (count := counts.get(f"cache_{name}_input_tokens")) is None else count
        for name in ("read", "creation")
    )
    read = [counts.get("input_tokens"), cached, stored]
    return usage_of(read, [counts.get("output_tokens")], cached)
