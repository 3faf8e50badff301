"""Scores to judgments: which rows make one, and what tells units apart."""

from __future__ import annotations

import math

import pytest

from evenhand.kinds.samples import load_sample
from tests.unit.runs.importing import import_files, score


def test_scores_of_one_unit_are_one_judgment(imported):
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
    imported,
):
    rows = [score("q", 3, "clear"), score("q", "", "true"), score("r", "", "clear")]
    found = imported("scores", [*rows, score("r", "n/a", "true")])
    assert found.json()["failures"] == {"schema": 1}
    assert found.json()["missing_scores"] == {"true": 1}
    kept, failed = imported.judgments.values()
    assert list(kept.output["scores"]) == ["clear"]
    assert kept.flags == ("scores_missing",) and "true" in kept.output["notes"]
    assert '"n/a"' in failed.detail


def test_repeats_are_those_named_else_the_rows_that_stand_double(imported):
    imported("scores", [score("q", n, repeat=r) for n, r in ((1, "x"), (2, "y"), (3, "x"))])
    outputs = [one.output for one in imported.judgments.values()]
    assert [output["scores"]["d"]["score"] for output in outputs if output] == [1, 3, 2]
    # Columns about single answers make repeats and no units.
    rows = [
        score(f"q{i}", 3, take=t, mood=f"m{(3 * i + t) % 7}") for i in range(20) for t in (1, 2)
    ]
    found = imported("scores", rows)
    assert found.key == ("unit",) and found.json()["repeats"] == 2


def test_a_score_beyond_all_bounds_is_a_failure_and_spoils_no_figure(imported):
    rows = [score("q", 1e308), score("r", "-1e101"), score("s", 1e100), score("t", 3, "e")]
    found = imported("scores", [*rows, score("t", 1e200)])
    assert found.json()["failures"] == {"out_of_range": 2}
    assert found.json()["missing_scores"] == {"d": 1}
    assert found.tally.details["out_of_range"] == 'score "1e+308" is beyond 1e+100'
    found = imported(
        "scores", [score("q", 1e308), score("q", "x", "e"), score("r", ""), score("s", 1)]
    )
    assert found.json()["failures"] == {"empty": 1, "schema": 1}


def test_nan_in_parquet_is_a_missing_number(store, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"unit": ["q", "r"], "judge": ["j", "j"], "score": [3.0, math.nan]}
    made = pyarrow.table(columns | {"age": [math.inf, 2.0]})
    parquet.write_table(made, tmp_path / "s.parquet")
    found = import_files(store, [tmp_path / "s.parquet"], "scores")
    assert (found.tally.verdicts, found.tally.failures) == (1, {"empty": 1})


def test_scores_bring_quotes_and_those_that_stand_in_the_answer_are_evidence(
    imported,
):
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
    assert judgment.output["scores"]["style"] == {
        "score": 2,
        "evidence": ["Он сказал"],
        "rationale": "Почему.",
    }
    (body,) = imported.bodies
    assert (body["model_output"], body["meta"]) == (answer, {})


@pytest.mark.parametrize("name", ["model", "prompt_variant", "system"])
def test_a_known_column_tells_units_apart_only_where_it_differs_within_one(imported, name):
    """One that goes along with another is left out."""
    rows = [score(unit, 3, **{name: v}) for unit in ("q", "r") for v in ("x/y", "z")]
    found = imported("scores", rows)
    assert found.key == ("unit", name)
    assert [body["id"] for body in imported.bodies] == ["q/x%2Fy", "q/z", "r/x%2Fy", "r/z"]
    assert imported.bodies[0]["meta"] == {"unit": "q", name: "x/y"}
    found = imported("scores", rows[::2])
    assert found.key == ("unit",) and [body["id"] for body in imported.bodies] == ["q", "r"]
    rows = [score(u, 3, model=m, system=f"for {m}") for u in ("q", "r") for m in ("x", "y")]
    found = imported("scores", rows)
    assert found.key == ("unit", "model") and found.json()["meta_differs"] == {}


def test_no_score_goes_under_the_name_of_another_model(imported):
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


def test_meta_that_differs_within_a_unit_is_of_the_first_row_and_counted(
    imported,
):
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
