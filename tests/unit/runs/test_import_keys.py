"""What tells imported units apart: columns that are named, known, or found out."""

from __future__ import annotations

import pytest

from evenhand.errors import DataError
from tests.unit.runs.importing import Importer, score, vote


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


def test_a_text_column_that_the_key_names_is_a_field(imported: Importer) -> None:
    rows = [vote("a", "b", "a", question=text) for text in ("Why?", "How?")]
    imported("votes", rows, key=["question"])
    assert [body["id"] for body in imported.bodies] == ["Why?", "How?"]
    assert [body["topic"] for body in imported.bodies] == ["Why?", "How?"]
