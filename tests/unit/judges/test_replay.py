"""Recorded replies."""

import json

import pytest

from evenhand.errors import DataError, NothingRecorded
from evenhand.judges import JudgeOptions, open_judge
from tests.cases import cases
from tests.sentences import refused
from tests.unit.judges.questions import question

ONE = {"unit": "u1", "reply": "one"}


@pytest.fixture
def recorded(tmp_path):
    """A judge whose replies are these rows of a file."""

    def open_file(*rows, name="replies.jsonl"):
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
        return open_judge(JudgeOptions(name=f"replay/{name}", folder=tmp_path))

    return open_file


async def text(judge, **asked):
    return (await judge.answer(question(**asked))).text


async def test_unit_order_round_and_repeat_tell_replies_apart(recorded):
    asked = [{}, {"order": "21"}, {"round": 2}, {"repeat": 1}]
    judge = recorded(*(ONE | {"reply": str(number)} | one for number, one in enumerate(asked)))
    assert [await text(judge, **one) for one in asked] == ["0", "1", "2", "3"]
    for absent in ({"order": "12", "round": 3}, {"order": "21", "repeat": 1}):
        with pytest.raises(NothingRecorded):
            await text(judge, **absent)
    with pytest.raises(NothingRecorded):
        await text(recorded(ONE | {"unit": "u2"}))
    await judge.close()


async def test_further_rows_of_a_unit_answer_its_re_asks_the_last_of_them_all_others(recorded):
    judge = recorded(*(ONE | {"reply": str(number)} for number in range(3)))
    assert [await text(judge, reask=number) for number in (0, 1, 2, 3, 0)] == [*"01220"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"unit": "u1", "reply": {"b": 1.50, "a": "да"}}', '{"b":1.50,"a":"да"}'),
        ({"unit": "u1", "reply": "\ud83d!"}, "\ufffd!"),
        ('\ufeff{"unit": "u1", "reply": "one", "cost": 3, "round": null}\r', "one"),
    ],
    ids=["object", "lone surrogate", "marks and unknown keys"],
)
async def test_a_reply_is_kept_as_it_was_written(recorded, row, said):
    assert await text(recorded(row, "", "  ")) == said


def test_the_identity_is_the_content_and_not_the_path(recorded, tmp_path):
    one, same, other = (
        recorded(ONE | {"reply": reply}, name=name).identity
        for name, reply in (("a", "one"), ("b", "one"), ("c", "two"))
    )
    assert one == same != other
    assert str(tmp_path) not in json.dumps(dict(one))
    # Units with equal texts keep their own replies.
    assert one["by_unit"] is True


def test_replies_of_several_judges_are_told(recorded):
    with refused(DataError, "judges.several_judges"):
        recorded(ONE | {"judge": "a"}, ONE | {"judge": "b"})


@cases
def test_a_bad_row_is_told_with_its_line(recorded, tmp_path, row, key, fault):
    with refused(DataError, f"judges.{key}", fault) as raised:
        recorded(ONE, "", row)
    assert raised.value.where == f"{tmp_path / 'replies.jsonl'}:3"


def test_a_file_that_is_missing_or_no_text_is_told(tmp_path):
    options = JudgeOptions(name="replay/replies.jsonl", folder=tmp_path)
    with refused(DataError, "judges.replies_unreadable", "No such file"):
        open_judge(options)
    (tmp_path / "replies.jsonl").write_bytes(b'{"unit": "u", "reply": "\xff"}')
    with refused(DataError, "judges.not_json", r"replies\.jsonl:1"):
        open_judge(options)
