"""Every sentence that a person reads: a key and values.

A folder for each language, `en`, `ru`, `zh`, `ja`; in it `labels.toml` for reports, pages and the
demo, and a file for the messages of each room. A key begins with the name of its file
(`data.no_header`), or of a table of `labels.toml` (`units.search`). A sentence that a language
lacks is told in English.

Values stand in braces. After a colon stands how they are written:

    {n}                a number with thousands set apart; a name; several names
    {n:question}       a number with its noun, from the table `counted`
    {outcome:outcome}  the meaning of a code, from the table of that name
    {x:percent} {x:signed} {x:money} {x:p} {x:.2f} {x:+.3f}
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from numbers import Integral, Real
from string import Formatter
from types import MappingProxyType
from typing import Any, NamedTuple

from evenhand.errors import hide_credentials, quote

LANGUAGES = ("en", "ru", "zh", "ja")
NOTHING = "–"
"""The text for a value that is not available."""
LABELS = "labels"
_PLAIN = str.maketrans({"→": "->", "−": "-", "–": "-"})
"""The characters of a page that terminals are not used to."""
_NO_VALUES: Mapping[str, Any] = MappingProxyType({})


class Code(str):
    """A command, a flag, a list of formats: told as it is, neither cut nor translated."""

    __slots__ = ()


class Names(NamedTuple):
    """The first few of many names, and how many more there are."""

    names: Sequence[str]
    more: int = 0


def few(names: Sequence[str], most: int) -> Names:
    """Return the first names, at most `most`, and the number of the others."""
    return Names(names[:most], max(0, len(names) - most))


class Place(NamedTuple):
    """A variant, with the dimensions of it that are spoken of."""

    variant: str
    dimensions: Sequence[str]


class Places(NamedTuple):
    """The first few of many places, and how many more variants there are."""

    places: Sequence[Place]
    more: int = 0


Value = object
"""What fills a place of a sentence. A string, a path or an error is from outside: it is cut, and
what it hides is shown; a `Code` and a `Sentence` are not."""
_KEPT = str | int | float | Names | Places | None


class Sentence(str):
    """A sentence in English that other languages can tell too: it keeps its key and values."""

    __slots__ = ("key", "values")
    key: str
    values: Mapping[str, Value]

    def __new__(cls, key: str, /, **values: Value) -> Sentence:
        kept = {name: _keep(value) for name, value in values.items()}
        message = super().__new__(cls, words("en").tell(key, kept))
        message.key, message.values = key, kept
        return message

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.key, dict(self.values))

    @property
    def advice(self) -> str:
        """Return what to do about it, the sentence of the key with `_advice`; "" without one."""
        key = f"{self.key}_advice"
        return Sentence(key, **self.values) if words("en").has(key) else ""


def _keep(value: Value) -> Value:
    """Return a value as a sentence keeps it: a number of numpy as one of Python, a path or an error
    as a string."""
    if isinstance(value, _KEPT):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else str(value)


def _restore(key: str, values: Mapping[str, Value]) -> Sentence:
    return Sentence(key, **values)


@dataclass(frozen=True)
class Words:
    """The sentences of one language, and how it writes numbers."""

    language: str
    is_plain: bool = False
    """For a terminal: `->` and `-` in place of arrows, minus signs and dashes."""
    tags: Mapping[str, str] | None = None
    """The names of failure tags of a protocol; those of the built-in one where there are none."""
    faults: Collection[str] = ()
    """Dimensions on which more is worse, and which figures turn round."""

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the text of a key such as `units.search`, its places filled with values; strings
        are filled in as they are."""
        text = self._plain(self._text(key))
        return _Filler(self).vformat(text, (), values) if values else text

    def tell(self, key: str, values: Mapping[str, Value]) -> str:
        """Return the text of a key, its places filled with values from outside."""
        # What stands in values is the user's own, and stays as it is.
        return hide_credentials(_SafeFiller(self).vformat(self._plain(self._text(key)), (), values))

    def message(self, text: str) -> str:
        """Return a message in this language; a text that is none is returned as it is."""
        return self.tell(text.key, text.values) if isinstance(text, Sentence) else text

    def has(self, key: str) -> bool:
        """Return True if there is a text with this key."""
        try:
            self._text(key)
        except KeyError:
            return False
        return True

    def parts(self, key: str, /, **values: object) -> list[tuple[str, str]]:
        """Return the text of a key in pieces, each with the name of its place, "" for what is
        between places: for emphasis without markup. A value that is empty takes the blank before it
        along."""
        parts: list[tuple[str, str]] = []
        for literal, name, spec, _ in Formatter().parse(self._text(key)):
            value = _Filler(self).format_field(values[name], spec or "") if name else ""
            between = literal.removesuffix(" ") if name and not value else literal
            parts += [(self._plain(between), "")] if between else []
            parts += [(value, name or "")] if value else []
        return parts

    def gloss(self, group: str, code: str) -> str:
        """Return the meaning of a code such as a failure reason; the code itself if unknown."""
        text = self.glosses(group).get(code)
        return text if isinstance(text, str) else code

    def glosses(self, group: str) -> Mapping[str, str]:
        """Return the codes of a group with their meanings."""
        if group == "tag":
            return _tags(self.language) if self.tags is None else self.tags
        glosses: Mapping[str, str] = _table(self.language, LABELS).get(group, _NO_VALUES)
        return glosses

    def naming_tags(self, names: Mapping[str, str]) -> Words:
        """Return a copy of the labels with the failure tags of a protocol."""
        return replace(self, tags=names)

    def counted(self, key: str, n: int) -> str:
        """Return a number with its noun, e.g. `120 questions`."""
        forms: Sequence[str] = _table(self.language, LABELS)["counted"][key]
        return forms[_PLURALS[self.language](n) % len(forms)].format(n=self.integer(n))

    def is_counted(self, key: str) -> bool:
        """Return True if the noun of this name can be counted."""
        return key in _table(self.language, LABELS)["counted"]

    def join(self, texts: Iterable[str], more: int = 0, between: str = "comma") -> str:
        """Return texts one after the other, and how many more there are."""
        rest = self("list.more", n=more) if more else ""
        return (self(f"list.{between}").join(texts) or NOTHING) + rest

    def quote(self, name: str) -> str:
        """Return a name in quotation marks, with nothing hidden."""
        return self("list.quote", name=escape(name))

    def naming_faults(self, names: Collection[str]) -> Words:
        """Return a copy that says of these dimensions that figures turn them round."""
        return replace(self, faults=names)

    def dimension(self, name: str) -> str:
        """Return the name of a dimension in this language where it is known."""
        told = self.gloss("dimension", name)
        return self("unit.free_of", dimension=told) if name in self.faults else told

    def place(self, place: Place) -> str:
        """Return a variant with its dimensions."""
        dimensions = self.join(map(self.dimension, place.dimensions))
        return self("list.place", variant=self.quote(place.variant), dimensions=dimensions)

    def _text(self, key: str) -> str:
        first, _, rest = key.partition(".")
        is_room = first in _rooms()
        text: Any = _table(self.language, first if is_room else LABELS)
        for name in (rest if is_room else key).split("."):
            text = text.get(name) if isinstance(text, Mapping) else None
        if not isinstance(text, str):
            raise KeyError(key)
        return text

    def _plain(self, text: str) -> str:
        return text.translate(_PLAIN) if self.is_plain else text

    def number(self, value: float | None, digits: int = 2) -> str:
        """Return a number with so many digits after the point."""
        # Nothing is neither above nor below nothing.
        return self._local(NOTHING if value is None else f"{value:z.{digits}f}")

    def short(self, value: float | None) -> str:
        """Return a number without digits that say nothing: a score, a rate."""
        return self._local(NOTHING if value is None else f"{value:.6g}")

    def signed(self, value: float | None, digits: int = 2) -> str:
        return self._local(NOTHING if value is None else f"{value:+z.{digits}f}")

    def interval(self, low: float | None, high: float | None, digits: int = 2) -> str:
        """`[0.08, 0.34]`, in the way of the language; a dash for an end that nothing bounds."""
        if low is None and high is None:
            return ""
        between = ";\u00a0" if self.language == "ru" else ",\u00a0"
        return f"[{self.number(low, digits)}{between}{self.number(high, digits)}]"

    def percent(self, value: float | None) -> str:
        if value is None:
            return self._local(NOTHING)
        return f"{self._local(f'{100 * value:.0f}')}{self._before_percent}%"

    def percent_change(self, value: float | None) -> str:
        """Return how much more or less something is, in percent."""
        sign = "" if value is None else f"{self._before_percent}%"
        return f"{self.signed(None if value is None else 100 * value, 0)}{sign}"

    @property
    def _before_percent(self) -> str:
        return "\u00a0" if self.language == "ru" else ""

    def share(self, value: float | None, low: float | None, high: float | None) -> str:
        """Return a share with its interval, in percent."""
        if value is None or low is None or high is None:
            return self.percent(value)
        return f"{self.percent(value)} {self.percents(low, high)}"

    def percents(self, low: float | None, high: float | None) -> str:
        """Return the interval of a share."""
        return "" if low is None or high is None else self.interval(100 * low, 100 * high, 0)

    def integer(self, value: int) -> str:
        """Return a number with thousands set apart."""
        between = "\u00a0" if self.language == "ru" else ","
        return self._local(f"{value:,}".replace(",", "_")).replace("_", between)

    def money(self, value: float | None) -> str:
        """Return dollars and cents; whole dollars from ten on; a dash where a price is not
        known."""
        if value is None:
            return self._local(NOTHING)
        if 0 < value < 0.01:
            return self("list.less_than", value=self.money(0.01))
        if value == 0:
            return "$0"
        is_small = value < 9.995  # more is rounded to whole dollars
        return self._local(f"${value:.2f}") if is_small else f"${self.integer(round(value))}"

    def p_value(self, p: float | None) -> str:
        """Return a p-value; below a thousandth it says only that."""
        return f"< {self.number(0.001, 3)}" if p is not None and p < 0.001 else self.number(p, 3)

    def p_equation(self, p: float | None) -> str:
        """Return what follows the letter p in a sentence: `= 0.040`, `< 0.001`."""
        value = self.p_value(p)
        return value if value.startswith("<") else f"= {value}"

    def moment(self, stamp: str) -> str:
        """Return a time of the store, to the minute, in UTC."""
        return f"{stamp[:10]} {stamp[11:16]} UTC"

    def _local(self, text: str) -> str:
        text = self._plain(text.replace("-", "\u2212"))
        return text.replace(".", ",") if self.language == "ru" else text


