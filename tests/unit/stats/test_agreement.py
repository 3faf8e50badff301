"""Votes and scores held against each other: what is joined with what, what counts, and what is said
where there is nothing to say. Tables come from imported rows, as those of a user do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from evenhand.data.write import write
from evenhand.errors import UsageError
from evenhand.results.observations import observe
from evenhand.runs.recorded import recorded_run
from evenhand.runs.stores import open_store
from evenhand.stats.agreement import AgreementOptions, agreement_of
from evenhand.stats.agreement_result import Agreement
from evenhand.stats.observations import Observations
from tests.unit.runs.importing import import_files

Vote = tuple[Any, ...]
"""A unit, who voted, the two candidates as shown, the winner, and perhaps fields of meta."""


def agreed(run: Observations, labels: Observations | None = None, **asked: Any) -> Agreement:
    return agreement_of(run, labels, AgreementOptions(**asked))


@pytest.fixture
def take(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Imports rows and gives their table."""
    store = open_store("sqlite::memory:")

    def taken(kind: str, rows: Sequence[dict[str, Any]], **options: Any) -> Any:
        write(tmp_path / "rows.jsonl", rows)
        import_files(store, [tmp_path / "rows.jsonl"], kind, **options)
        run = recorded_run(store.archive, store.archive.runs()[0])
        return observe(store.archive, run)

    yield taken
    store.close()


@pytest.fixture
def votes(take: Callable[..., Any]) -> Callable[..., Observations]:
    def made(*rows: Vote, **options: Any) -> Observations:
        names = ("unit", "judge", "first", "second", "winner")
        table = [dict(zip(names, row, strict=False)) | dict(row[5:]) for row in rows]
        return take("votes", table, **options)

    return made


@pytest.fixture
def scores(take: Callable[..., Any]) -> Callable[..., Observations]:
    def made(*rows: Vote) -> Observations:
        names = ("unit", "judge", "dimension", "score")
        return take("scores", [dict(zip(names, row, strict=False)) | dict(row[4:]) for row in rows])

    return made


def test_votes_meet_on_unit_and_candidates_whichever_was_shown_first(votes):
    judge = votes(
        ("q1", "j", "a", "b", "a"), ("q2", "j", "a", "b", "b"), ("q3", "j", "b", "a", "tie")
    )
    human = votes(
        ("q1", "h", "b", "a", "a"), ("q2", "h", "b", "a", "a"), ("q3", "h", "a", "b", "tie")
    )
    found = agreed(judge, human)
    (row,) = found.rows
    assert (found.matched, row.n, row.figures["agreement"].value) == (3, 3, pytest.approx(2 / 3))
    assert row.confusion["labels"] == ["a", "b", "tie"]
    assert row.confusion["counts"] == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]


def test_a_side_with_one_pair_of_a_unit_meets_one_with_several(votes):
    judge = votes(
        ("q1", "j", "a", "b", "a"), ("q1", "j", "a", "c", "a"), ("q1", "j", "b", "c", "b")
    )
    human = votes(("q1", "h", "c", "a", "c"))
    found = agreed(judge, human)
    assert (found.matched, found.only_run, found.only_other) == (1, 2, 0)
    assert found.rows[0].figures["agreement"].value == 0.0
    assert found.rows[0].confusion["labels"] == ["first", "second"]


def test_units_of_one_topic_are_told_apart_and_hang_together(votes):
    question = ("question_id", "q")
    rows = [("q/1", "j", "a", "b", "a", question), ("q/2", "j", "a", "b", "b", question)]
    found = agreed(votes(*rows), votes(*rows))
    assert (found.matched, found.rows[0].units, found.rows[0].clusters) == (2, 2, 1)
    assert found.rows[0].figures["agreement"].value == 1.0
    # One question shows no spread.
    assert (found.row().figures["agreement"].low, found.row().figures["agreement"].high) == (0, 1)
    assert found.rows[0].figures["kappa"].low is None


