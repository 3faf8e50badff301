"""What the cells of a table mean: winners and scores as others spell them, and what is said of
those that cannot be read."""

from __future__ import annotations

from pathlib import Path

from evenhand.data.write import write
from tests.unit.cli.conftest import NEWEST, CallCommand


def write_votes(path: Path, winners: list[str]) -> None:
    write(
        path,
        [
            {"unit": f"q{i}", "judge": "j", "first": "x", "second": "y", "winner": winner}
            for i, winner in enumerate(winners)
        ],
    )


def test_the_name_of_a_candidate_goes_before_what_a_word_usually_means(
    call: CallCommand, tmp_path: Path
) -> None:
    row = {"unit": "q", "judge": "j", "first": "B", "second": "A", "winner": "A"}
    write(tmp_path / "votes.csv", [row])
    call("import", "votes.csv", "--kind", "votes")
    rows = {
        row["candidate"]: row["wins"] for row in call("leaderboard", NEWEST, "--json").json["rows"]
    }
    assert rows == {"A": 1, "B": 0}


def test_every_value_that_cannot_be_read_is_counted_the_most_frequent_first(
    call: CallCommand, tmp_path: Path
) -> None:
    winners = ["не знаю", "первее", "первее", "0", "первее", "0", "first", *"klmnopqrstuv"]
    write_votes(tmp_path / "votes.csv", winners + ["first"] * 20)
    out = call("import", "votes.csv", "--kind", "votes").out
    assert '18 x schema, for instance: winner "не знаю" is none of first, second, tie' in out
    lines = " ".join(out.split())
    assert 'cannot be read: "первее" 3, "0" 2, "не знаю" 1, "k" 1,' in lines
    assert "and 3 more; say what they mean" in lines


def test_of_a_file_that_cannot_be_read_at_all_the_values_are_told(
    call: CallCommand, tmp_path: Path
) -> None:
    write_votes(tmp_path / "votes.csv", ["links", "rechts", "links"])
    error = call("import", "votes.csv", "--kind", "votes").err
    assert "Unreadable are links 2, rechts 1" in " ".join(error.split())
