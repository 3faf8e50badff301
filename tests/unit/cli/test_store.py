"""Stores as a user names them, and `store verify`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.suites import evenhand_here, write_suite


@pytest.mark.parametrize("command", [("run",), ("runs",), ("settle",), ("store", "verify")])
def test_a_name_that_no_file_can_have_is_told(tmp_path: Path, command: tuple[str, ...]) -> None:
    write_suite(tmp_path, 1, store={"url": "sqlite:a\0b"})
    for options in ((), ("--store", "sqlite:a\0b")):
        outcome = evenhand_here(*command, *options, cwd=tmp_path)
        assert outcome.returncode == 2, outcome.stderr
        assert '"a\\x00b"' in outcome.stderr or '"sqlite:a\\x00b"' in outcome.stderr


@pytest.mark.parametrize(
    ("key", "value"), [("rubric", "a\0b.json"), ("prompt", "a\0b.md"), ("data", ["a\0*.csv"])]
)
def test_no_other_file_of_a_suite_can_have_it_either(
    tmp_path: Path, key: str, value: object
) -> None:
    write_suite(tmp_path, 1, **{key: value})
    outcome = evenhand_here("run", cwd=tmp_path)
    assert outcome.returncode == 2, outcome.stderr


def test_a_folder_whose_name_is_no_text_holds_a_store_like_any_other(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    write_suite(folder, 2)
    for command in (("run",), ("show",), ("settle",), ("store", "verify")):
        outcome = evenhand_here(*command, cwd=folder)
        assert outcome.returncode == 0, outcome.stderr
    missing = f"sqlite:{os.fsdecode(b'no-caf%c' % 0xE9)}/x.db"
    for command in (("run",), ("runs",)):
        assert evenhand_here(*command, "--store", missing, cwd=folder).returncode == 6


def test_a_store_that_is_somebody_elses_is_told(tmp_path: Path) -> None:
    write_suite(tmp_path, 1)
    for place in ("samples.jsonl", ".", "no/folder.db"):
        outcome = evenhand_here("run", "--store", f"sqlite:{place}", cwd=tmp_path)
        assert (outcome.returncode, "cannot be opened" in outcome.stderr) == (6, True)
