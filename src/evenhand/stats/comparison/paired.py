"""Is the difference chance? A sign-flip test of sums by cluster.

If variant and baseline are alike, each cluster's sum of paired differences could as well have had
the other sign. The p value is the share of sign patterns whose total lies at least as far from 0
as the observed one: under that null P(p <= a) <= a, whatever the distribution of scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.tables import Floats, Ints

ROUNDS = 9_999
LATTICE_COST = 30_000_000
"""Points of the spectrum times distinct sizes up to which the exact distribution is computed."""
ENUMERATED = 16
"""Sums up to which all sign patterns are gone through one by one."""
RESOLUTION = 1e-12
"""What a spectrum resolves: a smaller p is given as this."""
POINTS = 8_000_000
"""How many points a spectrum has at most."""
MERGED = 10_000
"""How many sums are sampled the signs of."""
BLOCK = 4_000_000
"""How many signs are drawn at a time."""


@dataclass(frozen=True, slots=True)
class SignTest:
    """A two-sided p value, None without anything to test, and whether it is exact."""

    p: float | None
    exact: bool


def sign_flip(sums: Floats, seed: int = 0) -> SignTest:
    """The test of one sum of differences for each cluster."""
    moved = np.abs(sums[sums != 0])
    if sums.size == 0:
        return SignTest(None, True)
    if moved.size == 0:
        return SignTest(1.0, True)
    observed = abs(float(sums.sum()))
    if moved.size <= ENUMERATED:
        return SignTest(_by_enumeration(moved, observed), True)
    steps = _steps(moved)
    if steps is not None:
        return SignTest(_by_spectrum(steps, _signed_total(sums, steps)), True)
    return SignTest(_by_sampling(np.abs(_merged(sums)), observed, seed), False)


def _merged(sums: Floats) -> Floats:
    """At most MERGED sums: of more, some change their sign together. That is as valid a test, and
    what it takes no longer grows with the number of clusters."""
    place = np.arange(sums.size) % MERGED
    return np.bincount(place, sums).astype(np.float64)


def _signed_total(sums: Floats, steps: Ints) -> int:
    """How far from 0 the observed total is, in steps."""
    signs = np.sign(sums[sums != 0])
    return abs(int((signs * steps).sum()))


def _steps(sizes: Floats) -> Ints | None:
    """The sizes as multiples of one step, where they are and the exact way is affordable."""
    tolerance = 1e-7 * float(sizes.max())
    distinct = np.unique(np.round(sizes / tolerance)) * tolerance
    # One step per distinct size at least: more of them can never be affordable.
    if distinct.size**2 > LATTICE_COST:
        return None
    step = 0.0
    for size in distinct[distinct > 0]:
        step = _divisor(float(size), step, 50 * tolerance)
        points = 2 * float(sizes.sum()) / step
        if points > POINTS or points * distinct.size > LATTICE_COST:
            return None
    # Rounding in the divisor is worst where sizes are many steps: the mean step is better.
    counts = np.rint(sizes / step)
    step = float(sizes.sum() / counts.sum())
    fits = np.abs(sizes - np.rint(sizes / step) * step).max() < tolerance
    return np.rint(sizes / step).astype(np.int64) if fits else None


def _divisor(size: float, rest: float, tolerance: float) -> float:
    """The greatest common divisor of two sizes, by Euclid's way within a tolerance."""
    while rest > tolerance:
        size, rest = rest, size % rest
        if tolerance < rest and size - rest < tolerance:
            rest = 0.0
    return size


def _by_spectrum(steps: Ints, observed: int) -> float:
    """The exact p value: the distribution of the total is the inverse Fourier transform of the
    product of cosines."""
    total, count = int(steps.sum()), steps.size
    sizes, numbers = np.unique(steps, return_counts=True)
    points = fast_length(2 * total + 2)
    angles = np.arange(points // 2 + 1) * (2 * np.pi / points)
    spectrum = np.ones(angles.size)
    for size, number in zip(sizes, numbers, strict=True):
        spectrum *= np.cos(size * angles) ** number
    chances = np.fft.irfft(spectrum, points)
    # Totals 0..total stand first; those below 0 mirror them.
    tail = 2 * float(np.clip(chances[max(observed, 1) : total + 1], 0, None).sum())
    tail += float(chances[0]) if observed == 0 else 0.0
    least = 2.0 ** (1 - count) if count < 1000 else 0.0
    return min(1.0, max(tail, least, RESOLUTION if count > 40 else 0.0))


def fast_length(least: int) -> int:
    """The first number from `least` on that has no prime factor above 5: transforms of such lengths
    are quick. It is that of `scipy.fft.next_fast_len`, which takes long to import."""
    lengths = [1 << (least - 1).bit_length()]
    five = 1
    while five < lengths[0]:
        odd = five
        while odd < lengths[0]:
            # The least power of two that makes it long enough.
            lengths.append(odd << (-(-least // odd) - 1).bit_length())
            odd *= 3
        five *= 5
    return min(lengths)


def _by_enumeration(sizes: Floats, observed: float) -> float:
    totals = np.zeros(1)
    for size in sizes:
        totals = np.concatenate([totals + size, totals - size])
    return float((np.abs(totals) >= observed - 1e-9 * sizes.sum()).mean())


def sign_flip_bound(sums: Floats, sizes: Floats, alpha: float) -> float | None:
    """The bound towards 0 of the mean differences that the test at `alpha` does not reject; None
    where there are too many clusters to go through all sign patterns, or too few to reject any.

    A mean below the observed one is rejected if few of the means of parts of the clusters are as
    low as it.
    """
    rank = int(alpha * (1 + 1e-9) / 2 * 2.0 ** min(sums.size, ENUMERATED))
    if sums.size > ENUMERATED or rank < 1:
        return None
    totals, counts = np.zeros(1), np.zeros(1)
    for total, count in zip(sums, sizes, strict=True):
        totals = np.concatenate([totals, totals + total])
        counts = np.concatenate([counts, counts + count])
    means = totals[1:] / counts[1:]
    if sums.sum() < 0:
        return -float(np.partition(-means, rank - 1)[rank - 1])
    return float(np.partition(means, rank - 1)[rank - 1])


def _by_sampling(sizes: Floats, observed: float, seed: int) -> float:
    """The share among sampled sign patterns, the observed one counted in."""
    generator = np.random.default_rng(seed)
    rounds = max(1, BLOCK // sizes.size)
    whole, hits = float(sizes.sum()), 0
    # Single precision is twice as fast; what it blurs counts as a hit, which is the safe side.
    least, small = observed - 1e-5 * whole, sizes.astype(np.float32)
    for start in range(0, ROUNDS, rounds):
        number = min(rounds, ROUNDS - start)
        bits = np.frombuffer(generator.bytes(number * (-(-sizes.size // 8))), np.uint8)
        signs = np.unpackbits(bits.reshape(number, -1), axis=1, count=sizes.size)
        totals = 2 * (signs @ small) - whole
        hits += int((np.abs(totals) >= least).sum())
    return (hits + 1) / (ROUNDS + 1)
