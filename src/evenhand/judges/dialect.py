"""Which optional parts of a request one endpoint takes.

A dialect only ever narrows: json_schema, then json_object, then no format; a parameter is dropped
or renamed once. So asking again at once after a narrowing always ends. It is no part of a judge's
identity: the question stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from evenhand.judges.error_response import ErrorResponse

SCHEMA, OBJECT, PLAIN = 0, 1, 2
_FORMAT = (
    r"response[_ ]?format|json[_ ]?schema|response_?(json_?)?schema|json[_ ]?object|json mode"
    r"|structured[_ -]?output|guided[_ ]?(json|decoding)|grammar|additionalProperties"
    r"|output[_ ]?(format|config)|schema (is too complex|produces)|schema in GenerationConfig"
)
# The first part named is what is refused; later names are usually a list of what is allowed.
_PART = re.compile(
    rf"(?P<stream>\bstream_options\b)|(?P<format>{_FORMAT})|(?P<tokens>\bmax_(completion_)?tokens\b)"
    r"|(?P<temperature>\btemperature\b)|(?P<seed>\bseed\b)",
    re.IGNORECASE,
)
# A value out of range is the user's to mend; only a parameter that is not taken is dropped.
_NOT_TAKEN = re.compile(
    r"unsupported|not supported?|n't support|does not support|unknown|unrecogni[sz]ed|unexpected"
    r"|not (permitted|allowed|available|accepted|enabled)|only the default|extra (inputs|fields)"
    r"|deprecated|cannot be used|incompatible|not compatible|may only be set to 1",
    re.IGNORECASE,
)
_REASONING = re.compile(r"(.*/)?(o\d|gpt-([5-9]|\d\d))")


class Dialect(Struct, frozen=True):
    """Which of the optional parts are sent, and under what name."""

    mode: int = SCHEMA
    tokens: str = "max_tokens"
    renamed: bool = False
    temperature: bool = True
    seed: bool = True
    stream_usage: bool = True
    """Ask that the last event of a stream count the tokens."""

    def narrow(self, error: ErrorResponse) -> Dialect | None:
        """Return this dialect less the part that is refused; None where no part of it is."""
        part = _PART.search(error.param) or _PART.search(error.text)
        if part is None or error.is_overflow or error.is_filtered:
            return None
        if part["format"]:
            takes = error.status in (400, 415, 422, 500, 501) and self.mode < PLAIN
            return replace(self, mode=self.mode + 1) if takes else None
        if error.status not in (400, 422) or not _NOT_TAKEN.search(error.text):
            return None
        return self._without(part)

    def _without(self, part: re.Match[str]) -> Dialect | None:
        if part["tokens"]:
            renamed = part["tokens"].lower() == self.tokens and not self.renamed
            return replace(self, tokens=_other_name(self.tokens), renamed=True) if renamed else None
        if part["stream"]:
            return replace(self, stream_usage=False) if self.stream_usage else None
        if part["temperature"]:
            return replace(self, temperature=False) if self.temperature else None
        return replace(self, seed=False) if self.seed else None

    def join(self, learned: Dialect) -> Dialect:
        """Return what is left where both narrowings, learned by calls side by side, hold."""
        return Dialect(
            mode=max(self.mode, learned.mode),
            tokens=learned.tokens if learned.renamed else self.tokens,
            renamed=self.renamed or learned.renamed,
            temperature=self.temperature and learned.temperature,
            seed=self.seed and learned.seed,
            stream_usage=self.stream_usage and learned.stream_usage,
        )


def dialect_for(model: str) -> Dialect:
    """Return the dialect to start with: reasoning models take `max_completion_tokens` alone."""
    return Dialect(tokens="max_completion_tokens") if _REASONING.match(model) else Dialect()


def response_format(mode: int, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the `response_format` of a request, if it has one."""
    if schema is None or mode == PLAIN:
        return None
    if mode == OBJECT:
        return {"type": "json_object"}
    strict = {"name": "reply", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": strict}


def _other_name(tokens: str) -> str:
    return "max_completion_tokens" if tokens == "max_tokens" else "max_tokens"
