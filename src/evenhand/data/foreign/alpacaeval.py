"""AlpacaEval: `annotations.json`, an object a comparison of output_1 (the baseline) and output_2.

`preference` runs from 1 (the baseline is better) to 2; 1.5 and, in older files, 0 are draws; null
is a judgment that failed. The tool shuffles the orders itself and writes the verdict turned back,
so that every row stands in one order and nothing can be said about positions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.data.foreign.rows import (
    ORDER_UNKNOWN,
    TidyRow,
    begin,
    non_null,
    require,
    short_hash,
    table,
)
from evenhand.data.foreign.shaping import Shaping
from evenhand.data.foreign.tidy import text_of

_NEEDED = ("instruction", "generator_1", "generator_2", "preference")


def read(path: Path, shaping: Shaping) -> Iterator[TidyRow]:
    """The comparisons of a file; a unit is an instruction, known by a hash of its text."""
    for row in table(path, shaping):
        require(row, _NEEDED, "alpacaeval")
        comparison = row.value
        instruction = text_of(comparison["instruction"])
        value = non_null(
            unit=short_hash(instruction),
            judge=comparison.get("annotator"),
            first=comparison["generator_1"],
            second=comparison["generator_2"],
            preference=_from_0_to_1(comparison["preference"]),
            first_length=_length(comparison.get("output_1")),
            second_length=_length(comparison.get("output_2")),
            dataset=comparison.get("dataset"),
            instruction=begin(instruction),
        )
        yield TidyRow("votes", value, row.where, ORDER_UNKNOWN)


def _from_0_to_1(value: Any) -> Any:
    """How far output_2 is preferred; what is no such number stays, to be told as it is."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return value
    if math.isnan(number):  # from a CSV file
        return None
    return 0.5 if number == 0 else number - 1 if 1 <= number <= 2 else text_of(value) + " of 1 to 2"


def _length(value: object) -> int | None:
    return len(value) if isinstance(value, str) else None