def test_every_vote_of_a_side_is_held_against_the_other_or_its_majority_is(votes):
    people = [(f"q{k}", f"h{i}", "a", "b", w) for k in (1, 2) for i, w in enumerate("aab")]
    judge = votes(("q1", "j", "a", "b", "a"), ("q2", "j", "a", "b", "b"))
    each = agreed(judge, votes(*people))
    assert (each.rows[0].n, each.rows[0].units) == (6, 2)
    assert each.rows[0].figures["agreement"].value == pytest.approx((2 + 1) / 6)
    said = "n counts comparisons: each of 3 annotators is held against the judge separately"
    assert said in each.notes
    single = agreed(judge, votes(*people), majority=True)
    assert single.rows[0].n == 2 and said not in single.notes
    assert single.rows[0].figures["agreement"].value == 0.5


def test_votes_that_are_split_evenly_are_a_tie(votes):
    people = votes(("q", "h1", "a", "b", "a"), ("q", "h2", "a", "b", "b"))
    judge = votes(("q", "j", "a", "b", "b"))
    assert agreed(judge, people, majority=True).rows[0].confusion == {
        "labels": ["b", "tie"],
        "counts": [[0, 1], [0, 0]],
    }
    assert agreed(judge, people, majority=True, ties="drop").rows[0].n == 0


def test_ties_are_kept_or_dropped_and_uncertain_is_one(votes):
    judge = votes(
        ("q1", "j", "a", "b", "a"), ("q1", "j", "b", "a", "b"), ("q2", "j", "a", "b", "a")
    )
    human = votes(("q1", "h", "a", "b", "tie"), ("q2", "h", "a", "b", "a"))
    kept, dropped = (agreed(judge, human, ties=ties) for ties in ("keep", "drop"))
    assert (kept.rows[0].n, kept.rows[0].figures["agreement"].value) == (2, 1.0)
    assert (dropped.rows[0].n, dropped.matched) == (1, 2)
    assert "units with a tie were left out: 1 on winner" in dropped.notes
    assert not any("left out" in note for note in kept.notes)
    assert "uncertain counts as a tie" in kept.notes


def test_failures_are_counted_and_never_agree(votes):
    judge = votes(("q1", "j", "a", "b", ""), ("q2", "j", "a", "b", "a"), ("q3", "j", "a", "b", "x"))
    human = votes(*[(f"q{k}", "h", "a", "b", "a") for k in (1, 2, 3, 4)])
    found = agreed(judge, human)
    assert (found.matched, found.only_run, found.only_other) == (1, 0, 3)
    assert (found.failed_run, found.failed_other, found.rows[0].n) == (2, 0, 1)


def test_a_candidate_against_itself_is_left_out(votes):
    rows = [("q1", "j", "a", "a", "first"), ("q2", "j", "a", "b", "a")]
    found = agreed(votes(*rows), votes(("q2", "h", "a", "b", "a")))
    assert found.rows[0].n == 1


def test_criteria_have_rows_of_their_own(take):
    def voted(judge: str, marks: dict[str, str]) -> list[dict[str, Any]]:
        said = {"unit": "q1", "judge": judge, "first": "a", "second": "b"}
        rows = [said | {"criterion": c, "winner": w} for c, w in marks.items()]
        return [*rows, said | {"criterion": "", "winner": "a"}]

    judge = take("votes", voted("j", {"C1": "a", "C2": "tie"}))
    human = take("votes", voted("h", {"C1": "a", "C2": "b"}))
    found = agreed(judge, human)
    values = {row.dimension: row.figures["agreement"].value for row in found.rows}
    assert values == {"winner": 1.0, "C1": 1.0, "C2": 0.0}


def test_judges_of_one_run_among_themselves(votes):
    said = {"x": "aabb", "y": "aaba", "z": "abbb"}
    rows = [
        (f"q{k}", judge, "a", "b", winner)
        for judge, winners in said.items()
        for k, winner in enumerate(winners)
    ]
    found = agreed(votes(*rows))
    assert found.row().figures["agreement"].n == 3 * 4
    assert found.row().figures["agreement"].value == pytest.approx((3 + 3 + 2) / 12)
    two = found.row(judge="x", other="y")
    assert two.figures["kappa"].value == cohen_kappa_score(list(said["x"]), list(said["y"]))
    assert len(found.rows) == 1 + 3
    assert (found.matched, found.only_run) == (4, 0)


