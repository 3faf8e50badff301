"""Comparisons of variants: against a naive twin, under the null, and where there is little."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from evenhand.errors import UsageError
from evenhand.stats.compare import compare, decide_rows
from evenhand.stats.comparison import Comparison
from evenhand.stats.layout import lay_out_runs
from tests.unit.stats.score_tables import compare_scores, scores_of

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "question_id": st.integers(0, 5),
            "run_id": st.sampled_from(["a", "b"]),
            "prompt_variant": st.sampled_from(["v1", "v2", "v3"]),
            "judge": st.sampled_from(["j", "k"]),
            "repeat": st.integers(0, 1),
            "scores": st.none()
            | st.fixed_dictionaries({"true": st.integers(1, 5), "kind": st.integers(1, 5)}),
        }
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda r: (
        r["question_id"],
        r["run_id"],
        r["prompt_variant"],
        r["judge"],
        r["repeat"],
    ),
)
ID = ("run_id", "prompt_variant", "question_id")
VS = ("v1", "v2")


def sample(question: object, variant: str, *scores: float | None, **more: Any) -> dict[str, Any]:
    """A judgment with scores on `true` and `kind`, or on `true` alone; None is a failure."""
    given = dict(zip(("true", "kind"), scores, strict=False)) if scores != (None,) else None
    return {"question_id": question, "prompt_variant": variant, "scores": given, **more}


def naive(rows: list[dict[str, Any]], variant: str, baseline: str) -> dict[str, Any]:
    """Difference, number and bounds of one variant on `true`, in plain loops."""
    planned = 4
    cells: dict[tuple[Any, ...], list[float]] = {}
    there: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = (row["run_id"], row["question_id"]), row["prompt_variant"]
        there[key] = there.get(key, 0) + 1
        if row["scores"] is not None:
            cells.setdefault(key, []).append(row["scores"]["true"])
    gaps, low, high = [], dict[Any, list[float]](), dict[Any, list[float]]()
    questions: dict[Any, list[float]] = {}
    for key in {key for key, _ in there}:
        pair = (key, variant), (key, baseline)
        if all(one in cells for one in pair):
            ours, theirs = (sum(cells[one]) / len(cells[one]) for one in pair)
            gaps.append(ours - theirs)
            questions.setdefault(key[1], []).append(ours - theirs)
        if all(one in there for one in pair):
            ends = [
                [(sum(got) + (planned - len(got)) * end) / planned for end in (1, 5)]
                for got in (cells.get(one, []) for one in pair)
            ]
            low.setdefault(key[1], []).append(ends[0][0] - ends[1][1])
            high.setdefault(key[1], []).append(ends[0][1] - ends[1][0])
    return {
        "gaps": gaps,
        "by_question": [np.mean(each) for each in questions.values()],
        "bounds": tuple([np.mean(one) for one in each.values()] for each in (low, high)),
    }


@given(ROWS)
def test_rows_are_what_their_naive_twin_says(rows: list[dict[str, Any]]) -> None:
    table = scores_of(rows, id_fields=ID, planned=4)
    found = compare_scores(table, "prompt_variant")
    assert found.baseline == rows[0]["prompt_variant"]
    for variant in {row["prompt_variant"] for row in rows} - {found.baseline}:
        twin = naive(rows, variant, found.baseline)
        row = found.row(variant, "true")
        if not table.dimensions:
            assert row is None
            continue
        assert row is not None and row.n == len(twin["gaps"])
        if row.n:
            assert row.difference == pytest.approx(np.mean(twin["by_question"]))
            assert row.mean is not None and row.baseline_mean is not None
            assert row.difference == pytest.approx(row.mean - row.baseline_mean)
        if row.effect is not None:
            assert row.effect == pytest.approx(np.mean(twin["gaps"]) / np.std(twin["gaps"], ddof=1))
        low, high = twin["bounds"]
        assert (row.bounds is None) == (not low)
        if row.bounds:
            assert row.bounds == pytest.approx((np.mean(low), np.mean(high)))
            assert row.bounds[0] - 1e-9 <= row.bounds[1]
    all_finite(found)


def all_finite(found: Comparison) -> None:
    """No figure is NaN or infinite, wherever it stands."""
    text = json.dumps(found.json(), allow_nan=False)
    assert text == json.dumps(json.loads(text))


@given(ROWS)
def test_what_is_planned_is_scored_failed_or_pending(rows: list[dict[str, Any]]) -> None:
    found = compare_scores(scores_of(rows, id_fields=ID, planned=4), "prompt_variant")
    for name, count in found.missing.items():
        own = [row for row in rows if row["prompt_variant"] == name]
        units = {(row["run_id"], row["question_id"]) for row in own}
        assert count.units == len(units)
        assert count.planned == 4 * len(units) == count.scored + count.failed + count.pending
        assert count.scored == sum(row["scores"] is not None for row in own)
        assert count.failed == len(own) - count.scored


def test_units_are_paired_on_their_id_and_clustered_by_question() -> None:
    rows = [
        sample(q, v, 3 + (v == "v2"), run_id=r)
        for q in range(8)
        for v in ("v1", "v2")
        for r in "xy"
    ]
    found = compare_scores(scores_of(rows, id_fields=ID), "prompt_variant", "v1")
    row = found.row("v2", "true")
    assert found.pair_by == ("run_id", "question_id")
    assert row is not None and (row.n, row.clusters, row.difference) == (16, 8, 1.0)
    assert row.p is not None and row.p < 0.05 and row.outcome == "better"


def test_pairs_are_of_equal_questions_not_of_equal_places() -> None:
    rows = [sample(q, "v1", 1 + q % 5) for q in range(10)]
    rows += [sample(q, "v2", 1 + q % 5) for q in reversed(range(10))]
    row = compare_scores(scores_of(rows), "prompt_variant", "v1").row("v2", "true")
    assert row is not None and (row.difference, row.p, row.effect) == (0.0, 1.0, None)


def test_several_fields_make_combinations_in_order_of_appearance() -> None:
    rows = [
        sample(q, v, 3, model=m) for q in range(3) for m in ("big", "small") for v in ("v2", "v1")
    ]
    table = scores_of(rows, id_fields=("model", "prompt_variant", "question_id"))
    found = compare_scores(table, ["meta.model", "prompt_variant"])
    assert found.by == "model / prompt_variant" and found.baseline == "big / v2"
    overall = [row.variant for row in found.rows if row.dimension == "overall"]
    assert overall == ["big / v1", "small / v2", "small / v1"]
    assert 'No baseline was named: "big / v2", the first variant, is taken.' in found.notes


def test_pair_by_beats_the_fields_of_the_id() -> None:
    rows = [sample(q, v, 2 + i, run_id=f"run of {v}") for q in range(6) for i, v in enumerate("ab")]
    table = scores_of(rows, id_fields=ID)
    apart = compare_scores(table, "prompt_variant")
    assert {row.n for row in apart.rows} == {0}
    assert any("share no unit" in note and "run_id" in note for note in apart.notes)
    joined = compare_scores(table, "prompt_variant", pair_by=["meta.question_id"])
    assert {row.n for row in joined.rows} == {6}


def test_an_explicit_id_pairs_on_the_question_or_asks_for_a_field() -> None:
    rows = [sample(q, v, 3, unit=f"{q}{v}") for q in range(4) for v in ("v1", "v2")]
    found = compare_scores(scores_of(rows, id_fields=("unit",)), "prompt_variant")
    assert found.pair_by == ("question_id",) and found.rows[0].n == 4
    for row in rows:
        row["topic_no"] = row.pop("question_id")
    with pytest.raises(UsageError, match="belong together") as error:
        compare_scores(scores_of(rows, id_fields=("unit",)), "prompt_variant")
    assert "--pair-by FIELD" in error.value.advice and "topic_no" in error.value.advice


def test_a_unit_that_is_part_of_its_key_is_the_question() -> None:
    rows = [
        {"unit": q, "model": m, "turn": t, "scores": {"score": 5 + (m == "b")}}
        for q in range(7)
        for m in "ab"
        for t in (1, 2)
    ]
    found = compare_scores(scores_of(rows, id_fields=("unit", "model", "turn")), "model", "a")
    assert found.pair_by == ("unit", "turn")
    assert (found.rows[0].n, found.rows[0].clusters) == (14, 7)


@pytest.mark.parametrize(
    ("by", "more", "said"),
    [
        ("promt_variant", {}, 'Did you mean "prompt_variant"'),
        ("prompt_variant", {"baseline": "v9"}, 'There are: "v1", "v2"'),
        ("prompt_variant", {"judge": "nobody"}, 'There are: "j"'),
        ("prompt_variant", {"pair_by": ["prompt_variant"]}, "Leave it out"),
        ("prompt_variant", {"pair_by": ["qestion_id"]}, 'Did you mean "question_id"'),
        ("prompt_variant", {"level": 95}, "0.95"),
    ],
)
def test_names_that_nobody_has_are_errors(by: Any, more: dict[str, Any], said: str) -> None:
    table = scores_of([sample(q, v, 3) for q in range(3) for v in ("v1", "v2")])
    with pytest.raises(UsageError) as error:
        compare_scores(table, by, **more)
    assert said in error.value.advice


def test_a_tie_heavy_family_is_adjusted_once_for_all_variants_and_dimensions() -> None:
    draw = np.random.default_rng(2)
    rows = [
        sample(q, v, *np.clip(draw.integers(2, 5, 2) + (v == "v3"), 1, 5))
        for q in range(40)
        for v in ("v1", "v2", "v3")
    ]
    found = compare_scores(scores_of(rows), "prompt_variant", "v1")
    family = [row for row in found.rows if row.dimension != "overall"]
    assert [row.dimension for row in found.rows[-2:]] == ["overall", "overall"]
    raw = sorted(row.p for row in family if row.p is not None)
    assert min(row.p_adjusted for row in family if row.p_adjusted) == pytest.approx(4 * raw[0])
    overall = [row for row in found.rows if row.dimension == "overall"]
    best = min(overall, key=lambda row: row.p or 0)
    assert best.p is not None and best.p_adjusted == pytest.approx(2 * best.p)
    assert best.outcome == "better" and best.more_questions is None
    other = found.row("v2", "true")
    assert other is not None and other.more_questions and other.outcome == "not enough evidence"


def test_worse_is_said_of_a_variant_that_loses() -> None:
    rows = [sample(q, v, 5 if v == "v1" else 2 + q % 2) for q in range(12) for v in ("v1", "v2")]
    row = compare_scores(scores_of(rows), "prompt_variant", "v1").row("v2")
    assert row is not None and row.outcome == "worse" and (row.difference or 0) < 0


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_units_give_words_and_no_numbers_that_are_none(n: int) -> None:
    rows = [sample(q, v, 3 + (v == "v2")) for q in range(n) for v in ("v1", "v2")]
    units = [{"question_id": 99, "prompt_variant": v} for v in ("v1", "v2")]
    found = compare_scores(scores_of(rows, units=units), "prompt_variant", "v1")
    all_finite(found)
    assert all(row.outcome == "not enough evidence" for row in found.rows)
    if n == 0:
        assert [row.dimension for row in found.rows] == ["overall"]
        assert any("nothing to compute" in note for note in found.notes)
    if n == 1:
        assert all(row.low < 0 < row.difference < row.high for row in found.rows)
        assert {row.error for row in found.rows} == {None}
        assert any("One question alone" in note for note in found.notes)
    if n >= 2:
        row = found.row("v2", "true")
        assert row is not None and row.low is not None and row.low < 1 < (row.high or 0)


def test_eight_graded_tasks_that_all_improve_are_better_by_their_interval_too() -> None:
    gaps = [0.05, 0.08, 0.09, 0.11, 0.12, 0.14, 0.17, 0.2]
    rows = [sample(q, v, 0.5 + (v == "v2") * gap) for q, gap in enumerate(gaps) for v in VS]
    found = compare_scores(scores_of(rows, scale=(0.0, 1.0)), "prompt_variant", "v1")
    row = found.row("v2", "true")
    assert row is not None and row.outcome == "better" and row.p is not None
    plain = ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert (row.low, row.high) == pytest.approx((plain.low, plain.high), abs=0.03)


def test_what_is_decided_alone_may_be_open_in_its_family() -> None:
    rows = [sample(q, v, 3 + (v == "v2") * (2 - q % 2)) for q in range(12) for v in VS]
    row = compare_scores(scores_of(rows), "prompt_variant", "v1").row("v2", "true")
    assert row is not None
    row = replace(row, p=0.047, outcome="not enough evidence")
    alone, beside = (decide_rows([row] * number, 0.95)[0] for number in (1, 2))
    assert (alone.outcome, alone.more_questions) == ("better", None)
    assert (beside.outcome, beside.more_questions) == ("not enough evidence", "a few dozen")


@pytest.mark.parametrize(
    ("margin", "outcome"),
    [(None, "not enough evidence"), (0.05, "not enough evidence"), (1, "same")],
)
def test_variants_are_the_same_where_their_interval_lies_within_the_margin(
    margin: float | None, outcome: str
) -> None:
    rows = [sample(q, v, 3 + (v == "v2") * (q % 3 - 1)) for q in range(30) for v in VS]
    found = compare_scores(scores_of(rows), "prompt_variant", "v1", margin=margin)
    row = found.row("v2", "true")
    assert row is not None and row.outcome == outcome
    assert (found.margin, found.json()["margin"]) == (margin, margin)


def test_a_small_difference_that_is_sure_is_the_same_within_a_margin_that_holds_it() -> None:
    rows = [sample(q, v, 3 + (v == "v2") * 0.1 * (1 + q % 3)) for q in range(30) for v in VS]
    for margin, outcome in ((0.1, "better"), (0.5, "same")):
        found = compare_scores(scores_of(rows), "prompt_variant", "v1", margin=margin)
        assert {row.outcome for row in found.rows if row.dimension == "true"} == {outcome}


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_one_question_alone_decides_nothing_whatever_p(level: float) -> None:
    rows = [sample(0, v, 3 + (v == "v2"), run_id=r) for r in range(9) for v in VS]
    found = compare_scores(scores_of(rows, id_fields=ID), "prompt_variant", "v1", level=level)
    (row, _) = found.rows
    assert (row.n, row.clusters, row.p) == (9, 1, None)
    forced = decide_rows([replace(row, p=1e-9)], level)[0]
    assert (row.outcome, forced.outcome) == ("not enough evidence", "not enough evidence")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1, 2, 9])
def test_scores_too_large_to_compute_with_give_words(n: int) -> None:
    rows = [sample(q, v, 1e308 if v == "v1" else -1e308) for q in range(n) for v in VS]
    found = compare_scores(scores_of(rows), "prompt_variant", "v1")
    all_finite(found)
    row = found.row("v2", "true")
    assert row is not None and (row.difference, row.p, row.low) == (None, None, None)
    assert (row.n, row.outcome) == (n, "not enough evidence")
    assert any("too large to compute with" in note for note in found.notes)


def test_all_ties_and_constant_scores_leave_an_interval_and_say_so() -> None:
    rows = [sample(q, v, 4) for q in range(20) for v in ("v1", "v2")]
    found = compare_scores(scores_of(rows), "prompt_variant", "v1")
    row = found.row("v2", "true")
    assert row is not None and row.low is not None and row.high is not None
    assert -1 < row.low < 0 == row.difference < row.high < 1
    assert (row.p, row.effect, row.more_questions) == (1.0, None, "more than is practical")


def test_one_variant_alone_and_units_without_one() -> None:
    rows = [sample(q, "v1", 3) for q in range(3)] + [{"question_id": 7, "scores": {"true": 2}}]
    found = compare_scores(scores_of(rows), "prompt_variant")
    assert found.rows == () and found.means[0].n == 3
    assert any("one variant only" in note for note in found.notes)
    assert "1 unit says nothing about the variant and is left out." in found.notes


def test_missing_judgments_are_counted_bounded_and_warned_of() -> None:
    rows = [sample(q, "v1", 3) for q in range(20)]
    rows += [sample(q, "v2", 4) for q in range(14)] + [sample(q, "v2", None) for q in range(14, 18)]
    units = [{"question_id": q, "prompt_variant": "v2"} for q in (18, 19)]
    found = compare_scores(scores_of(rows, units=units), "prompt_variant", "v1")
    count = found.missing["v2"]
    assert (count.units, count.planned, count.scored, count.failed, count.pending) == (
        20,
        20,
        14,
        4,
        2,
    )
    row = found.row("v2", "true")
    assert row is not None and row.n == 14
    assert row.bounds == pytest.approx(((14 - 6 * 2) / 20, (14 + 6 * 2) / 20))
    assert row.outcome == "better" and row.bounds[0] > 0
    assert any("lacks scores of 30.0 % of its units" in note for note in found.notes)


def test_scores_that_a_judgment_leaves_out_are_counted_by_dimension() -> None:
    rows = [sample(q, v, 3, 4) for q in range(9) for v in ("v1", "v2")]
    rows += [sample(9, "v1", 3, 4), sample(9, "v2", 3, float("nan"))]
    found = compare_scores(scores_of(rows), "prompt_variant", "v1")
    count = found.missing["v2"]
    assert (count.scored, count.failed, count.incomplete) == (10, 0, 1)
    assert count.missing_scores == {"kind": 1} and found.missing["v1"].missing_scores == {}
    true, kind, overall = found.rows
    assert (true.n, kind.n, overall.n) == (10, 9, 9)
    assert true.bounds == (0.0, 0.0) and kind.bounds == pytest.approx((-0.3, 0.1))


def test_it_is_said_when_what_is_missing_could_turn_the_result() -> None:
    rows = [sample(q, v, 3 + (v == "v2")) for q in range(12) for v in ("v1", "v2")]
    rows += [sample(q, v, None) for q in range(12, 24) for v in ("v1", "v2")]
    found = compare_scores(scores_of(rows), "prompt_variant", "v1")
    assert [row.outcome for row in found.rows] == ["better", "better"]
    assert sum("missing judgments could make" in note for note in found.notes) == 2
    assert not any("Missing judgments differ" in note for note in found.notes)


def test_judges_and_repeats_are_averaged_in_their_unit_and_can_be_told_apart() -> None:
    rows = [
        sample(q, v, 2 + (j == "k") + (v == "v2") * (j == "k"), judge=j, repeat=r)
        for q in range(6)
        for v in ("v1", "v2")
        for j in ("j", "k")
        for r in (0, 1)
    ]
    table = scores_of(rows, planned=4)
    both = compare_scores(table, "prompt_variant", "v1").row("v2", "true")
    assert both is not None and (both.n, both.difference) == (6, 0.5)
    alone = compare_scores(table, "prompt_variant", "v1", judge="k")
    row = alone.row("v2", "true")
    assert row is not None and row.difference == 1.0
    assert alone.missing["v2"].planned == 12 and alone.missing["v2"].pending == 0


def test_tags_and_critical_fails_are_rates_where_less_is_better() -> None:
    rows = [
        sample(q, v, 3, tags=("B",) if v == "v2" and q < 12 else (), critical=q == 0)
        for q in range(20)
        for v in ("v1", "v2")
    ]
    found = compare_scores(scores_of(rows), "prompt_variant", "v1")
    tagged, critical = found.tags
    assert (tagged.dimension, tagged.mean, tagged.baseline_mean) == ("B", 0.6, 0.0)
    assert tagged.outcome == "worse" and tagged.p_adjusted == pytest.approx(2 * (tagged.p or 0))
    assert (critical.dimension, critical.difference) == ("critical fail", 0.0)
    said = found.json()["tags"][0]
    assert (said["tag"], said["rate"], said["baseline_rate"]) == ("B", 0.6, 0.0)


def test_a_failed_judgment_has_no_tags_and_counts_in_no_rate() -> None:
    rows = [sample(q, v, 3, tags=("A",)) for q in range(4) for v in ("v1", "v2")]
    rows += [sample(9, "v2", None), sample(9, "v1", 3)]
    (row,) = compare_scores(scores_of(rows), "prompt_variant", "v1").tags
    assert (row.n, row.mean) == (4, 1.0)


def test_who_could_give_no_tags_is_not_compared_by_them() -> None:
    tagged = {"tags": "A", "critical": True}
    judged = scores_of([sample(q, "v1", 3, 4, **tagged) for q in range(9)])
    scores = scores_of([sample(q, "v1", 4, 4) for q in range(9)])
    labels = replace(
        scores, measures=scores.measures[:3], scales=scores.scales[:3], values=scores.values[:, :3]
    )
    names = ("judge", "people")
    told = [
        compare(lay_out_runs(names, (judged, table), pair_by=["question_id"]))
        for table in (scores, labels)
    ]
    assert [row.dimension for row in told[0].tags] == ["A", "critical fail"]
    assert told[1].tags == () and len(told[1].rows) == len(told[0].rows)
