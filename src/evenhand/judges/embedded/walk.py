"""Walking a schema: a reply whose shape is written by code and whose choices the model makes.

Keys and constants are never left to the model. Every `enum` is decided from the probabilities of
its options, on a lead that holds only the path to it, corrected by the probabilities the same lead
gets when there is nothing to judge. Quotes and free texts are written afterwards, on a lead that
already holds what was decided beside them: a rationale explains the score, it does not cause it.

An `enum` with `x-versus` sets two texts against each other. The model names the better one and,
apart from that, the worse one: what it says alike both times is its taste for a letter or a place,
and cancels. To this is added which of the two it would rather have written itself. The last option
is for a difference too small to tell.

The order of requests is a function of the schema alone, and every value of the question alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand import jsontext
from evenhand.judges.embedded import prose
from evenhand.judges.embedded.draw import Draw
from evenhand.judges.embedded.options import Session, likeliest, log_odds

VERSION = "walk-2"
"""Part of the judge's identity: raise it whenever the same model could answer differently."""

LEAN = 0.25
"""Log-odds by which the text that stands first is favoured, measured with the default model."""
MARGIN = 0.1
"""Log-odds up to which two texts count as equally good."""

Schema = Mapping[str, Any]
Place = tuple[str, ...]


class SchemaError(ValueError):
    """A schema beyond the subset that can be walked."""


class SpentError(Exception):
    """The tokens allowed for one reply are used up."""


@dataclass(frozen=True, slots=True)
class Versus:
    """How two texts are set against each other, as `x-versus` says it."""

    names: tuple[str, str]
    """What the prompt calls them, the one that stands first there first."""
    texts: tuple[str, str]
    topic: str
    """What both are about, or answer."""
    better: str
    """The key under which the model names the better one, and that for the worse one."""
    worse: str

    @property
    def leads(self) -> tuple[str, ...]:
        """The beginnings of two replies, one naming the better and one the worse."""
        return tuple(f"{{{jsontext.compact(key)}:" for key in (self.better, self.worse))

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(" " + _unclosed(name) for name in self.names)


