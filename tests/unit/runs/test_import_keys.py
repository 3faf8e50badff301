"""What tells imported scores apart: the unit, and known columns that differ within it."""

from __future__ import annotations

import pytest

from tests.unit.runs.importing import Importer, score


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


def test_what_is_said_of_single_answers_makes_repeats_and_no_units(imported: Importer) -> None:
    rows = [
        score(f"q{i}", 3, take=take, mood=f"m{(3 * i + take) % 7}")
        for i in range(20)
        for take in (1, 2)
    ]
    found = imported("scores", rows)
    assert found.key == ("unit",) and found.json()["repeats"] == 2
