"""How often intervals hold the truth, by simulation: laws and estimators.

`python -m tests.unit.stats.coverage` prints the table of means and differences that the
documentation shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import kendalltau

from evenhand.stats import coefficients
from evenhand.stats.estimate import difference, mean, share
from evenhand.stats.length import Regression, equal_length_interval
from evenhand.stats.ppi import corrected_mean
from evenhand.stats.rating import Matches, rate
from tests.unit.stats.laws import WORSE

LIKERT = np.arange(1.0, 6)
LEAST = {20: 0.92, 60: 0.93, 300: 0.93}
CLOSE = {20: 0.92, 60: 0.935, 300: 0.935}


class Case(NamedTuple):
    """One law under one estimator."""

    find: Callable[[np.random.Generator, int], Any]
    """The figures of a sample of so many units, each with `low` and `high`."""
    truth: Any
    """The value of each figure, or what computes them."""
    about: str = ""
    least: dict[int, float] = LEAST
    """The share of intervals that must hold the truth, by the number of units."""
    rounds: int = 300
    is_slow: bool = False
    """The short form has the smallest number of units alone."""


class Ends(NamedTuple):
    low: Any
    high: Any


def simulate(case, size, rounds):
    """Return the share of intervals that hold the truth and the mean width, of each figure."""
    rng = np.random.default_rng(size)
    found = [[(each.low, each.high) for each in case.find(rng, size)] for _ in range(rounds)]
    low, high = np.moveaxis(np.array(found, dtype=float), -1, 0)
    truth = case.truth() if callable(case.truth) else case.truth
    truth = np.atleast_1d(truth)[: low.shape[1]]
    tried = (~np.isnan(low)).sum(axis=0)
    assert (tried > 0.75 * rounds).all()
    held = (low - 1e-12 <= truth) & (truth <= high + 1e-12)
    return held.sum(axis=0) / tried, np.nanmean(high - low, axis=0)


# Means and differences

MIDDLE = [0.1, 0.2, 0.3, 0.25, 0.15]
GOOD = [0.02, 0.03, 0.1, 0.35, 0.5]
CEILING = [0.05, 0.0, 0.0, 0.15, 0.8]
TOP = [0.0, 0.0, 0.0, 0.2, 0.8]
CUTS = np.array([-1.2815515655446, -0.5244005127080, 0.2533471031358, 1.0364333894938])
"""Quantiles of the normal distribution at 0.1, 0.3, 0.6 and 0.85."""


def of_mean(draw, truth, about="", ends=(0.0, 1.0)):
    return Case(lambda rng, n: [mean(*draw(rng, n), ends)], truth, about)


def of_single(draw, truth, about="", ends=(0.0, 1.0)):
    return of_mean(lambda rng, n: (draw(rng, n), np.arange(n)), truth, about, ends)


def of_levels(levels, chances, about=""):
    truth, ends = float(np.dot(levels, chances)), (min(levels), max(levels))
    return of_single(lambda rng, n: rng.choice(levels, n, p=chances), truth, about, ends)


def of_clusters(sizes, about):
    """Scores from 1 to 5 that hang together within questions: half of their variance is shared."""

    def draw(rng, n):
        cluster = np.repeat(np.arange(n), sizes(rng, n))
        mixed = rng.normal(size=n)[cluster] + rng.normal(size=cluster.size)
        return LIKERT[np.searchsorted(CUTS * np.sqrt(2), mixed)], cluster

    return of_mean(draw, float(LIKERT @ MIDDLE), about, (1.0, 5.0))


def passes(rng, n, *rates):
    """Passes and fails of which nine in ten pass; questions differ in how often theirs do."""
    cluster = np.repeat(np.arange(n), rng.integers(1, 20, n))
    own = rng.beta(4.5, 0.5, n)[cluster]
    made = [(rng.random(cluster.size) < own * rate) * 1.0 for rate in rates]
    return (made[0] if len(made) == 1 else made[0] - made[1]), cluster


def of_repeats(repeats, judges, about):
    """Units judged by several judges several times, each judge with a leaning of its own."""
    lean = np.linspace(-0.3, 0.3, judges) if judges > 1 else np.zeros(1)

    def draw(rng, n):
        said = rng.normal(3.2, 0.7, n)[:, None, None] + lean[:, None]
        said = said + rng.normal(0, 0.6, (n, judges, repeats))
        return np.clip(np.rint(said), 1, 5).mean(axis=(1, 2))

    truth = cache(lambda: draw(np.random.default_rng(0), 400_000).mean())
    return of_single(draw, truth, about, (1.0, 5.0))


def of_gaps(draw, truth, about="", span=1.0):
    return Case(lambda rng, n: [difference(draw(rng, n), np.arange(n), span)], truth, about)


def of_gap_levels(chances, about, span=1.0):
    truth = chances[2] - chances[0]
    return of_gaps(lambda rng, n: rng.choice([-1.0, 0, 1], n, p=chances), truth, about, span)


def of_pairs(chances, better, about):
    """Differences of two Likert scores on the same questions, with half in common."""

    def draw(rng, n):
        common, found = rng.random(n), []
        for one in (better, chances):
            own = np.where(rng.random(n) < 0.5, common, rng.random(n))
            found.append(LIKERT[np.minimum(np.searchsorted(np.cumsum(one), own), 4)])
        return found[0] - found[1]

    return of_gaps(draw, float(LIKERT @ np.subtract(better, chances)), about, 4.0)


MEANS = {
    "mean, normal": of_single(
        lambda rng, n: np.clip(rng.normal(0.5, 0.15, n), 0, 1), 0.5, "sd 0.15"
    ),
    "mean, normal, narrow": of_single(
        lambda rng, n: np.clip(rng.normal(0.5, 0.05, n), 0, 1), 0.5, "sd 0.05"
    ),
    "mean, Likert 1-5": of_levels(LIKERT, MIDDLE, "10/20/30/25/15 %"),
    "mean, Likert 1-5, high": of_levels(LIKERT, GOOD, "2/3/10/35/50 %"),
    "mean, skewed near the ceiling": of_levels(LIKERT, CEILING, "5 % ones, else 4 and 5"),
    "mean, binary 0.5": of_levels([0.0, 1.0], [0.5, 0.5]),
    "mean, binary 0.9": of_levels([0.0, 1.0], [0.1, 0.9]),
    "mean, binary 0.95": of_levels([0.0, 1.0], [0.05, 0.95]),
    "win rate, 30 % ties": of_levels([0.0, 0.5, 1.0], [0.3, 0.3, 0.4], "30/30/40 %"),
    "win rate, 90 % ties": of_levels([0.0, 0.5, 1.0], [0.02, 0.9, 0.08], "2/90/8 %"),
    "mean, equal clusters": of_clusters(lambda rng, n: np.full(n, 4), "4 each, n questions"),
    "mean, unequal clusters": of_clusters(
        lambda rng, n: rng.geometric(0.25, n), "geometric sizes, n questions"
    ),
    "mean, one large cluster": of_clusters(
        lambda rng, n: np.append(np.full(n - 1, 2), n), "one with a third of all units"
    ),
    "pass rate 0.9, unequal clusters": of_mean(
        lambda rng, n: passes(rng, n, 1), 0.9, "1 to 19 each"
    ),
    "mean, 3 repeats": of_repeats(3, 1, "one judge"),
    "mean, 3 judges": of_repeats(1, 3, "with leanings"),
    "difference, normal": of_gaps(lambda rng, n: rng.normal(0.1, 0.15, n), 0.1, "sd 0.15"),
    "difference, normal, narrow": of_gaps(
        lambda rng, n: rng.normal(0.02, 0.03, n), 0.02, "sd 0.03"
    ),
    "difference, Likert": of_pairs(MIDDLE, GOOD, "half in common"),
    "difference, 85 % ties": of_gap_levels([0.05, 0.85, 0.1], "5/85/10 %", 4.0),
    "difference, breakdowns": of_pairs(TOP, CEILING, "variant fails 5 %"),
    "difference of pass rates, unequal clusters": Case(
        lambda rng, n: [difference(*passes(rng, n, 1, 8 / 9), 1.0)],
        0.1,
        "0.9 against 0.8, 1 to 19 each",
    ),
    "difference, binary": of_gap_levels([0.1, 0.7, 0.2], "10/70/20 %"),
}
DIFFERENCES = {
    name: of_gaps(lambda rng, n, law=law: law.sample(rng, (1, n))[0], law.mean)
    for name, law in WORSE.items()
}
"""Where breakdowns are fine and rare, few questions need not show them, and the output says so."""
LIMITS = {
    "difference, graded, breakdowns": of_gaps(
        lambda rng, n: rng.normal(0, 0.05, n) - 0.6 * (rng.random(n) < 0.05),
        -0.03,
        "sd 0.05, 5 % lose 0.6",
    )
}
"""Where intervals hold the truth less often than they say, as the documentation tells."""


# Shares in clusters that are alike: beta-binomial


def of_share(chance, least):
    def find(rng, n):
        rates = rng.beta(chance / 0.3 - chance, (1 - chance) * 7 / 3, n)
        trials = 2 + rng.integers(9, size=n)
        return [share(rng.binomial(trials, rates), trials)]

    return Case(find, chance, least=least)


SHARES = {
    "share 0.5": of_share(0.5, {20: 0.92, 60: 0.93}),
    # Few clusters of unequal size, and a rate near the end, hold a little less often.
    "share 0.8": of_share(0.8, {20: 0.91, 60: 0.93}),
    "share 0.93": of_share(0.93, {20: 0.88, 60: 0.91}),
}


def of_votes(chance, size, alike, tie):
    """Win rates of votes with ties; `alike` is the correlation of votes within a topic."""

    def find(rng, n):
        varied = rng.choice([1, 2, 3, 5, 10], n, p=[0.4, 0.2, 0.2, 0.1, 0.1])
        topic = np.repeat(np.arange(n), size or varied)
        more = 1 / alike - 1 if alike else 0
        won, tied = (
            rng.random(topic.size)
            < (rng.beta(p * more, (1 - p) * more, n)[topic] if alike and p else p)
            for p in (chance, tie)
        )
        return [mean(np.where(tied, 0.5, won), topic, (0.0, 1.0), weigh="units")]

    # A handful of topics hold all that is decided; docs/internals/validity.md
    is_odd = not size and tie == 0.95 and chance > 0.8
    least = dict.fromkeys(LEAST, 0.88) if is_odd else CLOSE
    return Case(find, chance * (1 - tie) + tie / 2, least=least, rounds=120)


WIN_RATES = {
    f"win rate {chance}, {size or 'varied'}, {tie} ties": of_votes(chance, size, alike, tie)
    for chance in (0.5, 0.7, 0.9, 0.95)
    for size, alike in ((1, 0), (4, 0.3), (10, 0.3), (0, 0.6))
    for tie in (0, 0.3, 0.95)
}


# Agreement: with ties, clusters and rare categories


def of_people(rng, units, clustered):
    """The unit of each rating by one person, or by one to four."""
    return np.repeat(np.arange(units), rng.integers(1, 5, units) if clustered else 1)


def votes(rng, units, *, alike, ties, clustered=False, skewed=False):
    """One judge against one or several people: each sees the truth or guesses."""
    chances = [0.85, 0.15 - ties, ties] if skewed else [(1 - ties) / 2, (1 - ties) / 2, ties]
    unit = of_people(rng, units, clustered)
    true = rng.choice(3, units, p=chances)
    judge = np.where(rng.random(units) < alike, true, rng.choice(3, units, p=chances))[unit]
    ease = alike + 0.4 * (rng.random(units) - 0.5) * clustered
    sees = rng.random(unit.size) < ease[unit]
    human = np.where(sees, true[unit], rng.choice(3, unit.size, p=chances))
    item, both = np.tile(np.arange(unit.size), 2), np.append(judge, human) * 1.0
    return [
        coefficients.share((judge == human) * 1.0, unit, 0.95),
        coefficients.kappa(judge * 1.0, human * 1.0, unit),
        coefficients.alpha(item, both, np.tile(unit, 2)),
    ]


def scores(rng, units, *, alike, clustered=False, discrete=True):
    """Scores that share so much with the truth; people scatter about it."""
    unit = of_people(rng, units, clustered)
    true = rng.normal(size=units)
    judge = (alike * true + np.sqrt(1 - alike**2) * rng.normal(size=units))[unit]
    human = true[unit] + 0.5 * rng.normal(size=unit.size)
    if discrete:
        judge, human = (np.clip(np.round(1.2 * one + 3.2), 1, 5) for one in (judge, human))
    sides, item = (judge, human, unit), np.tile(np.arange(unit.size), 2)
    found = [
        coefficients.kappa(*sides, quadratic=True),
        coefficients.alpha(item, np.append(judge, human), np.tile(unit, 2), interval=True),
        coefficients.pearson(*sides),
        coefficients.spearman(*sides),
        coefficients.errors(*sides, 4.0, 0.95)["mae"],
        coefficients.bias(*sides, 4.0, 0.95),
    ]
    if units < 300:
        return [*found, coefficients.kendall(*sides)]
    # It takes long for many units; the truth is not ours.
    tau = kendalltau(judge, human)[0] if units == MANY else None
    return found if tau is None else [*found, coefficients.Coefficient(tau, None, None, 0)]


def gross_errors(rng, units, *, share, fine):
    """Judge and people nearly agree, but on some units the judge goes to the other end."""
    true = rng.normal(size=units)
    sides = [true + 0.3 * rng.normal(size=units) for _ in range(2)]
    low, high = (0, 100) if fine else (1, 5)
    judge, human = (
        np.clip(50 + 20 * one if fine else np.round(1.2 * one + 3.2), low, high) for one in sides
    )
    other_end = np.where(human > (low + high) / 2, low, high)
    judge = np.where(rng.random(units) < share, other_end, judge).astype(float)
    question = np.arange(units)
    return [
        coefficients.kappa(judge, human, question, quadratic=True),
        coefficients.spearman(judge, human, question),
    ]


MANY = 40_000
"""Units of which a figure is taken to be the truth."""


def of_agreement(draw, rounds=60, least=CLOSE, **given):
    truth = cache(lambda: [one.value for one in draw(np.random.default_rng(1), MANY, **given)])
    return Case(lambda rng, n: draw(rng, n, **given), truth, least=least, rounds=rounds)


AGREEMENT = {
    "votes, few ties": of_agreement(votes, alike=0.8, ties=0.05),
    "votes, many ties": of_agreement(votes, alike=0.6, ties=0.3),
    "votes, no agreement": of_agreement(votes, alike=0.0, ties=0.2),
    "votes, close agreement": of_agreement(votes, alike=0.95, ties=0.1),
    "votes, several people": of_agreement(votes, alike=0.7, ties=0.2, clustered=True),
    "votes, one side rare": of_agreement(votes, alike=0.5, ties=0.03, skewed=True),
    "scores 1 to 5": of_agreement(scores, alike=0.6),
    "scores 1 to 5, close": of_agreement(scores, alike=0.95),
    "scores 1 to 5, several people": of_agreement(scores, alike=0.8, clustered=True),
    "scores, continuous": of_agreement(scores, alike=0.9, discrete=False),
} | {
    # Few units need not show these, and then no interval can hold them: docs/agreement.md.
    f"{share:.0%} gross errors, {'fine' if fine else 'coarse'}": of_agreement(
        gross_errors, 30, dict.fromkeys(LEAST, 0.7), share=share, fine=fine
    )
    for share in (0.02, 0.05)
    for fine in (True, False)
}


# Means corrected by labels

QUESTIONS = {20: 200, 100: 400, 1000: 3000}


def labelled(rng, questions, labelled, *, binary, knows, clustered=False):
    """A judge that knows so much of the labels, on questions with one or several units."""
    cluster = np.repeat(np.arange(questions), rng.integers(1, 4, questions) if clustered else 1)
    shared = rng.normal(size=questions)[cluster] if clustered else 0
    true = shared + rng.normal(size=cluster.size)
    seen = knows * true + np.sqrt(1 - knows**2) * rng.normal(size=cluster.size)
    if binary:
        judged, labels = (seen > 0.2).astype(float), (true > 0.5).astype(float)
        labels[rng.random(labels.size) < 0.1] = 0.5
    else:
        judged, labels = (np.clip(np.round(one), 1, 5) for one in (seen + 3.6, true + 3))
    known = labels.copy()
    known[rng.permutation(cluster.size)[labelled:]] = np.nan
    return judged, known, cluster, labels


def of_labels(**given):
    ends = (0.0, 1.0) if given["binary"] else (1.0, 5.0)

    @cache
    def truth():
        return labelled(np.random.default_rng(1), 400_000, 1, **given)[3].mean()

    def find(rng, n):
        return [corrected_mean(*labelled(rng, QUESTIONS[n], n, **given)[:3], ends=ends).corrected]

    return Case(find, truth, least={20: 0.92, 100: 0.935, 1000: 0.935}, rounds=100)


def of_pass_rate(true_rate, failed):
    """A judge that misses 40 % of the bad answers, and fails some of the good ones; beside it the
    labels alone."""

    def find(rng, n):
        units = 1000 if n == 100 else 300
        good = rng.random(units) < true_rate
        judged = np.where(good, rng.random(units) >= failed, rng.random(units) < 0.4) * 1.0
        known = np.where(rng.permutation(units) < n, good, np.nan)
        found = corrected_mean(judged, known, np.arange(units), ends=(0.0, 1.0))
        return [found.corrected, found.labels]

    return Case(find, [true_rate] * 2, least=dict.fromkeys((20, 40, 100), 0.93))


PASS_RATES = {
    f"pass rate {rate}, {failed} failed": of_pass_rate(rate, failed)
    for rate in (0.85, 0.95)
    for failed in (0.0, 0.05)
}
CORRECTED = {
    "win rate, good judge": of_labels(binary=True, knows=0.8),
    "win rate, judge knows nothing": of_labels(binary=True, knows=0.0),
    "win rate, topics": of_labels(binary=True, knows=0.8, clustered=True),
    "scores, good judge": of_labels(binary=False, knows=0.8),
    "scores, very good judge, questions": of_labels(binary=False, knows=0.97, clustered=True),
    **PASS_RATES,
}


# Win rates at equal lengths


def long_answers(
    rng, topics, chance, *, liking=1.5, each=1, alike=0.0, tie=0.0, soft=False, hard=0.0
):
    """Votes on topics by a judge that likes the longer answer; `alike` is how far topics differ,
    `hard` what the difficulty of an instruction takes from the candidate."""
    votes, group = topics * each, np.repeat(np.arange(topics), each)
    ahead, difficulty = rng.normal(-0.5, 1, votes), rng.normal(size=topics)[group]
    odds = logit(chance) - liking * np.tanh(ahead) + alike * rng.normal(size=topics)[group]
    chances = expit(odds + hard * difficulty)
    won = rng.beta(2 * chances, 2 - 2 * chances) if soft else rng.random(votes) < chances
    targets = np.where(rng.random(votes) < tie, 0.5, won)
    length = np.tanh(ahead / ahead.std(ddof=1))
    columns = [length, difficulty, np.ones(votes)] if hard else [length, np.ones(votes)]
    return Regression(
        rows=np.stack(columns, axis=1), targets=targets, weights=np.ones(votes), group=group
    )


def steadied(regression, seed=1, votes=200):
    """A regression with rows of other candidates before it, a tenth of a vote each."""
    anchors = long_answers(np.random.default_rng(seed), votes, 0.5, hard=0.5)
    return Regression(
        rows=np.concatenate([anchors.rows * [1, 1, 0], regression.rows]),
        targets=np.concatenate([anchors.targets, regression.targets]),
        weights=np.concatenate([np.full(votes, 0.1), regression.weights]),
        group=np.concatenate([np.full(votes, -1), regression.group]),
    )


def of_lengths(chance, *, anchors=False, is_truth=False, **given):
    def find(rng, n, level=0.95):
        made = long_answers(rng, n, chance, **given)
        return [Ends(*equal_length_interval(steadied(made) if anchors else made, level))]

    @cache
    def limit():
        topics = 40_000 // given.get("each", 1)
        return np.mean(find(np.random.default_rng(0), topics, 0.5))

    truth = chance if is_truth else limit
    return Case(find, truth, least=CLOSE, rounds=100, is_slow=True)


LENGTHS = {
    "even, lengths do not matter": of_lengths(0.5, liking=0.0),
    "even": of_lengths(0.5),
    "70 %": of_lengths(0.7),
    "90 %": of_lengths(0.9),
    "95 %": of_lengths(0.95),
    "98 %, lengths hardly matter": of_lengths(0.98, liking=0.5),
    "60 %, lengths matter most": of_lengths(0.6, liking=4.0),
    "70 %, soft": of_lengths(0.7, soft=True),
    "70 %, half ties": of_lengths(0.7, tie=0.5),
    "70 %, 95 % ties": of_lengths(0.7, tie=0.95),
    "70 %, 4 votes per topic": of_lengths(0.7, each=4, alike=1.0),
    "90 %, 10 votes per topic": of_lengths(0.9, each=10, alike=1.0),
    "60 %, difficulty": of_lengths(0.6, hard=0.5),
    "60 %, difficulty, anchors": of_lengths(0.6, hard=0.5, anchors=True),
} | {
    f"{chance:.0%}, lengths alone, {liking:g}": of_lengths(chance, liking=liking, is_truth=True)
    for chance in (0.5, 0.7)
    for liking in (10.0, 1000.0)
}


# Ratings: lopsided boards among them

STRENGTHS = np.array([1.2, 0.3, -0.3, -1.2])
LEANINGS = (-0.2, 0.0, 0.2)
TASTES = ((0.5, -0.5, 0.0, 0.0), (0.0, 0.5, -0.5, 0.0), (-0.5, 0.0, 0.5, 0.0))
EVEN_TASTE = ((0.0, 0.0, 0.0, 0.0),)


def chances(gap, tie):
    """How likely a win of the first, a win of the second and a tie are, in Davidson's model."""
    odds = np.stack([np.exp(gap / 2), np.exp(-gap / 2), np.full(gap.shape, tie)])
    return np.asarray(odds / odds.sum(axis=0))


