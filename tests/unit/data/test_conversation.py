"""Rows in the form of a chat: the last message is the answer, what precedes it the question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.data.read import memory_rows
from evenhand.data.tables import Tables, TableSource
from evenhand.errors import DataError
from evenhand.kinds import KINDS
from tests.sentences import refused

SYSTEM = {"role": "system", "content": "Отвечай кратко."}
ASKED = {"role": "user", "content": "なぜ空は青いのですか。"}
ANSWERED = {"role": "assistant", "content": "Air scatters blue light most."}
AGAIN = {"role": "user", "content": "And in the evening?"}
RED = {"role": "assistant", "content": "Then it is red."}


def read(*rows, kind="rubric", columns=None):
    """What rows are understood as, and what is told about them."""
    lines = []
    source = TableSource(path=Path("chats.jsonl"), memory=memory_rows(rows, "chats.jsonl"))
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
    "messages and an answer": {"messages": [ASKED], "answer": ANSWERED["content"]},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_question_and_its_answer_are_read_from_messages(kind, form):
    rows = [FORMS[form] | {"model": model} for model in ("a", "b")]
    units, lines = read(*rows, kind=kind)
    fields = KINDS[kind].table_form
    assert {unit[fields.question] for unit in units} == {ASKED["content"]}
    answers = [candidate["text"] for unit in units for candidate in unit.get("candidates", ())] or [
        unit[fields.answer] for unit in units
    ]
    assert answers == [ANSWERED["content"]] * 2
    assert not any("messages" in unit for unit in units)
    meanings = [line.values["meaning"] for line in lines if line.key == "data.columns"]
    assert any(fields.question in meaning for meaning in meanings)


def test_the_question_is_all_that_precedes_the_answer():
    (unit,), lines = read({"messages": [SYSTEM, ASKED, ANSWERED, AGAIN, RED]})
    assert unit["model_output"] == RED["content"]
    assert unit["question"] == (
        "System: Отвечай кратко.\n\nUser: なぜ空は青いのですか。\n\n"
        "Assistant: Air scatters blue light most.\n\nUser: And in the evening?"
    )
    assert "context" not in unit
    told = [line.values["meaning"].values for line in lines]
    assert [(values["field"], values["meaning"].key) for values in told] == [
        ("model_output", "data.last_message"),
        ("question", "data.before_answer"),
    ]


def test_chats_that_end_alike_are_different_questions():
    other = {"role": "user", "content": "Why is the sea salty?"}
    chats = [[first, ANSWERED, AGAIN, RED] for first in (ASKED, other)]
    pairs, _ = read(
        *({"messages": chat, "model": model} for chat in chats for model in "ab"), kind="pairwise"
    )
    assert len({unit["topic"] for unit in pairs}) == 2


def test_calls_of_tools_are_of_the_question_or_the_answer():
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "sky"}}]}
    result = {"role": "tool", "content": "blue"}
    (unit,), _ = read({"messages": [ASKED, call, result, ANSWERED]})
    assert unit["model_output"] == ANSWERED["content"]
    assert '"name":"sky"' in unit["question"] and unit["question"].endswith("Tool: blue")
    (unit,), _ = read({"messages": [ASKED, call]})
    assert '"name":"sky"' in unit["model_output"]


@pytest.mark.parametrize("role", ["ai", "Bot", "chatgpt", "gpt", "model"])
@pytest.mark.parametrize("asker", ["human", "prompter"])
def test_speakers_have_other_names_too(role, asker):
    turns = [{"role": who, "content": text} for text in ("1", "2") for who in (asker, role)]
    (unit,), _ = read({"messages": turns})
    assert (unit["question"], unit["model_output"]) == ("User: 1\n\nAssistant: 1\n\nUser: 2", "2")


def test_an_unknown_role_is_named_with_the_known_ones():
    with refused(DataError, "data.unknown_role", '"narrator"') as raised:
        read({"messages": [{"role": "narrator", "content": "Once"}, ASKED, ANSWERED]})
    assert raised.value.where == "chats.jsonl:1"
    assert "user, human" in raised.value.advice and "chatgpt" in raised.value.advice


def test_a_context_of_its_own_stays():
    (unit,), _ = read({"messages": [SYSTEM, ASKED, ANSWERED], "context": ["Page 1.", "Page 2."]})
    assert unit["context"] == ["Page 1.", "Page 2."]


def test_a_question_beside_the_messages_must_be_theirs():
    messages = [ASKED, ANSWERED, AGAIN, RED]
    (unit,), _ = read({"question": AGAIN["content"], "messages": messages})
    assert unit["question"].startswith(f"User: {ASKED['content']}")
    row = {"question": "Why is the sea salty?", "messages": messages}
    with refused(DataError, "data.two_questions") as raised:
        read(row)
    assert "--map question=messages" in raised.value.advice
    (unit,), _ = read(row, columns={"question": "messages"})
    assert unit["question"].startswith(f"User: {ASKED['content']}")


def test_an_answer_beside_the_messages_is_not_part_of_the_question():
    (unit,), _ = read({"messages": [ASKED, ANSWERED], "answer": ANSWERED["content"]})
    assert (unit["question"], unit["model_output"]) == (ASKED["content"], ANSWERED["content"])


def test_earlier_messages_of_the_contract_are_left_alone():
    row = {"question": "And then?", "model_output": "Red.", "messages": [ASKED, ANSWERED]}
    (unit,), lines = read(row)
    assert unit["messages"] == [ASKED, ANSWERED] and unit["question"] == "And then?"
    assert lines == []
    pair = {"topic": "?", "messages": [ASKED, ANSWERED]}
    pair["candidates"] = [{"id": name, "text": name} for name in "ab"]
    (unit,), _ = read(pair, kind="pairwise")
    assert unit["messages"] == [ASKED, ANSWERED]


def test_one_of_two_conversations_is_named():
    row = {"chosen": [ASKED, ANSWERED], "rejected": [ASKED, RED]}
    with refused(DataError, "data.two_conversations", "chosen.*rejected") as raised:
        read(row)
    assert "--map answer=chosen" in raised.value.advice
    (unit,), _ = read(row, columns={"answer": "rejected"})
    assert (unit["question"], unit["model_output"]) == (ASKED["content"], RED["content"])


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"messages": [ASKED, ANSWERED, AGAIN]}, "unanswered"),
        ({"messages": [SYSTEM, ANSWERED]}, "nothing_asked"),
        ({"messages": []}, "not_messages"),
        ({"messages": [{"role": 1, "content": "x"}, RED]}, "not_messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}, RED]},
            "not_messages",
        ),
    ],
)
def test_what_is_no_question_with_an_answer_is_named_with_its_row(row, key):
    with refused(DataError, f"data.{key}") as raised:
        read({"messages": [ASKED, ANSWERED]}, row)
    assert raised.value.where == "chats.jsonl:2"


def test_rows_of_a_file_are_read_like_rows_in_memory(tmp_path):
    file = tmp_path / "chats.jsonl"
    file.write_text(json.dumps({"messages": [ASKED, ANSWERED], "model": "m"}) + "\n")
    tables = Tables([TableSource(path=file)], {}, KINDS["rubric"].table_form, lambda line: None)
    ((_, row),) = tables.rows
    assert row.value["model_output"] == ANSWERED["content"]
    assert row.value["meta"]["model"] == "m"
