"""Scores as people write them: grades, shares and stars."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CallCommand


@pytest.mark.parametrize(
    ("cells", "scores"),
    [
        (("A+", "a-", "B", "Ｂ＋"), (5.3, 4.7, 4, 4.3)),
        (("85%", "90 %", "7.5％", "100%"), (0.85, 0.9, 0.075, 1)),
        (("4/5", "3 / 5", "7/10", "0/5"), (0.8, 0.6, 0.7, 0)),
        (("★★★", "★★★★☆", "☆☆", "⭐️⭐️"), (3, 4, 0, 2)),
    ],
    ids=["grades", "percent", "fractions", "stars"],
)
def test_scores_are_read_as_people_write_them(
    call: CallCommand, tmp_path: Path, cells: tuple[str, ...], scores: tuple[float, ...]
) -> None:
    rows = "".join(f"{place},ann,{cell}\n" for place, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(f"unit,judge,score\n{rows}", encoding="utf-8")
    told = call("import", "t.csv", "--kind", "scores")
    assert told.code == 0 and "4 verdicts + 0 failures" in told.out and "read as usual" in told.out
    call("export", "latest", "-o", "scores.jsonl")
    lines = (tmp_path / "scores.jsonl").read_text().splitlines()
    values = [json.loads(line)["scores"]["score"]["score"] for line in lines]
    assert sorted(values) == pytest.approx(sorted(scores))


@pytest.mark.parametrize(
    "cell", ["6/5", "1/0", "110%", "-5%", "3/4/2024", "A++", "F-", "G-", "1/2/3"]
)
def test_what_is_no_share_and_no_grade_is_not_guessed_at(
    call: CallCommand, tmp_path: Path, cell: str
) -> None:
    (tmp_path / "t.csv").write_text(f"unit,judge,score\n1,ann,3\n2,ann,{cell}\n")
    told = call("import", "t.csv", "--kind", "scores")
    assert "1 verdict + 1 failure" in told.out and f'"{cell}" 1' in told.out


def test_how_much_better_one_is_says_who_won(call: CallCommand, tmp_path: Path) -> None:
    words = ("A much better", "B is slightly better", "Model A better", "second is better", "tie")
    rows = "".join(f"q{place},ann,x,y,{word}\n" for place, word in enumerate(words))
    (tmp_path / "t.csv").write_text(f"unit,judge,first,second,winner\n{rows}")
    told = call("import", "t.csv", "--kind", "votes")
    assert told.code == 0 and "5 verdicts + 0 failures" in told.out
    (row,) = [row for row in call("leaderboard", "--json").json["rows"] if row["candidate"] == "x"]
    assert (row["wins"], row["losses"], row["ties"]) == (2, 2, 1)
