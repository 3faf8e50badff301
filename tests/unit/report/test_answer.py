"""The first sentence of a report: what is better, with its uncertainty; never more than that."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.report.answer import answers
from evenhand.report.build import Coverage, Difference, Mean, Method, Report, Standing
from evenhand.report.page import words

COVERAGE = Coverage(
    units=120,
    planned=240,
    verdicts=240,
    failures={},
    pending=0,
    left_out=0,
    calls=240,
    input_tokens=0,
    output_tokens=0,
    cost_usd=None,
)
METHOD = Method(
    protocol="rubric",
    version="x",
    prompt=None,
    language="en",
    seed=0,
    report_seed=0,
    level=0.95,
    by="prompt_variant",
    baseline="v1",
    pair_by=(),
    rule="",
    settings={},
    judges=[],
    evenhand="0",
    imported=None,
    texts={},
    rubric=None,
    names={},
)


def difference(dimension: str, outcome: Any, **more: Any) -> Difference:
    given: dict[str, Any] = {"variant": "v2", "baseline": "v1", "n": 120, "questions": 120}
    given |= {"mean": 0.62, "mean_low": 0.55, "mean_high": 0.69, "baseline_mean": 0.38}
    given |= {"value": 0.21, "low": 0.08, "high": 0.34, "p": 0.01, "p_adjusted": 0.02}
    given |= {"effect": 0.3, "needed": None}
    return Difference(dimension=dimension, outcome=outcome, **(given | more))


def said(language: str = "en", kind: Any = "rubric", **more: Any) -> list[str]:
    report = Report(
        run="r",
        name="n",
        kind=kind,
        language=language,
        created="",
        started="",
        coverage=COVERAGE,
        method=METHOD,
        **more,
    )
    return [one.text.replace("\u00a0", " ") for one in answers(report, words(language))]


def test_what_is_better_comes_with_its_interval_and_what_is_not_decided_is_said() -> None:
    rows = [
        difference("true", "better"),
        difference("kind", "not enough evidence", value=0.01, low=-0.1, high=0.12),
        difference("overall", "not enough evidence", value=0.05, low=-0.01, high=0.11),
    ]
    assert said(differences=rows) == [
        "v2 is better than v1 on true: +0.21 [0.08, 0.34], 120 questions.",
        "No difference found between v2 and v1 on overall (+0.05 [−0.01, 0.11]),"
        " kind (+0.01 [−0.10, 0.12]): not enough evidence, 120 questions.",
    ]


def test_one_dimension_is_said_once_and_how_many_more_would_decide() -> None:
    undecided = "not enough evidence"
    rows = [difference("true", undecided, needed=340), difference("overall", undecided)]
    (sentence,) = said(differences=rows)
    assert sentence.endswith("About 340 units more would decide it on true.")
    assert "overall" not in sentence


def test_pairs_are_said_in_win_rates() -> None:
    rows = [difference("C1", "better"), difference("overall", "worse", mean=0.31)]
    (sentence,) = said(kind="pairwise", differences=rows)
    assert sentence == "v2 is worse than v1: it wins 31 % [55, 69] of 120 comparisons."


def test_many_candidates_are_said_by_who_leads() -> None:
    more = {"wins": 1, "losses": 0, "ties": 0, "uncertain": 0, "low": 0.5, "high": 0.8}
    rows = [
        Standing(candidate=name, n=40, win_rate=rate, **more)  # type: ignore[arg-type]
        for name, rate in (("a", 0.7), ("b", 0.6), ("c", 0.1))
    ]
    (sentence,) = said(kind="pairwise", standings=rows)
    assert sentence.startswith("a leads: it wins 70 % [50, 80] of 40 comparisons. Next comes b")


def test_one_variant_has_means_and_nothing_judged_has_no_answer() -> None:
    means = [Mean(dimension="true", variant="", n=9, value=3.2, low=2.9, high=3.5)]
    assert said(means=means) == ["Mean scores over 9 answers: true 3.20 [2.90, 3.50]."]
    assert said() == ["Nothing has a verdict yet, so there is no answer."]
    none = [difference("true", "not enough evidence", value=None, low=None, high=None)]
    assert said(differences=none) == ["Nothing has a verdict yet, so there is no answer."]


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("ru", "v2 лучше, чем v1, по шкале true: +0,21 [0,08; 0,34], 120 вопросов."),
        ("zh", "v2 在“true”上优于 v1：+0.21 [0.08, 0.34]，120 个问题。"),
        ("ja", "「true」では v2 が v1 より優れています：+0.21 [0.08, 0.34]、120 問。"),
    ],
)
def test_the_answer_is_given_in_every_language(language: str, sentence: str) -> None:
    assert said(language, differences=[difference("true", "better")]) == [sentence]


def test_a_hostile_name_stays_a_name() -> None:
    rows = [difference("\u202etrue", "better", variant="{n}<b>", baseline="{variant}")]
    assert said(differences=rows) == [
        "{n}<b> is better than {variant} on \\u202etrue: +0.21 [0.08, 0.34], 120 questions."
    ]
