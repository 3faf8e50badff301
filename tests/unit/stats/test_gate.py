"""The conditions of a gate: what an interval, a count and what is missing let one say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import UsageError
from evenhand.observation import WINNER
from evenhand.stats.conditions import (
    Condition,
    Conditions,
    Figure,
    JudgmentCounts,
    at_least,
    count_at_most,
    mean_figure,
    no_worse_than,
    share_at_most,
)
from evenhand.stats.gate import Gate, hold_to
from evenhand.stats.observations import Observations
from tests.unit.stats.score_tables import compare_scores, scores_of, votes_of

OPEN = "not enough evidence"


def figure(value: float, reach: float, **rest: Any) -> Figure:
    given = {"n": 50, "clusters": 50, "error": reach / 2, **rest}
    return Figure(value=value, low=value - reach, high=value + reach, **given)


def naive(low: float, high: float, limit: float, bounds: tuple[float, float] | None) -> str:
    """What may be said of a figure that must not be below a limit."""
    if low >= limit:
        return OPEN if bounds and bounds[0] < limit else "better"
    if high < limit:
        return OPEN if bounds and bounds[1] >= limit else "worse"
    return OPEN


tenths = st.integers(-30, 30).map(lambda n: n / 8)


@given(
    tenths, st.integers(0, 16).map(lambda n: n / 8), tenths, st.none() | st.tuples(tenths, tenths)
)
def test_the_interval_decides_and_what_is_missing_opens(
    value: float, reach: float, limit: float, ends: tuple[float, float] | None
) -> None:
    bounds = (min(value, *ends), max(value, *ends)) if ends else None
    found = figure(value, reach, bounds=bounds)
    expected = naive(value - reach, value + reach, limit, bounds)
    assert at_least("min_mean", found, limit, "the mean").outcome == expected
    if limit <= 0:
        assert no_worse_than(found, -limit, "v2", "v1", "overall").outcome == expected


def test_a_point_estimate_alone_decides_nothing() -> None:
    bare = Figure(value=0.9, low=None, high=None, n=1, clusters=1)
    assert at_least("min_mean", bare, 0.1, "the mean").outcome == OPEN
    assert at_least("min_mean", figure(0.9, 0.2), 0.8, "the mean").outcome == OPEN
    nothing = Figure(value=None, low=None, high=None, n=0, clusters=0)
    found = at_least("min_mean", nothing, 0.1, "the mean")
    assert (found.outcome, found.value) == (OPEN, None)
    assert "nothing was judged" in found.reason


def test_reasons_say_what_was_found_and_what_would_help() -> None:
    met = no_worse_than(figure(0.01, 0.03), 0.05, "v2", "v1", "overall")
    assert met.reason == (
        '"v2" is not worse than "v1" by more than 0.05:'
        " the difference is +0.010 [-0.020, +0.040] over 50 units."
    )
    missed = no_worse_than(figure(-0.2, 0.03), 0.05, "v2", "v1", "clear")
    assert missed.reason.startswith('"v2" is worse than "v1" by more than 0.05 on "clear": ')
    still = at_least("min_mean", figure(0.85, 0.1), 0.8, "the mean")
    assert still.reason.startswith(
        "Cannot tell yet whether the mean is at least 0.8: it is 0.850 [0.750"
    )
    assert still.more == "several hundred" and still.more in still.reason
    far = at_least("min_mean", figure(0.801, 0.1), 0.8, "the mean")
    assert far.more == "more than is practical" and "than is practical" in far.reason
    turned = at_least("min_mean", figure(0.9, 0.05, bounds=(0.7, 0.95)), 0.8, "the mean")
    assert "missing judgments could make it anything from 0.7 to 0.95" in turned.reason
    assert turned.more is None
    even = at_least("min_mean", figure(0.8, 0.1), 0.8, "the mean")
    assert even.more == "more than is practical"


def test_one_is_counted_in_the_singular() -> None:
    one = Figure(value=0.9, low=0.7, high=1.0, n=1, clusters=1)
    assert "over 1 unit." in at_least("min_mean", one, 0.5, "the mean").reason
    alone = share_at_most("max_failure_rate", JudgmentCounts(1, 0, 0), 0.0)
    assert "over 1 judgment." in alone.reason


@pytest.mark.parametrize(
    ("found", "missing", "most", "outcome"),
    [
        (0, 0, 0, "better"),
        (2, 0, 2, "better"),
        (3, 9, 2, "worse"),
        (2, 1, 2, OPEN),
        (0, 5, 5, "better"),
    ],
)
def test_a_count_is_exact_but_for_what_is_missing(
    found: int, missing: int, most: int, outcome: str
) -> None:
    said = count_at_most("max_critical_fails", found, missing, most, variant="v2")
    assert (said.outcome, said.value, said.high) == (outcome, found, found + missing)
    assert ("missing: judge what is missing" in said.reason) == (outcome == OPEN)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 10))
def test_the_share_of_failures_is_open_only_while_it_can_still_change(
    verdicts: int, failed: int, pending: int, tenth: int
) -> None:
    most = tenth / 10
    said = share_at_most("max_failure_rate", JudgmentCounts(verdicts, failed, pending), most)
    planned = verdicts + failed + pending
    ends = {10 * (failed + more) <= tenth * planned for more in range(pending + 1)}
    if not planned or len(ends) == 2:
        assert said.outcome == OPEN
    else:
        assert said.outcome == ("better" if ends == {True} else "worse")


def condition(outcome: Any) -> Condition:
    nothing: dict[str, Any] = dict.fromkeys(("value", "low", "high", "threshold"))
    about: dict[str, Any] = {"dimension": None, "variant": None, "n": 0, "clusters": 0}
    return Condition(name="better", outcome=outcome, reason=f"{outcome}.", **nothing, **about)


@pytest.mark.parametrize(
    ("outcomes", "whole"),
    [
        (["better", "better"], "better"),
        (["better", "worse"], "worse"),
        ([OPEN, "worse"], "worse"),
        (["better", OPEN], OPEN),
        ([], OPEN),
    ],
)
def test_all_must_be_met_and_one_is_enough_to_fail(outcomes: list[str], whole: str) -> None:
    gate = Gate(conditions=tuple(map(condition, outcomes)), level=0.95)
    assert gate.outcome == gate.json()["outcome"] == whole
    assert gate.json()["reasons"] == [f"{one}." for one in outcomes]


@pytest.mark.parametrize("seed", range(3))
def test_questions_of_1_to_19_units_pass_where_they_are_harmless(seed: int) -> None:
    """Each question weighs alike, and one that was never seen is like any other; when it counted as
    much as the largest, nothing harmless passed."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 20, 60)
    cluster = np.repeat(np.arange(60), sizes)
    gaps = draw.normal(0.0, 0.15, 60)[cluster] + draw.normal(0.0, 0.1, cluster.size)
    found = mean_figure(np.clip(gaps, -1, 1), cluster, (-1.0, 1.0), 0.95)
    assert no_worse_than(found, 0.15, "v2", "v1", "overall").outcome == "better"
    means = [gaps[cluster == one].mean() for one in range(60)]
    assert found.value == pytest.approx(np.mean(means), abs=1e-9)
    assert (found.n, found.clusters) == (sizes.sum(), 60)


