"""`evenhand.grade` and `grade_async`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand
from tests import provider as p
from tests.suites import GRADE_JUDGE, TASK, at

PROMPT, ANSWER = "Which city is the capital of France?", "It is Paris."
GOOD = "python/judge:good"


@pytest.fixture(autouse=True)
def judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`judge.py` in the working folder."""
    (tmp_path / "judge.py").write_text(GRADE_JUDGE)
    monkeypatch.chdir(tmp_path)
    yield


def test_grade_gives_a_total_with_reasons() -> None:
    found = evenhand.grade(PROMPT, ANSWER, rubric=TASK, judge=GOOD, task_name="capital")
    assert found.status == "verdict"
    assert found.output is not None
    assert (found.output["task_name"], found.output["task_type"]) == ("capital", "fact")
    assert (found.output["total_score"], found.output["confidence"]) == (21, "high")


@pytest.mark.parametrize("language", ["ru", "zh", "ja", "en"])
async def test_grade_async_infers_a_type_where_none_is_given(language: str) -> None:
    found = await evenhand.grade_async(
        PROMPT, ANSWER, rubric="- +60 if right\n", judge=GOOD, language=language
    )
    assert found.output is not None
    assert found.output["inferred_task_type"] == found.output["task_type"] == "fact"


@pytest.mark.parametrize("given", ["task.md", Path("task.md")])
def test_the_rubric_may_be_a_file(given: str | Path) -> None:
    Path("task.md").write_text(TASK)
    found = evenhand.grade(PROMPT, ANSWER, rubric=given, judge=GOOD)
    assert found.output is not None
    assert found.output["task_type"] == "fact"


def test_a_rubric_that_changed_is_read_again() -> None:
    for kind in ("fact", "creative"):
        Path("task.md").write_text(TASK.replace("fact", kind))
        found = evenhand.grade(PROMPT, ANSWER, rubric="task.md", judge=GOOD)
        assert found.output is not None
        assert found.output["task_type"] == kind


def test_what_code_decides_needs_no_judge_and_a_failure_is_a_value() -> None:
    failed = evenhand.grade(PROMPT, "It is forbidden.", rubric=TASK, judge="python/judge:crash")
    assert failed.output is not None
    assert (failed.output["critical_fail"], failed.flags) == (True, ("decided_by_code",))
    spoilt = evenhand.grade(PROMPT, ANSWER, rubric=TASK, judge="python/judge:bad")
    assert (spoilt.status, spoilt.reason, spoilt.output) == ("failure", "schema", None)


async def test_the_same_grade_is_paid_for_once() -> None:
    async with p.Provider(p.valid()) as provider:
        settings = {"judge": "openai/test-model", "store": "sqlite:grades.db"}
        settings |= {key: value for key, value in at(provider.url).items() if key != "model"}
        first = await evenhand.grade_async(PROMPT, ANSWER, rubric=TASK, **settings)
        again = await evenhand.grade_async(PROMPT, ANSWER, rubric=TASK, **settings)
        assert len(provider.calls) == 1
        await evenhand.grade_async(PROMPT, "Another.", rubric=TASK, **settings)
        assert len(provider.calls) == 2
    assert first.output == again.output is not None


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        (("", ANSWER), {}, '"prompt" is empty'),
        ((PROMPT, ANSWER), {"rubric": "none.md"}, "there is no rubric file"),
        ((PROMPT, ANSWER), {"rubric": Path("none.txt")}, "none.txt: a task's rubric is Markdown"),
        ((PROMPT, ANSWER), {"rubric": "\ntask_type: poem\n"}, "line 2: unknown task_type"),
        ((PROMPT, ANSWER), {"rubric": "bad.md"}, "bad.md:2: unknown task_type"),
        ((PROMPT, ANSWER), {"rubric": {"dimensions": []}}, '"rubric" must be a text'),
        ((PROMPT, ANSWER), {"language": "tlh"}, 'no prompt in "tlh"'),
        ((PROMPT, ANSWER), {"temperatur": 1}, "temperatur"),
    ],
)
def test_what_is_wrong_is_raised_before_anything_is_asked(
    arguments: tuple[str, str], settings: dict[str, Any], said: str
) -> None:
    Path("bad.md").write_text("\ntask_type: poem\n")
    with pytest.raises(evenhand.EvenhandError) as error:
        evenhand.grade(*arguments, **{"rubric": TASK, "judge": "python/judge:crash"} | settings)
    assert said in str(error.value)


async def test_the_sync_form_inside_a_loop_waits_too() -> None:
    assert evenhand.grade(PROMPT, ANSWER, rubric=TASK, judge=GOOD).status == "verdict"
