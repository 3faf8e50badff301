"""Which family a model's name belongs to, and where a text names a model or says which it is.

A name that holds several (`DeepSeek-R1-Distill-Qwen-7B`, `Llama-3.1-Nemotron-70B`) belongs to the
weights it was made from: a base beats a fine-tune, and of several bases the last one named counts.

Texts are searched as NFKC in lower case without hidden characters, and altered only where a name
stands. Every pattern runs forward with possessive or bounded repeats: the time is linear.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain, starmap
from operator import attrgetter
from typing import Literal, NamedTuple, cast

from msgspec import Struct

from evenhand.kinds.disguise import introductions
from evenhand.kinds.disguise.family_table import FAMILIES
from evenhand.kinds.shared.scan import chunks, matches, search
from evenhand.regexp import regexp
from evenhand.unseen import IN_WORDS

MASK = "[model]"
EMBEDDED = "qwen2.5-coder-1.5b"
"""The model behind the plain judge name `embedded`."""

# Under a megabyte for ordinary texts, 25 for texts of nothing but names.
TEXTS_KEPT = 64
LONGEST_KEPT = 8_000

Kind = Literal["names", "makers", "bare", "words", "firms"]
KINDS: tuple[Kind, ...] = ("names", "makers", "bare", "words", "firms")

_NO_MODEL = frozenset({"human", "replay", "python"})
_ANY_MODEL = frozenset({"openai", "azure", "ollama", "openrouter", "embedded"})
# What these are asked for is always a model's own name.
_MODELS_OWN = frozenset({"ollama", "openrouter", "embedded"})


@lru_cache(maxsize=4096)
def family(name: str) -> str | None:
    """The family of a judge's or a candidate's model name; None where the name does not tell."""
    low = unicodedata.normalize("NFKC", name).lower().strip()
    provider, *rest = parts = re.split("[/:]", EMBEDDED if low == "embedded" else low)
    if provider in _NO_MODEL:
        return None
    # What these serve is anyone's model, so their name says nothing about it.
    names = rest if rest and provider in _ANY_MODEL else parts
    is_model = bool(rest) and provider in _MODELS_OWN
    families = (_family_of(part, low, is_model=is_model) for part in reversed(names))
    return next(filter(None, families), None)


def _family_of(part: str, name: str, *, is_model: bool) -> str | None:
    """The base named last, else the fine-tune named last. A word that may be anything else counts
    in a model's own name, or where the whole name has one of its owners too."""
    places = [
        (not each.is_tuned, place, each.key)
        for each in FAMILIES
        for words in (each.ids, each.id_words)
        for place in _places(words, part)
        if words is each.ids or is_model or _stands(each.owners, name)
    ]
    return max(places)[2] if places else None


def _places(words: str, part: str) -> Iterator[int]:
    """Where one of some words stands whole. Most stand nowhere: of those no pattern is made."""
    if words and any(stem in part for stem in _stems(words)):
        yield from (match.start() for match in _whole(words).finditer(part))


def _stands(words: str, name: str) -> bool:
    return next(_places(words, name), None) is not None


@cache
def _whole(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-zа-яё])(?:{words})(?![a-zа-яё])")


@cache
def _stems(words: str) -> tuple[str, ...]:
    """The letters that each of some words begins with, as far as they are certain."""
    return tuple(re.split(r"[\W\d_]|.(?=[?*{])", word)[0] for word in _alternatives(words))


def masked(text: str, *, but: str = "") -> str:
    """The text with the names of models, and of who made them, replaced by MASK.

    Whatever family `but` (the topic) names is what is talked about, and stays.
    """
    topic = _naming(but).spoken_of()
    # What the first pass masks may show the second that a firm stands for the maker of a model.
    return _masked_once(_masked_once(text, topic), topic)


def _masked_once(text: str, topic: frozenset[str]) -> str:
    naming = _naming(text)
    pieces, at = [], 0
    for mention in naming.mentions:
        is_topic = mention.family in topic or mention.text in topic
        if is_topic or not naming.is_given(mention):
            continue
        start, end = naming.original(mention)
        pieces += [text[at:start], MASK]
        at = end
    return "".join([*pieces, text[at:]])


