"""Reference, context and earlier messages of a table reach the judge, or it is said that they do
not."""

from __future__ import annotations

import asyncio
import csv
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.suite import load_suite
from tests.provider.server import Provider
from tests.unit.cli.conftest import CallCommand

KINDS = ("pairwise", "rubric", "weighted")
JUDGE = "openai/gpt-4.1-mini"
GOLD, PASSAGE = "Ada Lovelace, in 1843.", 'Note G holds\nthe "first" program.'
UNSEEN = "The judge does not see: "
COLUMNS: dict[str, tuple[str, str, str, str]] = {
    "own": ("question", "answer", "reference", "context"),
    "deepeval": ("input", "actual_output", "expected_output", "retrieval_context"),
    "ragas": ("user_input", "response", "reference", "retrieved_contexts"),
    "ragas, earlier": ("question", "answer", "ground_truth", "contexts"),
    "ragas, made up": ("user_input", "response", "reference", "reference_contexts"),
    "promptfoo": ("prompt", "output", "__expected", "context"),
    "en": ("Question", "Answer", "Correct answer", "Documents"),
    "ru": ("Вопрос", "Ответ", "Эталонный ответ", "Контекст"),
    "ru, other": ("Запрос", "Ответ модели", "Правильный ответ", "Документы"),
    "zh": ("问题", "回答", "参考答案", "上下文"),
    "zh, other": ("题目", "模型回答", "标准答案", "参考资料"),
    "ja": ("質問", "回答", "正解", "文脈"),
    "ja, other": ("質問", "回答", "模範解答", "コンテキスト"),
}


class Served:
    """A provider on this machine, and the prompts that it was sent."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    @property
    def prompts(self) -> list[str]:
        return [
            "\n".join(message["content"] for message in call.body["messages"])
            for call in self._provider.calls
        ]


@contextmanager
def running(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Where the judge is asked."""
    loop, provider = asyncio.new_event_loop(), Provider()
    with running(loop):
        asyncio.run_coroutine_threadsafe(provider.start(), loop).result()
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        yield Served(provider)
        asyncio.run_coroutine_threadsafe(provider.stop(), loop).result()


def two_answers(names: Sequence[str], *values: object) -> list[dict[str, Any]]:
    """One question that two models answer, with what the judge is to see."""
    return [
        dict(
            zip((*names, "model"), ("Who wrote it?", f"{model} says", *values, model), strict=True)
        )
        for model in ("m1", "m2")
    ]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def start(call: CallCommand, *options: str) -> str:
    done = call("init", "--judge", JUDGE, *options)
    assert done.code == 0, done.err
    return done.out


def sent(call: CallCommand, served: Served) -> list[str]:
    """The prompts of a run that has nothing to tell of what the judge does not see."""
    ran = call("run", "--json")
    assert UNSEEN not in ran.err
    assert served.prompts, ran.err
    return served.prompts


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("protocol", KINDS)
def test_what_init_finds_stands_in_every_prompt(
    call: CallCommand, served: Served, tmp_path: Path, protocol: str, columns: str
) -> None:
    write_csv(tmp_path / "ref.csv", two_answers(COLUMNS[columns], GOLD, PASSAGE))
    said = start(call, "--data", "ref.csv", "--protocol", protocol)
    assert "the judge sees: reference, context\n" in said
    assert load_suite(tmp_path, {}).file.use == ["reference", "context"]
    for prompt in sent(call, served):
        assert GOLD in prompt and PASSAGE in prompt


@pytest.mark.parametrize("protocol", KINDS)
def test_columns_that_the_user_maps_reach_the_judge(
    call: CallCommand, served: Served, tmp_path: Path, protocol: str
) -> None:
    rows = two_answers(("question", "answer", "key", "given"), {"text": GOLD}, PASSAGE)
    write_lines(tmp_path / "rows.jsonl", rows)
    mapped = ("--map", "reference=key.text", "--map", "context=given")
    said = start(call, "--data", "rows.jsonl", "--protocol", protocol, *mapped)
    assert "the judge sees: reference, context\n" in said
    for prompt in sent(call, served):
        assert GOLD in prompt and PASSAGE in prompt


def test_a_row_per_pair_brings_its_reference(
    call: CallCommand, served: Served, tmp_path: Path
) -> None:
    candidates = [{"id": name, "text": f"{name} says"} for name in ("c1", "c2")]
    row = {"topic": "Who?", "candidates": candidates, "expected_output": GOLD, "context": [PASSAGE]}
    write_lines(tmp_path / "pairs.jsonl", [row])
    assert "the judge sees: reference, context\n" in start(call, "--data", "pairs.jsonl")
    for prompt in sent(call, served):
        assert GOLD in prompt and PASSAGE in prompt


@pytest.mark.parametrize("protocol", KINDS)
def test_a_list_of_contexts_is_shown_as_passages(
    call: CallCommand, served: Served, tmp_path: Path, protocol: str
) -> None:
    rows = two_answers(COLUMNS["ragas"], GOLD, [PASSAGE, "Second one."])
    write_lines(tmp_path / "rows.jsonl", rows)
    start(call, "--data", "rows.jsonl", "--protocol", protocol)
    for prompt in sent(call, served):
        assert f"\n[1] {PASSAGE}\n\n[2] Second one.\n" in prompt


