"""What a judge writes where a winner or a mark belongs, read in the words that prompts ask for.

A cell is read only where one reading is left: a side or a tie, and nothing that takes it back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from evenhand.regexp import regexp
from evenhand.unseen import IN_WORDS

DECOR = " \t\u00a0\u3000`*_"
"""What may stand around a word in a cell."""
_TICKS = regexp(f"[`*\u2705\u2714\U0001f3c6{IN_WORDS}]")
"""Marks of emphasis, the pictures that models put beside a winner, and what cannot be seen."""
_QUOTES = "\"'“”„‘’«»「」『』"
_UNQUOTED = str.maketrans("", "", _QUOTES)

# Cyrillic and Greek letters that look like the Latin ones, in lower case.
_A, _B = "[aаα]", "[bвβ]"
_TIE = (
    r"tie[ds]?|draws?|equal|even|ничья|паритет|равны|равно|равенство|одинаково|поровну"
    r"|平局?|平手|持平|打平|不分上下|引き分け|引分け?|同等|互角"
)
_TIES = rf"(?:{_TIE})(?:\s*[/,=]\s*(?:{_TIE}))?"
_BETTER = (
    r"(?:is |are )?(?:clearly |much )?better|wins?|(?:явно |намного )?(?:лучше|побеждает|сильнее)"
    r"|更好|较好|更优|占优|胜出?|(?:の)?勝ち?|(?:の方)?が(?:良い|よい|優れる|優れている|上)|優位|優勢"
)
_CALLED = (
    r"(?:candidate|answer|option|response|кандидат|ответ|вариант|тезис|候选|回答|答案|候補|案)\s*"
)
_NAMED = r"(?:(?:winner|победитель|胜者|勝者)\s*[:：]\s*)?"
_SIDE = rf"(?:{_CALLED})?(?:(?P<a>{_A})|(?P<b>{_B}))"
_WINNER = regexp(rf"{_NAMED}(?:(?P<tie>{_TIES})|{_SIDE}(?:\s*[:：-]?\s*(?:{_BETTER}))?)")
_MARK = regexp(rf"(?P<tie>{_TIES})|{_SIDE}(?:\s*\+|\s*[:：-]?\s*(?:{_BETTER}))")
_REMARK = regexp(r"(?P<head>[^()]*+)\((?P<remark>[^()]*+)\)")
# What a remark in brackets may not hold: another verdict.
_OTHERWISE = regexp(
    rf"(?<!\w)(?:{_A}|{_B})\s*\+|(?<!\w)(?:or|или|либо)(?!\w)|或|または|若しくは"
    rf"|(?<!\w)(?:{_TIE})(?!\w)"
)
# A remark of which this is all. One that says more may compare, deny, or speak of one criterion.
_SOMEWHAT = (
    r"(?:(?:slightly|a bit|a little|somewhat|clearly|much|чуть|немного|слегка|заметно|гораздо"
    r"|явно|намного)\s*|明显|稍微?|略微?|やや|少し)"
)
_PREFERENCE = regexp(
    r"(?:(?:but|no|however|нет|но|但是?|不|いや|しかし|でも)\s*[,，、:：]?\s*)?"
    rf"{_SIDE}\s*(?:is |are )?(?:の方が)?{_SOMEWHAT}?(?:{_BETTER}|良い|よい)"
    r"(?:\s*(?:here|overall|здесь|тут))?"
)


LONGEST = 300
"""No cell with a winner or a mark is longer, remark included."""


class Cell(NamedTuple):
    """A cell as it is read: the contract's own word, and whether the judge wrote another."""

    word: str
    is_mended: bool


def read_cell(text: str, allowed: Sequence[str]) -> Cell | None:
    """The one of the allowed words that a cell holds; None if it holds none, or more than one."""
    bare = text.strip(DECOR)
    if bare in allowed or len(bare) > LONGEST:
        return Cell(bare, False) if bare in allowed else None
    plain = unicodedata.normalize("NFKC", _TICKS.sub("", bare)).casefold().strip().rstrip(".。!")
    remarked = _REMARK.fullmatch(plain)
    head = (remarked["head"] if remarked else plain).strip(_QUOTES + DECOR)
    reading = (_MARK if "A+" in allowed else _WINNER).fullmatch(" ".join(head.split()))
    if reading is None:
        return None
    word = _word(reading, allowed)
    if remarked and not _is_harmless(remarked["remark"], word):
        return None
    return Cell(word, True) if word in allowed else None


def is_tie(text: str) -> bool:
    """Whether a text is a word for a tie, in one of the four languages."""
    return re.fullmatch(_TIES, " ".join(text.casefold().split())) is not None


def _word(reading: re.Match[str], allowed: Sequence[str]) -> str:
    if reading["tie"]:
        return "tie"
    return ("A" if reading["a"] else "B") + ("+" if "A+" in allowed else "")


def _is_harmless(remark: str, word: str) -> bool:
    """Whether a remark says nothing else than its cell; a tie may be said twice, and who is
    better."""
    bare = " ".join(remark.translate(_UNQUOTED).split()).rstrip(".。!")
    if word == "tie" and re.fullmatch(_TIE, bare):
        return True
    if preference := _PREFERENCE.fullmatch(bare):
        return word.startswith("A" if preference["a"] else "B")
    return _OTHERWISE.search(remark) is None