# From tables


def scores(
    variants: dict[str, list[float | None]], *, planned: int = 1, critical: int = 0
) -> Observations:
    """A score on `correct`, from 1 to 5, a question and variant; None is a failure."""
    rows = [
        {"prompt_variant": variant, "question_id": question, "scores": score and {"correct": score}}
        for variant, given in variants.items()
        for question, score in enumerate(given)
    ]
    told = [row | {"critical": place < critical} for place, row in enumerate(rows)]
    return scores_of(told, planned=planned)


def gate(table: Observations, pending: int = 0, **asked: Any) -> Gate:
    failed = int(table.failed.sum())
    counts = JudgmentCounts(table.failed.size - failed, failed, pending)
    return hold_to(table, counts, Conditions(**asked))


AGAINST: dict[str, Any] = {"by": ("prompt_variant",), "baseline": "v1"}
GOOD: list[float | None] = [4, 5, 5, 4, 5, 4, 5, 5, 4, 5] * 3
FAIR: list[float | None] = [3, 4, 3, 2, 3, 4, 3, 3, 2, 3] * 3


def test_a_variant_is_held_against_the_baseline() -> None:
    up, down = scores({"v1": FAIR, "v2": GOOD}), scores({"v1": GOOD, "v2": FAIR})
    assert gate(up, better=True, **AGAINST).outcome == "better"
    assert gate(down, better=True, **AGAINST).outcome == "worse"
    assert gate(up, no_worse_than=0.0, **AGAINST).outcome == "better"
    assert gate(down, no_worse_than=0.1, **AGAINST).outcome == "worse"
    # The overall scale runs from 0 to 1, that of the dimension from 1 to 5.
    assert gate(down, no_worse_than=0.9, **AGAINST).outcome == "better"
    assert gate(down, no_worse_than=0.9, dimensions=("correct",), **AGAINST).outcome == "worse"