def test_no_value_is_dropped_for_being_an_object_or_0(
    call: CallCommand, served: Served, tmp_path: Path
) -> None:
    documents = [{"page_content": "Found there.", "metadata": {"page": 3}}]
    rows = two_answers(("question", "answer", "reference", "context"), 0, documents)
    write_lines(tmp_path / "rows.jsonl", rows)
    assert "the judge sees: reference, context\n" in start(call, "--data", "rows.jsonl")
    for prompt in sent(call, served):
        assert "Found there." in prompt and "\n0\n[[/reference " in prompt


def test_answers_to_a_topic_are_judged_by_all_their_contexts(
    call: CallCommand, served: Served, tmp_path: Path
) -> None:
    rows = two_answers(COLUMNS["ragas"], GOLD, ["Both had it.", "First had it."])
    rows[1]["retrieved_contexts"] = ["Both had it.", "Second had it."]
    write_lines(tmp_path / "rows.jsonl", rows)
    said = start(call, "--data", "rows.jsonl", "--protocol", "pairwise")
    assert '1 topic has answers with different values of "context"' in said
    for prompt in sent(call, served):
        passages = ("Both had it.", "First had it.", "Second had it.")
        shown = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(passages, 1))
        assert f"\n{shown}\n" in prompt


EARLIER = [{"from": "human", "value": "Hello there"}, {"from": "gpt", "value": "Good evening"}]


@pytest.mark.parametrize("name", ["messages", "chat_history", "conversation"])
def test_earlier_messages_reach_the_judge(
    call: CallCommand, served: Served, tmp_path: Path, name: str
) -> None:
    write_lines(tmp_path / "rows.jsonl", two_answers(("question", "answer", name), EARLIER))
    assert "the judge sees: messages\n" in start(call, "--data", "rows.jsonl")
    for prompt in sent(call, served):
        assert "Hello there" in prompt and "Good evening" in prompt


def test_messages_that_hold_the_answer_are_told_and_not_shown(
    call: CallCommand, tmp_path: Path
) -> None:
    """A log would show a judge of pairs which answer was given."""
    log = [*EARLIER, {"role": "assistant", "content": "m1 says"}]
    write_lines(tmp_path / "rows.jsonl", two_answers(("question", "answer", "messages"), log))
    said = start(call, "--data", "rows.jsonl", "--protocol", "pairwise")
    assert "the judge sees" not in said and f"{UNSEEN}messages." in said
    assert load_suite(tmp_path, {}).file.use == []


@pytest.mark.parametrize("protocol", KINDS)
def test_run_notes_in_one_line_what_the_judge_does_not_see(
    call: CallCommand, served: Served, tmp_path: Path, protocol: str
) -> None:
    rows = two_answers(COLUMNS["deepeval"], GOLD, PASSAGE)
    write_csv(tmp_path / "ref.csv", [row | {"messages": "Earlier: hello"} for row in rows])
    start(call, "--data", "ref.csv", "--protocol", protocol)
    suite = tmp_path / "evenhand.toml"
    use = 'use = ["reference", "context", "messages"]'
    assert use in suite.read_text(encoding="utf-8")
    for shown, unseen in (
        ("", "reference, context, messages"),
        ('"context"', "reference, messages"),
    ):
        text = suite.read_text(encoding="utf-8")
        lines = [
            f"use = [{shown}]" if line.startswith("use") else line for line in text.split("\n")
        ]
        suite.write_text("\n".join(lines), encoding="utf-8")
        for options in (("--dry-run",), (), ()):  # the second run reads no file again
            (note,) = [line for line in call("run", *options).err.splitlines() if UNSEEN in line]
            assert f"{UNSEEN}{unseen}. " in note and "use = [" in note
    assert served.prompts and not any(GOLD in prompt for prompt in served.prompts)


def test_an_empty_column_does_not_stand_before_one_that_is_filled(
    call: CallCommand, served: Served, tmp_path: Path
) -> None:
    rows = [row | {"context": ""} for row in two_answers(COLUMNS["deepeval"], GOLD, PASSAGE)]
    write_csv(tmp_path / "ref.csv", rows)
    said = start(call, "--data", "ref.csv")
    assert "the judge sees: reference, context\n" in said and "is not used" not in said
    assert all(PASSAGE in prompt for prompt in sent(call, served))


def test_a_table_without_them_is_told_nothing(call: CallCommand, tmp_path: Path) -> None:
    write_csv(tmp_path / "plain.csv", two_answers(("question", "answer")))
    assert "judge sees" not in start(call, "--data", "plain.csv")
    assert load_suite(tmp_path, {}).file.use == [] and UNSEEN not in call("run").err


@pytest.mark.parametrize("protocol", KINDS)
def test_from_python_the_judge_sees_what_a_table_has(
    served: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = two_answers(COLUMNS["ragas"], GOLD, [PASSAGE, "Second one."])
    rubric = None if protocol == "pairwise" else "Is it true?"
    settings: dict[str, Any] = {
        "protocol": protocol,
        "rubric": rubric,
        "judge": JUDGE,
    }
    evenhand.run(rows, **settings)
    assert "The judge sees: reference, context\n" in capsys.readouterr().err
    assert served.prompts
    for prompt in served.prompts:
        assert GOLD in prompt and f"[1] {PASSAGE}\n\n[2] Second one." in prompt
    known = len(served.prompts)
    evenhand.run(rows, use=["context"], **settings)
    assert f"{UNSEEN}reference." in capsys.readouterr().err
    assert len(served.prompts) > known and GOLD not in "".join(served.prompts[known:])
