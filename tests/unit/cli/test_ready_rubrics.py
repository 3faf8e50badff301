"""Ready rubrics: `init --rubric` makes a suite of them that runs, and `protocols` lists them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.files.ready_rubrics import ready_names, ready_rubrics
from evenhand.kinds.protocol import LANGUAGES
from evenhand.suite import load_suite
from tests.conftest import SMALL_MODEL
from tests.suites import stored, write_rows
from tests.unit.cli.conftest import put

FILLER = """
import json
async def f(messages, schema, params):
    scores = schema["properties"]["scores"]["properties"]
    low = {name: part["properties"]["score"]["enum"][0] for name, part in scores.items()}
    words = "no evidence found свидетельств не найдено 未找到相关证据 該当する根拠なし"
    filled = {n: {"evidence": [], "rationale": words, "score": s} for n, s in low.items()}
    return json.dumps({"scores": filled, "failure_tags": [], "notes": ""})
"""


pytestmark = pytest.mark.usefixtures("no_keys")


def test_ready_rubrics_are_listed_in_the_language_of_the_terminal(call, monkeypatch):
    listed = call.json("protocols")["rubrics"]
    assert [each["name"] for each in listed] == list(ready_names())
    needs = {each["name"]: each["needs"] for each in listed}
    assert needs["faithfulness"] == ["context"] and needs["tone"] == []
    monkeypatch.setenv("COLUMNS", "200")
    for language in LANGUAGES:
        monkeypatch.setenv("EVENHAND_LANG", language)
        told = call("protocols").out
        for each in ready_rubrics(ready_names(), language):
            assert each.name in told and each.about in told


@pytest.mark.parametrize("language", LANGUAGES)
def test_ready_rubrics_become_one_rubric_with_examples_that_run(call, tmp_path, language):
    names = "--rubric faithfulness --rubric toxicity"
    made = call.ok(f"init made {names} --language {language}")
    assert all(name in made.out for name in ("faithfulness  ", "toxicity  ", "context"))
    rubric = json.loads(Path("made/rubric.json").read_text("utf-8"))
    assert [each["id"] for each in rubric["dimensions"]] == ["faithfulness", "toxicity"]
    assert rubric["dimensions"][1]["higher_is"] == "worse"
    suite = load_suite(Path("made"), {}).file
    assert (suite.use, suite.language, suite.protocol) == (["context"], language, "rubric")
    put("made/filler.py", FILLER)
    ran = call.json("run made --judge python/filler:f")
    assert ran["verdicts"] == ran["planned"] == 2
    shown = call("show latest faithfulness-bad --store sqlite:made/evenhand.db").out
    assert "[[context " in shown
    call.refused(f"init made {names}", says=["made"])


def test_ready_rubrics_judge_a_table_in_its_language_and_name_the_columns_it_lacks(call, tmp_path):
    rows = [{"question": "Почему?", "answer": "Потому что.", "context": "Так вышло."}]
    write_rows(tmp_path, rows, "a.jsonl")
    names = ("--rubric", "faithfulness", "--rubric", "correctness")
    done = call.ok("init --data a.jsonl", *names)
    assert "--map reference=COLUMN" in done.out and "--map context=COLUMN" not in done.out
    assert load_suite(tmp_path, {}).file.use == ["reference", "context"]
    assert "Верность контексту" in Path("rubric.json").read_text("utf-8")
    put("filler.py", FILLER)
    assert call.json("run --judge python/filler:f")["verdicts"] == 1


def test_a_conversation_holds_the_earlier_messages_that_a_ready_rubric_needs(call, tmp_path):
    turns = [
        ("user", "Four of us."),
        ("assistant", "When?"),
        ("user", "Now."),
        ("assistant", "Ok."),
    ]
    messages = [{"role": role, "content": text} for role, text in turns]
    write_rows(tmp_path, [{"messages": messages}], "chats.jsonl")
    done = call.ok("init --data chats.jsonl --rubric conversation")
    assert "--map messages" not in done.out, done.err
    assert load_suite(tmp_path, {}).file.use == []
    call.ok("run --dry-run")


@pytest.mark.parametrize("data", ["", "--data a.csv"])
def test_a_ready_rubric_that_is_not_there_is_answered_with_those_that_are(call, data):
    put("a.csv", "question,answer\nWhy?,So it is.\n")
    says = ['"nosuch"', *ready_names()]
    call.refused(f"init made --rubric nosuch {data}", says=says)
    call.refused(f"init made --rubric tone --protocol pairwise {data}", says=["pairwise"])
    assert not Path("made").exists()


@pytest.mark.model
@pytest.mark.usefixtures("small_model")
def test_examples_of_ready_rubrics_get_verdicts_from_an_embedded_judge(call, tmp_path):
    """Verdicts, not scores: the smallest model judges no better than chance."""
    call.ok("init --rubric relevancy --rubric format")
    ran = call.ok(f"run --judge embedded/{SMALL_MODEL} --limit 2 --json")
    assert ran.json["verdicts"] == 2, ran.err
    for row in stored(tmp_path):
        if row["output"]:
            assert all(1 <= each["score"] <= 4 for each in row["output"]["scores"].values())


def test_tool_calls_are_judged_where_a_rubric_is_about_them(call):
    asked = {"role": "user", "content": "The weather in Riga?"}
    tool = {"name": "weather", "arguments": '{"city": "Riga"}'}
    called = {"role": "assistant", "tool_calls": [{"id": "1", "function": tool}]}
    put("log.jsonl", json.dumps({"messages": [asked, called]}))
    rubrics = {"tool_calls": "tool-use", "last": "tone", "conversation": "tool-use tone"}
    for judged, names in rubrics.items():
        flags = " ".join(f"--rubric {name}" for name in names.split())
        assert call(f"init {judged} --data log.jsonl {flags}").code == 0
        assert load_suite(Path(judged), {}).file.judged == judged
    told = {"role": "assistant", "content": "Rain."}
    put("log.jsonl", "\n".join(json.dumps({"messages": [asked, each]}) for each in (called, told)))
    assert call("init mixed --data log.jsonl --rubric tool-use").code == 0
    assert load_suite(Path("mixed"), {}).file.judged == "conversation"
