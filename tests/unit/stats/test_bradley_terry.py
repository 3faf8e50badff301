"""Ratings, against textbook forms, another library, and what must not change them."""

from __future__ import annotations

from itertools import combinations

import evalica
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.stats.ranking.bradley_terry import NO_TIES, Model
from evenhand.stats.ranking.duels import sample_of
from evenhand.stats.ranking.links import Links
from tests.unit.stats.ballots import drawn, duels, textbook_bradley_terry, textbook_davidson

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 4), st.sampled_from([1.0, 0.0, "=", 0.3])),
    min_size=1,
    max_size=40,
).map(lambda rows: [(a, (a + step) % 5, won) for a, step, won in rows])


def fitted(size, rows, ties="davidson", *, ordered=False):
    sample = sample_of(duels(size, rows), ties, ordered=ordered)
    model = Model(sample)
    assert not Links(sample).unsound(sample.counts[:, :, None]).any()
    found = model.fit(sample.counts[:, :, None])
    assert found.converged.all()
    return found.values[:, 0]


@pytest.mark.parametrize("seed", range(5))
def test_without_ties_they_are_bradley_and_terrys(seed):
    rows = drawn(np.random.default_rng(seed), 6, 200, tie=0.0)
    values = fitted(6, rows)
    assert values[:6] == pytest.approx(textbook_bradley_terry(6, rows), abs=1e-8)
    assert values[-2] == NO_TIES and values[-1] == 0


@pytest.mark.parametrize("seed", range(5))
def test_ties_as_half_a_win(seed):
    rows = drawn(np.random.default_rng(seed), 6, 200, tie=0.8)
    values = fitted(6, rows, "half")
    assert values[:6] == pytest.approx(textbook_bradley_terry(6, rows), abs=1e-8)