class _Filler(Formatter):
    """Fills the places of a sentence; strings are filled in as they are."""

    def __init__(self, say: Words) -> None:
        self.say = say

    def format_field(self, value: Any, format_spec: str) -> str:
        say = self.say
        match value, format_spec:
            case (Sentence(), ""):
                return say.message(value)
            case (str(), ""):
                return self.name(value)
            case (str(), "dimension"):
                return self.name(say.dimension(value))
            case (str(), _):
                return self.name(say.gloss(format_spec, value))
            case (Names(), ""):
                return say.join(map(say.quote, value.names), value.more)
            case (Places(), ""):
                return say.join(map(say.place, value.places), value.more, "semicolon")
            case (int(), ""):
                return say.integer(value)
            case (int(), noun) if say.is_counted(noun):
                return say.counted(noun, value)
            case (None | int() | float(), _):
                return self.number(value, format_spec)
            case _:
                return str(value)

    def name(self, text: str) -> str:
        return text

    def number(self, value: float | None, spec: str) -> str:
        say = self.say
        writers: Mapping[str, Callable[[float | None], str]] = {
            "": say.short,
            "percent": say.percent,
            "signed": say.signed,
            "money": say.money,
            "p": say.p_equation,
        }
        if spec in writers:
            return writers[spec](value)
        write = say.signed if spec.startswith("+") else say.number
        return write(value, int(spec.strip("+.f")))


