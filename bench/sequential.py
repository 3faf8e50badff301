"""Stopping early on recorded judgments: AlpacaEval's, replayed in seeded random orders, no call.

For every (annotator, model) of the published table: what the fixed-n test at 0.05 says on all of
its judgments, what the sequential test of `run --until-decided` says, and on which share of them.
Beside it, in the same orders, two plain betting tests: one stake a value, set from those before it
(aGRAPA), for values drawn from a population and for values drawn from a finite set.

    python bench/sequential.py [FOLDER]     the folder with alpacaeval/, else shared/data
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import ttest_1samp

sys.path.insert(0, str(Path(__file__).parents[1]))

from evenhand.stats.observations import Floats, Ints
from tests.unit.stats.sequences import decisions

BESIDE = Path(__file__).parents[2] / "shared" / "data"
ALPHA, ORDERS = 0.05, 20
WORDS = {1: "better", -1: "worse", 0: "-"}
Test = Callable[[Floats], tuple[Ints, Ints]]


def preferences(folder: Path) -> dict[str, Floats]:
    """Of each published (annotator, model), how far the model is preferred; a preference of 0 is a
    draw, as 1.5 is, and one that is empty a failure."""
    with (folder / "leaderboard_published.csv").open(encoding="utf-8", newline="") as lines:
        published = [(row["annotator"], row["model"]) for row in csv.DictReader(lines)]
    found: dict[tuple[str, str], list[float]] = {}
    with gzip.open(folder / "annotations_compact.csv.gz", "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["preference"]:
                value = float(row["preference"]) or 1.5
                found.setdefault((row["annotator"], row["model"]), []).append(value - 1)
    return {
        f"{model} ({annotator})": np.array(found[annotator, model])
        for annotator, model in published
    }


def on_all(values: Floats) -> int:
    """The fixed-n decision: a two-sided t-test."""
    if ttest_1samp(values, 0.5).pvalue > ALPHA:
        return 0
    return 1 if values.mean() > 0.5 else -1


def ours(runs: Floats) -> tuple[Ints, Ints]:
    return decisions(runs, ALPHA)


def plain(runs: Floats, *, finite: bool = False) -> tuple[Ints, Ints]:
    """A gambler a side with one stake a value, from the mean and variance so far, at most 3/4 of
    what may be lost; of a finite set the null moves with what has been drawn."""
    rows, length = runs.shape
    sides, after = np.zeros(rows, np.int64), np.full(rows, length)
    sums, squares = np.full(rows, 0.5), np.full(rows, 0.25)
    drawn, logs = np.zeros(rows), np.zeros((2, rows))
    for number, values in enumerate(runs.T, 1):
        null = (length / 2 - drawn) / (length - number + 1) if finite else np.full(rows, 0.5)
        mean, spread = sums / number, squares / number
        for side, (sign, most) in enumerate(((1, null), (-1, 1 - null))):
            gap = sign * (mean - null)
            stake = np.clip(gap / (spread + gap**2), 0, 0.75 / np.maximum(most, 1e-9))
            impossible = most <= 0
            gain = np.where(impossible, np.inf, np.log1p(stake * sign * (values - null)))
            logs[side] += gain
        new = (sides == 0) & (logs.max(axis=0) >= np.log(2 / ALPHA))
        sides[new], after[new] = np.where(logs[0] >= logs[1], 1, -1)[new], number
        drawn, sums = drawn + values, sums + values
        squares = squares + (values - sums / (number + 1)) ** 2
    return sides, after


def finite(runs: Floats) -> tuple[Ints, Ints]:
    return plain(runs, finite=True)


def replayed(values: Floats, test: Test, orders: int = ORDERS) -> tuple[Ints, Floats]:
    """What a test says in so many orders, and on which share of the values."""
    runs = np.stack([np.random.default_rng(seed).permutation(values) for seed in range(orders)])
    sides, after = test(runs)
    return sides, after / values.size


def main(folder: Path) -> None:
    data = preferences(folder / "alpacaeval")
    tests: dict[str, Test] = {"ours": ours, "plain": plain, "plain, finite set": finite}
    shares: dict[str, list[Floats]] = {name: [] for name in tests}
    kinds: dict[str, Counter[str]] = {name: Counter() for name in tests}
    print(f"{'model (annotator)':58}{'all':>7}{'early':>7}{'n':>5}{'share':>7}{'to':>7}")
    for name, values in data.items():
        full = on_all(values)
        for test_name, test in tests.items():
            sides, share = replayed(values, test)
            shares[test_name].append(share)
            kinds[test_name].update(_kind(full, int(side)) for side in sides)
            if test_name == "ours":
                most = WORDS[Counter(sides.tolist()).most_common(1)[0][0]]
                line = f"{name[:57]:58}{WORDS[full]:>7}{most:>7}{values.size:>5}"
                print(f"{line}{share.mean():7.1%}{share.max():7.1%}")
    print(f"\nin {ORDERS} orders, of {len(data)} comparisons each, in the mean:")
    for name in tests:
        each = " ".join(f"{kind} {number / ORDERS:.2f}," for kind, number in kinds[name].items())
        mean = np.array(shares[name]).mean(axis=0)
        print(f"{name:18} {each} share {mean.mean():.2%} ({mean.min():.2%} to {mean.max():.2%})")


def _kind(full: int, side: int) -> str:
    if full == side:
        return "same" if full else "both undecided"
    return "missed" if not side else "extra" if not full else "wrong"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else BESIDE)
