"""The child process: one model, one JSON object a line in, one or more out.

In: `{"load": {...}}` once, then `{"ask": {...}}` at a time. Out: `{"beat": true}` as a sign of life
while it works, then `{"ready": ...}`, `{"reply": ...}`, `{"overflow": ...}`, `{"unfit": ...}` or
`{"failed": ...}`; `{"altered": true}` if the weights are not, or no longer, those that the parent
named. The real standard output is kept for these lines alone; whatever else prints goes to standard
error. When standard input closes, the process ends at once, in the middle of anything: a parent
that was killed leaves nobody behind.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import to_builtins

from evenhand import jsontext
from evenhand.exchange import Finish, Message, Reply, Usage
from evenhand.judges.embedded.decoding import (
    BudgetSpentError,
    Choice,
    Draw,
    Odds,
    SchemaError,
    SchemaFiller,
    Versus,
    decide,
    find_choices,
    likelihood_lead,
    measure,
    subtract_prior,
)

if TYPE_CHECKING:
    from evenhand.judges.embedded.models import OpenWeights
    from evenhand.judges.embedded.runtime import Runtime

Send = Callable[[dict[str, Any]], None]
PAIRS_KEPT = 1024


def main() -> None:
    """Serve the parent until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    # The pipe to the parent, taken away from everyone else in this process.
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(line: dict[str, Any]) -> None:
        pipe.write(json.dumps(line) + "\n")
        pipe.flush()

    _serve(_lines(sys.stdin), send)


def _serve(lines: Iterator[dict[str, Any]], send: Send) -> None:
    from evenhand.judges.embedded.runtime import TooLongError

    runtime, weights = _load(next(lines)["load"], send)
    answerer = Answerer(runtime)
    send({"ready": {"context": runtime.context}})
    for line in lines:
        if weights.has_changed():  # what is mapped into memory has changed with it
            send({"altered": True})
            return
        try:
            send({"reply": to_builtins(answerer.answer(line["ask"]))})
        except TooLongError as error:
            send({"overflow": str(error)})
        except SchemaError as error:
            send({"unfit": str(error)})


def _load(request: dict[str, Any], send: Send) -> tuple[Runtime, OpenWeights]:
    """Return the model, once its whole file was seen to be the one the parent named."""
    from evenhand.judges.embedded.models import OpenWeights
    from evenhand.judges.embedded.runtime import Runtime

    try:
        weights = OpenWeights(Path(request["path"]))
        runtime = Runtime(weights.path, request["threads"], lambda: send({"beat": True}))
        sha256 = weights.sha256()
    except Exception as error:
        send({"failed": f"{type(error).__name__}: {error}"})
        os._exit(1)
    if sha256 != request["sha256"]:
        send({"altered": True})
        os._exit(1)
    return runtime, weights


def _lines(source: TextIO) -> Iterator[dict[str, Any]]:
    """Yield what the parent says. A thread reads it, so that its end is noticed during any work."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in source:
            waiting.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield json.loads(waiting.get())


class Answerer:
    """Answers questions by a loaded model: prior, choices, texts, in that order. The sessions of
    one question never interleave, so every value depends on the question alone."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        # The other order and later rounds of a pair ask again.
        self._likelihood_lead = lru_cache(PAIRS_KEPT)(self._compare_likelihoods)
        self._priors: dict[tuple[Any, ...], Odds] = {}

    def answer(self, request: Mapping[str, Any]) -> Reply:
        """Return the reply to a question as it came over the pipe. Raises SchemaError or
        TooLongError."""
        messages, schema = _messages(request["messages"]), request["schema"]
        temperature, seed = float(request["temperature"]), int(request["seed"])
        budget = int(request["max_tokens"])
        choices = () if schema is None else tuple(find_choices(schema))
        prior = self._prior(_messages(request["neutral"]), choices)
        compared = [choice.versus for choice in choices if choice.versus is not None]
        leads = {versus: self.lead(versus) for versus in compared}
        session = self._runtime.session(messages, temperature, seed)
        if schema is None:
            written = session.write((), limit=budget)
            finish: Finish = "stop" if written.ended else "length"
            usage = Usage(input_tokens=len(session.prompt), output_tokens=written.tokens)
            return Reply(text=written.text, finish=finish, usage=usage)
        odds = measure(session, choices, leads)
        if prior is not None:
            odds = subtract_prior(odds, prior, choices)
        draw = Draw.of(messages, temperature, seed) if request["drawn"] else None
        decided = {choice.path: decide(choice, odds[choice.path], draw) for choice in choices}
        filler = SchemaFiller(session, decided, budget)
        try:
            text, finish = jsontext.dump(filler.fill(schema)), "stop"
        except BudgetSpentError:
            text, finish = "", "length"
        return Reply(
            text=text,
            finish=finish,
            usage=Usage(input_tokens=len(session.prompt), output_tokens=filler.written),
            odds={
                ".".join(choice.path): dict(
                    zip(map(jsontext.dump, choice.values), odds[choice.path], strict=True)
                )
                for choice in choices
            },
        )

    def lead(self, versus: Versus) -> float:
        """Return by how much the model would rather have written the first of two texts."""
        first, second = sorted(versus.texts)
        lead = self._likelihood_lead(versus.topic, first, second)
        return lead if versus.texts == (first, second) else -lead

    def _compare_likelihoods(self, topic: str, first: str, second: str) -> float:
        return likelihood_lead(self._runtime.session((Message("user", topic),)), first, second)

    def _prior(self, neutral: Sequence[Message], choices: Sequence[Choice]) -> Odds | None:
        """Return the odds when there is nothing to judge; None without a neutral prompt."""
        plain = [choice for choice in choices if choice.versus is None]
        if not neutral or not plain:
            return None
        key = (*neutral, *(choice.questions for choice in plain))
        if key not in self._priors:
            self._priors[key] = measure(self._runtime.session(neutral), plain, {})
        return self._priors[key]


def _messages(turns: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    return tuple(Message(turn["role"], turn["content"]) for turn in turns)


if __name__ == "__main__":
    main()