def voted(rng, first, second, each, truth, tie, lean=0.0):
    """Votes between these candidates, so many on each topic; `truth` is one row for all, or one for
    each vote."""
    of = np.broadcast_to(truth, (len(first), np.shape(truth)[-1]))
    place = np.arange(len(first))
    shares = np.cumsum(chances(of[place, first] - of[place, second] + lean, tie), axis=0)
    outcome = (rng.random(len(first)) > shares[:2]).sum(axis=0)
    return Matches(
        size=of.shape[1],
        first=first,
        second=second,
        won=np.array([1.0, 0.0, 0.5])[outcome],
        tie=outcome == 2,
        topic=place // each,
    )


def everybody(rng, topics, tie, strengths=STRENGTHS, leanings=(0.0,), tastes=EVEN_TASTE):
    """All meet each other on each topic before each judge, in an order drawn by chance; a judge
    leans to the first, and has tastes of its own."""
    half = np.stack(np.triu_indices(len(strengths), 1), axis=1)
    judge = np.tile(np.repeat(np.arange(len(leanings)), len(half)), topics)
    pairs = np.tile(half, (topics * len(leanings), 1))
    pairs = np.where(rng.random(len(pairs))[:, None] < 0.5, pairs, pairs[:, ::-1])
    truth = (
        strengths + np.resize(tastes, (len(leanings), 4))[judge] if len(leanings) > 1 else strengths
    )
    each = len(half) * len(leanings)
    return voted(rng, *pairs.T, each, truth, tie, np.array(leanings)[judge])


