"""What a judge writes where a winner or a mark belongs, read in the words that prompts ask for.

A cell is read only where one reading is left: a side or a tie, and nothing that takes it back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from evenhand.regexp import regexp

_DECOR = " \t\u00a0\u3000`*_"
_TICKS = regexp("[`*\u2705\u2714\U0001f3c6\ufe0f]")
"""Marks of emphasis, and the pictures that models put beside a winner."""

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
# Chinese and Japanese put no space before a letter.
_APART = "(?<![0-9A-Za-zΑ-ωА-яЁё_])"
# What a remark in brackets may not hold: another verdict.
_OTHERWISE = regexp(
    rf"{_APART}(?:{_A}|{_B})\s*\+|(?<!\w)(?:or|или|либо)(?!\w)|或|または|若しくは"
    rf"|(?<!\w)(?:{_TIE})(?!\w)"
)
# A side that a remark calls better. Small letters are words too: the English article, and a
# conjunction and a preposition in Russian. Whom something is compared with is not called better.
_NOT_COMPARED = "".join(
    f"(?<!{word})" for word in ("比", "比 ", "比候选", "比回答", "比答案", "чем ", "than ", "nor ")
)
_REMARKED_A = rf"[AАΑα]|a(?!\s(?!is )[\w ]*better)|(?i:{_CALLED})1"
_REMARKED_B = rf"[BВΒβb]|(?i:{_CALLED})2"
_THAN = r"\s*(?:比\s*[AB]\s*|は\s*[AB]\s*より)"
_SOMEWHAT = (
    r"(?:(?:is|looks|seems|still|much|far|a bit|a little|somewhat|\w+ly"
    r"|чуть|чуть-чуть|немного|слегка|несколько|заметно|гораздо|значительно|существенно|явно|намного"
    r"|вс[её]|же|вс[её]-таки|здесь|тут)\s+|明显|显然|稍微?|略微?|其实|反而|还是"
    r"|(?:の(?:方|ほう))?が(?:やや|少し|若干|ずっと|はるかに|明らかに))"
)
_PREFERRED = regexp(
    rf"{_APART}{_NOT_COMPARED}(?:(?P<a>{_REMARKED_A})|(?P<b>{_REMARKED_B}))"
    rf"(?i:(?:{_THAN})?\s*[:：—–-]?\s*{_SOMEWHAT}{{0,3}}"
    rf"(?:{_BETTER}|のほうが(?:良い|よい)|良い|よい|優れ(?:る|ている))(?![a-zа-яё]))"
)


LONGEST = 300
"""No cell with a winner or a mark is longer, remark included."""


class Cell(NamedTuple):
    """A cell as it is read: the contract's own word, and whether the judge wrote another."""

    word: str
    is_mended: bool


def read_cell(text: str, allowed: Sequence[str]) -> Cell | None:
    """The one of the allowed words that a cell holds; None if it holds none, or more than one."""
    bare = text.strip(_DECOR)
    if bare in allowed or len(bare) > LONGEST:
        return Cell(bare, False) if bare in allowed else None
    plain = unicodedata.normalize("NFKC", _TICKS.sub("", bare)).strip().rstrip(".。!")
    remarked = _REMARK.fullmatch(plain)
    head = remarked["head"].strip(_DECOR) if remarked else plain
    reading = (_MARK if "A+" in allowed else _WINNER).fullmatch(" ".join(head.casefold().split()))
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
    """Whether a remark says nothing else than its cell; a tie may be said twice, and a side that is
    better too."""
    folded = remark.casefold()
    if word == "tie" and re.fullmatch(_TIE, folded.strip()):
        return True
    if _OTHERWISE.search(folded):
        return False
    preferred = _PREFERRED.finditer(remark)
    return all(word.startswith("A" if side["a"] else "B") for side in preferred)
