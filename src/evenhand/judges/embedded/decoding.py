"""Filling in a schema: code writes the shape of a reply, the model makes its choices.

Keys and constants are never left to the model. Every `enum` is decided from the probabilities of
its options, after a lead that holds only the path to it, less the probabilities of the same lead
when there is nothing to judge. Quotes and free texts are written afterwards, after a lead that
holds the decisions beside them: a rationale explains the score, it does not cause it.

An `enum` with `x-versus` sets two texts against each other. The model names the better one and,
apart from that, the worse one: its taste for a letter or a place shows both times and cancels. To
this is added which of the two it would rather have written itself. The last option is for a
difference too small to tell.

An option's probability is that of constrained decoding: at each point where options part, the
model's probabilities of the ways to go on are normalised over those ways alone. So an option of
many tokens is scored over all of them, and `1` against `10` is what follows the `1`.

Small models that write a verdict freely, or under a grammar, give nearly every answer the same
score and nearly every pair the first place; docs/embedded.md has the figures.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand import jsontext
from evenhand.exchange import Message

if TYPE_CHECKING:
    from evenhand.judges.embedded.runtime import Completion, PromptSession

VERSION = "decoding-3"
"""Part of the judge's identity: raise it whenever the same model could answer differently."""
LEAN = 0.25
"""Log-odds by which the text that stands first is favoured, measured with the default model."""
MARGIN = 0.1
"""Log-odds up to which two texts count as equally good."""
PROSE_TOKENS, PROSE_CHARS = 48, 240
"""A sentence or two; each token costs a fifteenth of a second, and small models ramble."""
PROSE_GRAMMAR = r"""root ::= char* "\""
char ::= [^"\\\x00-\x1F\x7F] | "\\" ["\\/n]
"""
"""The inside of a JSON string and its closing quote."""
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]")

Tokens = tuple[int, ...]
# What may follow a JSON value or close a JSON string: how a reply goes on after an option's end.
ENDS = ('"', ",", "}", "]", "\n", " ", "\t", "\r")
# Tokens of each text that are read from where the two part; what a text claims comes early.
READ = 24
# Tokens before that place that are read again; more would take minutes where texts are near copies.
SHARED = 256

Schema = Mapping[str, Any]
Path = tuple[str, ...]
Odds = dict[Path, tuple[float, ...]]
"""Log-probabilities of the options of each choice."""


class SchemaError(ValueError):
    """A schema beyond the subset that can be filled in."""


class BudgetSpentError(Exception):
    """The tokens allowed for one reply are used up."""


class Versus(NamedTuple):
    """Two texts to compare, as `x-versus` gives them, the one that stands first there first."""

    names: tuple[str, str]
    texts: tuple[str, str]
    topic: str
    better: str
    """The key under which the model names the better one, and that for the worse one."""
    worse: str


