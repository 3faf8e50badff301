"""Tables in memory are judged as files are, and judgments come back as tables."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import polars
import pyarrow
import pytest

import evenhand
from tests.sentences import refused
from tests.suites import GRADE_JUDGE, JUDGE, PAIR_JUDGE, RUBRIC

ROWS = [
    {"question": f"Why {i}?", "model": model, "answer": f"because {i} {model}", "hard": i == 0}
    for i in range(2)
    for model in ("m1", "m2")
]
TABLES = {
    "dicts": lambda: ROWS,
    "generator": lambda: (row for row in ROWS),
    "pandas": lambda: pandas.DataFrame(ROWS),
    "polars": lambda: polars.DataFrame(ROWS),
    "arrow": lambda: pyarrow.Table.from_pylist(ROWS),
    "batch": lambda: pyarrow.RecordBatch.from_pylist(ROWS),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    for name, text in (("judge", JUDGE), ("pair_judge", PAIR_JUDGE), ("grade_judge", GRADE_JUDGE)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(data=None, **settings):
    settings = {"rubric": RUBRIC, "judge": "python/judge:good", **settings}
    return evenhand.run(ROWS if data is None else data, **settings)


@pytest.mark.parametrize("table", TABLES)
def test_all_kinds_of_tables_are_one_run(table):
    first, again = judged(), judged(TABLES[table]())
    assert again.id == first.id and again.summary["verdicts"] == 4
    assert again.summary["calls"] == 0


def test_missing_values_and_numbers_of_pandas_are_read():
    rows = pandas.DataFrame(
        {
            "question": ["q1", "q2"],
            "answer": ["a", "b"],
            "round": [1, 2],
            "share": [0.5, None],
            "note": pandas.array([None, "x"], dtype="string"),
        }
    )
    run = judged(rows)
    frame = run.judgments().to_pandas()
    assert list(frame["meta.round"]) == [1, 2]
    assert frame["meta.share"].isna().tolist() == [False, True]
    assert frame["meta.note"].isna().tolist() == [True, False]


def test_judgments_come_back_as_a_table():
    judgments = judged().judgments()
    assert len(judgments) == 4 and judgments[0]["output"]["scores"]
    frame = judgments.to_pandas()
    names = list(frame.columns)
    first = ["unit", "judge", "repeat", "status", "reason"]
    assert names[:5] == first
    assert {"meta.model", "meta.hard", "score.correct", "score.clear"} <= set(names)
    assert len(frame) == 4
    answers = {row["answer"] for row in ROWS}
    assert set(frame["question"]) == {row["question"] for row in ROWS}
    assert set(frame["answer"]) == answers and set(frame["length"]) == set(map(len, answers))
    assert frame["reason.correct"].str.len().min() > 0
    for _, row in frame.iterrows():
        assert row["quotes.correct"] in row["answer"]


def test_pairs_and_grades_have_columns_of_their_own():
    rows = [row | {"answer": f"worth {i}"} for i, row in enumerate(ROWS)]
    pairs = evenhand.run(rows, judge="python/pair_judge:content").judgments().to_pandas()
    assert set(pairs["winner"]) == {"m2"} and set(pairs["settled"]) == {"stable"}
    assert {"first", "second", "mark.C1", "reason.C1", "reason.winner"} <= set(pairs.columns)
    for _, row in pairs.iterrows():
        assert row["first_length"] == len(row["first_answer"])
        assert row["second_length"] == len(row["second_answer"])
    grades = evenhand.run(
        ROWS, rubric="The answer is right.", protocol="weighted", judge="python/grade_judge:good"
    )
    frame = grades.judgments().to_pandas()
    assert {"total", "confidence", "critical_fail", "task_name"} <= set(frame.columns)


@pytest.mark.filterwarnings("ignore::evenhand.NoVerdictsWarning")
def test_the_rubric_may_be_a_sentence_a_file_or_a_dict(folder):
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    assert judged(rubric="rubric.json").id == judged(rubric=Path("rubric.json")).id
    assert judged(rubric="rubric.json").id == judged(rubric=RUBRIC).id
    run = judged(rubric="Is it polite?", judge="python/judge:bad")
    assert run.summary["failures"] == {"schema": 4}


def test_a_data_file_needs_no_suite(folder):
    pandas.DataFrame(ROWS).to_csv(folder / "answers.csv", index=False)
    run = judged("answers.csv")
    assert run.summary["verdicts"] == 4
    assert evenhand.open("answers").id == run.id


@pytest.mark.filterwarnings("ignore::evenhand.NoVerdictsWarning")
def test_the_language_is_that_of_the_texts():
    rows = [{"question": "Почему?", "answer": "Потому что так."}]
    run = judged(rows, rubric="Вежливо?", judge="python/judge:bad")
    assert evenhand.open(run.id).id == run.id
    in_russian = judged(rows, rubric="Вежливо?", judge="python/judge:bad", language="ru")
    assert in_russian.id == run.id


def test_a_run_is_opened_again():
    run = judged()
    latest = evenhand.open("latest")
    assert latest.id == run.id and latest.summary["verdicts"] == 4
    assert latest.summary["cost_usd"] == 0
    assert [row["unit"] for row in latest.judgments()] == [row["unit"] for row in run.judgments()]
    with pytest.raises(evenhand.EvenhandError, match="nothing"):
        evenhand.open("nothing")
    elsewhere = judged(store="sqlite:other.db", seed=1)
    assert evenhand.open(store="sqlite:other.db").id == elsewhere.id != run.id


def test_what_is_understood_is_told_and_what_is_wrong_too(
    capsys,
):
    judged()
    assert 'model_output = "answer", meta.model = "model"' in capsys.readouterr().err
    for wrong, key in (
        (7, "data.not_rows"),
        ([], "data.no_rows"),
        (["text"], "data.row_not_dict"),
        ([{"question": "q", "x": "y"}], "kinds.missing_field"),
        ([{"question": "q", "answer": object()}], "data.no_json_form"),
    ):
        with refused(evenhand.EvenhandError, key):
            judged(wrong)
    with pytest.raises(evenhand.EvenhandError, match="temperatur"):
        judged(judges=[{"model": "openai/m", "temperatur": 1}], judge=None)


def test_a_notebook_shows_tables():
    run = judged()
    rows = [row | {"answer": f"worth {i}"} for i, row in enumerate(ROWS)]
    pairs = evenhand.run(rows, judge="python/pair_judge:content")
    judgment = evenhand.score("q", "<b>so</b>", rubric=RUBRIC, judge="python/judge:good")
    values = [
        *(run, run.judgments(), run.compare("model"), pairs.leaderboard(), judgment),
        evenhand.score("q", "a", rubric=RUBRIC, judge="python/judge:bad"),
    ]
    pages = [value._repr_html_() for value in values]
    assert all(page.startswith("<table>") and "</table>" in page for page in pages)
    assert run.id in pages[0] and "score.correct" in pages[1] and "outcome" in pages[2]
    assert "win_rate" in pages[3]
    assert "&lt;b&gt;so&lt;/b&gt;" in pages[4] and "<b>" not in pages[4]
    assert "schema" in pages[5]
    texts = list(map(repr, [*values, run.observations(), run.agreement()]))
    assert max(len(line) for text in texts for line in text.splitlines()) <= 80
    assert run.id in texts[0] and "m2" in texts[2] and "win_rate" in texts[3]
    assert texts[1].split()[:5] == ["unit", "correct", "clear", "overall", "reason"]
    assert texts[6].split()[:3] == ["unit", "measure", "value"]


def test_progress_is_told_where_it_is_wanted(capsys):
    judged(progress=True)
    assert "4/4 judged" in capsys.readouterr().err
