"""A model that answers from a script: one token a character, the next ones from a table."""

import math

from evenhand.judges.embedded.decoding import TokenCandidate
from evenhand.judges.embedded.runtime import Completion


class ScriptedSession:
    """In place of `runtime.PromptSession`; `table` has the probabilities of what follows a text, or
    whatever text."""

    def __init__(self, table, writes='ok"'):
        self.table, self.writes = table, writes
        self.prompt = ()
        self.asked = []

    def tokens(self, text):
        return tuple(map(ord, text))

    def following(self, after):
        self._note(after)
        found = self.table(self.asked[-1]) if callable(self.table) else self.table
        inner = found.get(self.asked[-1])
        found = inner if isinstance(inner, dict) else found
        return [TokenCandidate(ord(t[0]), t, math.log(p)) for t, p in found.items()]

    def write(self, after, *, limit, grammar=""):
        self._note(after)
        said = self.writes
        ended = said.endswith('"') or not grammar
        return Completion(said[:limit], min(limit, len(said)), ended and len(said) <= limit)

    def _note(self, tokens):
        self.asked.append("".join(map(chr, tokens)))


class ScriptedRuntime:
    """In place of `runtime.Runtime`: a model that gives 5 to texts with "good" in them, but leans
    to 5 anyway."""

    def __init__(self):
        self.sessions = []

    def session(self, messages, temperature=0.0, seed=0):
        text = messages[-1].content
        chances = {"good": {"1": 0.01, "5": 0.99}, "bad": {"1": 0.3, "5": 0.7}}
        found = (chance for word, chance in chances.items() if word in text)
        session = ScriptedSession(next(found, {"1": 0.1, "5": 0.9}), 'So it is."')
        session.prompt = tuple(range(len(text)))
        self.sessions.append((text, temperature, seed))
        return session
