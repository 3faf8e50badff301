"""A score of -1 that stands for none, in a table whose scale nobody states."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import NEWEST, CallCommand

WORDS = "and no other lies below"


def table(folder: Path, *scores: float) -> None:
    rows = "".join(
        f"{place // 2},j,{('old', 'new')[place % 2]},{score}\n"
        for place, score in enumerate(scores * 4)
    )
    (folder / "t.csv").write_text(f"unit,judge,model,score\n{rows}")


def test_it_is_asked_about_wherever_it_is_averaged_in(call: CallCommand, tmp_path: Path) -> None:
    table(tmp_path, 7, 9, -1, 8, 5, 6)
    call("import", "t.csv", "--kind", "scores")
    note = f'4 scores are -1 on "score", {WORDS} 5: if that stands for none, import the table'
    assert any(
        note in told for told in call("compare", NEWEST, "--by", "model", "--json").json["notes"]
    )
    assert any(
        note in told for told in call("gate", NEWEST, "--min-mean", "0.5", "--json").json["notes"]
    )
    sql = "select * replace (nullif(score, -1) as score) from 't.csv'"
    call("import", "--kind", "scores", "--sql", sql)
    assert WORDS not in call("compare", NEWEST, "--by", "model").out


@pytest.mark.parametrize("scores", [(-1, 0, 1, 0), (-1, -2, 5, 3), (1, 5, 3, 4)], ids=str)
def test_a_scale_that_goes_below_0_is_one(
    call: CallCommand, tmp_path: Path, scores: tuple[float, ...]
) -> None:
    table(tmp_path, *scores)
    call("import", "t.csv", "--kind", "scores")
    assert WORDS not in " ".join(call("compare", "--by", "model").out.split())
