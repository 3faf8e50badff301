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


def test_a_missing_folder_and_a_folder_in_place_of_a_file_are_told(tmp_path: Path) -> None:
    for use in (rows, lambda p: write(p, [])):
        with pytest.raises(UsageError, match="there is no folder"):
            use(tmp_path / "dta" / "a.jsonl")
        folder = tmp_path / "runs.jsonl"
        folder.mkdir(exist_ok=True)
        with pytest.raises(UsageError, match="is a folder"):
            use(folder)
