"""Axes of numbers: where a value stands, and which round numbers are written beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from math import ceil, floor, log10

from evenhand.report.html.labels import widest

_BETWEEN = 9.0
"""The pixels between two numbers on an axis."""
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` on pixels from `start` to `end`, which may lie before it."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Tick:
    """A round number of an axis, and how it is written."""

    value: float
    text: str


def padded(values: Iterable[float], start: float, end: float, padding: float) -> Scale:
    """The scale of these values, with so many pixels free before the first and after the last."""
    numbers = list(values)
    low, high = min(numbers), max(numbers)
    if low == high:
        around = abs(low) / 10 or 1.0
        return Scale(low - around, high + around, start, end)
    room = padding * (high - low) / (end - start - 2 * padding)
    return Scale(low - room, high + room, start, end)


def from_zero(most: float, start: float, end: float, *, is_whole: bool = False) -> Scale:
    """The scale from nothing to the round number that no value exceeds; where things are counted,
    to the greatest number."""
    if is_whole:
        return Scale(0.0, max(1.0, most), start, end)
    step = float(_step(most or 1.0, _MOST_TICKS - 1))
    return Scale(0.0, step * max(1, ceil(most / step - 1e-9)), start, end)


def ticks(scale: Scale, *, percent: bool = False, is_whole: bool = False) -> list[Tick]:
    """As many round numbers as have room side by side."""
    for most in range(_MOST_TICKS, 0, -1):
        marks = _marks(scale, most, percent=percent, is_whole=is_whole)
        if len(marks) < 2 or most == 1 or not _overlap(scale, marks):
            break
    return marks


def ticks_up(scale: Scale, *, percent: bool = False, most: int = _MOST_TICKS) -> list[Tick]:
    """Round numbers above each other."""
    return _marks(scale, most, percent=percent)


def _marks(scale: Scale, most: int, *, percent: bool = False, is_whole: bool = False) -> list[Tick]:
    step = _step(scale.high - scale.low, most, is_whole=is_whole)
    first = ceil(scale.low / float(step) - 1e-9)
    last = floor(scale.high / float(step) + 1e-9)
    values = [step * place for place in range(first, last + 1)]
    return [Tick(float(value), _text(value, step, percent)) for value in values]


def _step(span: float, most: int, *, is_whole: bool = False) -> Decimal:
    """The least of 1, 2, 5, 10, 20 and so on, or of their tenths, that a span holds no more often
    than `most` times."""
    power = floor(log10(span / most)) if span > 0 else 0
    steps = (Decimal(n).scaleb(power + further) for further in count() for n in (1, 2, 5))
    return next(
        step
        for step in steps
        if float(step) * most >= span * (1 - 1e-9) and (step >= 1 or not is_whole)
    )


def _text(value: Decimal, step: Decimal, percent: bool) -> str:
    if percent:
        value, step = value * 100, step * 100
    digits = max(0, -int(step.normalize().as_tuple().exponent))
    text = f"{value + 0:.{digits}f}{'%' if percent else ''}"
    return text.replace("-", "\u2212")


def _overlap(scale: Scale, marks: list[Tick]) -> bool:
    apart = abs(scale(marks[1].value) - scale(marks[0].value))
    return widest([mark.text for mark in marks]) + _BETWEEN > apart
