"""Observations read from a store against what the judgments themselves say."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager

import numpy as np
import pytest

from evenhand.observation import CRITICAL_FAIL, OVERALL, SUBJECT_LENGTH, UNCERTAIN, WINNER
from evenhand.results.observations import observe
from evenhand.runs.judge import judge_run
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_store
from evenhand.stats.observations import NONE, field_named
from evenhand.suite import load_suite
from tests.suites import CRITERIA, pair_row, samples, write_answers, write_pairs, write_suite


@contextmanager
def judged(suite):
    """A suite judged, and its run read back."""
    store = open_store("sqlite:table.db", suite.parent if suite.is_file() else suite)
    try:
        prepared = prepare(load_suite(suite, {}), {}, lambda said: None)
        asyncio.run(judge_run(prepared, store))
        yield store.archive, find_run(store.archive, "latest")
    finally:
        store.close()


def _variants():
    rows = samples(4)
    for i, row in enumerate(rows):
        del row["id"]
        row["meta"] = {"prompt_variant": f"v{i % 2 + 1}", "question_id": f"q{i // 2}"}
    return rows


def _told(values):
    return [None if np.isnan(value) else float(value) for value in values]


def _scales(table):
    return [table.scale(name).ends for name in table.dimensions]


def test_scores_keep_what_identifies_a_unit_and_the_ends_of_each_scale(tmp_path):
    with judged(write_suite(tmp_path, _variants())) as found:
        table = observe(*found)
    assert table.dimensions == ["correct", "clear"] and _scales(table) == [(1, 5), (1, 5)]
    assert table.values[:, :2].tolist() == [[3, 3]] * 4
    assert table.column(OVERALL).tolist() == [0.5] * 4
    assert table.id_fields == ("prompt_variant", "question_id")
    variant = field_named(table.fields, "meta.prompt_variant")
    assert [variant.levels[code] for code in variant.codes] == ["v1", "v2", "v1", "v2"]
    assert table.question.tolist() == [0, 0, 1, 1]
    assert table.due().tolist() == [1] * 4 and not table.failed.any()


def test_a_failed_judgment_is_a_row_without_a_score(tmp_path):
    judges = ({"model": "python/judge:good"}, {"model": "python/judge:bad", "repeats": 2})
    with judged(write_suite(tmp_path, 2, *judges)) as found:
        table = observe(*found)
    assert table.due().tolist() == [3, 3] and table.of_judge("python/judge:bad").due().tolist() == [
        2,
        2,
    ]
    assert table.failed.tolist() == [False, True, True] * 2
    assert table.judge.tolist() == [0, 1, 1] * 2 and table.repeat.tolist() == [0, 0, 1] * 2
    assert table.id_fields == ("unit",) and sum(table.failures.values()) == 4


def test_answers_give_points_and_a_total(tmp_path):
    with judged(write_answers(tmp_path, 3)) as found:
        table = observe(*found)
    assert table.dimensions[0] == "logic_and_fact"
    assert _scales(table) == [(0, 60), (0, 30), (0, 10)]
    assert table.column(OVERALL).tolist() == pytest.approx([0.21, 0.21, 0.0])
    assert table.column(CRITICAL_FAIL).tolist() == [0, 0, 1] and table.flags == [CRITICAL_FAIL]
    assert table.id_fields == ("task_name", "model")


def test_votes_are_of_the_candidates_as_the_unit_has_them(tmp_path):
    rows = [pair_row("p0", 9, 2, meta={"area": "x"}), pair_row("p1", 1, 7), pair_row("p2", 4, 4)]
    with judged(write_pairs(tmp_path, rows)) as found:
        table = observe(*found)
    assert table.candidates == ("c1", "c2")
    for name in (WINNER, *CRITERIA):
        assert table.column(name).tolist() == [1, 0, 0.5]
    assert table.column(UNCERTAIN).tolist() == [0, 0, 0] and not table.conflict.any()
    assert table.numbers(SUBJECT_LENGTH).tolist() == [len("An answer worth 9.")] * 3
    assert table.fields["area"].codes.tolist() == [0, NONE, NONE]
    assert table.fields["topic"].levels == ("p0", "p1", "p2")
    passes = table.passes
    assert sorted(passes.position[passes.row == 0].tolist()) == [1, 2]
    assert passes.value[passes.row == 1].tolist() == [0, 0] and set(passes.round.tolist()) == {1}


@pytest.mark.parametrize(
    ("rule", "won", "uncertain"),
    [("uncertain", 0.5, 1), ("tie", 0.5, 0), ("split", 0.5, 1), ("drop", None, 1)],
)
def test_orders_that_never_agree_come_under_the_rule(tmp_path, rule, won, uncertain):
    with judged(write_pairs(tmp_path, 2, {"model": "python/judge:first"})) as found:
        table = observe(*found, rule=rule)
    assert table.rule == rule and table.conflict.tolist() == [True, True]
    assert _told(table.column(WINNER)) == [won] * 2
    assert table.column(UNCERTAIN).tolist() == [uncertain] * 2


def test_candidates_of_one_topic_share_it_and_a_failure_has_no_outcome(tmp_path):
    judges = ({"model": "python/judge:content"}, {"model": "python/judge:bad"})
    with judged(write_pairs(tmp_path, [pair_row("t", 3, 2, 1)], *judges)) as found:
        table = observe(*found)
    assert table.topic.tolist() == [0] * 6 and table.unit.tolist() == [0, 0, 1, 1, 2, 2]
    assert _told(table.column(WINNER)) == [1, None] * 3
    assert table.subject.tolist() == [0, 0, 1] and table.opponent.tolist() == [1, 2, 2]
    assert set(table.passes.row.tolist()) == {0, 2, 4}


def test_a_score_on_a_scale_on_which_more_is_worse_is_turned_round(tmp_path):
    suite = write_suite(tmp_path, _variants())
    judge = tmp_path / "judge.py"
    judge.write_text(judge.read_text().replace('"score": 3', '"score": 5'))
    rubric = json.loads((tmp_path / "rubric.json").read_text())
    rubric["dimensions"][0]["higher_is"] = "worse"
    (tmp_path / "rubric.json").write_text(json.dumps(rubric))
    with judged(suite) as found:
        table = observe(*found)
    assert table.column("correct").tolist() == [0] * 4 and table.scale("correct").ends == (0, 1)
    assert table.column("clear").tolist() == [5] * 4
    assert table.column(OVERALL).tolist() == [0.5] * 4
