"""Judgments made elsewhere, imported and asked about from Python."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

import pandas
import pyarrow
import pytest

import evenhand
from evenhand.errors import DataError
from tests.cases import cases
from tests.sentences import refused

VOTES = """unit,judge,first,second,winner
q1,ann,old,new,new
q1,bob,old,new,new
q2,ann,old,new,old
q2,bob,old,new,new
q3,ann,new,old,tie
q3,bob,new,old,new
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text(VOTES)
    return tmp_path


def test_votes_are_taken_in_and_opened_again():
    run = evenhand.import_("votes.csv", "votes", on_conflict="split")
    assert run.summary["verdicts"] == 6 and run.summary["failures"] == {}
    assert evenhand.open("votes").id == evenhand.open(run.id).id == run.id
    assert len(evenhand.open(run.id).judgments()) == 6
    rows = run.leaderboard().json()["rows"]
    assert {row["candidate"] for row in rows} == {"new", "old"}
    assert evenhand.import_(Path("votes.csv"), "votes", on_conflict="split").id == run.id


def test_the_async_form_does_the_same_inside_a_loop():
    async def both():
        run = await evenhand.import_async(["votes.csv"], "votes")
        return run.id, evenhand.import_(["votes.csv"], "votes").id

    first, second = asyncio.run(both())
    assert first == second


def test_judges_agree_among_themselves_with_each_other_and_with_another_run(folder):
    run = evenhand.import_("votes.csv", "votes")
    among = run.agreement().rows[0].figures["agreement"]
    assert among.value == pytest.approx(1 / 3) and among.n == 3
    against = run.agreement(":bob", judges=("ann",))
    assert against.rows[0].figures["agreement"].value == pytest.approx(1 / 3)
    (folder / "people.csv").write_text(VOTES.replace("ann", "human/cy").replace("bob", "human/di"))
    people = evenhand.import_("people.csv", "votes")
    by_majority = run.agreement(people, majority=True, ties="drop")
    assert by_majority.matched == 3
    assert run.agreement(people.id, majority=True).json()["rows"]
    with refused(evenhand.EvenhandError, "agreement.majority_alone"):
        run.agreement(majority=True)


def test_labels_of_people_for_the_pairs_of_a_run(folder):
    run = evenhand.import_("votes.csv", "votes")
    (folder / "labels.csv").write_text("pair_id,annotator,winner\nq1,cy,2\nq2,cy,1\nq9,cy,1\n")
    labels = evenhand.import_("labels.csv", labels_for=run)
    assert labels.summary["verdicts"] == 2
    figures = run.agreement(labels, judges=("ann",)).rows[0].figures
    assert (figures["agreement"].value, figures["agreement"].n) == (1.0, 2)


@cases
def test_what_cannot_be_meant_is_told(settings, key, says):
    with refused(evenhand.EvenhandError, f"runs.{key}", says):
        evenhand.import_("votes.csv", **settings)


def _rows():
    return [dict(row) for row in csv.DictReader(VOTES.splitlines())]


def test_a_table_in_memory_is_taken_in_as_a_file_is(folder):
    run = evenhand.import_(_rows(), "votes", name="mine")
    assert run.summary["verdicts"] == 6 and run.summary["failures"] == {}
    assert evenhand.open("mine").id == run.id == evenhand.import_(_rows(), "votes", name="mine").id
    of_file = evenhand.import_("votes.csv", "votes")
    assert run.leaderboard().json()["rows"] == of_file.leaderboard().json()["rows"]
    same = run.agreement(f"{of_file.id}:ann", judges=("ann",))
    assert same.rows[0].figures["agreement"].value == 1
    assert sorted(path.suffix for path in folder.iterdir() if path.is_file()) == [".csv", ".db"]


def test_frames_are_taken_in_with_what_their_cells_mean():
    frame = pandas.DataFrame(
        {
            "item": [1, 1, 2, 2],
            "model": ["a", "b", "a", "b"],
            "good": [True, False, True, None],
        }
    )
    run = evenhand.import_(frame, "scores", columns={"unit": "item", "score": "good"}, judge="me")
    assert run.summary["verdicts"] == 3 and run.summary["failures"] == {"empty": 1}
    arrow = pyarrow.table({"unit": [1, 2], "judge": ["j", "j"], "score": [0.5, 4]})
    assert evenhand.import_(arrow, "scores").summary["verdicts"] == 2


def test_what_is_no_table_is_refused_by_what_it_is():
    with refused(evenhand.EvenhandError, "data.not_rows", "dict"):
        evenhand.import_({"unit": [1]}, "votes")
    with refused(evenhand.EvenhandError, "data.no_rows"):
        evenhand.import_([], "votes")
    with refused(evenhand.EvenhandError, "data.no_column", "^rows:1"):
        evenhand.import_([{"first": "a"}], "votes", judge="j")


def test_errors_about_rows_in_memory_name_the_row():
    row = {"unit": "q1", "judge": "ann", "first": "old", "second": "new", "winner": "new"}
    with refused(DataError, "data.surrogate", "^rows:2"):
        evenhand.import_([row, row | {"unit": "q2\ud83d"}], "votes")
    with refused(DataError, "data.surrogate", "^rows:2"):
        evenhand.import_([row, row | {"meta": {"tag": ["\ud83d"]}}], "votes")
    with refused(DataError, "data.cell_empty") as raised:
        evenhand.import_([row, row | {"unit": ""}], "votes")
    assert "jsonl" not in str(raised.value)


def test_files_are_taken_from_whatever_yields_them(folder):
    run = evenhand.import_(folder.glob("*.csv"), "votes")
    assert evenhand.import_({"votes.csv"}, "votes").id == run.id
    assert evenhand.import_({"votes.csv": 1}.keys(), "votes").id == run.id
