"""Names of language models: their families, names in a text, and texts that name their author.

A name that holds several (`DeepSeek-R1-Distill-Qwen-7B`) belongs to the weights it was made from: a
base beats a fine-tune, and of several bases the last one counts. The table is `masking.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from msgspec import Struct, convert

from evenhand.text import INVISIBLE

MASK = "[model]"
EMBEDDED = "qwen2.5-coder-1.5b"
"""The model behind the plain judge name `embedded`."""

_NO_MODEL = frozenset({"human", "replay", "python"})
_ANY_MODEL = frozenset({"openai", "azure", "ollama", "openrouter", "embedded"})
"""Providers that serve anyone's models, so that their own name tells nothing."""
_MODEL_NAMES = frozenset({"ollama", "openrouter", "embedded"})
"""Providers whose names are always those of models."""

_LETTER = r"a-z\d_а-яё"
_VERSION = r"[- ]?v?\d{1,2}(?:\.\d{1,2})?(?:o|b|k)?(?![a-z\d])"
_SIZE = (
    r"(?=[-_ .]?v?\d"
    r"|[-_ ](?:instruct|chat|base|code|lite|mini|pro|max|ultra|large|small|medium|tiny)(?![a-z]))"
)
_TIERS = r"opus|sonnet|haiku|pro|ultra|nano|flash|turbo|mini|instruct|preview"
_NO_TAIL = r"based|like|style|powered|generated|level|class|driven|written|assisted|compatible|as"
_TAIL = (
    r"(?:[- ]?v?\d{1,2}(?:\.\d{1,2})?[a-z]?(?![a-z\d]))?+"
    rf"(?:-(?!(?:{_NO_TAIL})(?![a-z]))[a-z\d]++(?:\.\d++)*+"
    rf"|[- ](?:{_TIERS}|\d{{1,3}}b)(?![a-z\d]))*+"
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|\Z)|[。！？\n]")
_WORD_END = r"(?:(?<=[^a-zа-яё])|(?![a-zа-яё]))"
_MARKS = "\u0300-\u036f\u3099\u309a"
_CLUSTER = re.compile(f".[{_MARKS}]{{0,8}}", re.DOTALL)
_HIDDEN = re.compile(f"[{INVISIBLE}]")
_PLAIN_DASHES = str.maketrans("‐‑−", "---")
_GAP = r"[\s\"“«「(*_—–-]*+"


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """One family of models; the fields are patterns, explained in `masking.toml`."""

    key: str
    ids: str
    weak_ids: str = ""
    owners: str = ""
    names: str = ""
    words: str = ""
    is_tuned: bool = False


class Introduction(Struct, frozen=True, forbid_unknown_fields=True):
    """The phrases of one language by which a text names its author."""

    openers: str
    fillers: str
    not_after: str
    closers: str


class Mention(NamedTuple):
    """A name in a folded text, half-open, with the number of its sentence; `is_sure` if it cannot
    mean anything else."""

    start: int
    end: int
    family: str
    is_sure: bool
    sentence: int


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("masking.toml").read_text("utf-8"))


@cache
def families() -> Sequence[Family]:
    """Return all known families."""
    return convert(_table()["families"], list[Family])


@lru_cache(maxsize=4096)
def family(name: str) -> str | None:
    """Return the family of a judge's or candidate's model name; None if it does not tell."""
    name = unicodedata.normalize("NFKC", name).lower().strip()
    provider, *rest = parts = re.split("[/:]", EMBEDDED if name == "embedded" else name)
    if provider in _NO_MODEL:
        return None
    names = rest if rest and provider in _ANY_MODEL else parts
    is_model = bool(rest) and provider in _MODEL_NAMES
    found = (_family_of(part, name, is_model=is_model) for part in reversed(names))
    return next(filter(None, found), None)


def _family_of(part: str, name: str, *, is_model: bool) -> str | None:
    """Return the base named last in a part of a name, else the fine-tune named last."""
    found = [
        (not each.is_tuned, match.start(), each.key)
        for each, sure, weak, owners in _id_patterns()
        for match in (
            *sure.finditer(part),
            *(weak.finditer(part) if is_model or owners.search(name) else ()),
        )
    ]
    return max(found)[2] if found else None


@cache
def _id_patterns() -> list[tuple[Family, re.Pattern[str], re.Pattern[str], re.Pattern[str]]]:
    return [
        (each, _whole_word(each.ids), _whole_word(each.weak_ids), _whole_word(each.owners))
        for each in families()
    ]


