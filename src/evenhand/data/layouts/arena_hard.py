"""Arena-Hard: `model_judgment/<judge>/<model>.jsonl`, two games a question against a baseline.

In the first game A is the baseline, in the second A is the model. A label may be spelled either
way round: `A<B` says what `B>A` says. A reader that knows one spelling drops the other in silence.
`>>` is a verdict like any other, flagged `strong`: a tool that counts it three times weighs one
opinion as three.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evenhand.data.layouts.rows import (
    JudgmentFile,
    TidyRow,
    list_of,
    missing,
    non_null,
    object_of,
    require,
    text_of,
)

BASELINE = "baseline"
"""The name of the baseline where a file gives none."""
_LABEL = re.compile(r"\s*\[*([AB])\s*(>{1,2}|<{1,2}|=)\s*([AB])\]*\s*")


def read(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the games of a file."""
    for row in file.table():
        require(row, ("model", "games"), "arena-hard")
        judgment = row.value
        unit = judgment.get("question_id", judgment.get("uid"))
        if unit is None:
            raise missing("question_id", judgment, row.where, "arena-hard")
        about = non_null(unit=unit, judge=judgment.get("judge"), category=judgment.get("category"))
        candidates = [text_of(judgment.get("baseline")) or BASELINE, text_of(judgment["model"])]
        for number, game in enumerate(list_of(judgment["games"]) or [None]):
            first, second = candidates if number % 2 == 0 else candidates[::-1]
            label = object_of(game).get("score")
            winner, flag = verdict(label)
            value = about | {"first": first, "second": second} | non_null(winner=winner)
            yield TidyRow("votes", value, row.where, flag)


def verdict(label: Any) -> tuple[Any, str]:
    """Return the winner that a label names, and a flag; a label that is none stays as it is."""
    match = _LABEL.fullmatch(text_of(label))
    if match is None or match[1] == match[3]:
        return label, ""
    if match[2] == "=":
        return "tie", ""
    better = match[1] if match[2].startswith(">") else match[3]
    return "first" if better == "A" else "second", "strong" if len(match[2]) == 2 else ""