def test_what_compare_finds_is_open_where_so_few_need_not_show_what_is_rare() -> None:
    better = [3.0 if place % 2 else 2.5 for place in range(16)]
    table = scores({"v1": [2.0] * 16, "v2": better})
    row = compare_scores(table, "prompt_variant", "v1").row("v2")
    assert row is not None and row.outcome == "better"
    (condition,) = gate(table, better=True, **AGAINST).conditions
    assert (condition.outcome, condition.more is not None) == (OPEN, True)
    assert "compare finds it, but a gate also reckons with rare failures" in condition.reason
    more = scores({"v1": [2.0] * 40, "v2": better * 2 + better[:8]})
    assert gate(more, better=True, **AGAINST).outcome == "better"


def test_every_variant_but_the_baseline_is_held_unless_one_is_named() -> None:
    table = scores({"v1": FAIR, "v2": GOOD, "v3": [1.0] * 30})
    both = gate(table, no_worse_than=0.1, **AGAINST)
    assert [(one.variant, one.outcome) for one in both.conditions] == [
        ("v2", "better"),
        ("v3", "worse"),
    ]
    assert gate(table, no_worse_than=0.1, variant="v2", **AGAINST).outcome == "better"
    with pytest.raises(UsageError, match="is the baseline itself"):
        gate(table, no_worse_than=0.1, variant="v1", **AGAINST)
    with pytest.raises(UsageError, match='no variant is called "v22"') as raised:
        gate(table, no_worse_than=0.1, variant="v22", **AGAINST)
    assert "Did you mean" in str(raised.value)


def test_a_mean_is_of_the_variant_or_of_all_units() -> None:
    table = scores({"v1": FAIR, "v2": GOOD})
    whole = gate(table, min_mean=3.0, dimensions=("correct",)).conditions[0]
    assert (whole.variant, whole.n, whole.outcome) == (None, 60, "better")
    assert whole.value == pytest.approx(np.mean([*FAIR, *GOOD]))  # type: ignore[arg-type]
    one = gate(table, min_mean=3.5, dimensions=("correct",), **AGAINST).conditions[0]
    assert (one.variant, one.n, one.outcome) == ("v2", 30, "better")
    scaled = gate(table, min_mean=0.5, variant="v1", by=("prompt_variant",)).conditions[0]
    assert scaled.value == pytest.approx((np.mean(FAIR) - 1) / 4)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match='no dimension is called "corect"'):
        gate(table, min_mean=3.5, dimensions=("corect",))


