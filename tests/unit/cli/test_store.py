"""Stores as a user names them, and `store verify`."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from tests.sentences import is_told
from tests.suites import evenhand_here, ok_here, write_suite


@pytest.mark.parametrize("command", [("run",), ("runs",), ("settle",), ("store", "verify")])
def test_a_name_that_no_file_can_have_is_told(tmp_path, command):
    write_suite(tmp_path, 1, store={"url": "sqlite:a\0b"})
    for options in ((), ("--store", "sqlite:a\0b")):
        outcome = evenhand_here(*command, *options, cwd=tmp_path)
        assert outcome.returncode == 2, outcome.stderr
        assert '"a\\x00b"' in outcome.stderr or '"sqlite:a\\x00b"' in outcome.stderr


def test_a_folder_whose_name_is_no_text_holds_a_store_like_any_other(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    write_suite(folder, 2)
    for command in (("run",), ("show",), ("settle",), ("store", "verify")):
        ok_here(*command, cwd=folder)
    missing = f"sqlite:{os.fsdecode(b'no-caf%c' % 0xE9)}/x.db"
    for command in (("run",), ("runs",)):
        assert evenhand_here(*command, "--store", missing, cwd=folder).returncode == 6


def test_verify_says_whether_all_is_well(call, mixed, tmp_path):
    assert is_told(call("store verify").out, "cli.all_well")
    assert call.json("store verify") == {"ok": True, "problems": []}
    with sqlite3.connect(tmp_path / "evenhand.db") as beside:
        beside.execute("UPDATE calls SET reply='altered' WHERE rowid=1")
    beside.close()
    said = call("store verify --json")
    assert said.code == 6
    assert len(said.json["problems"]) == 1
