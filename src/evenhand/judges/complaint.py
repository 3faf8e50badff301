"""What a provider says is wrong with a request, and what that means for the run.

The one place where statuses and wordings become errors of `evenhand.errors`. The wordings are
those of OpenAI, Anthropic, Azure, vLLM, llama.cpp, Ollama, Gemini, Groq, OpenRouter, DeepSeek,
Alibaba, Zhipu and Moonshot; an unknown one falls back on its status. No text of a provider is kept
that was not scrubbed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from msgspec import Struct

from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused, quoted
from evenhand.judges.http import Answered, loaded
from evenhand.judges.pause import span
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
_BAD_KEY = regexp(r"API_KEY_INVALID|API key (not valid|expired)", re.IGNORECASE)
_TRIED_AGAIN = frozenset((408, 409, 425, 429))
# 498 and 529 are what Groq and Anthropic say where others say 503.
_BUSY = frozenset((429, 498, 503, 529))
# The gateway gave up waiting; the model behind it may have answered.
_GAVE_UP = frozenset((408, 504, 524))
_ROUTES = frozenset((404, 405, 410))
PROXY_WANTS_PASSWORD = 407


class Complaint(Struct, frozen=True):
    """An error answer: its status, its scrubbed text, the parameter it names and the pause it asks
    for in its body, if any."""

    status: int
    text: str
    param: str = ""
    pause: float | None = None

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


def read_complaint(answered: Answered, scrub: Callable[[str], str]) -> Complaint:
    """What an error answer says, whatever its form."""
    status = answered.status
    if 300 <= status < 400:
        return Complaint(status, scrub(answered.headers.get("Location", "")))
    text = answered.body.decode(errors="replace")
    try:
        body = loaded(text)
    except ValueError:
        body = None
    if is_list(body) and body:
        body = body[0]
    error = body.get("error", body) if is_object(body) else None
    return _complaint(error, status, scrub, text)


def carried(body: Any, status: int, scrub: Callable[[str], str]) -> Complaint | None:
    """The complaint inside a 200, as a whole or in its first choice; None where it holds none."""
    if not is_object(body):
        return None
    choices = body.get("choices")
    choice: Any = choices[0] if is_list(choices) and choices else None
    error = body.get("error") or (choice.get("error") if is_object(choice) else None)
    if not error:
        return None
    return _complaint(error, _carried_status(error) or status, scrub, str(error))


def _complaint(error: Any, status: int, scrub: Callable[[str], str], text: str) -> Complaint:
    message = error if isinstance(error, str) else ": ".join(_sayings(error))
    # Scrubbed once decoded, for escapes can hide a key; and before the cut, which can halve it.
    words, param = scrub(message or text)[:TEXT_CHARS], scrub(_param(error))[:TEXT_CHARS]
    return Complaint(status, words, param, _pause(error))


def _pause(error: Any) -> float | None:
    """The `retryDelay` among the details of an error of Gemini."""
    details = error.get("details") if is_object(error) else None
    delays = [d.get("retryDelay") for d in details if is_object(d)] if is_list(details) else []
    return next((span(delay) for delay in delays if isinstance(delay, str)), None)


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


def _carried_status(error: Any) -> int:
    """The HTTP status that an error object inside a 200 carries; 0 for none."""
    for name in ("code", "status", "status_code"):
        value = error.get(name) if is_object(error) else None
        if isinstance(value, str) and value.isdecimal() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return 0


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a decoded JSON value is an array."""
    return isinstance(value, list)


class Wishes(Struct, frozen=True, kw_only=True):
    """What a provider asks for beside its complaint: a pause in seconds, another try or none; and a
    pause that cannot be meant, in its own words."""

    pause: float | None = None
    should_retry: bool | None = None
    not_followed: str = ""


def error_for(
    complaint: Complaint, recipient: Recipient, wishes: Wishes, *, proven: bool
) -> CallError | ProviderRefused:
    """The error that a complaint amounts to. `proven` says that this judge has answered before."""
    status, words = complaint.status, f"HTTP {complaint.status}: {quoted(complaint.text)}"
    if 300 <= status < 400:
        return _redirected(recipient, complaint)
    if status == PROXY_WANTS_PASSWORD:
        return proxy_refusal()
    if status in (400, 403, 429) and complaint.quota:
        return ProviderRefused(f"the quota is used up: {words}", advice=_billing(recipient))
    if status <= 500 and complaint.overflow and _too_big(complaint):
        return CallRejected("context_overflow", f"the question does not fit the model: {words}")
    if status in _TRIED_AGAIN | _BUSY or status >= 500 or status < 300:
        return _lost(complaint, wishes, words)
    if complaint.filtered and status not in (401, 402, 404):
        return CallRejected("filtered", f"the provider's filter stopped the question: {words}")
    refused = _refused(complaint, recipient, words, proven)
    is_clear = complaint.bad_key or status == 402 or status in _ROUTES
    # A key, a bill and an address are not mended by trying again, whatever a gateway says.
    return _lost(complaint, wishes, words) if wishes.should_retry and not is_clear else refused


def _lost(complaint: Complaint, wishes: Wishes, words: str) -> CallLost:
    status = complaint.status
    if wishes.not_followed:
        words += f"; the pause that it asks for, {quoted(wishes.not_followed)}, cannot be meant"
    if wishes.should_retry is False:
        words += "; it asks not to be tried again"
    return CallLost(
        "transport",
        words,
        retry_after=wishes.pause,
        billed=status in _GAVE_UP or status < 300,
        is_busy=status in _BUSY,
        is_final=wishes.should_retry is False,
    )


def _too_big(complaint: Complaint) -> bool:
    """A 429 is about size only where it says that waiting does not help."""
    return complaint.status != 429 or "must be reduced" in complaint.text


def _refused(
    complaint: Complaint, recipient: Recipient, words: str, proven: bool
) -> CallError | ProviderRefused:
    if complaint.bad_key:
        return ProviderRefused(f"the key is not accepted: {words}", advice=_key(recipient))
    if complaint.status == 402:
        return ProviderRefused(f"nothing is left to pay with: {words}", advice=_billing(recipient))
    if complaint.status in _ROUTES:
        return ProviderRefused(f"no such model or address: {words}", advice=_route(recipient))
    if proven:
        return CallRejected("transport", f"the provider refuses this question: {words}")
    return ProviderRefused(f"the provider refuses the request: {words}", advice=_route(recipient))


def proxy_refusal() -> ProviderRefused:
    """What a 407 means: a proxy on the way wants a password, and nothing was sent further."""
    return ProviderRefused(
        "the proxy wants a user name and a password: HTTP 407",
        advice="Set https_proxy (or http_proxy) to http://user:password@host:port.",
    )


def _redirected(recipient: Recipient, complaint: Complaint) -> ProviderRefused:
    target = quoted(complaint.text.partition("?")[0])
    return ProviderRefused(
        f"{recipient.base_url} redirects to {target} (HTTP {complaint.status}); "
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
