"""How often intervals hold the truth, by simulation through the public functions.

`python -m tests.unit.stats.coverage` prints the table that the documentation shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.stats.estimate import Estimate, difference, mean

Draw = np.random.Generator
Floats = npt.NDArray[np.float64]
LIKERT = np.array([1.0, 2, 3, 4, 5])
SIZES = (20, 60, 300)


@dataclass(frozen=True)
class Scenario:
    """Values with their clusters, what their mean is, and the ends of the scale."""

    draw: Callable[[Draw, int], tuple[Floats, npt.NDArray[np.int64]]]
    truth: float
    ends: tuple[float, float]
    about: str
    estimate: Callable[..., Estimate] = mean


def covered(scenario: Scenario, n: int, rounds: int, seed: int) -> tuple[float, float]:
    """The share of intervals that hold the truth, and their mean width in widths of the scale."""
    draw, hits, width = np.random.default_rng(seed), 0, 0.0
    for _ in range(rounds):
        values, cluster = scenario.draw(draw, n)
        found = scenario.estimate(values, cluster, scenario.ends)
        assert found.low is not None and found.high is not None
        hits += found.low - 1e-12 <= scenario.truth <= found.high + 1e-12
        width += found.high - found.low
    return hits / rounds, width / rounds / (scenario.ends[1] - scenario.ends[0])


def _single(values: Callable[[Draw, int], Floats]) -> Callable[..., tuple[Floats, np.ndarray]]:
    return lambda draw, n: (values(draw, n), np.arange(n))


def _levels(
    levels: list[float] | Floats, chances: list[float], ends: tuple[float, float], about: str
) -> Scenario:
    values = np.array(levels)
    truth = float(values @ np.array(chances))
    return Scenario(_single(lambda draw, n: draw.choice(values, n, p=chances)), truth, ends, about)


def _clusters(draw: Draw, n: int, sizes: npt.NDArray[np.int64]) -> tuple[Floats, np.ndarray]:
    """Scores from 1 to 5 that hang together within questions: half of their variance is shared."""
    cluster = np.repeat(np.arange(sizes.size), sizes)
    mixed = draw.normal(size=sizes.size)[cluster] + draw.normal(size=cluster.size)
    return LIKERT[np.searchsorted(_CUTS * np.sqrt(2), mixed)], cluster


def _passes(draw: Draw, sizes: npt.NDArray[np.int64]) -> tuple[Floats, np.ndarray]:
    """Passes and fails of which nine in ten pass; questions differ in how often theirs do."""
    cluster = np.repeat(np.arange(sizes.size), sizes)
    rates = draw.beta(4.5, 0.5, sizes.size)
    return (draw.random(cluster.size) < rates[cluster]).astype(float), cluster


_CUTS = np.array([-1.2815515655446, -0.5244005127080, 0.2533471031358, 1.0364333894938])
"""Quantiles of the normal distribution at 0.1, 0.3, 0.6 and 0.85."""
_MIDDLE = [0.1, 0.2, 0.3, 0.25, 0.15]
_CLUSTERED = float(LIKERT @ np.array(_MIDDLE))


def _repeated(draw: Draw, n: int, repeats: int, judges: int) -> tuple[Floats, np.ndarray]:
    """Units judged by several judges several times, each judge with a leaning of its own; a unit's
    value is the mean of its judgments."""
    lean = np.linspace(-0.3, 0.3, judges) if judges > 1 else np.zeros(1)
    true = draw.normal(3.2, 0.7, n)
    said = true[:, None, None] + lean[:, None] + draw.normal(0, 0.6, (n, judges, repeats))
    return np.clip(np.rint(said), 1, 5).mean(axis=(1, 2)), np.arange(n)


def _truth_of(repeats: int, judges: int) -> float:
    return float(_repeated(np.random.default_rng(0), 400_000, repeats, judges)[0].mean())


def _paired(
    chances: list[float], better: list[float], shared: float
) -> Callable[[Draw, int], tuple[Floats, np.ndarray]]:
    """Differences of two Likert scores on the same questions, with so much in common."""

    def values(draw: Draw, n: int) -> tuple[Floats, np.ndarray]:
        common = draw.random(n)
        found = []
        for one in (better, chances):
            own = np.where(draw.random(n) < shared, common, draw.random(n))
            found.append(LIKERT[np.minimum(np.searchsorted(np.cumsum(one), own), 4)])
        return found[0] - found[1], np.arange(n)

    return values


def _gap(chances: list[float], better: list[float]) -> float:
    return float(LIKERT @ (np.array(better) - np.array(chances)))


def _difference(
    draw: Callable[[Draw, int], tuple[Floats, np.ndarray]],
    truth: float,
    ends: tuple[float, float],
    about: str,
) -> Scenario:
    return Scenario(draw, truth, ends, about, _paired_difference)


def _paired_difference(gaps: Floats, cluster: np.ndarray, ends: tuple[float, float]) -> Estimate:
    return difference(gaps, cluster, ends[1])


def _pass_gaps(draw: Draw, sizes: npt.NDArray[np.int64]) -> tuple[Floats, np.ndarray]:
    """Differences of passes and fails, nine in ten against eight; a question is hard for both."""
    cluster = np.repeat(np.arange(sizes.size), sizes)
    rates = draw.beta(4.5, 0.5, sizes.size)[cluster]
    ours, theirs = (draw.random(cluster.size) < rate for rate in (rates, rates * 8 / 9))
    return ours.astype(float) - theirs, cluster


_GOOD = [0.02, 0.03, 0.1, 0.35, 0.5]
_CEILING = [0.05, 0.0, 0.0, 0.15, 0.8]
_TOP = [0.0, 0.0, 0.0, 0.2, 0.8]
_UNIT, _SPAN, _BOTH = (0.0, 1.0), (1.0, 5.0), (-4.0, 4.0)

SCENARIOS: dict[str, Scenario] = {
    "mean, normal": Scenario(
        _single(lambda draw, n: np.clip(draw.normal(0.5, 0.15, n), 0, 1)), 0.5, _UNIT, "sd 0.15"
    ),
    "mean, normal, narrow": Scenario(
        _single(lambda draw, n: np.clip(draw.normal(0.5, 0.05, n), 0, 1)), 0.5, _UNIT, "sd 0.05"
    ),
    "mean, Likert 1-5": _levels(LIKERT, _MIDDLE, _SPAN, "10/20/30/25/15 %"),
    "mean, Likert 1-5, high": _levels(LIKERT, _GOOD, _SPAN, "2/3/10/35/50 %"),
    "mean, skewed near the ceiling": _levels(LIKERT, _CEILING, _SPAN, "5 % ones, else 4 and 5"),
    "mean, binary 0.5": _levels([0.0, 1.0], [0.5, 0.5], _UNIT, ""),
    "mean, binary 0.9": _levels([0.0, 1.0], [0.1, 0.9], _UNIT, ""),
    "mean, binary 0.95": _levels([0.0, 1.0], [0.05, 0.95], _UNIT, ""),
    "win rate, 30 % ties": _levels([0.0, 0.5, 1.0], [0.3, 0.3, 0.4], _UNIT, "30/30/40 %"),
    "win rate, 90 % ties": _levels([0.0, 0.5, 1.0], [0.02, 0.9, 0.08], _UNIT, "2/90/8 %"),
    "mean, equal clusters": Scenario(
        lambda draw, n: _clusters(draw, n, np.full(n, 4)), _CLUSTERED, _SPAN, "4 each, n questions"
    ),
    "mean, unequal clusters": Scenario(
        lambda draw, n: _clusters(draw, n, draw.geometric(0.25, n)),
        _CLUSTERED,
        _SPAN,
        "geometric sizes, n questions",
    ),
    "mean, one large cluster": Scenario(
        lambda draw, n: _clusters(draw, n, np.append(np.full(n - 1, 2), n)),
        _CLUSTERED,
        _SPAN,
        "one with a third of all units",
    ),
    "pass rate 0.9, unequal clusters": Scenario(
        lambda draw, n: _passes(draw, draw.integers(1, 20, n)), 0.9, _UNIT, "1 to 19 each"
    ),
    "mean, 3 repeats": Scenario(
        lambda draw, n: _repeated(draw, n, 3, 1), _truth_of(3, 1), _SPAN, "one judge"
    ),
    "mean, 3 judges": Scenario(
        lambda draw, n: _repeated(draw, n, 1, 3), _truth_of(1, 3), _SPAN, "with leanings"
    ),
    "difference, normal": _difference(
        _single(lambda draw, n: draw.normal(0.1, 0.15, n)), 0.1, (-1.0, 1.0), "sd 0.15"
    ),
    "difference, normal, narrow": _difference(
        _single(lambda draw, n: draw.normal(0.02, 0.03, n)), 0.02, (-1.0, 1.0), "sd 0.03"
    ),
    "difference, Likert": _difference(
        _paired(_MIDDLE, _GOOD, 0.5), _gap(_MIDDLE, _GOOD), _BOTH, "half in common"
    ),
    "difference, 85 % ties": _difference(
        _single(lambda draw, n: draw.choice([-1.0, 0, 1], n, p=[0.05, 0.85, 0.1])),
        0.05,
        _BOTH,
        "5/85/10 %",
    ),
    "difference, breakdowns": _difference(
        _paired(_TOP, _CEILING, 0.5), _gap(_TOP, _CEILING), _BOTH, "variant fails 5 %"
    ),
    "difference of pass rates, unequal clusters": _difference(
        lambda draw, n: _pass_gaps(draw, draw.integers(1, 20, n)),
        0.1,
        (-1.0, 1.0),
        "0.9 against 0.8, 1 to 19 each",
    ),
    "difference, binary": _difference(
        _single(lambda draw, n: draw.choice([-1.0, 0, 1], n, p=[0.1, 0.7, 0.2])),
        0.1,
        (-1.0, 1.0),
        "10/70/20 %",
    ),
}


def _graded(draw: Draw, n: int) -> Floats:
    """Differences of fine-grained scores, of which one in twenty is a great loss."""
    return np.asarray(draw.normal(0, 0.05, n) - 0.6 * (draw.random(n) < 0.05))


LIMITS: dict[str, Scenario] = {
    "difference, graded, breakdowns": _difference(
        _single(_graded), -0.03, (-1.0, 1.0), "sd 0.05, 5 % lose 0.6"
    ),
}
"""Where intervals hold the truth less often than they say, as the documentation tells."""


def main(rounds: int = 4000) -> None:
    """Print how often the intervals of each scenario hold the truth."""
    print(f"| scenario | about | {' | '.join(f'n = {n}' for n in SIZES)} |")
    print("|---|---|--:|--:|--:|")
    for name, scenario in (SCENARIOS | LIMITS).items():
        shares = [covered(scenario, n, rounds, seed=n)[0] for n in SIZES]
        cells = " | ".join(f"{100 * share:.1f} %" for share in shares)
        print(f"| {name} | {scenario.about} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
