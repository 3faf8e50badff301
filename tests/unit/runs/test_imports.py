"""Rows to judgments: which rows make one, what it comes to, and what tells units apart."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from evenhand.data.foreign.shaping import Shaping
from evenhand.data.write import write
from evenhand.errors import DataError, UsageError
from evenhand.judgment import Judgment
from evenhand.kinds.pairwise.unit import load_pair
from evenhand.kinds.pairwise.verdict import pair_passes
from evenhand.kinds.rubric.unit import load_sample
from evenhand.ledger.ports import Store
from evenhand.results.pairs import figures_of_pairs, fronts_of, row_sizes
from evenhand.results.selection import select
from evenhand.runs.imports import Imported, Options, import_files
from evenhand.runs.imports.forms import BLANK
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import open_store

Judgments = dict[tuple[str, str, int], Judgment]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store("sqlite:store.db", tmp_path)
    yield opened
    opened.close()


class Importer:
    """Imports rows, and reads back what the store made of them."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder

    def __call__(self, kind: str, rows: list[dict[str, Any]], **options: Any) -> Imported:
        write(self.folder / "rows.jsonl", rows)
        files = [self.folder / "rows.jsonl"]
        return asyncio.run(import_files(self.store, files, kind, Options(**options)))

    @property
    def recorded(self) -> Recorded:
        return find_run(self.store.archive, "latest")

    @property
    def judgments(self) -> Judgments:
        run = self.recorded
        found = self.store.archive.judgments(run.scope)
        return {(u.id, run.names[one.judge], one.repeat): run.judgment(one) for u, one in found}

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(unit.body) for unit in self.store.archive.units(self.recorded.scope)]


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Importer:
    return Importer(store, tmp_path)


def vote(first: str, second: str, winner: str, **more: Any) -> dict[str, Any]:
    return {"unit": "q", "judge": "j", "first": first, "second": second, "winner": winner, **more}


def score(unit: str, value: Any, dimension: str = "d", **more: Any) -> dict[str, Any]:
    return {"unit": unit, "judge": "j", "dimension": dimension, "score": value, **more}


def outcomes(judgments: Judgments) -> list[tuple[str, str]]:
    outputs = [one.output or {"winner": one.reason, "settled": ""} for one in judgments.values()]
    return [(one["winner"], one["settled"]) for one in outputs]


def test_both_orders_that_agree_are_one_stable_judgment(imported: Importer) -> None:
    found = imported("votes", [vote("a", "b", "b"), vote("b", "a", "first", area="x")])
    assert (found.tally.rows, found.tally.units, found.tally.verdicts) == (2, 1, 1)
    (judgment,) = imported.judgments.values()
    assert judgment.output == {
        "pair_id": "q",
        "candidates": ["a", "b"],
        "winner": "B",
        "settled": "stable",
        "rounds": 1,
        "criteria": {},
        "unstable": [],
        "notes": "",
        "meta": {},
    }
    assert [(p.order, p.winner) for p in judgment.passes] == [("12", "B"), ("21", "B")]


@pytest.mark.parametrize(
    ("winners", "outcome"),
    [
        (("first", "first"), ("uncertain", "uncertain")),
        (("first", "tie"), ("uncertain", "uncertain")),
        (("tie", "tie"), ("tie", "stable")),
        (("second", "first"), ("B", "stable")),
        (("first",), ("A", "one_order")),
    ],
)
def test_orders_are_settled_as_a_pass_pair(
    imported: Importer, winners: tuple[str, ...], outcome: tuple[str, str]
) -> None:
    orders = (("a", "b"), ("b", "a"))
    imported(
        "votes", [vote(*order, winner) for order, winner in zip(orders, winners, strict=False)]
    )
    assert outcomes(imported.judgments) == [outcome]


def test_rows_in_the_same_order_are_repeats_and_none_is_dropped(imported: Importer) -> None:
    rows = [vote("a", "b", "a"), vote("a", "b", "a"), vote("b", "a", "a"), vote("a", "b", "b")]
    found = imported("votes", rows)
    assert outcomes(imported.judgments) == [("A", "stable"), ("A", "one_order"), ("B", "one_order")]
    assert found.json()["repeats"] == 3
    assert imported.recorded.judges[0].repeats == 3


def test_samples_are_repeats_each_with_its_own_orders(imported: Importer) -> None:
    rows = [
        vote("a", "b", "a", sample=0),
        vote("a", "b", "b", sample=1),
        vote("b", "a", "b", sample=1),
        vote("b", "a", "a", sample=0),
    ]
    imported("votes", rows)
    assert outcomes(imported.judgments) == [("A", "stable"), ("B", "stable")]


