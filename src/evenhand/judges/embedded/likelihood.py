"""Probabilities of fixed options and of given texts, read from a model token by token.

An option's probability is that of constrained decoding: at each point where options part, the
model's probabilities of the ways to go on are normalised over those ways alone. So an option of
many tokens is scored over all of them, and `1` against `10` is what follows the `1`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evenhand.judges.embedded.runtime import PromptSession

Tokens = tuple[int, ...]
# What may follow a JSON value or close a JSON string: how a reply goes on after an option's end.
ENDS = ('"', ",", "}", "]", "\n", " ", "\t", "\r")
# Tokens of each text that are read from where the two part; what a text claims comes early.
READ = 24
# Tokens before that place that are read again; more would take minutes where texts are near copies.
SHARED = 256
# Pairs remembered: the other order and later rounds of a pair ask again.
KEPT = 1024


class TokenCandidate(NamedTuple):
    """One token that may come next, its text, and the model's log-probability of it."""

    token: int
    text: str
    logprob: float


def log_odds(session: PromptSession, lead: str, options: Sequence[str]) -> tuple[float, ...]:
    """Return the normalised log-probability of each option as what comes after `lead`."""
    spelled = [session.tokens(lead + option) for option in options]
    found = _descend(session, spelled, list(range(len(options))), 0)
    return tuple(found[index] for index in range(len(options)))


def likeliest(session: PromptSession, lead: str, options: Sequence[str]) -> int:
    """Return the index of the option that a greedy model would write after `lead`; reads only until
    that is clear."""
    spelled = [session.tokens(lead + option) for option in options]
    alive, depth = list(range(len(options))), 0
    while len(alive) > 1:
        ways = _next_tokens(spelled, alive, depth)
        step = next(iter(ways))
        if len(ways) > 1:
            weights = _weigh(session.following(spelled[alive[0]][:depth]), ways)
            step = max(ways, key=lambda way: weights[way])
        alive, depth = ways[step], depth + 1
        if step is None:
            break
    return alive[0]


def _descend(
    session: PromptSession, spelled: Sequence[Tokens], alive: list[int], depth: int
) -> dict[int, float]:
    """Return the log-probability of each option among those alive, which share `depth` tokens."""
    ways = _next_tokens(spelled, alive, depth)
    while len(alive) > 1 and len(ways) == 1 and None not in ways:
        depth += 1
        ways = _next_tokens(spelled, alive, depth)
    if len(alive) == 1 or len(ways) == 1:  # options spelled alike share their probability
        return dict.fromkeys(alive, -math.log(len(alive)))
    weights = _weigh(session.following(spelled[alive[0]][:depth]), ways)
    total = log_sum(weights.values())
    return {
        option: weights[step] - total + inner
        for step, below in ways.items()
        for option, inner in _descend(session, spelled, below, depth + (step is not None)).items()
    }


def _next_tokens(
    spelled: Sequence[Tokens], alive: Sequence[int], depth: int
) -> dict[int | None, list[int]]:
    """Return the options by their next token; None for those that end here."""
    ways: dict[int | None, list[int]] = {}
    for option in alive:
        tokens = spelled[option]
        ways.setdefault(tokens[depth] if len(tokens) > depth else None, []).append(option)
    return ways


def _weigh(
    following: Sequence[TokenCandidate], ways: Mapping[int | None, list[int]]
) -> dict[int | None, float]:
    """Return the log-probability of each way; one too unlikely to be listed gets that of the
    last."""
    listed = {candidate.token: candidate.logprob for candidate in following}
    floor = min(listed.values(), default=0.0)
    ends = [c.logprob for c in following if c.text.startswith(ENDS) and c.token not in ways]
    return {
        way: log_sum(ends or [floor]) if way is None else listed.get(way, floor) for way in ways
    }


def log_sum(values: Iterable[float]) -> float:
    """Return the logarithm of the sum of probabilities that are given as logarithms."""
    logs = list(values)
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))


class LikelihoodCache:
    """By how much a model would rather have written one text than another, remembered per topic.

    What a model takes for true shows in what it writes: the likelier text is the one it believes.
    Neither text stands before the other here, so neither gains by its place."""

    def __init__(self, open_session: Callable[[str], PromptSession]) -> None:
        """`open_session` makes a session whose prompt is a topic alone."""
        self._open = open_session
        self._known: dict[tuple[str, str, str], float] = {}

    def lead(self, topic: str, texts: tuple[str, str]) -> float:
        """Return the lead of the first text, in log-probability per token."""
        first, second = sorted(texts)
        if (topic, first, second) not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[topic, first, second] = likelihood_lead(self._open(topic), first, second)
        lead = self._known[topic, first, second]
        return lead if texts == (first, second) else -lead


def likelihood_lead(session: PromptSession, text: str, other: str) -> float:
    """Return by how much, per token, a text is likelier than another; 0 if one only goes on
    further."""
    first, second = (session.tokens(each.strip()) for each in (text, other))
    shared = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    if shared in (len(first), len(second)):
        return 0.0
    start = max(0, shared - SHARED)
    means = [_mean_logprob(session, tokens[start:], shared - start) for tokens in (first, second)]
    return means[0] - means[1]


def _mean_logprob(session: PromptSession, text: Tokens, start: int) -> float:
    """Return the mean log-probability of the tokens from `start` on; one too unlikely to be listed
    gets that of the last."""
    logprobs: list[float] = []
    for place in range(start, min(len(text), start + READ)):
        listed = {item.token: item.logprob for item in session.following(text[:place])}
        logprobs.append(listed.get(text[place], min(listed.values(), default=0.0)))
    return math.fsum(logprobs) / len(logprobs)
