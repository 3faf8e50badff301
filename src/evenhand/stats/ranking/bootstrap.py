"""Ratings with the spread that they have when topics are drawn again.

What is drawn is how many topics of each kind a round has, so that the cost does not depend on the
number of votes where topics have one vote each. Every chunk of rounds has a generator of its own:
the same seed gives the same rounds, however many cores there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ndtr, ndtri, stdtrit

from evenhand.stats.ranking.bradley_terry import CLOSE, Model
from evenhand.stats.ranking.duels import Sample
from evenhand.stats.ranking.links import Links
from evenhand.stats.tables import Bools, Floats, Ints

CHUNK = 64
CELLS = 600_000
"""How many counts a chunk of rounds may have."""
NEAR = 5e-3
"""The last step of a round, in odds: the next one would be a hundredth of it, and rounds differ by
far more."""
MANY, SQUARE = 20, 2000
"""A sample whose fit took more gradients has weak links, which a short step need not have moved:
its rounds are led by the matrix of all candidates, where these are not too many for that."""
THREADS = 2
LEAST = 6
"""With fewer topics there is too little to draw from: no rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """Ratings of a sample, and of its resamples."""

    values: Floats
    """The ratings, the logarithm of the tie parameter, the position term."""
    rounds: Floats
    """The same of each round, a column per round; no column where topics are too few."""
    sets: Ints
    unsound: Bools
    """Of each set, whether its ratings would be infinite, so that a prior was added."""
    above: Bools
    """Of each candidate of such a set, whether nothing bounds it above: it never lost."""
    below: Bools
    shaky: int
    """How many rounds needed the prior though the sample did not."""
    topics: int

    @property
    def ratings(self) -> Floats:
        return self.values[:-2]

    def interval(
        self, level: float, values: Floats | None = None, rounds: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Percentiles of each row, further out where topics are few (Hesterberg, 2015), mirrored
        at its value: what resamples add at the ends of a board the sample has already added, so
        that percentiles as they are would lie too far out there."""
        tail = ndtr(-widening(self.topics, level) * ndtri((1 + level) / 2))
        low, high = quantiles(self.rounds if rounds is None else rounds, [tail, 1 - tail])
        middle = self.values if values is None else values
        return 2 * middle - high, 2 * middle - low


def quantiles(rounds: npt.NDArray[np.floating[Any]], shares: Sequence[float]) -> Floats:
    """Below which so many further rounds would lie, of each row, in the mean: the plain quantiles
    of 200 rounds leave out 5.9 % where they are to leave out 5."""
    return np.asarray(np.quantile(rounds, shares, axis=1, method="weibull"))


def widening(topics: int, level: float) -> float:
    """How much further an interval reaches than one whose width is known."""
    point = (1 + level) / 2
    return float(np.sqrt(topics / (topics - 1)) * stdtrit(topics - 1, point) / ndtri(point))


def rate(sample: Sample, rounds: int, rng: np.random.Generator) -> Rated:
    """Ratings of a sample and of so many resamples of its topics."""
    model, links, counts = Model(sample), Links(sample), sample.counts
    unsound = links.unsound(counts[:, :, None])[:, 0]
    prior = model.prior(counts, unsound)
    best = model.fit((counts + prior)[:, :, None])
    if not best.converged.all():
        # A position term can be infinite where no rating is.
        unsound = np.ones_like(unsound)
        prior = model.prior(counts, unsound)
        best = model.fit((counts + prior)[:, :, None])
    values, topics, near = best.values[:, 0], int(sample.topics.sum()), NEAR
    if best.gradients > MANY and sample.size <= SQUARE:
        model.steady(counts + prior, values)
    elif best.gradients > MANY:
        near = CLOSE
    resampling = _Rounds(
        model=model,
        links=links,
        start=values,
        near=near,
        prior=prior,
        every=model.prior(counts, np.ones_like(unsound)),
        kinds=_with_prior(sample.kinds, prior),
        topics=np.concatenate([sample.topics, prior[prior > 0]]),
    )
    above, below = links.open_ends(counts)
    infinite = unsound[sample.sets] & (sample.sets >= 0)
    chunks = resampling.fitted(rounds if topics >= LEAST else 0, rng)
    return Rated(
        values=values,
        rounds=np.concatenate(
            [np.zeros((sample.size + 2, 0)), *(fitted for fitted, _ in chunks)], axis=1
        ),
        sets=sample.sets,
        unsound=unsound,
        above=above & infinite,
        below=below & infinite,
        shaky=sum(number for _, number in chunks),
        topics=topics,
    )


def _with_prior(kinds: Any, prior: Floats) -> Any:
    """Votes of a prior are drawn as well: without them one that never lost would never lose in a
    resample either, and its rating would look certain."""
    added = np.flatnonzero(prior)
    if not len(added):
        return kinds
    ones, columns = np.ones(len(added)), np.arange(len(added))
    single = sparse.csr_array((ones, (added, columns)), shape=(prior.size, len(added)))
    return sparse.hstack([kinds, single], format="csr")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rounds:
    """How resamples are drawn, and fitted with a prior where one is needed."""

    model: Model
    links: Links
    start: Floats
    near: float
    prior: Floats
    every: Floats
    """The prior for all sets."""
    kinds: Any
    topics: Floats

    def fitted(self, rounds: int, rng: np.random.Generator) -> list[tuple[Floats, int]]:
        """The values of each round, a chunk at a time, and how many rounds of the chunk needed a
        prior that the sample did not."""
        chunk = max(1, min(CHUNK, CELLS // max(*self.kinds.shape, 1)))
        sizes = [min(chunk, rounds - begun) for begun in range(0, rounds, chunk)]
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(self._chunk, sizes, rng.spawn(len(sizes))))

    def _chunk(self, rounds: int, rng: np.random.Generator) -> tuple[Floats, int]:
        counts = np.asarray(self.kinds @ _draw(self.topics, rounds, rng)).reshape(3, -1, rounds)
        if self.prior.any():
            counts += self.prior[:, :, None]
        shaky = self.links.unsound(counts)
        if shaky.any():
            counts += self.every[:, :, None] * shaky[self.model.set_of_pair]
        fit = self.model.fit(counts, self.start, self.near)
        lost = ~fit.converged
        if lost.any():
            more = counts[:, :, lost] + self.every[:, :, None]
            fit.values[:, lost] = self.model.fit(more, self.start, self.near).values
        return fit.values, int((shaky.any(axis=0) | lost).sum())


def _draw(topics: Floats, rounds: int, rng: np.random.Generator) -> Floats:
    """How many topics of each kind there are, in each round."""
    total = round(float(topics.sum()))
    if len(topics) * 8 < total:
        return rng.multinomial(total, topics / topics.sum(), size=rounds).T.astype(float)
    # With about as many kinds as topics, drawing topics one by one is quicker.
    counts = np.empty((len(topics), rounds))
    whole = bool((topics == np.round(topics)).all())
    kind = np.repeat(np.arange(len(topics), dtype=np.int32), topics.astype(int) if whole else 0)
    ends = np.cumsum(topics[:-1]) / topics.sum()
    for column in range(rounds):
        places = (
            kind[rng.integers(total, size=total)]
            if whole
            else np.searchsorted(ends, np.sort(rng.random(total)), side="right")
        )
        counts[:, column] = np.bincount(places, minlength=len(topics))
    return counts
