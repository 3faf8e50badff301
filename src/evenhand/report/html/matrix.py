"""Every question by every variant as a table: a shaded cell with its value in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil, isnan, nan
from typing import NamedTuple

import numpy as np

from evenhand.report.html.answer import scaled_dimension
from evenhand.stats.matrix import EVEN, FAILED, QuestionMatrix
from evenhand.stats.observations import Floats
from evenhand.words import Words

NAME_SHOWN = 20
"""Characters of the baseline's name in the head of a column of differences."""
_SHADES = ("l3", "l2", "l1", "", "w1", "w2", "w3")
Write = Callable[[float], str]


class MatrixCell(NamedTuple):
    """The text of a cell, the class of its shade, and the address of its unit; empty without."""

    text: str
    shade: str
    href: str


class MatrixRow(NamedTuple):
    """A question, whether a variant is `better` or `worse` on it or the `same`, its cells, how far
    apart they are, and whether they differ at all."""

    question: str
    way: str
    differs: bool
    cells: Sequence[MatrixCell]
    apart: Sequence[str]
    """The spread, and the loss where there is a baseline."""


class MatrixHead(NamedTuple):
    """The head of a column, and what the table is sorted by there; empty where by nothing."""

    text: str
    sort: str = ""


class MatrixTable(NamedTuple):
    """A matrix, ready to be shown."""

    about: str
    heads: Sequence[MatrixHead]
    rows: Sequence[MatrixRow]

    @property
    def ways(self) -> Counter[str]:
        """Return the number of questions by `way`."""
        return Counter(row.way for row in self.rows)


def shade(share: float, passed: float = nan) -> str:
    """Return the class that shades a value, from 0 to 1, by how far it is from the middle; one that
    passes or fails in the colour of that."""
    strength = ceil(round(abs(share - 0.5) * 6, 9))
    is_high = share > 0.5
    if not isnan(passed):
        is_high, strength = passed > 0.5, max(1, strength)
    return _SHADES[3 + (strength if is_high else -strength)]


def matrix_table(
    matrix: QuestionMatrix,
    questions: Sequence[str],
    say: Words,
    href: Callable[[int], str],
    variant: str = "",
) -> MatrixTable:
    """Return the table of a matrix; `href` is the address of a unit by its place, `variant` the
    one whose changes rows are found by."""
    write, write_gap = _writers(matrix, say)
    low, high = matrix.scale.ends

    def cell(value: float, passed: float, missing: str, unit: int) -> MatrixCell:
        texts = [] if missing else [write(value)]
        if not isnan(passed):
            texts += ("✗", "✓")[passed > 0.5], say.gloss("pass", str(passed > 0.5).lower())
        text = " ".join(texts) or _reason(missing, say)
        if missing:
            return MatrixCell(text, "no" if missing in FAILED else "na", href(unit))
        share = (value - low) / ((high - low) or 1.0)
        return MatrixCell(text, shade(share, passed), href(unit))

    gaps = _gaps(matrix, say)
    writers = [write if head.sort == "spread" else write_gap for head, _ in gaps]
    columns = (matrix.values, matrix.passed, matrix.missing, matrix.opens)
    ways, differs = matrix.ways(variant), (matrix.spread > EVEN).tolist()
    rows: list[MatrixRow] = []
    for place, question in enumerate(questions):
        cells = list(map(cell, *(column[place].tolist() for column in columns)))
        apart = [float(gap[place]) for _, gap in gaps]
        texts = [
            "–" if isnan(gap) else "0" if abs(gap) < EVEN else write(gap)
            for gap, write in zip(apart, writers, strict=True)
        ]
        rows.append(MatrixRow(question, ways[place], differs[place], cells, texts))
    heads = [MatrixHead(say("changed.question"), "order"), *map(MatrixHead, matrix.names)]
    return MatrixTable(_about(matrix, say), [*heads, *(head for head, _ in gaps)], rows)


def _reason(missing: str, say: Words) -> str:
    """Return why a cell has no value."""
    own = {"absent": "matrix.absent", "no_verdict": "changed.no_verdict"}
    return say(own[missing]) if missing in own else say.gloss("verdict", missing)


def _gaps(matrix: QuestionMatrix, say: Words) -> list[tuple[MatrixHead, Floats]]:
    """Return the columns on how far apart the others are; of two, one says all."""
    spread = MatrixHead(say("matrix.spread"), "spread"), matrix.spread
    if matrix.base is None:
        return [spread]
    if len(matrix.names) == 2:
        return [(MatrixHead(say("changed.difference"), "loss"), matrix.loss)]
    baseline = matrix.names[matrix.base]
    if len(baseline) > NAME_SHOWN:
        baseline = f"{baseline[:NAME_SHOWN]}…"
    loss = MatrixHead(say("matrix.loss", baseline=baseline), "loss")
    return [spread, (loss, matrix.loss)]


def _about(matrix: QuestionMatrix, say: Words) -> str:
    if matrix.is_duel:
        return say("matrix.about_pairs")
    dimension = scaled_dimension(matrix.measure, say, matrix.scale.ends)
    return say("matrix.about_scores", dimension=dimension)


def _writers(matrix: QuestionMatrix, say: Words) -> tuple[Write, Write]:
    """Return how values are written, and how differences: with as many digits as they need."""
    if matrix.is_duel:
        return say.percent, say.percent_change
    values = matrix.values[~np.isnan(matrix.values)]
    is_wide = matrix.scale.high - matrix.scale.low > 1
    digits = 0 if (values == values.round()).all() else 1 if is_wide else 2
    return (lambda value: say.number(value, digits)), (lambda value: say.signed(value, digits))