class _SafeFiller(_Filler):
    """Fills the places of a sentence with values from outside: of a name nothing is hidden, and no
    more than its beginning stands there."""

    def name(self, text: str) -> str:
        return text if isinstance(text, Code) else escape(text)


def escape(name: str) -> str:
    """Return a name as it may stand in a sentence that has quotation marks of its own."""
    return quote(name)[1:-1]


def _russian(n: int) -> int:
    if n % 10 == 1 and n % 100 != 11:
        return 0
    return 1 if 2 <= n % 10 <= 4 and not 12 <= n % 100 <= 14 else 2


_PLURALS: dict[str, Callable[[int], int]] = {
    "en": lambda n: int(n != 1),
    "ru": _russian,
    "zh": lambda n: 0,
    "ja": lambda n: 0,
}


@cache
def words(language: str, *, plain: bool = False) -> Words:
    """Return the words of a language; `plain` are those of a terminal."""
    return Words(language, plain)


@cache
def _rooms() -> frozenset[str]:
    """Return the names of the files that hold messages."""
    files = (resources.files("evenhand.words") / "en").iterdir()
    return frozenset(file.name.removesuffix(".toml") for file in files) - {LABELS}


@cache
def _table(language: str, name: str) -> Mapping[str, Any]:
    """Return the texts of a file; those that the language lacks are English."""
    path = resources.files("evenhand.words") / language / f"{name}.toml"
    texts = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return texts if language == "en" else _overlay(_table("en", name), texts)


def _overlay(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**under, **over}
    for key, table in under.items():
        if isinstance(table, Mapping) and key in over:
            merged[key] = {**table, **over[key]}
    return merged


@cache
def _tags(language: str) -> Mapping[str, str]:
    """Return the failure tags as judges are told them; a tag has the same name on a page."""
    path = resources.files("evenhand") / "kinds" / "builtin" / "rubric" / "words"
    texts: Mapping[str, str] = tomllib.loads((path / f"{language}.toml").read_text("utf-8"))["tags"]
    return texts