def test_a_failed_row_fails_its_judgment_and_says_what_the_other_order_says(
    imported: Importer,
) -> None:
    rows = [vote("a", "b", "a"), vote("b", "a", "neither"), vote("a", "b", "", unit="r")]
    found = imported("votes", [*rows, vote("a", "b", "a", unit="s")])
    assert found.json()["failures"] == {"empty": 1, "schema": 1}
    assert found.json()["planned"] == 3 and found.json()["pending"] == 0
    both, one, _ = imported.judgments.values()
    assert both.reason == "schema"
    assert '"neither"' in both.detail and "order 12 says A" in both.detail
    assert [bool(p.problems) for p in both.passes] == [False, True]
    assert (one.reason, one.detail) == ("empty", "there is no winner")


def test_preferences_are_turned_to_the_second_candidate_and_averaged(imported: Importer) -> None:
    rows = [vote("a", "b", "", preference=0.8), vote("b", "a", "", preference="0.4")]
    imported("votes", rows)
    (judgment,) = imported.judgments.values()
    assert judgment.output is not None and judgment.output["winner"] == "B"
    assert [one.preference for one in judgment.passes] == pytest.approx([0.8, 0.6])
    assert judgment.output["preference"] == pytest.approx(0.7)


def test_criteria_give_marks_and_without_a_verdict_of_the_whole_the_winner(
    imported: Importer,
) -> None:
    rows = [
        vote("a", "b", "a", criterion="C1"),
        vote("a", "b", "tie", criterion="C2"),
        vote("b", "a", "a", criterion="C1"),
        vote("b", "a", "b", criterion="C2"),
    ]
    found = imported("votes", rows)
    (judgment,) = imported.judgments.values()
    # In the second order the marks conflict, which without a priority list is a tie.
    assert [one.winner for one in judgment.passes] == ["A", "tie"]
    assert judgment.passes[0].marks == {"C1": "A+", "C2": "tie"}
    assert judgment.output is not None
    assert judgment.output["criteria"] == {"C1": "A+", "C2": "tie"}
    assert judgment.output["unstable"] == ["C2"] and judgment.output["settled"] == "uncertain"
    assert found.json()["criteria"] == ["C1", "C2"] and imported.recorded.criteria == ["C1", "C2"]


def test_the_verdict_of_the_whole_beats_its_marks_and_a_lost_mark_is_flagged(
    imported: Importer,
) -> None:
    rows = [vote("a", "b", "b"), vote("a", "b", "a", criterion="C1")]
    imported("votes", [*rows, vote("a", "b", "?", criterion="C2")])
    (judgment,) = imported.judgments.values()
    assert judgment.output is not None
    assert (judgment.output["winner"], judgment.output["criteria"]) == ("B", {"C1": "A+"})
    assert judgment.flags == ("marks_missing",)


def test_judgments_with_different_criteria_still_have_figures(imported: Importer) -> None:
    rows = [
        vote("a", "b", "a", criterion="C1"),
        vote("b", "a", "a", criterion="C2"),
        vote("a", "b", "b", criterion="C3", judge="k"),
    ]
    imported("votes", rows)
    run = imported.recorded
    figures = figures_of_pairs(run.kind, imported.store.archive, run.scope, run.judge_groups)
    assert figures.settled == {"stable": 1, "one_order": 1}


def test_a_unit_with_several_pairs_names_them(imported: Importer) -> None:
    rows = [
        vote("b", "a", "a"),
        vote("a", "c", "a"),
        vote("a", "b", "a"),
        vote("a", "b", "a", unit="r"),
    ]
    found = imported("votes", rows)
    # By the order of their names, so that another run about the same pairs has the same ids.
    assert [body["id"] for body in imported.bodies] == ["q#a-b", "q#a-c", "r#a-b"]
    assert found.json()["candidates"] == ["a", "b", "c"]
    pairs = [load_pair(u.body) for u in imported.store.archive.units(imported.recorded.scope)]
    assert [(p.first.id, p.second.id, p.row, p.places) for p in pairs] == [
        ("b", "a", "q", (1, 2)),
        ("a", "c", "q", (2, 3)),
        ("a", "b", "r", (1, 2)),
    ]
    sizes = row_sizes(imported.recorded.kind, imported.store.archive, imported.recorded.id)
    assert sizes == {"q": 3}


def test_a_topic_with_several_candidates_has_its_fronts(imported: Importer) -> None:
    # In the last pair c is shown first, though a has the first place among the three.
    rows = [
        vote("a", "b", "a", criterion="C1"),
        vote("b", "c", "b", criterion="C1"),
        vote("c", "a", "a", criterion="C1"),
        vote("a", "a", "first", **{"pass": 1}),
    ]
    imported("votes", rows)
    run = imported.recorded
    figures = figures_of_pairs(run.kind, imported.store.archive, run.scope, run.judge_groups)
    (front,) = figures.fronts.values()
    assert (front.candidates, front.front, front.pareto) == (["a", "b", "c"], ["a"], ["a"])
    assert front.complete


