"""Votes and scores held against each other: what is joined with what, what counts, and what is said
where there is nothing to say. Tables come from imported rows, as those of a user do."""

from __future__ import annotations

import json

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
from tests.cases import cases
from tests.sentences import keys, refused
from tests.unit.runs.importing import import_files

COLUMNS = {
    "votes": ("unit", "judge", "first", "second", "winner"),
    "scores": ("unit", "judge", "dimension", "score"),
}


def agreed(run, labels=None, **asked):
    return agreement_of(run, labels, AgreementOptions(**asked))


def figures(row, *names):
    return tuple(row.figures[name].value for name in names)


@pytest.fixture
def take(tmp_path):
    """Imports rows, tuples or dicts, and gives their table."""
    store = open_store("sqlite::memory:")

    def taken(kind, rows):
        named = [
            row if isinstance(row, dict) else dict(zip(COLUMNS[kind], row, strict=True))
            for row in rows
        ]
        write(tmp_path / "rows.jsonl", named)
        import_files(store, [tmp_path / "rows.jsonl"], kind)
        return observe(store.archive, recorded_run(store.archive, store.archive.runs()[0]))

    yield taken
    store.close()


@pytest.fixture
def votes(take):
    return lambda *rows: take("votes", rows)


@pytest.fixture
def voted(votes):
    """A winner of a and b on each unit by each judge."""

    def taken(**winners):
        rows = [
            (f"q{k}", judge, "a", "b", {"t": "tie", "-": ""}.get(w, w))
            for judge, said in winners.items()
            for k, w in enumerate(said)
            if w != " "
        ]
        return votes(*rows)

    return taken


@pytest.fixture
def scored(take):
    """A score on `fit`, or on each of several dimensions, of each unit by each judge."""

    def taken(dimensions=("fit",), **scores):
        return take(
            "scores",
            [
                (f"u{k}", judge, dimension, score)
                for judge, said in scores.items()
                for k, score in enumerate(said)
                for dimension in dimensions
                if score is not None
            ],
        )

    return taken


def test_a_side_with_one_pair_of_a_unit_meets_one_with_several(votes):
    pairs = ("a", "b", "a"), ("a", "c", "a"), ("b", "c", "b")
    found = agreed(votes(*(("q", "j", *pair) for pair in pairs)), votes(("q", "h", "c", "a", "c")))
    assert (found.matched, found.only_run, found.only_other) == (1, 2, 0)
    assert figures(found.row(), "agreement") == (0.0,)
    assert found.row().confusion["labels"] == ["first", "second"]


def test_units_of_one_question_are_told_apart_and_are_one_cluster(take):
    rows = [
        {"unit": f"q/{w}", "judge": "j", "first": "a", "second": "b", "winner": w, "question_id": 1}
        for w in "ab"
    ]
    found = agreed(*[take("votes", rows) for _ in "jh"])
    row = found.row()
    assert (found.matched, row.units, row.clusters) == (2, 2, 1)
    # One question shows no spread.
    whole = row.figures["agreement"]
    assert (whole.value, whole.low, whole.high, row.figures["kappa"].low) == (1.0, 0, 1, None)


def test_every_vote_of_a_side_is_held_against_the_other_or_its_majority_or_mean_is(voted, scored):
    judge, people = voted(j="aab"), voted(h0="aaa", h1="aaa", h2="bb ", h3="bb ")
    each, single = agreed(judge, people), agreed(judge, people, majority=True)
    assert (each.row().n, each.row().units) == (10, 3)
    assert single.row().n == 3
    # Two people against two are a tie.
    assert single.row().confusion == {
        "labels": ["a", "b", "tie"],
        "counts": [[0, 0, 2], [1, 0, 0], [0, 0, 0]],
    }
    assert agreed(judge, people, majority=True, ties="drop").row().n == 1
    (note,) = (note for note in each.notes if note.key == "agreement.annotators")
    assert note.values["n"] == 4 and note.key not in keys(single.notes)
    judges, human = scored(x=[0, 1, 2], y=[1, 2, 3]), scored(h=[0.5, 1.5, 2.5])
    found = agreed(judges, human, majority=True, every=True)
    assert agreed(judges, human).row().n == 6
    assert (found.row().n, *figures(found.row(), "mae")) == (3, 0.0)
    assert figures(found.row(judge="y"), "bias") == (0.5,)


