"""One question answered by a loaded model: prior, choices, texts, in that order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evenhand import jsontext
from evenhand.exchange import Finish, Message, Reply, Usage
from evenhand.judges.embedded.alone import Favours
from evenhand.judges.embedded.draw import Draw
from evenhand.judges.embedded.options import Session, Written
from evenhand.judges.embedded.priors import Priors
from evenhand.judges.embedded.runtime import Sampling
from evenhand.judges.embedded.walk import (
    Choice,
    Odds,
    Schema,
    SpentError,
    Versus,
    Walk,
    choices,
    corrected,
    measured,
)


class Host(Protocol):
    """A loaded model, as far as answering needs it."""

    def session(self, messages: Sequence[Message], sampling: Sampling) -> CountedSession: ...


class CountedSession(Session, Protocol):
    """A session that knows how long its prompt is."""

    prompt: tuple[int, ...]


def answered(host: Host, priors: Priors, favours: Favours, request: Mapping[str, Any]) -> Reply:
    """The reply to a question as it came over the pipe."""
    sampling = Sampling(temperature=float(request["temperature"]), seed=int(request["seed"]))
    messages, schema, budget = (
        _messages(request["messages"]),
        request["schema"],
        request["max_tokens"],
    )
    if schema is None:
        return _plain(host.session(messages, sampling), int(budget))
    fields = tuple(choices(schema))
    prior = _prior(host, priors, request["neutral"], fields)
    liked = {c.versus: _favour(host, favours, c.versus) for c in fields if c.versus is not None}
    session = host.session(messages, sampling)
    odds = corrected(measured(session, fields, liked), prior, fields)
    draw = Draw.of(messages, sampling.temperature, sampling.seed) if request["drawn"] else None
    walk = Walk(session, odds, int(budget), draw)
    text, finish = _walked(walk, schema)
    chances = {".".join(c.path): dict(zip(c.labels, odds[c.path], strict=True)) for c in fields}
    return Reply(text=text, finish=finish, usage=_usage(session, walk.written), odds=chances)


def _prior(host: Host, priors: Priors, neutral: Any, fields: Sequence[Choice]) -> Odds | None:
    if not neutral or not fields:
        return None
    messages = _messages(neutral)
    return priors.of(messages, fields, lambda: measured(host.session(messages, Sampling()), fields))


def _favour(host: Host, favours: Favours, versus: Versus) -> float:
    """By how much the model would rather have written the first text, the topic all it sees."""
    topic = (Message("user", versus.topic),)
    return favours.of(versus.topic, versus.texts, lambda: host.session(topic, Sampling()))


def _walked(walk: Walk, schema: Schema) -> tuple[str, Finish]:
    try:
        return jsontext.dump(walk.value(schema)), "stop"
    except SpentError:
        return "", "length"


def _plain(session: CountedSession, budget: int) -> Reply:
    written: Written = session.write((), limit=budget, grammar="")
    finish: Finish = "stop" if written.ended else "length"
    return Reply(text=written.text, finish=finish, usage=_usage(session, written.tokens))


def _usage(session: CountedSession, written: int) -> Usage:
    return Usage(input_tokens=len(session.prompt), output_tokens=written)


def _messages(turns: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    return tuple(Message(turn["role"], turn["content"]) for turn in turns)