def test_the_fronts_of_a_table_are_those_of_single_judgments(imported: Importer) -> None:
    """Several judges and repeats, marks that one judge lacks, ties, failures, topics of two and of
    four, a candidate beside itself, and a selection of units."""
    chance = random.Random(3)
    rows = [
        vote(
            *pair,
            chance.choice(["first", "second", "tie", "?"]),
            unit=unit,
            judge=judge,
            half=n % 2,
        )
        | ({"criterion": criterion} if criterion else {})
        | ({"pass": 1} if pair[0] == pair[1] else {})
        for unit, names in (("q", "abcd"), ("r", "abcd"), ("s", "ab"), ("t", "abc"))
        for n, pair in enumerate([*combinations(names, 2), ("a", "a")])
        for judge in ("x", "y", "z")
        for criterion in ("", "C1", "C2")
        if criterion != "C2" or judge == "x"
    ]
    imported("votes", rows)
    store = imported.store.archive
    for run in (imported.recorded, select(store, imported.recorded, ["half=1"])):
        figures = figures_of_pairs(run.kind, store, run.scope, run.judge_groups)
        assert fronts_of(store, run) == figures.fronts and len(figures.fronts) >= 3


def test_there_is_no_front_over_several_units_of_a_topic(imported: Importer) -> None:
    rows = [vote(*pair, "first", turn=t) for pair in ("ab", "bc", "ca") for t in (1, 2)]
    imported("votes", rows, key=["unit", "turn"])
    assert {body["row"] for body in imported.bodies} == {"q"}
    run = imported.recorded
    assert row_sizes(run.kind, imported.store.archive, run.id) == {}
    figures = figures_of_pairs(run.kind, imported.store.archive, run.scope, run.judge_groups)
    assert figures.fronts == {}


def test_lengths_and_meta_are_those_of_the_first_row(imported: Importer) -> None:
    rows = [vote("b", "a", "a", first_length="12", second_length=7, area="x"), vote("a", "b", "a")]
    imported("votes", rows)
    (body,) = imported.bodies
    assert (body["lengths"], body["meta"]) == ([12, 7], {"area": "x"})


def test_a_candidate_that_meets_itself_goes_by_its_pass(imported: Importer) -> None:
    rows = [vote("a", "a", "first", **{"pass": n}) for n in (1, 2)]
    imported("votes", rows)
    assert outcomes(imported.judgments) == [("uncertain", "uncertain")]


def test_judges_and_units_stand_in_the_order_of_the_file(imported: Importer) -> None:
    rows = [
        vote("a", "b", "a", unit=u, judge=j)
        for u, j in (("z", "k"), ("y", "j"), ("z", "j"), ("y", "k"))
    ]
    imported("votes", rows)
    assert list(imported.judgments) == [("z", "k", 0), ("z", "j", 0), ("y", "k", 0), ("y", "j", 0)]


def test_a_key_of_several_columns_keeps_the_unit_as_the_topic(imported: Importer) -> None:
    rows = [vote("a", "b", "a", turn=t, unit="q/1") for t in (1, 2)]
    imported("votes", rows, key=["unit", "turn"])
    assert [body["id"] for body in imported.bodies] == ["q%2F1/1", "q%2F1/2"]
    assert [body["row"] for body in imported.bodies] == ["q/1", "q/1"]
    assert imported.bodies[0]["meta"] == {"unit": "q/1", "turn": 1}


def test_a_key_that_no_row_has_is_an_error(imported: Importer) -> None:
    with pytest.raises(DataError, match='the column "trun"') as caught:
        imported("votes", [vote("a", "b", "a", turn=1)], key=["unit", "trun"])
    assert 'did you mean "turn"?' in caught.value.advice


def test_scores_of_one_unit_are_one_judgment(imported: Importer) -> None:
    found = imported(
        "scores", [score("q", 3, "clear"), score("q", "4.5", "true", failure_tags="B")]
    )
    (judgment,) = imported.judgments.values()
    assert judgment.output == {
        "meta": {},
        "scores": {
            "clear": {"score": 3, "evidence": [], "rationale": ""},
            "true": {"score": 4.5, "evidence": [], "rationale": ""},
        },
        "failure_tags": ["B"],
        "notes": "",
    }
    assert found.json()["dimensions"] == ["clear", "true"] and found.key == ("unit",)
    (unit,) = imported.store.archive.units(imported.recorded.scope)
    assert load_sample(unit.body).id == "q"


def test_a_missing_score_is_left_out_and_counted_and_none_at_all_is_a_failure(
    imported: Importer,
) -> None:
    rows = [score("q", 3, "clear"), score("q", "", "true"), score("r", "", "clear")]
    found = imported("scores", [*rows, score("r", "n/a", "true")])
    assert found.json()["failures"] == {"schema": 1}
    assert found.json()["missing_scores"] == {"true": 1}
    kept, failed = imported.judgments.values()
    assert kept.output is not None and list(kept.output["scores"]) == ["clear"]
    assert kept.flags == ("scores_missing",) and "true" in kept.output["notes"]
    assert '"n/a"' in failed.detail


