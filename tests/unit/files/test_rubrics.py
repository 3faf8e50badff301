"""Rubrics from their files: what is read, and where what is wrong stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.data.columns import Row
from evenhand.errors import DataError, UsageError
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import read_rubric, with_rubric_text
from evenhand.kinds import KINDS
from evenhand.kinds.weighted.task_rubric import read_task
from tests.suites import RUBRIC, TASK

TYPES = ("fact", "creative", "speculative")
WEIGHTED, RUBRICS = find_protocol("weighted"), find_protocol("rubric")


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [("task.md", TASK), ("task.markdown", TASK), ("b.md", "\ufeff" + TASK)],
)
def test_a_task_rubric_is_read_by_its_ending(tmp_path: Path, name: str, text: str) -> None:
    rubric = read_task(read_rubric(written(tmp_path, name, text), WEIGHTED), TYPES)
    assert (rubric.task_type, rubric.critical) == ("fact", ("It lies.",))


WRONG: dict[str, tuple[str, str | bytes, str]] = {
    "empty": ("a.md", "", "a.md:1: the rubric is empty"),
    "two types": ("a.md", "task_type: fact\n\ntask_type: creative\n", "a.md:3: task_type is"),
    "unknown type": ("a.md", "# T\n\ntask_type: facts of life\n", "a.md:3: unknown task_type"),
    "bad pattern": (
        "a.md",
        "# Critical Fail Conditions\n- must_match: /[/\n",
        "a.md:2: the pattern",
    ),
    "an empty section": (
        "a.md",
        "# Critical Fail Conditions\n\n# More\n",
        "a.md:1: nothing stands",
    ),
    "not UTF-8": ("a.md", "Критерии".encode("cp1251"), "a.md: the rubric cannot be read"),
    "JSON": ("a.json", json.dumps(RUBRIC), "a.json: a task's rubric is Markdown"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, name: str) -> None:
    file, text, said = WRONG[name]
    with pytest.raises(UsageError) as error:
        read_rubric(written(tmp_path, file, text), WEIGHTED)
    assert str(error.value).startswith(f"{tmp_path}/{said}")
    with pytest.raises(UsageError, match="there is no rubric file"):
        read_rubric(tmp_path / "none.md", WEIGHTED)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
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
def test_what_counts_as_the_name_of_a_file(rubric: object, is_file: bool) -> None:
    form = KINDS["weighted"].rubric_form
    assert form is not None and form.is_file(rubric) is is_file


def test_a_row_names_a_file_beside_its_own(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    written(tmp_path, "sub/task.md", TASK)
    row = Row({"rubric": "sub/task.md", "answer": "x"}, "data.jsonl:1")
    data = tmp_path / "data.jsonl"
    assert with_rubric_text(row, data, WEIGHTED) == {"rubric": TASK, "answer": "x"}
    for value in ({"rubric": TASK}, {"answer": "x"}, {"rubric": None}):
        assert with_rubric_text(Row(value, "data.jsonl:1"), data, WEIGHTED) == value


def test_what_is_wrong_with_a_rows_file_is_wrong_data(tmp_path: Path) -> None:
    written(tmp_path, "a.md", "\n\ntask_type: poetry\n")
    with pytest.raises(DataError, match=r"a\.md:3: unknown task_type"):
        with_rubric_text(Row({"rubric": "a.md"}, "d:1"), tmp_path / "d", WEIGHTED)
    with pytest.raises(DataError, match=r"d:1: there is no rubric file"):
        with_rubric_text(Row({"rubric": "none.md"}, "d:1"), tmp_path / "d", WEIGHTED)


def test_a_rubric_of_dimensions_is_json_or_toml(tmp_path: Path) -> None:
    assert read_rubric(written(tmp_path, "r.json", json.dumps(RUBRIC)), RUBRICS) == RUBRIC
    bad = json.dumps(RUBRIC, indent=1).replace('"score": 3', '"score": "3"', 1)
    line = bad[: bad.index('"score": "3"')].count("\n") + 1
    with pytest.raises(UsageError, match=rf"r\.json:{line}: a band's score must be a number"):
        read_rubric(written(tmp_path, "r.json", bad), RUBRICS)


@pytest.mark.parametrize("ending", ["json", "toml"])
def test_a_rubric_that_nests_without_end_is_refused(tmp_path: Path, ending: str) -> None:
    deep = ("deep = " if ending == "toml" else "") + "[" * 10**4
    with pytest.raises(UsageError, match=f"not {ending.upper()}: nested "):
        read_rubric(written(tmp_path, f"r.{ending}", deep), RUBRICS)
