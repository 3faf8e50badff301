"""Promises about the package as a whole."""

import json
import subprocess
import sys

import pytest

import evenhand
from evenhand.suite import suite_schema

STATISTICS = {"altair", "fastapi", "jinja2", "numpy", "pandas", "scipy", "sklearn"}
OPTIONAL = STATISTICS | {
    "aiohttp",
    "genai_prices",
    "httpx2",
    "pyarrow",
    "pydantic",
    "rich",
    "xllamacpp",
}


def test_the_public_names_are_these() -> None:
    assert evenhand.__all__ == [
        "EvenhandError",
        "Failure",
        "Grade",
        "Judgment",
        "LeftOut",
        "PairVerdict",
        "RubricVerdict",
        "Run",
        "Verdict",
        "grade",
        "grade_async",
        "open",
        "prefer",
        "prefer_async",
        "run",
        "run_async",
        "score",
        "score_async",
    ]
    assert all(getattr(evenhand, name).__doc__ for name in evenhand.__all__)


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {module.partition(".")[0] for module in done.stdout.split()}


def test_importing_loads_nothing_heavy() -> None:
    assert not loaded_by("import evenhand") & OPTIONAL


def test_help_loads_nothing_heavy() -> None:
    asked = "from evenhand.cli.main import cli; cli.main(['--help'], standalone_mode=False)"
    assert not loaded_by(asked) & OPTIONAL


@pytest.mark.parametrize("command", ["run", "show", "export"])
def test_judging_and_looking_load_no_statistics(command: str) -> None:
    assert not loaded_by(f"import evenhand.cli.{command}") & STATISTICS


def test_the_shipped_schema_is_that_of_the_code() -> None:
    from importlib import resources

    shipped = (resources.files("evenhand") / "suite.schema.json").read_text(encoding="utf-8")
    assert json.loads(shipped) == suite_schema()


def test_a_judge_that_sends_nothing_loads_no_http_client() -> None:
    assert "aiohttp" not in loaded_by("import evenhand.judges.openai, evenhand.cli.run")
