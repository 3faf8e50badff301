"""Values that wait in a file without a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import StoreError
from evenhand.runs.imports.packedfile import PackedFile


def test_values_come_back_in_their_order_and_from_where_they_begin() -> None:
    file = PackedFile()
    assert not file
    values = [["ä", 1, None], [], ["x" * 100_000, 0.1, True]]
    starts = [file.add(value) for value in values]
    assert file and list(file) == values
    # Whoever reads one in between does not disturb who reads all.
    assert [(value, file.at(starts[0])) for value in file] == [(v, values[0]) for v in values]
    starts.append(file.add("more"))
    assert list(file) == [*values, "more"] and file.at(starts[-1]) == "more"
    file.clear()
    assert not file and list(file) == []


def test_a_folder_that_takes_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match="cannot be kept on the way: No such file") as raised:
        PackedFile().add([1])
    assert "TMPDIR" in raised.value.advice
