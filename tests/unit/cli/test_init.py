"""`init` makes a suite that runs as it is: on example data, or on the table that somebody has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.kinds import KINDS
from evenhand.suite import load_suite
from tests.suites import GRADE_JUDGE, PAIR_JUDGE
from tests.unit.cli.conftest import CallCommand

TABLES = {
    "en": ("question", "answer", "Why is the sky blue?", "Air scatters blue light most."),
    "ru": ("Вопрос", "Ответ", "Почему небо голубое?", "Воздух рассеивает синий свет сильнее."),
    "zh": ("问题", "回答", "天空为什么是蓝色的？", "空气对蓝光散射得最多。"),
    "ja": ("質問", "回答", "空はなぜ青いのですか。", "空気が青い光をよく散乱するからです。"),
}
FILLER = """
import json
async def f(messages, schema, params):
    scores = schema["properties"]["scores"]["properties"]
    low = {name: part["properties"]["score"]["enum"][0] for name, part in scores.items()}
    words = "no evidence found свидетельств не найдено 未找到相关证据 該当する根拠なし"
    filled = {n: {"evidence": [], "rationale": words, "score": s} for n, s in low.items()}
    return json.dumps({"scores": filled, "failure_tags": [], "notes": ""})
"""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "OPENROUTER"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "models"))


def write_table(folder: Path, language: str) -> Path:
    question, answer, asked, answered = TABLES[language]
    path = folder / "answers.csv"
    rows = [f"{asked};{model};worth {i} {answered}" for i, model in enumerate(("m1", "m2"))]
    path.write_text("\n".join([f"{question};model;{answer}", *rows]) + "\n", encoding="utf-8")
    return path


def judges(folder: Path) -> dict[str, str]:
    """A judge of Python for each protocol."""
    for name, text in (("filler", FILLER), ("pairs", PAIR_JUDGE), ("grades", GRADE_JUDGE)):
        (folder / f"{name}.py").write_text(text)
    return {"rubric": "filler:f", "pairwise": "pairs:content", "weighted": "grades:good"}


@pytest.mark.parametrize("language", TABLES)
@pytest.mark.parametrize("protocol", KINDS)
def test_a_table_becomes_a_suite_that_runs(
    call: CallCommand, tmp_path: Path, protocol: str, language: str
) -> None:
    write_table(tmp_path, language)
    done = call("init", "--data", "answers.csv", "--protocol", protocol)
    assert done.code == 0, done.err
    assert f"for the protocol {protocol}, in {language}" in done.out
    suite = load_suite(tmp_path, {}).file
    assert (suite.protocol, suite.language) == (protocol, language)
    judge = f"python/{judges(tmp_path)[protocol]}"
    ran = call("run", "--judge", judge, "--json")
    assert ran.code == 0 and ran.json["verdicts"] == (1 if protocol == "pairwise" else 2), ran.err
    assert "Columns of" not in ran.err, "what was understood stands in the suite"
    if protocol != "pairwise":
        compared = call("compare", "latest", "--json").json
        assert (compared["by"], compared["baseline"]) == ("model", "m1")


@pytest.mark.parametrize("language", TABLES)
def test_the_first_rubric_is_in_the_language_of_the_data(
    call: CallCommand, tmp_path: Path, language: str
) -> None:
    write_table(tmp_path, language)
    assert call("init", "--data", "answers.csv").code == 0
    checked = call("check", "--rubric", "rubric.json")
    assert checked.code == 0
    rubric = json.loads((tmp_path / "rubric.json").read_text("utf-8"))
    definitions = {
        "en": "Is what the answer says true?",
        "ru": "Верно ли то, что утверждается в ответе?",
    }
    if language in definitions:
        assert rubric["dimensions"][0]["definition"] == definitions[language]
    call("init", "w", "--data", "answers.csv", "--protocol", "weighted")
    assert call("check", "--protocol", "weighted", "--rubric", "w/rubric.md").code == 0


@pytest.mark.parametrize(
    ("language", "encoding"),
    [("ru", "cp1251"), ("zh", "gb18030"), ("ja", "shift_jis"), ("ja", "euc-jp"), ("ru", "utf-16")],
)
def test_a_table_that_is_not_utf_8_is_read_as_what_reads_as_text_and_the_suite_says_so(
    call: CallCommand, tmp_path: Path, language: str, encoding: str
) -> None:
    path = write_table(tmp_path, language)
    path.write_bytes(path.read_text("utf-8").encode(encoding))
    done = call("init", "--data", "answers.csv")
    assert done.code == 0, done.err
    assert f"encoding             {encoding}" in done.out and f"in {language}\n" in done.out
    judges(tmp_path)
    ran = call("run", "--judge", "python/filler:f", "--json")
    assert ran.code == 0 and ran.json["verdicts"] == 2, ran.err
    exported = call("show", "latest", "m1", "--json").json
    assert exported["unit"]["question"] == TABLES[language][2]


def test_a_table_elsewhere_is_copied_and_nothing_is_overwritten(
    call: CallCommand, tmp_path: Path
) -> None:
    write_table(tmp_path, "en")
    done = call("init", "mine", "--data", "answers.csv")
    assert done.code == 0 and "answers.csv  (a copy" in done.out
    assert (tmp_path / "mine/answers.csv").read_bytes() == (tmp_path / "answers.csv").read_bytes()
    assert call("run", "mine", "--dry-run").code == 0
    again = call("init", "mine", "--data", "answers.csv")
    assert again.code == 2 and "is there already" in again.err


def test_a_table_of_pairs_and_one_of_tasks_are_known_as_such(
    call: CallCommand, tmp_path: Path
) -> None:
    pair = {"topic": "t", "candidates": [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair))
    assert "for the protocol pairwise" in call("init", "p", "--data", "pairs.jsonl").out
    task = {"task_name": "t", "prompt": "p", "answer": "a"}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
    assert "for the protocol weighted" in call("init", "w", "--data", "tasks.jsonl").out


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("prompt,input,answer", '"prompt" and "input" would each fit as "question"'),
        ("a,b,c", 'no column looks like the field "question"'),
    ],
)
def test_a_table_that_is_not_understood_makes_no_suite(
    call: CallCommand, tmp_path: Path, header: str, says: str
) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n1,2,3\n")
    done = call("init", "--data", "a.csv")
    assert done.code == 3 and says in done.err
    assert all(name in done.err for name in header.split(","))
    assert not (tmp_path / "evenhand.toml").exists()


def test_the_judge_is_the_one_whose_key_is_set(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert "Judge: anthropic/" in call("init", "one").out
    forecast = call("run", "one", "--dry-run", "--json")
    assert forecast.code == 0 and forecast.json["price_usd"]["most"] > 0
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert "Judge: openai/" in call("init", "two").out
    assert "Judge: ollama/m" in call("init", "three", "--judge", "ollama/m").out
    assert call("init", "four", "--judge", "opnai/m").code == 2


def test_without_a_key_the_embedded_judge_is_offered_and_a_dry_run_needs_no_model(
    call: CallCommand, tmp_path: Path
) -> None:
    done = call("init")
    assert "Judge: embedded" in done.out and "evenhand models get " in done.out
    forecast = call("run", "--dry-run", "--json")
    assert forecast.code == 0 and forecast.json["calls"]["least"] > 0
    assert "is not here" in forecast.json["lacking"][0]
    ran = call("run")
    assert ran.code == 2 and "evenhand models get " in ran.err


def test_two_tables_are_not_taken_for_one(call: CallCommand, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("question,answer\nWhy?,So.\n")
    told = call("init", "--data", "a.csv", "--data", "b.csv")
    assert told.code == 2
    assert '{ file = "a.csv", prompt_variant = "v1" }' in " ".join(told.err.split())
    assert not (tmp_path / "evenhand.toml").exists()