class Choice(NamedTuple):
    """One field that is decided: its path and its options."""

    path: Path
    values: tuple[Any, ...]
    versus: Versus | None = None

    @property
    def questions(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return all leads that the model is asked to continue, and the options after each."""
        if self.versus is None:
            return ((_lead(self.path), tuple(map(_option, self.values))),)
        names = tuple(map(_option, self.versus.names))
        return tuple((_lead((key,)), names) for key in (self.versus.better, self.versus.worse))


class Draw(NamedTuple):
    """One draw for a whole reply, as later rounds have it so that they can come out differently:
    choices that say the same fall on the same side."""

    temperature: float
    point: float
    """From 0 up to 1: where on the line of all options, each as long as it is likely."""

    @classmethod
    def of(cls, messages: Iterable[Message], temperature: float, seed: int) -> Draw:
        """Return the draw of a prompt and a seed: nothing random, so a run can be repeated."""
        prompt = jsontext.compact([seed, *([turn.role, turn.content] for turn in messages)])
        digest = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=6).digest()
        return cls(temperature, int.from_bytes(digest, "big") / 2**48)

    def pick(self, odds: Sequence[float]) -> int:
        """Return the index of the option at the point, given log-probabilities in line."""
        lengths = [math.exp((value - max(odds)) / self.temperature) for value in odds]
        left = self.point * math.fsum(lengths)
        for option, length in enumerate(lengths):
            left -= length
            if left < 0:
                return option
        return len(odds) - 1


def find_choices(schema: Schema, path: Path = ()) -> Iterator[Choice]:
    """Yield every field of a reply that is decided, in the schema's order. Raises SchemaError."""
    kind = _kind(schema)
    if kind == "object":
        for key, inner in schema["properties"].items():
            yield from find_choices(inner, (*path, key))
    elif kind == "enum":
        versus = schema.get("x-versus")
        yield Choice(path, tuple(schema["enum"]), _read_versus(schema) if versus else None)


def measure(
    session: PromptSession, choices: Sequence[Choice], leads: Mapping[Versus, float]
) -> Odds:
    """Return the odds of every choice. `leads` tells by how much the model would rather have
    written the first of two texts."""
    different = dict.fromkeys(question for choice in choices for question in choice.questions)
    known = {question: log_odds(session, *question) for question in different}
    odds: Odds = {}
    for choice in choices:
        answers = [known[question] for question in choice.questions]
        versus = choice.versus
        odds[choice.path] = answers[0] if versus is None else compare(answers, leads[versus])
    return odds


def compare(letters: Sequence[tuple[float, ...]], lead: float) -> tuple[float, ...]:
    """Return the odds of the first, the second and neither, from the log-odds of the letters for
    better and for worse. Neither is as likely as the better one at the margin."""
    better, worse = (first - second for first, second in letters)
    half = ((better - worse) / 2 - LEAN + lead) / 2
    return _normalise([half, -half, MARGIN / 2])


def subtract_prior(odds: Odds, prior: Odds, choices: Sequence[Choice]) -> Odds:
    """Return the odds that the content adds to the prior. A comparison is left as it is: it is
    between two and not against a prior."""
    return {
        choice.path: odds[choice.path]
        if choice.versus
        else _normalise([a - b for a, b in zip(odds[choice.path], prior[choice.path], strict=True)])
        for choice in choices
    }


def decide(choice: Choice, odds: Sequence[float], draw: Draw | None = None) -> Any:
    """Return the value of one choice: the median of numbers, the likeliest of other options; with
    a draw, one option by its probability."""
    if draw is not None:
        # Neither of two stands between the two.
        line = (0, 2, 1) if choice.versus else tuple(range(len(odds)))
        return choice.values[line[draw.pick([odds[i] for i in line])]]
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in choice.values):
        return _median(choice.values, odds)
    return choice.values[max(range(len(odds)), key=lambda i: odds[i])]


def _median(values: Sequence[Any], odds: Sequence[float]) -> Any:
    """Return the lowest number that leaves at most half of the probability above it.

    A small model spreads its probability over the whole scale, with a bump at either end; the
    likeliest number would jump between the ends where the median moves by a step.
    """
    ranked = sorted(range(len(values)), key=lambda i: values[i])
    above = math.fsum(map(math.exp, odds))
    half = above / 2
    for i in ranked:
        above -= math.exp(odds[i])
        if above <= half:
            return values[i]
    return values[ranked[-1]]


