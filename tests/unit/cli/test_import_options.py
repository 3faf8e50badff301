"""What options of `evenhand import` do, alone and together, and what they leave as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.runs.imports import VERSION
from tests.unit.cli.conftest import CallCommand


def test_the_same_options_make_the_same_run_and_others_make_another(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs also say by which version of the reader their rows were read."""
    lines = ("unit,judge,first,second,winner", "q1,a,old,new,new", "q2,a,new,old,tie", "")
    (tmp_path / "votes.csv").write_text("\n".join(lines))
    command = ("import", "votes.csv", "--kind", "votes", "--json")
    options = (
        (),
        ("--on-conflict", "tie"),
        ("--name", "other"),
        ("--judge", "b", "--map", "by=judge"),
    )
    runs = [call(*command, *option).json["run"] for option in options]
    assert len(set(runs)) == len(options)
    assert call(*command).json["run"] == runs[0]
    monkeypatch.setattr("evenhand.runs.imports.VERSION", VERSION + 1)
    assert call(*command).json["run"] not in runs
    assert call("store", "verify").code == 0
