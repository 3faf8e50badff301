"""The usual ways to spell who won, or a score in words: read without being told, and told about."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from evenhand.kinds.pairwise.table import read_cell
from evenhand.kinds.pairwise.verdict import WINNERS

Side = Literal["first", "second", "tie", ""]
FIRST: Side = "first"
SECOND: Side = "second"

_WORDS: dict[Side, str] = {
    "first": "a, 1, left, [[a]], a>b, a>>b, b<a, b<<a, а, первый, первая, первое, левый, левая,"
    " левое, слева, первый лучше, первый ответ, левый ответ, 左, 左边, 左侧, 左側, 第一, 第一个,"
    " 第1, 前者, 甲, 最初, 一つ目, 1つ目, 一番目",
    "second": "b, 2, right, [[b]], b>a, b>>a, a<b, a<<b, б, второй, вторая, второе, правый, правая,"
    " правое, справа, второй лучше, второй ответ, правый ответ, 右, 右边, 右侧, 右側, 第二, 第二个,"
    " 第2, 后者, 後者, 乙, 二つ目, 2つ目, 二番目",
    "tie": "c, 3, same, both good, both bad, both_bad, bothbad, tie (bothbad), tie (both bad),"
    " [[c]], a=b, b=a, =, ==, 1=2, оба хороши, оба плохи, нет разницы, 一样, 一样好, 一样差, 相同,"
    " 都好, 都不好, 同じ, 同点, どちらも良い, どちらも悪い",
}
"""Words for a tie that judges write too are those of `read_cell`."""
_NOUNS = (
    *("model", "answer", "assistant", "response", "output", "candidate", "system"),
    *("модель", "ответ", "вариант", "кандидат", "模型", "回答", "答案", "候选", "モデル", "候補"),
)
SIDES: dict[str, Side] = {
    word: side for side, words in _WORDS.items() for word in words.split(", ")
} | {
    f"{noun}{gap}{name}": side
    for noun in _NOUNS
    for gap in ("_", " ", "")
    for name, side in (("a", FIRST), ("1", FIRST), ("b", SECOND), ("2", SECOND))
}
SIDES |= {
    f"{name}{verb}{degree} better": side
    for name, side in [*SIDES.items(), ("first", FIRST), ("second", SECOND)]
    if name.isascii() and name.replace("_", "").replace(" ", "").isalnum() and side != "tie"
    for verb in ("", " is")
    for degree in ("", " much", " slightly", " significantly", " clearly")
}
"""Who won, by a text in lower case with single blanks."""
_GRADES = {
    letter + sign: 5 - place + more
    for place, letter in enumerate("abcdef")
    for sign, more in (("", 0), ("+", 0.3), ("-", -0.3))
    if not (letter == "f" and sign)
}
NUMBERS: dict[str, float] = {
    **dict.fromkeys(["true", "yes", "pass", "passed", "correct"], 1),
    **dict.fromkeys(["false", "no", "fail", "failed", "incorrect", "wrong"], 0),
    **_GRADES,
}
"""Scores by a text in lower case: grades from A, 5, to F, 0; a sign is worth 0.3."""
_SHARE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(?:%|/ ?(\d{1,9}))", re.ASCII)
_AS_PICTURE = "\ufe0f"
"""Follows a sign that is to be shown as a picture."""
_STARS = re.compile("([★⭐]{0,10})☆{0,10}")


def spelled_side(text: str) -> Side:
    """The side that a text usually means, nothing where it means none."""
    words = " ".join(unicodedata.normalize("NFKC", text).lower().split())
    return SIDES.get(words) or ("tie" if read_cell(words, WINNERS) == "tie" else "")


def spelled_score(text: str) -> float | None:
    """The score that a text usually means: that of a word or a grade, a percentage or a fraction as
    a share of 1, or how many stars it has."""
    words = _plain(text)
    if words in NUMBERS:
        return NUMBERS[words]
    if share := _SHARE.fullmatch(words):
        part, whole = float(share[1]), float(share[2] or 100)
        return part / whole if part <= whole and whole else None
    stars = _STARS.fullmatch(words) if words else None
    return len(stars[1]) if stars else None


def is_share(text: str) -> bool:
    """Whether a text is a percentage or a fraction."""
    return _SHARE.fullmatch(_plain(text)) is not None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower().replace(_AS_PICTURE, "")
