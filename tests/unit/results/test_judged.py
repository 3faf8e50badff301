"""One judged unit in Python: what it says, what it prints, and the assertion that it passes."""

from __future__ import annotations

import pytest

import evenhand
from evenhand.errors import NoVerdicts, UsageError
from tests.sentences import is_told, refused
from tests.suites import CHECKLIST, GRADE_JUDGE, JUDGE, PAIR_JUDGE, RUBRIC, TASK, TICK_JUDGE

OUTPUT = "There are exactly seven of them."
HOSTILE = r"fits\u001b[31m and <b>more</b>"
JUDGES = {"scores": JUDGE, "pairs": PAIR_JUDGE, "grades": GRADE_JUDGE, "ticks": TICK_JUDGE}


@pytest.fixture(autouse=True)
def judges(tmp_path, monkeypatch):
    for name, source in JUDGES.items():
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)


def score(judge="good", **more):
    judge = f"python/scores:{judge}"
    return evenhand.score("How many?", OUTPUT, rubric=RUBRIC, judge=judge, **more)


def tick(**more):
    return evenhand.checklist("How many?", OUTPUT, criteria=CHECKLIST, **more)


def cells(value):
    """Return the rows that a value prints, without the head and blanks."""
    _, _, *lines = repr(value).splitlines()
    return [tuple(line.split()) for line in lines]


def test_each_kind_prints_a_short_table():
    assert cells(score()) == [
        ("correct", "3", "of", "5", '"There', "are", "exactly", 'se"', "fits"),
        ("clear", "3", "of", "5", '"There', "are", "exactly", 'se"', "fits"),
        ("overall", "0.50"),
    ]
    ticked = cells(tick(judge="python/ticks:good"))
    assert [row[:2] for row in ticked[:3]] == [("c1", "yes"), ("clear", "yes"), ("rude", "no")]
    assert ticked[3:] == [("overall", "1.00"), ("pass", "yes")] and '"There' in ticked[0]
    graded = cells(evenhand.grade("Q?", "A.", rubric=TASK, judge="python/grades:good"))
    assert ("logic_and_fact", "7", "of", "60", "so", "it", "is") in graded
    preferred = cells(evenhand.prefer("Q?", "9", "2", judge="python/pairs:content"))
    assert preferred[0][:2] == ("winner", "A") and preferred[1] == ("C1", "A+", "so")
    assert cells(score("bad"))[0][:2] == ("failure", "schema")


def test_print_and_notebook_show_no_codes_and_keep_to_eighty_columns(tmp_path):
    (tmp_path / "scores.py").write_text(JUDGE.replace("fits", f"{HOSTILE} {'words ' * 30}"))
    judged = score()
    text = str(judged)
    assert max(map(len, text.splitlines())) <= 80 and "\x1b" not in text and "\\u001b" in text
    assert "&lt;b&gt;more" in judged._repr_html_() and "<b>" not in judged._repr_html_()


def test_short_names_say_what_the_contract_s_object_says():
    judged, ticked = score(), tick(judge="python/ticks:good")
    assert (judged.scores, judged.overall, judged.passed) == ({"correct": 3, "clear": 3}, 0.5, None)
    assert (ticked.scores, ticked.passed) == ({"c1": 1, "clear": 1, "rude": 0}, True)
    assert isinstance(judged.value, evenhand.RubricVerdict)
    pair = evenhand.prefer("Q?", "9", "2", judge="python/pairs:content")
    assert (pair.winner, pair.overall, pair.passed) == ("A", None, None)
    for name in ("scores", "total_score"):
        with pytest.raises(LookupError):
            getattr(pair, name)
    for name in ("value", "scores", "overall", "passed", "total_score", "winner"):
        with refused(NoVerdicts, "api.no_verdict", "schema"):
            getattr(score("bad"), name)


def test_what_passes_is_said_by_the_rubric_or_by_at_least():
    evenhand.assert_passes(score(), at_least=0.5)
    evenhand.assert_passes(tick(judge="python/ticks:good"))
    for judged, at_least, key in (
        (score(), 0.51, "api.too_low"),
        (tick(judge="python/ticks:varied", pass_share=1), None, "api.not_passed"),
    ):
        with pytest.raises(AssertionError) as caught:
            evenhand.assert_passes(judged, at_least=at_least)
        first, *lines = str(caught.value).splitlines()
        assert is_told(first, key, text=OUTPUT)
        assert lines[-1].startswith(("  overall: ", "  pass: no"))
    with pytest.raises(AssertionError, match=r'correct: 3 of 5\. fits "There are exactly se"'):
        evenhand.assert_passes(score(), at_least=1)


def test_a_dimension_s_own_mark_is_shown_beside_its_score():
    first, second = RUBRIC["dimensions"]
    worse = {**second, "higher_is": "worse", "pass": 1}
    judged = evenhand.score(
        *("How many?", OUTPUT),
        rubric={"dimensions": [{**first, "pass": 3}, worse]},
        judge="python/scores:good",
    )
    assert judged.passed is False
    assert [row[4:6] for row in cells(judged)[:2]] == [(">=", "3"), ("<=", "1")]
    with pytest.raises(AssertionError, match=r"clear: 3 of 5 \(<= 1\). fits"):
        evenhand.assert_passes(judged)


def test_what_cannot_pass_or_fail_is_an_error_and_no_failed_assertion():
    pair = evenhand.prefer("Q?", "9", "2", judge="python/pairs:content")
    for judged, given, error, key in (
        (score(), {}, UsageError, "api.nothing_passes"),
        (pair, {"at_least": 0.5}, UsageError, "api.nothing_passes"),
        (score(), {"at_least": 4}, UsageError, "api.no_share"),
        (score("bad"), {"at_least": 0.5}, NoVerdicts, "api.no_verdict"),
    ):
        with refused(error, key):
            evenhand.assert_passes(judged, **given)
