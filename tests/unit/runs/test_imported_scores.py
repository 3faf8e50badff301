"""Scores to judgments: which rows make one, and what becomes of those that are none."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from evenhand.kinds.rubric.kind import load_sample
from evenhand.store.ledger import Store
from tests.unit.runs.importing import Importer, import_files, score


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
    found = import_files(store, [tmp_path / "s.parquet"], "scores")
    assert (found.tally.verdicts, found.tally.failures) == (1, {"empty": 1})


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