def gives_itself_away(text: str) -> bool:
    """Whether the text says which model, or whose, its author is."""
    if text.isascii() and not introductions.may_stand_in(text.lower()):
        return False
    naming = _naming(text)
    return any(map(naming.is_self, naming.mentions))


class _Mention(Struct, frozen=True):
    """A name in a folded text, half-open."""

    start: int
    end: int
    text: str
    kind: Kind
    family: str


# A name stands free of letters and digits; Chinese and Japanese names need no room.
_LETTER = r"a-z\d_а-яё"
_AFTER = rf"(?:(?<=[^{_LETTER}])|(?![{_LETTER}]))"
_TIERS = r"opus|sonnet|haiku|pro|ultra|nano|flash|turbo|mini|instruct|preview"
_NO_TAIL = r"based|like|style|powered|generated|level|class|driven|written|assisted|compatible|as"
_TAIL = (
    r"(?:[- ]?v?\d{1,2}(?:\.\d{1,2})?[a-z]?(?![a-z\d]))?+"
    rf"(?:-(?!(?:{_NO_TAIL})(?![a-z]))[a-z\d]++(?:\.\d++)*+"
    rf"|[- ](?:{_TIERS}|\d{{1,3}}b)(?![a-z\d]))*+"
)


def _patterns() -> dict[str, str]:
    """Every pattern by kind and place: all families of one kind before all of the next."""
    return {
        f"{kind}_{place}": cast("str", getattr(each, kind))
        for kind in KINDS
        for place, each in enumerate(FAMILIES)
        if getattr(each, kind)
    }


def _group(name: str, pattern: str) -> str:
    tail = "" if name.startswith(("makers", "firms")) else _TAIL
    return rf"(?P<{name}>(?:{pattern}){tail}{_AFTER})"


def _alternatives(pattern: str) -> Iterator[str]:
    """The parts of a pattern between the bars that stand in no group."""
    depth, start = 0, 0
    for at, char in enumerate(pattern):
        depth += (char == "(") - (char == ")")
        if char == "|" and not depth:
            yield pattern[start:at]
            start = at + 1
    yield pattern[start:]


class _Words(NamedTuple):
    """The beginnings of names, as patterns: of those with room before them, and of others."""

    spaced: str
    dense: Sequence[str]


@cache
def _words() -> _Words:
    """A flat list of words is found many times faster than groups."""
    spaced: dict[str, list[str]] = {}
    dense: list[str] = []
    for word in chain.from_iterable(map(_alternatives, _patterns().values())):
        if re.match(f"[{_LETTER}]", next(char for char in word if char.isalpha())):
            is_sure = word[0].isalpha() and word[1:2] not in ("?", "{")
            spaced.setdefault(word[0] if is_sure else "", []).append(word[1:] if is_sure else word)
        else:
            dense.append(word)
    by_letter = "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in spaced.items())
    return _Words(by_letter, dense)


@cache
def _candidate() -> re.Pattern[str]:
    """Where a name may stand: one with room before it, where a letter does; a Chinese or Japanese
    one, where its first characters do. So most of a text is passed over at once; `_mention` then
    says whose it is."""
    spaced, dense = _words()
    firsts = "".join(sorted(set(re.findall(r"[\u3041-\u9fff]", "".join(dense)))))
    free = f"(?<![{_LETTER}])(?=[{_LETTER}])(?:{spaced})"
    return re.compile(f"{free}|(?=[{firsts}])(?:{'|'.join(dense)})")


@cache
def _ascii_candidate() -> re.Pattern[str]:
    """The same in a text of ASCII alone, with the room before it: a pattern that begins with one
    character is looked for only where such a character stands."""
    return re.compile(f"[^{_LETTER}](?:{_words().spaced})")


@cache
def _mention() -> re.Pattern[str]:
    return re.compile("|".join(starmap(_group, _patterns().items())))