def test_repeats_are_those_named_else_the_rows_that_stand_double(imported: Importer) -> None:
    rows = [score("q", n, repeat=r) for n, r in ((1, "x"), (2, "y"), (3, "x"))]
    imported("scores", rows)
    found = [
        one.output["scores"]["d"]["score"] for one in imported.judgments.values() if one.output
    ]
    assert found == [1, 3, 2]


@pytest.mark.parametrize("name", ["model", "prompt_variant", "system"])
def test_a_known_column_tells_units_apart_only_where_it_differs_within_one(
    imported: Importer, name: str
) -> None:
    rows = [score(unit, 3, **{name: v}) for unit in ("q", "r") for v in ("x/y", "z")]
    found = imported("scores", rows)
    assert found.key == ("unit", name)
    assert [body["id"] for body in imported.bodies] == ["q/x%2Fy", "q/z", "r/x%2Fy", "r/z"]
    assert imported.bodies[0]["meta"] == {"unit": "q", name: "x/y"}
    found = imported("scores", rows[::2])
    assert found.key == ("unit",) and [body["id"] for body in imported.bodies] == ["q", "r"]


def test_no_score_goes_under_the_name_of_another_model(imported: Importer) -> None:
    said = [("q1", "j1", 3, "a"), ("q1", "j2", 5, "b"), ("q2", "j1", 2, "a"), ("q2", "j2", 4, "b")]
    rows = [score(unit, value, judge=judge, model=model) for unit, judge, value, model in said]
    found = imported("scores", rows)
    assert found.key == ("unit", "model") and found.json()["meta_differs"] == {}
    kept = [
        (*ident.split("/"), judge, one.output["meta"]["model"], one.output["scores"]["d"]["score"])
        for (ident, judge, _), one in imported.judgments.items()
        if one.output
    ]
    assert kept == [(unit, model, judge, model, value) for unit, judge, value, model in said]


def test_a_known_column_that_goes_along_with_another_is_left_out(imported: Importer) -> None:
    rows = [score(u, 3, model=m, system=f"for {m}") for u in ("q", "r") for m in ("x", "y")]
    found = imported("scores", rows)
    assert found.key == ("unit", "model") and found.json()["meta_differs"] == {}


def test_meta_that_differs_within_a_unit_is_of_the_first_row_and_counted(
    imported: Importer,
) -> None:
    rows = [
        score("q", 3, judge="j", area="x", note=1),
        score("q", 4, judge="k", area="y", note=1),
        score("q", 5, judge="l", area="z", more="late"),
        score("r", 5, area="y"),
    ]
    found = imported("scores", rows)
    assert found.key == ("unit",)
    assert [body["meta"] for body in imported.bodies] == [{"area": "x", "note": 1}, {"area": "y"}]
    # What a row leaves out is no other value; what only a later row says is lost.
    assert found.json()["meta_differs"] == {"area": 2, "more": 1}


def test_a_key_that_is_given_stands_though_a_model_differs_and_that_is_said(
    imported: Importer,
) -> None:
    rows = [score("q", 3, judge=judge, model=m) for judge, m in (("j", "a"), ("k", "b"))]
    found = imported("scores", rows, key=["unit"])
    assert found.key == ("unit",) and found.json()["meta_differs"] == {"model": 1}


def test_a_score_beyond_all_bounds_is_a_failure_and_spoils_no_figure(imported: Importer) -> None:
    rows = [score("q", 1e308), score("r", "-1e101"), score("s", 1e100), score("t", 3, "e")]
    found = imported("scores", [*rows, score("t", 1e200)])
    assert found.json()["failures"] == {"out_of_range": 2}
    assert found.json()["missing_scores"] == {"d": 1}
    assert found.tally.details["out_of_range"] == 'score "1e+308" is beyond 1e+100'
    found = imported(
        "scores", [score("q", 1e308), score("q", "x", "e"), score("r", ""), score("s", 1)]
    )
    assert found.json()["failures"] == {"empty": 1, "schema": 1}


def test_nan_in_parquet_is_a_missing_number(store: Store, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"unit": ["q", "r"], "judge": ["j", "j"], "score": [3.0, math.nan]}
    made = pyarrow.table(columns | {"age": [math.inf, 2.0]})
    parquet.write_table(made, tmp_path / "s.parquet")
    found = asyncio.run(import_files(store, [tmp_path / "s.parquet"], "scores"))
    assert (found.tally.verdicts, found.tally.failures) == (1, {"empty": 1})


