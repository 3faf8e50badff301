"""Words that a judge's reply is read and flagged by, in four languages; the list is `phrases.toml`.

A flag never changes a verdict: these are short lists, and no understanding of a language.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from evenhand.kinds.masking import MASK, mask_names

REASON_CHARS = 8_000
"""So much of each of a judge's reasons is looked at: more is no reason."""
NOTHING_CHARS = 60
_STEM_CHARS = 6
"""A word is compared by its beginning, without its ending."""


@cache
def _phrases(table: str) -> list[str]:
    languages = tomllib.loads(files(__package__).joinpath("phrases.toml").read_text("utf-8"))
    return [phrase for phrases in languages[table].values() for phrase in phrases]


def any_of(table: str) -> str:
    """Return the regular expression of any phrase of a table."""
    return f"(?:{'|'.join(_phrases(table))})"


def fold(text: str) -> str:
    """Return the letters and digits of a text, without case and width."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


@cache
def _nothings() -> set[str]:
    return {"", *map(fold, _phrases("nothing"))}


def says_nothing(text: str) -> bool:
    """Return True if a text says that there is nothing to say, or is blank."""
    return len(text) <= NOTHING_CHARS and fold(text) in _nothings()


@cache
def _patterns(table: str) -> list[re.Pattern[str]]:
    sources = [phrase.replace("@", re.escape(MASK)) for phrase in _phrases(table)]
    return [re.compile(source, re.IGNORECASE) for source in sources]


def opens_with_refusal(text: str) -> bool:
    """Return True if a reply begins with an apology: its failure is called a refusal."""
    return text.lstrip().casefold().startswith(tuple(_phrases("refuses")))


def join_reasons(reasons: Iterable[str]) -> str:
    """Return all reasons of a reply as one text, in which no phrase runs from one to the next."""
    return " ¶ ".join(" ".join(reason[:REASON_CHARS].split()) for reason in reasons)


def compares(text: str, *judged: str) -> bool:
    """Return True if reasons hold an answer against other samples or variants, of which the judged
    texts say nothing."""
    found = (match["other"] for each in _patterns("compares") for match in each.finditer(text))
    others = {other.casefold() for other in found}
    return bool(others) and not all(_is_named(other, judged) for other in others)


def _is_named(other: str, texts: Iterable[str]) -> bool:
    """Return True if one of the texts speaks of `other`, whatever its endings."""
    stems = [word[:_STEM_CHARS] for word in other.split()]
    alone = [rf"(?<![a-z0-9а-яё]){stem}(?![a-z0-9а-яё])" for stem in stems if len(stem) == 1]
    for text in map(str.casefold, texts):
        joined = "".join(text.split())
        if all(stem in joined for stem in stems) and all(re.search(one, text) for one in alone):
            return True
    return False


def guesses_source(text: str, topic: str = "") -> bool:
    """Return True if reasons guess which model wrote an answer. A model that the topic names is
    what is talked about."""
    hidden = mask_names(text, topic=topic)
    return hidden != text and any(each.search(hidden) for each in _patterns("guesses"))


def asks_both_orders(prompt: str) -> bool:
    """Return True if a prompt asks one judge for both orders of a pair. Each order is asked in a
    call of its own, so a judge that is told to run twice would answer with two lines of which code
    may take neither."""
    joined = " ".join(prompt.split())
    return any(each.search(joined) for each in _patterns("both_orders"))
