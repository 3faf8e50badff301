"""The first screen: a headline, large figures, a bar per variant, and what to do next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenhand.report.html.charts import variant_colours
from evenhand.report.html.screen import first_screen
from evenhand.report.model import PassRate
from evenhand.stats.estimate import Estimate
from evenhand.words import LANGUAGES, Sentence, words
from tests.unit.report.reports import (
    COVERAGE,
    board,
    compared,
    difference,
    make_report,
    plain_mean,
    standing,
)

UNDECIDED = "not enough evidence"
NAMES = {"variant": "v2", "baseline": "v1"}
MEANS = [
    plain_mean("overall", name, mean=value, low=0.3, high=0.7)
    for name, value in (("v1", 0.38), ("v2", 0.62))
]
WARNED = [Sentence("notes.trust_contradicts", share=0.3, other=0.7, n=9, first=0.8)]


def two(outcome, **more):
    rows = [difference("overall", outcome, **more)]
    return make_report(comparison=compared(rows, means=MEANS), means=MEANS)


def several(*outcomes):
    rows = [difference("overall", each, variant=f"v{n}") for n, each in enumerate(outcomes, 2)]
    return make_report(comparison=compared(rows, means=MEANS), means=MEANS)


def league(*ranks):
    rows = [standing(f"c{n}", 0.8 - n / 10, *ends) for n, ends in enumerate(ranks)]
    return make_report("pairwise", board=board([replace(row, set=0) for row in rows]))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("report", "headline", "todo"),
    [
        (two("better", lower=0), "better", "better"),
        (two("better"), "better", "better_but"),
        (two("worse"), "worse", "worse"),
        (two("same"), "same", "same"),
        (several("worse", "worse"), "best", "worse"),
        (several("worse", UNDECIDED), "none_better", "worse"),
        (two(UNDECIDED, more_questions="a few dozen"), "none", "more"),
        (two(UNDECIDED, more_questions="more than is practical"), "none", "equal"),
        (replace(two("better"), warnings=WARNED), "better", "judge"),
        (replace(two("better"), coverage=replace(COVERAGE, pending=3)), "better", "pending"),
        (
            replace(two("better"), coverage=replace(COVERAGE, failures={"e": 90})),
            "better",
            "failed",
        ),
        (league((1, 1), (2, 2)), "leads", "leads"),
        (league((1, 2), (1, 2)), "level", "level"),
        (make_report(means=MEANS[:1]), "mean", "read"),
        (make_report(means=MEANS), "judged", "read"),
    ],
)
def test_what_was_found_says_what_to_do(report, headline, todo, language):
    say = words(language)
    screen = first_screen(report, say)
    both = say("list.and", first="c0", last="c1")
    counts = {"candidate": "c0", "candidates": both, "mean": say.number(0.38)}
    noun = say.counted(report.kind.noun, sum(mean.n for mean in report.means))
    assert screen.headline == say(f"headline.{headline}", **NAMES, **counts, n=noun)
    lower = say.counted("question", report.comparison.rows[0].lower) if report.comparison else ""
    n = {"pending": say.counted("judgment", 3), "failed": "90"}.get(todo, lower)
    assert screen.next == say(f"next.{todo}", **NAMES, **counts, n=n, of=240)


def test_figures_are_before_and_after_with_one_colour_per_variant():
    report = two("better")
    (figure,) = first_screen(report, words("en")).figures
    colours = variant_colours(report)
    shown = [(side.name, side.value, side.colour) for side in figure.sides]
    assert shown == [("v1", "0.38", colours["v1"]), ("v2", "0.62", colours["v2"])]
    assert "+0.21 [0.08,\u00a00.34]" in figure.below and figure.tone == "good"
    bars = first_screen(report, words("en")).bars
    assert [row.label for row in bars.rows] == ["v2", "v1"]
    assert all(f"of-{colours[row.label]}" in row.svg for row in bars.rows)


def test_questions_are_counted_in_three_parts_that_fill_the_bar():
    say = words("en")
    balance = first_screen(two("better", higher=70, lower=30), say).balance
    told = [say(f"balance.{key}", n=n) for key, n in (("better", 70), ("worse", 30), ("same", 20))]
    assert [part.text for part in balance] == told
    assert sum(part.width for part in balance) == 1000


def test_a_pass_rate_stands_beside_the_scores():
    rate = PassRate("", 3, 4, Estimate(value=0.75, low=0.4, high=0.9, n=4, clusters=4, error=0.1))
    report = make_report(means=MEANS[:1], passes=[rate])
    scores, passes = first_screen(report, words("en")).figures
    assert (scores.sides[0].value, passes.sides[0].value) == ("0.38", "75%")


def test_what_is_decided_on_each_dimension_is_on_the_first_screen():
    rows = [
        difference("tone", "better"),
        difference("facts", UNDECIDED, difference=0.1, low=-0.2, high=0.4),
        difference("overall", "better"),
    ]
    screen = first_screen(make_report(comparison=compared(rows, means=MEANS)), words("en"))
    told = [
        (line.name, line.value.replace("\xa0", " "), line.outcome, line.tone)
        for line in screen.dimensions
    ]
    assert told == [
        ("tone", "+0.21 [0.08, 0.34]", "better", "good"),
        ("facts", "+0.10 [−0.20, 0.40]", "undecided", ""),
    ]
    assert first_screen(two("better"), words("en")).dimensions == []


def test_without_a_total_the_first_dimension_is_told():
    means = [plain_mean(name, mean=n) for n, name in enumerate(("zest", "aim", "wit"), 1)]
    screen = first_screen(make_report(means=means), words("en"))
    assert [(figure.label, figure.sides[0].value) for figure in screen.figures] == [
        ("zest", "1.00")
    ]
