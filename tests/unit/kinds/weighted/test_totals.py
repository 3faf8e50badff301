"""Totals of a grade: exact sums, never above 100, and what becomes of a share on another scale."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evenhand import jsontext
from evenhand.kinds.weighted.check import check_reply, rescaled, total_of
from tests.unit.kinds.grading import KEYS, protocol, reply, task_of

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
    assert 0 <= rescaled(share, old, new) <= new
    assert rescaled(old, old, new) == new
    assert rescaled(0, old, new) == 0
    assert rescaled(share, 0, new) == 0
