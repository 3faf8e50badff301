"""`evenhand import`, and the commands that read what came in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.data.write import write
from tests.unit.cli.conftest import NEWEST, CallCommand

VOTES = [
    {"unit": f"q{i}", "judge": "j", "first": a, "second": b, "winner": winner, "area": "x"}
    for i, winners in enumerate(("aa", "ab", "bb", "a?"))
    for (a, b), winner in zip(("ab", "ba"), winners, strict=True)
]
SCORES = [
    {"unit": f"q{i}", "judge": "j", "dimension": d, "score": i, "model": m}
    for i in range(3)
    for m in ("m1", "m2")
    for d in ("clear", "true")
]


@pytest.fixture
def votes(tmp_path: Path) -> str:
    write(tmp_path / "votes.csv.gz", VOTES)
    return "votes.csv.gz"


@pytest.fixture
def scores(tmp_path: Path) -> str:
    write(tmp_path / "scores.jsonl", SCORES)
    return "scores.jsonl"


def test_votes(call: CallCommand, votes: str) -> None:
    said = call("import", votes, "--kind", "votes", "--json")
    assert said.code == 0
    found = said.json
    assert found.pop("run") and found == {
        "name": "votes",
        "kind": "votes",
        "rows": 8,
        "units": 4,
        "judges": 1,
        "planned": 4,
        "verdicts": 3,
        "failures": {"schema": 1},
        "unreadable": {"?": 1},
        "pending": 0,
        "repeats": 1,
        "key": ["unit"],
        "columns": {},
        "meta_differs": {},
        "candidates": ["a", "b"],
        "criteria": [],
        "settled": {"stable": 2, "uncertain": 1},
        "on_conflict": "uncertain",
    }


def test_scores(call: CallCommand, scores: str) -> None:
    found = call("import", scores, "--kind", "scores", "--name", "mine", "--json").json
    assert (found["name"], found["units"], found["verdicts"]) == ("mine", 6, 6)
    assert found["key"] == ["unit", "model"] and found["dimensions"] == ["clear", "true"]


def test_what_people_read(call: CallCommand, votes: str, scores: str) -> None:
    said = call("import", votes, "--kind", "votes", "--on-conflict", "tie")
    assert "8 rows: 4 units, 1 judge" in said.out
    assert "3 verdicts + 1 failure = 4 judgments" in said.out
    assert '1 x schema: order 21: winner "?" is none of first, second, tie' in said.out
    assert 'cannot be read: "?" 1; say what they mean by --sql' in said.out
    assert "2 stable, 1 uncertain; a conflict counts as tie" in said.out
    assert "next: evenhand leaderboard" in said.out
    said = call("import", scores, "--kind", "scores")
    assert "units told apart by: unit, model" in said.out
    assert said.out.splitlines()[-1].endswith(" --by model")


def test_renamed_columns_and_a_judge_that_the_rows_do_not_name(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("q,one,two,verdict\nq1,a,b,a\n")
    moves = ("unit=q", "first=one", "second=two", "winner = verdict")
    flags = [part for move in moves for part in ("--map", move)]
    said = call("import", "t.csv", "--kind", "votes", *flags, "--judge", "me", "--json")
    assert said.json["verdicts"] == 1
    assert call("runs", "--json").json["runs"][0]["judges"] == ["me"]


def test_runs_show_and_export_know_an_imported_run(call: CallCommand, votes: str) -> None:
    run = call("import", votes, "--kind", "votes", "--json").json["run"]
    (row,) = call("runs", "--json").json["runs"]
    assert (row["run"], row["planned"], row["pending"], row["protocol"]) == (run, 4, 0, "votes")
    shown = call("show", run)
    assert "4 = 3 verdicts + 1 failure + 0 pending" in shown.out
    assert "votes.csv.gz" in shown.out and "failed: schema" in shown.out
    figures = call("show", run, "--json").json["pairwise"]
    assert figures["candidates"]["a"] == {"wins": 1, "losses": 1, "ties": 0, "uncertain": 1}
    unit = call("show", run, "q1", "--json").json
    assert unit["judgments"][0]["exchanges"] == [] and unit["unit"]["row"] == "q1"
    assert "uncertain" in call("show", run, "q1").out
    assert "order 12 says A" in " ".join(call("show", run, "q3").out.split())
    assert call("export", run, "-o", "out.jsonl").code == 0
    winners = [json.loads(line)["winner"] for line in Path("out.jsonl").read_text().splitlines()]
    assert winners == ["A", "uncertain", "B"]
    assert call("export", run, "-o", "table.txt").code == 0
    assert Path("table.txt").read_text().splitlines()[1].startswith("q0 | A")


def test_show_and_export_of_imported_scores(call: CallCommand, scores: str) -> None:
    run = call("import", scores, "--kind", "scores", "--json").json["run"]
    assert "clear" in call("show", run).out
    assert "clear" in call("show", run, "q1/m2").out
    assert "6 rows written" in call("export", run, "-o", "o.csv").err
    assert "is of pairs" in call("export", run, "-o", "o.txt").err


def test_there_is_nothing_to_settle(call: CallCommand, votes: str) -> None:
    run = call("import", votes, "--kind", "votes", "--json").json["run"]
    said = call("settle", run)
    assert said.code == 2 and "was imported" in said.err
    assert call("show", run, "--json").json["verdicts"] == 3


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nothing.csv", "--kind", "votes"], 2, "there is no file"),
        (["votes.csv.gz", "--kind", "votes", "--map", "unit"], 2, "NEW=OLD"),
        (["votes.csv.gz", "--kind", "vote"], 2, "vote"),
        (["votes.csv.gz"], 2, "--kind"),
        (["--kind", "votes"], 2, "FILE"),
        (["votes.csv.gz", "--kind", "scores"], 3, "--map score=COLUMN"),
        (["votes.csv.gz", "--kind", "votes", "--map", "winner=winer"], 3, 'did you mean "winner"?'),
        (["votes.csv.gz", "--kind", "arena-hard"], 3, "--map model=COLUMN"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_no_run(
    call: CallCommand, votes: str, arguments: list[str], code: int, words: str
) -> None:
    said = call("import", *arguments, "--store", "sqlite:s.db")
    assert (said.code, said.out) == (code, "") and words in said.err
    if Path("s.db").exists():
        assert call("runs", "--store", "sqlite:s.db", "--json").json == {"runs": []}


def test_a_table_that_mostly_cannot_be_read_is_doubted(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path / "v.csv", [*VOTES[:2], *(row | {"winner": "who knows"} for row in VOTES[2:])])
    said = call("import", "v.csv", "--kind", "votes", "--json")
    assert said.code == 0 and said.json["failures"] == {"schema": 3}
    assert "are --kind and --map right?" in said.err


def test_a_candidate_called_like_a_word_for_a_side_is_refused(
    call: CallCommand, tmp_path: Path
) -> None:
    write(tmp_path / "v.csv", [VOTES[0], VOTES[1] | {"second": "tie"}])
    said = call("import", "v.csv", "--kind", "votes")
    assert (said.code, said.out) == (3, "") and "rename the candidate" in said.err
    assert 'v.csv:3: the column "second" holds a candidate called "tie"' in said.err


def test_what_rows_of_one_unit_say_differently_is_told(call: CallCommand, tmp_path: Path) -> None:
    rows = [row | {"area": "xy"[i % 2]} for i, row in enumerate(VOTES)]
    write(tmp_path / "v.csv", rows)
    assert call("import", "v.csv", "--kind", "votes", "--json").json["meta_differs"] == {"area": 4}
    said = call("import", "v.csv", "--kind", "votes").out
    assert "area: taken from the first row of a unit, 4 rows differ" in said
    write(tmp_path / "v.csv", rows[:2])
    said = call("import", "v.csv", "--kind", "votes").out
    assert "area: taken from the first row of a unit, 1 row differs" in said


def test_of_many_columns_that_differ_some_are_told(call: CallCommand, tmp_path: Path) -> None:
    rows = [row | {f"c{k:02}": i for k in range(15)} for i, row in enumerate(VOTES[:2])]
    write(tmp_path / "v.csv", rows)
    said = call("import", "v.csv", "--kind", "votes").out
    assert "c11: taken" in said and "c12" not in said and "and 3 more such columns" in said


def test_one_candidate_is_no_plural(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path / "v.csv", [VOTES[0] | {"second": "a"}])
    assert "1 candidate: a" in call("import", "v.csv", "--kind", "votes").out


def test_progress_is_told_on_stderr(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.runs.imports.ROWS_A_NOTICE", 5)
    write(tmp_path / "s.csv", [{"unit": i, "judge": "j", "score": 1} for i in range(12)])
    said = call("import", "s.csv", "--kind", "scores", "--json")
    told = ["5 rows read", "10 rows read", "5 units written", "10 units written"]
    assert said.err.splitlines() == told and said.json["rows"] == 12


def test_many_judges_are_not_all_listed(call: CallCommand, tmp_path: Path) -> None:
    rows = [VOTES[0] | {"unit": f"q{i}", "judge": f"judge{i}"} for i in range(200)]
    write(tmp_path / "v.csv", rows)
    call("import", "v.csv", "--kind", "votes")
    shown = call("show", NEWEST).out
    assert "and 180 more" in shown and "judge199" not in shown


def test_what_was_judged_about_one_question_hangs_together_in_every_command(
    call: CallCommand, tmp_path: Path
) -> None:
    judged = ((i, model, judge) for i in range(6) for model in "abc" for judge in "xy")
    rows = [
        {"unit": f"q{i}", "model": m, "judge": j, "dimension": "d", "score": (7 * i + ord(m)) % 5}
        for i, m, j in judged
    ]
    write(tmp_path / "scores.csv", rows)
    call("import", "scores.csv", "--kind", "scores")
    (row,) = call("agreement", NEWEST, "--json").json["rows"]
    assert (row["units"], row["clusters"]) == (18, 6)
    gate = call("gate", NEWEST, "--min-mean", "0.1", "--json").json
    assert [(c["n"], c["clusters"]) for c in gate["conditions"]] == [(18, 6)]
    assert "over 18 units on 6 questions" in gate["reasons"][0]
    compared = call("compare", NEWEST, "--by", "model", "--json").json["rows"]
    assert {row["clusters"] for row in compared} == {6}


def test_votes_on_one_question_hang_together_whatever_their_units_are_called(
    call: CallCommand, tmp_path: Path
) -> None:
    def rows(question: str) -> list[dict[str, object]]:
        return [
            {"unit": f"u{i}", question: f"q{i % 6}", "judge": "x", "first": "a", "second": "b"}
            | {"winner": "first" if i % 6 < 3 else "second"}
            for i in range(24)
        ]

    widths = {}
    for name in ("question_id", "colour"):
        write(tmp_path / f"{name}.csv", rows(name))
        call("import", f"{name}.csv", "--kind", "votes")
        found = call("leaderboard", NEWEST, "--json").json
        widths[found["topics"]] = found["rows"][0]["high"] - found["rows"][0]["low"]
    assert set(widths) == {6, 24} and widths[6] > 1.5 * widths[24]
    call("import", "question_id.csv", "--kind", "votes")
    assert "24 votes on 6 topics" in call("leaderboard", NEWEST).out


def test_an_object_is_no_judge_but_a_name_in_it_may_be_one(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [
        {"unit": f"q{i}", "judge": {"seed": i, "model": "gpt"}, "first": "a", "second": "b"}
        | {"winner": "a"}
        for i in range(3)
    ]
    write(tmp_path / "votes.jsonl", rows)
    refused = call("import", "votes.jsonl", "--kind", "votes")
    assert refused.code == 3 and "--judge NAME" in refused.err
    named = call("import", "votes.jsonl", "--kind", "votes", "--map", "judge=judge.model", "--json")
    assert named.json["judges"] == 1


def test_a_file_of_which_nothing_can_be_read_is_no_run(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path / "votes.csv", [row | {"winner": "??"} for row in VOTES])
    refused = call("import", "votes.csv", "--kind", "votes")
    assert refused.code == 3
    assert 'winner "??" is none of first, second, tie' in refused.err
    assert call("runs", "--json").json in ([], {"runs": []})