def _whole_word(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that stands between other characters than letters; nothing if empty."""
    return re.compile(rf"(?<![a-zа-яё])(?:{pattern.replace('#', _SIZE) or '(?!)'})(?![a-zа-яё])")


def mask_names(text: str, *, topic: str = "") -> str:
    """Replace the names of models and of their makers by MASK, except families in the topic."""
    if not any(_find_mentions(_fold(text))):
        return text
    folded, spans = _fold_with_spans(text)
    mentions = list(_find_mentions(folded))
    kept = {mention.family for mention in _find_mentions(_fold(topic))}
    authors = _find_author_sentences(folded, mentions)
    # A word that may mean something else is a name if its sentence has a sure name, or another
    # word, of the same family.
    spellings: dict[tuple[int, str], set[str]] = {}
    for mention in mentions:
        found = spellings.setdefault((mention.sentence, mention.family), set())
        found |= {folded[mention.start : mention.end], *(("",) if mention.is_sure else ())}
    pieces, at = list[str](), 0
    for mention in mentions:
        is_name = len(spellings[mention.sentence, mention.family]) > 1
        if mention.family in kept or not (is_name or mention.sentence in authors):
            continue
        start, end = spans[mention.start][0], spans[mention.end - 1][1]
        pieces += [text[at:start], MASK]
        at = end
    return "".join([*pieces, text[at:]])


def names_its_author(text: str) -> bool:
    """Return True if the text introduces itself as a model, or as made by the maker of one."""
    folded = _fold(text)
    return bool(_find_author_sentences(folded, list(_find_mentions(folded))))


def _find_author_sentences(folded: str, mentions: Sequence[Mention]) -> set[int]:
    """Return the sentences in which a text says who wrote it."""
    if not mentions:
        return set()
    ends = {match.end() for match in _opening().finditer(folded)}
    not_after, closer = _after("not_after"), _after("closers")
    return {
        mention.sentence
        for mention in mentions
        if (mention.start in ends and not not_after.match(folded, mention.end))
        or closer.match(folded, mention.end)
    }


def _fold(text: str) -> str:
    """Return the text in NFKC and lower case without hidden characters."""
    plain = unicodedata.normalize("NFKC", _HIDDEN.sub("", text))
    return plain.lower().translate(_PLAIN_DASHES)


def _fold_with_spans(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the folded text, and the span of the text that each of its characters is from."""
    folded: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _CLUSTER.finditer(text):
        plain = _fold(match[0])
        folded.append(plain)
        spans += [match.span()] * len(plain)
    return "".join(folded), spans


def _find_mentions(folded: str) -> Iterator[Mention]:
    at, ends = 0, None
    while beginning := _beginning().search(folded, at):
        match = _mention().match(folded, beginning.start())
        at = beginning.start() + 1
        if match:
            if ends is None:
                ends = [end.start() for end in _SENTENCE_END.finditer(folded)]
            kind, _, index = str(match.lastgroup).partition("_")
            key, sentence = families()[int(index)].key, bisect_left(ends, match.start())
            yield Mention(*match.span(), key, kind == "name", sentence)
            at = match.end()


@cache
def _beginning() -> re.Pattern[str]:
    """The first letters of all names: a flat list is found many times faster than groups. A name
    is free of letters and digits; a Chinese or Japanese one needs no room."""
    patterns = [pattern for each in families() for pattern in (each.names, each.words)]
    words = [_NESTED.sub("", _NESTED.sub("", pattern)).split("|") for pattern in patterns]
    stems = sorted({stem for group in words for word in group for stem in _STEM.findall(word)})
    latin = _alternatives(stem for stem in stems if stem < "\u3041")
    dense = _alternatives(stem for stem in stems if stem >= "\u3041")
    return re.compile(rf"(?<![{_LETTER}]){latin}|{dense}")


def _alternatives(stems: Iterable[str]) -> str:
    """Return a pattern of any of the stems, tried only where the first letter of one stands."""
    stems = list(stems)
    letters = "".join(sorted({stem[0] for stem in stems}))
    return f"(?=[{letters}])(?:{'|'.join(stems)})"


_NESTED = re.compile(r"\((?:[^()]|\([^()]*\))*\)[?*]?")
_STEM = re.compile(r"^\w(?:(?:\w|[ -]|\[[^]]*\]|\\.)(?![?*{]))*")


@cache
def _mention() -> re.Pattern[str]:
    after = rf"(?:(?<=[^{_LETTER}])|(?![{_LETTER}]))"
    groups = [
        rf"(?P<name_{index}>(?:{each.names.replace('#', _VERSION)}){_TAIL}{after})"
        for index, each in enumerate(families())
        if each.names
    ]
    groups += [
        rf"(?P<word_{index}>(?:{each.words}){after})"
        for index, each in enumerate(families())
        if each.words
    ]
    return re.compile("|".join(groups))


@cache
def _introductions() -> list[Introduction]:
    return list(convert(_table()["introductions"], dict[str, Introduction]).values())


@cache
def _opening() -> re.Pattern[str]:
    """An opener and its fillers, up to the place where a name may stand."""
    forms = [
        rf"(?:{each.openers})(?:{_GAP}(?:{each.fillers}){_WORD_END})*+{_GAP}"
        for each in _introductions()
    ]
    return re.compile("|".join(forms))


@cache
def _after(field: str) -> re.Pattern[str]:
    return re.compile("|".join(getattr(each, field) for each in _introductions()))
