"""What the verdicts of a run come to, in a table for a person and in figures for `--json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.kinds.blocks import NO_BREAK, Block, Piece, Table, cells

SCORES_SHOWN = 12
"""Different scores that are counted one by one."""


class Summary(NamedTuple):
    """The verdicts of a run: blocks for a person, and figures for `--json`."""

    blocks: Sequence[Block]
    json: Mapping[str, Any] = {}


def score_table(values: Mapping[tuple[str, str], Sequence[float]]) -> Table:
    """Mean and spread of scores by (variant, dimension); variants only where there are several."""
    several = len({variant for variant, _ in values}) > 1
    head: list[Piece] = ["dimension", "n", "mean", "scores"]
    rows = [
        cells(
            [
                *([variant] if several else []),
                *(name, str(len(scores)), f"{sum(scores) / len(scores):.2f}", _spread(scores)),
            ]
        )
        for (variant, name), scores in sorted(values.items())
    ]
    right = (2, 3) if several else (1, 2)
    return Table(head=["variant", *head] if several else head, rows=rows, right=right)


def _spread(scores: Sequence[float]) -> str:
    """Return the count of each score; where there are many different ones, their range."""
    counts = Counter(scores)
    if len(counts) > SCORES_SHOWN:
        return f"{min(counts):g} to {max(counts):g}"
    return ", ".join(f"{counts[score]}{NO_BREAK}x{NO_BREAK}{score:g}" for score in sorted(counts))
