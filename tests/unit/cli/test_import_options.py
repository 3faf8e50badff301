"""What options of `evenhand import` do, alone and together, and what they leave as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evenhand.data.write import write
from evenhand.runs.imports import VERSION
from tests.unit.cli.conftest import NEWEST, CallCommand


def test_the_same_options_make_the_same_run_and_others_make_another(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs also say by which version of the reader their rows were read."""
    lines = ("unit,judge,first,second,winner", "q1,a,old,new,new", "q2,a,new,old,tie", "")
    (tmp_path / "votes.csv").write_text("\n".join(lines))
    command = ("import", "votes.csv", "--kind", "votes", "--json")
    options = (), ("--on-conflict", "tie"), ("--where", "unit=q1"), ("--voters", "v")
    runs = [call(*command, *option).json["run"] for option in options]
    assert len(set(runs)) == len(options)
    assert call(*command).json["run"] == runs[0]
    monkeypatch.setattr("evenhand.runs.imports.VERSION", VERSION + 1)
    assert call(*command).json["run"] not in runs
    assert call("store", "verify").code == 0


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
    board = call("leaderboard", NEWEST, "--json").json
    assert {row["candidate"]: row["wins"] for row in board["rows"]} == {"a": 0, "b": 2}
    assert found["run"] != call(*command, "--key", "unit", "--json").json["run"]


def test_repeats_meet_by_the_column_that_tells_them_apart(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = ("unit,seed,judge,model,score", "q,1,j,a,4", "q,2,j,a,1", "q,2,j,b,2", "q,1,j,b,5")
    (tmp_path / "s.csv").write_text("\n".join(rows))
    command = ("import", "s.csv", "--kind", "scores", "--votes-from-scores", "model", "--json")
    found = call(*command).json
    assert (found["units"], found["verdicts"], found["repeats"]) == (1, 2, 2)
    board = call("leaderboard", NEWEST, "--json").json
    assert {row["candidate"]: row["wins"] for row in board["rows"]} == {"a": 0, "b": 1}


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
    call("export", NEWEST, "-o", "e.jsonl")
    verdicts = map(json.loads, (tmp_path / "e.jsonl").read_text().splitlines())
    assert [verdict["winner"] for verdict in verdicts] == ["tie", "A", "B"]
    assert "marks_missing" in call("show", NEWEST).out


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("fastchat", {"question_id": 1, "model_1": "a", "model_2": "b", "g1_winner": "model_1"}),
        ("fastchat", {"question_id": 1, "model_a": "a", "model_b": "b", "winner": "model_a"}),
        ("fastchat", {"question_id": 1, "model": "a", "score": 3}),
        ("arena-hard", {"question_id": 1, "model": "m", "games": [{"score": "A>B"}]}),
        ("alpacaeval", {"index": 1, "generator_1": "a", "generator_2": "b", "preference": 1}),
        ("votes", {"unit": 1, "judge": "j", "first": "a", "second": "b", "winner": "a"}),
    ],
)
def test_a_mark_of_failure_goes_before_what_a_row_says_in_every_layout(
    call: CallCommand, tmp_path: Path, kind: str, row: dict[str, object]
) -> None:
    name = next(name for name in ("index", "unit", "question_id") if name in row)
    rows = [row | {"err": ""}, row | {"err": "timeout", name: 2}, row | {"err": "[]", name: 3}]
    write(tmp_path / "t.jsonl", rows)
    found = call("import", "t.jsonl", "--kind", kind, "--failed", "err", "--json").json
    assert (found["verdicts"], found["failures"]) == (2, {"empty": 1})


