"""A rubric may be one sentence, where its file would be named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.data.columns import Row
from evenhand.errors import UsageError
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import is_rubric_text, sentence_rubric, with_rubric_text
from evenhand.kinds.rubric.rubric import build_rubric
from tests.suites import prepared, samples, write_rows, write_suite


@pytest.mark.parametrize(
    "text",
    [
        "Is the answer polite?",
        "Ответ вежлив?",
        "Вежливость",
        "回答是否礼貌？",
        "丁寧な回答か",
        "task_type: fact\n+10: right",
        "Does it mention config.json at all?",
    ],
)
def test_a_sentence_is_no_file(text: str) -> None:
    assert is_rubric_text(text)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "rubric.json",
            "rubrics/polite.toml",
            "rubrik",
            "my rubric v2.json",
            "task.md",
            "rubric.jsn",
        )
    ],
)
def test_the_name_of_a_file_is_no_sentence(name: str) -> None:
    assert not is_rubric_text(name)


@pytest.mark.parametrize("language", ["en", "ru", "zh", "ja", "fr"])
def test_a_sentence_is_one_dimension_with_five_bands(language: str) -> None:
    rubric = build_rubric(sentence_rubric("Is it  polite?\n", language))
    (dimension,) = rubric.dimensions
    assert dimension.definition == dimension.name == "Is it polite?"
    assert dimension.scores == [1, 2, 3, 4, 5]
    assert len({band.criteria for band in dimension.bands}) == 5
    english = sentence_rubric("x", "en")["dimensions"][0]["bands"]
    is_english = sentence_rubric("x", language)["dimensions"][0]["bands"] == english
    assert is_english is (language in ("en", "fr"))


def test_a_suite_judges_by_a_sentence(tmp_path: Path) -> None:
    write_suite(tmp_path, 2, rubric="Ответ вежлив?", language="ru")
    plan = prepared(tmp_path)
    assert plan.judging.dimensions == ["criterion"]
    assert "Полностью" in json.dumps(plan.rubric, ensure_ascii=False)


def test_a_row_may_bring_a_sentence_in_its_own_language(tmp_path: Path) -> None:
    protocol, path = find_protocol("rubric"), tmp_path / "a.csv"
    value = {"question": "q", "model_output": "a", "rubric": "Вежливо?", "language": "ru"}
    rubric = with_rubric_text(Row(value, "a.csv:2"), path, protocol)["rubric"]
    assert rubric["dimensions"][0]["bands"][4]["criteria"].startswith("Полностью")
    (row,) = samples(1)
    write_suite(tmp_path, 0)
    write_rows(tmp_path, [row | {"rubric": "Is it so?"}])
    assert next(prepared(tmp_path).units(prepared(tmp_path).judging))


def test_a_task_rubric_may_stand_in_the_suite(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,answer\nq,a\n")
    (tmp_path / "evenhand.toml").write_text(
        'protocol = "weighted"\ndata = "a.csv"\nrubric = "The answer is right."\n'
        'judges = [{ model = "replay/none.jsonl" }]\n'
    )
    (tmp_path / "none.jsonl").write_text('{"unit": "x", "reply": "y"}\n')
    assert prepared(tmp_path).rubric == "The answer is right."


@pytest.mark.parametrize(
    ("name", "advice"),
    [("rubrc.json", 'did you mean "rubric.json"?'), ("other.toml", "There are: rubric.json.")],
)
def test_a_rubric_file_that_is_not_there_is_told(tmp_path: Path, name: str, advice: str) -> None:
    write_suite(tmp_path, 1, rubric=name)
    with pytest.raises(UsageError, match="there is no rubric file") as caught:
        prepared(tmp_path)
    assert advice in caught.value.advice and "one sentence" in caught.value.advice
