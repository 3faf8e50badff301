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
from typing import Any

from msgspec import Struct

from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused, quoted
from evenhand.judges.transport import PROXY_WANTS_PASSWORD, HttpResponse, proxy_wants_password
from evenhand.judges.wire import is_list, is_object, load_json, object_of

# A body that is no JSON error (a gateway's HTML page) is quoted, and searched, up to here.
TEXT_CHARS = 4000

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
# A pause beyond a month is a mistake (a time stamp, an overflow), not a pause.
ABSURD_SECONDS = 31 * 24 * 3600.0
_DURATION = re.compile(r"(?<!\d)(\d++(?:\.\d++)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TRIED_AGAIN = frozenset((408, 409, 425, 429))
# 498 and 529 are what Groq and Anthropic say where others say 503.
_BUSY = frozenset((429, 498, 503, 529))
# The gateway gave up waiting; the model behind it may have answered.
_GAVE_UP = frozenset((408, 504, 524))


class ErrorResponse(Struct, frozen=True):
    """An error of a provider: its status, its scrubbed text, the parameter it names and the pause
    that its body asks for, if any."""

    status: int
    text: str
    param: str = ""
    pause: float | None = None

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
    def is_key_refused(self) -> bool:
        """Return True if the key is refused; Gemini says so with a 400."""
        return self.status in (401, 403) or _BAD_KEY.search(self.text) is not None


class Recipient(Struct, frozen=True, kw_only=True):
    """The names of key, model and address that an advice needs."""

    key_name: str
    model: str
    base_url: str
    has_key: bool

    @property
    def key_advice(self) -> str:
        if not self.has_key:
            return f"Set {self.key_name} in the environment or in .env; none was sent."
        return f"Check {self.key_name}, and that it is a key for {self.base_url}."

    @property
    def billing_advice(self) -> str:
        return f"Check the plan and balance behind {self.key_name}; then run again to continue."

    @property
    def route_advice(self) -> str:
        return f"Check the model {quoted(self.model)} and base_url {quoted(self.base_url)}."


class RetryHints(Struct, frozen=True):
    """A provider's wish beside an error: a pause in seconds; another try, none, or None where it
    does not say."""

    pause: float | None = None
    should_retry: bool | None = None


def read_error_response(response: HttpResponse, scrub: Callable[[str], str]) -> ErrorResponse:
    """Return what an error response says, whatever its form."""
    status = response.status
    if 300 <= status < 400:
        return ErrorResponse(status, scrub(response.headers.get("Location", "")))
    text = response.body.decode(errors="replace")
    try:
        body = load_json(text)
    except ValueError:
        body = None
    if is_list(body) and body:
        body = body[0]
    error = body.get("error", body) if is_object(body) else None
    return _error_response(error, status, scrub, text)


def error_in_success(body: Any, status: int, scrub: Callable[[str], str]) -> ErrorResponse | None:
    """Return the error inside a 200, as a whole or in its first choice; None if there is none."""
    choices = object_of(body).get("choices")
    choice = object_of(choices[0]) if is_list(choices) and choices else {}
    error = object_of(body).get("error") or choice.get("error")
    return _error_response(error, _inner_status(error) or status, scrub, "") if error else None


def _error_response(
    error: Any, status: int, scrub: Callable[[str], str], text: str
) -> ErrorResponse:
    message = error if isinstance(error, str) else ": ".join(_sayings(error))
    param = object_of(error).get("param")
    # Scrubbed once decoded, for escapes can hide a key; and before the cut, which can halve it.
    return ErrorResponse(
        status,
        scrub(message or text or str(error or ""))[:TEXT_CHARS],
        scrub(param)[:TEXT_CHARS] if isinstance(param, str) else "",
        _retry_delay(error),
    )


def _retry_delay(error: Any) -> float | None:
    """Return the `retryDelay` among the details of an error of Gemini."""
    details = object_of(error).get("details")
    delays = [object_of(each).get("retryDelay") for each in details] if is_list(details) else []
    return next((parse_duration(delay) for delay in delays if isinstance(delay, str)), None)


_SAYING = (
    *("message", "msg", "detail", "code", "type", "status", "param", "loc"),
    # Gemini: which key or quota; OpenRouter: what the host behind it said.
    *("reason", "quotaId", "raw", "details", "violations", "metadata"),
)


def _sayings(error: Any, depth: int = 4) -> Iterator[str]:
    """Yield the parts of an error object that say something; never the input it echoes."""
    for name in _SAYING if depth else ():
        value = object_of(error).get(name)
        if isinstance(value, str | int) and value:
            yield str(value)
        elif is_list(value) and name == "loc":
            yield ".".join(map(str, value))
        elif name == "metadata":
            yield from _sayings(value, depth - 1)
        elif is_list(value):
            for part in value[:8]:
                yield from _sayings(part, depth - 1)


def _inner_status(error: Any) -> int:
    """Return the HTTP status that an error object inside a 200 carries; 0 for none."""
    for name in ("code", "status", "status_code"):
        value = str(object_of(error).get(name))
        if len(value) == 3 and value.isdecimal() and 400 <= int(value) < 600:
            return int(value)
    return 0


def error_for(
    error: ErrorResponse, recipient: Recipient, hints: RetryHints, *, proven: bool
) -> CallError | ProviderRefused:
    """Return the error to raise. `proven` says that this judge has answered before."""
    status, words = error.status, f"HTTP {error.status}: {quoted(error.text)}"
    if 300 <= status < 400:
        target = quoted(error.text.partition("?")[0])
        return ProviderRefused(
            f"{recipient.base_url} redirects to {target} (HTTP {status}); "
            "keys are not sent to another host",
            advice="Set base_url to the address that answers itself.",
        )
    if status == PROXY_WANTS_PASSWORD:
        return proxy_wants_password()
    if status in (400, 403, 429) and error.is_out_of_quota:
        return ProviderRefused(f"the quota is used up: {words}", advice=recipient.billing_advice)
    # A 429 is about size only where it says that waiting does not help.
    is_size = status != 429 or "must be reduced" in error.text
    if status <= 500 and error.is_overflow and is_size:
        return CallRejected("context_overflow", f"the question does not fit the model: {words}")
    if status in _TRIED_AGAIN | _BUSY or status >= 500 or status < 300:
        return _lost(status, hints, words)
    if error.is_filtered and status not in (401, 402, 404):
        return CallRejected("filtered", f"the provider's filter stopped the question: {words}")
    if error.is_key_refused:
        return ProviderRefused(f"the key is not accepted: {words}", advice=recipient.key_advice)
    if status == 402:
        advice = recipient.billing_advice
        return ProviderRefused(f"nothing is left to pay with: {words}", advice=advice)
    if status in (404, 405, 410):
        return ProviderRefused(f"no such model or address: {words}", advice=recipient.route_advice)
    if hints.should_retry:
        return _lost(status, hints, words)
    if proven:
        return CallRejected("transport", f"the provider refuses this question: {words}")
    advice = recipient.route_advice
    return ProviderRefused(f"the provider refuses the request: {words}", advice=advice)


def _lost(status: int, hints: RetryHints, words: str) -> CallLost:
    is_final = hints.should_retry is False
    return CallLost(
        "transport",
        f"{words}; it asks not to be tried again" if is_final else words,
        retry_after=hints.pause,
        billed=status in _GAVE_UP or status < 300,
        is_busy=status in _BUSY,
        is_final=is_final,
    )


def retry_hints(error: ErrorResponse, headers: Mapping[str, str]) -> RetryHints:
    """Return what headers and body of an error ask for."""
    pause = retry_after(error.status, headers)
    says = headers.get("x-should-retry", "").strip().lower()
    return RetryHints(
        error.pause if pause is None else pause, {"true": True, "false": False}.get(says)
    )


def retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the pause in seconds that the provider asked for; None if it named none, or one that
    is no time."""
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("Retry-After")
    if text is not None:
        seconds = _seconds(text)
        return _until(text, headers.get("Date")) if seconds is None else seconds
    return _reset(headers) if status == 429 else None


def _seconds(text: str | None) -> float | None:
    try:
        return _within_bounds(float(text)) if text is not None and text.isascii() else None
    except ValueError:
        return None


def _within_bounds(seconds: float) -> float | None:
    return seconds if 0 <= seconds <= ABSURD_SECONDS else None


def _until(text: str, date: str | None) -> float | None:
    """Return the seconds to the HTTP date `text`, by the provider's clock if it shows one."""
    moment, now = _timestamp(text), _timestamp(date or "")
    if moment is None:
        return None
    return _within_bounds(max(0.0, moment - (time.time() if now is None else now)))


def _timestamp(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Return the wait that OpenAI's own headers ask for: the longest among the limits that they
    say are used up, else the shortest of all."""
    spans = {
        kind: seconds
        for kind in ("requests", "tokens")
        if (seconds := parse_duration(headers.get(f"x-ratelimit-reset-{kind}"))) is not None
    }
    spent = [spans[kind] for kind in spans if headers.get(f"x-ratelimit-remaining-{kind}") == "0"]
    return max(spent) if spent else min(spans.values(), default=None)


def parse_duration(text: str | None) -> float | None:
    """Return `6m0s`, `1.5s` or `20ms` in seconds; None for anything else."""
    parts = _DURATION.findall(text or "")
    if not parts or "".join(n + unit for n, unit in parts) != text:
        return None
    return _within_bounds(sum(float(n) * _UNITS[unit] for n, unit in parts))
