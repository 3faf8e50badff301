"""Paths that cannot be read or written are refused before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.data import rows, write
from evenhand.errors import UsageError


@pytest.mark.parametrize("name", ["a.txt", "a.xls", "a", "a.gz", "a.txt.gz", ".jsonl"])
def test_an_unknown_ending_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for use in (rows, lambda p: write(p, [])):
        with pytest.raises(UsageError) as caught:
            use(tmp_path / name)
        for ending in (".jsonl", ".json", ".csv", ".parquet", ".gz"):
            assert ending in caught.value.advice


def test_a_missing_file_suggests_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").touch()
    with pytest.raises(UsageError, match="there is no file") as caught:
        rows(tmp_path / "sample.jsonl")
    assert caught.value.advice == 'did you mean "samples.jsonl"?'


def test_a_missing_folder_suggests_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for use in (rows, lambda p: write(p, [])):
        with pytest.raises(UsageError, match="there is no folder") as caught:
            use(tmp_path / "dta" / "a.jsonl")
        assert caught.value.advice == 'did you mean "data"?'


def test_a_folder_lists_the_data_files_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "runs.jsonl"
    folder.mkdir()
    (folder / "a.csv").touch()
    (folder / "notes.txt").touch()
    with pytest.raises(UsageError, match="is a folder") as caught:
        rows(folder)
    assert caught.value.advice == "name a file in it: a.csv"
    with pytest.raises(UsageError, match="is a folder"):
        write(folder, [])
