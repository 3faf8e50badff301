"""The tasks of docs/coming-from.md by the page's own commands, and its counts."""

from __future__ import annotations

import json
import re

import pytest

from tests.crash.watching import counts
from tests.provider import child
from tests.stories.tables import sentences, write_table
from tests.stories.telling import BLOCK, ROOT, at_loopback, blocks, flowing, told, typed

PAGE = "docs/coming-from.md"
TOOLS = [{"type": "function", "function": {"name": "find_order"}}]


@pytest.fixture
def url():
    with child("reading") as address:
        yield address


def suite_of(heading, folder):
    (suite,) = blocks(PAGE, heading, "toml")
    (folder / "evenhand.toml").write_text(suite, encoding="utf-8")
    return blocks(PAGE, heading)


def test_pass_or_fail_in_ci(tmp_path, url):
    heading, environ = "Pass or fail in CI", at_loopback(url)
    rows = [(f"May I return order {n}?", sentences("yes", 5)) for n in range(3)]
    write_table(tmp_path / "answers.csv", [("question", "answer"), *rows])
    (script,) = suite_of(heading, tmp_path)
    assert "3 of 3 pass" in flowing(told(script, tmp_path, environ))
    curt = ("Do you ship to Norway?", "No. Go away.")
    write_table(tmp_path / "answers.csv", [("question", "answer"), *rows, curt])
    assert typed(script, tmp_path, environ).returncode == 1
    (failing,) = json.loads(told("evenhand show --only fail --json", tmp_path, environ))[
        "judgments"
    ]
    assert failing["question"] == curt[0]
    assert typed("evenhand gate --min-pass-rate 0.9", tmp_path, environ).returncode == 7
    (code,) = blocks(PAGE, heading, "python")
    (tmp_path / "test_answers.py").write_text(code)
    (command,) = blocks(PAGE, heading, "")
    done = typed(f"{command.strip()} -q -p no:cacheprovider", tmp_path, environ)
    assert done.returncode == 1 and "1 failed, 3 passed" in done.stdout
    assert 'wanted at least 0.70: "No. Go away."' in done.stdout


def test_a_ready_metric(tmp_path, url):
    heading, environ = "A ready metric", at_loopback(url)
    rows = [(f"What is item {n}?", sentences("it", n), "It is all here.") for n in (1, 2, 4)]
    write_table(tmp_path / "rag.csv", [("question", "answer", "context"), *rows])
    (script,) = blocks(PAGE, heading)
    said = flowing(told(script, tmp_path, environ))
    assert "the judge also sees context" in said and "Mean scores over 3 answers" in said
    (mark,) = blocks(PAGE, heading, "toml")
    with (tmp_path / "rag/evenhand.toml").open("a") as file:
        file.write(mark)
    assert "1 of 3 pass" in flowing(told("evenhand run rag", tmp_path, environ))
    assert counts(url)["calls"] == 3, "a pass mark costs no call"


def test_an_agents_transcript(tmp_path, url):
    call = {"id": "1", "function": {"name": "find_order", "arguments": '{"order": 7}'}}
    asked = {"role": "user", "content": "Where is order 7?"}
    calling = [asked, {"role": "assistant", "tool_calls": [call]}]
    calling += [{"role": "tool", "tool_call_id": "1", "content": "left on Monday"}]
    logs = [calling, [asked, {"role": "assistant", "content": "It left on Tuesday."}]]
    lines = [json.dumps({"messages": log, "tools": TOOLS}) + "\n" for log in logs]
    (tmp_path / "logs.jsonl").write_text("".join(lines))
    (script,) = blocks(PAGE, "An agent's transcript")
    assert "2 verdicts + 0 failures" in flowing(told(script, tmp_path, at_loopback(url)))
    assert 'judged = "conversation"' in (tmp_path / "agent/evenhand.toml").read_text()


def test_checks_by_code_beside_the_judge(tmp_path, url):
    heading, environ = "Checks by code beside the judge", at_loopback(url)
    texts = [
        '{"country": "France. So it is. All of it. Yes. It is."}',
        "It is in France.",
        '{"city": "Paris"}',
    ]
    rows = [(f"Where is tower {n}?", text) for n, text in enumerate(texts)]
    write_table(tmp_path / "replies.csv", [("question", "answer"), *rows])
    (script,) = suite_of(heading, tmp_path)
    assert typed(script, tmp_path, environ).returncode == 1
    judged = json.loads(told("evenhand show --only fail --json", tmp_path, environ))["judgments"]
    checks = {row["question"]: row["checks"] for row in judged}
    assert checks == {
        "Where is tower 1?": {"json": False, "country": False, "short": True},
        "Where is tower 2?": {"json": True, "country": False, "short": True},
    }
    assert counts(url)["calls"] == 2, "what is no JSON is not sent"


def test_which_of_two_prompts_is_better(tmp_path, url):
    """The model at the loopback repeats its prompt, which is better the more it says."""
    environ = at_loopback(url)
    rows = [(f"Where is order {n}?",) for n in range(40)]
    write_table(tmp_path / "questions.csv", [("question",), *rows])
    (tmp_path / "v1.md").write_text("Be brief. {{question}}")
    (tmp_path / "v2.md").write_text("Be kind. Be complete. Be clear. {{question}}")
    init, run = blocks(PAGE, "Which of two prompts is better")[0].strip().splitlines()
    told(init, tmp_path, environ)
    ahead = json.loads(told(f"{run} --dry-run --json", tmp_path, environ))
    assert ahead["answers"]["calls"]["least"] == ahead["calls"]["least"] == 80
    said = flowing(told(run, tmp_path, environ))
    assert "v2 is better than v1 overall" in said and counts(url)["calls"] == 160
    (tmp_path / "shop/v2.md").write_text("Be kind. {{question}}")
    told(run, tmp_path, environ)
    assert counts(url)["calls"] == 240, "one prompt's answers are asked for and judged again"


def counted(text):
    """Return the lines to write and the commands to type, of a text that shows both."""
    lines = commands = 0
    for language, code in BLOCK.findall(text):
        number = sum(1 for line in code.splitlines() if line.strip())
        commands += number if language == "sh" else 0
        lines += number if language and language != "sh" else 0
    return lines, commands


def test_the_table_counts_what_is_shown():
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    others = (ROOT / "docs/internals/coming-from.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| \[(.+?)\]\(.*?\) (\|.*)$", page, re.MULTILINE))
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", others, re.MULTILINE | re.DOTALL))
    own = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert table.keys() == sections.keys() <= own.keys()
    for task, row in table.items():
        tools = dict(re.findall(r"^\*\*(\w+)\*\*\n(.*?)(?=^\*\*|\Z)", sections[task], re.M | re.S))
        shown = [tools.get(tool, "") for tool in ("DeepEval", "promptfoo")]
        shown.append(own[task].partition("in pytest")[0])
        told_counts = re.findall(r"(\d+) lines, (\d+) commands?", row)
        assert told_counts == [tuple(map(str, counted(text))) for text in shown if text], task
        if "Inspect" in tools:
            assert (
                "Inspect takes {} lines and {} commands".format(*counted(tools["Inspect"])) in page
            )
