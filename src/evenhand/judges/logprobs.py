"""From the log-probabilities of a reply's tokens to those of the options it chose among.

Pure functions that never guess: if the tokens do not spell the reply, or do not reach the chosen
option, there are no odds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Odds = dict[str, dict[str, float]]
Scored = tuple[bytes, Any]

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


def read_tokens(read: Callable[[], Sequence[tuple[Scored, Sequence[Scored]]]]) -> list[Token]:
    """Return the tokens, each with its alternatives, that `read` finds in a response; none if the
    list is not in order or holds what is no log-probability."""
    try:
        return [_token(chosen, tops) for chosen, tops in read()]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return []


def _token(chosen: Scored, tops: Sequence[Scored]) -> Token:
    (raw, logprob), *listed = [(each, float(number)) for each, number in (chosen, *tops)]
    if not all(math.isfinite(number) for _, number in ((raw, logprob), *listed)):
        raise ValueError
    is_listed = any(top == raw for top, _ in listed)
    return Token(raw, logprob, listed if is_listed else [(raw, logprob), *listed])


def odds(text: str, tokens: Sequence[Token], schema: Mapping[str, Any] | None) -> Odds:
    """Return the log-probabilities of the options of each top-level choice among strings."""
    spelled = b"".join(token.raw for token in tokens).rstrip()
    written = text.rstrip().encode()
    if not written or not spelled.endswith(written):
        return {}
    # A model's thoughts before its reply are spelled too.
    before = len(spelled) - len(written)
    members = _members(text)
    choices: Odds = {}
    for name, options in _choices(schema):
        value, key_end = members.get(name, (None, 0))
        if value in options:
            at = before + len(text[:key_end].encode())
            choices[name] = _weigh(spelled, tokens, at, options)
    return {name: logprobs for name, logprobs in choices.items() if logprobs}


def _choices(schema: Mapping[str, Any] | None) -> Iterator[tuple[str, list[str]]]:
    for name, part in (schema or {}).get("properties", {}).items():
        options = part.get("enum", []) if isinstance(part, Mapping) else []
        if len(options) > 1 and all(isinstance(option, str) for option in options):
            yield name, options


def _members(text: str) -> dict[str, tuple[Any, int]]:
    """Return the top-level members of the last JSON object in `text`, by name: the value, and
    where the key ends."""
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
    members: dict[str, tuple[Any, int]] = {}
    at = _after_gap(text, last + 1)
    while last >= 0 and text[at] != "}":
        name, key_end = _decoder.raw_decode(text, at)
        value, at = _decoder.raw_decode(text, _after_gap(text, key_end))
        members[name] = (value, key_end)
        at = _after_gap(text, at)
    return members


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _weigh(
    spelled: bytes, tokens: Sequence[Token], at: int, options: Sequence[str]
) -> dict[str, float]:
    """Return the odds of the value whose key ends at byte `at`; empty if the tokens do not tell.

    Each alternative that leads to one option alone adds its probability to it, on top of that of
    the tokens before it. The loop ends where the chosen token does so itself.
    """
    closed = {option: json.dumps(option, ensure_ascii=False)[1:].encode() for option in options}
    mass: dict[str, list[float]] = {option: [] for option in options}
    path, start, end = 0.0, 0, 0
    for token in tokens:
        start, end = end, end + len(token.raw)
        if end <= at:
            continue
        for raw, logprob in token.tops:
            reached = _reachable(_after_key(spelled, at, start, raw), closed)
            if len(reached) == 1:
                mass[reached[0]].append(path + logprob)
        reached = _reachable(_after_key(spelled, at, start, token.raw), closed)
        if len(reached) <= 1:
            least = path + min(logprob for _, logprob in token.tops)
            return _normalise(mass, least) if reached and len(token.tops) > 1 else {}
        path += token.logprob
    return {}


def _after_key(spelled: bytes, at: int, start: int, raw: bytes) -> bytes | None:
    """Return the bytes after the key, were `raw` the token at `start`; None if it ends no key."""
    if start >= at:
        return spelled[at:start] + raw
    rest = spelled[start:at]
    return raw[len(rest) :] if raw.startswith(rest) else None


def _reachable(after: bytes | None, closed: Mapping[str, bytes]) -> list[str]:
    """Return the options that the bytes after a key can still become, or have become."""
    if after is None:
        return []
    lead = _LEAD.match(after)
    if lead is None:
        return list(closed) if _LEAD_PART.fullmatch(after) else []
    rest = after[lead.end() :]
    return [o for o, whole in closed.items() if whole.startswith(rest) or rest.startswith(whole)]


def _normalise(mass: Mapping[str, Sequence[float]], least: float) -> dict[str, float]:
    """Return log-probabilities that add up to one. An option that was not listed is at most as
    likely as the least likely token that was."""
    summed = {option: _log_sum(parts or [least]) for option, parts in mass.items()}
    total = _log_sum(list(summed.values()))
    return {option: logprob - total for option, logprob in summed.items()}


def _log_sum(parts: Sequence[float]) -> float:
    most = max(parts)
    return most + math.log(sum(math.exp(part - most) for part in parts))
