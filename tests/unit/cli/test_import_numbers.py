"""Winners that are numbers, whose meaning depends on where counting begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import NEWEST, CallCommand


def table(folder: Path, *winners: object) -> None:
    rows = "".join(f"q{place},j,x,y,{winner}\n" for place, winner in enumerate(winners))
    (folder / "t.csv").write_text(f"unit,judge,first,second,winner\n{rows}")


@pytest.mark.parametrize(
    ("winners", "told"),
    [((0, 1, 2, 1), "0, 1, 2"), ((-1, 0, 1, 1), "-1, 0, 1"), ((1, 2, 5), "1, 2, 5")],
    ids=str,
)
def test_numbers_that_may_mean_several_things_are_not_guessed_at(
    call: CallCommand, tmp_path: Path, winners: tuple[int, ...], told: str
) -> None:
    table(tmp_path, *winners)
    refused = call("import", "t.csv", "--kind", "votes")
    assert refused.code == 3
    assert f"winners are numbers that may mean several things: {told}" in refused.err
    assert "--value winner:0=first,1=second,2=tie" in " ".join(refused.err.split())
    assert call("show").code == 2  # nothing was imported


def test_they_are_read_once_their_meaning_is_said(call: CallCommand, tmp_path: Path) -> None:
    table(tmp_path, 0, 1, 2, 1)
    said = call("import", "t.csv", "--kind", "votes", "--value", "winner:0=first,1=second,2=tie")
    assert said.code == 0 and "4 verdicts + 0 failures" in said.out
    (row,) = [
        row for row in call("leaderboard", NEWEST, "--json").json["rows"] if row["candidate"] == "y"
    ]
    assert (row["wins"], row["losses"], row["ties"]) == (2, 1, 1)
    table(tmp_path, 1, 2, 3, -1)
    said = call("import", "t.csv", "--kind", "votes", "--missing", "-1")
    assert said.code == 0 and "3 verdicts + 1 failure" in said.out


def test_one_two_and_three_alone_are_read_as_usual(call: CallCommand, tmp_path: Path) -> None:
    table(tmp_path, 1, 2, 3, "error")
    said = call("import", "t.csv", "--kind", "votes")
    assert said.code == 0 and "3 verdicts + 1 failure" in said.out and "read as usual" in said.out
