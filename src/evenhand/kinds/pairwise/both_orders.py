"""Whether a prompt of the user's own demands both presentation orders in one reply.

A round asks each order in a call of its own. A judge that is told to run twice would answer with
two lines of which code may take neither.
"""

from __future__ import annotations

import re

from evenhand.regexp import regexp

_RUSSIAN = (
    r"двойн\w+ (?:прогон|проход|оценк|судейств)\w*",
    r"(?:два|двух|двумя) (?:прогон|проход)\w*",
    r"(?:прогон|оцени|сравни|суди|проведи)\w*[^.]{0,60} дважды",
    r"дважды[^.]{0,60}(?:порядк|местами|прогон)\w*",
    r"(?:в )?(?:обоих|двух) порядк\w+|оба порядка",
    r"(?:поменя|перестав)\w+[^.]{0,40} (?:местами|порядок)",
    r"(?:затем|потом|ещё раз|еще раз|повтор\w+)[^.]{0,60}(?:обратн\w+|другом) порядк\w+",
)
_ENGLISH = (
    r"double[- ](?:run|pass)",
    r"both (?:presentation )?orders",
    r"(?:run|judge|compare|evaluate|grade)[^.]{0,40} twice",
    r"(?:swap|exchange|switch|reverse)[^.]{0,30}(?:order|positions?|places|candidates|answers)"
    r"[^.]{0,60}(?:again|second|repeat|re-?run|also|too)",
    r"(?:again|repeat|second (?:run|pass|time))[^.]{0,60}"
    r"(?:swapped|reversed?|other|opposite) order",
)
_CHINESE = (
    r"(?:双向|双次|两次|两遍|正反两?次?)(?:评测|评判|评审|比较|运行|判断|打分)",
    r"(?:评测|评判|评审|比较|运行|判断)(?:两次|两遍)",
    r"(?:交换|互换|对调|调换|颠倒)[^。]{0,12}(?:顺序|位置|次序)[^。]{0,30}(?:再|重新|第二|又)",
    r"(?:两种|正反)顺序",
)
_JAPANESE = (
    r"(?:二重|ダブル)(?:実行|ラン|判定|評価)",
    r"(?:両方|二通り|2通り|２通り)の(?:提示)?(?:順序|順番|順)",
    r"(?:順序|順番|提示順|位置)を(?:入れ替え|逆に|交換)[^。]{0,30}(?:もう一度|再度|二回|2回|２回|再)",
    r"(?:二回|2回|２回|二度)(?:判定|評価|比較|実行)",
)
_DEMAND = regexp(
    "|".join(f"(?:{p})" for p in (*_RUSSIAN, *_ENGLISH, *_CHINESE, *_JAPANESE)), re.IGNORECASE
)


def asks_both_orders(text: str) -> bool:
    """Whether a prompt asks one judge for both orders: a double run, in any of four languages."""
    return _DEMAND.search(" ".join(text.split())) is not None