class SchemaFiller:
    """Builds one reply from decided choices; the model adds quotes and texts."""

    def __init__(self, session: PromptSession, decided: Mapping[Path, Any], budget: int) -> None:
        self._session, self._decided = session, decided
        self._budget = budget
        self.written = 0
        """Tokens written so far."""

    def fill(self, schema: Schema, path: Path = (), lead: str = "") -> Any:
        """Return the value of one node; `lead` is what the model reads before it. Raises
        BudgetSpentError."""
        match _kind(schema):
            case "const":
                return schema["const"]
            case "enum":
                return self._decided[path]
            case "object":
                return self._object(schema["properties"], path, lead)
            case "quote":
                return self._quote(schema["items"]["enum"], lead)
            case _:
                return self._text(int(schema.get("maxLength", PROSE_CHARS)), lead)

    def _object(self, inner: Mapping[str, Schema], path: Path, lead: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        settled = ""
        for key in sorted(inner, key=lambda key: _RANKS[_kind(inner[key])]):
            is_nested = _kind(inner[key]) == "object"
            before = "" if is_nested else settled
            opening = f"{lead}{' ' if lead else ''}{{{before}{jsontext.compact(key)}:"
            value = values[key] = self.fill(inner[key], (*path, key), opening)
            if not is_nested:
                settled += f"{jsontext.compact(key)}: {_spell(value)}, "
                label = inner[key].get("x-labels", {}).get(jsontext.dump(value))
                settled += "" if label is None else f'"criteria": {jsontext.compact(label)}, '
        return {key: values[key] for key in inner}

    def _quote(self, quotes: Sequence[str], lead: str) -> list[str]:
        different = list(dict.fromkeys(quotes))
        options = [jsontext.dump(quote)[:-1] for quote in different]
        return [different[likeliest(self._session, f"{lead} [", options)]] if options else []

    def _text(self, most: int, lead: str) -> str:
        allowed = min(PROSE_TOKENS, self._budget - self.written)
        if allowed <= 0:
            raise BudgetSpentError
        after = self._session.tokens(f'{lead} "')
        written = self._session.write(after, limit=allowed, grammar=PROSE_GRAMMAR)
        self.written += written.tokens
        return clean_prose(written, most)


_RANKS = {"const": 0, "enum": 0, "quote": 1, "object": 2, "string": 3}
"""The order of writing: what is settled before what explains it."""


def _kind(schema: Schema) -> str:
    for kind in ("const", "enum"):
        if kind in schema:
            return kind
    match schema.get("type"):
        case "object" if isinstance(schema.get("properties"), Mapping):
            return "object"
        case "array" if schema.get("items", {}).get("x-quote"):
            return "quote"
        case "string":
            return "string"
        case _:
            raise SchemaError(f"cannot fill in {jsontext.dump(dict(schema))[:200]}")


def _read_versus(schema: Schema) -> Versus:
    terms = schema["x-versus"]
    (first, second), (one, other) = terms["names"], terms["texts"]
    return Versus((first, second), (one, other), terms["topic"], terms["better"], terms["worse"])


def _lead(path: Path) -> str:
    """Return a reply up to one field, everything beside the path left out."""
    return " ".join(f"{{{jsontext.compact(key)}:" for key in path)


def _option(value: Any) -> str:
    """Return an option as the model would write it after the lead, up to where it ends."""
    text = jsontext.dump(value)
    return " " + (text[:-1] if isinstance(value, str) else text)


def _spell(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(jsontext.dump, value)) + "]"
    return jsontext.dump(value)


def _normalise(odds: Sequence[float]) -> tuple[float, ...]:
    total = log_sum(odds)
    return tuple(value - total for value in odds)


def clean_prose(written: Completion, most: int) -> str:
    """Return the text of a JSON string's inside on one line. One that broke off, or is longer than
    `most`, goes back to its last whole sentence, else to its last whole word."""
    inner = written.text[:-1] if written.ended else written.text
    # An escape, or a character of several tokens (it shows as U+FFFD), may have broken off.
    inner = re.sub(r"(?<!\\)((?:\\\\)*)\\$", r"\1", inner)
    try:
        text = str(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        text = inner.replace("\\", "")
    text = " ".join(text.rstrip("\ufffd").split())
    if written.ended and len(text) <= most:
        return text
    text = text[:most]
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return text[: ends[-1]] if ends else text.rpartition(" ")[0] or text


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


def likelihood_lead(session: PromptSession, text: str, other: str) -> float:
    """Return by how much, in log-probability per token, a model would rather have written one text
    than another after a topic alone; 0 if one only goes on further.

    What a model takes for true shows in what it writes: the likelier text is the one it believes.
    Neither text stands before the other here, so neither gains by its place."""
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
