"""The first sentence of a report: what is better, with its uncertainty; never more than that."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from evenhand.report.html.answer import answers
from evenhand.report.model import Bar
from evenhand.words import LANGUAGES, words
from tests.sentences import is_told
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
    language="en",
    kind="rubric",
    differences=(),
    standings=(),
    asked=None,
    **more,
):
    if differences:
        more["comparison"] = compared(differences, is_duel=kind == "pairwise", **(asked or {}))
    if standings:
        more["board"] = board(standings)
    report = make_report(kind, language, **more)
    return [one.text.replace("\u00a0", " ") for one in answers(report, words(language))]


GAP = {"difference": "+0.21", "interval": "[0.08, 0.34]"}
UNDECIDED = "not enough evidence"


def test_overall_comes_first_from_what_to_what_and_then_the_dimensions():
    rows = [
        difference("true", "better"),
        difference("kind", UNDECIDED, difference=0.01, low=-0.1, high=0.12),
        difference("overall", UNDECIDED, difference=0.05, low=-0.01, high=0.11),
    ]
    overall, within, dimensions = said(differences=rows)
    say = words("en")
    ends = {
        "before": "0.38",
        "after": "0.62",
        "scale": say("answer.of", most=1),
        "interval": "[−0.01, 0.11]",
    }
    assert is_told(overall, "answer.none_overall", difference="+0.05", **ends)
    assert is_told(overall, "answer.balance", higher=70, lower=41, n=say.counted("question", 120))
    assert is_told(within, "answer.within", distance="0.11")
    assert is_told(dimensions, "answer.by_better", dimensions="true (+0.21 [0.08, 0.34])")
    assert is_told(dimensions, "answer.by_none", dimensions="kind (+0.01 [−0.10, 0.12])")
    rows[2] = difference("overall", "better", n=240)
    overall = said(differences=rows)[0]
    assert is_told(overall, "answer.better_overall", **ends | GAP)
    count = say.counted("pair", 240)
    assert is_told(overall, "answer.balance_pairs", higher=70, lower=41, n=count)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["rubric", "pairwise"])
def test_not_enough_evidence_never_reads_like_no_difference(language, kind):
    rows = [difference(name, UNDECIDED, low=-0.1) for name in ("true", "kind", "overall")]
    text, *_ = said(language, kind, differences=rows)
    key = "answer.pair_none" if kind == "pairwise" else "answer.none_overall"
    assert is_told(text, key, language, variant="v2", baseline="v1")


def test_one_dimension_is_said_once_and_how_many_more_would_decide():
    rows = [
        difference("true", UNDECIDED, more_questions="several hundred", low=-0.1),
        difference("overall", UNDECIDED, low=-0.1),
    ]
    sentence, more = said(differences=rows)
    assert is_told(more, "answer.within") and is_told(more, "needed.several hundred")
    assert is_told(sentence, "answer.none", dimension="true")
    duel = difference("overall", UNDECIDED, more_questions="more than is practical", low=-0.1)
    _, more = said(kind="pairwise", differences=[duel])
    assert more == words("en").gloss("needed", "more than is practical")


def test_figures_have_digits_enough_to_add_up():
    row = difference("overall", "worse", difference=-0.0017, low=-0.003, high=-0.0004)
    assert "(−0.002 [−0.003, 0.000])" in said(differences=[row])[0]
    row = difference("overall", "worse", baseline_mean=0.4856, mean=0.4515, difference=-0.0341)
    (text,) = said(differences=[row])
    assert "0.486 → 0.452 " in text and "(−0.034 [" in text
    row = difference("overall", "better", baseline_mean=0.4, mean=0.61, difference=0.21)
    (text,) = said(differences=[row])
    assert "0.40 → 0.61 " in text and "(+0.21 [" in text


def test_pairs_are_said_in_win_rates():
    rows = [difference("C1", "better"), difference("overall", "worse", mean=0.31)]
    sentence, averaged = said(kind="pairwise", differences=rows)
    assert is_told(averaged, "answer.averaged")  # the counts alone make 62 %
    counts = {"n": words("en").counted("pair", 120), "higher": 70, "lower": 41}
    assert is_told(sentence, "answer.pair_worse", rate="31%", interval="[55, 69]", **counts)


def test_what_the_correction_alone_holds_back_is_said_below_and_only_then():
    held = {"difference": 1.5, "low": 0.3, "high": 2.36, "p_adjusted": 0.0781, "scale": (0, 5)}
    sentence, statistics = said(differences=[difference("true", UNDECIDED, **held)])
    assert is_told(sentence, "answer.none", dimension="true")
    assert is_told(
        statistics, "answer.held_better", variant="v2", n=words("en").counted("comparison", 1)
    )
    assert is_told(statistics, "answer.within", distance="2.36")
    held["difference"] = -1.5
    _, statistics = said(differences=[difference("true", UNDECIDED, **held)])
    assert is_told(statistics, "answer.held_worse")
    held["scale"] = (1, 5)
    _, statistics = said(differences=[difference("true", UNDECIDED, **held)])
    assert not is_told(statistics, "answer.within")
    decided = said(differences=[difference("true", UNDECIDED)])
    assert not any(is_told(text, "answer.held_better") for text in decided)
    duel = said(kind="pairwise", differences=[difference("overall", UNDECIDED, p_adjusted=0.06)])
    assert [is_told(text, "answer.held_better") for text in duel] == [False, True]
    rows = [
        difference(name, UNDECIDED, p_adjusted=0.06 if name == "kind" else 0.02)
        for name in ("true", "kind", "overall")
    ]
    last = said(differences=rows)[-1]
    for key, name in (("held", "kind"), ("none", "true")):
        assert is_told(last, f"answer.by_{key}", dimensions=f"{name} (+0.21 [0.08, 0.34])")


@pytest.mark.parametrize("kind", ["rubric", "pairwise"])
def test_of_many_variants_the_decided_come_first_and_the_rest_are_counted(kind):
    rows = [difference("overall", UNDECIDED, variant=f"u{i}", low=-0.1) for i in range(6)]
    rows += [difference("overall", "better", variant="w1"), difference("overall", "worse")]
    found = said(kind=kind, differences=rows)
    keys = (
        ("pair_better", "pair_worse") if kind == "pairwise" else ("better_overall", "worse_overall")
    )
    if kind == "pairwise":
        assert is_told(found.pop(), "answer.direct", baseline="v1")
    assert len(found) == 3 and is_told(found[0], f"answer.{keys[0]}", variant="w1")
    assert is_told(found[1], f"answer.{keys[1]}", variant="v2")
    noun = "candidate" if kind == "pairwise" else "variant"
    assert is_told(found[2], "answer.open_many", n=words("en").counted(noun, 6))
    figure = "62 % [55, 69]" if kind == "pairwise" else "+0.21 [−0.10, 0.34]"
    last = said(kind=kind, differences=rows[4:])[2]
    assert is_told(last, "answer.open", variants=f"u4 ({figure}), u5 ({figure})")
    rows[3] = replace(rows[3], p_adjusted=0.06)
    assert is_told(said(kind=kind, differences=rows)[3], "answer.held_better", variant="u3")
    (same,) = said(differences=[difference("overall", "same")], asked={"margin": 0.5})
    assert is_told(same, "answer.same_overall", margin="0.5", **GAP)
    won = [difference("overall", "better", variant=f"w{i}") for i in range(7)]
    last = said(kind=kind, differences=won)[-2 if kind == "pairwise" else -1]
    assert is_told(last, "answer.more_decided", n=words("en").counted(noun, 3))


def test_many_candidates_are_said_by_who_leads():
    rows = [standing("a", 0.7, 1, 1), standing("b", 0.6, 2, 3), standing("c", 0.1, 2, 3)]
    (sentence,) = said(kind="pairwise", standings=rows)
    first = {"candidate": "a", "rate": "70 %", "interval": "[50, 80]"}
    assert is_told(sentence, "answer.leads", other="b", other_rate="60%", **first)


@pytest.mark.parametrize("language", LANGUAGES)
def test_nobody_leads_where_more_than_one_may_be_the_first(language):
    say = words(language)
    for best, worst in ((1, 3), (None, None)):
        rows = [standing("a", 0.51, best, worst), standing("b", 0.5, best, worst)]
        rows.append(standing("c", 0.1, 3, 3))
        sentence, behind = said(language, "pairwise", standings=rows)
        assert is_told(behind, "answer.behind", language)
        assert is_told(sentence, "answer.level_with", language, n=say.counted("pair", 60))
        rates = [
            say("answer.rate", candidate=c, rate=say.percent(r))
            for c, r in (("a", 0.51), ("b", 0.5))
        ]
        assert all(rate.replace("\u00a0", " ") in sentence for rate in rates)
        assert "10" not in sentence


def test_candidates_that_never_met_have_no_first_among_them():
    rows = [standing("a", 0.9, 1, 1), standing("b", 0.1, 2, 2)]
    rows += [replace(one, candidate=one.candidate.upper(), set=2) for one in rows]
    (sentence,) = said(kind="pairwise", standings=rows)
    assert is_told(sentence, "answer.never_met")
    assert is_told(sentence, "answer.rate", candidate="A", rate="90%")


def test_means_of_variants_that_cannot_be_compared_name_the_variant():
    given = {"mean": 3.0, "low": 2.0, "high": 4.0}
    counts = {"v1": 6, "v2": 5}
    means = [
        plain_mean(dimension, variant, n, **given)
        for variant, n in counts.items()
        for dimension in ("true", "kind")
    ]
    listed = "true 3.00 [2.00, 4.00]; kind 3.00 [2.00, 4.00]"
    for (variant, n), text in zip(counts.items(), said(means=means), strict=True):
        about = {"variant": variant, "n": words("en").counted("sample", n)}
        assert is_told(text, "answer.means_of", means=listed, **about)
    many = [plain_mean("true", f"v{i}", 1, **given) for i in range(6)]
    assert is_told(said(means=many)[-1], "answer.more_means", n=words("en").counted("variant", 2))


def test_critical_fails_are_said_where_no_table_of_variants_says_them():
    means = [plain_mean("true")]
    tags = [Bar("", "", "B", 5, 30), Bar("", "", "critical", 4, 30)]
    of = words("en").counted("sample", 30)
    assert is_told(said(means=means, tags=tags)[1], "answer.critical", n=4, of=of)


def test_one_variant_has_means_and_nothing_judged_has_no_answer():
    (text,) = said(means=[plain_mean("true")])
    assert is_told(text, "answer.means", means="true 3.20 [2.90, 3.50]")
    say = words("en")
    pending = replace(COVERAGE, verdicts=0, pending=240)
    assert said(coverage=pending) == [say("answer.nothing")]
    failed = replace(COVERAGE, verdicts=0, failures={"schema": 200, "empty": 40})
    assert said(coverage=failed) == [say("answer.all_failed", n=240)]
    none = [difference("true", UNDECIDED, difference=None, low=None, high=None)]
    assert said(differences=none) == [say("answer.no_figure")]


def test_the_scale_is_named():
    (sentence,) = said(kind="weighted", differences=[difference("overall", "better")])
    assert is_told(sentence, "answer.better_overall", scale=words("en")("answer.of", most=1), **GAP)
    assert is_told(sentence, "answer.balance", n=words("en").counted("task", 120))
    points = {"mean": 3.9, "baseline_mean": 3.1, "difference": 0.8, "scale": (1.0, 5.0)}
    (sentence,) = said(differences=[difference("true", "better", **points)])
    scale = words("en")("answer.between", least=1, most=5)
    assert is_told(sentence, "answer.better", before="3.10", after="3.90", scale=scale)


def test_a_hostile_name_stays_a_name():
    rows = [difference("\u202etrue", "better", variant="{n}<b>")]
    (text,) = said(differences=rows, asked={"baseline": "{variant}"})
    names = {"variant": "{n}<b>", "baseline": "{variant}", "dimension": "\\u202etrue"}
    assert is_told(text, "answer.better", **names | GAP)


@pytest.mark.parametrize("outcome", ["better", "worse", "not enough evidence"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_where_there_is_no_interval_nothing_stands_in_its_place(language, outcome):
    """As of scores that are all the same on a scale that nobody knows."""
    without = dict.fromkeys(("low", "high", "mean_low", "mean_high", "scale"))
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
