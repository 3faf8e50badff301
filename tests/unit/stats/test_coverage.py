"""How often intervals hold the truth and tests err, by simulation. The short form has few rounds;
`--long` (or EVENHAND_LONG=1) has it in full, and `-s` shows the shares."""

from __future__ import annotations

import os
from math import sqrt

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.stats.bounded import rejects
from evenhand.stats.rating import rate
from evenhand.stats.sequential import Betting
from evenhand.stats.within import interaction
from tests.unit.stats.coverage import (
    AGREEMENT,
    CORRECTED,
    DIFFERENCES,
    LENGTHS,
    LIMITS,
    MEANS,
    PASS_RATES,
    RATINGS,
    SHARES,
    WIN_RATES,
    Case,
    simulate,
    voted,
)
from tests.unit.stats.error_tables import best_bets, p_values, samples
from tests.unit.stats.error_tables import main as print_tables
from tests.unit.stats.laws import CLEAR, EQUAL, HARMLESS, WORSE, ties
from tests.unit.stats.sequences import decisions
from tests.unit.stats.tables import ballots, compare_scores, compare_votes, scores_of, votes
from tests.unit.stats.test_gate import gate, gate_pairs, scores

pytestmark = pytest.mark.slow

LONG = bool(os.environ.get("EVENHAND_LONG"))


def slack(share, rounds):
    """Three standard errors of a share in so many rounds: beyond is failure beyond doubt."""
    return 3 * sqrt(share * (1 - share) / rounds)


def compared(rng, topics):
    """Questions with one to four units each, two judges, two repeats, a tenth missing, where v2 is
    half a point better; and topics with unequal numbers of pairs, where b wins 0.6 with ties."""
    rows, pairs = [], []
    for q in range(topics):
        common, lift, lean = rng.normal(2.6, 0.4), rng.normal(0.5, 0.3), rng.choice([-0.2, 0, 0.2])
        for run, v in np.ndindex(rng.integers(1, 5), 2):
            true = common + v * lift + rng.normal(0, 0.2)
            key = {"question_id": q, "prompt_variant": f"v{v + 1}", "run_id": run}
            for judge, repeat in np.ndindex(2, 2):
                score = float(true + 0.2 * judge + rng.normal(0, 0.2))
                given = None if rng.random() < 0.1 else {"true": score}
                rows.append(key | {"judge": f"j{judge}", "repeat": repeat, "scores": given})
        shares = [0.3 + lean, 0.2, 0.5 - lean]
        pairs += [(q, "a", "b", str(s)) for s in rng.choice([*">=<"], rng.integers(1, 4), p=shares)]
    fields = ("run_id", "prompt_variant", "question_id")
    scored = compare_scores(scores_of(rows, id_fields=fields, planned=4)).row("v2", "true")
    return [scored, compare_votes(ballots(pairs), "a").rows[0]]