def test_ties_are_kept_or_dropped_and_uncertain_is_one(votes, voted):
    judge = votes(
        ("q0", "j", "a", "b", "a"), ("q0", "j", "b", "a", "b"), ("q1", "j", "a", "b", "a")
    )
    kept, dropped = (agreed(judge, voted(h="ta"), ties=ties) for ties in ("keep", "drop"))
    assert (kept.row().n, *figures(kept.row(), "agreement")) == (2, 1.0)
    assert (dropped.row().n, dropped.matched) == (1, 2)
    (note,) = (note for note in dropped.notes if note.key == "agreement.tied")
    assert note.values == {"n": 1, "dimension": "winner"}
    assert "agreement.tied" not in keys(kept.notes)
    assert "agreement.uncertain_is_tie" in keys(kept.notes)


def test_failures_are_counted_and_a_candidate_against_itself_is_left_out(votes, voted):
    found = agreed(voted(j="-ax"), voted(h="aaaa"))
    assert (found.matched, found.only_run, found.only_other) == (1, 0, 3)
    assert (found.failed_run, found.failed_other, found.row().n) == (2, 0, 1)
    same = votes(("q1", "j", "a", "a", "first"), ("q0", "j", "a", "b", "a"))
    assert agreed(same, voted(h="aa")).row().n == 1


def test_criteria_have_rows_of_their_own(take):
    said = {"unit": "q1", "first": "a", "second": "b"}
    judge, human = (
        take(
            "votes", [said | {"judge": "j", "criterion": c, "winner": w} for c, w in marks.items()]
        )
        for marks in ({"C1": "a", "C2": "tie", "": "a"}, {"C1": "a", "C2": "b", "": "a"})
    )
    rows = agreed(judge, human).rows
    values = {row.dimension: figures(row, "agreement")[0] for row in rows}
    assert values == {"winner": 1.0, "C1": 1.0, "C2": 0.0}


def test_judges_of_one_run_among_themselves_or_one_against_another(voted):
    said = {"x": "aabb", "y": "aaba", "z": "abbb"}
    table = voted(**said)
    found = agreed(table)
    assert (len(found.rows), found.matched, found.only_run) == (1 + 3, 4, 0)
    whole = found.row().figures["agreement"]
    assert (whole.n, whole.value) == (3 * 4, pytest.approx((3 + 3 + 2) / 12))
    kappa = cohen_kappa_score(list(said["x"]), list(said["y"]))
    assert figures(found.row(judge="x", other="y"), "kappa") == (pytest.approx(kappa),)
    against = agreed(table, table, judges=["x"], other_judges=["y"]).row()
    assert (against.n, *figures(against, "agreement")) == (4, 0.75)


def test_repeats_are_compared_where_there_is_one_judge_and_else_are_one_vote(votes):
    alone = agreed(votes(*[(f"q{k}", "j", "a", "b", w) for k in range(3) for w in "aab"]))
    assert figures(alone.row(), "agreement") == (pytest.approx(1 / 3),)
    assert "agreement.repeats" in keys(alone.notes)
    several = votes(*[("q1", "x", "a", "b", w) for w in "aab"], ("q1", "y", "a", "b", "a"))
    (row,) = agreed(several).rows
    assert (row.n, *figures(row, "agreement")) == (1, 1.0)


@pytest.mark.parametrize("count", [1, 2])
def test_hardly_any_units_are_words_and_no_nan(voted, count):
    found = agreed(voted(j="aaa"), voted(h=" " * (3 - count) + "aaa"))
    json.dumps(found.json(), allow_nan=False)
    assert (found.matched, *figures(found.row(), "kappa")) == (count, None) and found.notes
    alone = agreed(voted(j="a" * count))
    assert figures(alone.row(), "agreement") == (None,)
    assert alone.notes[0].values["why"] == "nothing to compare"


