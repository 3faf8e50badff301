"""The command line called in this process, through the same `main` as the console script."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evenhand.cli.main import main
from evenhand.runs.stores import open_archive


class Said(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> str:
        """What stdout says below the line that names the run."""
        return self.out.partition("\n")[2]

    @property
    def json(self) -> Any:
        """All of stdout, which must be one JSON value and nothing else."""
        return json.loads(self.out)


CallCommand = Callable[..., Said]
NEWEST = "<newest>"
"""Among the words of a command: the id of the run that came last into the store, an import too."""


def newest_run() -> str:
    """Return the id of the run that came last into the store here."""
    archive = open_archive("sqlite:evenhand.db")
    try:
        return archive.runs()[0].id
    finally:
        archive.close()


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CallCommand:
    """Calls `evenhand ...` in tmp_path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def called(*arguments: str) -> Said:
        words = [newest_run() if word == NEWEST else word for word in arguments]
        monkeypatch.setattr(sys, "argv", ["evenhand", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Said(left.value.code, out, err)

    return called


@pytest.fixture
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that is no CI."""
    for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
