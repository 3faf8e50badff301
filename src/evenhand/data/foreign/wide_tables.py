"""Tables with a column per judge or per dimension, known by themselves where that is plain.

Plain is a table without a column for what was said, in which at least two others hold nothing but
scores on one scale, or nothing but words for who won. Which order a column stands for is never
guessed: nobody can see whether verdicts were turned back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from evenhand.data.foreign.rows import table
from evenhand.data.foreign.shaping import SAID, Shaping, Wide
from evenhand.data.foreign.spellings import spelled_side
from evenhand.data.foreign.tidy import SCORE_COLUMNS, VOTE_COLUMNS, text_of
from evenhand.data.recognise import fold as folded

ROWS_SEEN = 200
"""Rows by which a table is known."""
MOST = 10.0
"""The highest score of a scale that is plainly one of scores."""
LEAST = -1.0
"""What stands for a score that could not be read."""
_OTHERS = (
    frozenset(
        {
            "id",
            "idx",
            "index",
            "i",
            "n",
            "no",
            "number",
            "row",
            "turn",
            "seed",
            "rank",
            "repeat",
            "run",
        }
    )
    | frozenset({"take", "round", "epoch", "fold", "position", "year", "level", "version", "page"})
    | {"p"}
)
"""What a column of numbers is called, at its end, that are no scores."""
_MEASURES = (
    *("length", "len", "tokens", "count", "time", "latency", "seconds", "cost", "price", "weight"),
    *("temperature", "confidence", "prob", "probability", "age", "difficulty"),
)
"""What a column of numbers is called, anywhere in its name, that are no scores."""


def wide_of(
    path: Path, kind: str, shaping: Shaping, *, has_judge: bool, named: Collection[str] = ()
) -> Wide | None:
    """The columns of a table that plainly are several judges, or dimensions where it is known who
    judged; None where nothing is plain. Those `named` are something else."""
    said = "winner" if kind == "votes" else "score"
    seen = [row.value for row in islice(table(path, shaping, said), ROWS_SEEN)]
    names = seen[0].keys()
    if SAID & names or any(row.keys() != names for row in seen):
        return None
    is_judged = has_judge or "judge" in names
    free = [name for name in names if name not in named]
    if kind == "votes":
        columns = [name for name in free if name not in VOTE_COLUMNS and _are_winners(name, seen)]
        field = "" if is_judged else "judge"
    else:
        columns = [name for name in free if name not in SCORE_COLUMNS and _are_scores(name, seen)]
        field = "" if "dimension" in names else "dimension" if is_judged else "judge"
    return Wide(field, tuple(columns), is_stated=False) if field and len(columns) > 1 else None


def _are_winners(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a column holds nothing but words for who won; numbers may be anything."""
    cells = [(text_of(row[name]), row) for row in rows]
    filled = [(text, row) for text, row in cells if text]
    return bool(filled) and all(
        not text.isdecimal()
        and (text in (text_of(row.get("first")), text_of(row.get("second"))) or _is_word(text))
        for text, row in filled
    )


def _is_word(text: str) -> bool:
    return text.lower() in ("first", "second", "tie") or bool(spelled_side(text))


def _are_scores(name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a column holds nothing but numbers of a scale of scores, and is not called like
    something else that is counted."""
    words = folded(name).split("_")
    if words[-1] in _OTHERS or any(word in _MEASURES for word in words):
        return False
    filled = [row[name] for row in rows if text_of(row[name])]
    numbers = [number for number in map(_number, filled) if number is not None]
    is_scale = all(LEAST <= number <= MOST for number in numbers)
    return bool(filled) and len(numbers) == len(filled) and is_scale


def _number(cell: object) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None
    try:
        return float(cell)
    except ValueError:
        return None
