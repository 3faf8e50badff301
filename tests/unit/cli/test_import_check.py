"""What was imported and exported passes the project's own check."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.files.replies import check_file
from tests.suites import pair_row, pairs, write_rows
from tests.unit.cli.conftest import NEWEST, CallCommand

VOTES = [
    {"unit": "p0", "judge": "ann", "first": "c1", "second": "c2", "winner": "first"},
    {"unit": "p0", "judge": "ann", "first": "c2", "second": "c1", "winner": "first"},
    {"unit": "p1", "judge": "ann", "first": "c1", "second": "c2", "winner": "c2", "area": "x"},
    {"unit": "p2", "judge": "ann", "first": "c1", "second": "c2", "preference": 0.5},
]


@pytest.mark.parametrize("name", ["v.jsonl", "v.txt"])
@pytest.mark.parametrize("judges", [("ann",), ("ann", "bob", "cyd")])
def test_what_was_imported_and_exported_passes_the_check(
    call: CallCommand, tmp_path: Path, name: str, judges: tuple[str, ...]
) -> None:
    votes = [vote | {"judge": judge} for vote in VOTES for judge in judges]
    write_rows(tmp_path, votes, "votes.jsonl")
    assert call("import", "votes.jsonl", "--kind", "votes").code == 0
    assert call("export", NEWEST, "-o", name).code == 0
    write_rows(tmp_path, pairs(3), "pairs.jsonl")
    found = check_file("pairwise", "en", None, tmp_path / "pairs.jsonl", tmp_path / name)
    assert found.problems == []
    assert found.units == found.ok == 3 * (len(judges) if name == "v.jsonl" else 1)


def test_imported_pairs_of_one_topic_are_found_by_their_candidates(
    call: CallCommand, tmp_path: Path
) -> None:
    met = [("c1", "c2"), ("c3", "c1"), ("c2", "c3")]
    votes = [
        {"unit": "t", "judge": "ann", "first": first, "second": second, "winner": first}
        for first, second in met
    ]
    write_rows(tmp_path, votes, "votes.jsonl")
    write_rows(tmp_path, [pair_row("t", 1, 2, 3)], "pairs.jsonl")
    assert call("import", "votes.jsonl", "--kind", "votes").code == 0
    for name in ("v.jsonl", "v.txt"):
        assert call("export", NEWEST, "-o", name).code == 0
        found = check_file("pairwise", "en", None, tmp_path / "pairs.jsonl", tmp_path / name)
        assert (found.units, found.problems) == (3, [])
