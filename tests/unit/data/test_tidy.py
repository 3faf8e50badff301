"""Tidy tables of votes and scores: what each cell says, and what is said about bad ones."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.data.layouts import LAYOUTS, JudgmentFile
from evenhand.data.layouts.tidy import (
    SCORE_COLUMNS,
    VOTE_COLUMNS,
    meta_of,
    read_candidate,
    read_score,
    read_vote,
)
from evenhand.data.write import write
from evenhand.errors import DataError
from evenhand.jsontext import parse
from tests.cases import cases
from tests.sentences import refused

VOTE = {"unit": "q1", "judge": "j", "first": "a", "second": "b"}
SCORE = {"unit": "q1", "judge": "j", "dimension": "clear"}


def found(path, kind, **columns):
    return list(LAYOUTS[kind].read(JudgmentFile(path=path, columns=columns)))


def read(row, where="here"):
    first, second = (read_candidate(row, name, where) for name in ("first", "second"))
    return read_vote(row, first, second)


@pytest.mark.parametrize("name", ["v.csv", "v.csv.gz", "v.jsonl", "v.json.gz", "v.parquet"])
def test_votes_come_from_any_kind_of_data_file(tmp_path, name):
    path = tmp_path / name
    write(path, [VOTE | {"winner": "first"}, VOTE | {"winner": "b"}])
    rows = found(path, "votes")
    assert [read(row.value, row.where).side for row in rows] == ["first", "second"]
    assert all(row.where.startswith(str(path)) for row in rows)


@cases
def test_what_a_vote_says(row, side, failed, detail, preference):
    vote = read(VOTE | row)
    assert (vote.side, vote.failed, vote.preference) == (side, failed, preference)
    assert detail in vote.detail


@cases
def test_what_a_score_says(row, failed, detail, score):
    found = read_score(SCORE | row)
    assert (repr(found.score), found.failed) == (repr(score), failed)
    assert detail in found.detail


def test_a_value_of_nothing_is_an_empty_cell():
    assert read(VOTE | {"winner": None}).failed == "empty"
    assert read_score(SCORE | {"score": None}).failed == "empty"


@pytest.mark.parametrize("side", ["first", "second"])
@pytest.mark.parametrize("name", ["first", "second", "tie", " tie "])
def test_a_candidate_called_like_a_word_for_a_side_is_an_error(side, name):
    with refused(DataError, "data.candidate_is_verdict", f'"{side}" .*"{name.strip()}"'):
        read(VOTE | {side: name, "winner": "a"})


def test_a_vote_that_does_not_say_whom_it_compares_is_an_error():
    with refused(DataError, "data.cell_empty", r'v\.csv:3: .*"first"'):
        read(VOTE | {"first": " "}, "v.csv:3")


def test_without_a_dimension_there_is_one_called_score():
    assert read_score({"score": 1}).dimension == "score"
    assert read_score({"score": 1, "dimension": ""}).dimension == "score"


def test_tags_are_a_list_or_a_text():
    assert read_score(SCORE | {"failure_tags": ["B", "A", "B"]}).tags == ("B", "A")
    assert read_score(SCORE | {"failure_tags": "A, C"}).tags == ("A", "C")
    assert read_score(SCORE).tags == ()


def test_all_other_columns_are_meta_but_empty_ones():
    row = VOTE | {"winner": "first", "meta": {"model": "m"}, "area": "x", "note": "", "n": None}
    assert meta_of(row, VOTE_COLUMNS) == {"model": "m", "area": "x"}
    assert meta_of(SCORE | {"score": 1, "model": "m"}, SCORE_COLUMNS) == {"model": "m"}


def test_columns_are_renamed(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("q,who,first,second,verdict\nq1,j,a,b,b\n")
    (row,) = found(path, "votes", unit="q", judge="who")
    assert row.value == VOTE | {"winner": "b"}


def test_a_name_to_rename_that_is_not_there_gets_a_hint(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("unit,judge,first,second,verdict\nq1,j,a,b,b\n")
    with refused(DataError, "data.in_no_row", '"verdikt".*--map') as caught:
        found(path, "votes", winner="verdikt")
    assert caught.value.advice.values["near"] == "verdict"


@cases
def test_a_missing_column_is_named_with_those_there_are(tmp_path, kind, header, missing, key):
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n{','.join('x' * len(header.split(',')))}\n")
    with refused(DataError, f"data.no_{key}", f'"{missing}"') as caught:
        found(path, kind)
    assert f"--map {missing}=" in caught.value.advice
    assert all(f'"{name}"' in caught.value.advice for name in header.split(","))


def test_a_later_row_may_lack_its_label(tmp_path):
    path = tmp_path / "v.jsonl"
    path.write_text("\n".join(json.dumps(VOTE | more) for more in ({}, {"winner": "a"})))
    first, second = found(path, "votes")
    assert read(first.value, "").failed == "empty" and read(second.value, "").side


def test_nan_is_a_missing_number_and_not_an_error(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"unit":"a","judge":"j","score":NaN}\n{"unit":"a","judge":"j","score":3}\n')
    assert [read_score(row.value).failed for row in found(path, "scores")] == ["empty", ""]


def test_a_key_that_stands_twice_is_an_error(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"unit":"a","score":1,"score":2}\n')
    with refused(DataError, "data.bad_row", r's\.jsonl:1: .*"score"'):
        found(path, "scores")


def test_a_gigantic_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.limits.LINE_BYTES", 1000)
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"unit":"' + b"x" * 10_000 + b'","score":1}\n'))
    with refused(DataError, "data.row_too_long"):
        found(path, "scores")


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.just(parse("1e999"))
CELLS = st.none() | st.booleans() | st.integers() | NUMBERS | st.text(max_size=20) | st.just([1])


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(sorted(VOTE_COLUMNS), CELLS)))
def test_no_label_makes_a_vote_an_error(row):
    vote = read(row | {"first": "a", "second": "b"})
    assert bool(vote.side) != bool(vote.failed)
    assert vote.preference is None or 0 <= vote.preference <= 1


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(sorted(SCORE_COLUMNS), CELLS)))
def test_no_value_makes_a_score_an_error(row):
    found = read_score(row)
    assert (found.score is None) == bool(found.failed)
