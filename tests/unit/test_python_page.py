"""The code of docs/python.md about single answers, runs and tests is carried out as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import evenhand
from tests.provider import child
from tests.suites import RUBRIC, TASK, samples, write_suite

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")


def code(heading):
    """Return the Python of a section, up to the next one."""
    section = PAGE.split(f"{heading}\n", 1)[1].split("\n## ", 1)[0]
    return "\n".join(re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE))


def test_the_code_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = samples(4)
    for number, row in enumerate(rows):
        row["meta"] = {"prompt_variant": f"v{number % 2 + 1}", "question_id": str(number // 2)}
    write_suite(tmp_path, rows)
    for name in ("capital.md", "task.md"):
        Path(name).write_text(TASK)
    frame = [{"question": "Why?", "model": m, "answer": f"It is {m}."} for m in ("m1", "m2")]
    with child() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test-and-long")
        names = {"dataframe": frame}
        exec(code("# Python, notebooks, pytest"), names)
        assert names["scores"].scores.keys() == {"correctness", "criterion"}
        assert names["found"].status == names["grade"].status == "verdict"
        runs = code("## Runs and tables")
        # No run has both scores and pairs.
        runs = runs.replace("run.leaderboard().json()", "")
        exec(runs, names)
        assert names["run"].summary["verdicts"] == 2
        assert isinstance(names["run"], evenhand.Run)


def test_the_tests_run_as_they_stand(pytester, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test-and-long")
    (pytester.path / "rubric.json").write_text(json.dumps(RUBRIC))
    pytester.makepyfile(test_it=code("## Inside tests: pytest"))
    with child() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        found = pytester.runpytest_inprocess("-p", "evenhand", "--evenhand-judge", "openai/any")
    # The provider gives middle scores, so that one of the three does not reach what is wanted.
    found.assert_outcomes(passed=1, failed=2)
    found.stdout.fnmatch_lines(
        ["E *AssertionError: Overall 0.50*0.70*Sydney*", "E *correct: 3 of 5*"]
    )
