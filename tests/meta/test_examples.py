"""The examples run as they are."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("name", "units"), [("own-judge", 2), ("table", 4)])
def test_an_example_runs_as_it_is(name: str, units: int, tmp_path: Path) -> None:
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
