"""A model that answers from a script: one token a character, the next ones from a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from evenhand.judges.embedded.options import Candidate, Tokens, Written

Table = Callable[[str], Mapping[str, float]]


class ScriptedSession:
    """Implements `options.Session`; `table` gives probabilities of what follows a text."""

    def __init__(self, table: Table, writes: Callable[[str], str] = lambda _: 'ok"') -> None:
        self.table, self.writes = table, writes
        self.prompt: Tokens = ()
        self.asked: list[str] = []

    def tokens(self, text: str) -> Tokens:
        return tuple(map(ord, text))

    def following(self, after: Tokens) -> list[Candidate]:
        text = self._text(after)
        self.asked.append(text)
        return [Candidate(ord(t[0]), t, math.log(p)) for t, p in self.table(text).items()]

    def write(self, after: Tokens, *, limit: int, grammar: str) -> Written:
        text = self._text(after)
        self.asked.append(text)
        said = self.writes(text)
        ended = said.endswith('"') or not grammar
        return Written(said[:limit], min(limit, len(said)), ended and len(said) <= limit)

    @staticmethod
    def _text(tokens: Tokens) -> str:
        return "".join(map(chr, tokens))