def of_ratings(draw, truth):
    def find(rng, n):
        found = next(rate(draw(rng, n)))
        ends = np.array(found.intervals(0.95)[1:])
        if not callable(truth) and len(found.members) < len(truth):
            # Not everybody has met the others in a sample of few votes.
            every = np.full((2, len(truth)), np.nan)
            every[:, found.members] = ends + np.array(truth)[found.members].mean()
            ends = every
        return [Ends(*one) for one in ends.T]

    return Case(find, truth, least={20: 0.91, 60: 0.93, 300: 0.93}, rounds=60, is_slow=True)


def of_two(chance):
    """Two candidates, a topic each, of which the first wins so often."""
    return of_board(np.array([1, -1]) * np.log(chance / (1 - chance)) / 2, 0.0)


def of_board(strengths, tie):
    truth = strengths - np.mean(strengths)
    return of_ratings(lambda rng, n: everybody(rng, n, tie, truth), truth)


def of_panel(tastes):
    """Judges that lean to what is shown first, or have tastes of their own: the truth is what a
    great many votes come to."""

    def draw(rng, n):
        return everybody(rng, n, 0.5, STRENGTHS, LEANINGS, tastes)

    return of_ratings(draw, cache(lambda: next(rate(draw(np.random.default_rng(0), MANY))).values))