def test_one_of_two_judges_of_a_run_against_the_other(votes):
    rows = [
        (f"q{k}", j, "a", "b", w)
        for j, ws in (("x", "aab"), ("y", "abb"))
        for k, w in enumerate(ws)
    ]
    table = votes(*rows)
    found = agreed(table, table, other_judges=["y"])
    assert found.rows[0].n == 3
    assert found.rows[0].figures["agreement"].value == pytest.approx(2 / 3)


def test_repeats_of_the_only_judge_are_compared_with_each_other(votes):
    rows = [(f"q{k}", "j", "a", "b", w) for k in range(3) for w in ("a", "a", "b")]
    found = agreed(votes(*rows))
    assert found.row().figures["agreement"].value == pytest.approx(1 / 3)
    assert any("repeats" in note for note in found.notes)


def test_repeats_of_several_judges_are_one_vote_each(votes):
    rows = [("q1", "x", "a", "b", w) for w in "aab"] + [("q1", "y", "a", "b", "a")]
    found = agreed(votes(*rows))
    assert (found.rows[0].n, found.rows[0].figures["agreement"].value) == (1, 1.0)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_hardly_any_units_are_words_and_no_nan(votes, count):
    judge = votes(*[(f"q{k}", "j", "a", "b", "a") for k in range(3)])
    human = votes(*[(f"q{k}", "h", "a", "b", "a") for k in range(3 - count, 6)])
    found = agreed(judge, human)
    assert found.matched == count
    text = repr(found.json())
    assert "nan" not in text and "inf" not in text.replace("infer", "")
    assert found.rows[0].figures["kappa"].value is None
    assert found.notes


def test_one_judge_alone_has_nothing_to_compare(votes):
    found = agreed(votes(("q1", "j", "a", "b", "a")))
    assert found.rows[0].figures["agreement"].value is None
    assert any("nothing to compare" in note for note in found.notes)


def test_rows_for_each_value_of_a_field(votes):
    judge = votes(*[(f"q{k}", "j", "a", "b", "a", ("area", "xy"[k % 2])) for k in range(6)])
    human = votes(*[(f"q{k}", "h", "a", "b", "ab"[k % 2]) for k in range(6)])
    found = agreed(judge, human, by="meta.area")
    values = {row.variant: row.figures["agreement"].value for row in found.rows}
    assert values == {None: 0.5, "x": 1.0, "y": 0.0}
    assert [row.variant for row in found.corrected if row.name == "a"] == [None, "x", "y"]
    with pytest.raises(UsageError, match="area"):
        agreed(judge, human, by="aera")


def test_judges_are_named_one_by_one_or_by_a_pattern(votes):
    people = votes(
        *[("q", f"expert_{k}", "a", "b", "a") for k in range(3)], ("q", "crowd", "a", "b", "b")
    )
    judge = votes(("q", "j", "a", "b", "a"))
    assert agreed(judge, people, other_judges=["expert_*"]).rows[0].n == 3
    assert agreed(people, judge, judges=["crowd"]).rows[0].figures["agreement"].value == 0
    with pytest.raises(UsageError, match="expert_9"):
        agreed(judge, people, other_judges=["expert_9"])


def test_win_rates_are_corrected_by_the_labels_of_some_pairs(votes):
    judge = votes(*[(f"q{k}", "j", "a", "b", "a" if k % 4 else "b") for k in range(40)])
    human = votes(*[(f"q{k}", "h", "b", "a", "a" if k % 2 else "b") for k in range(0, 40, 3)])
    found = {row.name: row for row in agreed(judge, human).corrected}
    assert (found["a"].judged, found["a"].labelled) == (40, 14)
    assert found["a"].estimate.naive.value == pytest.approx(0.75)
    assert found["a"].estimate.corrected.value < 0.75
    assert found["a"].estimate.corrected.value == pytest.approx(
        1 - found["b"].estimate.corrected.value
    )
    assert any("random part" in note for note in agreed(judge, human).notes)


ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("xy"), st.booleans(), st.sampled_from("abt")),
    max_size=24,
)


