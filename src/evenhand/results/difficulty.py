"""Files that say how hard instructions are, and rows that steady win rates at equal lengths."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.data.read import Row, rows
from evenhand.errors import DataError, quoted
from evenhand.stats.ranking.length import Anchored

UNIT = ("unit", "index", "question_id")
DIFFICULTY = ("difficulty", "instruction_difficulty")
LENGTH = ("length", "std_delta_len")


def read_difficulties(path: Path) -> dict[str, float]:
    """The difficulty of each unit; of a unit that is there twice the first."""
    difficulties: dict[str, float] = {}
    for row in rows(path):
        difficulties.setdefault(str(_cell(row, UNIT)), _number(row, DIFFICULTY))
    return difficulties


def read_anchors(path: Path) -> Anchored:
    """Further rows, each with a preference, a standardised difference of lengths, and a
    difficulty."""
    table = [
        (_number(row, ("preference",)), _number(row, LENGTH), _number(row, DIFFICULTY))
        for row in rows(path)
    ]
    preference, length, difficulty = np.array(table, np.float64).reshape(-1, 3).T
    return Anchored(preference=preference, length=length, difficulty=difficulty)


def _cell(row: Row, names: tuple[str, ...]) -> Any:
    for name in names:
        if row.value.get(name) not in (None, ""):
            return row.value[name]
    listed = " or ".join(map(quoted, names))
    there = ", ".join(map(quoted, row.value))
    raise DataError(f"{row.where}: there is no {listed}", advice=f"There are: {there}.")


def _number(row: Row, names: tuple[str, ...]) -> float:
    cell = _cell(row, names)
    try:
        number = float(cell)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number):
        raise DataError(f"{row.where}: {quoted(str(cell))} is no number for {quoted(names[0])}")
    return number
