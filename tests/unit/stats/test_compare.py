"""Comparisons of variants and of candidates: against a naive twin, and where there is little."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from evenhand.errors import UsageError
from evenhand.stats.compare import Change, changes, compare, decide_rows
from evenhand.stats.layout import lay_out, lay_out_runs
from tests.cases import cases
from tests.sentences import keys, refused
from tests.unit.stats.tables import ballots, compare_scores, compare_votes, scores_of, votes

ID = ("run_id", "prompt_variant", "question_id")
VS = ("v1", "v2")
OPEN = "not enough evidence"
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "question_id": st.integers(0, 5),
            "run_id": st.sampled_from("ab"),
            "prompt_variant": st.sampled_from(["v1", "v2", "v3"]),
            "judge": st.sampled_from("jk"),
            "repeat": st.integers(0, 1),
            "scores": st.none()
            | st.fixed_dictionaries({"true": st.integers(1, 5), "kind": st.integers(1, 5)}),
        }
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda row: tuple(value for name, value in row.items() if name != "scores"),
)


def sample(question, variant, *scores, **more):
    """A judgment with scores on `true` and `kind`, or on `true` alone; None is a failure."""
    given = None if scores == (None,) else dict(zip(("true", "kind"), scores, strict=False))
    return {"question_id": question, "prompt_variant": variant, "scores": given, **more}


def both(questions, score, **more):
    """A judgment of either variant on each question; `score` is told the question and if it is
    of the second."""
    return [sample(q, v, score(q, v == "v2"), **more) for q in range(questions) for v in VS]


def compared(rows, units=(), planned=1, **options):
    found = compare_scores(scores_of(rows, units=units, planned=planned), **options)
    return found, found.row("v2", "true")


def note_of(found, key):
    """Return the values of the one note with this key."""
    (note,) = (note for note in found.notes if note.key == key)
    return note.values


def check_finite(found):
    json.dumps(found.json(), allow_nan=False)


def naive(rows, variant, baseline):
    """Differences, those by question, and bounds of one variant on `true`, in plain loops."""
    cells, there, planned = {}, set(), 4
    for row in rows:
        key = (row["run_id"], row["question_id"]), row["prompt_variant"]
        there.add(key)
        if row["scores"]:
            cells.setdefault(key, []).append(row["scores"]["true"])
    gaps, low, high, questions = [], {}, {}, {}
    for unit in {unit for unit, _ in there}:
        pair = (unit, variant), (unit, baseline)
        if all(one in cells for one in pair):
            gaps.append(np.mean(cells[pair[0]]) - np.mean(cells[pair[1]]))
            questions.setdefault(unit[1], []).append(gaps[-1])
        if there.issuperset(pair):
            ours, theirs = (
                [(sum(got) + (planned - len(got)) * end) / planned for end in (1, 5)]
                for got in (cells.get(one, []) for one in pair)
            )
            low.setdefault(unit[1], []).append(ours[0] - theirs[1])
            high.setdefault(unit[1], []).append(ours[1] - theirs[0])
    means = [[np.mean(one) for one in each.values()] for each in (questions, low, high)]
    return gaps, *means


@given(ROWS)
def test_rows_and_counts_are_those_of_plain_loops(rows):
    table = scores_of(rows, id_fields=ID, planned=4)
    found = compare_scores(table, baseline=None)
    check_finite(found)
    assert found.baseline == rows[0]["prompt_variant"]
    assert found.pair_by == ("run_id", "question_id")
    for name, count in found.missing.items():
        own = [row for row in rows if row["prompt_variant"] == name]
        scored = sum(row["scores"] is not None for row in own)
        assert count.units == len({(row["run_id"], row["question_id"]) for row in own})
        assert (count.scored, count.failed) == (scored, len(own) - scored)
        assert count.planned == 4 * count.units == len(own) + count.pending
    for variant in {row["prompt_variant"] for row in rows} - {found.baseline}:
        gaps, by_question, low, high = naive(rows, variant, found.baseline)
        row = found.row(variant, "true")
        if not table.dimensions:
            assert row is None
            continue
        assert (row.n, row.clusters) == (len(gaps), len(by_question))
        if row.n:
            assert row.difference == pytest.approx(np.mean(by_question))
            assert row.difference == pytest.approx(row.mean - row.baseline_mean)
        if row.effect is not None:
            assert row.effect == pytest.approx(np.mean(gaps) / np.std(gaps, ddof=1))
        assert (row.bounds is None) == (not low)
        if row.bounds:
            assert row.bounds == pytest.approx((np.mean(low), np.mean(high)))


def test_several_fields_make_combinations_in_order_of_appearance():
    rows = [
        sample(q, v, 3, model=m) for q in range(3) for m in ("big", "small") for v in ("v2", "v1")
    ]
    table = scores_of(rows, id_fields=("model", "prompt_variant", "question_id"))
    found = compare_scores(table, ["meta.model", "prompt_variant"], None)
    assert (found.by, found.baseline) == ("model / prompt_variant", "big / v2")
    overall = [row.variant for row in found.rows if row.dimension == "overall"]
    assert overall == ["big / v1", "small / v2", "small / v1"]
    assert note_of(found, "notes.no_baseline") == {"variant": "big / v2"}


def test_pair_by_beats_the_fields_of_the_id():
    rows = [sample(q, v, 2 + i, run_id=f"run of {v}") for q in range(6) for i, v in enumerate(VS)]
    table = scores_of(rows, id_fields=ID)
    apart, joined = compare_scores(table), compare_scores(table, pair_by=["meta.question_id"])
    assert {row.n for row in apart.rows} == {0}
    assert "run_id" in note_of(apart, "notes.share_nothing")["fields"]
    assert {row.n for row in joined.rows} == {6}


def test_an_explicit_id_pairs_on_the_question_or_asks_for_a_field():
    rows = [sample(q, v, 3, unit=f"{q}{v}") for q in range(4) for v in VS]
    found = compare_scores(scores_of(rows, id_fields=("unit",)))
    assert (found.pair_by, found.rows[0].n) == (("question_id",), 4)
    for row in rows:
        row["topic_no"] = row.pop("question_id")
    with refused(UsageError, "stats.unpaired", "topic_no"):
        compare_scores(scores_of(rows, id_fields=("unit",)))


def test_a_unit_that_is_part_of_its_key_is_the_question():
    rows = [
        {"unit": q, "model": m, "turn": t, "scores": {"score": 5 + (m == "b")}}
        for q, m, t in product(range(7), "ab", (1, 2))
    ]
    found = compare_scores(scores_of(rows, id_fields=("unit", "model", "turn")), "model", "a")
    assert found.pair_by == ("unit", "turn")
    assert (found.rows[0].n, found.rows[0].clusters) == (14, 7)


@cases
def test_names_that_nobody_has_are_errors(options, key, advice):
    with refused(UsageError, key, advice):
        compared(both(3, lambda q, new: 3), **options)


def test_a_family_is_adjusted_once_for_all_variants_and_dimensions():
    draw = np.random.default_rng(2)
    rows = [
        sample(q, v, *np.clip(draw.integers(2, 5, 2) + (v == "v3"), 1, 5))
        for q in range(40)
        for v in (*VS, "v3")
    ]
    found, other = compared(rows)
    family, overall = found.rows[:-2], found.rows[-2:]
    assert {row.dimension for row in overall} == {"overall"}
    for rows_of_family in (family, overall):
        least = min(row.p for row in rows_of_family)
        adjusted = min(row.p_adjusted for row in rows_of_family)
        assert adjusted == pytest.approx(len(rows_of_family) * least)
    best = min(overall, key=lambda row: row.p)
    assert (best.outcome, best.more_questions) == ("better", None)
    assert other.outcome == OPEN and other.more_questions


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_units_decide_nothing_and_say_why(n):
    units = [{"question_id": 99, "prompt_variant": v} for v in VS]
    found, row = compared(both(n, lambda q, new: 3 + new), units)
    check_finite(found)
    assert {row.outcome for row in found.rows} == {OPEN}
    if n == 0:
        assert [row.dimension for row in found.rows] == ["overall"]
        assert "notes.because_nothing_shared" in keys(found.notes)
    elif n == 1:
        assert all(row.low < 0 < row.difference < row.high for row in found.rows)
        assert row.error is None and "notes.because_one_question" in keys(found.notes)
    else:
        assert row.low < 1 < row.high


def test_eight_graded_tasks_that_all_improve_are_better_by_their_interval_too():
    gaps = [0.05, 0.08, 0.09, 0.11, 0.12, 0.14, 0.17, 0.2]
    rows = both(8, lambda q, new: 0.5 + new * gaps[q])
    row = compare_scores(scores_of(rows, scale=(0.0, 1.0))).row("v2", "true")
    plain = ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert row.outcome == "better"
    assert (row.low, row.high) == pytest.approx((plain.low, plain.high), abs=0.03)


def test_what_is_decided_alone_may_be_open_in_its_family():
    _, row = compared(both(12, lambda q, new: 3 + new * (2 - q % 2)))
    row = replace(row, p=0.047, outcome=OPEN)
    alone, beside = (decide_rows([row] * number, 0.95)[0] for number in (1, 2))
    assert (alone.outcome, alone.more_questions) == ("better", None)
    assert (beside.outcome, beside.more_questions) == (OPEN, "a few dozen")


@cases
def test_the_interval_decides_and_within_the_margin_variants_are_the_same(step, outcome, margin):
    found, row = compared(both(30, lambda q, new: 3 + new * step[q % 3]), margin=margin)
    assert (row.outcome, found.json()["margin"]) == (outcome, margin)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_one_question_alone_decides_nothing_whatever_p(level):
    rows = [row for r in range(9) for row in both(1, lambda q, new: 3 + new, run_id=r)]
    row, _ = compare_scores(scores_of(rows, id_fields=ID), level=level).rows
    assert (row.n, row.clusters, row.p, row.outcome) == (9, 1, None, OPEN)
    assert decide_rows([replace(row, p=1e-9)], level)[0].outcome == OPEN


@pytest.mark.parametrize("n", [1, 9])
def test_scores_too_large_to_compute_with_give_words(n):
    found, row = compared(both(n, lambda q, new: -1e308 if new else 1e308))
    check_finite(found)
    assert (row.difference, row.p, row.low, row.n, row.outcome) == (None, None, None, n, OPEN)
    assert "notes.because_too_large" in keys(found.notes)


def test_constant_scores_leave_an_interval_and_nothing_to_hope_for():
    _, row = compared(both(20, lambda q, new: 4))
    assert -1 < row.low < 0 == row.difference < row.high < 1
    assert (row.p, row.effect, row.more_questions) == (1.0, None, "more than is practical")


def test_one_variant_alone_and_units_without_one():
    rows = [sample(q, "v1", 3) for q in range(3)] + [{"question_id": 7, "scores": {"true": 2}}]
    found, _ = compared(rows)
    assert (found.rows, found.means[0].n) == ((), 3)
    assert note_of(found, "notes.no_variant") == {"n": 1}
    assert "notes.one_variant" in keys(found.notes)


def test_missing_judgments_are_warned_of():
    rows = [sample(q, "v1", 3) for q in range(20)]
    rows += [sample(q, "v2", 4 if q < 14 else None) for q in range(18)]
    found, row = compared(rows, [{"question_id": q, "prompt_variant": "v2"} for q in (18, 19)])
    assert (found.missing["v2"].pending, row.n, row.outcome) == (2, 14, "better")
    assert note_of(found, "notes.missing") == {"variant": "v2", "share": 0.3, "base": 0.0}


def test_scores_that_a_judgment_leaves_out_are_counted_by_dimension():
    rows = [sample(q, v, 3, 4) for q in range(9) for v in VS]
    found, _ = compared([*rows, sample(9, "v1", 3, 4), sample(9, "v2", 3, float("nan"))])
    count = found.missing["v2"]
    assert (count.scored, count.failed, count.incomplete) == (10, 0, 1)
    assert (count.missing_scores, found.missing["v1"].missing_scores) == ({"kind": 1}, {})
    true, kind, overall = found.rows
    assert (true.n, kind.n, overall.n) == (10, 9, 9)
    assert (true.bounds, kind.bounds) == ((0.0, 0.0), pytest.approx((-0.3, 0.1)))


def test_it_is_said_when_what_is_missing_could_turn_the_result():
    found, _ = compared(both(24, lambda q, new: 3 + new if q < 12 else None))
    assert [row.outcome for row in found.rows] == ["better", "better"]
    assert keys(found.notes).count("notes.fragile_better") == 2
    assert "notes.missing" not in keys(found.notes)


def test_one_of_several_judges_can_be_asked_for():
    rows = [row for j in "jk" for row in both(6, lambda q, new, j=j: 2 + new * (j > "j"), judge=j)]
    found, row = compared(rows, planned=2, judge="k")
    assert (row.difference, found.missing["v2"].planned, found.missing["v2"].pending) == (1, 6, 0)


def test_tags_and_critical_fails_are_rates_where_less_is_better():
    rows = [
        sample(q, v, 3, tags=("B",) if v == "v2" and q < 12 else (), critical=q == 0)
        for q in range(20)
        for v in VS
    ]
    # A failed judgment counts in no rate.
    found, _ = compared([*rows, sample(99, "v1", 3), sample(99, "v2", None)])
    tagged, critical = found.tags
    assert (tagged.dimension, tagged.mean, tagged.baseline_mean, tagged.n) == ("B", 0.6, 0.0, 20)
    assert tagged.outcome == "worse" and tagged.p_adjusted == pytest.approx(2 * tagged.p)
    assert (critical.dimension, critical.difference) == ("critical fail", 0.0)
    said = found.json()["tags"][0]
    assert (said["tag"], said["rate"], said["baseline_rate"]) == ("B", 0.6, 0.0)


def test_who_could_give_no_tags_is_not_compared_by_them():
    judged = scores_of([sample(q, "v1", 3, 4, tags="A", critical=True) for q in range(9)])
    scores = scores_of([sample(q, "v1", 4, 4) for q in range(9)])
    labels = replace(
        scores, measures=scores.measures[:3], scales=scores.scales[:3], values=scores.values[:, :3]
    )
    told, untold = (
        compare(lay_out_runs(("judge", "people"), (judged, table), pair_by=["question_id"]))
        for table in (scores, labels)
    )
    assert [row.dimension for row in told.tags] == ["A", "critical fail"]
    assert (untold.tags, len(untold.rows)) == ((), len(told.rows))


# Votes


def test_votes_are_win_rates_against_the_baseline_whatever_the_order():
    rows = votes("<" * 6, "old", "new") + votes(">>><", "new", "old", 6)
    rows += votes(["=", "?", ""], "old", "new", 10)
    found = compare_votes(ballots(rows), "old")
    (row,) = found.rows
    assert (row.variant, row.dimension, row.n, row.clusters) == ("new", "overall", 12, 12)
    figures = (row.mean, row.baseline_mean, row.difference, *row.bounds)
    assert figures == pytest.approx((10 / 12, 2 / 12, 8 / 12, 2 * 10 / 13 - 1, 2 * 11 / 13 - 1))
    assert (row.low, row.high) == pytest.approx((2 * row.mean_low - 1, 2 * row.mean_high - 1))
    assert row.p < 0.05 and row.outcome == "better" and found.missing["new"].failed == 1


def test_contradicted_verdicts_beside_the_baseline_are_counted():
    rows = votes("??>>>>") + votes("??????", "b", "c")  # those without the baseline are not
    found = compare_votes(ballots(rows), "a")
    assert note_of(found, "notes.conflicts") == {"n": 2, "rule": "uncertain"}


def test_judges_of_one_pair_count_once_and_pairs_of_a_topic_are_one_cluster():
    rows = [(topic, "a", "b", sign) for topic in range(8) for sign in "<<><"]
    table = ballots(rows, judges="ijkl" * 8, per_pair=4)
    (row,) = compare_votes(table, "a").rows
    (alone,) = compare_votes(table, "a", judge="k").rows
    assert (row.n, row.clusters, row.mean) == (8, 8, 0.75)
    assert (alone.mean, alone.outcome) == (0.0, "worse")
    twice = [(topic // 2, *row) for topic, *row in votes("<" * 8)]
    assert compare_votes(ballots(twice), "a").rows[0].clusters == 4


def test_criteria_have_rows_of_their_own_and_a_family_of_their_own():
    marks = {"C1": "<" * 10, "C2": ">" + "=" * 9}
    first, second, overall = compare_votes(ballots(votes("<" * 10), marks=marks), "a").rows
    assert [row.dimension for row in (first, second, overall)] == ["C1", "C2", "overall"]
    assert first.p_adjusted == pytest.approx(2 * first.p)
    assert overall.p_adjusted == overall.p == first.p
    assert (second.mean, second.outcome) == (pytest.approx(0.45), OPEN)


def test_who_never_met_the_baseline_is_said_and_a_candidate_against_itself_left_out():
    table = ballots([(0, "a", "b", "="), (1, "b", "c", ">"), (2, "a", "a", ">")])
    found = compare_votes(table, "a")
    assert [row.variant for row in found.rows] == ["b"]
    assert note_of(found, "notes.never_compared")["candidates"].names == ["c"]
    with refused(UsageError, "stats.no_candidate"):
        compare_votes(table, "d")
    with refused(UsageError, "stats.nothing_judged"):
        compare_votes(ballots([]))


@pytest.mark.parametrize("signs", [[""], "=", "==", ">>"])
def test_few_votes_and_all_ties_give_words(signs):
    found = compare_votes(ballots(votes(signs)), "a")
    check_finite(found)
    assert found.rows[0].outcome == OPEN and found.notes


@pytest.mark.parametrize("topics", [2, 20])
def test_thirds_that_cancel_out_are_no_difference(topics):
    """Three judges, of whom one is for `new` on every other topic and two on the others."""
    signs = "><<>><" * (topics // 2)
    rows = [(place // 3, "new", "old", sign) for place, sign in enumerate(signs)]
    table = ballots(rows, judges="jkl" * topics, marks={"C3": signs}, per_pair=3)
    for row in compare_votes(table, "old").rows:
        assert (row.difference, row.effect, row.bounds, row.p) == (0, 0, (0, 0), 1)
        assert (row.outcome, row.more_questions) == (OPEN, "more than is practical")


# The changes that are largest

NUMBER = 3


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(1, 5)),
        min_size=1,
        max_size=25,
    )
)
def test_the_scores_that_changed_most_are_those_of_all_changes_sorted(rows):
    table = scores_of(
        [{"prompt_variant": v, "question_id": q, "scores": {"clear": s}} for v, q, s in rows]
    )
    baseline = rows[0][0]
    means = {(v, q): np.mean([s for *key, s in rows if key == [v, q]]).item() for v, q, _ in rows}
    every = [
        Change(v, mean, means[baseline, q], (f"{v}/{q}",), (f"{baseline}/{q}",))
        for (v, q), mean in means.items()
        if v != baseline and (baseline, q) in means
    ]
    found = changes(lay_out(table, ["prompt_variant"], baseline), NUMBER)
    sorted_ones = sorted(change.difference for change in every)
    worse, better = ([d for d in sorted_ones if side * d > 0] for side in (-1, 1))
    assert (found.worse, found.better, found.n) == (len(worse), len(better), len(every))
    assert [change.difference for change in found.worst] == worse[:NUMBER]
    assert [change.difference for change in found.best] == better[::-1][:NUMBER]
    assert {*found.worst, *found.best} <= set(every)


@given(st.lists(st.tuples(st.sampled_from("bc"), st.sampled_from("><=")), min_size=1))
def test_the_votes_that_were_lost_and_won_come_in_their_order(rows):
    table = ballots([(number, "a", *row) for number, row in enumerate(rows)])
    found = changes(lay_out(table, (), "a"), NUMBER)
    lost, won = (
        [
            (name, f"p{number}")
            for name in "bc"
            for number, row in enumerate(rows)
            if row == (name, sign)
        ]
        for sign in "><"
    )
    assert (found.worse, found.better, found.n) == (len(lost), len(won), len(rows))
    assert [(c.variant, c.units[0]) for c in found.worst] == lost[:NUMBER]
    assert [(c.variant, c.units[0]) for c in found.best] == won[:NUMBER]
