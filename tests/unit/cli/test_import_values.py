"""What the cells of a table mean: winners and scores as others spell them, and what is said of
those that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    write_votes(tmp_path / "votes.csv", [*spellings, *spellings])
    said = call("import", "votes.csv", "--kind", "votes", *arguments)
    assert said.code == 0 and (f"{spellings[0]} as first (2)" in said.out) == (not arguments)
    row = call("leaderboard", NEWEST, "--json").json["rows"][0]
    assert (row["wins"], row["losses"], row["ties"]) == (2, 2, 2)


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
    rows_shown = call("leaderboard", NEWEST, "--json").json["rows"]
    assert {row["candidate"]: row["wins"] for row in rows_shown}["x"] == wins


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


def test_every_value_that_cannot_be_read_is_counted_the_most_frequent_first(
    call: CallCommand, tmp_path: Path
) -> None:
    winners = ["не знаю", "первее", "первее", "0", "первее", "0", "first", *"klmnopqrstuv"]
    write_votes(tmp_path / "votes.csv", winners + ["first"] * 20)
    out = call("import", "votes.csv", "--kind", "votes").out
    assert '18 x schema, for instance: winner "не знаю" is none of first, second, tie' in out
    lines = " ".join(out.split())
    assert 'cannot be read: "первее" 3, "0" 2, "не знаю" 1, "k" 1,' in lines
    assert "and 3 more say what they mean" in lines
    assert '--value "winner:первее=first|second|tie,..."' in lines


def test_of_a_file_that_cannot_be_read_at_all_the_values_are_told(
    call: CallCommand, tmp_path: Path
) -> None:
    write_votes(tmp_path / "votes.csv", ["links", "rechts", "links"])
    error = call("import", "votes.csv", "--kind", "votes").err
    assert "Unreadable are links 2, rechts 1" in " ".join(error.split())


def test_what_is_read_as_usual_is_told_whole(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    winners = ["[[A]]", "A>B", "B>>A", "left", "right", "both bad", "model_a", "2"]
    write_votes(tmp_path / "votes.csv", winners)
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
    call("export", NEWEST, "-o", "out.jsonl")
    texts = (tmp_path / "out.jsonl").read_text().splitlines()
    scores = [json.loads(text)["scores"]["Wahrheit"]["score"] for text in texts]
    assert scores == [4.5, 4, 3.25]
