"""What a comparison says of data on which its test may err: against plain loops, and by simulation:
nearly all that it wrongly decides is flagged, and hardly anything else."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.comparison.compare import compare_scores
from evenhand.stats.comparison.comparison import Comparison
from evenhand.stats.comparison.contrast import SURE, Shared, contrast
from evenhand.stats.comparison.lopsided import is_lopsided, is_narrow, undoing_share
from evenhand.stats.comparison.means import mean_difference
from evenhand.stats.comparison.paired import sign_flip
from evenhand.stats.tables import Floats
from tests.unit.stats.error_tables import flips, is_flagged
from tests.unit.stats.laws import CLEAR, EQUAL, HARMLESS, WORSE
from tests.unit.stats.score_tables import scores_of

LONG = bool(os.environ.get("EVENHAND_LONG"))


def naive(sums: list[float]) -> bool:
    """By the words of the rule, in plain loops."""
    sizes = sorted((abs(one) for one in sums if one), reverse=True)
    if len(sizes) < 8 or max(sizes) - min(sizes) <= 1e-9 * max(sizes):
        return False
    largest = sizes[: -(-len(sizes) // 20)]
    if sum(size**2 for size in largest) > 0.5 * sum(size**2 for size in sizes):
        return True
    middle = sum(sums) / len(sums)
    second = sum((one - middle) ** 2 for one in sums) / len(sums)
    third = abs(sum((one - middle) ** 3 for one in sums)) / len(sums)
    if not second:
        return False
    skewness = third / second**1.5
    return skewness > 2 and skewness / len(sums) ** 0.5 > 0.15


@given(st.lists(st.integers(-4, 4) | st.sampled_from([0, -40, 25]), min_size=1, max_size=60))
def test_lopsided_is_what_the_words_say(sums: list[int]) -> None:
    assert is_lopsided(np.array(sums, dtype=float)) == naive([float(one) for one in sums])


def test_wins_and_losses_are_not_lopsided_however_many_are_won() -> None:
    assert not is_lopsided(np.array([1.0] * 57 + [-1.0] * 3))
    assert not is_lopsided(np.array([1.0] * 9 + [-1.0] + [0.0] * 190))
    assert is_lopsided(np.array([0.05] * 57 + [-1.0] * 3))
    assert not is_lopsided(np.zeros(0)) and not is_lopsided(np.zeros(30))


@pytest.mark.parametrize(
    ("difference", "questions"), [(0.05, 20), (0.05, 60), (-0.2, 10), (0.2, 20)]
)
def test_a_share_undoes_a_difference_that_so_many_questions_need_not_show(
    difference: float, questions: int
) -> None:
    share = undoing_share(difference, 1.0, questions, 0.95)
    expected = abs(difference) / (1 + abs(difference))
    # Mixed with so many at the other end of the scale, the mean is 0.
    end = -np.sign(difference)
    assert (1 - expected) * difference + expected * end == pytest.approx(0)
    assert share == (pytest.approx(expected) if (1 - expected) ** questions > 0.05 else None)
    assert undoing_share(0.0, 1.0, questions, 0.95) is None
    assert undoing_share(0.0, 0.0, questions, 0.95) is None


def compared(gaps: Floats, **rest: Any) -> Comparison:
    """Two variants whose scores, from 0 to 1, differ by just so much."""
    rows = [
        {"prompt_variant": variant, "question_id": f"q{place}", "scores": {"d": score}}
        for place, gap in enumerate(gaps.tolist())
        for variant, score in (("v1", 0.5 - gap / 2), ("v2", 0.5 + gap / 2))
    ]
    return compare_scores(scores_of(rows, scale=(0.0, 1.0)), "prompt_variant", "v1", **rest)


def test_notes_name_the_rows_and_what_would_undo_them() -> None:
    found = compared(np.array([0.05, 0.04] * 10))
    assert found.rows[-1].outcome == "better"
    (note,) = [note for note in found.notes if "would not be" in note and "overall" in note]
    assert note == (
        'The test finds "v2" better on "overall". It would not be if it lost it all, one end of the'
        " scale against the other, on 1 question in 23; 20 questions show none of these with a"
        " chance of 41 %."
    )
    worse = compared(-np.array([0.05, 0.04] * 10)).notes
    assert any("if it won it all" in note for note in worse)
    assert not any("would not be" in note for note in compared(np.array([0.3, 0.2] * 10)).notes)


def test_lopsided_differences_are_told() -> None:
    gaps = np.array([0.04, 0.05, 0.06] * 19 + [-0.9] * 3)
    found = compared(gaps)
    (note,) = [note for note in found.notes if "Few large differences" in note]
    assert note.endswith('than it says: "v2" on d, overall.')
    assert all(row.lopsided for row in found.rows)
    assert found.json()["rows"][0]["lopsided"] is True


@pytest.mark.parametrize(
    ("name", "questions", "least"),
    [
        ("2 % breakdowns, coarse", 60, 0.95),
        ("5 % breakdowns, coarse", 20, 0.95),
        ("2 % breakdowns, fine", 20, 0.95),
        ("2 % breakdowns, fine", 60, 0.95),
        ("5 % breakdowns, fine", 20, 0.95),
        ("5 % breakdowns, fine", 60, 0.95),
        ("5 % breakdowns, fine", 300, 0.9),
        ("skewed below", 20, 0.95),
        ("skewed above", 60, 0.95),
    ],
)
def test_nearly_all_that_is_wrongly_decided_on_lopsided_data_is_flagged(
    name: str, questions: int, least: float
) -> None:
    rounds = 20_000 if LONG else 2000 if questions < 300 else 600
    gaps = EQUAL[name].sample(np.random.default_rng(questions), (rounds, questions))
    wrong = gaps[flips(gaps) <= 0.05]
    assert len(wrong) > 0.04 * rounds
    assert np.mean([is_flagged(row) for row in wrong]) >= least


@pytest.mark.parametrize("name", ["Likert", "normal, sd 0.2", "normal, sd 0.15", "wins and losses"])
def test_clear_differences_of_sixty_questions_are_hardly_ever_flagged(name: str) -> None:
    gaps = CLEAR[name].sample(np.random.default_rng(1), (400, 60))
    assert np.mean([is_flagged(row) for row in gaps]) <= 0.06


@pytest.mark.parametrize("name", HARMLESS)
def test_symmetric_differences_are_hardly_ever_lopsided(name: str) -> None:
    gaps = HARMLESS[name].sample(np.random.default_rng(1), (400, 60))
    assert np.mean([is_lopsided(row) for row in gaps]) <= 0.02


def narrow_and_missing(name: str, questions: int) -> tuple[list[bool], list[bool]]:
    """Of samples of a law: whether the interval is called narrow, and whether it misses the
    mean."""
    law, narrow, missing = WORSE[name], list[bool](), list[bool]()
    for row in law.sample(np.random.default_rng(questions), (300, questions)):
        found = mean_difference(row, np.arange(questions), (-1.0, 1.0))
        assert found.low is not None and found.high is not None
        narrow.append(is_narrow(found, 1.0, 0.95))
        missing.append(not found.low <= law.mean <= found.high)
    return narrow, missing


@pytest.mark.parametrize("name", ["2 % breakdowns, fine", "5 % breakdowns, fine"])
@pytest.mark.parametrize("questions", [20, 60])
def test_intervals_that_miss_what_is_rare_are_called_narrow(name: str, questions: int) -> None:
    narrow, missing = (np.array(flags) for flags in narrow_and_missing(name, questions))
    assert missing.sum() > 15
    assert narrow[missing].mean() > 0.95


@pytest.mark.parametrize(("name", "questions"), [("Likert", 60), ("Likert", 300), ("normal", 300)])
def test_intervals_that_reckon_with_enough_are_not(name: str, questions: int) -> None:
    assert np.mean(narrow_and_missing(name, questions)[0]) <= 0.02


def test_narrow_intervals_are_told_once_with_their_rows() -> None:
    undecided = compared(np.array([0.05, -0.05] * 10))
    (note,) = [note for note in undecided.notes if "a rare bad answer" in note]
    assert note.endswith('more questions before you rely on it: "v2" on d, overall.')
    # What is decided has a note of its own.
    assert not any("a rare bad answer" in note for note in compared(np.full(20, 0.04)).notes)
    wide = compared(np.array([0.8, -0.7, 0.1, -0.3] * 10))
    assert not any("a rare bad answer" in note for note in wide.notes)


def test_the_test_for_many_samples_at_once_is_that_of_one() -> None:
    gaps = EQUAL["Likert"].sample(np.random.default_rng(2), (8, 40))
    for many, row in zip(flips(gaps), gaps, strict=True):
        exact = sign_flip(row).p
        assert exact is not None
        assert many == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 999) + 0.002)


def test_a_row_carries_what_was_found() -> None:
    gaps = np.array([0.04, 0.05, 0.06] * 19 + [-0.9] * 3)
    shared = Shared(
        dimension="d",
        variant="v",
        ours=0.5 + gaps / 2,
        theirs=0.5 - gaps / 2,
        cluster=np.repeat(np.arange(30), 2),
        key=np.arange(60),
        ends=(0.0, 1.0),
        bounds=None,
    )
    row = contrast(shared, 0.95, 0)
    assert row.lopsided == is_lopsided(gaps.reshape(30, 2).sum(axis=1))
    assert row.undone_by == pytest.approx(undoing_share(float(gaps.mean()), 1.0, 30, 0.95))


def test_a_narrow_interval_has_one_beside_it_that_assumes_nothing() -> None:
    found = compared(np.array([0.05, -0.04] * 10))
    shown, overall = found.rows
    assert shown.narrow and overall.narrow and overall.sure_low is None
    assert shown.sure_low is not None and shown.sure_high is not None
    assert shown.low is not None and shown.sure_low < 2 * shown.low < 0 < 0.1 < shown.sure_high
    assert found.json()["rows"][0]["sure_low"] == shown.sure_low
    (note,) = [note for note in found.notes if "however scores are spread" in note]
    assert note.endswith(f'"v2" on d {shown.sure_low:+.2g} to {shown.sure_high:+.2g}.')
    wide = compared(np.array([0.8, -0.7, 0.1, -0.3] * 10))
    assert all(row.sure_low is None for row in wide.rows)
    assert not any("however scores are spread" in note for note in wide.notes)


def test_of_many_variants_a_few_have_one_and_an_unknown_scale_is_told() -> None:
    rows = [
        {
            "prompt_variant": f"v{place}",
            "question_id": str(question),
            "scores": {"d": 0.5 + place * (question % 3) * 0.001},
        }
        for place in range(14)
        for question in range(12)
    ]
    table = scores_of(rows, scale=(0.0, 1.0))
    many = compare_scores(table, "prompt_variant")
    assert sum(row.sure_low is not None for row in many.rows) == SURE
    unknown = compare_scores(replace(table, given_scale=False), "prompt_variant")
    for found, scale in ((many, ""), (unknown, " within the scores that were seen")):
        assert any(f"however scores are spread{scale}, as" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "questions"),
    [("5 % breakdowns, fine", 20), *([("2 % breakdowns, fine", 60)] if LONG else [])],
)
def test_the_interval_that_assumes_nothing_holds_where_the_narrow_one_does_not(
    name: str, questions: int
) -> None:
    law, own, sure = WORSE[name], 0, 0
    rounds = 1000 if LONG else 40
    for gaps in law.sample(np.random.default_rng(questions), (rounds, questions)):
        row = compared(gaps).rows[0]
        assert row.low is not None and row.high is not None
        low = row.low if row.sure_low is None else row.sure_low
        high = row.high if row.sure_high is None else row.sure_high
        own, sure = own + (row.low <= law.mean <= row.high), sure + (low <= law.mean <= high)
    assert own / rounds < 0.93 and sure / rounds >= 0.95
