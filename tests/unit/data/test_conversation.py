"""Rows in the form of a chat: which column it is, and the units that it makes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from evenhand.data.read import memory_rows
from evenhand.data.tables import Tables, TableSource
from evenhand.errors import DataError
from evenhand.files.protocols import find_protocol, judging_of
from evenhand.files.rubrics import TableUnits
from evenhand.kinds import KINDS
from evenhand.manifest import JudgingRecord, rubric_json
from evenhand.units import question_hash
from tests.sentences import refused
from tests.suites import CHECKLIST, RUBRIC, TASK

SYSTEM = {"role": "system", "content": "Отвечай кратко."}
ASKED = {"role": "user", "content": "なぜ空は青いのですか。"}
ANSWERED = {"role": "assistant", "content": "Air scatters blue light most."}
AGAIN = {"role": "user", "content": "And in the evening?"}
RED = {"role": "assistant", "content": "Then it is red."}
SALTY = {"role": "user", "content": "Why is the sea salty?"}
RUBRICS = {
    "rubric": rubric_json(RUBRIC),
    "checklist": rubric_json({"criteria": CHECKLIST}),
    "weighted": rubric_json(TASK),
    "pairwise": rubric_json(None),
}


def read(*rows, kind="rubric", columns=None, judged="last"):
    """The units that rows are understood as, and what is told about them."""
    lines = []
    source = TableSource(path=Path("chats.jsonl"), memory=memory_rows(rows, "chats.jsonl"))
    tables = Tables([source], columns or {}, KINDS[kind].table_form, lines.append)
    settings = {**KINDS[kind].settings, "use": [], "judged": judged}
    record = JudgingRecord(language="en", rubric_json=RUBRICS[kind], settings=settings)
    judging = judging_of(find_protocol(kind), record)
    units = TableUnits(tables, find_protocol(kind)).read(judging)
    return [json.loads(unit.body) for unit in units], lines


def chat(unit):
    """The speakers and texts of a unit's turns."""
    return [(turn["role"], turn.get("text", "")) for turn in unit["transcript"]["turns"]]


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
def test_one_question_and_its_answer_are_the_unit_of_a_plain_row(kind, form):
    rows = [FORMS[form] | {"model": model} for model in ("a", "b")]
    plain = {"question": ASKED["content"], "answer": ANSWERED["content"]}
    units, lines = read(*rows, kind=kind)
    assert units == read(*(plain | {"model": model} for model in ("a", "b")), kind=kind)[0]
    meanings = [line.values["meaning"] for line in lines if line.key == "data.columns"]
    key = "transcript" if "answer" not in form else "transcript_and_answer"
    meaning = next(each for each in meanings if getattr(each, "key", "") == "data.field_is")
    assert meaning.values["meaning"].key == f"data.{key}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_is_kept_in_turns_and_called_by_its_first_question(kind):
    turns = [SYSTEM, ASKED, ANSWERED, AGAIN, RED]
    rows = [{"messages": turns, "model": model} for model in "ab"]
    (unit, *_), _ = read(*rows, kind=kind)
    parties = unit.get("candidates") or [unit]
    for party in parties:
        assert chat(party) == [(each["role"], each["content"]) for each in turns]
        assert (
            party.get("model_output") or party.get("answer") or party["text"]
        ) == "Then it is red."
    assert unit[KINDS[kind].table_form.question] == ASKED["content"]
    assert question_hash(ASKED["content"]) in unit["id"] + str(unit["meta"])


def test_the_answer_of_a_column_is_the_last_turn():
    (unit,), _ = read({"messages": [SYSTEM, ASKED], "answer": RED["content"]})
    assert chat(unit)[-1] == ("assistant", RED["content"]) and len(chat(unit)) == 3
    (unit,), _ = read({"messages": [SYSTEM, ASKED, RED], "answer": RED["content"]})
    assert len(chat(unit)) == 3


@pytest.mark.parametrize("role", ["ai", "Bot", "chatgpt", "gpt", "model"])
@pytest.mark.parametrize("asker", ["human", "prompter"])
def test_speakers_have_other_names_too(role, asker):
    turns = [{"role": who, "content": text} for text in ("1", "2") for who in (asker, role)]
    (unit,), _ = read({"messages": turns})
    assert [who for who, _ in chat(unit)] == ["user", "assistant"] * 2


def test_candidates_may_be_conversations():
    """What stands beside them is what they begin with; a text is the answer to the question."""
    told = {"id": "told", "text": "Salt."}
    asked = {"id": "asked", "messages": [AGAIN, RED]}
    (pair,), _ = read({"messages": [SALTY], "candidates": [told, asked]}, kind="pairwise")
    assert (pair["id"], pair["topic"]) == (
        f"{question_hash(SALTY['content'])}#asked~told",
        SALTY["content"],
    )
    first, second = pair["candidates"]
    assert [text for _, text in chat(first)] == [SALTY["content"], AGAIN["content"], RED["content"]]
    assert chat(second) == [("user", SALTY["content"]), ("assistant", "Salt.")]
    (pair,), _ = read(
        {"messages": [SALTY], "candidates": [told, told | {"id": "b"}]}, kind="pairwise"
    )
    assert "transcript" not in pair["candidates"][0]


