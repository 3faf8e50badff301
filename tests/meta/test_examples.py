"""The examples run as they are."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("name", "units"), [("own-judge", 2), ("table", 4)])
def test_an_example_runs_as_it_is(name, units, tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "run", "--json"],
        cwd=tmp_path / "examples" / name,
        capture_output=True,
        text=True,
        check=True,
    )
    summary = json.loads(done.stdout)
    assert summary["verdicts"] == summary["planned"] == units


def _run_cell(source, names):
    """Carry out a cell, and give what its last line shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


async def test_the_notebook_runs_as_it_is_inside_a_running_loop(tmp_path, monkeypatch):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples" / "notebook")
    cells = json.loads(Path("dataframe.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names = {}
    _, run, frame, comparison, is_same = [_run_cell(source, names) for source in sources]
    assert run.summary["verdicts"] == 4
    assert list(frame["score.polite"]) == [0, 1, 0, 1]
    assert comparison.rows[0].variant == "v2" and "outcome" in comparison._repr_html_()
    assert is_same is True