_HIDDEN = regexp(f"[{IN_WORDS}]")
_MARKS = "\u0300-\u034e\u0350-\u036f\u3099\u309a"
_CLUSTER = regexp(f"[^{_MARKS}][{_MARKS}]{{0,8}}|.", re.DOTALL)
_HIDDEN_ALONE = regexp(f"[{IN_WORDS}](?![{_MARKS}])")
# All but what NFKC leaves as it is, or the table below turns into the same, one for one.
_ODD = regexp(
    r"[^\x00-\x7f\u0400-\u045f\u3001-\u3011\u3041-\u3096\u30a1-\u30fc\u4e00-\u9fff"
    "“”‘’«»—–‐‑−，：；！？（）]+"
)
_PLAINER = str.maketrans("‐‑−’，：；！？（）", "---',:;!?()")


class _Naming:
    """A text folded for searching, the names in it, and what is said about them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded, self.odd, self.low = text, list[_Odd](), text.lower()
        if not text.isascii():
            self.folded, self.odd = _folded(text)
            parts = (self.folded[start:end] for start, end in chunks(self.folded))
            self.low = "".join(_lower(part).translate(_PLAINER) for part in parts)
        self.mentions = tuple(self._find())

    def _find(self) -> Iterator[_Mention]:
        pattern, text = _candidate(), self.low
        if text.isascii():
            # With room before its first word, a name begins where its room stands in the other.
            pattern, text = _ascii_candidate(), f" {text}"
        at = 0
        while candidate := search(pattern, text, at):
            at = candidate.start() + 1
            if mention := _mention().match(self.low, candidate.start()):
                kind, _, place = cast("str", mention.lastgroup).partition("_")
                key = FAMILIES[int(place)].key
                yield _Mention(*mention.span(), mention[0], cast("Kind", kind), key)
                at = mention.end()

    def original(self, mention: _Mention) -> tuple[int, int]:
        """Where a name stands in the text as it was."""
        return self._letter(mention.start)[0], self._letter(mention.end - 1)[1]

    def _letter(self, at: int) -> tuple[int, int]:
        """Where a letter of the folded text stands in the text as it was."""
        place = bisect_right(self.odd, at, key=attrgetter("at")) - 1
        if place < 0:
            return at, at + 1
        odd = self.odd[place]
        if at >= odd.to:
            return at - odd.to + odd.end, at - odd.to + odd.end + 1
        start, end = _letters(self.text[odd.start : odd.end])[1][at - odd.at]
        return odd.start + start, odd.start + end

    def spoken_of(self) -> frozenset[str]:
        """The families named, and every word that could be a name."""
        sure = {each.family for each in self.mentions if each.kind in ("names", "makers", "bare")}
        return frozenset(sure | {each.text for each in self.mentions})

    def is_given(self, mention: _Mention) -> bool:
        """Whether a name stands for a model, or for who made one."""
        if mention.kind == "names" or self.is_self(mention) or mention in self._beside:
            return True
        if mention.kind not in ("makers", "firms") or not self._is_maker(mention):
            return False
        return mention.kind == "makers" or self._sentence(mention) in self._about_models

    def is_self(self, mention: _Mention) -> bool:
        """Whether the text introduces itself by this name, or as made by this maker."""
        if mention.kind == "bare" and self._is_person(mention):
            return False
        form, run = self._introduced.get(mention.start, ("", ""))
        if mention.kind == "words":
            return introductions.is_called(self.low, mention.end, form, run)
        if mention.kind == "bare" and introductions.ARTICLE.search(run):  # a Gemini, by the stars
            return False
        if mention.kind in ("names", "bare"):
            return introductions.is_name(self.low, mention.start, mention.end, form, run)
        is_self = introductions.is_maker(self.low, mention.start, mention.end, form, run)
        return is_self and not (form == "as" and self._is_about_next(mention))

    def _is_person(self, mention: _Mention) -> bool:
        """Claude Monet, Алиса Селезнёва."""
        return introductions.SURNAME.match(self.folded, mention.end) is not None

    def _is_about_next(self, mention: _Mention) -> bool:
        """`As a model made by OpenAI, GPT-4 can ...`"""
        following = self._next.get(mention)
        if following is None or following.kind not in ("names", "bare"):
            return False
        between = self.low[mention.end : following.start]
        return introductions.BEFORE_SUBJECT.fullmatch(between) is not None

    def _is_maker(self, mention: _Mention) -> bool:
        is_by = mention.start in self._made_by
        return is_by or introductions.MAKES.match(self.low, mention.end) is not None

    @cached_property
    def _next(self) -> dict[_Mention, _Mention]:
        return dict(zip(self.mentions, self.mentions[1:], strict=False))

    @cached_property
    def _introduced(self) -> dict[int, tuple[str, str]]:
        """Where an introduction ends: its form, and its words."""
        forms = matches(introductions.INTRODUCTION, self.low)
        return {each.end(): (cast("str", each.lastgroup), each[0]) for each in forms}

    @cached_property
    def _made_by(self) -> frozenset[int]:
        return frozenset(each.end() for each in matches(introductions.MADE_BY, self.low))

    @cached_property
    def _beside(self) -> frozenset[_Mention]:
        """Makers and names of one family that stand beside each other."""
        neighbours: set[_Mention] = set()
        for mention, following in self._next.items():
            firms = [each.kind in ("makers", "firms") for each in (mention, following)]
            gap = self.low[mention.end : min(following.start, mention.end + 16)]
            joint = introductions.OWNS if firms[0] else introductions.OWNED
            is_near = following.start - mention.end < 16 and mention.family == following.family
            if is_near and firms[0] != firms[1] and joint.fullmatch(gap):
                neighbours |= {mention, following}
        return frozenset(neighbours)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return tuple(each.start() for each in matches(introductions.SENTENCE_END, self.low))

    def _sentence(self, mention: _Mention) -> int:
        return bisect_left(self._ends, mention.start)

    @cached_property
    def _about_models(self) -> frozenset[int]:
        """The sentences that speak of a model."""
        models = matches(introductions.MODEL, self.low)
        return frozenset(bisect_left(self._ends, each.start()) for each in models)


def _naming(text: str) -> _Naming:
    """Kept for a while where the text is short: other pairs and judges soon bring it again."""
    return _kept(text) if len(text) <= LONGEST_KEPT else _Naming(text)


_kept = lru_cache(maxsize=TEXTS_KEPT)(_Naming)


class _Odd(NamedTuple):
    """A stretch that folding may alter: where it stands folded, and in the text as it was."""

    at: int
    to: int
    start: int
    end: int


def _folded(text: str) -> tuple[str, list[_Odd]]:
    """NFKC letter by letter without hidden characters; most of a text is that already."""
    pieces: list[str] = []
    odd: list[_Odd] = []
    at = done = 0
    for stretch in matches(_ODD, text):
        start = max(stretch.start() - 1, 0)  # the letter that a mark may stand on
        folded = _fold(text[start : stretch.end()])
        at += start - done
        odd.append(_Odd(at, at + len(folded), start, stretch.end()))
        pieces += [text[done:start], folded]
        at, done = odd[-1].to, stretch.end()
    return "".join([*pieces, text[done:]]) if odd else text, odd


def _fold(stretch: str) -> str:
    # A part of a normal text is normal: then only hidden characters are to be left out.
    if unicodedata.is_normalized("NFKC", stretch):
        return _HIDDEN_ALONE.sub("", stretch)
    return _letters(stretch)[0]


def _letters(text: str) -> tuple[str, list[tuple[int, int]]]:
    """NFKC letter by letter without hidden characters, and where each letter came from."""
    letters: list[str] = []
    spans: list[tuple[int, int]] = []
    for cluster in _CLUSTER.finditer(text):
        if not _HIDDEN.fullmatch(cluster[0]):
            folded = unicodedata.normalize("NFKC", cluster[0])
            letters.append(folded)
            spans += [cluster.span()] * len(folded)
    return "".join(letters), spans


def _lower(text: str) -> str:
    """Lower case, as long as the text was."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
