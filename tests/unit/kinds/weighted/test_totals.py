"""Totals of a grade: exact sums, never above 100, and what becomes of a share on another scale."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import jsontext
from evenhand.kinds.protocol import LANGUAGES
from evenhand.kinds.reply import Checked
from evenhand.kinds.weighted.verdict import check_reply, rescale, total_of
from tests.unit.kinds.grading import (
    DIMENSIONS,
    FACT,
    KEYS,
    PLAIN,
    WEIGHTS,
    protocol,
    reply,
    said,
    task_of,
    under,
)

WORDS = protocol().words


amounts = st.one_of(
    st.integers(0, 100), st.decimals(0, 100, places=2).map(float), st.floats(0, 100)
)


@st.composite
def rows(draw: st.DrawFn) -> dict[str, float]:
    """Weights of one to five dimensions that add up to 100, to a tenth."""
    cuts = sorted(draw(st.lists(st.integers(0, 1000), max_size=4)))
    tenths = [b - a for a, b in zip([0, *cuts], [*cuts, 1000], strict=True)]
    return {f"d{i}": n // 10 if n % 10 == 0 else n / 10 for i, n in enumerate(tenths)}


@given(rows(), st.data())
def test_totals_are_exact_sums_of_what_was_given_and_never_above_100(
    row: dict[str, float], data: st.DataObject
) -> None:
    task = task_of(row, dict.fromkeys(row, 100))
    scores = {name: data.draw(amounts) for name in row}
    given = {
        "inferred_task_type": None,
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": dict.fromkeys(row, "x"),
        "score": scores,
        "confidence": "low",
    }
    checked = check_reply(json.dumps(given), task, WORDS)
    over = [f"score.{name}" for name, score in scores.items() if score > row[name]]
    assert [one.path for one in checked.problems] == over
    if over:
        assert checked.output is None
        return
    assert checked.output is not None
    exact = sum((Decimal(repr(float(score))) for score in scores.values()), Decimal())
    assert Decimal(repr(float(checked.output["total_score"]))) == Decimal(repr(float(exact)))
    assert 0 <= checked.output["total_score"] <= 100
    assert list(checked.output) == KEYS
    assert checked.output["weights"] == row
    assert sum(map(Decimal, map(str, row.values()))) == 100
    assert jsontext.parse(jsontext.dump(checked.output)) == checked.output


@given(rows(), st.lists(st.one_of(amounts, st.none(), st.text(), st.booleans()), max_size=5))
def test_a_critical_fail_zeroes_every_dimension(row: dict[str, float], scores: list[Any]) -> None:
    given = reply(critical_fail=True, critical_fail_reason="x", score=scores)
    given["reasoning"] = dict.fromkeys(row, "x")
    checked = check_reply(json.dumps(given), task_of(row), WORDS)
    assert checked.output is not None
    assert checked.output["score"] == dict.fromkeys(row, 0)
    assert checked.output["total_score"] == 0


def test_decimals_add_up_as_they_are_written() -> None:
    assert total_of({"a": 10.1, "b": 20.2}) == 30.3
    assert total_of({"a": 0.1, "b": 0.2, "c": 0.3}) == 0.6
    whole = total_of({"a": 10.5, "b": 20.5})
    assert (whole, type(whole)) == (31, int)
    assert total_of({"a": jsontext.parse("1E1"), "b": jsontext.parse("10.50")}) == 20.5
    assert total_of({"a": jsontext.parse("1e-99999999999999999999"), "b": 7}) == 7


@given(amounts, st.integers(1, 100), st.integers(0, 100))
def test_a_rescaled_score_keeps_its_share(score: float, old: int, new: int) -> None:
    share = min(score, old)
    assert 0 <= rescale(share, old, new) <= new
    assert rescale(old, old, new) == new
    assert rescale(0, old, new) == 0
    assert rescale(share, 0, new) == 0


def totalled(scores: tuple[float, ...], total: Any, rubric: str = FACT, **more: Any) -> Checked:
    return protocol().check(said(*scores, total_score=total, **more), under(rubric))


@pytest.mark.parametrize(
    ("scores", "total", "expected"),
    [
        ((0.93, 0.9, 0.8), 91, (55.8, 27, 8)),
        ((9, 9, 8), 89, (54, 27, 8)),
        ((50, 25, 10), 38.5, (30, 7.5, 1)),
        ((93, 90, 80), 91, (55.8, 27, 8)),
        ((1, 1, 1), 100, (60, 30, 10)),
    ],
)
def test_scores_whose_total_is_their_weighted_sum_are_rescaled_and_flagged(
    scores: tuple[float, ...], total: Any, expected: tuple[float, ...]
) -> None:
    checked = totalled(scores, total)
    assert checked.output is not None
    assert checked.output["score"] == dict(zip(DIMENSIONS, expected, strict=True))
    assert checked.output["total_score"] == sum(expected)
    assert checked.flags == ("rescaled",)
    assert "rescaled" in {one.code for one in checked.fixes}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("scores", "total", "sum_"),
    [((50, 20, 5), 79, 75), ((9, 9, 8), 91, 26), ((0, 0, 0), 40, 0), ((50, 20, 5), 10**400, 75)],
)
def test_a_total_that_is_no_sum_of_the_scores_is_asked_again(
    scores: tuple[float, ...], total: Any, sum_: int, language: str
) -> None:
    text = said(*scores, total_score=total)
    checked = protocol(language).check(text, under(FACT))
    [problem] = checked.problems
    assert (problem.code, problem.path, checked.output) == ("out_of_range", "total_score", None)
    for words in (problem.message, problem.wording):
        assert str(total)[:9] in words and str(sum_) in words
        assert '"logic_and_fact":60' in words.replace(" ", "")


@pytest.mark.parametrize(
    ("scores", "total"),
    [((9, 9, 9), 9), ((9, 9, 8), 9), ((0.9, 0.9, 0.9), 0.9), ((0.93, 0.9, 0.8), 0.91)],
)
def test_a_total_that_is_the_mean_of_small_scores_is_asked_again(
    scores: tuple[float, ...], total: float
) -> None:
    [problem] = totalled(scores, total).problems
    assert (problem.code, problem.path) == ("out_of_range", "total_score")


@pytest.mark.parametrize(("scores", "total"), [((0, 0, 0), 0), ((1, 0, 0), 1), ((5, 3, 1), 9)])
def test_small_scores_and_their_sum_are_taken_as_they_are(
    scores: tuple[float, ...], total: float
) -> None:
    checked = totalled(scores, total)
    assert checked.output is not None
    assert (checked.output["total_score"], checked.flags) == (total, ())


@pytest.mark.parametrize("total", [72, 75, 75.0, 78, None])
def test_a_total_that_is_a_slip_is_computed_again(total: Any) -> None:
    checked = totalled((50, 20, 5), total)
    assert checked.output is not None
    assert (checked.output["total_score"], checked.flags) == (75, ())
    assert {one.code for one in checked.fixes} <= {"total"}


@pytest.mark.parametrize("extra", ["59/100", {}, None, [1], True])
def test_a_total_off_is_told_beside_a_score_of_no_dimension(extra: Any) -> None:
    score = {**dict(zip(DIMENSIONS, (50, 20, 5), strict=True)), "total": extra}
    checked = totalled((50, 20, 5), 59, score=score)
    assert {one.path for one in checked.problems} == {"total_score", "score.total"}


def test_a_total_off_is_told_beside_a_score_out_of_its_range() -> None:
    checked = totalled((61, 20, 5), 75)
    assert [one.path for one in checked.problems] == ["total_score", "score.logic_and_fact"]


def test_a_total_goes_by_the_weights_of_the_reply_or_of_the_task() -> None:
    creative = {"weights": WEIGHTS["creative"]}
    expected = {DIMENSIONS[0]: 54, DIMENSIONS[1]: 15, DIMENSIONS[2]: 7.5}
    for scores, total in (((27, 15, 30), 72), ((27, 15, 30), 76.5), ((9, 5, 7.5), 72)):
        checked = totalled(scores, total, **creative)
        assert checked.output is not None
        assert checked.output["score"] == expected
    assert totalled((9, 5, 7.5), 90, **creative).output is None
    inferred = totalled((9, 9, 8), 86, PLAIN, inferred_task_type="creative")
    assert inferred.output is not None
    assert inferred.output["score"] == dict(zip(DIMENSIONS, (27, 27, 32), strict=True))


def test_a_total_beside_a_critical_fail_does_not_count() -> None:
    failed = {"critical_fail": True, "critical_fail_reason": "It lies."}
    checked = totalled((9, 9, 8), 89, **failed)
    assert checked.output is not None
    assert (checked.output["total_score"], checked.flags) == (0, ())


def test_weights_of_ones_own_are_summed_as_well() -> None:
    task = task_of({"a": 12.5, "b": 87.5, "c": 0}, {"a": 50, "b": 50, "c": 0})
    given = {
        "critical_fail": False,
        "reasoning": dict.fromkeys("abc", "x"),
        "score": {"a": 10, "b": 5, "c": 7},
        "total_score": 56.3,
        "confidence": "low",
    }
    checked = check_reply(json.dumps(given), task, WORDS)
    assert checked.output is not None
    assert checked.output["score"] == {"a": 12.5, "b": 43.75, "c": 0}
    assert checked.output["total_score"] == 56.25
