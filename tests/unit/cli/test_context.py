"""Reference, context and earlier messages of a table reach the judge, or it is said that they do
not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.data.write import write
from evenhand.suite import load_suite
from tests.unit.cli.conftest import CallCommand

KINDS = ("pairwise", "rubric", "weighted")
JUDGE = """
import json, pathlib

async def see(messages, schema, params):
    text = "\\n".join(message["content"] for message in messages)
    with (pathlib.Path(__file__).parent / "prompts.jsonl").open("a") as file:
        file.write(json.dumps(text) + "\\n")
    return "{}"
"""
MODEL = "python/judge:see"
GOLD, PASSAGE = "Ada Lovelace, in 1843.", 'Note G holds\nthe "first" program.'
SEES, UNSEEN = "the judge sees: reference, context\n", "The judge does not see: "
RAGAS = ("user_input", "response", "reference", "retrieved_contexts")
DEEPEVAL = ("input", "actual_output", "expected_output", "retrieval_context")
COLUMNS = {
    "deepeval": DEEPEVAL,
    "ragas": RAGAS,
    "ragas, earlier": ("question", "answer", "ground_truth", "contexts"),
    "ragas, made up": ("user_input", "response", "reference", "reference_contexts"),
    "promptfoo": ("prompt", "output", "__expected", "context"),
    "en": ("Question", "Answer", "Correct answer", "Documents"),
    "ru": ("Запрос", "Ответ модели", "Правильный ответ", "Документы"),
    "zh": ("问题", "回答", "参考答案", "上下文"),
    "zh, other": ("题目", "模型回答", "标准答案", "参考资料"),
    "ja": ("質問", "回答", "模範解答", "コンテキスト"),
}
EARLIER = [{"from": "human", "value": "Hello there"}, {"from": "gpt", "value": "Good evening"}]


@pytest.fixture(autouse=True)
def judge(call: CallCommand) -> None:
    Path("judge.py").write_text(JUDGE)


def two_answers(names: Sequence[str], *values: object) -> list[dict[str, Any]]:
    """One question that two models answer, with what the judge is to see."""
    return [
        dict(zip((*names, "model"), ("Who wrote it?", f"{m} says", *values, m), strict=True))
        for m in ("m1", "m2")
    ]


def start(call: CallCommand, rows: Sequence[Any], *options: str, file: str = "rows.jsonl") -> str:
    write(Path(file), rows)
    done = call("init", "--judge", MODEL, "--data", file, *options)
    assert done.code == 0, done.err
    return done.out


def prompts() -> list[str]:
    return [json.loads(line) for line in Path("prompts.jsonl").read_text().splitlines()]


def assert_sent(call: CallCommand, *texts: str) -> None:
    """A run has nothing to tell of what the judge does not see, and every prompt holds these."""
    assert UNSEEN not in call("run", "--json").err
    for prompt in prompts():
        assert all(text in prompt for text in texts)


@pytest.mark.parametrize("columns", COLUMNS)
def test_columns_that_init_finds_stand_in_every_prompt(call: CallCommand, columns: str) -> None:
    rows = two_answers(COLUMNS[columns], GOLD, PASSAGE)
    # A table of questions and answers can be judged in every way.
    kind = KINDS[list(COLUMNS).index(columns) % 3]
    assert SEES in start(call, rows, "--protocol", kind, file="rows.csv")
    assert load_suite(Path(), {}).file.use == ["reference", "context"]
    assert_sent(call, GOLD, PASSAGE)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_the_user_maps_and_lists_reach_the_judge(call: CallCommand, kind: str) -> None:
    passages = [PASSAGE, "Second one."]
    rows = two_answers(("question", "answer", "key", "given"), {"text": GOLD}, passages)
    mapped = ("--map", "reference=key.text", "--map", "context=given")
    assert SEES in start(call, rows, "--protocol", kind, *mapped)
    assert_sent(call, GOLD, f"\n[1] {PASSAGE}\n\n[2] Second one.\n")


def test_a_row_per_pair_brings_its_reference(call: CallCommand) -> None:
    candidates = [{"id": name, "text": f"{name} says"} for name in ("c1", "c2")]
    row = {"topic": "Who?", "candidates": candidates, "expected_output": GOLD, "context": [PASSAGE]}
    assert SEES in start(call, [row])
    assert_sent(call, GOLD, PASSAGE)


def test_no_value_is_dropped_for_being_an_object_or_0(call: CallCommand) -> None:
    documents = [{"page_content": "Found there.", "metadata": {"page": 3}}]
    rows = two_answers(("question", "answer", "reference", "context"), 0, documents)
    assert SEES in start(call, rows)
    assert_sent(call, "Found there.", "\n0\n[[/reference ")


def test_answers_to_a_topic_are_judged_by_all_their_contexts(call: CallCommand) -> None:
    rows = two_answers(RAGAS, GOLD, ["Both had it.", "First had it."])
    rows[1]["retrieved_contexts"] = ["Both had it.", "Second had it."]
    said = start(call, rows, "--protocol", "pairwise")
    assert '1 topic has answers with different values of "context"' in said
    assert_sent(call, "\n[1] Both had it.\n\n[2] First had it.\n\n[3] Second had it.\n")


def test_an_empty_column_does_not_stand_before_one_that_is_filled(call: CallCommand) -> None:
    rows = [row | {"context": ""} for row in two_answers(DEEPEVAL, GOLD, PASSAGE)]
    said = start(call, rows, file="rows.csv")
    assert SEES in said and "is not used" not in said
    assert_sent(call, PASSAGE)


@pytest.mark.parametrize("name", ["messages", "chat_history", "conversation"])
def test_earlier_messages_reach_the_judge(call: CallCommand, name: str) -> None:
    said = start(call, two_answers(("question", "answer", name), EARLIER))
    assert "the judge sees: messages\n" in said
    assert_sent(call, "Hello there", "Good evening")


def test_a_judge_that_is_to_see_nothing_is_not_spoken_of(call: CallCommand) -> None:
    """Messages that hold the answer would show a judge of pairs which answer was given."""
    log = [*EARLIER, {"role": "assistant", "content": "m1 says"}]
    rows = two_answers(("question", "answer", "messages"), log)
    said = start(call, rows, "--protocol", "pairwise")
    assert "the judge sees" not in said and f"{UNSEEN}messages." in said
    assert load_suite(Path(), {}).file.use == []
    Path("evenhand.toml").unlink()
    said = start(call, two_answers(("question", "answer")), "--protocol", "pairwise")
    assert "judge sees" not in said and UNSEEN not in call("run").err


@pytest.mark.parametrize("kind", KINDS)
def test_run_notes_in_one_line_what_the_judge_does_not_see(call: CallCommand, kind: str) -> None:
    rows = two_answers(DEEPEVAL, GOLD, PASSAGE)
    start(call, [row | {"messages": "Earlier: hello"} for row in rows], "--protocol", kind)
    suite = Path("evenhand.toml")
    text = suite.read_text(encoding="utf-8")
    use = 'use = ["reference", "context", "messages"]'
    assert use in text
    for shown, unseen in (
        ("", "reference, context, messages"),
        ('"context"', "reference, messages"),
    ):
        suite.write_text(text.replace(use, f"use = [{shown}]"), encoding="utf-8")
        for options in (("--dry-run",), (), ()):  # the second run reads no file again
            (note,) = [line for line in call("run", *options).err.splitlines() if UNSEEN in line]
            assert f"{UNSEEN}{unseen}. " in note and "use = [" in note
    assert not any(GOLD in prompt for prompt in prompts())


@pytest.mark.filterwarnings("ignore::evenhand.errors.NoVerdictsWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_from_python_the_judge_sees_what_a_table_has(
    capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    rows = two_answers(RAGAS, GOLD, [PASSAGE, "Second one."])
    rubric = None if kind == "pairwise" else "Is it true?"
    settings: dict[str, Any] = {"protocol": kind, "rubric": rubric, "judge": MODEL}
    evenhand.run(rows, **settings)
    assert "The judge sees: reference, context\n" in capsys.readouterr().err
    known = prompts()
    for prompt in known:
        assert GOLD in prompt and f"[1] {PASSAGE}\n\n[2] Second one." in prompt
    evenhand.run(rows, use=["context"], **settings)
    assert f"{UNSEEN}reference." in capsys.readouterr().err
    more = prompts()[len(known) :]
    assert more and GOLD not in "".join(more)