def test_ties_as_half_a_win_are_those_of_evalica():
    rows = drawn(np.random.default_rng(7), 12, 2000)
    said = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, "=": evalica.Winner.Draw}
    left, right = [f"m{row[0]:02}" for row in rows], [f"m{row[1]:02}" for row in rows]
    found = evalica.bradley_terry(left, right, [said[row[2]] for row in rows], tolerance=1e-12)
    scores = np.log(found.scores.sort_index().to_numpy())
    assert fitted(12, rows, "half")[:12] == pytest.approx(scores - scores.mean(), abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_davidsons_ties_are_the_most_likely(seed):
    rows = drawn(np.random.default_rng(seed), 5, 150, tie=0.7)
    values, expected = fitted(5, rows), textbook_davidson(5, rows)
    assert values[:-1] == pytest.approx(expected[:-1], abs=2e-5)


@pytest.mark.parametrize("ties", ["davidson", "half"])
def test_a_position_term_is_the_most_likely(ties):
    rows = drawn(np.random.default_rng(3), 5, 300, tie=0.5 if ties == "davidson" else 0, first=0.6)
    values, expected = (
        fitted(5, rows, ties, ordered=True),
        textbook_davidson(5, rows, position=True),
    )
    assert values[:5] == pytest.approx(expected[:5], abs=2e-5)
    assert values[-1] == pytest.approx(expected[-1], abs=2e-5)


def test_soft_preferences_are_parts_of_a_win():
    soft = [(0, 1, 0.25), (1, 2, 0.5), (0, 2, 0.9)] * 20
    hard = [(0, 1, 1.0)] * 5 + [(0, 1, 0.0)] * 15 + [(1, 2, 1.0), (1, 2, 0.0)] * 10
    hard += [(0, 2, 1.0)] * 18 + [(0, 2, 0.0)] * 2
    assert fitted(3, soft) == pytest.approx(fitted(3, hard), abs=1e-8)


def sound(size, rows):
    sample = sample_of(duels(size, rows), "davidson")
    return sample, not Links(sample).unsound(sample.counts[:, :, None]).any()


@given(ROWS, st.permutations(range(5)))
@settings(max_examples=60)
def test_names_and_sides_do_not_matter(rows, renamed):
    sample, fine = sound(5, rows)
    if not fine:
        return
    turned = [(b, a, won if won == "=" else 1 - won) for a, b, won in rows]
    moved = [(renamed[a], renamed[b], won) for a, b, won in rows]
    values = Model(sample).fit(sample.counts[:, :, None]).values[:, 0]
    for other, places in ((turned, range(5)), (moved, renamed)):
        again, _ = sound(5, other)
        found = Model(again).fit(again.counts[:, :, None]).values[:, 0]
        assert found[list(places)] == pytest.approx(values[:5], abs=1e-6)
        assert found[-2] == pytest.approx(values[-2], abs=1e-6)


def divided(size, rows):
    """Whether some candidates only ever won against the rest, looked up in every subset; a tie
    links both ways."""
    beats = {(a, b) for a, b, won in rows if won == "=" or won > 0}
    beats |= {(b, a) for a, b, won in rows if won == "=" or won < 1}
    met = {one for row in rows for one in row[:2]}
    linked = {frozenset(pair) for pair in beats}
    for number in range(1, len(met)):
        for some in combinations(sorted(met), number):
            inside, outside = set(some), met - set(some)
            across = any(frozenset((a, b)) in linked for a in inside for b in outside)
            if across and not any((b, a) in beats for a in inside for b in outside):
                return True
    return False


@given(ROWS)
@settings(max_examples=150)
def test_infinite_ratings_are_seen_before_they_are_fitted(rows):
    _, fine = sound(5, rows)
    if divided(5, rows):
        assert not fine
    elif all(won != "=" for *_, won in rows):
        assert fine


@pytest.mark.parametrize(
    ("rows", "fine"),
    [
        ([(0, 1, 1.0), (0, 1, "=")], False),  # ties do not bound one that never lost
        ([(0, 1, 1.0), (0, 1, 0.0), (0, 2, "=")], True),
        ([(0, 1, "="), (0, 1, "=")], False),
        ([(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)], True),
        ([(0, 1, 1.0), (1, 0, 1.0), (2, 3, 1.0), (2, 3, 0.4)], True),
    ],
)
def test_what_can_be_rated(rows, fine):
    assert sound(4, rows)[1] is fine


def test_sets_that_never_met_are_rated_apart():
    rows = drawn(np.random.default_rng(1), 4, 60)
    apart = [(a + 4, b + 4, won) for a, b, won in drawn(np.random.default_rng(2), 3, 60)]
    values = fitted(8, [*rows, *apart], "half")
    assert values[:4] == pytest.approx(textbook_bradley_terry(4, rows), abs=1e-8)
    moved = [(a - 4, b - 4, won) for a, b, won in apart]
    assert values[4:7] == pytest.approx(textbook_bradley_terry(3, moved), abs=1e-8)
    assert values[7] == 0


def test_many_rounds_at_once_are_the_rounds_one_by_one():
    sample = sample_of(duels(5, drawn(np.random.default_rng(4), 5, 300)), "davidson")
    model, rng = Model(sample), np.random.default_rng(5)
    counts = rng.poisson(sample.counts[:, :, None] + 1, size=(3, len(sample.first), 30)) + 0.0
    start = model.fit(sample.counts[:, :, None]).values[:, 0]
    together, alone = model.fit(counts, start), [model.fit(counts[:, :, [k]]) for k in range(30)]
    assert together.converged.all()
    expected = np.concatenate([one.values for one in alone], axis=1)
    assert together.values == pytest.approx(expected, abs=1e-6)


def test_a_chain_of_many_candidates_is_fitted_as_well():
    """Where few links hold many together, conjugate gradients are slow and the matrix is taken."""
    outcomes = 3 * (1.0, 1.0, 0.0)
    rows = [(place, place + 1, won) for place in range(199) for won in outcomes]
    sample = sample_of(duels(200, rows), "davidson")
    fit = Model(sample).fit(sample.counts[:, :, None])
    assert fit.converged.all()
    assert -np.diff(fit.values[:200, 0]) == pytest.approx(np.log(2), abs=1e-6)


def test_a_prior_gives_every_candidate_one_vote_half_won():
    sample = sample_of(duels(3, [(0, 1, 1.0), (0, 1, 1.0), (1, 2, 1.0)]), "davidson")
    model = Model(sample)
    added = model.prior(sample.counts, np.array([True]))
    assert added.sum() == pytest.approx(3) and (added[0] == added[1]).all() and not added[2].any()
    # 0 gives all of its vote to 1, as 2 does; 1 shares its own two to one.
    assert added[:2].sum(axis=0) == pytest.approx([1 + 2 / 3, 1 + 1 / 3])
    above, below = Links(sample).open_ends(sample.counts)
    assert above.tolist() == [True, False, False] and below.tolist() == [False, False, True]


def test_rounds_looked_at_together_are_judged_as_each_alone():
    """More rounds than a word has bits, of several sets that never met."""
    rng = np.random.default_rng(4)
    rows = drawn(rng, 4, 40, tie=0.4) + [(a + 4, b + 4, won) for a, b, won in drawn(rng, 3, 12)]
    sample = sample_of(duels(9, rows), "davidson")
    times = rng.integers(2, size=(*sample.counts.shape, 150))
    counts, links = sample.counts[:, :, None] * times, Links(sample)
    unsound = links.unsound(counts)
    alone = [links.unsound(counts[:, :, number, None])[:, 0] for number in range(150)]
    assert np.array(alone).T.tolist() == unsound.tolist() and unsound.shape == (2, 150)
    assert unsound.any(axis=1).all() and not unsound.all(axis=1).any()


def test_ratings_of_many_candidates_take_few_steps(monkeypatch):
    """At the ends of a board, where one win more or less is much, as in its middle."""
    rng, size = np.random.default_rng(2), 300
    sample = sample_of(duels(size, drawn(rng, size, 9000, tie=0.2)), "davidson")
    model, slopes, products = Model(sample), list[int](), list[int]()
    start = model.fit(sample.counts[:, :, None]).values[:, 0]
    first, second = Model._slopes, Model._product
    monkeypatch.setattr(Model, "_slopes", lambda *args: (slopes.append(1), first(*args))[1])
    monkeypatch.setattr(Model, "_product", lambda *args: (products.append(1), second(*args))[1])
    rounds = rng.multinomial(9000, np.ravel(sample.counts) / 9000, size=8).T.reshape(3, -1, 8)
    fit = model.fit(rounds.astype(float), start, 5e-3)
    assert fit.converged.all() and len(slopes) <= 6 and len(products) <= 20
    exact = model.fit(rounds.astype(float))
    assert fit.values == pytest.approx(exact.values, abs=1e-3)
