"""`check` of pairs: verdict tables, and settled verdicts made elsewhere."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from evenhand.data.write import write, write_text
from evenhand.errors import DataError, UsageError
from evenhand.files.replies import Findings, check_file
from evenhand.kinds.pairwise.table import header, line
from tests.suites import CRITERIA, pair_reply, pairs, write_rows

HEADER = header(CRITERIA)
VERDICT: dict[str, Any] = {
    "pair_id": "p0",
    "candidates": ["c1", "c2"],
    "winner": "A",
    "settled": "stable",
    "rounds": 1,
    "criteria": dict.fromkeys(CRITERIA, "tie"),
    "unstable": ["C1"],
    "notes": "so it is",
    "meta": {},
}


def told(pair: str, winner: str = "A", mark: str = "A+") -> str:
    return line(pair, winner, [mark] * len(CRITERIA), "so")


def check(folder: Path, replies: str) -> Findings:
    write_rows(folder, pairs(3), "pairs.jsonl")
    return check_file("pairwise", "en", None, folder / "pairs.jsonl", folder / replies)


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "V.TXT.GZ"])
def test_a_table_that_was_written_is_read(tmp_path: Path, name: str) -> None:
    lines = [HEADER, *map(told, ("p0", "p1", "p2"))]
    assert write_text(tmp_path / name, lines) == 4
    found = check(tmp_path, name)
    assert (found.units, found.ok, found.problems) == (3, 3, [])
    if name.lower().endswith(".gz"):
        assert gzip.decompress((tmp_path / name).read_bytes()).decode().splitlines() == lines


def test_a_table_says_one_thing_of_a_pair(tmp_path: Path) -> None:
    lines = [HEADER, told("p0"), "", told("p1"), "", told("p0", "B", "B+")]
    write_text(tmp_path / "v.txt", lines)
    with pytest.raises(DataError) as caught:
        check(tmp_path, "v.txt")
    assert caught.value.where == f"{tmp_path / 'v.txt'}:6"
    assert caught.value.what == 'the pair "p0" has a line already, line 2'


def test_two_judges_may_each_say_something_of_a_pair(tmp_path: Path) -> None:
    by = [{"judge": "one", "repeat": 0}, {"judge": "one", "repeat": 1}]
    write_rows(tmp_path, [VERDICT | one for one in by], "v.jsonl")
    assert check(tmp_path, "v.jsonl").ok == 2


@pytest.mark.parametrize(
    ("lines", "where", "what"),
    [
        (["", HEADER, "", "", told("p9")], 5, 'there is no unit "p9"'),
        ([HEADER, "", "p0 | A | A+"], 3, "3 columns; the header has 8"),
        (["", "p0 | A"], 2, "no header; expected pair_id | winner | criteria | notes"),
    ],
)
def test_a_line_is_told_with_its_number_once(
    tmp_path: Path, lines: list[str], where: int, what: str
) -> None:
    write_text(tmp_path / "v.txt", lines)
    with pytest.raises(DataError) as caught:
        check(tmp_path, "v.txt")
    assert (caught.value.where, caught.value.what) == (f"{tmp_path / 'v.txt'}:{where}", what)


@pytest.mark.parametrize("cut", [0, 5, 40], ids=["plain", "no header", "cut off"])
def test_a_packed_table_that_cannot_be_unpacked_is_told(tmp_path: Path, cut: int) -> None:
    packed = gzip.compress("\n".join([HEADER, told("p0")]).encode())
    (tmp_path / "v.txt.gz").write_bytes(packed[:cut] or HEADER.encode())
    with pytest.raises(DataError, match="gzip data"):
        check(tmp_path, "v.txt.gz")


def test_a_missing_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        check(tmp_path, "v.txt")


def test_an_unknown_ending_tells_of_tables_too(tmp_path: Path) -> None:
    (tmp_path / "v.doc").touch()
    for use in (check, lambda folder, name: write(folder / name, [])):
        with pytest.raises(UsageError) as caught:
            use(tmp_path, "v.doc")
        assert ".jsonl" in caught.value.advice
        assert ".txt" in caught.value.advice


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"notes": 5}, "notes", "schema"),
        ({"criteria": dict.fromkeys(CRITERIA[1:], "tie")}, "criteria.C1", "schema"),
    ],
)
def test_a_settled_verdict_that_breaks_the_contract(
    tmp_path: Path, change: dict[str, Any], path: str, code: str
) -> None:
    write_rows(tmp_path, [VERDICT, VERDICT | change], "v.jsonl")
    found = check(tmp_path, "v.jsonl")
    assert (found.units, found.ok) == (2, 1)
    assert [(one["path"], one["code"]) for one in found.problems] == [(path, code)]
    assert found.problems[0]["message"].startswith(f"{path}: ")


@pytest.mark.parametrize(
    "change",
    [
        {"winner": "uncertain", "settled": "uncertain", "rounds": 3},
        {"settled": "resolved", "unstable": []},
        {"winner": "tie", "rounds": 0},
        {"settled": "one_order", "preference": 0.25},
        {"criteria": {}, "unstable": []},
    ],
)
def test_a_settled_verdict_that_keeps_it(tmp_path: Path, change: dict[str, Any]) -> None:
    write_rows(tmp_path, [VERDICT | change], "v.jsonl")
    assert check(tmp_path, "v.jsonl").problems == []


def test_flags_are_shown_and_a_line_is_taken_as_well(tmp_path: Path) -> None:
    replies = [pair_reply("A+", winner="B"), pair_reply("tie"), f"x | {told('p2')[5:]}"]
    rows = [{"unit": f"p{i}", "reply": reply} for i, reply in enumerate(replies)]
    write_rows(tmp_path, rows, "r.jsonl")
    found = check(tmp_path, "r.jsonl")
    assert (found.ok, found.problems, found.fixes) == (3, [], [])
    assert found.json()["flags"] == [{"unit": "p0", "flag": "self_contradiction"}]


def test_an_object_is_held_to_what_a_run_demands(tmp_path: Path) -> None:
    marks = {c: {"mark": "A+"} for c in CRITERIA}
    bare = {"criteria": marks, "explanation": "", "winner": "A"}
    write_rows(tmp_path, [{"unit": "p0", "reply": bare}], "r.jsonl")
    paths = [problem["path"] for problem in check(tmp_path, "r.jsonl").problems]
    assert paths[-1] == "explanation"
    assert set(paths[:-1]) == {
        f"criteria.{c}.{key}"
        for c in CRITERIA
        for key in ("first_meets", "second_meets", "comment")
    }


@pytest.mark.parametrize("language", ["ru", "zh", "ja"])
def test_messages_are_in_english_whatever_the_language(tmp_path: Path, language: str) -> None:
    spoilt = {"criteria": [], "explanation": 7, "winner": 1}
    write_rows(tmp_path, pairs(1), "pairs.jsonl")
    write_rows(tmp_path, [{"unit": "p0", "reply": spoilt}], "r.jsonl")
    found = check_file("pairwise", language, None, tmp_path / "pairs.jsonl", tmp_path / "r.jsonl")
    assert len(found.problems) == 3
    assert all(problem["message"].isascii() for problem in found.problems)
