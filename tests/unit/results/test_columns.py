"""Columns read from a store against what the judgments themselves say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.measures import PassVote, Voted
from evenhand.results.columns import score_table, vote_table
from evenhand.runs.judge import judge_run
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import open_store
from evenhand.stats.pairwise import preferred, under
from evenhand.stats.tables import FIRST, NONE, SECOND, TIE, UNCERTAIN, field_named
from evenhand.store.ports import Archive
from evenhand.suite import load_suite
from tests.suites import CRITERIA, pair_row, samples, write_answers, write_pairs, write_suite
from tests.unit.runs.importing import import_files


@contextmanager
def judged(suite: Path) -> Iterator[tuple[Archive, Recorded]]:
    """A suite judged, and its run read back."""
    store = open_store("sqlite:table.db", suite.parent if suite.is_file() else suite)
    try:
        prepared = prepare(load_suite(suite, {}), {}, lambda said: None)
        asyncio.run(judge_run(prepared, store))
        yield store.archive, find_run(store.archive, "latest")
    finally:
        store.close()


def _variants() -> list[dict[str, Any]]:
    rows = samples(4)
    for i, row in enumerate(rows):
        del row["id"]
        row["meta"] = {"prompt_variant": f"v{i % 2 + 1}", "question_id": f"q{i // 2}"}
    return rows


def test_scores_keep_what_identifies_a_unit_and_the_ends_of_each_scale(tmp_path: Path) -> None:
    with judged(write_suite(tmp_path, _variants())) as found:
        table = score_table(*found)
    assert table.dimensions == ("correct", "clear")
    assert table.low.tolist() == [1, 1] and table.high.tolist() == [5, 5] and table.given_scale
    assert table.values.tolist() == [[3, 3]] * 4
    assert table.overall.tolist() == [0.5] * 4
    assert table.id_fields == ("prompt_variant", "question_id")
    variant = field_named(table.fields, "meta.prompt_variant")
    assert [variant.levels[code] for code in variant.codes] == ["v1", "v2", "v1", "v2"]
    assert table.planned == 1 and not table.failed.any() and not table.tags.any()


def test_a_failed_judgment_is_a_row_without_a_score(tmp_path: Path) -> None:
    judges = ({"model": "python/judge:good"}, {"model": "python/judge:bad", "repeats": 2})
    with judged(write_suite(tmp_path, 2, *judges)) as found:
        table = score_table(*found)
    assert table.planned == 3
    assert table.failed.tolist() == [False, True, True] * 2
    assert table.judge.tolist() == [0, 1, 1] * 2 and table.repeat.tolist() == [0, 0, 1] * 2
    assert table.id_fields == ("unit",)
    assert np.isnan(table.overall[1])


def test_answers_give_points_and_a_total(tmp_path: Path) -> None:
    with judged(write_answers(tmp_path, 3)) as found:
        table = score_table(*found)
    assert table.dimensions[0] == "logic_and_fact" and table.high.tolist() == [60, 30, 10]
    assert table.overall.tolist() == pytest.approx([0.21, 0.21, 0.0])
    assert table.critical.tolist() == [False, False, True]
    assert table.id_fields == ("task_name", "model")
    assert table.tag_names == ()


def test_votes_are_of_the_candidates_as_the_unit_has_them(tmp_path: Path) -> None:
    rows = [pair_row("p0", 9, 2, meta={"area": "x"}), pair_row("p1", 1, 7), pair_row("p2", 4, 4)]
    with judged(write_pairs(tmp_path, rows)) as found:
        votes = vote_table(*found)
    assert votes.candidates == ("c1", "c2")
    assert votes.outcome.tolist() == [FIRST, SECOND, TIE]
    assert votes.preference.tolist() == [0.0, 1.0, 0.5]
    assert all(votes.marks[name].tolist() == [FIRST, SECOND, TIE] for name in CRITERIA)
    assert votes.first_length.tolist() == [len("An answer worth 9.")] * 3
    assert votes.fields["area"].codes.tolist() == [0, NONE, NONE]
    assert votes.conflicts == 0 and votes.topics == ("p0", "p1", "p2")
    assert sorted(votes.passes.turned[votes.passes.vote == 0].tolist()) == [False, True]
    assert votes.passes.outcome[votes.passes.vote == 1].tolist() == [SECOND, SECOND]


@pytest.mark.parametrize(
    ("rule", "outcome", "preference"),
    [
        ("uncertain", UNCERTAIN, 0.5),
        ("tie", TIE, 0.5),
        ("split", UNCERTAIN, 0.5),
        ("drop", NONE, None),
    ],
)
def test_orders_that_never_agree_come_under_the_rule(
    tmp_path: Path, rule: Any, outcome: int, preference: float | None
) -> None:
    with judged(write_pairs(tmp_path, 2, {"model": "python/judge:first"})) as found:
        votes = vote_table(*found, rule=rule)
    assert votes.rule == rule and votes.conflicts == 2
    assert votes.outcome.tolist() == [outcome] * 2
    assert [None if np.isnan(one) else one for one in votes.preference] == [preference] * 2


@pytest.mark.parametrize(
    ("said", "outcome", "preference"),
    [
        (("A", "B"), UNCERTAIN, 0.5),
        (("A", "tie"), FIRST, 0.25),
        (("tie", "B"), SECOND, 0.75),
        ((("tie", 0.4), ("B", 0.6)), TIE, 0.5),
    ],
)
def test_split_is_the_mean_and_a_tie_only_if_an_order_says_so(
    said: Any, outcome: int, preference: float
) -> None:
    passes = tuple(
        PassVote(1, order, one)
        if isinstance(one, str)
        else PassVote(1, order, one[0], preference=one[1])
        for order, one in zip(("12", "21"), said, strict=True)
    )
    vote = under("split", Voted("uncertain", passes=passes))
    assert (CODES[vote.winner], preferred(vote)) == (outcome, preference)


CODES = {"A": FIRST, "B": SECOND, "tie": TIE, "uncertain": UNCERTAIN}


def test_candidates_of_one_topic_share_it_and_a_failure_has_no_outcome(tmp_path: Path) -> None:
    judges = ({"model": "python/judge:content"}, {"model": "python/judge:bad"})
    with judged(write_pairs(tmp_path, [pair_row("t", 3, 2, 1)], *judges)) as found:
        votes = vote_table(*found)
    assert votes.topic.tolist() == [0] * 6 and votes.pair.tolist() == [0, 0, 1, 1, 2, 2]
    assert votes.outcome.tolist() == [FIRST, NONE] * 3
    assert votes.first.tolist() == [0, 0, 0, 0, 1, 1] and votes.second.tolist() == [
        1,
        1,
        2,
        2,
        2,
        2,
    ]
    assert np.isnan(votes.preference[1::2]).all() and set(votes.passes.vote.tolist()) == {0, 2, 4}


def test_a_field_that_is_not_there_is_told_with_what_was_meant(tmp_path: Path) -> None:
    with judged(write_suite(tmp_path, _variants())) as found:
        table = score_table(*found)
    with pytest.raises(UsageError, match="prompt_variants") as caught:
        field_named(table.fields, "prompt_variants")
    assert 'Did you mean "prompt_variant"?' in str(caught.value)


@pytest.mark.parametrize(("kind", "passes"), [("votes", 1), ("alpacaeval", 0)])
def test_positions_are_known_only_from_verdicts_that_tell_them(
    tmp_path: Path, kind: str, passes: int
) -> None:
    row = {"unit": "u", "instruction": "Why?", "judge": "j", "preference": 1}
    row |= {"first": "a", "second": "b", "generator_1": "a", "generator_2": "b"}
    file, store = tmp_path / "one.jsonl", open_store("sqlite:table.db", tmp_path)
    file.write_text(json.dumps(row) + "\n")
    try:
        made = import_files(store, [file], kind)
        votes = vote_table(store.archive, find_run(store.archive, made.run))
    finally:
        store.close()
    assert votes.outcome.size == 1 and votes.passes.vote.size == passes
