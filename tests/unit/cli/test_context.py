"""Reference, context and earlier messages of a table reach the judge, or it is said that they do
not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenhand
from evenhand.data.write import write
from evenhand.suite import load_suite
from evenhand.words import LANGUAGES, words
from tests.sentences import is_told

SEES = ["reference, context"]
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
LABELS = tuple(words(language)("files.judge_sees") for language in LANGUAGES)
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
def judge(call):
    Path("judge.py").write_text(JUDGE)


def two_answers(names, *values):
    """One question that two models answer, with what the judge is to see."""
    return [
        dict(zip((*names, "model"), ("Who wrote it?", f"{m} says", *values, m), strict=True))
        for m in ("m1", "m2")
    ]


def start(call, rows, options="", file="rows.jsonl"):
    write(Path(file), rows)
    done = call.ok(f"init --judge {MODEL} --data {file} {options}")
    return done.out


def prompts():
    return [json.loads(line) for line in Path("prompts.jsonl").read_text().splitlines()]


def sees(said):
    """Return what init says that the judge also sees."""
    lines = [line.strip() for line in said.splitlines() if line.strip().startswith(LABELS)]
    return [line.split("  ")[-1].strip() for line in lines]


def is_unseen(said):
    """Return True if something of the table is said to be unseen."""
    return any(is_told(said, "data.unseen", language) for language in LANGUAGES)


def assert_sent(call, *texts):
    """A run has nothing to tell of what the judge does not see, and every prompt holds these."""
    assert not is_unseen(call("run --json").err)
    for prompt in prompts():
        assert all(text in prompt for text in texts)


@pytest.mark.parametrize("columns", COLUMNS)
def test_columns_that_init_finds_stand_in_every_prompt(call, columns):
    rows = two_answers(COLUMNS[columns], GOLD, PASSAGE)
    # A table of questions and answers can be judged in every way.
    kind = KINDS[list(COLUMNS).index(columns) % 3]
    assert sees(start(call, rows, f"--protocol {kind}", file="rows.csv")) == SEES
    assert load_suite(Path(), {}).file.use == ["reference", "context"]
    assert_sent(call, GOLD, PASSAGE)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_the_user_maps_and_lists_reach_the_judge(call, kind):
    passages = [PASSAGE, "Second one."]
    rows = two_answers(("question", "answer", "key", "given"), {"text": GOLD}, passages)
    mapped = "--map reference=key.text --map context=given"
    assert sees(start(call, rows, f"--protocol {kind} {mapped}")) == SEES
    assert_sent(call, GOLD, f"\n[1] {PASSAGE}\n\n[2] Second one.\n")


def test_a_row_per_pair_brings_its_reference(call):
    candidates = [{"id": name, "text": f"{name} says"} for name in ("c1", "c2")]
    row = {"topic": "Who?", "candidates": candidates, "expected_output": GOLD, "context": [PASSAGE]}
    assert sees(start(call, [row])) == SEES
    assert_sent(call, GOLD, PASSAGE)


def test_no_value_is_dropped_for_being_an_object_or_0(call):
    documents = [{"page_content": "Found there.", "metadata": {"page": 3}}]
    rows = two_answers(("question", "answer", "reference", "context"), 0, documents)
    assert sees(start(call, rows)) == SEES
    assert_sent(call, "Found there.", "\n0\n[[/reference ")


def test_answers_to_a_topic_are_judged_by_all_their_contexts(call):
    rows = two_answers(RAGAS, GOLD, ["Both had it.", "First had it."])
    rows[1]["retrieved_contexts"] = ["Both had it.", "Second had it."]
    said = start(call, rows, "--protocol pairwise")
    assert is_told(said, "kinds.several_values", field="context", n=1)
    assert_sent(call, "\n[1] Both had it.\n\n[2] First had it.\n\n[3] Second had it.\n")


def test_an_empty_column_does_not_stand_before_one_that_is_filled(call):
    rows = [row | {"context": ""} for row in two_answers(DEEPEVAL, GOLD, PASSAGE)]
    said = start(call, rows, file="rows.csv")
    assert sees(said) == SEES
    assert_sent(call, PASSAGE)


@pytest.mark.parametrize("name", ["messages", "chat_history", "conversation"])
def test_earlier_messages_reach_the_judge(call, name):
    said = start(call, two_answers(("question", "answer", name), EARLIER))
    assert sees(said) == ["messages"]
    assert_sent(call, "Hello there", "Good evening")


def test_a_judge_that_is_to_see_nothing_is_not_spoken_of(call):
    """Messages that hold the answer would show a judge of pairs which answer was given."""
    log = [*EARLIER, {"role": "assistant", "content": "m1 says"}]
    rows = two_answers(("question", "answer", "messages"), log)
    said = start(call, rows, "--protocol pairwise")
    assert sees(said) == [] and is_told(said, "data.unseen", names='"messages"')
    assert load_suite(Path(), {}).file.use == []
    Path("evenhand.toml").unlink()
    said = start(call, two_answers(("question", "answer")), "--protocol pairwise")
    assert sees(said) == [] and not is_unseen(call("run").err)


@pytest.mark.parametrize("kind", KINDS)
def test_run_notes_in_one_line_what_the_judge_does_not_see(call, kind):
    rows = two_answers(DEEPEVAL, GOLD, PASSAGE)
    start(call, [row | {"messages": "Earlier: hello"} for row in rows], f"--protocol {kind}")
    suite = Path("evenhand.toml")
    text = suite.read_text(encoding="utf-8")
    use = 'use = ["reference", "context", "messages"]'
    assert use in text
    for shown, unseen in (
        ("", '"reference", "context", "messages"'),
        ('"context"', '"reference", "messages"'),
    ):
        suite.write_text(text.replace(use, f"use = [{shown}]"), encoding="utf-8")
        for options in ("--dry-run", "", ""):  # the second run reads no file again
            (note,) = filter(is_unseen, call(f"run {options}").err.splitlines())
            assert is_told(note, "data.unseen", names=unseen) and "use = [" in note
    assert not any(GOLD in prompt for prompt in prompts())


@pytest.mark.filterwarnings("ignore::evenhand.errors.NoVerdictsWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_from_python_the_judge_sees_what_a_table_has(capsys, kind):
    rows = two_answers(RAGAS, GOLD, [PASSAGE, "Second one."])
    rubric = None if kind == "pairwise" else "Is it true?"
    settings = {"protocol": kind, "rubric": rubric, "judge": MODEL}
    evenhand.run(rows, **settings)
    assert is_told(capsys.readouterr().err, "runs.judge_sees", names='"reference", "context"')
    known = prompts()
    for prompt in known:
        assert GOLD in prompt and f"[1] {PASSAGE}\n\n[2] Second one." in prompt
    evenhand.run(rows, use=["context"], **settings)
    assert is_told(capsys.readouterr().err, "data.unseen", names='"reference"')
    more = prompts()[len(known) :]
    assert more and GOLD not in "".join(more)
