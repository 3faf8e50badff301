"""Rows in the form of a chat: the assistant's last message is the answer, what precedes it the
question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.data.read import memory_rows
from evenhand.data.tables import Source, Tables
from evenhand.errors import DataError
from evenhand.kinds import KINDS

SYSTEM = {"role": "system", "content": "Отвечай кратко."}
ASKED = {"role": "user", "content": "なぜ空は青いのですか。"}
ANSWERED = {"role": "assistant", "content": "Air scatters blue light most."}
AGAIN = {"role": "user", "content": "And in the evening?"}
RED = {"role": "assistant", "content": "Then it is red."}


def read(
    *rows: dict[str, Any], kind: str = "rubric", columns: dict[str, str] | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """What rows are understood as, and what is told about them."""
    lines: list[str] = []
    source = Source(path=Path("chats.jsonl"), memory=memory_rows(rows, "chats.jsonl"))
    tables = Tables([source], columns or {}, KINDS[kind].table_form, lines.append)
    return [row.value for _, row in tables.rows], lines


FORMS = {
    "messages": {"messages": [ASKED, ANSWERED]},
    "conversation": {"conversation": [ASKED, ANSWERED]},
    "sharegpt": {
        "conversations": [
            {"from": "human", "value": ASKED["content"]},
            {"from": "gpt", "value": ANSWERED["content"]},
        ]
    },
    "parts of text": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": ASKED["content"]}]},
            ANSWERED,
        ]
    },
    "a prompt and an answer": {"prompt": [ASKED], "response": ANSWERED["content"]},
    "a prompt and its completion": {"completion": [ANSWERED], "prompt": [ASKED]},
    "messages and an answer": {"messages": [ASKED], "answer": ANSWERED["content"]},
    "the question once more": {"question": ASKED["content"], "messages": [ASKED, ANSWERED]},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_question_and_its_answer_are_read_from_messages(kind: str, form: str) -> None:
    rows = [FORMS[form] | {"model": model} for model in ("a", "b")]
    units, lines = read(*rows, kind=kind)
    fields = KINDS[kind].table_form
    assert {unit[fields.question] for unit in units} == {ASKED["content"]}
    answers = [candidate["text"] for unit in units for candidate in unit.get("candidates", ())] or [
        unit[fields.answer] for unit in units
    ]
    assert answers == [ANSWERED["content"]] * 2
    assert not any("messages" in unit for unit in units)
    line, *_ = [line for line in lines if line.startswith("Columns of")]
    assert fields.question in line and "\n" not in line


def test_several_turns_are_a_transcript_and_the_system_is_context() -> None:
    (unit,), (line,) = read({"messages": [SYSTEM, ASKED, ANSWERED, AGAIN, RED]})
    assert unit["question"] == (
        "User: なぜ空は青いのですか。\n\nAssistant: Air scatters blue light most.\n\n"
        "User: And in the evening?"
    )
    assert (unit["model_output"], unit["context"]) == (RED["content"], SYSTEM["content"])
    assert line == (
        'Columns of chats.jsonl: model_output = the assistant\'s last message in "messages",'
        ' question = what precedes the answer in "messages", context = what the system was told'
    )


def test_calls_of_tools_stand_in_the_transcript() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "sky"}}]}
    result = {"role": "tool", "content": "blue"}
    (unit,), _ = read({"messages": [ASKED, call, result, ANSWERED]})
    assert '"name":"sky"' in unit["question"].replace(" ", "") and "Tool: blue" in unit["question"]
    assert unit["model_output"] == ANSWERED["content"]


def test_a_context_of_its_own_stays_after_what_the_system_was_told() -> None:
    (unit,), _ = read({"messages": [SYSTEM, ASKED, ANSWERED], "context": "A physics lesson."})
    assert unit["context"] == "Отвечай кратко.\n\nA physics lesson."


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        (["Page 1.", "Page 2."], [SYSTEM["content"], "Page 1.", "Page 2."]),
        ({"page": 1}, [SYSTEM["content"], {"page": 1}]),
        ([], [SYSTEM["content"]]),
    ],
)
def test_a_context_that_is_no_text_stays_too(context: Any, kept: list[Any]) -> None:
    (unit,), _ = read({"messages": [SYSTEM, ASKED, ANSWERED], "context": context})
    assert unit["context"] == kept


def test_earlier_messages_of_the_contract_are_left_alone() -> None:
    row = {"question": "And then?", "model_output": "Red.", "messages": [ASKED, ANSWERED]}
    (unit,), lines = read(row)
    assert unit["messages"] == [ASKED, ANSWERED] and unit["question"] == "And then?"
    assert lines == []
    pair = {"topic": "?", "messages": [ASKED, ANSWERED]}
    pair["candidates"] = [{"id": name, "text": name} for name in "ab"]
    (unit,), _ = read(pair, kind="pairwise")
    assert unit["messages"] == [ASKED, ANSWERED]


def test_one_of_two_conversations_is_named() -> None:
    row = {"prompt": [ASKED], "chosen": [ANSWERED], "rejected": [RED]}
    with pytest.raises(DataError, match=r"holds 3 conversations: .*chosen.*rejected") as raised:
        read(row)
    assert "--map answer=chosen" in raised.value.advice
    (unit,), _ = read(row, columns={"answer": "chosen"})
    assert (unit["question"], unit["model_output"]) == (ASKED["content"], ANSWERED["content"])
    row = {"prompt": [ASKED], "chosen": [ASKED, ANSWERED], "rejected": [ASKED, RED]}
    (unit,), _ = read(row, columns={"answer": "chosen"})
    assert (unit["question"], unit["model_output"]) == (ASKED["content"], ANSWERED["content"])
    whole = {"chosen": [ASKED, ANSWERED], "rejected": [ASKED, RED]}
    (unit,), _ = read(whole, columns={"answer": "rejected"})
    assert (unit["question"], unit["model_output"]) == (ASKED["content"], RED["content"])


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"messages": [ASKED, ANSWERED, AGAIN]}, 'nobody answered the last message of "messages"'),
        ({"messages": [SYSTEM, ANSWERED]}, 'nothing was asked in "messages"'),
        ({"messages": []}, 'the field "messages" is no list of messages'),
        ({"messages": "hello"}, 'the field "messages" is no list of messages'),
        ({"messages": [{"role": 1, "content": "x"}, RED]}, r"messages\[0\] does not say whose"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}, RED]},
            r"messages\[0\] has no text",
        ),
    ],
)
def test_what_is_no_question_with_an_answer_is_named_with_its_row(
    row: dict[str, Any], what: str
) -> None:
    with pytest.raises(DataError, match=what) as raised:
        read({"messages": [ASKED, ANSWERED]}, row)
    assert raised.value.where == "chats.jsonl:2"


def test_another_question_beside_a_conversation_is_not_guessed_at() -> None:
    row = {"question": "Why is the sea salty?", "messages": [ASKED, ANSWERED]}
    with pytest.raises(DataError, match='"question" and "messages" hold different questions'):
        read(row)
    (unit,), _ = read(row, columns={"question": "messages"})
    assert unit["question"] == ASKED["content"]


def test_rows_of_a_file_are_read_like_rows_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    file.write_text(json.dumps({"messages": [ASKED, ANSWERED], "model": "m"}) + "\n")
    tables = Tables([Source(path=file)], {}, KINDS["rubric"].table_form, lambda line: None)
    ((_, row),) = tables.rows
    assert row.value["model_output"] == ANSWERED["content"]
    assert row.value["meta"]["model"] == "m"
