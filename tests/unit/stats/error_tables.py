"""Tables of errors and of power, by simulation under the laws that figures are held to.

`python -m tests.unit.stats.error_tables gate` prints those that the documentation shows; the
default number of rounds takes about a minute each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np

from evenhand.stats.comparison.means import mean_difference
from evenhand.stats.decision.bounded import chance_at_most
from evenhand.stats.tables import Floats
from tests.unit.stats.laws import HARMLESS, WORSE, Law

SIZES = (20, 60, 300)
ALPHA = 0.025
MARGINS = (0.05, 0.1, 0.2)


def samples(law: Law, questions: int, rounds: int) -> Floats:
    """The same samples of a law for whatever is tried on them."""
    return law.sample(np.random.default_rng(questions), (rounds, questions))


def gate_passes(differences: Floats, margin: float) -> float:
    """How often a gate finds that the variant is not worse by more than the margin."""
    return float(np.mean(chance_at_most(differences + margin, 1 - margin) <= ALPHA))


def gate_misses(differences: Floats, margin: float) -> float:
    """How often a gate finds that the variant is worse by more than the margin."""
    return float(np.mean(chance_at_most(-differences - margin, 1 + margin) <= ALPHA))


def compare_passes(differences: Floats, margin: float) -> float:
    """How often the interval of `compare` lies above the margin."""
    questions = np.arange(differences.shape[1])
    lows = [mean_difference(row, questions, (-1.0, 1.0)).low for row in differences]
    return float(np.mean([low is not None and low >= -margin for low in lows]))


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def table(title: str, columns: list[str], rows: Iterator[list[str]]) -> None:
    """Print a table as Markdown, row by row."""
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def gate_tables(rounds: int) -> None:
    """What a gate wrongly lets pass and misses, and what it rightly lets pass."""

    def errors() -> Iterator[list[str]]:
        for name, law in WORSE.items():
            drawn = [samples(law, questions, rounds) for questions in SIZES]
            ways = (compare_passes, gate_passes, gate_misses)
            yield [name, *(percent(way(one, -law.mean)) for way in ways for one in drawn)]

    def power() -> Iterator[list[str]]:
        for name, law in HARMLESS.items():
            for margin in MARGINS:
                drawn = [samples(law, questions, rounds) for questions in SIZES]
                ways = (compare_passes, gate_passes)
                yield [
                    name,
                    f"{margin:g}",
                    *(percent(way(one, margin)) for way in ways for one in drawn),
                ]

    before, now = ([f"{name}, n = {n}" for n in SIZES] for name in ("interval of compare", "gate"))
    missed = [f"wrongly missed, n = {n}" for n in SIZES]
    table("Truth at the margin", ["law", *before, *now, *missed], errors())
    table("No difference", ["law", "margin", *before, *now], power())


TABLES: dict[str, Callable[[int], None]] = {"gate": gate_tables}


def main(names: list[str], rounds: int = 2000) -> None:
    """Print the tables of these names, or all."""
    for name in names or TABLES:
        TABLES[name](rounds)


if __name__ == "__main__":
    main(sys.argv[1:])
