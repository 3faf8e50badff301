"""A model that answers from a script: one token a character, the next ones from a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from evenhand.judges.embedded.decoding import TokenCandidate, Tokens
from evenhand.judges.embedded.runtime import Completion

Table = Callable[[str], Mapping[str, float]]


class ScriptedSession:
    """In place of `runtime.PromptSession`; `table` gives probabilities of what follows a text."""

    def __init__(self, table: Table, writes: Callable[[str], str] = lambda _: 'ok"') -> None:
        self.table, self.writes = table, writes
        self.prompt: Tokens = ()
        self.asked: list[str] = []

    def tokens(self, text: str) -> Tokens:
        return tuple(map(ord, text))

    def following(self, after: Tokens) -> list[TokenCandidate]:
        text = self._text(after)
        self.asked.append(text)
        return [TokenCandidate(ord(t[0]), t, math.log(p)) for t, p in self.table(text).items()]

    def write(self, after: Tokens, *, limit: int, grammar: str = "") -> Completion:
        text = self._text(after)
        self.asked.append(text)
        said = self.writes(text)
        ended = said.endswith('"') or not grammar
        return Completion(said[:limit], min(limit, len(said)), ended and len(said) <= limit)

    @staticmethod
    def _text(tokens: Tokens) -> str:
        return "".join(map(chr, tokens))


class ScriptedRuntime:
    """In place of `runtime.Runtime`: a model that gives 5 to texts with "good" in them, but leans
    to 5 anyway."""

    def __init__(self) -> None:
        self.sessions: list[tuple[str, float, int]] = []

    def session(self, messages: Any, temperature: float = 0.0, seed: int = 0) -> ScriptedSession:
        text = messages[-1].content
        score = {"1": 0.01, "5": 0.99} if "good" in text else {"1": 0.1, "5": 0.9}
        score = {"1": 0.3, "5": 0.7} if "bad" in text else score
        session = ScriptedSession(lambda _: score, lambda _: 'So it is."')
        session.prompt = tuple(range(len(text)))
        self.sessions.append((text, temperature, seed))
        return session