@given(ROWS, ROWS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pairs_are_those_of_a_double_loop(votes, mine, theirs):
    def table(rows, who):
        # One vote a judge and unit: two in opposite orders would be one judgment.
        kept = {(unit, judge): (turned, w) for unit, judge, turned, w in rows}
        shown = [
            (f"q{u}", f"{who}{j}", *("ba" if turned else "ab"), {"t": "tie"}.get(w, w))
            for (u, j), (turned, w) in kept.items()
        ]
        return shown, votes(*(shown or [(f"only {who}", who, "a", "b", "tie")]))

    (ours, one), (others, other) = table(mine, "m"), table(theirs, "h")
    met = [(a[4], b[4]) for a in ours for b in others if a[0] == b[0]]
    row = agreed(one, other).rows[0]
    assert row.n == len(met)
    if met:
        alike = sum(a == b for a, b in met) / len(met)
        assert row.figures["agreement"].value == pytest.approx(alike)
        counts = {
            (a, b): row.confusion["counts"][i][j]
            for i, a in enumerate(row.confusion["labels"])
            for j, b in enumerate(row.confusion["labels"])
        }
        assert all(count == met.count(pair) for pair, count in counts.items())


def test_scores_meet_on_unit_and_dimension(scores):
    judge = scores(("u1", "j", "fit", 4), ("u1", "j", "tone", 2), ("u2", "j", "fit", 3))
    human = scores(("u2", "h", "fit", 5), ("u1", "h", "fit", 4), ("u3", "h", "fit", 1))
    found = agreed(judge, human, every=True)
    (row,) = found.rows
    assert (row.dimension, row.n) == ("fit", 2)
    assert (found.matched, found.only_run, found.only_other) == (2, 0, 1)
    figures = row.figures
    assert figures["rmse"].value == pytest.approx(2**0.5)
    assert (figures["mae"].value, figures["bias"].value) == (1.0, -1.0)
    assert any("tone" in note for note in found.notes)


def test_dimensions_that_never_meet_are_an_error(scores):
    with pytest.raises(UsageError, match="no dimension in common"):
        agreed(scores(("u", "j", "fit", 1)), scores(("u", "h", "tone", 1)))


def test_constant_scores_are_words(scores):
    judge = scores(*[(f"u{k}", "j", "fit", 3) for k in range(5)])
    human = scores(*[(f"u{k}", "h", "fit", k) for k in range(5)])
    figures = agreed(judge, human, every=True).rows[0].figures
    assert figures["pearson"].value is None and figures["pearson"].why
    assert figures["mae"].value == pytest.approx(1.4)
    same = agreed(judge, judge, other_judges=["j"])
    assert same.rows[0].n == 0


def test_many_different_scores_are_no_categories(scores):
    judge = scores(*[(f"u{k}", "j", "fit", k + 0.5) for k in range(30)])
    human = scores(*[(f"u{k}", "h", "fit", k) for k in range(30)])
    row = agreed(judge, human, every=True).rows[0]
    assert row.figures["kappa"].value is None and row.confusion is None
    assert row.figures["spearman"].value == 1.0
    assert row.figures["kappa_quadratic"].value > 0.99


def test_several_dimensions_have_an_overall_on_a_common_scale(scores):
    judge = scores(*[(f"u{k}", "j", d, 1 + k % 3) for k in range(6) for d in ("fit", "tone")])
    human = scores(*[(f"u{k}", "h", d, 1 + k % 5) for k in range(6) for d in ("fit", "tone")])
    rows = {row.dimension: row for row in agreed(judge, human).rows}
    assert set(rows) == {"fit", "tone", "overall"}
    # Both sides on the scale from 1 to 5, so that a difference of 1 is a quarter.
    assert rows["overall"].figures["bias"].value == pytest.approx(
        rows["fit"].figures["bias"].value / 4
    )


def test_scores_of_several_judges_are_brought_to_their_mean(scores):
    judge = scores(*[(f"u{k}", j, "fit", s) for k in range(3) for j, s in (("x", k), ("y", k + 1))])
    human = scores(*[(f"u{k}", "h", "fit", k + 0.5) for k in range(3)])
    assert agreed(judge, human).row().n == 6
    found = agreed(judge, human, majority=True, every=True)
    assert (found.row().n, found.row().figures["mae"].value) == (3, 0.0)
    assert found.row(judge="y").figures["bias"].value == 0.5


def test_questions_hang_together(scores):
    def table(judge: str) -> Observations:
        return scores(
            *[
                (f"{q}/{m}", judge, "fit", (q + m) % 5, ("question_id", q), ("model", m))
                for q in range(4)
                for m in range(3)
            ]
        )

    row = agreed(table("j"), table("h")).rows[0]
    assert (row.units, row.clusters) == (12, 4)


def labelled(scores, said, meant):
    """Return the first row of a judge's scores against labels."""
    judge = scores(*[(f"u{k}", "j", "fit", score) for k, score in enumerate(said)])
    human = scores(*[(f"u{k}", "h", "fit", score) for k, score in enumerate(meant)])
    return agreed(judge, human)


def test_labels_that_are_all_the_same_show_no_kappa_and_it_is_said(scores):
    found = labelled(scores, [0, 1] * 20, [1] * 40)
    figure = found.row().figures["kappa_quadratic"]
    assert (figure.value, figure.low, figure.high) == (None, None, None)
    assert figure.why and any(figure.why in note for note in found.notes)
    assert found.row().verdict is None


def test_two_scales_are_said_and_only_the_order_is_compared(scores):
    rng = np.random.default_rng(1)
    said = rng.integers(1, 6, 60)
    meant = 20 * np.clip(said + rng.integers(-1, 2, 60), 1, 5)
    found = labelled(scores, said.tolist(), meant.tolist())
    figures = found.row().figures
    assert "scale" in found.notes[0]
    for name in ("agreement", "kappa_quadratic", "alpha", "bias"):
        assert figures[name].value is None and figures[name].why
    assert figures["spearman"].value > 0.7
    assert not found.corrected


def test_a_judge_that_always_says_the_same_is_called_so(scores):
    verdict = labelled(scores, [4] * 40, [1, 2, 3, 4, 5] * 8).row().verdict
    assert verdict.outcome == "not usable"
    assert "4" in verdict.reason


def test_of_pass_and_fail_bad_ones_passed_and_good_ones_failed_are_counted(scores):
    said, meant = [1] * 3 + [0] * 7 + [0] * 2 + [1] * 28, [0] * 10 + [1] * 30
    figures = labelled(scores, said, meant).row().figures
    assert (figures["bad_passed"].value, figures["bad_passed"].n) == (pytest.approx(0.3), 10)
    assert (figures["good_failed"].value, figures["good_failed"].n) == (pytest.approx(2 / 30), 30)
    assert 0 < figures["bad_passed"].low < 0.3 < figures["bad_passed"].high < 1


@pytest.mark.parametrize(
    ("noise", "lift", "outcome"),
    [
        (0.3, 0, "usable"),
        (0.3, 1, "usable corrected"),
        (2.5, 0, "usable corrected"),
        (99, 0, "not usable"),
    ],
)
def test_a_judge_is_usable_usable_corrected_or_not_usable(scores, noise, lift, outcome):
    rng = np.random.default_rng(2)
    meant = rng.integers(1, 6, 120)
    said = np.clip(np.round(meant + lift + rng.normal(0, noise, 120)), 1, 5)
    assert labelled(scores, said.tolist(), meant.tolist()).row().verdict.outcome == outcome


def test_how_ratings_go_with_length_stands_beside_the_labels(take):
    def table(judge, longer):
        said = {"judge": judge, "first": "a", "second": "b"}
        lengths = {"first_length": 20, "second_length": 10}
        winners = ["a" if k % 5 < longer else "b" for k in range(40)]
        rows = [said | lengths | {"unit": f"q{k}", "winner": w} for k, w in enumerate(winners)]
        return take("votes", rows)

    (lean,) = agreed(table("j", 4), table("h", 2)).lengths
    assert (lean.judge, lean.figure) == ("j", "longer_won")
    assert (lean.value.value, lean.labels.value) == (pytest.approx(0.8), pytest.approx(0.4))
