"""Recorded replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import DataError, NothingRecorded
from evenhand.exchange import Judge
from evenhand.judges import PROVIDERS, JudgeOptions
from evenhand.judges.replay import ReplayJudge
from tests.unit.judges.conftest import question


def recorded(folder: Path, *rows: Any, name: str = "replies.jsonl") -> Path:
    path = folder / name
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    return path


def replay(path: Path) -> ReplayJudge:
    options = JudgeOptions(name=f"replay/{path.name}", folder=path.parent)
    return ReplayJudge(PROVIDERS["replay"], options, path.name)


async def text(judge: ReplayJudge, **asked: Any) -> str:
    return (await judge.answer(question(**asked))).text


async def test_a_reply_is_found_by_its_unit(tmp_path: Path) -> None:
    judge: Judge = replay(
        recorded(tmp_path, {"unit": "u1", "reply": "one"}, {"unit": "2", "reply": "two"})
    )
    assert (await judge.answer(question(unit="2"))).text == "two"
    await judge.close()


async def test_order_round_and_repeat_tell_replies_apart(tmp_path: Path) -> None:
    rows = [
        {"unit": "u1", "reply": "plain"},
        {"unit": "u1", "reply": "swapped", "order": "21"},
        {"unit": "u1", "reply": "later", "round": 2},
        {"unit": "u1", "reply": "again", "repeat": 1},
    ]
    judge = replay(recorded(tmp_path, *rows))
    assert await text(judge) == "plain"
    assert await text(judge, order="21") == "swapped"
    assert await text(judge, round=2) == "later"
    assert await text(judge, repeat=1) == "again"


async def test_further_rows_of_a_unit_answer_its_re_asks(tmp_path: Path) -> None:
    judge = replay(recorded(tmp_path, *({"unit": "u1", "reply": str(i)} for i in range(3))))
    assert [await text(judge, reask=i) for i in (0, 1, 2, 0)] == ["0", "1", "2", "0"]


async def test_an_object_is_replied_as_json_with_its_numbers_as_written(tmp_path: Path) -> None:
    judge = replay(recorded(tmp_path, '{"unit": "u1", "reply": {"b": 1.50, "a": "да"}}'))
    assert await text(judge) == '{"b":1.50,"a":"да"}'


async def test_a_lone_surrogate_becomes_storable(tmp_path: Path) -> None:
    judge = replay(recorded(tmp_path, {"unit": "u1", "reply": "\ud83d!"}))
    assert await text(judge) == "\ufffd!"


@pytest.mark.parametrize("asked", [{"unit": "u2"}, {"order": "21"}, {"round": 2}])
async def test_what_is_not_recorded_is_told(tmp_path: Path, asked: dict[str, Any]) -> None:
    judge = replay(recorded(tmp_path, {"unit": "u1", "reply": "one"}))
    with pytest.raises(NothingRecorded, match="no reply recorded for unit"):
        await text(judge, **asked)


async def test_a_re_ask_that_was_not_recorded_gets_the_last_reply_again(tmp_path: Path) -> None:
    judge = replay(recorded(tmp_path, {"unit": "u1", "reply": "one"}))
    assert await text(judge, reask=2) == "one"


def test_units_with_equal_texts_keep_their_own_replies(tmp_path: Path) -> None:
    assert replay(recorded(tmp_path, {"unit": "u1", "reply": "one"})).identity["by_unit"] is True


def test_the_identity_is_the_content_and_not_the_path(tmp_path: Path) -> None:
    row = {"unit": "u1", "reply": "one"}
    one, same = recorded(tmp_path, row, name="a"), recorded(tmp_path, row, name="b")
    other = recorded(tmp_path, {**row, "reply": "two"}, name="c")
    assert replay(one).identity == replay(same).identity != replay(other).identity
    assert str(tmp_path) not in json.dumps(dict(replay(one).identity))


async def test_blank_lines_marks_and_unknown_keys_do_no_harm(tmp_path: Path) -> None:
    row = '\ufeff{"unit": "u1", "reply": "one", "cost": 3, "round": null}\r'
    assert await text(replay(recorded(tmp_path, row, "", "  "))) == "one"


def test_replies_of_several_judges_are_told(tmp_path: Path) -> None:
    rows = [{"unit": "u1", "reply": name, "judge": name} for name in ("a", "b")]
    with pytest.raises(DataError, match="replies of several judges"):
        replay(recorded(tmp_path, *rows))


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("{", "not JSON"),
        ('{"unit": "u", "unit": "v", "reply": ""}', "twice"),
        ("[1]", "not an object"),
        ("[" * 9999, "nested more than"),
        ({"reply": "x"}, "`unit`"),
        ({"unit": 3, "reply": "x"}, "`unit`"),
        ({"unit": "u"}, "`reply`"),
        ({"unit": "u", "reply": 3}, "`reply`"),
        ({"unit": "u", "reply": "x", "order": "11"}, "`order`"),
        ({"unit": "u", "reply": "x", "order": 12}, "`order`"),
        ({"unit": "u", "reply": "x", "round": 0}, "`round`"),
        ({"unit": "u", "reply": "x", "round": True}, "`round`"),
        ({"unit": "u", "reply": "x", "repeat": -1}, "`repeat`"),
        ({"unit": "u", "reply": "x", "judge": 1}, "`judge`"),
    ],
)
def test_a_bad_row_is_told_with_its_line(tmp_path: Path, row: Any, fault: str) -> None:
    path = recorded(tmp_path, {"unit": "u1", "reply": "one"}, "", row)
    with pytest.raises(DataError) as raised:
        replay(path)
    assert raised.value.where == f"{path}:3"
    assert fault in str(raised.value)


def test_bytes_that_are_no_text_are_told_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_bytes(b'{"unit": "u", "reply": "\xff"}')
    with pytest.raises(DataError, match=r"replies\.jsonl:1"):
        replay(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        replay(tmp_path / "nowhere.jsonl")
