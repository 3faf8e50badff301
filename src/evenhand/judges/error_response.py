"""Error responses: what a provider says is wrong with a request, and what that means for the run.

The one place where statuses and wordings become errors of `evenhand.errors`. The wordings are those
of OpenAI, Anthropic, Azure, vLLM, llama.cpp, Ollama, Gemini, Groq, OpenRouter, DeepSeek, Alibaba,
Zhipu and Moonshot; an unknown one falls back on its status. No text of a provider is kept that was
not scrubbed. Hints (pauses, tries) come from headers in all their spellings; whatever those hold, a
pause is a sane number of seconds or None."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from msgspec import Struct

from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused, quoted
from evenhand.judges.reply import is_list, is_object, load_json
from evenhand.judges.transport import PROXY_WANTS_PASSWORD, HttpResponse, proxy_wants_password
from evenhand.regexp import regexp

# A body that is no JSON error (a gateway's HTML page) is quoted, and searched, up to here.
TEXT_CHARS = 4000

_OVERFLOW = regexp(
    r"context.{0,12}(length|window|size|limit)|maximum context|context_length_exceeded"
    r"|(prompt|input|request|messages?)\b.{0,30}\btoo (long|large)|reduce the length"
    r"|input token count.{0,40}exceeds|exceeds? (the )?max\w* (input|prompt|number of tokens)"
    r"|tokens must be reduced|range of input length|tokens? (count|limit).{0,20}exceed",
    re.IGNORECASE | re.DOTALL,
)
_FILTERED = regexp(
    r"content[_ -]?(filter|policy|management)|responsible_?ai|safety|moderation|\bflagged\b"
    r"|data_?inspection|inappropriate content|prohibited[_ ]content|usage polic"
    r"|considered high risk|unsafe|敏感|不安全|违规",
    re.IGNORECASE,
)
_QUOTA = regexp(
    r"insufficient[_ ](quota|balance|credit|fund)|billing_(hard|not|limit)|credit balance"
    r"|exceeded your current quota|out of credits"
    r"|reached your specified .{0,16}limit"
    r"|account.{0,20}(deactivated|suspended)|access_terminated|arrears|payment required",
    re.IGNORECASE,
)
_STREAM_ONLY = regexp(
    r"only supports? stream|enable the stream parameter|streaming is required"
    r"|non[- ]?stream(ing)? (calls?|requests?|mode)"
    r"|stream(ing)?\W{1,3}(mode )?(is required|must be (set to )?true|must be enabled)"
    r"|(set|requires?|use) \W?stream(ing)?\W?\s*(=|to)?\s*\W?true",
    re.IGNORECASE,
)
_BAD_KEY = regexp(r"API_KEY_INVALID|API key (not valid|expired)", re.IGNORECASE)
# A pause beyond a month is a mistake (a time stamp, an overflow), not a wish.
ABSURD_SECONDS = 31 * 24 * 3600.0
_DURATION = regexp(r"(?<!\d)(\d++(?:\.\d++)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TRIED_AGAIN = frozenset((408, 409, 425, 429))
# 498 and 529 are what Groq and Anthropic say where others say 503.
_BUSY = frozenset((429, 498, 503, 529))
# The gateway gave up waiting; the model behind it may have response.
_GAVE_UP = frozenset((408, 504, 524))
_ROUTES = frozenset((404, 405, 410))


class ErrorResponse(Struct, frozen=True):
    """An error of a provider: its status, its scrubbed text, the parameter it names and the pause
    that its body asks for, if any."""

    status: int
    text: str
    param: str = ""
    pause: float | None = None

    @property
    def wants_stream(self) -> bool:
        """The endpoint answers by stream only."""
        return self.status in (400, 422) and _STREAM_ONLY.search(self.text) is not None

    @property
    def overflow(self) -> bool:
        """The question does not fit the model."""
        return self.status == 413 or _OVERFLOW.search(self.text) is not None

    @property
    def filtered(self) -> bool:
        """The provider's filter stopped the question."""
        return _FILTERED.search(self.text) is not None

    @property
    def quota(self) -> bool:
        """Nothing is left to pay with. Gemini speaks of quota when only a minute is full, too."""
        minute = "RESOURCE_EXHAUSTED" in self.text and "PerDay" not in self.text
        return not minute and _QUOTA.search(self.text) is not None

    @property
    def bad_key(self) -> bool:
        """The key is refused; Gemini says so with a 400."""
        return self.status in (401, 403) or _BAD_KEY.search(self.text) is not None