def test_another_column_tells_units_apart_if_it_comes_with_most_units(imported: Importer) -> None:
    rows = [score(f"q{i}", 3, engine=e, note=f"n{i}") for i in range(8) for e in ("x", "y")]
    assert imported("scores", rows).key == ("unit", "engine")


def test_what_is_said_of_single_answers_makes_repeats_and_no_units(imported: Importer) -> None:
    rows = [
        score(f"q{i}", 3, take=take, mood=f"m{(3 * i + take) % 7}")
        for i in range(20)
        for take in (1, 2)
    ]
    found = imported("scores", rows)
    assert found.key == ("unit",) and found.json()["repeats"] == 2


@pytest.mark.parametrize("name", ["a'b", 'a"b', "a.b", "a]b", "модель", "1", "select", "a\\b"])
def test_a_column_may_have_any_name(imported: Importer, name: str) -> None:
    rows = [score(f"q{i}", 3, **{name: v}) for i in range(3) for v in ("x", "y")]
    found = imported("scores", rows, key=["unit", name])
    assert (found.tally.units, found.tally.verdicts) == (6, 6)
    found = imported("scores", rows)
    # A name with a quote or a backslash cannot be found out, only be given.
    assert found.tally.units == (3 if name in ('a"b', "a\\b") else 6)


def test_a_key_may_do_without_a_unit(imported: Importer) -> None:
    rows = [{"judge": "j", "score": n, "a": "x", "b": n} for n in (1, 2)]
    found = imported("scores", rows, key=["a", "b"])
    assert [body["id"] for body in imported.bodies] == ["x/1", "x/2"]
    assert found.json()["key"] == ["a", "b"]


def test_rows_without_a_unit_or_a_judge_are_an_error(imported: Importer) -> None:
    with pytest.raises(DataError, match='there is no column "unit"') as caught:
        imported("scores", [{"judge": "j", "score": 1, "unti": "q"}])
    assert "--map unit=" in caught.value.advice and "--key" in caught.value.advice
    assert 'did you mean "unti"?' in caught.value.advice
    with pytest.raises(DataError, match='the column "unit" is empty'):
        imported("scores", [score("", 1)])
    with pytest.raises(DataError, match='there is no column "judge"') as caught:
        imported("scores", [{"unit": "q", "score": 1}])
    assert "--judge NAME" in caught.value.advice
    assert imported("scores", [{"unit": "q", "score": 1}], judge="me").tally.verdicts == 1
    assert imported.recorded.names == ["me"]


def test_importing_again_gives_the_same_run(imported: Importer) -> None:
    rows = [vote("a", "b", "a")]
    first = imported("votes", rows)
    again = imported("votes", rows)
    assert first.json() == again.json() and len(imported.store.archive.runs()) == 1
    other = [imported("votes", rows, **o).run for o in ({"on_conflict": "tie"}, {"name": "x"})]
    changed = imported("votes", [vote("a", "b", "b")]).run
    assert len({first.run, *other, changed}) == 4


def test_what_a_run_remembers(imported: Importer) -> None:
    imported("votes", [vote("a", "b", "a")], on_conflict="split")
    run = imported.recorded
    assert (run.imported, run.kind_name, run.row.name) == (True, "pairwise", "rows")
    source = run.manifest.judging.source
    assert source is not None
    assert source.on_conflict == "split"
    assert run.manifest.imported is not None
    assert run.manifest.imported.files == ("rows.jsonl",)
    counts = run.counts(imported.store.archive)
    assert (counts.planned, counts.verdicts, counts.pending) == (1, 1, 0)
    imported("scores", [score("q", 1)])
    assert imported.recorded.kind_name == "rubric"


def test_judges_that_vote_on_few_units_leave_nothing_pending(imported: Importer) -> None:
    rows = [vote("a", "b", "a", unit=f"q{i}", judge=f"j{i}") for i in range(30)]
    imported("votes", rows)
    assert imported.recorded.counts(imported.store.archive).pending == 0


def test_votes_and_scores_in_one_import_are_refused(store: Store, tmp_path: Path) -> None:
    pair = {"question_id": 1, "model_a": "a", "model_b": "b", "winner": "tie", "judge": "j"}
    write(tmp_path / "a.jsonl", [pair])
    write(tmp_path / "b.jsonl", [{"question_id": 1, "model": "a", "score": 3, "judge": "j"}])
    with pytest.raises(DataError, match="these are scores"):
        asyncio.run(import_files(store, [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], "fastchat"))
    assert store.archive.runs() == []


def test_several_files_are_one_run(store: Store, tmp_path: Path) -> None:
    for name, order in (("a", ("x", "y")), ("b", ("y", "x"))):
        write(tmp_path / f"{name}.csv", [vote(*order, "x")])
    found = asyncio.run(import_files(store, [tmp_path / "a.csv", tmp_path / "b.csv"], "votes"))
    assert (found.name, found.tally.units, found.tally.settled["stable"]) == ("a", 1, 1)


