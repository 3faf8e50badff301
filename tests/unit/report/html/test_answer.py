"""The first sentence of a report: what is better, with its uncertainty; never more than that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evenhand.report.html.answer import answers
from evenhand.report.model import Bar
from evenhand.stats.comparison import Row
from evenhand.stats.leaderboard import BoardRow
from evenhand.words import words
from tests.unit.report.reports import (
    COVERAGE,
    board,
    compared,
    difference,
    make_report,
    plain_mean,
    standing,
)


def said(
    language: str = "en",
    kind: str = "rubric",
    differences: Sequence[Row] = (),
    standings: Sequence[BoardRow] = (),
    asked: dict[str, Any] | None = None,
    **more: Any,
) -> list[str]:
    if differences:
        more["comparison"] = compared(differences, is_duel=kind == "pairwise", **(asked or {}))
    if standings:
        more["board"] = board(standings)
    report = make_report(kind, language, **more)
    return [one.text.replace("\u00a0", " ") for one in answers(report, words(language))]


SENTENCES = {
    "en": (
        "v2 is better than v1 on true: 0.38 → 0.62 of 1 (+0.21 [0.08, 0.34]);"
        " better on 70 of 120 questions, worse on 30.",
        "v2 and v1 are the same overall within 0.5: ",
        "The table has 1 variant more with a decision.",
        "No clear winner, too close to call: a 51 % [50, 80]; b",
    ),
    "ru": (
        "v2 лучше, чем v1, по критерию true: 0,38 → 0,62 из 1 (+0,21 [0,08; 0,34]);"
        " лучше — 70, хуже — 30, всего 120 вопросов.",
        "v2 и v1 в целом одинаковы с точностью до 0,5: ",
        "В таблице есть ещё 1 вариант с решением.",
        "Лидер не определён, результаты слишком близки: a 51 % [50; 80]; b",
    ),
    "zh": (
        "v2 在“true”上优于 v1：0.38 → 0.62（满分 1，+0.21 [0.08, 0.34]）；"
        "120 个问题中 70 个更好、30 个更差。",
        "v2 与 v1 总体上相同（差值不超过 0.5）：",
        "另有 1 个变体已有定论，见表格。",
        "难分高下，以下候选差距太小：a 51% [50, 80]; b",
    ),
    "ja": (
        "「true」では v2 が v1 より優れています：0.38 → 0.62（1 点満点、+0.21 [0.08, 0.34]）。"
        "120 問中、上回ったのは 70、下回ったのは 30。",
        "全体では v2 と v1 は同じです（差は 0.5 以内）：",
        "ほかに 1 個のバリアントで結論が出ています（表を参照）。",
        "首位は決まりません。次の候補は差が小さすぎます：a 51% [50, 80]; b",
    ),
}
"""Of a dimension that is better, of two that are the same, of one more, of candidates too close."""


def test_overall_comes_first_from_what_to_what_and_then_the_dimensions() -> None:
    rows = [
        difference("true", "better"),
        difference("kind", "not enough evidence", difference=0.01, low=-0.1, high=0.12),
        difference("overall", "not enough evidence", difference=0.05, low=-0.01, high=0.11),
    ]
    assert said(differences=rows) == [
        "Not enough evidence to say whether v2 is better or worse than v1 overall:"
        " 0.38 → 0.62 of 1 (+0.05 [−0.01, 0.11]); better on 70 of 120 questions, worse on 30.",
        "v2 and v1 are within 0.11 of each other.",
        "Better on true (+0.21 [0.08, 0.34]). Not enough evidence on kind (+0.01 [−0.10, 0.12]).",
    ]
    rows[2] = difference("overall", "better", n=240)
    assert said(differences=rows)[0] == (
        "v2 is better than v1 overall: 0.38 → 0.62 of 1 (+0.21 [0.08, 0.34]);"
        " better on 70 of 240 pairs of answers, worse on 30."
    )


@pytest.mark.parametrize("language", SENTENCES)
def test_not_enough_evidence_never_reads_like_no_difference(language: str) -> None:
    words_of_none = {"en": "o difference", "ru": "не обнаружен", "zh": "未发现差异"}
    words_of_none["ja"] = "差は見つかりません"
    undecided: Any = "not enough evidence"
    for kind in ("rubric", "pairwise"):
        rows = [difference(name, undecided, low=-0.1) for name in ("true", "kind", "overall")]
        text = " ".join(said(language, kind, differences=rows))
        assert words_of_none[language] not in text
        assert any(word in text for word in ("Not enough", "едостаточно", "数据不足", "足りず"))


def test_one_dimension_is_said_once_and_how_many_more_would_decide() -> None:
    undecided = "not enough evidence"
    rows = [
        difference("true", undecided, more_questions="several hundred", low=-0.1),
        difference("overall", undecided, low=-0.1),
    ]
    sentence, more = said(differences=rows)
    assert more == (
        "v2 and v1 are within 0.34 of each other. Several hundred more questions may decide it; to"
        " stop as soon as they do: run --until-decided."
    )
    assert "overall" not in sentence
    duel = difference("overall", undecided, more_questions="more than is practical", low=-0.1)
    assert said(kind="pairwise", differences=[duel])[1] == (
        "Deciding it would take more questions than is practical."
    )


def test_figures_have_digits_enough_to_add_up() -> None:
    row = difference("overall", "worse", difference=-0.0017, low=-0.003, high=-0.0004)
    assert "(−0.002 [−0.003, 0.000])" in said(differences=[row])[0]
    row = difference("overall", "worse", baseline_mean=0.4856, mean=0.4515, difference=-0.0341)
    assert "0.486 → 0.452 of 1 (−0.034 [" in said(differences=[row])[0]
    row = difference("overall", "better", baseline_mean=0.4, mean=0.61, difference=0.21)
    assert "0.40 → 0.61 of 1 (+0.21 [" in said(differences=[row])[0]


def test_pairs_are_said_in_win_rates() -> None:
    rows = [difference("C1", "better"), difference("overall", "worse", mean=0.31)]
    (sentence,) = said(kind="pairwise", differences=rows)
    assert sentence == (
        "v2 is worse than v1: it wins 31 % [55, 69] of 120 pairs of answers; ahead in 70,"
        " behind in 30."
    )


def test_what_the_correction_alone_holds_back_is_said_below_and_only_then() -> None:
    undecided: Any = "not enough evidence"
    held: dict[str, Any] = {"difference": 1.5, "low": 0.3, "high": 2.36, "p_adjusted": 0.0781}
    sentence, statistics = said(differences=[difference("true", undecided, **held)])
    assert sentence.startswith(
        "Not enough evidence to say whether v2 is better or worse than v1 on true:"
    )
    assert statistics == (
        "Taken alone the difference would count (p = 0.010), but with several comparisons at once"
        " it may be chance (p = 0.078 after Holm's correction)."
        " v2 and v1 are within 2.36 of each other."
    )
    assert "Holm" not in " ".join(said(differences=[difference("true", undecided)]))
    duel = said(kind="pairwise", differences=[difference("overall", undecided, p_adjusted=0.06)])
    assert "Holm" not in duel[0] and "p = 0.060" in duel[1]
    rows = [
        difference(name, undecided, p_adjusted=0.06 if name == "kind" else 0.02)
        for name in ("true", "kind", "overall")
    ]
    assert said(differences=rows)[-1] == (
        "May be chance, with several comparisons at once:"
        " kind (+0.21 [0.08, 0.34]). Not enough evidence on true (+0.21 [0.08, 0.34])."
    )


@pytest.mark.parametrize("kind", ["rubric", "pairwise"])
def test_of_many_variants_the_decided_come_first_and_the_rest_are_counted(kind: Any) -> None:
    undecided = "not enough evidence"
    rows = [difference("overall", undecided, variant=f"u{i}", low=-0.1) for i in range(6)]
    rows += [difference("overall", "better", variant="w1"), difference("overall", "worse")]
    found = said(kind=kind, differences=rows)
    assert len(found) == 3 and found[0].startswith("w1 is better") and "v2 is worse" in found[1]
    noun = "candidates" if kind == "pairwise" else "variants"
    assert found[2] == (
        f"Not enough evidence to say whether 6 {noun} are better or worse than v1; see the table."
    )
    figure = "62 % [55, 69]" if kind == "pairwise" else "+0.21 [−0.10, 0.34]"
    assert said(kind=kind, differences=rows[4:])[2] == (
        "Not enough evidence to say whether these are better or worse than v1:"
        f" u4 ({figure}), u5 ({figure})."
    )
    rows[3] = replace(rows[3], p_adjusted=0.06)
    assert said(kind=kind, differences=rows)[3].endswith("that may be chance: u3.")
    won = [difference("overall", "better", variant=f"w{i}") for i in range(7)]
    last = said(kind=kind, differences=won)[-1]
    assert last == f"The table has 3 {noun} more with a decision."


def test_many_candidates_are_said_by_who_leads() -> None:
    rows = [standing("a", 0.7, 1, 1), standing("b", 0.6, 2, 3), standing("c", 0.1, 2, 3)]
    (sentence,) = said(kind="pairwise", standings=rows)
    leads = "a leads: it wins 70 % [50, 80] of 40 pairs of answers. Next comes b"
    assert sentence.startswith(leads)


def test_nobody_leads_where_more_than_one_may_be_the_first() -> None:
    for best, worst in ((1, 3), (None, None)):
        rows = [standing("a", 0.51, best, worst), standing("b", 0.5, best, worst)]
        rows.append(standing("c", 0.1, 3, 3))
        for language, (*_, begins) in SENTENCES.items():
            (sentence,) = said(language, "pairwise", standings=rows)
            assert sentence.startswith(begins) and "10" not in sentence and "60" in sentence


def test_candidates_that_never_met_have_no_first_among_them() -> None:
    rows = [standing("a", 0.9, 1, 1), standing("b", 0.1, 2, 2)]
    rows += [replace(one, candidate=one.candidate.upper(), set=2) for one in rows]
    (sentence,) = said(kind="pairwise", standings=rows)
    assert sentence.startswith("Some candidates were never compared") and "A 90 %" in sentence


def test_means_of_variants_that_cannot_be_compared_name_the_variant() -> None:
    given: dict[str, Any] = {"mean": 3.0, "low": 2.0, "high": 4.0}
    means = [
        plain_mean(dimension, variant, n, **given)
        for variant, n in (("v1", 6), ("v2", 5))
        for dimension in ("true", "kind")
    ]
    assert said(means=means) == [
        "v1: mean scores over 6 answers: true 3.00 [2.00, 4.00]; kind 3.00 [2.00, 4.00].",
        "v2: mean scores over 5 answers: true 3.00 [2.00, 4.00]; kind 3.00 [2.00, 4.00].",
    ]
    many = [plain_mean("true", f"v{i}", 1, **given) for i in range(6)]
    assert said(means=many)[-1] == "And 2 variants more, whose means are below."


def test_critical_fails_are_said_where_no_table_of_variants_says_them() -> None:
    means = [plain_mean("true")]
    tags = [Bar("", "", "B", 5, 30), Bar("", "", "critical", 4, 30)]
    assert said(means=means, tags=tags)[1] == "Critical fails: 4 of 30 answers."


def test_one_variant_has_means_and_nothing_judged_has_no_answer() -> None:
    means = [plain_mean("true")]
    assert said(means=means) == ["Mean scores over 9 answers: true 3.20 [2.90, 3.50]."]
    pending = replace(COVERAGE, verdicts=0, pending=240)
    assert said(coverage=pending) == ["Nothing has a verdict yet, so there is no answer."]
    failed = replace(COVERAGE, verdicts=0, failures={"schema": 200, "empty": 40})
    assert said(coverage=failed) == ["All judgments failed (240), so there is no answer."]
    none = [difference("true", "not enough evidence", difference=None, low=None, high=None)]
    assert said(differences=none) == ["There are verdicts, but none of them gives a figure."]


def test_the_scale_is_named() -> None:
    rows = [difference("overall", "better")]
    assert said(kind="weighted", differences=rows) == [
        "v2 is better than v1 overall: 0.38 → 0.62 of 1 (+0.21 [0.08, 0.34]);"
        " better on 70 of 120 tasks, worse on 30."
    ]
    points = {"mean": 3.9, "baseline_mean": 3.1, "difference": 0.8, "scale": (1.0, 5.0)}
    (sentence,) = said(differences=[difference("true", "better", **points)])
    assert "on true: 3.10 → 3.90 on a scale from 1 to 5 (+0.80 [" in sentence


@pytest.mark.parametrize("language", SENTENCES)
def test_the_answer_is_given_in_every_language(language: str) -> None:
    better, same, one_more, _ = SENTENCES[language]
    assert said(language, differences=[difference("true", "better")]) == [better]
    (within,) = said(language, differences=[difference("overall", "same")], asked={"margin": 0.5})
    assert within.startswith(same)
    won = [difference("overall", "better", variant=f"w{i}") for i in range(5)]
    assert said(language, differences=won)[-1] == one_more


def test_a_hostile_name_stays_a_name() -> None:
    rows = [difference("\u202etrue", "better", variant="{n}<b>")]
    assert said(differences=rows, asked={"baseline": "{variant}"}) == [
        "{n}<b> is better than {variant} on \\u202etrue: 0.38 → 0.62 of 1 (+0.21 [0.08, 0.34]);"
        " better on 70 of 120 questions, worse on 30."
    ]


@pytest.mark.parametrize("outcome", ["better", "worse", "not enough evidence"])
@pytest.mark.parametrize("language", SENTENCES)
def test_where_there_is_no_interval_nothing_stands_in_its_place(
    language: str, outcome: str
) -> None:
    """As of scores that are all the same on a scale that nobody knows."""
    without: dict[str, Any] = dict.fromkeys(("low", "high", "mean_low", "mean_high", "scale"))
    overall = difference("overall", outcome, **without)
    of_dimension = difference("true", outcome, **without)
    standings = [
        replace(standing(name, 0.5, place, place), low=None, high=None)
        for place, name in enumerate("xy", start=1)
    ]
    texts = [
        *said(language, differences=[overall]),
        *said(language, differences=[of_dimension]),
        *said(language, "pairwise", differences=[overall]),
        *said(language, "pairwise", standings=standings),
    ]
    assert len(texts) == 4
    for text in texts:
        assert not re.search(r" [ ),.;\u3001\u3002\uff09\uff0c\uff1b]|[(\uff08] ", text), text
