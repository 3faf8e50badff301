"""The matrix of a report: a row per question, a column per variant, every cell a text."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from evenhand.report.html.matrix import shade as shade_of
from evenhand.report.html.render import render
from evenhand.report.model import ListedQuestions
from evenhand.results.report import make_report as report_on
from evenhand.stats.matrix import QuestionMatrix
from evenhand.stats.observations import Scale
from evenhand.text import visible
from evenhand.words import LANGUAGES
from tests.browser.runs import answers_suite, judge, opened, pairs_suite, rubric_suite, sample_rows
from tests.suites import write_suite
from tests.unit.report.reports import COVERAGE, make_report

HOSTILE = '"><script>struck()</script>\u202e'


def page_of(suite):
    with opened(judge(suite)) as (store, run):
        return render(report_on(store, run))


def rows_of(page):
    """The question of each row, and its cells: their texts, shades and addresses."""
    body = re.search(r'<div class="questions".*?<tbody>(.*?)</tbody>', page, re.DOTALL)[1]
    rows = {}
    for row in re.split("<tr[^>]*>", body)[1:]:
        question, *cells = re.split(r"<td(?: class=(\w+))?>", row.strip())
        cells = zip(cells[::2], cells[1::2], strict=True)
        texts = [
            (_text(cell), shade or "", "".join(re.findall("#u[0-9]+", cell)))
            for shade, cell in cells
        ]
        rows[_text(question)] = texts
    return rows


def _text(markup):
    return unescape(re.sub("<[^>]*>", "", markup))


def made(values, **more):
    """A matrix of these values, two variants unless more are named."""
    shape = np.shape(values)
    given = {"names": ("v1", "v2"), "base": 0, "is_duel": False, "measure": "overall"}
    given |= {"scale": Scale(), "values": np.array(values, float), "units": ["u"]}
    given["passed"], given["opens"] = np.full(shape, np.nan), np.zeros(shape, np.int64)
    given["missing"] = np.where(np.isnan(given["values"]), "no_verdict", "")
    return QuestionMatrix(**given | more)


def shown(matrix, questions, **more):
    listed = ListedQuestions(matrix, questions, {"u": 0}, len(questions))
    usage = dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens"), 0)
    return render(make_report(questions=listed, coverage=replace(COVERAGE, usage=usage), **more))


def test_a_cell_has_the_score_and_opens_its_unit_and_a_failure_says_so(tmp_path):
    page = page_of(rubric_suite(tmp_path / "s", 6))
    rows = rows_of(page)
    assert list(rows) == [f"Question {n}: what about it?" for n in range(6)]
    for cells in rows.values():
        for text, shade, href in cells[:2]:
            assert (text == "no verdict") == (shade == "no") and (shade == "no" or float(text) <= 1)
            assert f'id="{href[1:]}"' in page
    assert [text for text, _, _ in rows["Question 5: what about it?"]] == ["no verdict"] * 2 + ["–"]
    href = rows["Question 3: what about it?"][1][2]
    assert "m/v2/q3" in page.partition(f'id="{href[1:]}"')[2].partition("</summary>")[0]


def test_pairs_count_by_question_and_a_missing_answer_is_said(tmp_path):
    rows = rows_of(page_of(pairs_suite(tmp_path / "p", 4)))
    assert len(rows) == 4
    for cells in rows.values():
        rates = [float(text.rstrip("%")) for text, _, _ in cells[:-1]]
        assert len(rates) == 3 and abs(sum(rates) - 150) <= 1, "all that one wins, another loses"
    lacking = [row for n, row in enumerate(sample_rows(3)) if n != 3]
    suite = write_suite(tmp_path / "m", lacking, {"model": "python/judge:good"})
    cells = rows_of(page_of(suite))["Question 1: what about it?"]
    assert cells[1] == ("missing", "na", "") and cells[-1][0] == "–"


def test_a_run_of_one_variant_has_no_matrix(tmp_path):
    page = page_of(answers_suite(tmp_path / "a", 3))
    assert 'class="questions"' not in page and 'href="#matrix"' not in page


def test_rows_are_sorted_and_what_cannot_be_compared_comes_last():
    matrix = made([[0.5, 0.9], [0.5, np.nan], [0.9, 0.2], [0.4, 0.4]])
    ways = {way: matrix.rows("", way).tolist() for way in ("loss", "spread", "order")}
    assert ways == {"loss": [2, 3, 0, 1], "spread": [2, 0, 3, 1], "order": [0, 1, 2, 3]}
    assert matrix.rows("different", "order").tolist() == [0, 2]
    assert matrix.rows("failures", "order").tolist() == [1]


@pytest.mark.parametrize(
    ("matrix", "texts"),
    [
        (made([[0.25, 1]]), ["0.25", "1.00", "+0.75"]),
        (made([[0.25, 1]]).out_of(100), ["25", "100", "+75"]),
        (made([[2, 4.5]], scale=Scale(1, 5)), ["2.0", "4.5", "+2.5"]),
        (made([[0.25, 1]], is_duel=True), ["25%", "100%", "+75%"]),
        (made([[0, 1]], passed=np.array([[0.0, 1.0]])), ["0 ✗ fail", "1 ✓ pass", "+1"]),
        (made([[0.5, 1]], base=None), ["0.50", "1.00", "0.50"]),
    ],
)
def test_values_have_the_digits_that_they_need(matrix, texts):
    assert [text for text, _, _ in rows_of(shown(matrix, ["q"]))["q"]] == texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_names_and_questions_are_text(language):
    matrix = made([[0.1, np.nan]], names=(HOSTILE, "v2"), measure=HOSTILE, base=None)
    page = shown(matrix, [visible(HOSTILE)], language=language)
    assert "<script>struck" not in page and "\u202e" not in page
    assert next(iter(rows_of(page))).startswith('"><script>')


def test_eight_hundred_questions_by_five_stay_small():
    values = np.random.default_rng(1).random((800, 5))
    matrix = made(values, names=tuple("abcde"), base=None, units=["u"])
    rows = [f"Question number {n}, of about as many characters as usual?" for n in range(800)]
    empty = len(shown(matrix.of_rows(np.arange(0)), []))
    assert len(shown(matrix, rows)) - empty < 230_000


def test_a_value_that_fails_is_never_shaded_as_good():
    assert [shade_of(value) for value in (0.1, 0.5, 0.58)] == ["l3", "", "w1"]
    assert [shade_of(value, 0.0) for value in (0.1, 0.5, 0.58)] == ["l3", "l1", "l1"]
    assert [shade_of(value, 1.0) for value in (0.4, 0.5, 0.9)] == ["w1", "w1", "w3"]
