"""Rubrics from their files, or as one sentence, and where what is wrong stands."""

from __future__ import annotations

import json

import pytest

from evenhand.data.columns import Row
from evenhand.errors import DataError, UsageError
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import is_rubric_text, read_rubric, sentence_rubric, with_rubric_text
from evenhand.kinds import KINDS
from evenhand.kinds.rubric.rubric import build_rubric
from evenhand.kinds.weighted.task_rubric import read_task
from tests.cases import cases
from tests.sentences import refused
from tests.suites import RUBRIC, TASK, prepared, samples, write_answers, write_suite

SENTENCES = {
    "Is the answer polite?": True,
    "Вежливость": True,
    "回答是否礼貌？": True,
    "task_type: fact\n+10: right": True,
    "Does it mention config.json at all?": True,
    "rubric.json": False,
    "rubrics/polite.toml": False,
    "rubrik": False,
    "my rubric v2.json": False,
    "rubric.jsn": False,
}


TYPES = ("fact", "creative", "speculative")


WEIGHTED, RUBRICS = find_protocol("weighted"), find_protocol("rubric")


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [("task.md", TASK), ("task.markdown", TASK), ("b.md", "\ufeff" + TASK)],
)
def test_a_task_rubric_is_read_by_its_ending(tmp_path, name, text):
    rubric = read_task(read_rubric(written(tmp_path, name, text), WEIGHTED), TYPES)
    assert (rubric.task_type, rubric.critical) == ("fact", ("It lies.",))


@cases
def test_what_is_wrong_is_told_with_file_and_line(tmp_path, file, text, where, key):
    with refused(UsageError, key) as caught:
        read_rubric(written(tmp_path, file, text), WEIGHTED)
    assert caught.value.where == f"{tmp_path}/{where}"


def test_what_cannot_be_read_is_told(tmp_path):
    with refused(UsageError, "files.unreadable") as caught:
        read_rubric(written(tmp_path, "a.md", "Критерии".encode("cp1251")), WEIGHTED)
    assert caught.value.where == f"{tmp_path}/a.md"
    with refused(UsageError, "files.no_rubric"):
        read_rubric(tmp_path / "none.md", WEIGHTED)


def test_a_changed_file_is_read_again(tmp_path):
    path = written(tmp_path, "a.md", TASK)
    assert read_rubric(path, WEIGHTED) == TASK
    written(tmp_path, "a.md", TASK + "- more\n")
    assert read_rubric(path, WEIGHTED) == TASK + "- more\n"


@pytest.mark.parametrize(
    ("rubric", "is_file"),
    [
        ("task.md", True),
        ("sub/task.md", True),
        ("task.json", True),
        (TASK, False),
        ("- a point\ntask.md", False),
        ("Add points.", False),
        (None, False),
        ({"dimensions": []}, False),
    ],
)
def test_what_counts_as_the_name_of_a_file(rubric, is_file):
    form = KINDS["weighted"].rubric_form
    assert form.is_file(rubric) is is_file


def test_a_row_names_a_file_beside_its_own(tmp_path):
    (tmp_path / "sub").mkdir()
    written(tmp_path, "sub/task.md", TASK)
    row = Row({"rubric": "sub/task.md", "answer": "x"}, "data.jsonl:1")
    data = tmp_path / "data.jsonl"
    assert with_rubric_text(row, data, WEIGHTED) == {"rubric": TASK, "answer": "x"}
    for value in ({"rubric": TASK}, {"answer": "x"}, {"rubric": None}):
        assert with_rubric_text(Row(value, "data.jsonl:1"), data, WEIGHTED) == value


def test_what_is_wrong_with_a_rows_file_is_wrong_data(tmp_path):
    written(tmp_path, "a.md", "\n\ntask_type: poetry\n")
    with refused(DataError, "kinds.unknown_type", r"a\.md:3"):
        with_rubric_text(Row({"rubric": "a.md"}, "d:1"), tmp_path / "d", WEIGHTED)
    with refused(DataError, "files.no_rubric", "d:1"):
        with_rubric_text(Row({"rubric": "none.md"}, "d:1"), tmp_path / "d", WEIGHTED)


def test_a_rubric_of_dimensions_is_json_or_toml(tmp_path):
    assert read_rubric(written(tmp_path, "r.json", json.dumps(RUBRIC)), RUBRICS) == RUBRIC
    bad = json.dumps(RUBRIC, indent=1).replace('"score": 3', '"score": "3"', 1)
    line = bad[: bad.index('"score": "3"')].count("\n") + 1
    with refused(UsageError, "kinds.no_score", rf"r\.json:{line}: "):
        read_rubric(written(tmp_path, "r.json", bad), RUBRICS)


@pytest.mark.parametrize("ending", ["json", "toml"])
def test_a_rubric_that_nests_without_end_is_refused(tmp_path, ending):
    deep = ("deep = " if ending == "toml" else "") + "[" * 10**4
    with refused(UsageError, {"json": "kinds.not_json", "toml": "kinds.toml_depth"}[ending], "64"):
        read_rubric(written(tmp_path, f"r.{ending}", deep), RUBRICS)


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_is_no_file(text):
    assert is_rubric_text(text) is SENTENCES[text]


@pytest.mark.parametrize("language", ["en", "ru", "zh", "ja", "fr"])
def test_a_sentence_is_one_dimension_with_five_bands(language):
    rubric = build_rubric(sentence_rubric("Is it  polite?\n", language=language))
    (dimension,) = rubric.dimensions
    assert dimension.definition == dimension.name == "Is it polite?"
    assert dimension.scores == [1, 2, 3, 4, 5]
    assert len({band.criteria for band in dimension.bands}) == 5
    english = sentence_rubric("x", language="en")["dimensions"][0]["bands"]
    is_english = sentence_rubric("x", language=language)["dimensions"][0]["bands"] == english
    assert is_english is (language in ("en", "fr"))


def test_a_row_may_bring_a_sentence_in_its_own_language(tmp_path):
    protocol, path = find_protocol("rubric"), tmp_path / "a.csv"
    value = {"question": "q", "model_output": "a", "rubric": "Вежливо?", "language": "ru"}
    rubric = with_rubric_text(Row(value, "a.csv:2"), path, protocol)["rubric"]
    assert rubric["dimensions"][0]["bands"][4]["criteria"].startswith("Полностью")
    write_suite(
        tmp_path, [samples(1)[0] | {"rubric": "Is it so?"}], rubric="Вежлив?", language="ru"
    )
    plan = prepared(tmp_path)
    assert plan.judging.dimensions == ["criterion"]
    assert "Полностью" in json.dumps(plan.rubric, ensure_ascii=False)
    assert next(plan.units(plan.judging))
    write_answers(tmp_path, 1, rubric="The answer is right.")
    assert prepared(tmp_path).rubric == "The answer is right."


@pytest.mark.parametrize(
    ("name", "advice"),
    [("rubrc.json", "did_you_mean"), ("other.toml", "there_are")],
)
def test_a_rubric_file_that_is_not_there_is_told(tmp_path, name, advice):
    write_suite(tmp_path, 1, rubric=name)
    with refused(UsageError, "files.no_rubric") as caught:
        prepared(tmp_path)
    assert caught.value.advice.key.endswith(advice) and '"rubric.json"' in caught.value.advice