def test_a_scale_that_is_not_known_is_said_to_be_what_was_seen() -> None:
    table = scores({"v1": FAIR, "v2": GOOD})
    imported = replace(table, scales=tuple(replace(s, is_known=False) for s in table.scales))
    assert gate(table, min_mean=0.1).notes == ()
    assert any("scale is not known" in note for note in gate(imported, min_mean=0.1).notes)
    assert gate(imported, max_failure_rate=0.1).notes == ()
    said = gate(imported, no_worse_than=0.5, **AGAINST).notes
    assert any("scale is not known" in note for note in said)


def test_judgments_about_one_question_hang_together() -> None:
    twice = scores({"v1": GOOD, "v2": GOOD})
    apart = scores({"v1": [*GOOD, *GOOD]})
    wide, narrow = (gate(one, min_mean=0.5).conditions[0] for one in (twice, apart))
    assert wide.value == narrow.value
    assert wide.high - wide.low > 1.3 * (narrow.high - narrow.low)  # type: ignore[operator]


def test_missing_judgments_open_what_they_could_turn() -> None:
    lacking = scores({"v1": FAIR, "v2": [*GOOD[:15], *[None] * 15]})
    open_still = gate(lacking, better=True, **AGAINST)
    assert open_still.outcome == OPEN
    assert "missing judgments could make it" in open_still.json()["reasons"][0]
    assert gate(lacking, min_mean=3.5, dimensions=("correct",), **AGAINST).outcome == OPEN
    assert gate(lacking, min_mean=2.0, dimensions=("correct",), **AGAINST).outcome == "better"
    # Judgments that are planned and not there count as missing too.
    assert gate(scores({"v2": GOOD}, planned=2), min_mean=0.7).outcome == OPEN
    assert gate(scores({"v2": GOOD}), min_mean=0.7).outcome == "better"


def test_critical_fails_are_those_of_the_variant() -> None:
    table = scores({"v1": GOOD, "v2": GOOD}, critical=2)
    assert gate(table, max_critical_fails=1).outcome == "worse"
    assert gate(table, max_critical_fails=2).outcome == "better"
    assert gate(table, max_critical_fails=0, **AGAINST).outcome == "better"
    lacking = scores({"v1": GOOD, "v2": [*GOOD, None]})
    assert gate(lacking, max_critical_fails=0, **AGAINST).outcome == OPEN
    assert gate(lacking, max_critical_fails=1, **AGAINST).outcome == "better"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_hardly_any_unit_is_not_enough(number: int) -> None:
    table = scores({"v1": FAIR[:number], "v2": GOOD[:number]}) if number else scores({"v1": [None]})
    found = gate(table, better=True, no_worse_than=0.1, min_mean=0.4, **AGAINST)
    assert found.outcome == OPEN
    assert all(reason.endswith(".") for reason in found.json()["reasons"])
    assert "nan" not in str(found.json()).lower()


def test_one_variant_has_nothing_beside_it() -> None:
    found = gate(scores({"v1": GOOD}), better=True, min_mean=0.1, **AGAINST)
    assert found.outcome == OPEN
    assert [one.name for one in found.conditions] == ["better", "min_mean"]
    for reason in found.json()["reasons"]:
        assert "no variant beside the baseline" in reason


def test_at_the_threshold_a_gate_is_seldom_wrong() -> None:
    chance, outcomes = np.random.default_rng(11), []
    for _ in range(100):
        drawn = list(chance.choice([1.0, 2.0, 3.0, 4.0, 5.0], 40))
        outcomes.append(gate(scores({"v": drawn}), min_mean=3.0, dimensions=("correct",)).outcome)
    # 2.5 % on either side, and three standard errors of the simulation.
    assert outcomes.count("better") <= 7
    assert outcomes.count("worse") <= 7


def votes(outcomes: list[float], *, candidates: tuple[str, str] = ("old", "new")) -> Observations:
    """How far the second candidate is preferred, a topic each; nan is a failure."""
    first, second = candidates
    return votes_of(
        [
            {"topic": topic, "first": first, "second": second, "winner": None}
            if math.isnan(preference)
            else {
                "topic": topic,
                "first": first,
                "second": second,
                "winner": "tie",
                "preference": preference,
            }
            for topic, preference in enumerate(outcomes)
        ]
    )


