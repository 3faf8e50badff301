"""Tables of errors and of power, by simulation under the laws that figures are held to.

`python -m tests.unit.stats.error_tables gate` prints those that the documentation shows; the
default number of rounds takes about a minute each.
"""

from __future__ import annotations

import sys

import numpy as np

from evenhand.stats.bounded import rejects
from evenhand.stats.estimate import difference
from tests.unit.stats.coverage import DIFFERENCES, simulate
from tests.unit.stats.laws import CLEAR, EQUAL, HARMLESS, WORSE
from tests.unit.stats.sequences import decisions

SIZES = (20, 60, 300)
ALPHA = 0.025
MARGINS = (0.05, 0.1, 0.2)


def samples(law, questions, rounds):
    """The same samples of a law for whatever is tried on them."""
    return law.sample(np.random.default_rng(questions), (rounds, questions))


def gate_passes(differences, margin):
    """How often a gate finds that the variant is not worse by more than the margin."""
    return float(np.mean(rejects(differences + margin, 1 - margin, ALPHA)))


def compare_passes(differences, margin):
    """How often the interval of `compare` lies above the margin."""
    questions = np.arange(differences.shape[1])
    lows = [difference(row, questions, 1.0).low for row in differences]
    return float(np.mean([low is not None and low >= -margin for low in lows]))


def percent(share):
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"


def table(title, columns, rows):
    """Print a table as Markdown, row by row."""
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def gate_tables(rounds):
    """What a gate wrongly and what it rightly lets pass."""

    def errors():
        for name, law in WORSE.items():
            drawn = [samples(law, questions, rounds) for questions in SIZES]
            ways = (compare_passes, gate_passes)
            yield [name, *(percent(way(one, -law.mean)) for way in ways for one in drawn)]

    def power():
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
    table("Truth at the margin", ["law", *before, *now], errors())
    table("No difference", ["law", "margin", *before, *now], power())


def p_values(differences):
    """Two-sided p of `compare`, of each row."""
    questions = np.arange(differences.shape[1])
    return np.array([difference(row, questions, 1.0).p for row in differences])


def best_bets(law, questions, goal=40.0, points=2000):
    """How often the best way to bet reaches the goal in so many questions, if the law is known.

    By going back from the end: from each amount of money the share that makes it likeliest. The law
    is that of 41 equal parts of a large sample, amounts are on a grid of logarithms.
    """
    drawn = np.sort(law.sample(np.random.default_rng(0), (1, 41 * 5000))[0]).reshape(41, -1)
    values, chances = np.unique(np.round(drawn.mean(axis=1), 3), return_counts=True)
    if np.unique(drawn).size < 20:
        values, chances = np.unique(drawn, return_counts=True)
    chances = chances / chances.sum()
    amounts = np.linspace(-np.log(goal) - 5, 0, points)
    likely = (amounts >= 0).astype(float)
    shares = np.concatenate([np.linspace(0, 0.9, 46), np.linspace(0.91, 0.999, 10)])
    for _ in range(questions):
        best = likely
        for share in shares:
            after = amounts[:, None] + np.log1p(share * values)
            reached = np.interp(after, amounts, likely, left=0.0, right=1.0)
            best = np.maximum(best, (reached * chances).sum(axis=1))
        likely = best
    return float(np.interp(-np.log(goal), amounts, likely))


def stopping_tables(rounds):
    """What `run --until-decided` wrongly decides, and how often and how soon it rightly does."""

    def errors():
        for name, law in EQUAL.items():
            sides = [decisions((1 + samples(law, n, rounds)) / 2, 0.05)[0] for n in SIZES]
            yield [name, *(percent(float(np.mean(side != 0))) for side in sides)]

    def power():
        for name, law in CLEAR.items():
            for questions in (30, 60, 100):
                drawn = samples(law, questions, rounds)
                sides, after = decisions((1 + drawn) / 2, 0.05)
                yield [
                    name,
                    str(questions),
                    percent(float(np.mean((p_values(drawn) <= 0.05) & (drawn.mean(axis=1) > 0)))),
                    percent(float(np.mean(sides > 0))),
                    percent(best_bets(law, questions)),
                    percent(min(1.0, ALPHA * (1 + law.mean) ** questions)),
                    f"{after.mean():.0f}",
                ]

    table("No difference", ["law", *(f"n = {n}" for n in SIZES)], errors())
    columns = ["law", "questions", "fixed test", "until decided", "best bets", "any test", "used"]
    table("A difference of 0.6 standard deviations", columns, power())


def compare_tables(rounds):
    """What `compare` wrongly decides where means are equal, and how often its interval holds the
    truth."""

    def errors():
        for name, law in EQUAL.items():
            said = list[str]()
            for questions in SIZES:
                drawn = samples(law, questions, rounds)
                wrong = drawn[p_values(drawn) <= 0.05]
                better = float((wrong.mean(axis=1) > 0).sum()) / rounds
                said += [f"{percent(better)} / {percent(len(wrong) / rounds - better)}"]
            yield [name, *said]

    def held():
        for name, case in DIFFERENCES.items():
            shares = (float(simulate(case, n, rounds)[0][0]) for n in SIZES)
            yield [name, *(f"{100 * share:.1f} %" for share in shares)]

    said = [f"better / worse, n = {n}" for n in SIZES]
    table("Equal means", ["law", *said], errors())
    table("95 % intervals", ["law", *(f"n = {n}" for n in SIZES)], held())


TABLES = {
    "compare": compare_tables,
    "gate": gate_tables,
    "stopping": stopping_tables,
}


def main(names, rounds=2000):
    """Print the tables of these names, or all."""
    for name in names or TABLES:
        TABLES[name](rounds)


if __name__ == "__main__":
    main(sys.argv[1:])
