"""What options of `evenhand import` do together, and what they leave as it was."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import CallCommand


def test_a_table_without_further_options_is_the_run_that_it_always_was(
    call: CallCommand, tmp_path: Path
) -> None:
    """The ids were computed before there were `--where`, `--failed`, `--join`, `--voters` and
    `--votes-from-scores`: a store made then is not called altered."""
    lines = ("unit,judge,first,second,winner", "q1,a,old,new,new", "q2,a,new,old,tie", "")
    (tmp_path / "votes.csv").write_text("\n".join(lines))
    command = ("import", "votes.csv", "--kind", "votes", "--json")
    assert call(*command).json["run"] == "4bdbbf772f3e"
    assert call(*command, "--on-conflict", "tie").json["run"] == "a7149d0be134"
    others = ("--where", "unit=q1"), ("--voters", "v")
    runs = {call(*command, *other).json["run"] for other in others}
    assert len(runs) == 2 and not runs & {"4bdbbf772f3e", "a7149d0be134"}


def test_scores_become_votes_within_what_tells_units_apart(
    call: CallCommand, tmp_path: Path
) -> None:
    header = "unit,turn,judge,model,score,serial"
    rows = ("q1,1,j,a,4", "q1,2,j,a,1", "q1,2,j,b,2", "q1,1,j,b,5", "q2,1,j,a,3")
    (tmp_path / "s.csv").write_text("\n".join([header, *(f"{row},{10**20}" for row in rows)]))
    command = ("import", "s.csv", "--kind", "scores", "--votes-from-scores", "model")
    found = call(*command, "--json").json
    assert (found["key"], found["units"], found["verdicts"]) == (["unit", "turn"], 2, 2)
    assert found["unmatched_scores"] == 1
    assert "1 score met no other: no vote" in call(*command).out
    board = call("leaderboard", "--json").json
    assert {row["candidate"]: row["wins"] for row in board["rows"]} == {"a": 0, "b": 2}
    assert found["run"] != call(*command, "--key", "unit", "--json").json["run"]


def test_a_column_that_goes_along_with_who_was_scored_keeps_no_scores_apart(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = ("unit,judge,model,system,score,size", "q,j,m1,s1,1,7", "q,j,m2,s2,2,8")
    (tmp_path / "s.csv").write_text("\n".join(rows))
    (tmp_path / "w.jsonl").write_text(
        '{"unit": "q", "judge": "j", "model": "a", "score": 1, "n": 123456789012345678901}\n'
        '{"unit": "q", "judge": "j", "model": "b", "score": 1.50, "n": 123456789012345678902}\n'
    )
    for file, column in (("s.csv", "system"), ("s.csv", "size"), ("w.jsonl", "model")):
        command = ("import", file, "--kind", "scores", "--votes-from-scores", column, "--json")
        found = call(*command).json
        assert (found["verdicts"], found["key"]) == (1, ["unit"])


def test_the_winner_of_several_dimensions_follows_from_the_marks(
    call: CallCommand, tmp_path: Path
) -> None:
    def rows(unit: str, scores: str) -> list[str]:
        cells = zip(("a,clear", "a,true", "b,clear", "b,true"), scores.split(","), strict=True)
        return [f"{unit},j,{named},{score}" for named, score in cells]

    lines = ["unit,judge,model,dimension,score", *rows("q1", "5,1,4,2"), *rows("q2", "5,2,4,2")]
    (tmp_path / "s.csv").write_text(
        "\n".join([*lines, *rows("q3", "3,,4,2"), *rows("q4", ",,1,1")])
    )
    command = ("import", "s.csv", "--kind", "scores", "--votes-from-scores", "model", "--json")
    assert (found := call(*command).json)["failures"] == {"empty": 1} and found["verdicts"] == 3
    call("export", "latest", "-o", "e.jsonl")
    verdicts = map(json.loads, (tmp_path / "e.jsonl").read_text().splitlines())
    assert [verdict["winner"] for verdict in verdicts] == ["tie", "A", "B"]
    assert "marks_missing" in call("show", "latest").out
