"""From the store to a report: every figure there, the same bytes each time, errors that help."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from click.testing import CliRunner

import evenhand
from evenhand.cli import run as cli_run
from evenhand.cli.main import cli
from evenhand.errors import UsageError
from evenhand.report.html import page
from evenhand.report.html.answer import answers
from evenhand.report.html.charts import figures
from evenhand.report.html.ranking import rank
from evenhand.report.html.render import render
from evenhand.results.report import ReportOptions, make_report, write_report
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_store
from evenhand.words import words
from tests.browser.runs import SUITES, judge, opened, rubric_suite
from tests.sentences import is_told, refused
from tests.suites import (
    EVENHAND,
    evenhand_here,
    pair_row,
    pairs,
    samples,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.suites import answers as answer_rows
from tests.unit.runs.importing import import_files


def report_of(suite, asked=None, limit=None):
    with opened(judge(suite, limit)) as (store, run):
        return make_report(store, run, asked)


@pytest.mark.parametrize("kind", SUITES)
def test_the_same_store_gives_the_same_bytes(tmp_path, kind):
    folder = judge(SUITES[kind](tmp_path / "suite", 5))
    written = []
    for name in ("one.html", "two.html"):
        with opened(folder) as (store, run):
            size = write_report(tmp_path / name, store, run)
        written.append((tmp_path / name).read_bytes())
        assert size == len(written[-1])
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in written[0]


@pytest.mark.parametrize("kind", SUITES)
def test_the_answer_alone_is_that_of_the_whole_report(tmp_path, kind):
    folder = judge(SUITES[kind](tmp_path, 6))
    say = words("en")
    with opened(folder) as (store, run):
        whole = make_report(store, run, ReportOptions(summary=True))
        alone = make_report(store, run, ReportOptions(answer_only=True))
    assert answers(alone, say) == answers(whole, say)
    assert rank(alone, say) == rank(whole, say)
    assert not alone.lengths and alone.changed is None and alone.units is None


def test_an_answer_that_takes_long_is_announced(tmp_path, monkeypatch):
    write_suite(tmp_path)
    assert not is_told(evenhand_here("run", cwd=tmp_path).stderr, "cli.computing")
    monkeypatch.setattr(cli_run, "ANSWER_AT_ONCE", 2)
    said = evenhand_here("run", cwd=tmp_path).stderr
    assert is_told(said, "cli.computing", n=3)


@pytest.mark.parametrize("kind", SUITES)
def test_the_bytes_do_not_hang_on_how_python_hashes(tmp_path, kind):
    folder = judge(SUITES[kind](tmp_path, 6))
    written = []
    for seed in ("1", "2"):
        command = [EVENHAND, "report", "-o", f"{seed}.html", "--store", "sqlite:looked.db"]
        environ = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True)
        written.append((folder / f"{seed}.html").read_bytes())
    assert written[0] == written[1]


def test_a_report_compares_by_what_differs_where_nobody_says(tmp_path):
    found = report_of(rubric_suite(tmp_path))
    comparison = found.comparison
    assert comparison.by == "prompt_variant" and comparison.baseline == "v1"
    assert {one.dimension for one in comparison.rows} == {"correct", "clear", "overall"}
    coverage = found.coverage
    assert coverage.planned == 40 and coverage.verdicts == 38 and coverage.pending == 0
    assert sum(coverage.failures.values()) == 2 and coverage.units == 40


def test_the_suite_names_the_question_that_a_report_answers_first(tmp_path):
    suite = rubric_suite(tmp_path, 4, compare={"by": ["prompt_variant"], "baseline": "v2"})
    found = report_of(suite).comparison
    assert found.baseline == "v2"
    assert {one.variant for one in found.rows} == {"v1"}
    found = report_of(suite, ReportOptions(baseline="v1")).comparison
    assert found.baseline == "v1"


def test_a_name_that_nobody_has_is_an_error_with_advice(tmp_path):
    folder = judge(rubric_suite(tmp_path, 3))
    with opened(folder) as (store, run):
        with refused(UsageError, "stats.no_such_field", "prompt_variants"):
            make_report(store, run, ReportOptions(by=("prompt_variants",)))
        with refused(UsageError, "stats.no_variant", "v9"):
            make_report(store, run, ReportOptions(baseline="v9"))


def test_one_variant_has_means_without_a_comparison(tmp_path):
    found = report_of(write_suite(tmp_path, 4))
    assert found.comparison is None and [one.mean for one in found.means] == [3, 3, 0.5]
    with refused(UsageError, "stats.no_field"):
        report_of(write_suite(tmp_path, 4), ReportOptions(baseline="v1"))


def test_pairs_have_a_board_and_both_directions_of_the_matrix(tmp_path):
    found = report_of(write_pairs(tmp_path, 9))
    assert [(one.candidate, one.wins, one.losses, one.ties) for one in found.board.rows] == [
        ("c1", 3, 3, 3),
        ("c2", 3, 3, 3),
    ]
    rows = [pair_row(f"p{i}", 3, 2, 1) for i in range(9)]
    charts = figures(report_of(write_pairs(tmp_path / "three", rows)), words("en"))[""]
    matrix = next(one for one in charts if one.name == "matrix")
    won, lost = (
        [row for row in matrix.rows if set(row[:2]) == {"c1", "c3"} and row[0] == name]
        for name in ("c1", "c3")
    )
    assert won == [["c1", "c3", "9", "100%"]] and lost == [["c3", "c1", "9", "0%"]]
    assert "ratings" not in {one.name for one in charts}, "all met equally often"
    assert [one.consistency.value for one in found.orders.values()] == [1.0]
    with opened(tmp_path) as (store, run), refused(UsageError, "results.pairs_against"):
        make_report(store, run, ReportOptions(against=run))
    with refused(UsageError, "compare.pairs_by"):
        report_of(write_pairs(tmp_path, 9), ReportOptions(by=("model",)))


def test_what_is_pending_is_shown_as_such(tmp_path):
    suite = write_suite(tmp_path, 4, {"model": "python/judge:good"})
    with opened(judge(suite, limit=2)) as (store, run):
        found = make_report(store, run)
    assert found.units is not None
    assert found.coverage.planned == 4 and found.coverage.pending == 2
    verdicts = [one.facets["verdicts"] for one in found.units]
    assert verdicts == [["scored"], ["scored"], ["pending"], ["pending"]]


@pytest.mark.parametrize(
    ("write", "rows", "model"),
    [
        (write_suite, samples(1), "bad"),
        (write_suite, samples(3), "crash"),
        (write_pairs, pairs(1), "content"),
        (write_pairs, pairs(2), "bad"),
        (write_pairs, pairs(3), "tie"),
        (write_answers, answer_rows(1), "good"),
        (write_answers, answer_rows(2), "bad"),
    ],
)
def test_little_and_nothing_make_a_page_too(tmp_path, write, rows, model):
    found = report_of(write(tmp_path, rows, {"model": f"python/judge:{model}"}))
    text = render(found)
    said = text[text.index('<section id="answer">') : text.index('<section id="units">')]
    assert not re.search(r"\b(nan|inf|None)\b", said)
    assert ("× <code>" in said) == (model in ("bad", "crash"))


def imported(folder, kind, rows, **options):
    """The report of judgments that were made elsewhere."""
    write_rows(folder, rows, f"{kind}.jsonl")
    store = open_store("sqlite:elsewhere.db", folder)
    try:
        run = import_files(store, [folder / f"{kind}.jsonl"], kind, **options).run
        return make_report(store.archive, find_run(store.archive, run))
    finally:
        store.close()


def test_judgments_made_elsewhere_are_reported_alike(tmp_path):
    votes = [
        {"unit": f"u{i}", "judge": ("ann", "bob")[i % 2], "first": "a", "second": "b"}
        | {"winner": ("first", "second", "tie", "")[i % 4]}
        for i in range(24)
    ]
    scores = [
        {"unit": f"u{i}", "judge": "ann", "dimension": d, "score": i % 5, "prompt_variant": v}
        for i in range(12)
        for d in ("true", "kind")
        for v in ("v1", "v2")
    ]
    for kind, rows in (("votes", votes), ("scores", scores)):
        found = imported(tmp_path, kind, rows)
        assert found.units is not None and found.manifest.imported is not None
        assert len(found.units) == found.coverage.units == 24
        assert "<figure" in render(found)


@pytest.mark.parametrize("rule", ["uncertain", "tie", "drop", "split"])
def test_what_counts_half_a_win_is_said_by_the_rule_of_the_run(tmp_path, rule):
    rows = [
        {"unit": f"u{i}", "judge": "ann", "first": a, "second": b, "winner": "first"}
        for i in range(8)
        for a, b in (("a", "b"), ("b", "a"))[: 1 + i % 2]
    ]
    found = imported(tmp_path, "votes", rows, on_conflict=rule)
    text, said = render(found), words("en").glosses("half")
    for name, sentence in said.items():
        # On the first screen and in the method.
        assert text.count(sentence) == (2 if name == rule else 0), name
    assert not is_told(text, "method.orders_both") and is_told(text, "method.orders_imported")
    assert "<dt>Cost</dt>" not in text and "Language of the prompts" not in text


def test_a_total_is_told_out_of_100(tmp_path):
    report = report_of(write_answers(tmp_path, answer_rows(3)))
    (total,) = [mean for mean in report.means if mean.dimension == "overall"]
    points = sum(mean.mean or 0 for mean in report.means if mean.dimension != "overall")
    assert total.mean == pytest.approx(points) and points > 1
    assert "overall (of 100)" in render(report)


def test_scores_that_are_missing_and_variants_that_cannot_be_paired_are_noted(
    tmp_path,
):
    rows = [
        {"unit": f"u{i}", "judge": "ann", "dimension": d, "score": s, "model": f"m{i % 2}"}
        for i in range(6)
        for d, s in (("true", 3), ("kind", None))
    ]
    found = imported(tmp_path, "scores", rows)
    assert found.comparison is None
    told = {note.key: note.values for note in found.notes}
    assert told == {"notes.scores_missing": {"n": 6}, "notes.not_compared": {"field": "model"}}


def test_brackets_are_explained_only_where_there_are_any(tmp_path):
    bad = write_suite(tmp_path / "bad", 2, {"model": "python/judge:bad"})
    assert not is_told(render(report_of(bad)), "answer.level")
    good = write_suite(tmp_path / "good", 4)
    assert is_told(render(report_of(good)), "answer.level", level="95%")


def test_the_command_writes_a_file_and_says_so(tmp_path, monkeypatch):
    judge(rubric_suite(tmp_path, 3))
    monkeypatch.chdir(tmp_path)
    store = ["--store", "sqlite:looked.db"]
    done = CliRunner().invoke(cli, ["report", "latest", "-o", "r.html", "--language", "ja", *store])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert '<html lang="ja">' in text and "r.html written" in done.output
    small = CliRunner().invoke(cli, ["report", "-o", "s.html", "--summary", *store])
    assert small.exit_code == 0
    assert 'class="pair unit"' in text
    assert 'class="pair unit"' not in (tmp_path / "s.html").read_text(encoding="utf-8")
    wrong = CliRunner().invoke(cli, ["report", "-o", "nowhere/r.html", *store])
    assert wrong.exit_code != 0 and isinstance(wrong.exception, evenhand.EvenhandError)


def test_a_run_reports_itself_from_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = evenhand.run(rubric_suite(tmp_path, 3))
    path = run.report("report.html", language="ru", by="prompt_variant", baseline="v2")
    text = path.read_text(encoding="utf-8")
    assert '<html lang="ru">' in text and "--baseline v2" in text


async def test_a_report_can_be_written_inside_a_running_loop(tmp_path):
    run = await evenhand.run_async(rubric_suite(tmp_path, 2))
    assert run.report(tmp_path / "report.html", summary=True).exists()
    assert run.report(tmp_path / "report.html").exists()


def test_a_missing_extra_is_said_before_any_work(tmp_path, monkeypatch):
    folder = judge(write_suite(tmp_path, 1))
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    with opened(folder) as (store, run), pytest.raises(UsageError) as caught:
        write_report(tmp_path / "r.html", store, run)
    assert 'pip install "evenhand[report]"' in str(caught.value)
    assert not (tmp_path / "r.html").exists()


def test_who_views_is_told_the_extra_of_the_view(monkeypatch):
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"evenhand\[view\]"):
        page.environment(words("en"), "evenhand.web")
