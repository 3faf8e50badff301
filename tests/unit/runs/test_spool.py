"""Rows that wait in a database of the import's own."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from evenhand.runs.imports.spool import Spool


def test_rows_on_their_way_leave_nothing_behind_whatever_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they are too many for memory: their file has no name."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("evenhand.runs.imports.spool.SPOOL_KILOBYTES", 64)
    with closing(Spool({"texts": ("no", "text")})) as spool:
        for start in range(0, 4_000, 500):
            spool.write({"texts": [(start + at, "x" * 1_000) for at in range(500)]})
        assert spool.names("SELECT count(*) FROM texts") == [4_000]
        assert not list(tmp_path.iterdir())