class Recipient(Struct, frozen=True, kw_only=True):
    """Who was asked, and for what: the names that an advice needs."""

    key_name: str
    model: str
    base_url: str
    has_key: bool


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
    """Return the error inside a 200, as a whole or in its first choice; None where there is
    none."""
    if not is_object(body):
        return None
    choices = body.get("choices")
    choice: Any = choices[0] if is_list(choices) and choices else None
    error = body.get("error") or (choice.get("error") if is_object(choice) else None)
    if not error:
        return None
    return _error_response(error, _inner_status(error) or status, scrub, str(error))


def _error_response(
    error: Any, status: int, scrub: Callable[[str], str], text: str
) -> ErrorResponse:
    message = error if isinstance(error, str) else ": ".join(_sayings(error))
    # Scrubbed once decoded, for escapes can hide a key; and before the cut, which can halve it.
    words, param = scrub(message or text)[:TEXT_CHARS], scrub(_param(error))[:TEXT_CHARS]
    return ErrorResponse(status, words, param, _pause(error))


def _pause(error: Any) -> float | None:
    """The `retryDelay` among the details of an error of Gemini."""
    details = error.get("details") if is_object(error) else None
    delays = [d.get("retryDelay") for d in details if is_object(d)] if is_list(details) else []
    return next((parse_duration(delay) for delay in delays if isinstance(delay, str)), None)


def _param(error: Any) -> str:
    param = error.get("param") if is_object(error) else None
    return param if isinstance(param, str) else ""


_SAYING = (
    *("message", "msg", "detail", "code", "type", "status", "param", "loc"),
    # Gemini: which key or quota; OpenRouter: what the host behind it said.
    *("reason", "quotaId", "raw", "details", "violations", "metadata"),
)


def _sayings(error: Any, depth: int = 4) -> Iterator[str]:
    """The parts of an error object that say something; never the input it echoes."""
    if not is_object(error) or not depth:
        return
    for name in _SAYING:
        value = error.get(name)
        if isinstance(value, str | int) and value:
            yield str(value)
        elif is_list(value) and name == "loc":
            yield ".".join(map(str, value))
        elif is_object(value) and name == "metadata":
            yield from _sayings(value, depth - 1)
        elif is_list(value):
            for part in value[:8]:
                yield from _sayings(part, depth - 1)


def _inner_status(error: Any) -> int:
    """The HTTP status that an error object inside a 200 carries; 0 for none."""
    for name in ("code", "status", "status_code"):
        value = error.get(name) if is_object(error) else None
        if isinstance(value, str) and value.isdecimal() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return 0


class RetryHints(Struct, frozen=True, kw_only=True):
    """Wishes beside an error: a pause in seconds, another try or none; and a pause that cannot be
    meant, in the provider's own words."""

    pause: float | None = None
    should_retry: bool | None = None
    not_followed: str = ""


def retry_hints(
    error: ErrorResponse, headers: Mapping[str, str], scrub: Callable[[str], str]
) -> RetryHints:
    """Return what headers and body of an error ask for."""
    pause = retry_after(error.status, headers)
    return RetryHints(
        pause=error.pause if pause is None else pause,
        should_retry=should_retry(headers),
        not_followed=scrub(not_followed(headers)),
    )


def error_for(
    error: ErrorResponse, recipient: Recipient, hints: RetryHints, *, proven: bool
) -> CallError | ProviderRefused:
    """Return the error to raise. `proven` says that this judge has answered before."""
    status, words = error.status, f"HTTP {error.status}: {quoted(error.text)}"
    if 300 <= status < 400:
        return _redirected(recipient, error)
    if status == PROXY_WANTS_PASSWORD:
        return proxy_wants_password()
    if status in (400, 403, 429) and error.quota:
        return ProviderRefused(f"the quota is used up: {words}", advice=_billing(recipient))
    if status <= 500 and error.overflow and _too_big(error):
        return CallRejected("context_overflow", f"the question does not fit the model: {words}")
    if status in _TRIED_AGAIN | _BUSY or status >= 500 or status < 300:
        return _lost(error, hints, words)
    if error.filtered and status not in (401, 402, 404):
        return CallRejected("filtered", f"the provider's filter stopped the question: {words}")
    refused = _refused(error, recipient, words, proven)
    is_clear = error.bad_key or status == 402 or status in _ROUTES
    # A key, a bill and an address are not mended by trying again, whatever a gateway says.
    return _lost(error, hints, words) if hints.should_retry and not is_clear else refused


