"""The filters of the units of a report, and the ways from a figure to its units."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

from evenhand.report.html.marks import Where
from evenhand.report.model import ListedUnit
from evenhand.text import visible
from evenhand.words import Words

CHOICES_MOST = 200
_CODES = ("reasons", "flags", "tags")
_GLOSSED = {"passed": "pass", "verdicts": "verdict", "confidence": "confidence"}
_EXPLAINED = {"reasons": "reason", "tags": "tag"}


class Choice(NamedTuple):
    """A value of a filter; units have its number."""

    number: int
    value: str
    text: str


class Lead(NamedTuple):
    """A way to units or questions: an address, what the script of a report filters by there, and
    how many are found, where that is known."""

    href: str
    choices: str | None = None
    """Numbers of choices."""
    only: str | None = None
    """Rows of the matrix."""
    n: int | None = None


class UnitFilters:
    """The filters of a report, each with its choices, and of each unit the choices that fit it."""

    def __init__(self, units: Sequence[ListedUnit], say: Words) -> None:
        self.filters = _filters(units, say)
        self.fitting = _fitting(units, self.filters)
        self._number = {
            (facet, visible(choice.value)): choice.number
            for facet, choices in self.filters.items()
            for choice in choices
        }
        self._places: dict[tuple[str, str], set[int]] = defaultdict(set)
        for place, unit in enumerate(units):
            for facet, values in unit.facets.items():
                for value in values:
                    self._places[facet, visible(value)].add(place)
        self._all = set(range(len(units)))

    def lead(self, where: Where) -> Lead | None:
        """Return the way to units; None if there are none, or no filters that find them alone."""
        found, numbers = self._all, list[str]()
        for facet, value in where:
            key = facet, visible(value)
            places = self._places.get(key, set[int]())
            if key in self._number:
                numbers.append(str(self._number[key]))
            elif places != self._all:
                return None
            found = found & places
        return Lead("#units", choices=" ".join(numbers), n=len(found)) if found else None


def _filters(units: Sequence[ListedUnit], say: Words) -> dict[str, list[Choice]]:
    """Return the filters for units, each with its values and how many units have them: facets with
    more than one value, or any reason, flag or tag, and at most CHOICES_MOST values."""
    filters: dict[str, list[Choice]] = {}
    number = count(1)
    for facet in units[0].facets if units else ():
        counts = Counter(value for unit in units for value in dict.fromkeys(unit.facets[facet]))
        if (1 if facet in _CODES else 2) <= len(counts) <= CHOICES_MOST:
            choices = [
                Choice(next(number), value, f"{_choice(facet, value, say)} ({n:,})")
                for value, n in counts.items()
            ]
            filters[facet] = sorted(choices, key=lambda choice: choice.text)
    return filters


def _fitting(units: Sequence[ListedUnit], filters: Mapping[str, Sequence[Choice]]) -> list[str]:
    """Return the numbers of the choices that fit each unit."""
    numbers = {
        (facet, choice.value): choice.number for facet in filters for choice in filters[facet]
    }
    return [
        " ".join(str(numbers[name, value]) for name in filters for value in unit.facets[name])
        for unit in units
    ]


def _choice(facet: str, value: str, say: Words) -> str:
    if facet in _GLOSSED:
        return say.gloss(_GLOSSED[facet], value)
    if facet == "results":
        end, _, name = value.partition(": ")
        return say(f"units.{end}", candidate=name)
    if facet == "scores":
        dimension, colon, score = value.rpartition(": ")
        return visible(f"{say.dimension(dimension)}{colon}{score}" if dimension else score)
    return f"{value} · {say.gloss(_EXPLAINED[facet], value)}" if facet in _EXPLAINED else value