def crowded(rng, topics):
    """Three votes on each topic, most of them on three of ten candidates."""
    often = np.where(np.isin(np.arange(10), [0, 4, 7]), 8.0, 1.0)
    pairs = [rng.choice(10, 2, replace=False, p=often / often.sum()) for _ in range(3 * topics)]
    return voted(rng, *np.array(pairs).T, 3, np.linspace(-1.5, 1.5, 10), 0.3)


RATINGS = {
    "two, 0.85": of_two(0.85),
    "two, 0.93": of_two(0.93),
    "two, 0.97": of_two(0.97),
    "four, some ties": of_board(STRENGTHS, 0.5),
    "four, 95 % ties": of_board(STRENGTHS, 45.0),
    "one far below": of_board([1.0, 1.0, 1.0, -2.0], 0.0),
    "ten": of_board(np.linspace(-2, 2, 10), 0.3),
    "most votes on three of ten": of_ratings(crowded, np.linspace(-1.5, 1.5, 10)),
    "judges with leanings": of_panel(EVEN_TASTE),
    "judges with tastes": of_panel(TASTES),
}


def main(rounds=4000):
    """Print how often the intervals of means and differences hold the truth."""
    print(f"| scenario | about | {' | '.join(f'n = {n}' for n in LEAST)} |")
    print("|---|---|--:|--:|--:|")
    for name, case in (MEANS | LIMITS).items():
        shares = [float(simulate(case, n, rounds)[0][0]) for n in LEAST]
        cells = " | ".join(f"{100 * share:.1f} %" for share in shares)
        print(f"| {name} | {case.about} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