def test_rows_for_each_value_of_a_field(take, voted):
    said = {"judge": "j", "first": "a", "second": "b", "winner": "a"}
    judge = take("votes", [said | {"unit": f"q{k}", "area": "xy"[k % 2]} for k in range(6)])
    human = voted(h="ababab")
    found = agreed(judge, human, by="meta.area")
    values = {row.variant: figures(row, "agreement")[0] for row in found.rows}
    assert values == {None: 0.5, "x": 1.0, "y": 0.0}
    assert [row.variant for row in found.corrected if row.name == "a"] == [None, "x", "y"]
    with refused(UsageError, "stats.no_such_field", "area"):
        agreed(judge, human, by="aera")


def test_judges_are_named_one_by_one_or_by_a_pattern(voted):
    people, judge = voted(expert_0="a", expert_1="a", expert_2="a", crowd="b"), voted(j="a")
    assert agreed(judge, people, other_judges=["expert_*"]).row().n == 3
    assert figures(agreed(people, judge, judges=["crowd"]).row(), "agreement") == (0,)
    with refused(UsageError, "stats.no_judge", "expert_9"):
        agreed(judge, people, other_judges=["expert_9"])


def test_win_rates_are_corrected_by_the_labels_of_some_pairs(voted):
    judge, human = voted(j="baaa" * 10), voted(h="b  a  " * 6 + "b  a")
    agreement = agreed(judge, human)
    found = {row.name: row for row in agreement.corrected}
    naive, ours, theirs = (
        found["a"].estimate.naive.value,
        *(found[name].estimate.corrected.value for name in "ab"),
    )
    assert (found["a"].judged, found["a"].labelled, naive) == (40, 14, pytest.approx(0.75))
    assert ours < 0.75 and ours == pytest.approx(1 - theirs)
    assert "agreement.random_part" in keys(agreement.notes)


ROWS = st.dictionaries(
    st.tuples(st.integers(0, 5), st.sampled_from("xy")),
    st.tuples(st.sampled_from(["ab", "ba"]), st.sampled_from(["a", "b", "tie"])),
    min_size=1,
    max_size=12,
)


