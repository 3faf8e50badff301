"""`check`: the contract applied to replies made elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import DataError, UsageError
from evenhand.files.replies import Findings, check_file
from tests.unit.kinds.material import META, RUBRIC_TEXT, SAMPLE, good

UNIT = {"question": SAMPLE.question, "model_output": SAMPLE.model_output}
META_TEXT = '{"run_id":"r1","model":"m-7","extra":{"t":1.50,"n":1e3},"question_id":"q"}'
BY_META = f'{{"meta":{META_TEXT},{json.dumps(UNIT)[1:]}'
OUTPUT = f'{{"meta":{META_TEXT},{json.dumps(good())[1:]}'


@pytest.fixture
def check(tmp_path: Path):
    def checked(units: list[Any], replies: list[Any], **more: Any) -> Findings:
        for name, rows in (("units", units), ("replies", replies)):
            lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
            (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (tmp_path / "rubric.json").write_text(RUBRIC_TEXT, encoding="utf-8")
        settings = {
            "protocol": "rubric",
            "language": "en",
            "rubric": tmp_path / "rubric.json",
        } | more
        return check_file(
            units=tmp_path / "units.jsonl", replies=tmp_path / "replies.jsonl", **settings
        )

    return checked


def test_raw_replies_are_held_to_the_contract(check):
    fenced = f"```json\n{json.dumps(good() | {'failure_tags': ['B', 'A']})}\n```"
    bad = json.dumps(good()).replace('"score": 5', '"score": 4')
    units = [UNIT | {"id": ident} for ident in ("a", "b", "c")]
    replies = [{"unit": "a", "reply": json.dumps(good())}, {"unit": "b", "reply": fenced}]
    found = check(units, [*replies, {"unit": "c", "reply": bad}])
    assert found.json() == {
        "units": 3,
        "ok": 2,
        "problems": [
            {
                "unit": "c",
                "code": "out_of_range",
                "path": "scores.correct.score",
                "message": found.problems[0]["message"],
            }
        ],
        "fixes": [
            {"unit": "b", "code": "unwrapped", "path": ""},
            {"unit": "b", "code": "tags", "path": "failure_tags"},
        ],
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
    with pytest.raises(DataError, match='2 units are called "r1/m-7/q"'):
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
    ("units", "replies", "where", "said"),
    [
        ([UNIT | {"id": "a"}], [{"unit": "z", "reply": ""}], "replies.jsonl:1", 'no unit "z"'),
        ([UNIT | {"id": "a"}], [{"reply": ""}], "replies.jsonl:1", '"unit" is missing'),
        ([UNIT | {"id": "a"}], [{"x": 1}], "replies.jsonl:1", 'neither {"unit", "reply"} nor'),
        ([UNIT | {"id": "a"}], [{"scores": {}, "meta": [1]}], "replies.jsonl:1", '"meta" must be'),
        ([UNIT, {"question": "x"}], [OUTPUT], "units.jsonl:2", '"model_output" is missing'),
        ([UNIT | {"id": "a"}] * 2, [OUTPUT], "units.jsonl:2", 'two units have the id "a"'),
    ],
)
def test_rows_that_cannot_be_checked_are_told_with_their_line(check, units, replies, where, said):
    with pytest.raises(DataError) as caught:
        check(units, replies)
    assert caught.value.where.endswith(where)
    assert said in caught.value.what


def test_a_protocol_that_is_not_there_is_told(check):
    with pytest.raises(UsageError, match="no protocol is called"):
        check([UNIT], [OUTPUT], protocol="poetry")
