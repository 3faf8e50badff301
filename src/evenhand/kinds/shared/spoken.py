"""Which of the four languages a judge gives its reasons in, by their script: only ever a flag.

Quotations and code do not count: they are the answer's. A reply mixes scripts where terms stay in
theirs, so that only what is nearly all in another one counts.
"""

from __future__ import annotations

import re

from evenhand.regexp import regexp

READ_CHARS = 4_000
"""A language shows at the beginning. What is longer could be written to be slow to read: a mark of
quotation that never closes is looked for up to the end, from every place where it stands."""
FEWEST_WORDS = 8.0
NEARLY_ALL = 0.85
"""The share of the words, by which a text is in a language."""
KANA_SHARE = 0.1
"""Japanese has kana in nearly every word; Chinese has none but in names."""

_QUOTED = regexp(
    r"```.*?(?:```|\Z)|`[^`\n]*`|«[^»]*+(?:»|\Z)|“[^”]*+(?:”|\Z)|„[^“”]*+(?:[“”]|\Z)"
    r"|\"[^\"\n]*\"|「[^」]*+(?:」|\Z)|『[^』]*+(?:』|\Z)|《[^》]*+(?:》|\Z)"
    r"|‘[^’\n]*’|(?<!\w)'[^'\n]*'(?!\w)|\bhttps?://\S+",
    re.DOTALL,
)
_QUOTING = (*"`\"'«“„「『《‘", "http")
"""One of these stands in every quotation."""
_LATIN = regexp(r"[A-Za-z\u00c0-\u024f]+")
_CYRILLIC = regexp(r"[\u0400-\u04ff]+")
_HAN = regexp(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = regexp(r"[\u3041-\u309f\u30a1-\u30ff]")
_CHARACTERS_A_WORD = 2.0


def spoken(text: str) -> str | None:
    """`ru`, `zh`, `ja`, or `en` for whatever is in Latin letters; None where a text is short or
    holds several. The beginning decides."""
    prose = _prose(text)
    han, kana = len(_HAN.findall(prose)), len(_KANA.findall(prose))
    words = {
        "en": float(len(_LATIN.findall(prose))),
        "ru": float(len(_CYRILLIC.findall(prose))),
        "ja" if kana > KANA_SHARE * (han + kana) else "zh": (han + kana) / _CHARACTERS_A_WORD,
    }
    most = max(words, key=lambda language: words[language])
    total = sum(words.values())
    is_clear = total >= FEWEST_WORDS and words[most] >= NEARLY_ALL * total
    return most if is_clear else None


def _prose(text: str) -> str:
    """The beginning of a text without quotations and code, which most texts have none of."""
    start = text[:READ_CHARS]
    return _QUOTED.sub(" ", start) if any(map(start.__contains__, _QUOTING)) else start


def other_language(text: str, language: str) -> str | None:
    """The language of a text that is not in the one named; None where it is, or cannot be told."""
    if not language or (language == "en" and text.isascii()):
        return None
    most = spoken(text)
    return most if most not in (None, language) else None
