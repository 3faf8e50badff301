"""AlpacaEval: `annotations.json`, an object a comparison of output_1 (the baseline) and output_2.

`preference` runs from 1 (the baseline is better) to 2; 1.5 and, in older files, 0 are draws; null
is a judgment that failed. The tool shuffles the orders itself and writes the verdict turned back,
so that every row stands in one order and nothing can be said about positions.

`index` is the place of an instruction among those of the file, by which the tool joins difficulties
to instructions; a table that keeps it may leave out the texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.data.layouts.rows import (
    ORDER_UNKNOWN,
    JudgmentFile,
    TidyRow,
    begin,
    missing,
    non_null,
    require,
    short_hash,
    text_of,
)

_NEEDED = ("generator_1", "generator_2", "preference")


def read(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the comparisons of a file; a unit is an instruction, known by a hash of its text, or by
    its index where there is no text."""
    places: dict[str, int] = {}
    for row in file.table():
        require(row, _NEEDED, "alpacaeval")
        comparison = row.value
        instruction = text_of(comparison.get("instruction"))
        index = text_of(comparison.get("index"))
        if not (instruction or index):
            raise missing("instruction", comparison, row.where, "alpacaeval")
        unit = short_hash(instruction) if instruction else index
        value = non_null(
            unit=unit,
            index=index or places.setdefault(unit, len(places)),
            judge=comparison.get("annotator"),
            first=comparison["generator_1"],
            second=comparison["generator_2"],
            preference=_from_0_to_1(comparison["preference"]),
            first_length=_length(comparison, "output_1", "first_length"),
            second_length=_length(comparison, "output_2", "second_length"),
            dataset=comparison.get("dataset"),
            instruction=begin(instruction) or None,
        )
        yield TidyRow("votes", value, row.where, ORDER_UNKNOWN)


def _from_0_to_1(value: Any) -> Any:
    """Return how far output_2 is preferred; what is no such number stays, to be told as it is."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return value
    if math.isnan(number):  # from a CSV file
        return None
    return 0.5 if number == 0 else number - 1 if 1 <= number <= 2 else text_of(value) + " of 1 to 2"


def _length(comparison: Mapping[str, Any], output: str, length: str) -> Any:
    """Return the length of the text of an output, else what a column says."""
    text = comparison.get(output)
    return len(text) if isinstance(text, str) else comparison.get(length)