def test_a_file_that_is_not_there(store: Store, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("unit\n")
    with pytest.raises(UsageError, match="there is no file"):
        asyncio.run(import_files(store, [tmp_path / "vote.csv"], "votes"))


def test_every_row_is_accounted_for(imported: Importer) -> None:
    """Against a count by hand: no row is lost or merged, whatever the order of the file."""
    draw = random.Random(5)
    rows = [
        vote(*draw.sample("abc", 2), draw.choice(["first", "second", "tie", "?"]), unit=f"q{i % 9}")
        | {"judge": draw.choice("jk"), "sample": draw.choice(["", "0", "1"])}
        for i in range(400)
    ]
    found = imported("votes", rows)
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        pair = tuple(sorted((row["first"], row["second"])))
        groups.setdefault((row["unit"], pair, row["judge"], row["sample"]), []).append(row)
    judgments = failures = 0
    for (_, pair, *_), group in groups.items():
        orders = [[r for r in group if r["first"] == name] for name in pair]
        longest = max(map(len, orders))
        judgments += longest
        failures += sum(
            any(o[k]["winner"] == "?" for o in orders if k < len(o)) for k in range(longest)
        )
    assert found.json()["planned"] == judgments
    assert sum(found.tally.failures.values()) == failures
    assert sum(len(one.passes) for one in imported.judgments.values()) == len(rows)


def test_votes_bring_what_was_judged_and_why(imported: Importer) -> None:
    texts = {"question": "Why?", "first_answer": " Because. ", "second_answer": "So."}
    imported(
        "votes",
        [
            vote("a", "b", "a", explanation="Assistant 1 says more.", **texts),
            vote("b", "a", "b", explanation="Assistant 1 is shorter."),
        ],
    )
    (body,) = imported.bodies
    assert body["topic"] == "Why?" and body["meta"] == {} and body["lengths"] == [10, 3]
    assert [candidate["text"] for candidate in body["candidates"]] == [" Because. ", "So."]
    (judgment,) = imported.judgments.values()
    explanations = [pass_.explanation for pass_ in pair_passes(judgment)]
    assert explanations == ["Assistant 1 says more.", "Assistant 1 is shorter."]
    assert judgment.output and judgment.output["notes"] == "Assistant 1 says more."


def test_both_explanations_of_an_imported_pair_are_shown_once(imported: Importer) -> None:
    rows = [vote("a", "b", "a", explanation="One."), vote("b", "a", "b", explanation="Two.")]
    imported("votes", rows)
    run = imported.recorded
    (unit,) = imported.store.archive.units(run.scope)
    (page,) = run.kind.shown(unit.body, list(imported.judgments.values())).judgments
    assert [str(page.full).count(text) for text in ("One.", "Two.")] == [1, 1]


def test_the_explanation_of_a_criterion_is_its_comment(imported: Importer) -> None:
    imported("votes", [vote("a", "b", "a", criterion="C1", explanation="More precise.")])
    (judgment,) = imported.judgments.values()
    (pass_,) = pair_passes(judgment)
    assert pass_.criteria["C1"].comment == "More precise." and pass_.explanation == ""


def test_a_text_column_that_the_key_names_is_a_field(imported: Importer) -> None:
    rows = [vote("a", "b", "a", question=text) for text in ("Why?", "How?")]
    imported("votes", rows, key=["question"])
    assert [body["id"] for body in imported.bodies] == ["Why?", "How?"]
    assert [body["topic"] for body in imported.bodies] == ["Why?", "How?"]


def test_scores_bring_quotes_and_those_that_stand_in_the_answer_are_evidence(
    imported: Importer,
) -> None:
    answer = "Он сказал: «Да»,  и ушёл."
    rows = [
        score(
            "u", 2, "style", answer=answer, evidence=["Он сказал", "не так"], rationale="Почему."
        ),
        score("u", 1, "tone", evidence='["и ушёл", "«Да», и"]'),
        score("u", 0, "none", evidence="[sic]"),
    ]
    tally = imported("scores", rows).tally
    assert (tally.quotes_found, tally.quotes) == (3, 5)
    (judgment,) = imported.judgments.values()
    assert [
        (quote.dimension, answer[quote.start : quote.end], quote.match)
        for quote in judgment.evidence
    ] == [
        ("style", "Он сказал", "exact"),
        ("tone", "и ушёл", "exact"),
        ("tone", "«Да»,  и", "folded"),
    ]
    assert judgment.flags == ("quote_missing:style", "quote_missing:none")
    assert judgment.output is not None
    assert judgment.output["scores"]["style"] == {
        "score": 2,
        "evidence": ["Он сказал"],
        "rationale": "Почему.",
    }
    (body,) = imported.bodies
    assert (body["model_output"], body["meta"]) == (answer, {})


ODD_VOTES: list[dict[str, Any]] = [
    vote("x", "y", winner, unit=f"q{unit}", judge=judge, **more)
    for unit in range(7)
    for judge in ("j", "k")
    for winner, more in (
        ("first", {"preference": 0, "n": 1}),
        ("first", {"preference": 0.0, "n": 1.0}),
        ("tie", {"n": True, "explanation": "alike"}),
        ("?", {"n": "1", "sample": "2"}),
        ("second", {"n": [1], "criterion": "C1", "first_answer": "long " * 90}),
    )
]
ODD_SCORES: list[dict[str, Any]] = [
    score(f"q{unit}", value, dimension, model=model, n=n)
    for unit in range(7)
    for model in ("a", "b")
    for value, dimension, n in ((4, "d", 1), (4.0, "e", 1.0), ("", "f", True), ("yes", "g", "1"))
]


def stored(store: Store) -> list[Any]:
    """All that a store holds of its last run."""
    run = find_run(store.archive, "latest")
    judgments = [(unit.id, one.judge, one.text) for unit, one in store.archive.judgments(run.scope)]
    return [run.id, list(store.archive.units(run.scope)), judgments]


@pytest.mark.parametrize(("kind", "rows"), [("votes", ODD_VOTES), ("scores", ODD_SCORES)])
def test_what_is_not_at_hand_any_more_comes_back_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, rows: list[dict[str, Any]]
) -> None:
    """A table too large for memory gives the same run, also where rows of a unit lie apart."""
    shuffled = random.Random(5).sample(rows, len(rows))
    write(tmp_path / "rows.jsonl", shuffled)
    runs: list[list[Any]] = []
    for name, kept in (("all.db", 1 << 16), ("few.db", 2)):
        for module in ("memo", "register"):
            monkeypatch.setattr(f"evenhand.runs.imports.{module}.MEMO_ENTRIES", kept)
        monkeypatch.setattr("evenhand.runs.imports.forms._FORMS", kept)
        with closing(open_store(f"sqlite:{name}", tmp_path)) as store:
            found = asyncio.run(import_files(store, [tmp_path / "rows.jsonl"], kind))
            runs.append([*stored(store), found.json()])
    assert runs[0] == runs[1]


