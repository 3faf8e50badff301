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


@pytest.mark.parametrize(
    ("winner", "said"),
    [
        ("first", "first"),
        ("second", "second"),
        ("tie", "tie"),
        (" tie ", "tie"),
        ("a", "first"),
        ("b", "second"),
    ],
)
def test_a_winner_is_a_side_a_tie_or_a_name(winner, said):
    assert read(VOTE | {"winner": winner}).side == said


@pytest.mark.parametrize("winner", ["A", "Tie", "gpt", "neither", "?", 7, True, ["a"]])
def test_any_other_label_is_a_failure_that_keeps_it(winner):
    vote = read(VOTE | {"winner": winner})
    assert (vote.side, vote.failed) == ("", "schema")
    assert (winner if isinstance(winner, str) else "") in vote.detail


@pytest.mark.parametrize("row", [{"winner": ""}, {"winner": None}, {}, {"preference": ""}])
def test_no_label_is_a_failure_too(row):
    assert read(VOTE | row).failed == "empty"


@pytest.mark.parametrize("side", ["first", "second"])
@pytest.mark.parametrize("name", ["first", "second", "tie", " tie "])
def test_a_candidate_called_like_a_word_for_a_side_is_an_error(side, name):
    with refused(DataError, "data.candidate_is_verdict", f'"{side}" .*"{name.strip()}"'):
        read(VOTE | {side: name, "winner": "a"})


@pytest.mark.parametrize(
    ("preference", "said"), [(0, "first"), ("0.49", "first"), (0.5, "tie"), ("1", "second")]
)
def test_without_a_winner_the_preference_names_it(preference, said):
    vote = read(VOTE | {"preference": preference})
    assert (vote.side, vote.preference) == (said, float(preference))


@pytest.mark.parametrize("preference", [-0.1, 1.01, "much", "nan", "inf", True])
def test_a_preference_outside_0_to_1_is_a_failure(preference):
    vote = read(VOTE | {"winner": "first", "preference": preference})
    assert vote.failed == "schema" and "from 0 to 1" in vote.detail


@pytest.mark.parametrize(
    ("winner", "preference"), [("first", 0.9), ("b", "0.1"), ("tie", 1), ("second", 0.5)]
)
def test_a_winner_and_a_preference_that_contradict_are_a_failure(winner, preference):
    vote = read(VOTE | {"winner": winner, "preference": preference})
    assert (vote.side, vote.preference, vote.failed) == ("", None, "schema")
    assert vote.detail == (f'winner "{winner}" and preference {preference} contradict each other')
    agreed = read(VOTE | {"winner": "a", "preference": 0.1})
    assert (agreed.side, agreed.preference, agreed.failed) == ("first", 0.1, "")


def test_names_are_told_apart_by_case_from_words_for_a_side():
    assert read({"first": "Tie", "second": "b", "winner": "Tie"}).side == "first"


def test_a_vote_that_does_not_say_whom_it_compares_is_an_error():
    with refused(DataError, "data.cell_empty", r'v\.csv:3: .*"first"'):
        read(VOTE | {"first": " "}, "v.csv:3")


@pytest.mark.parametrize(
    ("score", "read"), [(3, 3), ("3", 3), ("2.50", 2.5), (0.25, 0.25), ("-1", -1), (" 4 ", 4)]
)
def test_a_score_is_a_number_or_a_text_of_one(score, read):
    found = read_score(SCORE | {"score": score})
    assert (found.score, type(found.score), found.failed) == (read, type(read), "")


@pytest.mark.parametrize("score", ["4:5", "five", "nan", "1e999", "1_000", [3], {"a": 1}, 10**400])
def test_what_is_no_number_is_a_failure_that_keeps_it(score):
    found = read_score(SCORE | {"score": score})
    assert (found.score, found.failed) == (None, "schema") and "is not a number" in found.detail


@pytest.mark.parametrize("row", [{"score": ""}, {"score": None}, {}])
def test_no_score_is_a_failure_too(row):
    assert read_score(SCORE | row).failed == "empty"


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


@pytest.mark.parametrize(
    ("kind", "header", "missing", "key"),
    [
        ("votes", "unit,judge,frist,second,winner", "first", "column"),
        ("votes", "unit,judge,first,second,winer", "winner", "verdict_column"),
        ("scores", "unit,judge,dimension,scores", "score", "verdict_column"),
    ],
)
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
