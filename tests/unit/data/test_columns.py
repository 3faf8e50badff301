"""The mapping of other layouts' names onto ours."""

from __future__ import annotations

import json

import pytest

from evenhand.data import rows, write
from evenhand.errors import DataError
from tests.sentences import refused


def _read(folder, held, columns):
    path = folder / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, held)))
    return [row.value for row in rows(path, columns)]


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet", "csv.gz"])
def test_mapped_fields_are_copied_and_the_rest_stays(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    write(path, [{"model_name": "m", "info": {"a": "x", "b": "y"}, "kept": "k"}])
    columns = {"meta.model": "model_name", "model_output": "info.a"}
    assert [row.value for row in rows(path, columns)] == [
        {
            "model_name": "m",
            "info": {"a": "x", "b": "y"},
            "kept": "k",
            "meta": {"model": "m"},
            "model_output": "x",
        }
    ]


@pytest.mark.parametrize(
    ("held", "columns", "read"),
    [
        ([{"a": 1, "b": 2}], {"a": "b", "b": "a", "c.d": "a"}, [{"a": 2, "b": 1, "c": {"d": 1}}]),
        (
            [{"a.b": 1, "a": {"b": 2}}, {"a": {"b": 2}}],
            {"c": "a.b"},
            [{"a.b": 1, "a": {"b": 2}, "c": 1}, {"a": {"b": 2}, "c": 2}],
        ),
        ([{"a": 1, "b": None}], {"a": "b"}, [{"a": None, "b": None}]),
        ([{"a": 1}, {"b": 2}], {"c": "b"}, [{"a": 1}, {"b": 2, "c": 2}]),
    ],
    ids=["swapped", "dotted first", "replaced", "of some rows"],
)
def test_fields_are_copied_as_the_rows_had_them(tmp_path, held, columns, read):
    assert _read(tmp_path, held, columns) == read


def test_a_source_that_no_row_has_is_refused_before_the_first_row(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"answer":1,"meta":{"model_name":2}}\n{"answer":3}\n')
    for wrong, near in (("anwser", "answer"), ("meta.modelname", "meta.model_name")):
        with refused(DataError, "data.in_no_row", wrong) as caught:
            rows(path, {"model_output": wrong})
        assert caught.value.advice.values["near"] == near


def test_a_missing_column_of_a_table_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,answer\nq,a\n")
    with refused(DataError, "data.in_no_row", '"reply"'):
        list(rows(path, {"model_output": "reply"}))


def test_an_empty_file_is_called_empty_though_columns_are_mapped(tmp_path):
    with refused(DataError, "data.file_without_rows"):
        _read(tmp_path, [], {"a": "b"})


def test_a_target_inside_something_that_is_no_object_is_refused(tmp_path):
    with refused(DataError, "data.not_an_object", '"meta"') as caught:
        _read(tmp_path, [{"meta": "text", "m": 1}], {"meta.model": "m"})
    assert caught.value.where.endswith("a.jsonl:1")
