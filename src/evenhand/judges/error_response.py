"""Error responses: what a provider says is wrong with a request, and what that means for the run.

The one place where statuses and wordings become errors of `evenhand.errors`:

    CallLost         may be tried again; `billed` says if the provider may charge for it
    CallRejected     this question alone cannot be answered (too long, filtered)
    ProviderRefused  no question can be: key, quota, model, address

The wordings are those of OpenAI, Anthropic, Azure, vLLM, llama.cpp, Ollama, Gemini, Groq,
OpenRouter, DeepSeek, Alibaba, Zhipu and Moonshot; an unknown one falls back on its status. No text
of a provider is kept that was not scrubbed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from msgspec import Struct

from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused, quote
from evenhand.judges.transport import PROXY_WANTS_PASSWORD, HttpResponse, proxy_wants_password
from evenhand.judges.wire import RESPONSE_FORMAT, is_list, is_object, load_json, object_of
from evenhand.words import Sentence

TEXT_CHARS = 4000
"""A body that is no JSON error (a gateway's HTML page) is quoted, and searched, up to here."""
LONGEST_PAUSE = 31 * 24 * 3600.0
"""A pause beyond a month is a mistake (a time stamp, an overflow), not a pause."""

_OVERFLOW = re.compile(
    r"context.{0,12}(length|window|size|limit)|maximum context|context_length_exceeded"
    r"|(prompt|input|request|messages?)\b.{0,30}\btoo (long|large)|reduce the length"
    r"|input token count.{0,40}exceeds|exceeds? (the )?max\w* (input|prompt|number of tokens)"
    r"|tokens must be reduced|range of input length|tokens? (count|limit).{0,20}exceed",
    re.IGNORECASE | re.DOTALL,
)
_FILTERED = re.compile(
    r"content[_ -]?(filter|policy|management)|responsible_?ai|safety|moderation|\bflagged\b"
    r"|data_?inspection|inappropriate content|prohibited[_ ]content|usage polic"
    r"|considered high risk|unsafe|敏感|不安全|违规",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[_ ](quota|balance|credit|fund)|billing_(hard|not|limit)|credit balance"
    r"|exceeded your current quota|out of credits"
    r"|reached your specified .{0,16}limit"
    r"|account.{0,20}(deactivated|suspended)|access_terminated|arrears|payment required",
    re.IGNORECASE,
)
_STREAM_ONLY = re.compile(
    r"only supports? stream|enable the stream parameter|streaming is required"
    r"|non[- ]?stream(ing)? (calls?|requests?|mode)"
    r"|stream(ing)?\W{1,3}(mode )?(is required|must be (set to )?true|must be enabled)"
    r"|(set|requires?|use) \W?stream(ing)?\W?\s*(=|to)?\s*\W?true",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key (not valid|expired)", re.IGNORECASE)
# The first part named is what is refused; later names are usually a list of what is allowed.
_PART = re.compile(
    r"\b(?P<name>stream_options|max_tokens|temperature|seed)\b"
    r"|response[_ ]?format|json[_ ]?schema|response_?(json_?)?schema|json[_ ]?object|json mode"
    r"|structured[_ -]?output|guided[_ ]?(json|decoding)|grammar|additionalProperties"
    r"|output[_ ]?(format|config)|schema (is too complex|produces)|schema in GenerationConfig",
    re.IGNORECASE,
)
# A value out of range is the user's to mend; only a parameter that is not taken is dropped.
_NOT_TAKEN = re.compile(
    r"unsupported|not supported?|n't support|does not support|unknown|unrecogni[sz]ed|unexpected"
    r"|not (permitted|allowed|available|accepted|enabled)|only the default|extra (inputs|fields)"
    r"|deprecated|cannot be used|incompatible|not compatible|may only be set to 1",
    re.IGNORECASE,
)
_TRIED_AGAIN = frozenset((408, 409, 425, 429))
# 498 and 529 are what Groq and Anthropic say where others say 503.
_BUSY = frozenset((429, 498, 503, 529))
# The gateway gave up waiting; the model behind it may have answered.
_GAVE_UP = frozenset((408, 504, 524))
_TELLING_FIELDS = (
    *("message", "msg", "detail", "code", "type", "status", "param", "loc"),
    # Gemini: which key or quota; OpenRouter: what the host behind it said.
    *("reason", "quotaId", "raw", "details", "violations", "metadata"),
)


class ErrorResponse(Struct, frozen=True):
    """An error of a provider: its status, its scrubbed text, the parameter it names, the pause in
    seconds that it asks for, and if it wants another try; None where it does not say."""

    status: int
    text: str
    param: str = ""
    retry_after: float | None = None
    should_retry: bool | None = None

    @property
    def wants_stream(self) -> bool:
        """Return True if the endpoint answers by stream only."""
        return self.status in (400, 422) and _STREAM_ONLY.search(self.text) is not None

    @property
    def is_overflow(self) -> bool:
        """Return True if the question does not fit the model."""
        return self.status == 413 or _OVERFLOW.search(self.text) is not None

    @property
    def is_filtered(self) -> bool:
        """Return True if the provider's filter stopped the question."""
        return _FILTERED.search(self.text) is not None

    @property
    def is_out_of_quota(self) -> bool:
        """Return True if nothing is left to pay with. Gemini speaks of quota when only a minute is
        full, too."""
        minute = "RESOURCE_EXHAUSTED" in self.text and "PerDay" not in self.text
        return not minute and _QUOTA.search(self.text) is not None

    @property
    def refused_part(self) -> str:
        """Return the optional part of the request that is not taken: a parameter's name, or
        RESPONSE_FORMAT for structured output in any form; empty if the error is about none."""
        part = _PART.search(self.param) or _PART.search(self.text)
        if part is None or self.is_overflow or self.is_filtered:
            return ""
        if part["name"]:
            is_dropped = self.status in (400, 422) and _NOT_TAKEN.search(self.text)
            return part["name"].lower() if is_dropped else ""
        return RESPONSE_FORMAT if self.status in (400, 415, 422, 500, 501) else ""


class Recipient(Struct, frozen=True, kw_only=True):
    """The names of key, model and address that an advice needs."""

    key_name: str
    model: str
    base_url: str
    has_key: bool


def read_error_response(response: HttpResponse, scrub: Callable[[str], str]) -> ErrorResponse:
    """Return what an error response says, whatever its form."""
    if 300 <= response.status < 400:
        return ErrorResponse(response.status, scrub(response.headers.get("Location", "")))
    text = response.body.decode(errors="replace")
    try:
        body = load_json(text)
    except ValueError:
        body = None
    if is_list(body) and body:
        body = body[0]
    error = body.get("error", body) if is_object(body) else None
    return _error_response(error, response.status, response.headers, scrub, text)


def error_in_success(
    body: Any, response: HttpResponse, scrub: Callable[[str], str]
) -> ErrorResponse | None:
    """Return the error inside a 200, as a whole or in its first choice; None if there is none."""
    choices = object_of(body).get("choices")
    choice = object_of(choices[0]) if is_list(choices) and choices else {}
    error = object_of(body).get("error") or choice.get("error")
    if not error:
        return None
    fields = (str(object_of(error).get(name)) for name in ("code", "status", "status_code"))
    statuses = (int(field) for field in fields if re.fullmatch("[45][0-9][0-9]", field))
    return _error_response(error, next(statuses, response.status), response.headers, scrub)


def _error_response(
    error: Any,
    status: int,
    headers: Mapping[str, str],
    scrub: Callable[[str], str],
    text: str = "",
) -> ErrorResponse:
    message, param = ": ".join(_sayings(error)), object_of(error).get("param")
    says = headers.get("x-should-retry", "").strip().lower()
    # Scrubbed once decoded, for escapes can hide a key; and before the cut, which can halve it.
    return ErrorResponse(
        status,
        scrub(message or text or str(error or ""))[:TEXT_CHARS],
        scrub(param)[:TEXT_CHARS] if isinstance(param, str) else "",
        retry_after(headers, error),
        {"true": True, "false": False}.get(says),
    )


def _sayings(error: Any, depth: int = 4) -> Iterator[str]:
    """Yield the parts of an error that say something; never the input it echoes."""
    if isinstance(error, str | int) and error:
        yield str(error)
    elif is_list(error):
        for part in error[:8]:
            yield from _sayings(part, depth)
    elif is_object(error) and depth:
        for name in _TELLING_FIELDS:
            yield from _sayings(error.get(name), depth - 1)


def error_for(
    error: ErrorResponse, recipient: Recipient, *, proven: bool
) -> CallError | ProviderRefused:
    """Return the error to raise. `proven` says that this judge has answered before."""
    status, words = error.status, f"HTTP {error.status}: {quote(error.text)}"
    refused = partial(refusal, error, recipient)
    if 300 <= status < 400:
        target = error.text.partition("?")[0]
        return refused("judges.redirected", target=target)
    if status == PROXY_WANTS_PASSWORD:
        return proxy_wants_password()
    if status in (400, 403, 429) and error.is_out_of_quota:
        return refused("judges.quota_used_up")
    # A 429 is about size only where it says that waiting does not help.
    is_size = status != 429 or "must be reduced" in error.text
    if status <= 500 and error.is_overflow and is_size:
        return CallRejected("context_overflow", f"the question does not fit the model: {words}")
    if status in _TRIED_AGAIN | _BUSY or status >= 500 or status < 300:
        return _lost(error, words)
    if error.is_filtered and status not in (401, 402, 404):
        return CallRejected("filtered", f"the provider's filter stopped the question: {words}")
    # Gemini says with a 400 that a key is wrong.
    if status in (401, 403) or _BAD_KEY.search(error.text):
        return refused("judges.key_rejected" if recipient.has_key else "judges.key_wanted")
    if status == 402:
        return refused("judges.no_credit")
    if status in (404, 405, 410):
        return refused("judges.no_such_model")
    if error.should_retry:
        return _lost(error, words)
    if proven:
        return CallRejected("transport", f"the provider refuses this question: {words}")
    return refused("judges.request_refused")


def refusal(error: ErrorResponse, recipient: Recipient, key: str, **values: str) -> ProviderRefused:
    """Return the error of a sentence about an error response."""
    return ProviderRefused(
        Sentence(
            key,
            status=error.status,
            text=error.text,
            key=recipient.key_name,
            model=recipient.model,
            address=recipient.base_url,
            **values,
        )
    )


def _lost(error: ErrorResponse, words: str) -> CallLost:
    is_final = error.should_retry is False
    return CallLost(
        "transport",
        f"{words}; it asks not to be tried again" if is_final else words,
        retry_after=error.retry_after,
        billed=error.status in _GAVE_UP or error.status < 300,
        is_busy=error.status in _BUSY,
        is_final=is_final,
    )


def retry_after(headers: Mapping[str, str], error: Any = None) -> float | None:
    """Return the pause in seconds that the headers of an error ask for, else its details, as those
    of Gemini do; None if it names none, or one that is no time."""
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("Retry-After")
    if text is not None:
        seconds = _seconds(text)
        return _seconds_until(text, headers.get("Date", "")) if seconds is None else seconds
    details = object_of(error).get("details")
    delays = [object_of(each).get("retryDelay") for each in details] if is_list(details) else []
    return next((_seconds(delay[:-1]) for delay in delays if isinstance(delay, str)), None)


def _seconds(text: str) -> float | None:
    try:
        return _within_bounds(float(text)) if text.isascii() else None
    except ValueError:
        return None


def _within_bounds(seconds: float) -> float | None:
    return seconds if 0 <= seconds <= LONGEST_PAUSE else None


def _seconds_until(text: str, date: str) -> float | None:
    """Return the seconds to the HTTP date `text`, by the provider's clock if it shows one."""
    moment, now = _timestamp(text), _timestamp(date)
    if moment is None:
        return None
    return _within_bounds(max(0.0, moment - (time.time() if now is None else now)))


def _timestamp(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