@given(ROWS, ROWS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pairs_are_those_of_a_double_loop(votes, mine, theirs):
    # One vote a judge and unit: two in opposite orders would be one judgment.
    one, other = (
        votes(*((f"q{u}", f"{who}{j}", *order, w) for (u, j), (order, w) in rows.items()))
        for who, rows in (("m", mine), ("h", theirs))
    )
    met = [(a[1], b[1]) for u, a in mine.items() for v, b in theirs.items() if u[0] == v[0]]
    row = agreed(one, other).row()
    assert row.n == len(met)
    if met:
        alike = sum(a == b for a, b in met) / len(met)
        assert figures(row, "agreement") == (pytest.approx(alike),)
        labels, counts = row.confusion["labels"], row.confusion["counts"]
        assert counts == [[met.count((a, b)) for b in labels] for a in labels]


# Scores


def test_dimensions_that_never_meet_are_an_error(scored):
    with refused(UsageError, "agreement.no_shared_dimension"):
        agreed(scored(j=[1]), scored(("tone",), h=[1]))


def test_scores_meet_on_unit_and_dimension_and_constant_ones_are_words(take, scored):
    judge, human = scored(("fit", "tone"), j=[3] * 5), scored(h=[None, *range(1, 5), 5])
    found = agreed(judge, human, every=True)
    (row,) = found.rows
    assert (row.dimension, row.n) == ("fit", 4)
    assert (found.matched, found.only_run, found.only_other) == (4, 1, 1)
    assert figures(row, "mae", "rmse", "bias") == (1.0, pytest.approx(1.5**0.5), 0.5)
    assert figures(row, "pearson") == (None,)
    assert row.figures["pearson"].why == "all rated the same"
    (note,) = (note for note in found.notes if note.key == "agreement.only_one_side")
    assert note.values["dimensions"].names == ["tone"]
    assert agreed(judge, judge, other_judges=["j"]).row().n == 0


def test_many_different_scores_are_no_categories(scored):
    judge, human = scored(j=[k + 0.5 for k in range(30)]), scored(h=range(30))
    row = agreed(judge, human, every=True).row()
    assert figures(row, "kappa", "spearman") == (None, 1.0) and row.confusion is None
    assert row.figures["kappa_quadratic"].value > 0.99


def test_several_dimensions_have_an_overall_on_a_common_scale(scored):
    both = ("fit", "tone")
    judge, human = scored(both, j=[1, 2, 3] * 2), scored(both, h=[1, 2, 3, 4, 5, 1])
    bias = {row.dimension: figures(row, "bias")[0] for row in agreed(judge, human).rows}
    assert set(bias) == {*both, "overall"}
    # Both sides on the scale from 1 to 5, so that a difference of 1 is a quarter.
    assert bias["overall"] == pytest.approx(bias["fit"] / 4)


def test_labels_that_are_all_the_same_show_no_kappa_and_it_is_said(scored):
    found = agreed(scored(j=[0, 1] * 20), scored(h=[1] * 40))
    figure = found.row().figures["kappa_quadratic"]
    assert (figure.value, figure.low, figure.high) == (None, None, None)
    whys = [note.values["why"] for note in found.notes if note.key == "agreement.no_figure"]
    assert figure.why in whys and found.row().verdict is None


def test_two_scales_are_said_and_only_the_order_is_compared(scored):
    rng = np.random.default_rng(1)
    said = rng.integers(1, 6, 60)
    meant = 20 * np.clip(said + rng.integers(-1, 2, 60), 1, 5)
    found = agreed(scored(j=said.tolist()), scored(h=meant.tolist()))
    row = found.row()
    names = ("agreement", "kappa_quadratic", "alpha", "bias")
    assert figures(row, *names) == (None,) * 4
    assert {row.figures[name].why for name in names} == {"two scales"}
    assert found.notes[0].key == "agreement.two_scales" and not found.corrected
    assert row.figures["spearman"].value > 0.7


def test_of_pass_and_fail_bad_ones_passed_and_good_ones_failed_are_counted(scored):
    said, meant = [1] * 3 + [0] * 7 + [0] * 2 + [1] * 28, [0] * 10 + [1] * 30
    found = agreed(scored(j=said), scored(h=meant)).row().figures
    passed, failed = found["bad_passed"], found["good_failed"]
    assert (passed.value, passed.n) == (pytest.approx(0.3), 10)
    assert (failed.value, failed.n) == (pytest.approx(2 / 30), 30)
    assert 0 < passed.low < 0.3 < passed.high < 1


@cases
def test_a_judge_is_usable_usable_corrected_or_not_usable(scored, noise, lift, outcome, reason):
    rng = np.random.default_rng(2)
    meant = rng.integers(1, 6, 120)
    said = np.full(120, 4.0)  # it always says 4
    if noise:
        said = np.clip(np.round(meant + lift + rng.normal(0, noise, 120)), 1, 5)
    verdict = agreed(scored(j=said.tolist()), scored(h=meant.tolist())).row().verdict
    assert (verdict.outcome, verdict.reason.key) == (outcome, f"agreement.because_{reason}")
    assert noise or verdict.reason.values["rating"] == "4"


def test_how_ratings_go_with_length_stands_beside_the_labels(take):
    said = {"first": "a", "second": "b", "first_length": 20, "second_length": 10}
    judge, human = (
        take(
            "votes",
            [
                said | {"judge": name, "unit": f"q{k}", "winner": "a" if k % 5 < longer else "b"}
                for k in range(40)
            ],
        )
        for name, longer in (("j", 4), ("h", 2))
    )
    (lean,) = agreed(judge, human).lengths
    assert (lean.judge, lean.figure) == ("j", "longer_won")
    assert (lean.value.value, lean.labels.value) == (pytest.approx(0.8), pytest.approx(0.4))