@dataclass(frozen=True, slots=True)
class Choice:
    """One field that is decided: where it stands and what it can be."""

    path: Place
    values: tuple[Any, ...]
    several: bool = False
    """A list of any of the values, and not one of them."""
    versus: Versus | None = None

    @property
    def questions(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """All that the model is asked for it: leads, and what may follow each."""
        if self.versus is None:
            return ((self.lead, self.options),)
        return tuple((lead, self.versus.options) for lead in self.versus.leads)

    @property
    def lead(self) -> str:
        """The reply up to this field, everything beside the path left out."""
        return " ".join(f"{{{jsontext.compact(key)}:" for key in self.path)

    @property
    def options(self) -> tuple[str, ...]:
        """As the model would write them after the lead, up to where they end."""
        if self.several:
            return (" []", *(" [" + _unclosed(value) for value in self.values))
        return tuple(" " + _unclosed(value) for value in self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        """As the odds name them."""
        named = tuple(jsontext.dump(value) for value in self.values)
        return ("[]", *named) if self.several else named


Odds = dict[Place, tuple[float, ...]]


def choices(schema: Schema, path: Place = ()) -> Iterator[Choice]:
    """Every field of a reply that is decided, in the schema's order."""
    kind = _kind(schema)
    if kind == "object":
        for key, inner in schema["properties"].items():
            yield from choices(inner, (*path, key))
    elif kind in ("enum", "set"):
        yield _choice(schema, path)


def measured(
    session: Session, wanted: Sequence[Choice], favour: Mapping[Versus, float] | None = None
) -> Odds:
    """The log-probabilities of the options of every choice. `favour` tells by how much the model
    would rather have written the first of two texts."""
    favours = favour or {}
    different = dict.fromkeys(question for choice in wanted for question in choice.questions)
    odds = {(lead, options): log_odds(session, lead, options) for lead, options in different}
    measures = {choice.path: [odds[each] for each in choice.questions] for choice in wanted}
    return {
        path: measures[path][0] if versus is None else compared(measures[path], favours[versus])
        for path, versus in ((choice.path, choice.versus) for choice in wanted)
    }


def compared(odds: Sequence[tuple[float, ...]], favour: float) -> tuple[float, ...]:
    """The first, the second or neither; neither is as likely as the better one at the margin."""
    better, worse = (first - second for first, second in odds)
    half = ((better - worse) / 2 - LEAN + favour) / 2
    return _normalised([half, -half, MARGIN / 2])


def corrected(measures: Odds, prior: Odds | None, wanted: Sequence[Choice]) -> Odds:
    """What the content adds to the prior, normalised.

    A list is left as it is: most of its items are so unlikely that a correction would only
    magnify noise. So is a comparison, which is between two and not against a prior.
    """
    if prior is None:
        return measures
    single = {choice.path for choice in wanted if not choice.several and choice.versus is None}
    return {
        path: _normalised(_minus(odds, prior[path])) if path in single else odds
        for path, odds in measures.items()
    }


def decided(choice: Choice, odds: Sequence[float], schema: Schema, draw: Draw | None = None) -> Any:
    """The value of one choice: the median of numbers, the likeliest of other options, or the
    likely items of a list; where there is a draw, one option by its probability."""
    if not choice.several and draw is not None:
        # Neither of two stands between the two.
        line = (0, 2, 1) if choice.versus else tuple(range(len(odds)))
        return choice.values[line[draw.taken([odds[i] for i in line])]]
    if not choice.several:
        return _median(choice.values, odds) if _ordinal(choice) else choice.values[_most(odds)]
    most = min(int(schema.get("maxItems", len(choice.values))), len(choice.values))
    ranked = sorted(range(1, len(odds)), key=lambda i: -odds[i])
    likely = [i for i in ranked if odds[i] > odds[0]][:most]
    least = ranked[: int(schema.get("minItems", 0))]
    return [choice.values[i - 1] for i in sorted({*likely, *least})]


@dataclass(slots=True)
class Walk:
    """One reply being built."""

    session: Session
    odds: Odds
    budget: int
    """Tokens that may still be written."""
    draw: Draw | None = None
    """How choices are drawn; None where each is what its odds say."""
    written: int = field(default=0)

    def value(self, schema: Schema, path: Place = (), lead: str = "") -> Any:
        """The value of one node; `lead` is what the model reads before it."""
        match _kind(schema):
            case "const":
                return schema["const"]
            case "object":
                return self._object(schema, path, lead)
            case "enum" | "set":
                return decided(_choice(schema, path), self.odds[path], schema, self.draw)
            case "quotes":
                return self._quotes(schema, lead)
            case _:
                return self._text(schema, lead)

    def _object(self, schema: Schema, path: Place, lead: str) -> dict[str, Any]:
        inner: Mapping[str, Schema] = schema["properties"]
        values: dict[str, Any] = {}
        settings: list[str] = []
        for key in sorted(inner, key=lambda key: _rank(inner[key])):
            nested = _kind(inner[key]) == "object"
            before = "" if nested else "".join(f"{part}, " for part in settings)
            opening = f"{lead}{' ' if lead else ''}{{{before}{jsontext.compact(key)}:"
            values[key] = self.value(inner[key], (*path, key), opening)
            if not nested:
                settings.append(f"{jsontext.compact(key)}: {_spaced(values[key])}")
                settings.extend(_meaning(inner[key], values[key]))
        return {key: values[key] for key in inner}

    def _quotes(self, schema: Schema, lead: str) -> list[Any]:
        left = list(dict.fromkeys(_values(schema["items"])))
        most = int(schema.get("maxItems", len(left)))
        chosen: list[Any] = []
        while left and len(chosen) < min(max(1, int(schema.get("minItems", 1))), most):
            before = "".join(f"{jsontext.compact(quote)}, " for quote in chosen)
            texts = [_unclosed(quote) for quote in left]
            chosen.append(left.pop(likeliest(self.session, f"{lead} [{before}", texts)))
        return chosen

    def _text(self, schema: Schema, lead: str) -> str:
        most = int(schema.get("maxLength", prose.CHARS))
        allowed = min(prose.TOKENS, self.budget - self.written)
        if allowed <= 0:
            raise SpentError
        grammar = prose.grammar(least=int(schema.get("minLength", 0)))
        after = self.session.tokens(f'{lead} "')
        written = self.session.write(after, limit=allowed, grammar=grammar)
        self.written += written.tokens
        return prose.read(written, most)


def _kind(schema: Schema) -> str:
    if "const" in schema:
        return "const"
    if "enum" in schema or schema.get("type") in ("boolean", "null"):
        return "enum"
    match schema.get("type"):
        case "object" if isinstance(schema.get("properties"), Mapping):
            return "object"
        case "array" if isinstance(schema.get("items"), Mapping) and "enum" in schema["items"]:
            return "quotes" if schema["items"].get("x-quote") else "set"
        case "string":
            return "string"
        case _:
            raise SchemaError(f"cannot walk {jsontext.dump(dict(schema))[:200]}")


def _choice(schema: Schema, path: Place) -> Choice:
    if _kind(schema) == "set":
        return Choice(path, tuple(_values(schema["items"])), several=True)
    versus = schema.get("x-versus")
    return Choice(path, tuple(_values(schema)), versus=versus and _versus(schema, versus))


def _versus(schema: Schema, terms: Mapping[str, Any]) -> Versus:
    try:
        _, _, _ = schema["enum"]
        (first, second), (former, latter) = terms["names"], terms["texts"]
        texts = (former, latter)
        return Versus((first, second), texts, terms["topic"], terms["better"], terms["worse"])
    except (KeyError, ValueError):
        raise SchemaError(f"cannot walk {jsontext.dump(dict(schema))[:200]}") from None


def _values(schema: Schema) -> Sequence[Any]:
    if "enum" in schema:
        return tuple(schema["enum"])
    return (True, False) if schema["type"] == "boolean" else (None,)


# What is settled is written before what explains it.
_RANKS = {"const": 0, "enum": 0, "set": 0, "quotes": 1, "object": 2, "string": 3}


def _rank(schema: Schema) -> int:
    return _RANKS[_kind(schema)]


def _meaning(schema: Schema, value: Any) -> list[str]:
    """What the chosen option stands for, as a field of its own, where the schema says it."""
    labels: Mapping[str, str] = schema.get("x-labels", {})
    label = labels.get(jsontext.dump(value))
    return [] if label is None else [f'"criteria": {jsontext.compact(label)}']


def _unclosed(value: Any) -> str:
    text = jsontext.dump(value)
    return text[:-1] if isinstance(value, str) else text


def _spaced(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(jsontext.dump, value)) + "]"
    return jsontext.dump(value)


def _minus(odds: Sequence[float], prior: Sequence[float]) -> list[float]:
    return [after - before for after, before in zip(odds, prior, strict=True)]


def _normalised(odds: Sequence[float]) -> tuple[float, ...]:
    top = max(odds)
    total = top + math.log(math.fsum(math.exp(value - top) for value in odds))
    return tuple(value - total for value in odds)


def _ordinal(choice: Choice) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in choice.values)


def _median(values: Sequence[Any], odds: Sequence[float]) -> Any:
    """The lowest number that leaves at most half of the probability above it.

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


def _most(odds: Sequence[float]) -> int:
    return max(range(len(odds)), key=lambda i: odds[i])
