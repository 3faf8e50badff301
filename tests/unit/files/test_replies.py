"""Replies from elsewhere checked against the contract, and verdict tables."""

from __future__ import annotations

import gzip
import json

import pytest

from evenhand.data.write import write, write_text
from evenhand.errors import DataError, UsageError
from evenhand.files.replies import check_file
from evenhand.kinds.pairwise.table import header, line
from tests.cases import cases
from tests.sentences import refused
from tests.suites import CRITERIA, pair_reply, pairs, write_rows
from tests.unit.kinds.material import META, RUBRIC_TEXT, SAMPLE, good

UNIT = {"question": SAMPLE.question, "model_output": SAMPLE.model_output}


META_TEXT = '{"run_id":"r1","model":"m-7","extra":{"t":1.50,"n":1e3},"question_id":"q"}'


BY_META = f'{{"meta":{META_TEXT},{json.dumps(UNIT)[1:]}'


OUTPUT = f'{{"meta":{META_TEXT},{json.dumps(good())[1:]}'


@pytest.fixture
def check(tmp_path):
    def checked(units, replies, **more):
        for name, rows in (("units", units), ("replies", replies)):
            lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
            (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (tmp_path / "rubric.json").write_text(RUBRIC_TEXT, encoding="utf-8")
        files = {name: tmp_path / f"{name}.jsonl" for name in ("units", "replies")}
        files["rubric"] = tmp_path / "rubric.json"
        return check_file(**{"protocol": "rubric", "language": "en"} | files | more)

    return checked


def test_raw_replies_are_held_to_the_contract(check):
    fenced = f"```json\n{json.dumps(good() | {'failure_tags': ['B', 'A']})}\n```"
    bad = json.dumps(good()).replace('"score": 5', '"score": 4')
    units = [UNIT | {"id": ident} for ident in ("a", "b", "c")]
    replies = [{"unit": "a", "reply": json.dumps(good())}, {"unit": "b", "reply": fenced}]
    found = check(units, [*replies, {"unit": "c", "reply": bad}])
    problem = {"unit": "c", "code": "out_of_range", "path": "scores.correct.score"}
    fixes = {"unwrapped": "", "tags": "failure_tags"}
    assert found.json() == {
        **{"units": 3, "ok": 2},
        "problems": [problem | {"message": found.problems[0]["message"]}],
        "fixes": [{"unit": "b", "code": code, "path": path} for code, path in fixes.items()],
        "flags": [],
    }


def test_output_objects_of_the_contract_are_matched_by_their_meta(check):
    found = check([BY_META], [OUTPUT], expose_meta=True)
    assert (found.units, found.ok, found.problems, found.fixes) == (1, 1, [], [])
    spelled = OUTPUT.replace("1.50", "1.5")
    assert [p["code"] for p in check([BY_META], [spelled], expose_meta=True).problems] == [
        "meta_changed"
    ]
    assert [fix["code"] for fix in check([BY_META], [spelled]).fixes] == ["meta"]


def test_an_output_object_is_matched_by_meta_even_where_the_unit_has_an_id_of_its_own(check):
    units = [f'{{"id":"own",{BY_META[1:]}', UNIT | {"id": "other", "meta": {"model": "else"}}]
    found = check(units, [OUTPUT.replace('"score": 5', '"score": 4')])
    assert [problem["unit"] for problem in found.problems] == ["own"]


def test_an_output_object_that_could_be_of_several_units_is_not_guessed_at(check):
    with refused(DataError, "files.several_units", '"r1/m-7/q"'):
        check([UNIT | {"id": n, "meta": {k: META[k] for k in META}} for n in "ab"], [OUTPUT])


def test_a_reply_may_be_given_as_an_object_and_with_how_it_ended(check):
    units = [UNIT | {"id": 1}]
    assert check(units, [{"unit": 1, "reply": good()}]).ok == 1
    found = check(units, [{"unit": "1", "reply": json.dumps(good()), "finish": "length"}])
    assert [problem["code"] for problem in found.problems] == ["truncated"]


def test_a_unit_is_checked_in_its_own_language_and_with_its_own_rubric(check):
    reply = good()
    del reply["scores"]["brief"]
    reply["scores"]["correct"] |= {"evidence": [], "rationale": "未找到相关证据"}
    rubric = json.loads(RUBRIC_TEXT)
    del rubric["dimensions"][1]
    unit = UNIT | {"id": "a", "rubric": rubric}
    replies = [{"unit": "a", "reply": json.dumps(reply)}]
    assert check([unit | {"language": "zh"}], replies, rubric=None).ok == 1
    assert check([unit], replies, language="zh").ok == 1
    assert [p["code"] for p in check([unit], replies).problems] == ["evidence_missing"]


@pytest.mark.parametrize(
    ("units", "replies", "where", "key"),
    [
        ([UNIT | {"id": "a"}], [{"unit": "z", "reply": ""}], "replies.jsonl:1", "files.no_unit"),
        ([UNIT | {"id": "a"}], [{"reply": ""}], "replies.jsonl:1", "files.reply_without_unit"),
        ([UNIT | {"id": "a"}], [{"x": 1}], "replies.jsonl:1", "files.no_reply"),
        ([UNIT | {"id": "a"}], [{"scores": {}, "meta": [1]}], "replies.jsonl:1", "kinds.no_meta"),
        ([UNIT, {"question": "x"}], [OUTPUT], "units.jsonl:2", "data.missing_in_row"),
        ([UNIT | {"id": "a"}] * 2, [OUTPUT], "units.jsonl:2", "files.two_units"),
    ],
)
def test_rows_that_cannot_be_checked_are_told_with_their_line(check, units, replies, where, key):
    with refused(DataError, key) as caught:
        check(units, replies)
    assert caught.value.where.endswith(where)


HEADER = header(CRITERIA)


VERDICT = {
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


def told(pair, winner="A", mark="A+"):
    return line(pair, winner, [mark] * len(CRITERIA), "so")


def check_pairs(folder, replies):
    write_rows(folder, pairs(3), "pairs.jsonl")
    return check_file("pairwise", "en", None, folder / "pairs.jsonl", folder / replies)


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "V.TXT.GZ"])
def test_a_table_that_was_written_is_read(tmp_path, name):
    lines = [HEADER, *map(told, ("p0", "p1", "p2"))]
    assert write_text(tmp_path / name, lines) == 4
    found = check_pairs(tmp_path, name)
    assert (found.units, found.ok, found.problems) == (3, 3, [])
    if name.lower().endswith(".gz"):
        assert gzip.decompress((tmp_path / name).read_bytes()).decode().splitlines() == lines


