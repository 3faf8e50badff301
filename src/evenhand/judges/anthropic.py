"""Judges behind Anthropic's messages protocol. It has no seed and gives no log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.errors import UsageError
from evenhand.exchange import Finish, Message, Usage
from evenhand.jsontext import compact
from evenhand.judges.complaint import is_object
from evenhand.judges.dialect import SCHEMA, Dialect
from evenhand.judges.remote import RemoteJudge, Said, count, text_of
from evenhand.judges.services import ANTHROPIC

HOTTEST = 1.0
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class AnthropicJudge(RemoteJudge):
    """A judge that speaks the messages protocol."""

    holder = "content"

    def __init__(self, *, temperature: float | None, **rest: Any) -> None:
        if temperature is not None and temperature > HOTTEST:
            raise UsageError(
                f"anthropic takes temperatures from 0 to {HOTTEST:g}, not {temperature:g}",
                where="[[judges]]",
                advice="Lower temperature; it is not changed silently.",
            )
        dialect = Dialect(seed=False)
        super().__init__(temperature=temperature, service=ANTHROPIC, dialect=dialect, **rest)

    def _endpoint(self, base: URL) -> URL:
        return base / "messages"

    def _turns(self, messages: Sequence[Message]) -> str:
        system = "\n\n".join(m.content for m in messages if m.role == "system")
        turns = [{"role": m.role, "content": m.content} for m in messages if m.role != "system"]
        told = {"system": system} if system else {}
        return compact({**told, "messages": turns})[:-1]

    def _settings(
        self, schema: Mapping[str, Any] | None, drawn: Mapping[str, float], spoken: Dialect
    ) -> dict[str, Any]:
        settings = {"model": self._model, "max_tokens": self._max_tokens, **drawn}
        if schema is not None and spoken.mode == SCHEMA:
            settings["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return settings

    def _said(self, found: Any) -> Said:
        texts = [part["text"] for part in found["content"] if part["type"] == "text"]
        return Said(
            text="".join(texts),
            finish=_FINISH.get(found.get("stop_reason"), "stop"),
            usage=_usage(found.get("usage")),
            model=text_of(found.get("model")),
        )


def _usage(found: Any) -> Usage:
    """`input_tokens` leaves out what was read from a cache or written to one."""
    if not is_object(found):
        return Usage()
    fresh, cached = count(found.get("input_tokens")), count(found.get("cache_read_input_tokens"))
    stored = count(found.get("cache_creation_input_tokens")) or 0
    return Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + stored,
        output_tokens=count(found.get("output_tokens")),
        cached_tokens=cached or 0,
    )