def test_a_column_that_no_row_has_is_no_mark_of_failure(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("unit,judge,score,err\nq1,j,1,\nq2,j,2,no\n")
    command = ("import", "s.csv", "--kind", "scores")
    said = call(*command, "--failed", "error")
    assert said.code == 3 and 'no row has a column "error", which --failed names' in said.err
    assert '"unit", "judge", "score", "err"' in said.err
    assert '"unit", "judge", "score", "err"' in call(*command, "--where", "errr=x").err
    renamed = call(*command, "--map", "trouble=err", "--failed", "err", "--json")
    assert renamed.json["verdicts"] == 2


def test_the_name_of_a_file_is_what_stands_before_its_endings(
    call: CallCommand, tmp_path: Path
) -> None:
    files = ("gpt-4.1.csv", "gpt-4.5.csv", ".hidden.csv")
    for file in files:
        (tmp_path / file).write_text("unit,score\nq1,1\n")
    call("import", *files, "--kind", "scores", "--set", "judge={file}")
    assert call("show", NEWEST, "--json").json["judges"] == ["gpt-4.1", "gpt-4.5", ".hidden"]


def test_rows_are_chosen_by_what_a_second_table_says(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("unit,judge,score\nq1,j,1\nq2,j,2\nq3,j,3\n")
    (tmp_path / "areas.csv").write_text("unit,area\nq1,code\nq2,prose\n")
    command = ("import", "s.csv", "--kind", "scores", "--join", "areas.csv")
    found = call(*command, "--json").json
    assert found["joined"] == {"by": ["unit"], "matched": 2, "rows": 3}
    assert "joined by unit: 2 of 3 rows have a counterpart" in call(*command).out
    assert found["run"] == call(*command, "--json").json["run"]
    only = call(*command, "--where", "area=code", "--json").json
    assert only["rows"] == only["joined"]["rows"] == only["joined"]["matched"] == 1


def test_columns_that_an_option_names_are_no_judges(call: CallCommand, tmp_path: Path) -> None:
    rows = ("unit,part,ann,bob,temperature,top_p", "q1,0,3,4,1,0.5", "q1,1,4,4,1,0.5")
    (tmp_path / "s.csv").write_text("\n".join(rows))
    (tmp_path / "parts.csv").write_text("part,area\n0,code\n1,prose\n")
    command = ("import", "s.csv", "--kind", "scores", "--json")
    options = (
        ("--key", "unit,part"),
        ("--where", "part=1"),
        ("--join", "parts.csv"),
        ("--failed", "part"),
    )
    for option in options:
        assert call(*command, *option).json["wide"] == {"judge": ["ann", "bob"]}
    votes = call(*command, "--votes-from-scores", "part").json
    assert (votes["wide"], votes["candidates"]) == ({"judge": ["ann", "bob"]}, ["0", "1"])
    (tmp_path / "t.csv").write_text("unit,part,ann,cy\nq2,1,3,4\n")
    said = call("import", "s.csv", "t.csv", "--kind", "scores", "--key", "unit,part").err
    assert 'there is no column "bob", which the first file has as a judge' in said


def test_what_a_table_does_not_say_is_set(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("winner\n1\n2\n3\n")
    sides = ("--set", "first=old", "--set", "second=new", "--set", "unit={row}")
    told = call("import", "t.csv", "--kind", "votes", *sides, "--judge", "j", "--json").json
    assert (told["units"], told["verdicts"], told["candidates"]) == (3, 3, ["new", "old"])
    assert told["read_as"] == {"1": "first", "2": "second", "3": "tie"}


def test_only_some_rows_are_read_and_a_second_table_says_more_of_them(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = "unit,score,by,error\nq1,3,ann,\nq1,0,bob,timeout\nq2,4,ann,false\nq2,2,bob,\n"
    (tmp_path / "s.csv").write_text(rows)
    (tmp_path / "areas.csv").write_text("unit,area\nq1,code\nq2,prose\nq9,law\n")
    judge = ("--map", "judge=by")
    command = ("import", "s.csv", "--kind", "scores", *judge, "--join", "areas.csv", "--json")
    found = call(*command, "--failed", "error").json
    assert (found["verdicts"], found["failures"]) == (3, {"empty": 1})
    assert call("show", NEWEST, "--where", "area=prose", "--json").json["verdicts"] == 2
    only = call(*command, "--where", "by=bob", "--where", "by=cy", "--where", "error=").json
    assert (only["rows"], only["judges"]) == (1, 1)
    for wrong, what in (
        (("--where", "by=cy"), "no row has by=cy"),
        (("--where", "by"), "is not of the form COLUMN=VALUE"),
        (("--map", "id=unit", "--map", "unit=by"), "no row has a counterpart"),
    ):
        said = call(
            *command[:4],
            *judge[: 0 if "--map" in wrong else 2],
            *wrong,
            "--judge",
            "j",
            "--join",
            "areas.csv",
        )
        assert said.code != 0 and what in said.err
    (tmp_path / "areas.csv").write_text("unit,area\nq1,code\nq1,prose\n")
    assert "two rows have the same unit: q1" in call(*command).err
    (tmp_path / "areas.csv").write_text("id,area\nq1,code\n")
    assert "no column in common" in call(*command).err


def test_voters_that_nobody_tells_apart_are_numbered_on_each_pair(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = ["unit,judge,first,second,winner", "q1,ann,a,b,a", "q1,ann,b,a,b", "q1,bob,a,b,a"]
    (tmp_path / "v.csv").write_text("\n".join([*rows, "q2,bob,a,b,a"]))
    call("import", "v.csv", "--kind", "votes", "--voters", "voter")
    shown = call("show", NEWEST, "--json").json
    assert shown["judges"] == ["voter 1", "voter 2", "voter 3"] and shown["verdicts"] == 4
    assert shown["pairwise"]["settled"] == {"one_order": 4}
    (tmp_path / "s.csv").write_text("unit,judge,score\nq,j,1\n")
    assert (
        "--voters is for votes" in call("import", "s.csv", "--kind", "scores", "--voters", "v").err
    )


def test_scores_become_votes_between_those_who_were_scored(
    call: CallCommand, tmp_path: Path
) -> None:
    header = "unit,judge,model,dimension,score"
    q1 = ["q1,j,new,clear,4", "q1,j,old,clear,4", "q1,j,new,true,5", "q1,j,old,true,3"]
    q2 = ["q2,j,old,clear,2", "q2,j,new,clear,", "q2,k,new,clear,1", "q3,k,old,clear,1"]
    (tmp_path / "s.csv").write_text("\n".join([header, *q1, *q2]))
    command = ("import", "s.csv", "--kind", "scores", "--votes-from-scores")
    found = call(*command, "model", "--json").json
    assert (found["verdicts"], found["failures"], found["units"]) == (1, {"empty": 1}, 2)
    assert found["candidates"] == ["new", "old"] and found["criteria"] == ["clear", "true"]
    board = call("leaderboard", NEWEST, "--json").json
    assert {row["candidate"]: row["wins"] for row in board["rows"]} == {"new": 1, "old": 0}
    assert board["first_rounds"] == 0
    assert 'there is no "system"' in call(*command, "system").err
    assert "no judge scored two" in call(*command, "judge").err
    votes = ("import", "v.csv", "--kind", "votes", "--votes-from-scores", "model")
    (tmp_path / "v.csv").write_text("unit,judge,first,second,winner\nq,j,a,b,a\n")
    assert "these are votes already" in call(*votes).err


def test_vicunas_reviews_become_votes_as_their_scores_say(
    call: CallCommand, tmp_path: Path
) -> None:
    reviews = [
        {"question_id": i, "answer1_id": "a", "answer2_id": "b", "reviewer_id": 1, "score": score}
        for i, score in enumerate(([8, 9], [7, 7], [9.5, 3], [-1, -1]))
    ]
    write(tmp_path / "r.jsonl", reviews)
    found = call(
        "import", "r.jsonl", "--kind", "fastchat", "--votes-from-scores", "model", "--json"
    ).json
    assert (found["verdicts"], found["failures"]) == (3, {"empty": 1})
    rows = call("leaderboard", NEWEST, "--json").json["rows"]
    assert [(row["wins"], row["ties"]) for row in rows] == [(1, 1), (1, 1)]


def test_a_file_per_judge_names_its_judge_and_judges_may_be_peers(
    call: CallCommand, tmp_path: Path
) -> None:
    for name, winner in (("a", "a"), ("b", "tie"), ("c", "b")):
        (tmp_path / f"{name}.csv").write_text(f"unit,first,second,winner\nq,a,b,{winner}\n")
    files = [f"{name}.csv" for name in "abc"]
    call("import", *files, "--kind", "votes", "--set", "judge={file}")
    board = call("leaderboard", NEWEST, "--peer-weights", "--outright", "--json").json
    assert list(board["judge_weights"]) == ["a", "b"]
    for low, high in board["judge_weight_intervals"].values():
        assert 0 <= low < 0.1 and 0.9 < high <= 1
    assert any("no weight among peers: c" in note for note in board["notes"])
    won = {row["candidate"]: row["outright"] for row in board["rows"]}
    assert won == pytest.approx({"a": 1 / 3, "b": 1 / 3})
    shown = call("leaderboard", NEWEST, "--peer-weights", "--outright").out
    assert "won outright, %" in shown and "by peers, %" in shown
    assert re.search(r"weights +a 1\.00 \[0\.02, 1\.00\], b 0\.00", shown)
    of_one = call("leaderboard", NEWEST, "--peer-weights", "--judge", "c")
    assert of_one.code == 2 and "The judges are c, the candidates a, b" in of_one.err
    call("import", "c.csv", "--kind", "votes", "--judge", "people")
    assert "no judge is a candidate" in call("leaderboard", NEWEST, "--peer-weights").err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--set", "first"), "not of the form COLUMN=VALUE"),
        (("--wide", "expected=low,high"), "end with the score"),
    ],
)
def test_what_is_set_or_expected_wrongly_is_told(
    call: CallCommand, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    (tmp_path / "t.csv").write_text("unit,judge,score\na,j,1\n")
    refused = call("import", "t.csv", "--kind", "scores", *options)
    assert refused.code == 2 and says in refused.err