def test_a_table_says_one_thing_of_a_pair(tmp_path):
    lines = [HEADER, told("p0"), "", told("p1"), "", told("p0", "B", "B+")]
    write_text(tmp_path / "v.txt", lines)
    with refused(DataError, "files.pair_twice") as caught:
        check_pairs(tmp_path, "v.txt")
    assert caught.value.where == f"{tmp_path / 'v.txt'}:6"
    assert caught.value.what.values == {"pair": "p0", "first": 2}


def test_two_judges_may_each_say_something_of_a_pair(tmp_path):
    by = [{"judge": "one", "repeat": 0}, {"judge": "one", "repeat": 1}]
    write_rows(tmp_path, [VERDICT | one for one in by], "v.jsonl")
    assert check_pairs(tmp_path, "v.jsonl").ok == 2


@cases
def test_a_line_is_told_with_its_number_once(tmp_path, lines, where, key, says):
    write_text(tmp_path / "v.txt", lines)
    with refused(DataError, key, says) as caught:
        check_pairs(tmp_path, "v.txt")
    assert caught.value.where == f"{tmp_path / 'v.txt'}:{where}"


@pytest.mark.parametrize("cut", [0, 5, 40], ids=["plain", "no header", "cut off"])
def test_a_packed_table_that_cannot_be_unpacked_is_told(tmp_path, cut):
    packed = gzip.compress("\n".join([HEADER, told("p0")]).encode())
    (tmp_path / "v.txt.gz").write_bytes(packed[:cut] or HEADER.encode())
    with refused(DataError, "data.bad_gzip"):
        check_pairs(tmp_path, "v.txt.gz")


def test_an_unknown_ending_tells_of_tables_too(tmp_path):
    with refused(UsageError, "data.no_file"):
        check_pairs(tmp_path, "v.txt")
    (tmp_path / "v.doc").touch()
    for use in (check_pairs, lambda folder, name: write(folder / name, [])):
        with pytest.raises(UsageError) as caught:
            use(tmp_path, "v.doc")
        assert ".jsonl" in caught.value.advice and ".txt" in caught.value.advice


@cases
def test_a_settled_verdict_that_breaks_the_contract(tmp_path, change, path, code):
    write_rows(tmp_path, [VERDICT, VERDICT | change], "v.jsonl")
    found = check_pairs(tmp_path, "v.jsonl")
    assert (found.units, found.ok) == (2, 1)
    assert [(one["path"], one["code"]) for one in found.problems] == [(path, code)]
    assert found.problems[0]["message"].startswith(f"{path}: ")


@cases
def test_a_settled_verdict_that_keeps_it(tmp_path, change):
    write_rows(tmp_path, [VERDICT | change], "v.jsonl")
    assert check_pairs(tmp_path, "v.jsonl").problems == []


def test_flags_are_shown_and_a_line_is_taken_as_well(tmp_path):
    replies = [pair_reply("A+", winner="B"), pair_reply("tie"), f"x | {told('p2')[5:]}"]
    rows = [{"unit": f"p{i}", "reply": reply} for i, reply in enumerate(replies)]
    write_rows(tmp_path, rows, "r.jsonl")
    found = check_pairs(tmp_path, "r.jsonl")
    assert (found.ok, found.problems, found.fixes) == (3, [], [])
    assert found.json()["flags"] == [{"unit": "p0", "flag": "self_contradiction"}]


def test_an_object_is_held_to_what_a_run_demands(tmp_path):
    marks = {c: {"mark": "A+"} for c in CRITERIA}
    bare = {"criteria": marks, "explanation": "", "winner": "A"}
    write_rows(tmp_path, [{"unit": "p0", "reply": bare}], "r.jsonl")
    paths = [problem["path"] for problem in check_pairs(tmp_path, "r.jsonl").problems]
    assert paths[-1] == "explanation"
    assert set(paths[:-1]) == {
        f"criteria.{c}.{key}"
        for c in CRITERIA
        for key in ("first_meets", "second_meets", "comment")
    }


@pytest.mark.parametrize("language", ["ru", "zh", "ja"])
def test_messages_are_in_english_whatever_the_language(tmp_path, language):
    spoilt = {"criteria": [], "explanation": 7, "winner": 1}
    write_rows(tmp_path, pairs(1), "pairs.jsonl")
    write_rows(tmp_path, [{"unit": "p0", "reply": spoilt}], "r.jsonl")
    found = check_file("pairwise", language, None, tmp_path / "pairs.jsonl", tmp_path / "r.jsonl")
    assert len(found.problems) == 3
    assert all(problem["message"].isascii() for problem in found.problems)


def test_a_protocol_that_is_not_there_is_told(check):
    with refused(UsageError, "files.no_protocol"):
        check([UNIT], [OUTPUT], protocol="poetry")
