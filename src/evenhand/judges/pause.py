"""What a provider asks for beside its error, from the headers of its answer in all their spellings:
how long to wait, and whether to try again at all.

Total: whatever the headers hold, the result is a sane number of seconds or None.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from evenhand.regexp import regexp

# A pause beyond a month is a mistake (a time stamp, an overflow), not a wish.
ABSURD_SECONDS = 31 * 24 * 3600.0
_SPAN = regexp(r"(?<!\d)(\d++(?:\.\d++)?)(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """The pause in seconds that the provider asked for; None where it named none."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    wish = headers.get("Retry-After")
    if wish is not None:
        seconds = _number(wish)
        return _until(wish, headers.get("Date")) if seconds is None else seconds
    return _reset(headers) if status == 429 else None


def not_followed(headers: Mapping[str, str]) -> str:
    """The wish to wait that cannot be meant (no time, or one in the past or beyond a month), as it
    stands there; empty where there is none."""
    wish = headers.get("Retry-After") or headers.get("retry-after-ms") or ""
    return wish if wish and retry_after(0, headers) is None else ""


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Whether the provider says that another try makes sense; None where it does not say."""
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
        if (seconds := span(headers.get(f"x-ratelimit-reset-{kind}"))) is not None
    }
    spent = [spans[kind] for kind in spans if headers.get(f"x-ratelimit-remaining-{kind}") == "0"]
    return max(spent) if spent else min(spans.values(), default=None)


def span(text: str | None) -> float | None:
    """`6m0s`, `1.5s`, `20ms` in seconds."""
    parts = _SPAN.findall(text or "")
    if not parts or "".join(n + unit for n, unit in parts) != text:
        return None
    return _sane(sum(float(n) * _UNITS[unit] for n, unit in parts))
