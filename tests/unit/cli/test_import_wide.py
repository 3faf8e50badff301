"""Tables that have a column for each judge, dimension, order or score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.data.write import write
from tests.unit.cli.conftest import NEWEST, CallCommand


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
    assert call("agreement", NEWEST, "--json").json["rows"][0]["agreement"]["value"] == 0.5


def test_a_column_for_each_order_is_a_pass_each(call: CallCommand, tmp_path: Path) -> None:
    rows = [
        {"unit": "same", "judge": "j", "first": "x", "second": "y", "ab": "A", "ba": "B"},
        {"unit": "slot", "judge": "j", "first": "x", "second": "y", "ab": "A", "ba": "A"},
    ]
    write(tmp_path / "votes.csv", rows)
    found = call("import", "votes.csv", "--kind", "votes", "--wide", "pass=ab,ba", "--json").json
    assert found["settled"] == {"stable": 1, "uncertain": 1}
    assert call("leaderboard", NEWEST, "--json").json["consistency"] == 0.5


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
