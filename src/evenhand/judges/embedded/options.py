"""The probabilities of fixed options, read from a model token by token.

An option's probability is that of constrained decoding: at each point where options part, the
model's probabilities of the ways to go on are normalised over those ways alone. So an option of
many tokens is scored over all of them, and `1` against `10` is what follows the `1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Tokens = tuple[int, ...]

# What may follow a JSON value or close a JSON string: how a reply goes on after an option's end.
ENDS = ('"', ",", "}", "]", "\n", " ", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One token that may come next, its text, and the model's log-probability of it."""

    token: int
    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Written:
    """Text a model wrote, how many tokens it took, and whether it came to its own end."""

    text: str
    tokens: int
    ended: bool


class Session(Protocol):
    """One prompt before a model. The same calls in the same order give the same values."""

    def tokens(self, text: str) -> Tokens:
        """Text as tokens, none of them special."""
        ...

    def following(self, after: Tokens) -> Sequence[Candidate]:
        """The likeliest tokens after the prompt and `after`."""
        ...

    def write(self, after: Tokens, *, limit: int, grammar: str) -> Written:
        """What the model goes on to write, in at most `limit` tokens."""
        ...


def log_odds(session: Session, lead: str, options: Sequence[str]) -> tuple[float, ...]:
    """The normalised log-probability of each option as what comes after `lead`."""
    spelled = [session.tokens(lead + option) for option in options]
    logprobs = [0.0] * len(options)
    _descend(session, spelled, (), list(range(len(options))), logprobs)
    return tuple(logprobs)


def likeliest(session: Session, lead: str, options: Sequence[str]) -> int:
    """Which option a greedy model would write after `lead`; it stops reading once that is clear."""
    spelled = [session.tokens(lead + option) for option in options]
    node: Tokens = ()
    alive = list(range(len(options)))
    while len(alive) > 1:
        ways = _ways(spelled, node, alive)
        step = next(iter(ways))
        if len(ways) > 1:
            weights = _weights(session.following(node), ways)
            step = max(ways, key=lambda way: weights[way])
        alive = ways[step]
        if step is None:
            break
        node = (*node, step)
    return alive[0]


def _descend(
    session: Session, spelled: list[Tokens], node: Tokens, alive: list[int], logprobs: list[float]
) -> None:
    """Add to `logprobs` that of each way on from `node`, for all options below it."""
    while len(alive) > 1:
        ways = _ways(spelled, node, alive)
        if len(ways) > 1:
            _branch(session, spelled, node, ways, logprobs)
            return
        (step,) = ways
        if step is None:  # options spelled alike share their probability
            _share(alive, logprobs)
            return
        node = (*node, step)


def _branch(
    session: Session,
    spelled: list[Tokens],
    node: Tokens,
    ways: Mapping[int | None, list[int]],
    logprobs: list[float],
) -> None:
    weights = _weights(session.following(node), ways)
    total = _log_sum(weights.values())
    for step, below in ways.items():
        for option in below:
            logprobs[option] += weights[step] - total
        if step is None:
            _share(below, logprobs)
        else:
            _descend(session, spelled, (*node, step), below, logprobs)


def _share(alike: list[int], logprobs: list[float]) -> None:
    for option in alike:
        logprobs[option] -= math.log(len(alike))


def _ways(spelled: list[Tokens], node: Tokens, alive: list[int]) -> dict[int | None, list[int]]:
    """The options by their next token; None for those that end here."""
    depth = len(node)
    ways: dict[int | None, list[int]] = {}
    for option in alive:
        tokens = spelled[option]
        ways.setdefault(tokens[depth] if len(tokens) > depth else None, []).append(option)
    return ways


def _weights(
    following: Sequence[Candidate], ways: Mapping[int | None, list[int]]
) -> dict[int | None, float]:
    """The log-probability of each way; one too unlikely to be listed gets that of the last."""
    listed = {candidate.token: candidate.logprob for candidate in following}
    floor = min(listed.values(), default=0.0)
    ends = [c.logprob for c in following if c.text.startswith(ENDS) and c.token not in ways]
    return {
        way: _log_sum(ends or [floor]) if way is None else listed.get(way, floor) for way in ways
    }


def _log_sum(values: Iterable[float]) -> float:
    logs = list(values)
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
