"""Failure tags of a protocol folder: in prompt, report, view, figures and export."""

from __future__ import annotations

import json

import pytest

from evenhand.files.protocols import find_protocol, lint, protocol_texts
from evenhand.kinds.protocol import ProtocolError
from tests.cases import cases
from tests.sentences import refused
from tests.suites import evenhand_here, ok_here, samples, write_suite
from tests.unit.web.serving import listed, served

TAGS = """
[[tags]]
id = "F1"
zh = "编造事实"
meaning = { zh = "写出了材料中没有的内容。" }

[[tags]]
id = "F2"
zh = "答非所问"
"""


JUDGE = """
import json, re
OUTPUT = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

async def good(messages, schema, params):
    told = "\\n".join(message["content"] for message in messages)
    text = OUTPUT.search(told)[2]
    if schema["properties"]["failure_tags"]["items"]["enum"] != ["F1", "F2"]:
        return "the form offers other tags"
    if len(messages) == 2 and "number 3 " in text:
        tags = ["A"]
    else:
        tags = ["F2", "F1"] if "number 1 " in text else ["F2"]
    given = {"evidence": [text[:20]], "rationale": "依据引文。", "score": 3}
    scores = {"correct": given, "clear": given}
    return json.dumps({"scores": scores, "failure_tags": tags, "notes": ""})
"""


def house(folder, tags=TAGS):
    """A protocol that speaks Chinese alone, with tags of its own."""
    texts = protocol_texts("rubric")
    texts["protocol.toml"] += tags
    for name, text in texts.items():
        if name == "protocol.toml" or name.endswith(("/zh.md", "/zh.toml")):
            path = folder / "house" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def judged_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tags")
    house(folder)
    rows = samples(6)
    for i, row in enumerate(rows):
        row["meta"] = {"prompt_variant": f"v{i % 2}", "question_id": f"q{i // 2}"}
    write_suite(folder, rows, judge=JUDGE, protocol="house", language="zh")
    done = ok_here("run --json", cwd=folder)
    counts = json.loads(done.stdout)
    assert (counts["verdicts"], counts["reasks"]) == (6, 1), "a built-in letter is asked again"
    return folder


def test_the_judge_is_told_of_them_and_of_no_other(judged_folder):
    shown = evenhand_here("protocols show house --language zh", cwd=judged_folder)
    assert "- F1：编造事实。写出了材料中没有的内容。\n- F2：答非所问。\n" in shown.stdout
    assert "指令偏离" not in shown.stdout
    unit = evenhand_here("show latest u3 --json", cwd=judged_folder)
    assert "请从以下取值中选一个：F1, F2。" in unit.stdout


def test_the_export_has_their_letters_in_the_protocols_order(judged_folder):
    ok_here("export latest -o out.jsonl", cwd=judged_folder)
    lines = (judged_folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    tags = [json.loads(line)["failure_tags"] for line in lines]
    assert tags == [["F2"], ["F1", "F2"], ["F2"], ["F2"], ["F2"], ["F2"]]


@pytest.mark.parametrize("language", ["zh", "ru"])
def test_the_report_names_them_as_the_prompt_does(judged_folder, language):
    """In a language that the protocol has no names in, by those it has."""
    ok_here(f"report -o r.html --language {language} --force", cwd=judged_folder)
    text = (judged_folder / "r.html").read_text(encoding="utf-8")
    assert "F1 · 编造事实" in text and "F2 · 答非所问" in text
    compared = evenhand_here("compare --by prompt_variant --json", cwd=judged_folder)
    assert {row["tag"] for row in json.loads(compared.stdout)["tags"]} == {"F1", "F2"}


def test_the_view_names_and_filters_by_them(judged_folder):
    with served(judged_folder / "evenhand.db") as site:
        page = site.get("/runs/latest/units?lang=zh").text
        assert '<span class="chip" title="答非所问">F2</span>' in page
        assert '<option value="F1"' in page
        assert "编造事实" in page
        assert '<option value="A"' not in page
        unit = site.get("/runs/latest/unit?id=u1&lang=zh").text
        assert "F1 · 编造事实" in unit
        assert listed(site, "latest", "tag=F1") == ["u1"]


@cases
def test_what_is_wrong_with_them_is_told(tmp_path, tags, key, says):
    house(tmp_path, tags)
    protocol = find_protocol("house", tmp_path)
    with refused(ProtocolError, key, says):
        protocol.words("zh")
    found = {finding.message.key for finding in lint("house", tmp_path)}
    assert found & {key, "files.entry_without_text"}
