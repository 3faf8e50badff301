"""Shared parts of HTML pages: words in four languages, safe text, templates and their policy.

All judged text is hostile. Templates escape everything they insert, no filter marks data as safe,
and characters that hide or turn text around are shown as escapes.
"""

from __future__ import annotations

import itertools
import tomllib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.errors import UsageError, quote
from evenhand.kinds import DEFAULT_KIND
from evenhand.notes import Names, Note, Percent, Places, Signed, Value
from evenhand.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment

LANGUAGES = ("en", "ru", "zh", "ja")
NOTHING = "–"
"""The text for a value that is not available."""
_NEEDS = {"report": "reports need", "view": "the view needs"}
_ROOM = resources.files("evenhand.report.html")
_JUDGE_WORDS = resources.files("evenhand.kinds") / "builtin" / DEFAULT_KIND / "words"
"""The words that judges are told; a failure tag has the same name there and on a page."""


class Segment(NamedTuple):
    """A stretch of a text, and the labels of the spans that cover it."""

    text: str
    labels: tuple[str, ...]


def mark_spans(text: str, spans: Sequence[tuple[int, int, str]]) -> list[Segment]:
    """A text cut at the ends of its spans (code points, half-open), nothing lost or altered."""
    within = [(max(0, s), min(len(text), e), label) for s, e, label in spans]
    within = [span for span in within if span[0] < span[1]]
    ends = sorted({0, len(text), *(s for s, _, _ in within), *(e for _, e, _ in within)})
    return [
        Segment(
            text[start:end],
            tuple(dict.fromkeys(label for s, e, label in within if s <= start and end <= e)),
        )
        for start, end in itertools.pairwise(ends)
    ]


def _cut(name: str) -> str:
    """A name as it may stand in a sentence that has quotation marks of its own."""
    return quote(name)[1:-1]


class ReportWords:
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

    def naming_tags(self, names: Mapping[str, str]) -> ReportWords:
        """Return a copy of the labels with the failure tags of a protocol."""
        return ReportWords(self.language, {**self.texts, "tag": names})

    def counted(self, key: str, n: int) -> str:
        """A number with its noun, e.g. `120 questions`."""
        forms: Sequence[str] = self.texts["counted"][key]
        return forms[_PLURALS[self.language](n)].format(n=self.integer(n))

    def note(self, note: str) -> str:
        """Return a note in this language; unchanged if there is no translation."""
        sentences = _notes(self.language)
        if not isinstance(note, Note) or note.key not in sentences:
            return note
        values = {name: self._value(name, value) for name, value in note.values.items()}
        return sentences[note.key].format_map(values)

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
        return _notes(self.language)["quote"].format(name=_cut(name))

    def _place(self, variant: str, dimensions: Iterable[str]) -> str:
        sentences = _notes(self.language)
        listed = sentences["comma"].join(map(self._dimension, dimensions))
        return sentences["place"].format(variant=self._quote(variant), dimensions=listed)

    def _first(self, texts: Iterable[str], more: int, between: str) -> str:
        """The first few of many; how many more there are is said after them."""
        sentences = _notes(self.language)
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


def p_value(say: ReportWords, p: float | None) -> str:
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
def _notes(language: str) -> Mapping[str, str]:
    """The sentences of notes by their keys; none in English, in which notes are made."""
    if language == "en":
        return {}
    return tomllib.loads((_ROOM / "notes" / f"{language}.toml").read_text(encoding="utf-8"))


@cache
def words(language: str, more: Traversable | None = None) -> ReportWords:
    """The words of a language; `more` is a folder with further files of the same names, whose
    tables join these."""
    folders = [_ROOM / "words", *([more] if more else [])]
    texts: dict[str, Any] = {}
    for folder in folders:
        read = tomllib.loads((folder / f"{language}.toml").read_text(encoding="utf-8"))
        for name, table in read.items():
            texts[name] = {**texts.get(name, {}), **table}
    judge_words = tomllib.loads((_JUDGE_WORDS / f"{language}.toml").read_text(encoding="utf-8"))
    return ReportWords(language, {**texts, "tag": judge_words["tags"]})


def environment(say: ReportWords, *packages: str) -> Environment:
    """Templates of this room and of further packages' `templates`, escaping all they insert."""
    require("jinja2", extra="view" if packages else "report")
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup  # comes with jinja2

    templates = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "evenhand.report.html")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["visible"] = visible
    templates.filters["marked"] = mark_spans
    templates.filters["marks"] = Markup  # of charts: numbers and classes of this package alone
    for name in ("number", "short", "signed", "percent", "integer", "money", "moment"):
        templates.filters[name] = getattr(say, name)
    templates.globals |= {"say": say, "interval": say.interval, "share": say.share}
    return templates


def require(*modules: str, extra: str = "report") -> None:
    """Raise UsageError where one of these, which come with an extra, is not installed."""
    for name in modules:
        if find_spec(name) is None:
            raise UsageError(
                f"{_NEEDS[extra]} the package {name}, which is not installed",
                advice=f'pip install "evenhand[{extra}]"',
            )


def static(name: str) -> str:
    """The text of a file of `static/`."""
    return (_ROOM / "static" / name).read_text(encoding="utf-8")


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A content security policy that allows these inline texts, and nothing else at all."""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {_hashes(styles)}; script-src {_hashes(scripts)}"
    )


def _hashes(texts: Sequence[str]) -> str:
    hashes = [b64encode(sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