@pytest.mark.parametrize("kept", [1 << 16, 2])
@pytest.mark.parametrize("voters", ["", "voter"])
def test_cells_that_are_read_where_they_stand_come_to_what_rows_come_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, voters: str
) -> None:
    """Units that come back, several pairs on one, odd spellings, columns that are renamed."""
    rows = [
        *(vote("x", "y", "A", unit=f"q{i % 5}", why="so", area=f"a{i % 3}") for i in range(12)),
        *(vote("y", "x", "?", unit=f" q{i} ", judge="k", why="", area="") for i in range(9)),
        *(vote("x", "z", "z", unit=f"q{i}", judge="l", why="=1+1", area="a b,c") for i in range(3)),
        vote("x", "x", "tie", why="", area=""),
    ]
    table = [
        row | {"pass": i % 2, "criterion": "C1" if i == 3 else ""} for i, row in enumerate(rows)
    ]
    write(tmp_path / "rows.csv", table)
    for module in ("memo", "register"):
        monkeypatch.setattr(f"evenhand.runs.imports.{module}.MEMO_ENTRIES", kept)
    runs: list[list[Any]] = []
    for name, missing in (("cells.db", ()), ("rows.db", ("in no cell",))):
        shaping = Shaping(columns={"explanation": "why"}, missing=missing)
        options = Options(shaping=shaping, voters=voters)
        with closing(open_store(f"sqlite:{name}", tmp_path)) as store:
            found = asyncio.run(import_files(store, [tmp_path / "rows.csv"], "votes", options))
            runs.append([*stored(store)[1:], found.json() | {"run": ""}])
    assert runs[0] == runs[1]
    assert runs[0][-1]["rows"] == len(rows)