CASES = {
    f"{family}: {name}": case
    for family, cases in {
        "mean": MEANS,
        "difference": DIFFERENCES,
        "share": SHARES,
        "win rate": WIN_RATES if LONG else dict([*WIN_RATES.items()][::5]),
        "agreement": AGREEMENT,
        "corrected": CORRECTED,
        "length": LENGTHS,
        "rating": RATINGS,
        "compare": {"from tables": Case(compared, [0.5, 0.2], "", {20: 0.92}, 40)},
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, id=f"{name}-{size}")
        for name, case in CASES.items()
        for size in case.least
        if LONG or size == 20 or not case.is_slow
    ],
)
def test_intervals_hold_the_truth(name, size):
    case, least = CASES[name], CASES[name].least[size]
    rounds = 2000 if LONG else max(30, case.rounds if size < 300 else case.rounds // 3)
    shares, widths = simulate(case, size, rounds)
    print(f"{name}, {size}: {(100 * shares).round(1).tolist()} %, wide {widths.round(3).tolist()}")
    if size < 300 and "breakdowns, fine" in name:
        least = 0.7
    assert (shares >= least - slack(least, rounds * 0.75)).all()


def test_rare_breakdowns_of_fine_scores_are_not_seen_in_twenty_questions():
    (case,) = LIMITS.values()
    assert simulate(case, 20, 200)[0] < 0.9


@pytest.mark.parametrize("name", PASS_RATES)
def test_corrected_pass_rates_are_narrower_than_those_of_the_labels(name):
    _, (corrected, labels) = simulate(PASS_RATES[name], 40, 30)
    assert corrected < labels


@pytest.mark.parametrize("topics", [6, 9, 12, 17, 20, 60, 120])
def test_intervals_of_two_candidates_hold_the_truth_and_go_along_with_the_test(topics):
    """Exactly: every number of wins there can be, with its chance."""
    counts = np.arange(topics + 1)
    found = [
        compare_votes(ballots(votes("<" * wins + ">" * (topics - wins))), "a").rows[0]
        for wins in counts
    ]
    for row in found:
        assert (row.p <= 0.05) == (not row.low <= 0 <= row.high)
    for chance in np.linspace(0.5, 0.97, 48):
        held = np.array([row.mean_low - 1e-12 <= chance <= row.mean_high + 1e-12 for row in found])
        least = 0.9 if topics < 60 else 0.93
        assert binom.pmf(counts, topics, chance)[held].sum() > least


def test_ratings_of_many_of_whom_few_meet_often_keep_the_true_distances():
    """Sixty candidates, about two votes for any two."""
    rng, truth = np.random.default_rng(29), np.linspace(-2, 2, 60)
    held, slopes = [], []
    for _ in range(4):
        pairs = rng.integers(0, 60, (4000, 2))
        first, second = pairs[pairs[:, 0] != pairs[:, 1]].T
        (found,) = rate(voted(rng, first, second, 10, truth, 0.0))
        values, low, high = found.intervals(0.95)
        held.append((low <= truth) & (truth <= high))
        slopes.append(np.polyfit(truth, values, 1)[0])
    assert np.mean(held) > 0.91
    assert 0.95 < np.mean(slopes) < 1.1


def test_sequential_intervals_hold_the_mean_at_every_look():
    rng, missed, rounds = np.random.default_rng(11), 0, 1000 if LONG else 20
    for _ in range(rounds):
        betting, inside = Betting(0.05, [64]), True
        for number, value in enumerate(rng.choice([0.0, 0.5, 1.0], p=[0.2, 0.2, 0.6], size=64)):
            betting.add(float(value))
            if number in (7, 15, 31, 63):
                low, high = betting.interval()
                inside &= low <= 0.7 <= high
        missed += not inside
    assert missed <= rounds * (0.05 + slack(0.05, rounds))


# Errors where nothing is to be found


@pytest.mark.parametrize("name", EQUAL)
def test_compare_decides_equal_means_no_more_often_than_it_may(name):
    rounds, most = 2000 if LONG else 150, 0.15 if "fine" in name else 0.07
    wrong = np.mean(p_values(samples(EQUAL[name], 60, rounds)) <= 0.05)
    assert wrong <= most + slack(most, rounds)


@pytest.mark.parametrize("questions", [20, 60, 300])
@pytest.mark.parametrize("name", WORSE)
def test_bounded_tests_reject_a_true_mean_at_most_as_often_as_said(name, questions):
    law, rounds = WORSE[name], 20_000 if LONG else 30_000 // questions
    values = samples(law, questions, rounds)
    for side in (1, -1):
        wrong = rejects(side * (values - law.mean), 1 + side * law.mean, 0.025)
        assert np.mean(wrong) <= 0.025 + slack(0.025, rounds)


CHANCES = {
    "wins and losses": ([0, 1], [0.5, 0.5]),
    "few great losses": ([0.55, 0], [10 / 11, 1 / 11]),
    "very few great losses": ([0.5125, 0], [40 / 41, 1 / 41]),
    "few great wins": ([0.375, 1], [0.8, 0.2]),
}


def null_runs(name, rows, length):
    """Sequences in which nothing is to be found: their mean is one half."""
    rng = np.random.default_rng(7)
    if name in EQUAL:
        return (1 + EQUAL[name].sample(rng, (rows, length))) / 2
    if name == "a finite set":
        return rng.permuted(np.tile(np.arange(length) % 2 * 1.0, (rows, 1)), axis=1)
    values, odds = CHANCES[name]
    return rng.choice(np.array(values, dtype=float), p=odds, size=(rows, length))


@pytest.mark.parametrize(
    ("name", "length", "alpha"),
    [
        *((name, 150, 0.05) for name in (*CHANCES, "a finite set")),
        *((name, length, 0.05) for name in EQUAL for length in (20, 60, 300)),
        *(
            (name, length, alpha)
            for name in ("wins and losses", "few great losses")
            for length in (5, 20, 300)
            for alpha in (0.01, 0.2)
        ),
    ],
)
def test_stopping_early_errs_at_most_as_often_as_said(name, length, alpha):
    rows = 20_000 if LONG else min(4000, 450_000 // length)
    sides, _ = decisions(null_runs(name, rows, length), alpha)
    assert np.mean(sides != 0) <= alpha + slack(alpha, rows)
    assert max(np.mean(sides > 0), np.mean(sides < 0)) <= alpha / 2 + slack(alpha / 2, rows)


@pytest.mark.parametrize("sizes", [(8, 8), (5, 30), (6, 6, 20)])
@pytest.mark.parametrize("is_shared", [True, False])
def test_interactions_err_about_as_often_as_said(sizes, is_shared):
    """Questions have a difference of their own, which the test must not take for one of values."""
    rng, hits, rounds = np.random.default_rng(11), 0, 400
    value = np.repeat(np.arange(len(sizes)), sizes)
    questions = np.concatenate([np.arange(size) for size in sizes])
    for _ in range(rounds):
        gaps = rng.normal(size=value.size) + is_shared * rng.normal(size=max(sizes))[questions]
        told = questions if is_shared else np.arange(gaps.size)
        p = interaction(gaps, told, value, len(sizes)).p
        hits += p is not None and p <= 0.05
    assert hits <= binom.ppf(0.999, rounds, 0.065)


def near_the_ceiling(rng, baseline):
    signs = ["<" if won else ">" for won in rng.random(60) < 0.95]
    return gate_pairs(signs, min_win_rate=0.95, candidate="new", **baseline)


def of_gaps(gaps, **asked):
    """The gate of two variants whose scores, from 0 to 1, differ by just so much."""
    table = scores(v1=(0.5 - gaps / 2).tolist(), v2=(0.5 + gaps / 2).tolist(), scale=(0.0, 1.0))
    return gate(table, by=("prompt_variant",), baseline="v1", **asked)


def of_mean(values, scale, truth):
    return gate(scores(v=values.tolist(), scale=scale), min_mean=truth)


def of_law(name, questions):
    law = WORSE[name]
    return lambda rng: of_gaps(law.sample(rng, (1, questions))[0], no_worse_than=-law.mean)


GATES = {
    "5 % breakdowns": of_law("5 % breakdowns, fine", 20),
    "2 % breakdowns": of_law("2 % breakdowns, fine", 60),
    "equal means": lambda rng: of_gaps(
        EQUAL["5 % breakdowns, fine"].sample(rng, (1, 20))[0], better=True
    ),
    "a mean": lambda rng: of_mean(rng.integers(1, 6, 40) * 1.0, (1.0, 5.0), 0.5),
    "a mean with breakdowns": lambda rng: of_mean(
        np.clip(rng.normal(0.9, 0.03, 20) - 0.85 * (rng.random(20) < 0.05), 0, 1),
        (0.0, 1.0),
        0.9 - 0.05 * 0.85,
    ),
    "a win rate": lambda rng: near_the_ceiling(rng, {}),
    "a win rate against a baseline": lambda rng: near_the_ceiling(rng, {"baseline": "old"}),
}


@pytest.mark.parametrize("name", GATES)
def test_a_gate_at_its_threshold_is_seldom_met(name):
    rng, rounds = np.random.default_rng(5), 1000 if LONG else 25
    outcomes = [GATES[name](rng).outcome for _ in range(rounds)]
    for wrong in ("better", "worse"):
        assert outcomes.count(wrong) / rounds <= 0.03 + slack(0.03, rounds)


# The tables that the documentation shows


@pytest.mark.parametrize(
    ("name", "rows"),
    [("compare", len(EQUAL) + len(WORSE)), ("gate", len(WORSE) + 3 * len(HARMLESS))],
)
def test_a_table_has_a_row_for_every_law(name, rows, capsys):
    print_tables([name], rounds=8)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    # Two tables, each with a line of columns.
    assert len(lines) == rows + 2 and "nan" not in "".join(lines)


@pytest.mark.parametrize("laws", [EQUAL, WORSE, HARMLESS, CLEAR])
def test_a_law_has_the_mean_that_it_names_and_stays_on_its_scale(laws):
    for law in laws.values():
        drawn = samples(law, 400, 100)
        assert drawn.mean() == pytest.approx(law.mean, abs=4 * drawn.std() / drawn.size**0.5)
        assert np.abs(drawn).max() <= 1


def test_no_bets_decide_more_often_than_the_best():
    # Five of five wins double a stake five times, which is not forty times; six of six are.
    assert [best_bets(ties(1.0, 0.0), number, points=400) for number in (5, 6)] == [0.0, 1.0]
    sides, after = decisions((1 + samples(CLEAR["Likert"], 20, 2000)) / 2, 0.05)
    best = best_bets(CLEAR["Likert"], 20, goal=2 / (0.3 * 0.05), points=1200)
    by_bets = np.mean((sides > 0) & (after < 20))
    # All values together, at their end, decide what no bets could.
    assert by_bets < best + 0.02 < np.mean(sides > 0)
