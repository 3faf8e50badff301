"""What options of `evenhand import` do, alone and together, and what they leave as it was."""

from __future__ import annotations

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


def test_columns_that_an_option_names_are_no_judges(call: CallCommand, tmp_path: Path) -> None:
    rows = ("unit,part,ann,bob,temperature,top_p", "q1,0,3,4,1,0.5", "q1,1,4,4,1,0.5")
    (tmp_path / "s.csv").write_text("\n".join(rows))
    command = ("import", "s.csv", "--kind", "scores", "--json")
    options = (
        ("--key", "unit,part"),
        ("--where", "part=1"),
        ("--failed", "part"),
    )
    for option in options:
        assert call(*command, *option).json["wide"] == {"judge": ["ann", "bob"]}
    (tmp_path / "t.csv").write_text("unit,part,ann,cy\nq2,1,3,4\n")
    said = call("import", "s.csv", "t.csv", "--kind", "scores", "--key", "unit,part").err
    assert 'there is no column "bob", which the first file has as a judge' in said


def test_what_a_table_does_not_say_is_set(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("winner\n1\n2\n3\n")
    sides = ("--set", "first=old", "--set", "second=new", "--set", "unit={row}")
    told = call("import", "t.csv", "--kind", "votes", *sides, "--judge", "j", "--json").json
    assert (told["units"], told["verdicts"], told["candidates"]) == (3, 3, ["new", "old"])
    assert told["read_as"] == {"1": "first", "2": "second", "3": "tie"}


def test_only_some_rows_are_read(call: CallCommand, tmp_path: Path) -> None:
    rows = "unit,score,by,error\nq1,3,ann,\nq1,0,bob,timeout\nq2,4,ann,false\nq2,2,bob,\n"
    (tmp_path / "s.csv").write_text(rows)
    command = ("import", "s.csv", "--kind", "scores", "--map", "judge=by", "--json")
    found = call(*command, "--failed", "error").json
    assert (found["verdicts"], found["failures"]) == (3, {"empty": 1})
    only = call(*command, "--where", "by=bob", "--where", "by=cy", "--where", "error=").json
    assert (only["rows"], only["judges"]) == (1, 1)
    for wrong, what in (
        (("--where", "by=cy"), "no row has by=cy"),
        (("--where", "by"), "is not of the form COLUMN=VALUE"),
    ):
        said = call(*command[:4], *wrong, "--judge", "j")
        assert said.code != 0 and what in said.err


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