def test_scores_that_are_read_where_they_stand_come_to_what_rows_come_to(tmp_path: Path) -> None:
    """Units that come back, scores that are none, reasons, a column that tells units apart."""
    rows = [
        score(f"q{i % 5}", ("4", "yes", "", "n/a", "2.50")[i % 5], f"d{i % 2}", model=f"m{i % 3}")
        | {"evidence": "a, b" if i == 4 else "", "rationale": "so" if i == 7 else "", "repeat": ""}
        for i in range(60)
    ]
    write(tmp_path / "rows.csv", rows)
    runs: list[list[Any]] = []
    for name, missing in (("cells.db", ()), ("rows.db", ("in no cell",))):
        options = Options(shaping=Shaping(missing=missing))
        with closing(open_store(f"sqlite:{name}", tmp_path)) as store:
            found = asyncio.run(import_files(store, [tmp_path / "rows.csv"], "scores", options))
            runs.append([*stored(store)[1:], found.json() | {"run": ""}])
    assert runs[0] == runs[1]
    assert runs[0][-1]["rows"] == len(rows) and runs[0][-1]["key"] == ["unit", "model"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_of_several_rows_that_are_wrong_the_first_is_told(
    tmp_path: Path, imported: Importer, ending: str
) -> None:
    """Whatever is wrong with those after it, and though they are read together."""
    good, path = vote("a", "b", "a"), tmp_path / f"rows.{ending}"
    for first, says in (("judge", '"judge"'), ("second", '"second" is empty')):
        bad = [good | {name: ""} for name in (first, "unit", "second", "judge")]
        # By the first 200 rows it is seen whether the table is wide.
        write(path, [*[good] * 250, *bad])
        with pytest.raises(DataError, match=says) as raised:
            asyncio.run(import_files(imported.store, [path], "votes"))
        assert raised.value.where == f"{path}:{252 if ending == 'csv' else 251}"
        with path.open("a") as file:
            file.write("a,b\n" if ending == "csv" else "no JSON\n")
        with pytest.raises(DataError, match=says):
            asyncio.run(import_files(imported.store, [path], "votes"))


def test_a_later_row_without_a_needed_column_is_told(tmp_path: Path, imported: Importer) -> None:
    rows = [vote("a", "b", "a") for _ in range(300)]
    write(
        tmp_path / "rows.jsonl", [*rows, {"unit": "q", "judge": "j", "first": "a", "winner": "a"}]
    )
    with pytest.raises(DataError, match='there is no column "second"') as raised:
        asyncio.run(import_files(imported.store, [tmp_path / "rows.jsonl"], "votes"))
    assert raised.value.where == f"{tmp_path / 'rows.jsonl'}:301"


def test_a_second_file_without_rows_is_told(tmp_path: Path, imported: Importer) -> None:
    header = "unit,judge,first,second,winner\n"
    (tmp_path / "a.csv").write_text(header + "q,j,a,b,a\n")
    (tmp_path / "b.csv").write_text(header)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.raises(DataError, match="holds no rows"):
        asyncio.run(import_files(imported.store, files, "votes"))


def test_values_that_are_equal_and_written_otherwise_are_kept_apart(imported: Importer) -> None:
    imported("votes", ODD_VOTES)
    metas = {json.dumps(body["meta"]) for body in imported.bodies}
    assert metas == {'{"n": 1}'}
    preferences = [
        json.loads(text.body)["passes"][0].get("preference")
        for text in (one[2] for one in stored(imported.store)[2])
        if text.status == "verdict"
    ]
    assert {json.dumps(one) for one in preferences} >= {"0", "0.0"}
    imported("scores", ODD_SCORES)
    scores = [json.dumps(one.output["scores"]) for one in imported.judgments.values() if one.output]
    assert all('"score": 4,' in text and '"score": 4.0,' in text for text in scores)


@pytest.mark.parametrize("kind", ["votes", "scores"])
def test_a_text_that_looks_like_a_blank_of_a_form_does_no_harm(
    imported: Importer, kind: str
) -> None:
    odd = BLANK
    row = vote(odd, "y", odd, judge=odd) if kind == "votes" else score(odd, 3, odd, judge=odd)
    imported(kind, [row | {"area": odd}])
    ((unit, judge, _),) = imported.judgments
    (judgment,) = imported.judgments.values()
    assert judge == odd and unit == ("q" if kind == "votes" else odd)
    assert judgment.output is not None and judgment.output["meta"] == {"area": odd}


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "jsonl", "json", "parquet"])
def test_the_same_votes_in_any_format_come_to_the_same_judgments(
    tmp_path: Path, ending: str
) -> None:
    rows = [
        {"unit": f"q{i}", "judge": "j", "first": a, "second": b, "winner": w, "area": 'it\'s "x"'}
        for i in range(30)
        for (a, b), w in ((("x", "y"), "A"), (("y", "x"), ("B", "tie", "?")[i % 3]))
    ]
    path = tmp_path / f"rows.{ending}"
    if ending == "tsv.gz":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
        path.write_bytes(gzip.compress(text.getvalue().encode()))
    else:
        write(path, rows)
    with closing(open_store("sqlite:store.db", tmp_path)) as store:
        asyncio.run(import_files(store, [path], "votes"))
        outcomes = Counter(
            json.loads(text.body)["output"] is None or json.loads(text.body)["output"]["settled"]
            for _, _, text in stored(store)[2]
        )
        bodies = {unit.id: unit.body for unit in stored(store)[1]}
    assert outcomes == {"stable": 10, "uncertain": 10, True: 10}
    assert json.loads(bodies["q7"])["meta"] == {"area": 'it\'s "x"'}