def test_a_question_beside_the_messages_must_be_theirs():
    messages = [ASKED, ANSWERED, AGAIN, RED]
    (unit,), _ = read({"question": AGAIN["content"], "messages": messages})
    assert unit["question"] == ASKED["content"]
    row = {"question": SALTY["content"], "messages": messages}
    with refused(DataError, "kinds.two_questions") as raised:
        read(row)
    assert raised.value.where == "chats.jsonl:1"
    (unit,), _ = read(row, columns={"question": "messages"})
    assert unit["question"] == ASKED["content"]


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
    assert "--map messages=chosen" in raised.value.advice
    for field in ("answer", "messages"):
        (unit,), _ = read(row, columns={field: "rejected"})
        assert (unit["question"], unit["model_output"]) == (ASKED["content"], RED["content"])


CALL = {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("messages", "key"),
    [
        ([SYSTEM, ASKED], "unanswered"),
        ([SYSTEM, ANSWERED], "nothing_asked"),
        ([], "not_messages"),
        ("Hello", "not_messages"),
        ([{"role": 1, "content": "x"}, RED], "unknown_role"),
        ([{"role": "narrator", "content": "Once"}, ASKED, ANSWERED], "unknown_role"),
        ([{"role": "user", "content": [{"type": "image_url"}]}, RED], "no_text_message"),
        ([{"role": "user", "content": "x"}, "y"], "no_text_message"),
        ([ASKED, CALL], "no_call"),
        ([ASKED, {"role": "assistant", "tool_calls": 7}], "no_call"),
    ],
)
def test_messages_that_cannot_be_judged_are_named_with_their_row(messages, key):
    with refused(DataError, f"kinds.{key}") as raised:
        read({"messages": [ASKED, ANSWERED]}, {"messages": messages})
    assert raised.value.where == "chats.jsonl:2" and raised.value.advice


def test_rows_of_a_file_are_read_like_rows_in_memory(tmp_path):
    file = tmp_path / "chats.jsonl"
    file.write_text(json.dumps({"messages": [ASKED, ANSWERED], "model": "m"}) + "\n")
    tables = Tables([TableSource(path=file)], {}, KINDS["rubric"].table_form, lambda line: None)
    ((_, row),) = tables.rows
    assert (row.value["question"], row.value["meta"]["model"]) == (ASKED["content"], "m")


def write_csv(path, *rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def units_of(path):
    tables = Tables([TableSource(path=path)], {}, KINDS["rubric"].table_form, lambda line: None)
    return [row.value for _, row in tables.rows]


def test_cells_of_json_are_messages_and_an_answer_of_json_stays_a_text(tmp_path):
    talk, text = json.dumps([SYSTEM, ASKED, ANSWERED], ensure_ascii=False), SALTY["content"]
    rows = units_of(write_csv(tmp_path / "chats.csv", {"log": talk}, {"log": ""}, {"log": talk}))
    assert [row["question"] for row in rows] == [ASKED["content"]] * 2
    assert rows[0]["messages"] == [SYSTEM, ASKED, ANSWERED]
    (row,) = units_of(write_csv(tmp_path / "a.csv", {"question": text, "answer": talk}))
    assert (row["question"], row["model_output"]) == (text, talk)
    table = {"question": text, "answer": "Salt.", "chat_history": talk}
    (row,) = units_of(write_csv(tmp_path / "b.csv", table))
    assert row["messages"] == [SYSTEM, ASKED, ANSWERED] and row["model_output"] == "Salt."
    for bad in (talk[:-5], talk.replace("Air", "\\ud800")):
        path = write_csv(tmp_path / "c.csv", *[{"log": talk}] * 300, {"log": bad})
        with refused(DataError, "kinds.not_messages") as raised:
            units_of(path)
        assert raised.value.where == f"{path}:302"


@pytest.mark.parametrize(
    "system", ["Отвечай кратко.", [{"type": "text", "text": "Отвечай кратко."}]]
)
def test_a_system_column_is_the_first_turn(system):
    (unit,), told = read({"system": system, "messages": [ASKED, ANSWERED]})
    assert chat(unit)[0] == ("system", "Отвечай кратко.") and "system" not in unit["meta"]
    meanings = [getattr(line.values["meaning"], "values", {}).get("field") for line in told]
    assert "system" in meanings
    (unit,), _ = read({"system": system, "messages": [SYSTEM, ASKED, ANSWERED, AGAIN, RED]})
    assert [role for role, _ in chat(unit)].count("system") == 1
    (unit,), _ = read({"system": "m1", "messages": [ASKED, RED]}, columns={"model": "system"})
    assert unit["meta"]["model"] == "m1" and "transcript" not in unit
