"""Scores to judgments: which rows make one, and what tells units apart."""

from __future__ import annotations

import math

import pytest

from evenhand.kinds.samples import load_sample
from tests.unit.runs.importing import import_files, score


def test_columns_about_single_answers_make_repeats_and_no_units(imported):
    rows = [
        score(f"q{i}", 3, take=t, mood=f"m{(3 * i + t) % 7}") for i in range(20) for t in (1, 2)
    ]
    found = imported("scores", rows)
    assert found.key == ("unit",) and found.json()["repeats"] == 2


def test_a_unit_of_scores_is_a_sample(imported):
    imported("scores", [score("q", 3)])
    (unit,) = imported.store.archive.units(imported.recorded.scope)
    assert load_sample(unit.body).id == "q"


def test_nan_in_parquet_is_a_missing_number(store, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"unit": ["q", "r"], "judge": ["j", "j"], "score": [3.0, math.nan]}
    made = pyarrow.table(columns | {"age": [math.inf, 2.0]})
    parquet.write_table(made, tmp_path / "s.parquet")
    found = import_files(store, [tmp_path / "s.parquet"], "scores")
    assert (found.tally.verdicts, found.tally.failures) == (1, {"empty": 1})