def _lost(error: ErrorResponse, hints: RetryHints, words: str) -> CallLost:
    status = error.status
    if hints.not_followed:
        words += f"; the pause that it asks for, {quoted(hints.not_followed)}, cannot be meant"
    if hints.should_retry is False:
        words += "; it asks not to be tried again"
    return CallLost(
        "transport",
        words,
        retry_after=hints.pause,
        billed=status in _GAVE_UP or status < 300,
        is_busy=status in _BUSY,
        is_final=hints.should_retry is False,
    )


def _too_big(error: ErrorResponse) -> bool:
    """A 429 is about size only where it says that waiting does not help."""
    return error.status != 429 or "must be reduced" in error.text


def _refused(
    error: ErrorResponse, recipient: Recipient, words: str, proven: bool
) -> CallError | ProviderRefused:
    if error.bad_key:
        return ProviderRefused(f"the key is not accepted: {words}", advice=_key(recipient))
    if error.status == 402:
        return ProviderRefused(f"nothing is left to pay with: {words}", advice=_billing(recipient))
    if error.status in _ROUTES:
        return ProviderRefused(f"no such model or address: {words}", advice=_route(recipient))
    if proven:
        return CallRejected("transport", f"the provider refuses this question: {words}")
    return ProviderRefused(f"the provider refuses the request: {words}", advice=_route(recipient))


def _redirected(recipient: Recipient, error: ErrorResponse) -> ProviderRefused:
    target = quoted(error.text.partition("?")[0])
    return ProviderRefused(
        f"{recipient.base_url} redirects to {target} (HTTP {error.status}); "
        "keys are not sent to another host",
        advice="Set base_url to the address that answers itself.",
    )


def _key(recipient: Recipient) -> str:
    if not recipient.has_key:
        return f"Set {recipient.key_name} in the environment or in .env; none was sent."
    return f"Check {recipient.key_name}, and that it is a key for {recipient.base_url}."


def _billing(recipient: Recipient) -> str:
    return f"Check the plan and balance behind {recipient.key_name}; then run again to continue."


def _route(recipient: Recipient) -> str:
    return f"Check the model {quoted(recipient.model)} and base_url {quoted(recipient.base_url)}."


def retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the pause in seconds that the provider asked for; None where it named none."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    wish = headers.get("Retry-After")
    if wish is not None:
        seconds = _number(wish)
        return _until(wish, headers.get("Date")) if seconds is None else seconds
    return _reset(headers) if status == 429 else None


def not_followed(headers: Mapping[str, str]) -> str:
    """Return the wish to wait that cannot be meant (no time, or one in the past or beyond a month),
    as it stands there; empty where there is none."""
    wish = headers.get("Retry-After") or headers.get("retry-after-ms") or ""
    return wish if wish and retry_after(0, headers) is None else ""


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Return True or False where the provider says if another try makes sense, else None."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def _number(text: str | None) -> float | None:
    try:
        return _sane(float(text)) if text is not None and text.isascii() else None
    except ValueError:
        return None


def _sane(seconds: float) -> float | None:
    return seconds if 0 <= seconds <= ABSURD_SECONDS else None


def _until(text: str, date: str | None) -> float | None:
    """Seconds to the HTTP date `text`, by the provider's clock where it shows one."""
    moment = _moment(text)
    if moment is None:
        return None
    now = _moment(date) if date else None
    return _sane(max(0.0, moment - (time.time() if now is None else now)))


def _moment(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _reset(headers: Mapping[str, str]) -> float | None:
    """OpenAI's own headers: the longest wait among the exhausted limits, where it says which
    ones are exhausted; the shortest of all otherwise."""
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
    return _sane(sum(float(n) * _UNITS[unit] for n, unit in parts))