def gate_pairs(table: Observations, pending: int = 0, **asked: Any) -> Gate:
    """The last so many votes are still to come."""
    judged = table.unit < len(table.units) - pending
    failed = int(np.isnan(table.column(WINNER)[judged]).sum())
    counts = JudgmentCounts(int(judged.sum()) - failed, failed, pending)
    planned = np.ones((len(table.units), 1), np.int64)
    return hold_to(replace(table.where(judged), planned=planned), counts, Conditions(**asked))


WON = [1.0] * 36 + [0.0] * 12 + [0.5] * 4


def test_a_win_rate_is_against_the_baseline_or_against_all() -> None:
    for baseline in ({}, {"baseline": "old"}):
        found = gate_pairs(votes(WON), min_win_rate=0.55, candidate="new", **baseline)
        assert found.conditions[0].value == pytest.approx(38 / 52)
        assert found.outcome == "better"
    assert gate_pairs(votes(WON), min_win_rate=0.7, candidate="new").outcome == OPEN
    assert gate_pairs(votes(WON), min_win_rate=0.5, candidate="old").outcome == "worse"
    assert gate_pairs(votes(WON), better=True, baseline="old").outcome == "better"
    assert gate_pairs(votes(WON), no_worse_than=0.1, baseline="new").outcome == "worse"


def test_whose_win_rate_must_be_said() -> None:
    with pytest.raises(UsageError, match="needs to know whose") as raised:
        gate_pairs(votes(WON), min_win_rate=0.5)
    assert '"old", "new"' in str(raised.value)
    marked = {"topic": 1, "first": "old", "second": "new", "winner": "tie", "marks": {"C1": "tie"}}
    criterion = votes_of([marked])
    with pytest.raises(UsageError, match="on one criterion is against a baseline"):
        gate_pairs(criterion, min_win_rate=0.5, candidate="new", dimensions=("C1",))
    with pytest.raises(UsageError, match='no criterion is called "C9"'):
        gate_pairs(votes(WON), better=True, baseline="old", dimensions=("C9",))
    with pytest.raises(UsageError, match='no candidate is called "newer"'):
        gate_pairs(votes(WON), min_win_rate=0.5, candidate="newer")


@pytest.mark.parametrize("baseline", [{}, {"baseline": "old"}])
def test_pairs_that_failed_or_wait_open_what_they_could_turn(baseline: dict[str, str]) -> None:
    asked = {"min_win_rate": 0.55, "candidate": "new", **baseline}
    assert gate_pairs(votes(WON + [math.nan] * 40), pending=40, **asked).outcome == OPEN
    assert gate_pairs(votes(WON + [math.nan] * 40), **asked).outcome == OPEN
    assert gate_pairs(votes(WON + [math.nan] * 4), pending=2, **asked).outcome == "better"


def test_conflicts_are_counted_of_those_that_are_held_to_the_gate() -> None:
    rows = [
        {"topic": topic, "first": "old", "second": name, "winner": winner}
        for name, winners in {
            "new": ["uncertain", "second", "second"],
            "other": ["uncertain"] * 3,
        }.items()
        for topic, winner in enumerate(winners)
    ]
    asked: dict[str, Any] = {"baseline": "old", "min_win_rate": 0.5}

    def conflicts(**more: Any) -> list[str]:
        notes = gate_pairs(votes_of(rows), **asked, **more).notes
        return [note for note in notes if note.startswith("Orders that contradict")]

    (of_all,), (of_two,) = conflicts(), conflicts(candidate="new")
    assert "4 verdicts count" in of_all and "1 verdict counts" in of_two
    rows = [row for row in rows if row["second"] == "other" or row["winner"] == "second"]
    assert not conflicts(candidate="new")
