"""Promises about the package as a whole."""

import inspect
import json
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest
from msgspec import Struct

import evenhand
from evenhand.suite_file import suite_schema

STATISTICS = {"fastapi", "jinja2", "numpy", "pandas", "scipy", "sklearn"}
OPTIONAL = STATISTICS | {
    "aiohappyeyeballs",
    "aiohttp",
    "genai_prices",
    "httpx2",
    "pyarrow",
    "pydantic",
    "rich",
    "xllamacpp",
}


def test_the_public_names_are_these():
    assert evenhand.__all__ == [
        "ChecklistVerdict",
        "EvenhandError",
        "Failure",
        "Grade",
        "JudgedUnit",
        "Judgment",
        "LeftOut",
        "NoVerdictsWarning",
        "PairVerdict",
        "RubricVerdict",
        "Run",
        "Verdict",
        "assert_passes",
        "checklist",
        "checklist_async",
        "grade",
        "grade_async",
        "import_",
        "import_async",
        "open",
        "prefer",
        "prefer_async",
        "run",
        "run_async",
        "score",
        "score_async",
    ]
    assert all(getattr(evenhand, name).__doc__ for name in evenhand.__all__)


def loaded_by(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {module.partition(".")[0] for module in done.stdout.split()}


HELP = "from evenhand.cli.main import cli; cli.main(['--help'], standalone_mode=False)"


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import evenhand", OPTIONAL),
        (HELP, OPTIONAL),
        *((f"import evenhand.cli.{name}", STATISTICS) for name in ("run", "show", "export")),
        ("import evenhand.judges.openai, evenhand.cli.run", {"aiohttp"}),
    ],
    ids=["import", "help", "run", "show", "export", "judge"],
)
def test_nothing_is_loaded_before_it_is_used(statement, absent):
    assert not loaded_by(statement) & absent


def test_the_shipped_schema_is_that_of_the_code():
    from importlib import resources

    shipped = (resources.files("evenhand") / "suite.schema.json").read_text(encoding="utf-8")
    assert json.loads(shipped) == suite_schema()


SUITE = """
protocol = "rubric"
data = ["samples.jsonl"]
rubric = "Is the answer polite?"
[[judges]]
model = "openai/any"
base_url = "http://127.0.0.1:9/v1"
price = { input = 0.4, output = 1.6 }
"""
LATE = {
    *("aiohappyeyeballs", "aiohttp", "genai_prices"),
    *("rich.console", "rich.table", "regex", "evenhand.kinds.pairwise", "evenhand.kinds.weighted"),
    *("evenhand.report.html", "evenhand.results.units", "evenhand.web", "evenhand.stats"),
    *("difflib", "urllib.request"),
}
"""What a forecast of a rubric run has no use for; to load most of these takes longer than the
forecast."""


def after_a_forecast(folder, words):
    """What an expression gives in the process that made the forecast of a rubric run."""
    (folder / "evenhand.toml").write_text(SUITE)
    (folder / "samples.jsonl").write_text('{"question": "Why?", "model_output": "So."}\n')
    code = "import sys; from evenhand.cli.main import cli;"
    code += f"cli.main(['run', '--dry-run'], standalone_mode=False); print(*{words})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    return set(done.stdout.splitlines()[-1].split())


def test_a_forecast_loads_only_what_it_uses(tmp_path):
    modules = after_a_forecast(tmp_path, "sys.modules")
    assert "evenhand.kinds.rubric.kind" in modules
    assert not modules & (LATE | STATISTICS)


def test_every_struct_can_be_looked_at():
    """msgspec resolves annotations when it is asked for a signature: a name that only a type
    checker imports is not there then."""
    for module in pkgutil.walk_packages(evenhand.__path__, "evenhand."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    ours = [cls for cls in _heirs(Struct) if cls.__module__.startswith("evenhand.")]
    assert len(ours) > 60
    for cls in ours:
        inspect.signature(cls)


def _heirs(cls):
    return {heir for child in cls.__subclasses__() for heir in (child, *_heirs(child))}
