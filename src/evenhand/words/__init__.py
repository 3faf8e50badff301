"""Every sentence that a person reads in a report, on a page, in the demo: a key and values.

A file for each language, `en.toml`, `ru.toml`, `zh.toml`, `ja.toml`, with the same keys; what a
language lacks is said in English. Notes are made in English by those who write them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from string import Formatter
from typing import Any

from evenhand.errors import quote
from evenhand.kinds import DEFAULT_KIND
from evenhand.notes import Names, Note, Percent, Places, Signed, Value

LANGUAGES = ("en", "ru", "zh", "ja")
NOTHING = "–"
"""The text for a value that is not available."""
_ROOM = resources.files("evenhand.words")
_JUDGE_WORDS = resources.files("evenhand.kinds") / "builtin" / DEFAULT_KIND / "words"
"""The words that judges are told; a failure tag has the same name there and on a page."""


def _cut(name: str) -> str:
    """A name as it may stand in a sentence that has quotation marks of its own."""
    return quote(name)[1:-1]


class Words:
    """The labels of one language, and how it writes numbers."""

    def __init__(self, language: str, texts: Mapping[str, Any]) -> None:
        self.language = language
        self.texts = texts

    def __call__(self, key: str, /, **values: object) -> str:
        """The text of a key such as `units.search`, its `{places}` filled with values."""
        text = self._text(key)
        return text.format_map(values) if values else text

    def parts(self, key: str, /, **values: object) -> list[tuple[str, str]]:
        """Return the text of a key in pieces, each with the name of its place, "" for what is
        between places: for emphasis without markup. A value that is empty takes the blank before it
        along."""
        parts: list[tuple[str, str]] = []
        for literal, name, _, _ in Formatter().parse(self._text(key)):
            value = str(values[name]) if name else ""
            between = literal.removesuffix(" ") if name and not value else literal
            parts += [(between, "")] if between else []
            parts += [(value, name or "")] if value else []
        return parts

    def gloss(self, group: str, code: str) -> str:
        """Return the meaning of a code such as a failure reason; the code itself if unknown."""
        text = self.texts.get(group, {}).get(code)
        return text if isinstance(text, str) else code

    def naming_tags(self, names: Mapping[str, str]) -> Words:
        """Return a copy of the labels with the failure tags of a protocol."""
        return Words(self.language, {**self.texts, "tag": names})

    def counted(self, key: str, n: int) -> str:
        """A number with its noun, e.g. `120 questions`."""
        forms: Sequence[str] = self.texts["counted"][key]
        return forms[_PLURALS[self.language](n)].format(n=self.integer(n))

    def note(self, note: str) -> str:
        """Return a note in this language; unchanged if there is no translation."""
        sentences = self._notes
        if not isinstance(note, Note) or note.key not in sentences:
            return note
        values = {name: self._value(name, value) for name, value in note.values.items()}
        return sentences[note.key].format_map(values)

    @property
    def _notes(self) -> Mapping[str, str]:
        notes: Mapping[str, str] = self.texts.get("note", {})
        return notes

    def _value(self, name: str, value: Value) -> str:
        if isinstance(value, Names):
            return self._first(map(self._quote, value.names), value.more, "comma")
        if isinstance(value, Places):
            places = [self._place(place.variant, place.dimensions) for place in value.places]
            return self._first(places, value.more, "semicolon")
        if isinstance(value, str):
            return self.gloss("rule", value) if name == "rule" else _cut(value)
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, Percent):
            return f"{self._local(f'{100 * value:g}')}{self._before_percent}%"
        return self._local(f"{value:+g}" if isinstance(value, Signed) else f"{value:g}")

    def _quote(self, name: str) -> str:
        return self._notes["quote"].format(name=_cut(name))

    def _place(self, variant: str, dimensions: Iterable[str]) -> str:
        sentences = self._notes
        listed = sentences["comma"].join(map(self._dimension, dimensions))
        return sentences["place"].format(variant=self._quote(variant), dimensions=listed)

    def _first(self, texts: Iterable[str], more: int, between: str) -> str:
        """The first few of many; how many more there are is said after them."""
        sentences = self._notes
        rest = sentences["more"].format(n=self.integer(more)) if more else ""
        return (sentences[between].join(texts) or NOTHING) + rest

    def _dimension(self, name: str) -> str:
        return self.gloss("dimension", name) if name == "overall" else name

    def _text(self, key: str) -> str:
        text: Any = self.texts
        for name in key.split("."):
            text = text[name]
        assert isinstance(text, str), key
        return text

    def number(self, value: float | None, digits: int = 2) -> str:
        """A number with so many digits after the point."""
        # Nothing is neither above nor below nothing.
        return NOTHING if value is None else self._local(f"{value:z.{digits}f}")

    def short(self, value: float | None) -> str:
        """A number without digits that say nothing: a score, a rate."""
        return NOTHING if value is None else self._local(f"{value:.6g}")

    def signed(self, value: float | None, digits: int = 2) -> str:
        return NOTHING if value is None else self._local(f"{value:+z.{digits}f}")

    def interval(self, low: float | None, high: float | None, digits: int = 2) -> str:
        """`[0.08, 0.34]`, in the way of the language; a dash for an end that nothing bounds."""
        if low is None and high is None:
            return ""
        apart = ";\u00a0" if self.language == "ru" else ",\u00a0"
        return f"[{self.number(low, digits)}{apart}{self.number(high, digits)}]"

    def percent(self, value: float | None) -> str:
        if value is None:
            return NOTHING
        return f"{self._local(f'{100 * value:.0f}')}{self._before_percent}%"

    @property
    def _before_percent(self) -> str:
        return "" if self.language in ("zh", "ja") else "\u00a0"

    def share(self, value: float | None, low: float | None, high: float | None) -> str:
        """A share with its interval, in percent."""
        if value is None or low is None or high is None:
            return self.percent(value)
        return f"{self.percent(value)} {self.percents(low, high)}"

    def percents(self, low: float | None, high: float | None) -> str:
        """The interval of a share."""
        return "" if low is None or high is None else self.interval(100 * low, 100 * high, 0)

    def integer(self, value: int) -> str:
        """With thousands set apart."""
        apart = "\u00a0" if self.language == "ru" else ","
        return f"{value:,}".replace(",", apart)

    def money(self, value: float | None) -> str:
        """In dollars; a dash where a price is not known."""
        return NOTHING if value is None else self._local(f"${value:.4g}")

    def moment(self, stamp: str) -> str:
        """A time of the store, to the minute, in UTC."""
        return f"{stamp[:10]} {stamp[11:16]} UTC"

    def _local(self, text: str) -> str:
        text = text.replace("-", "\u2212")
        return text.replace(".", ",") if self.language == "ru" else text


def p_value(say: Words, p: float | None) -> str:
    """A p value; below a thousandth it says only that."""
    if p is None:
        return say.number(None)
    return f"< {say.number(0.001, 3)}" if p < 0.001 else say.number(p, 3)


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
def words(language: str) -> Words:
    """Return the words of a language; what it lacks is said in English."""
    texts = dict(_read(_ROOM, "en"))
    for name, table in _read(_ROOM, language).items():
        texts[name] = {**texts.get(name, {}), **table}
    return Words(language, {**texts, "tag": _read(_JUDGE_WORDS, language)["tags"]})


def _read(folder: Traversable, language: str) -> dict[str, Any]:
    return tomllib.loads((folder / f"{language}.toml").read_text(encoding="utf-8"))
