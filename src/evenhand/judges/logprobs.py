"""From the log-probabilities of a reply's tokens to those of the options it chose among.

Pure functions that never guess: where the tokens do not spell the reply, or the chosen option is
not reached by them, there are no odds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Odds = dict[str, dict[str, float]]

# Braces that open no object (prose, a cut-off draft) are tried up to this many.
OBJECTS_TRIED = 64
_GAP = re.compile(r"[\s,:]*")
_LEAD = re.compile(rb'\s*:\s*"')
_LEAD_PART = re.compile(rb"\s*(:\s*)?")
_decoder = json.JSONDecoder()


class Token(NamedTuple):
    """A token as its bytes, its log-probability, and all that were likely there, itself too."""

    raw: bytes
    logprob: float
    tops: Sequence[tuple[bytes, float]]


class Value(NamedTuple):
    """A member of an object: its value, and where its key ends in the text."""

    value: Any
    key_end: int


def token(raw: bytes, logprob: Any, tops: Sequence[tuple[bytes, Any]]) -> Token:
    """A token with its alternatives. Raises TypeError or ValueError for what is no such thing."""
    listed = [(top, _finite(number)) for top, number in tops]
    likelihood = _finite(logprob)
    itself = [] if any(top == raw for top, _ in listed) else [(raw, likelihood)]
    return Token(raw, likelihood, itself + listed)


def _finite(number: Any) -> float:
    try:
        logprob = float(number)
    except OverflowError:
        raise ValueError(number) from None
    if not math.isfinite(logprob):
        raise ValueError(number)
    return logprob


def odds(text: str, tokens: Sequence[Token], schema: Mapping[str, Any] | None) -> Odds:
    """The log-probabilities of the options of each top-level choice among strings in `schema`."""
    spelled = b"".join(token.raw for token in tokens).rstrip()
    written = text.rstrip().encode()
    if not written or not spelled.endswith(written):
        return {}
    # What a model thought before its reply is spelled too.
    before = len(spelled) - len(written)
    members = _members(text)
    choices: Odds = {}
    for name, options in _choices(schema):
        member = members.get(name)
        if member is not None and member.value in options:
            at = before + len(text[: member.key_end].encode())
            choices[name] = _weighed(spelled, tokens, at, options)
    return {name: logprobs for name, logprobs in choices.items() if logprobs}


def _choices(schema: Mapping[str, Any] | None) -> Iterator[tuple[str, list[str]]]:
    for name, part in (schema or {}).get("properties", {}).items():
        options = part.get("enum", []) if isinstance(part, Mapping) else []
        if len(options) > 1 and all(isinstance(option, str) for option in options):
            yield name, options


def _members(text: str) -> dict[str, Value]:
    """The top-level members of the last JSON object in `text`."""
    last, at = -1, text.find("{")
    for _ in range(OBJECTS_TRIED):
        if at < 0:
            break
        try:
            _, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
        else:
            last, at = at, text.find("{", end)
    return dict(_listed(text, last)) if last >= 0 else {}


def _listed(text: str, at: int) -> Iterator[tuple[str, Value]]:
    """The members of the valid object at `at`."""
    at = _after_gap(text, at + 1)
    while text[at] != "}":
        name, key_end = _decoder.raw_decode(text, at)
        value, at = _decoder.raw_decode(text, _after_gap(text, key_end))
        yield name, Value(value, key_end)
        at = _after_gap(text, at)


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _weighed(
    spelled: bytes, tokens: Sequence[Token], at: int, options: Sequence[str]
) -> dict[str, float]:
    """The odds of the value whose key ends at byte `at`; empty where the tokens do not tell.

    Each alternative that leads to one option alone adds its probability to it, on top of that of
    the tokens before it. The walk ends where the chosen token does so itself.
    """
    closed = {option: json.dumps(option, ensure_ascii=False)[1:].encode() for option in options}
    mass: dict[str, list[float]] = {option: [] for option in options}
    path = 0.0
    for start, chosen in _from(tokens, at):
        for raw, logprob in chosen.tops:
            led = _led(_after_key(spelled, at, start, raw), closed)
            if len(led) == 1:
                mass[led[0]].append(path + logprob)
        led = _led(_after_key(spelled, at, start, chosen.raw), closed)
        if len(led) <= 1:
            least = path + min(logprob for _, logprob in chosen.tops)
            return _normalised(mass, least) if led and len(chosen.tops) > 1 else {}
        path += chosen.logprob
    return {}


def _from(tokens: Sequence[Token], at: int) -> Iterator[tuple[int, Token]]:
    """The tokens that reach beyond byte `at`, each with the byte it starts at."""
    start = 0
    for token in tokens:
        if start + len(token.raw) > at:
            yield start, token
        start += len(token.raw)


def _after_key(spelled: bytes, at: int, start: int, raw: bytes) -> bytes | None:
    """What would follow the key, were `raw` the token at `start`; None where it ends no key."""
    if start >= at:
        return spelled[at:start] + raw
    rest = spelled[start:at]
    return raw[len(rest) :] if raw.startswith(rest) else None


def _led(after: bytes | None, closed: Mapping[str, bytes]) -> list[str]:
    """The options that what follows a key can still become, or has become."""
    if after is None:
        return []
    lead = _LEAD.match(after)
    if lead is None:
        return list(closed) if _LEAD_PART.fullmatch(after) else []
    rest = after[lead.end() :]
    return [o for o, whole in closed.items() if whole.startswith(rest) or rest.startswith(whole)]


def _normalised(mass: Mapping[str, Sequence[float]], least: float) -> dict[str, float]:
    """Log-probabilities that add up to one. An option that was not listed is at most as likely as
    the least likely token that was."""
    summed = {option: _log_sum(parts) if parts else least for option, parts in mass.items()}
    total = _log_sum(list(summed.values()))
    return {option: logprob - total for option, logprob in summed.items()}


def _log_sum(parts: Sequence[float]) -> float:
    most = max(parts)
    return most + math.log(sum(math.exp(part - most) for part in parts))
