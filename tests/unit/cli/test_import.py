"""`evenhand import`, and the commands that read what came in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evenhand.data.write import write
from tests.unit.cli.conftest import CallCommand

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
    assert 'cannot be read: "?" 1\n' in said.out
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
    assert "order 12 says A" in call("show", run, "q3").out
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
        (["votes.csv.gz", "--kind", "votes", "--key", "aera"], 3, 'did you mean "area"?'),
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
    write(tmp_path / "v.csv", [VOTES[0] | {"second": "a"}, VOTES[2]])
    call("import", "v.csv", "--kind", "votes")
    board = call("leaderboard").out
    assert "1 vote on a candidate against itself is left out." in board and "1 votes" not in board
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
    shown = call("show").out
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
    (row,) = call("agreement", "--json").json["rows"]
    assert (row["units"], row["clusters"]) == (18, 6)
    gate = call("gate", "--min-mean", "0.1", "--json").json
    assert [(c["n"], c["clusters"]) for c in gate["conditions"]] == [(18, 6)]
    assert "over 18 units on 6 questions" in gate["reasons"][0]
    compared = call("compare", "--by", "model", "--json").json["rows"]
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
        found = call("leaderboard", "--json").json
        widths[found["topics"]] = found["rows"][0]["high"] - found["rows"][0]["low"]
    assert set(widths) == {6, 24} and widths[6] > 1.5 * widths[24]
    call("import", "question_id.csv", "--kind", "votes")
    assert "24 votes on 6 topics" in call("leaderboard").out


def test_an_object_names_its_judge_and_is_not_another_one_in_every_row(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [
        {"unit": f"q{i}", "judge": {"seed": i, "model": "gpt"}, "first": "a", "second": "b"}
        | {"winner": "a"}
        for i in range(3)
    ]
    write(tmp_path / "votes.jsonl", rows)
    assert call("import", "votes.jsonl", "--kind", "votes", "--json").json["judges"] == 1
    write(tmp_path / "nobody.jsonl", [row | {"judge": {"seed": 1}} for row in rows])
    refused = call("import", "nobody.jsonl", "--kind", "votes")
    assert refused.code == 3 and "--judge NAME" in refused.err


def test_a_file_of_which_nothing_can_be_read_is_no_run(call: CallCommand, tmp_path: Path) -> None:
    write(tmp_path / "votes.csv", [row | {"winner": "??"} for row in VOTES])
    refused = call("import", "votes.csv", "--kind", "votes")
    assert refused.code == 3
    assert 'winner "??" is none of first, second, tie' in refused.err
    assert call("runs", "--json").json in ([], {"runs": []})


@pytest.mark.parametrize(
    ("spellings", "arguments"),
    [
        (("A", "B", "C"), ()),
        (("1", "2", "3"), ()),
        (("model_a", "model_b", "tie (bothbad)"), ()),
        (("left", "Right", "both bad"), ()),
        (("A>B", "B>>A", "A=B"), ()),
        (("[[A]]", "[[B]]", "[[C]]"), ()),
        (("левый", "правый", "="), ()),
        (("Первый", "второй", "ничья"), ()),
        (("左", "右", "平局"), ()),
        (("第一", "第二", "一样"), ()),
        (("前者", "後者", "引き分け"), ()),
        (("回答A", "回答B", "同じ"), ()),
        (("links", "rechts", "-"), ("--value", "winner:links=first,rechts=second,-=tie")),
        (("0", "1", "2"), ("--value", "winner:0=first,1=second", "--value", "winner:2=tie")),
    ],
)
def test_who_won_is_read_as_others_spell_it(
    call: CallCommand, tmp_path: Path, spellings: tuple[str, ...], arguments: tuple[str, ...]
) -> None:
    rows = [
        {"unit": f"q{i}", "judge": "j", "first": "x", "second": "y", "winner": spellings[i % 3]}
        for i in range(6)
    ]
    write(tmp_path / "votes.csv", rows)
    said = call("import", "votes.csv", "--kind", "votes", *arguments)
    assert said.code == 0 and (f"{spellings[0]} as first (2)" in said.out) == (not arguments)
    row = call("leaderboard", "--json").json["rows"][0]
    assert (row["wins"], row["losses"], row["ties"]) == (2, 2, 2)


def test_the_name_of_a_candidate_goes_before_what_a_word_usually_means(
    call: CallCommand, tmp_path: Path
) -> None:
    row = {"unit": "q", "judge": "j", "first": "B", "second": "A", "winner": "A"}
    write(tmp_path / "votes.csv", [row])
    call("import", "votes.csv", "--kind", "votes")
    rows = {row["candidate"]: row["wins"] for row in call("leaderboard", "--json").json["rows"]}
    assert rows == {"A": 1, "B": 0}


def test_scores_in_words_and_what_stands_for_none(call: CallCommand, tmp_path: Path) -> None:
    words = ["true", "FAIL", "yes", "B", "-1", "3"]
    rows = [
        {"unit": f"q{i}", "judge": "j", "dimension": "d", "score": word}
        for i, word in enumerate(words)
    ]
    write(tmp_path / "scores.csv", rows)
    found = call("import", "scores.csv", "--kind", "scores", "--missing", "-1.0", "--json").json
    assert found["failures"] == {"empty": 1} and found["verdicts"] == 5
    assert found["read_as"] == {"true": "1", "FAIL": "0", "yes": "1", "B": "4"}


def test_columns_that_should_be_rows(call: CallCommand, tmp_path: Path) -> None:
    rows = [{"unit": f"q{i}", "model": "m", "clear": 20 * i, "correct": 5 - i} for i in range(4)]
    write(tmp_path / "wide.csv", rows)
    asked = ("import", "wide.csv", "--kind", "scores", "--judge", "ann")
    refused = call(*asked)
    assert refused.code == 3 and "--wide dimension=clear,correct" in refused.err
    found = call(*asked, "--wide", "dimension=clear,correct", "--json").json
    assert (found["units"], found["dimensions"]) == (4, ["clear", "correct"])
    votes = [
        {"unit": f"q{i}", "first": "x", "second": "y", "ann": "A", "bob": "AB"[i % 2]}
        for i in range(4)
    ]
    write(tmp_path / "votes.csv", votes)
    found = call("import", "votes.csv", "--kind", "votes", "--wide", "judge=ann,bob", "--json").json
    assert (found["judges"], found["verdicts"]) == (2, 8)
    assert call("agreement", "--json").json["rows"][0]["agreement"]["value"] == 0.5


def test_a_column_for_each_order_is_a_pass_each(call: CallCommand, tmp_path: Path) -> None:
    rows = [
        {"unit": "same", "judge": "j", "first": "x", "second": "y", "ab": "A", "ba": "B"},
        {"unit": "slot", "judge": "j", "first": "x", "second": "y", "ab": "A", "ba": "A"},
    ]
    write(tmp_path / "votes.csv", rows)
    found = call("import", "votes.csv", "--kind", "votes", "--wide", "pass=ab,ba", "--json").json
    assert found["settled"] == {"stable": 1, "uncertain": 1}
    assert call("leaderboard", "--json").json["consistency"] == 0.5


@pytest.mark.parametrize(
    ("rule", "settled", "wins"),
    [
        ("fail", {"stable": 1}, 1),
        ("tie", {"stable": 1, "uncertain": 1}, 1),
        ("other", {"stable": 1, "one_order": 1}, 2),
    ],
)
def test_an_order_that_cannot_be_read_comes_to_what_the_rule_says(
    call: CallCommand, tmp_path: Path, rule: str, settled: dict[str, int], wins: int
) -> None:
    rows = [
        {"unit": unit, "judge": "j", "first": first, "second": second, "winner": winner}
        for unit, winners in (("fine", "xx"), ("half", "x?"))
        for (first, second), winner in zip(("xy", "yx"), winners, strict=True)
    ]
    write(tmp_path / "votes.csv", rows)
    asked = ("import", "votes.csv", "--kind", "votes", "--on-unreadable", rule, "--json")
    assert call(*asked).json["settled"] == settled
    rows_shown = call("leaderboard", "--json").json["rows"]
    assert {row["candidate"]: row["wins"] for row in rows_shown}["x"] == wins


@pytest.mark.parametrize(
    "arguments",
    [
        ("--value", "winner"),
        ("--value", "winner:A"),
        ("--value", "winer:A=first"),
        ("--wide", "judge"),
        ("--wide", "pass=a,b,c"),
        ("--wide", "judge=ann,nobody"),
    ],
)
def test_what_cannot_be_meant_by_a_table_is_told(
    call: CallCommand, votes: str, arguments: tuple[str, str]
) -> None:
    refused = call("import", votes, "--kind", "votes", *arguments)
    assert refused.code in (2, 3) and refused.err and not refused.out


def test_letters_that_are_not_all_grades_are_not_guessed_at(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [
        {"unit": f"q{i}", "judge": "j", "dimension": "d", "score": "CI"[i % 2]} for i in range(4)
    ]
    write(tmp_path / "scores.csv", rows)
    refused = call("import", "scores.csv", "--kind", "scores")
    assert refused.code == 3 and "--value score:C=1,I=0" in refused.err
    asked = ("import", "scores.csv", "--kind", "scores", "--value", "score:C=1,I=0", "--json")
    assert call(*asked).json["verdicts"] == 4


def _written_votes(path: Path, winners: list[str]) -> None:
    write(
        path,
        [
            {"unit": f"q{i}", "judge": "j", "first": "x", "second": "y", "winner": winner}
            for i, winner in enumerate(winners)
        ],
    )


def test_every_value_that_cannot_be_read_is_counted_the_most_frequent_first(
    call: CallCommand, tmp_path: Path
) -> None:
    winners = ["не знаю", "первее", "первее", "0", "первее", "0", "first", *"klmnopqrstuv"]
    _written_votes(tmp_path / "votes.csv", winners + ["first"] * 20)
    out = call("import", "votes.csv", "--kind", "votes").out
    assert '18 x schema, for instance: winner "не знаю" is none of first, second, tie' in out
    lines = " ".join(out.split())
    assert 'cannot be read: "первее" 3, "0" 2, "не знаю" 1, "k" 1,' in lines
    assert "and 3 more say what they mean" in lines
    assert '--value "winner:первее=first|second|tie,..."' in lines


def test_of_a_file_that_cannot_be_read_at_all_the_values_are_told(
    call: CallCommand, tmp_path: Path
) -> None:
    _written_votes(tmp_path / "votes.csv", ["links", "rechts", "links"])
    error = call("import", "votes.csv", "--kind", "votes").err
    assert "Unreadable are links 2, rechts 1" in " ".join(error.split())


def test_what_is_read_as_usual_is_told_whole(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    winners = ["[[A]]", "A>B", "B>>A", "left", "right", "both bad", "model_a", "2"]
    _written_votes(tmp_path / "votes.csv", winners)
    out = call("import", "votes.csv", "--kind", "votes").out
    assert "…" not in out and max(map(len, out.splitlines())) <= 80
    assert "model_a as first (1), 2 as second (1) (else: --value)" in " ".join(out.split())


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_decimal_comma_is_read_where_no_comma_separates_cells(
    call: CallCommand, tmp_path: Path, separator: str
) -> None:
    rows = ("unit;Wahrheit;Stil;Preis", "a;4,5;3,5;1,250", "b;4;gut, fast;2,500", "c;3,25;2;3")
    (tmp_path / "sc.csv").write_text("\n".join(rows).replace(";", separator) + "\n")
    wide = "dimension=Wahrheit,Stil,Preis"
    said = call("import", "sc.csv", "--kind", "scores", "--wide", wide, "--judge", "j")
    lines = " ".join(said.out.split())
    # A column with any other comma is not guessed at, nor one whose commas may part thousands.
    assert "missing or unreadable in judgments that have others: " in lines
    assert "Stil 2" in lines and "Preis 2" in lines and "Wahrheit 1" not in lines
    assert 'cannot be read: "3,5" 1, "1,250" 1, "gut, fast" 1, "2,500" 1' in lines
    assert "--value" not in lines, "it takes no value with a comma"
    call("export", "latest", "-o", "out.jsonl")
    texts = (tmp_path / "out.jsonl").read_text().splitlines()
    scores = [json.loads(text)["scores"]["Wahrheit"]["score"] for text in texts]
    assert scores == [4.5, 4, 3.25]


def test_what_a_table_does_not_say_is_set(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("winner\n1\n2\n3\n")
    sides = ("--set", "first=old", "--set", "second=new", "--set", "unit={row}")
    told = call("import", "t.csv", "--kind", "votes", *sides, "--judge", "j", "--json").json
    assert (told["units"], told["verdicts"], told["candidates"]) == (3, 3, ["new", "old"])
    assert told["read_as"] == {"1": "first", "2": "second", "3": "tie"}


def test_wide_columns_may_have_dots_and_stand_in_objects(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("unit,gpt-4.1,gpt-4.1-mini\na,1,2\nb,3,-1\n")
    wide = ("--wide", "judge=gpt-4.1,gpt-4.1-mini", "--missing", "-1")
    told = call("import", "t.csv", "--kind", "scores", *wide, "--json").json
    assert (told["judges"], told["verdicts"], told["failures"]) == (2, 3, {"empty": 1})
    assert told["meta_differs"] == {} and told["key"] == ["unit"]
    (tmp_path / "o.jsonl").write_text('{"unit":"a","human":{"clear":4,"true":5},"x":{"y":1}}\n')
    wide = ("--wide", "dimension=human.clear,human.true", "--judge", "people")
    told = call("import", "o.jsonl", "--kind", "scores", *wide, "--json").json
    assert told["dimensions"] == ["human.clear", "human.true"] and told["verdicts"] == 1


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
    assert call("show", "--where", "area=prose", "--json").json["verdicts"] == 2
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
    shown = call("show", "--json").json
    assert shown["judges"] == ["voter 1", "voter 2", "voter 3"] and shown["verdicts"] == 4
    assert shown["pairwise"]["settled"] == {"one_order": 4}
    (tmp_path / "s.csv").write_text("unit,judge,score\nq,j,1\n")
    assert (
        "--voters is for votes" in call("import", "s.csv", "--kind", "scores", "--voters", "v").err
    )


def test_columns_that_plainly_are_judges_or_dimensions_are_known_and_told(
    call: CallCommand, tmp_path: Path
) -> None:
    header = "unit,model,turn,length,ann,bob"
    (tmp_path / "s.csv").write_text(f"{header}\nq1,m,1,400,3,4\nq2,m,2,350,,5\nq3,m,1,9,-1,1\n")
    command = ("import", "s.csv", "--kind", "scores")
    found = call(*command, "--missing", "-1", "--json").json
    assert found["wide"] == {"judge": ["ann", "bob"]} and found["failures"] == {"empty": 2}
    said = call(*command, "--judge", "gpt").out
    assert "a column per dimension: ann, bob (else: --wide)" in said
    (tmp_path / "v.csv").write_text("unit,first,second,ann,bob,n\nq1,x,y,A,y,1\nq2,x,y,tie,,2\n")
    votes = call("import", "v.csv", "--kind", "votes", "--json").json
    assert votes["wide"] == {"judge": ["ann", "bob"]} and votes["verdicts"] == 3


@pytest.mark.parametrize(
    ("table", "kind", "missing"),
    [
        ("unit,judge,ann\nq,j,3\n", "scores", "score"),
        ("unit,judge,a,b\nq,j,300,4\n", "scores", "score"),
        ("unit,judge,turn,length\nq,j,1,2\n", "scores", "score"),
        ("unit,first,second,judge,ab,ba\nq,a,b,j,A,B\n", "votes", "winner"),
        ("unit,first,second,x,y\nq,a,b,1,2\n", "votes", "judge"),
    ],
)
def test_columns_that_may_be_anything_are_not_guessed_at(
    call: CallCommand, tmp_path: Path, table: str, kind: str, missing: str
) -> None:
    (tmp_path / "t.csv").write_text(table)
    said = call("import", "t.csv", "--kind", kind)
    assert said.code == 3 and f'there is no column "{missing}"' in said.err


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
    board = call("leaderboard", "--json").json
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
    rows = call("leaderboard", "--json").json["rows"]
    assert [(row["wins"], row["ties"]) for row in rows] == [(1, 1), (1, 1)]


def test_a_file_per_judge_names_its_judge_and_judges_may_be_peers(
    call: CallCommand, tmp_path: Path
) -> None:
    for name, winner in (("a", "a"), ("b", "tie"), ("c", "b")):
        (tmp_path / f"{name}.csv").write_text(f"unit,first,second,winner\nq,a,b,{winner}\n")
    files = [f"{name}.csv" for name in "abc"]
    call("import", *files, "--kind", "votes", "--set", "judge={file}")
    board = call("leaderboard", "--peer-weights", "--outright", "--json").json
    assert list(board["judge_weights"]) == ["a", "b"]
    for low, high in board["judge_weight_intervals"].values():
        assert 0 <= low < 0.1 and 0.9 < high <= 1
    assert any("no weight among peers: c" in note for note in board["notes"])
    won = {row["candidate"]: row["outright"] for row in board["rows"]}
    assert won == pytest.approx({"a": 1 / 3, "b": 1 / 3})
    shown = call("leaderboard", "--peer-weights", "--outright").out
    assert "won outright, %" in shown and "by peers, %" in shown
    assert re.search(r"weights +a 1\.00 \[0\.02, 1\.00\], b 0\.00", shown)
    of_one = call("leaderboard", "--peer-weights", "--judge", "c")
    assert of_one.code == 2 and "The judges are c, the candidates a, b" in of_one.err
    call("import", "c.csv", "--kind", "votes", "--judge", "people")
    assert "no judge is a candidate" in call("leaderboard", "--peer-weights").err


def test_log_probabilities_come_to_the_expected_score(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "unit,logprob_1,logprob_5\na,-0.6931471805599453,-0.6931471805599453\nb,,-1\n"
    )
    wide = ("--wide", "expected=logprob_1,logprob_5", "--judge", "j")
    told = call("import", "t.csv", "--kind", "scores", *wide, "--json").json
    assert (told["verdicts"], told["failures"]) == (1, {"empty": 1})
    compared = call("export", told["run"], "--full", "-o", "all.jsonl")
    assert compared.code == 0
    verdicts = [
        json.loads(line)["output"] for line in (tmp_path / "all.jsonl").read_text().splitlines()
    ]
    assert [v["scores"]["score"]["score"] for v in verdicts if v] == [pytest.approx(3)]


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
