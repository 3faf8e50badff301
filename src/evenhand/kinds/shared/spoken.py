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
_RUN = regexp(
    r"[A-Za-z\u00c0-\u024f]+|[\u0400-\u04ff]+|[\u3400-\u4dbf\u4e00-\u9fff]+"
    r"|[\u3041-\u309f\u30a1-\u30ff]+"
)
"""A word in Latin or Cyrillic letters, or Chinese characters or kana in a row."""
_CYRILLIC, _KANA, _HAN = "\u0400", "\u3041", "\u3400"
"""What such a run begins with at the least, in the order of the characters."""
_CHARACTERS_A_WORD = 2.0


def spoken(text: str) -> str | None:
    """`ru`, `zh`, `ja`, or `en` for whatever is in Latin letters; None where a text is short or
    holds several. The beginning decides."""
    latin = cyrillic = han = kana = 0
    for run in _RUN.findall(_prose(text)):
        if run < _CYRILLIC:
            latin += 1
        elif run < _KANA:
            cyrillic += 1
        elif run < _HAN:
            kana += len(run)
        else:
            han += len(run)
    words = {
        "en": float(latin),
        "ru": float(cyrillic),
        "ja" if kana > KANA_SHARE * (han + kana) else "zh": (han + kana) / _CHARACTERS_A_WORD,
    }
    most = max(words, key=words.__getitem__)
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
