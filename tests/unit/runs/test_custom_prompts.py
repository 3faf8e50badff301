"""Prompts of the user, run unchanged: the examples, and what may go wrong with one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from aiohttp import web

from tests import provider as p
from tests.cases import cases
from tests.conftest import SMALL_MODEL
from tests.sentences import is_told
from tests.suites import (
    at,
    evenhand_here,
    json_here,
    judged,
    ok_here,
    pairs,
    prepared,
    samples,
    stored,
    write_answers,
    write_pairs,
    write_suite,
)

SECRETS = ("de-gezeiten", "de-brot", "model-a", "model-b", '"set"', "run_id", "prompt_variant")


SECRETS += ("question_id", "zh-zhongqiu", "zh-wudeng", "own-prompt-")


SHORT_PROMPTS = {
    "pairwise": "Welcher Text ist besser?\n\nNr | Sieger | C1 | C2 | C3 | C4 | C5 | Begründung\n",
    "rubric": "点検してください。\n{{ Rubric }}\n",
    "weighted": "{{Task_Specific_Rubric}}\n{{ prompt }}\n{{ANSWER}}\n",
}


EXAMPLES = Path(__file__).parents[3] / "examples" / "own-prompts"


PROMPTS = {"pairwise": "richter.md", "rubric": "saiten.md", "weighted": "pingfen.md"}


def example(kind, folder):
    """An example on its own."""
    return Path(shutil.copytree(EXAMPLES / kind, folder / kind))


def prompt_of(kind):
    return (EXAMPLES / kind / PROMPTS[kind]).read_text(encoding="utf-8").strip()


def answering(reply):
    """Says what `reply` makes of the messages."""

    async def behaviour(call):
        text = reply(call.body["messages"])
        return web.Response(body=p.completion(text), content_type="application/json")

    return behaviour


def asked(call):
    """The unit that followed the prompt."""
    return json.loads(call.body["messages"][-1]["content"])


def as_table(messages):
    """A line as the German prompt asks for it, after a thought."""
    unit = json.loads(messages[1]["content"])
    right = ("Flutberge", "Kohlendioxid")
    side = "A" if any(word in unit["candidate_1"] for word in right) else "B"
    head = "Nr | Sieger | C1 | C2 | C3 | C4 | C5 | Begründung"
    line = f"1 | {side} | {side}+ | {side}+ | tie | tie | tie | {side} stimmt."
    return f"Nur eine Einsendung stimmt.\n\n{head}\n{line}"


def as_output(messages):
    """The whole output as the Japanese prompt asks for it, in a fence, meta as it was shown."""
    unit = json.loads(messages[1]["content"])
    quote = unit["model_output"][:10]
    scores = {
        name: {"score": 2, "evidence": [quote], "rationale": "そう書いてある。"}
        for name in ("tejun", "anzen")
    }
    value = {"meta": unit.get("meta", {}), "scores": scores, "failure_tags": [], "notes": ""}
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=1)}\n```"


DIMENSIONS = ("logic_and_fact", "constraint_adherence", "helpfulness_and_creativity")


def as_grade(messages):
    """The whole output as the Chinese prompt asks for it, the sum a little wrong, in a fence."""
    (message,) = messages
    inferred = None if "task_type: fact" in message["content"] else "speculative"
    value = {
        "task_name": "",
        "task_type": inferred or "fact",
        "inferred_task_type": inferred,
        "weights": {},
        "score": dict(zip(DIMENSIONS, (30, 15.5, 9), strict=True)),
        "total_score": 55,
        "reasoning": dict.fromkeys(DIMENSIONS, "理由充分"),
        "critical_fail": False,
        "critical_fail_reason": None,
        "confidence": "low",
    }
    return f"```json\n{json.dumps(value, ensure_ascii=False)}\n```"


REPLIES = {"pairwise": as_table, "rubric": as_output, "weighted": as_grade}


async def run_example(kind, folder, **more):
    """Judge an example twice, of which the second costs nothing."""
    place = example(kind, folder)
    async with p.Provider(answering(REPLIES[kind])) as provider:
        for _ in range(2):
            summary = await judged(prepared(place, judges=[at(provider.url)], **more))
            calls = len(provider.calls)
    assert summary.counts.planned == summary.counts.verdicts > 0
    assert calls == len(provider.calls)
    return provider, stored(place)


async def test_a_german_prompt_that_asks_for_a_table_line(tmp_path):
    provider, rows = await run_example("pairwise", tmp_path)
    assert len(provider.calls) == 4
    for call in provider.calls:
        system, user = call.body["messages"]
        assert system == {"role": "system", "content": prompt_of("pairwise")}
        assert (user["role"], list(asked(call))) == (
            "user",
            ["topic", "candidate_1", "candidate_2"],
        )
        assert "response_format" not in call.body
    shown = [asked(call) for call in provider.calls]
    assert len({one["candidate_1"] for one in shown if "Flut" in one["topic"]}) == 2
    outputs = {row["unit"]: row["output"] for row in rows}
    assert (outputs["de-gezeiten"]["winner"], outputs["de-brot"]["winner"]) == ("A", "B")
    assert outputs["de-brot"]["settled"] == "stable"
    assert outputs["de-brot"]["criteria"]["C1"] == "B+"


async def test_a_japanese_prompt_that_demands_the_whole_output(tmp_path):
    provider, rows = await run_example("rubric", tmp_path)
    before, _, after = prompt_of("rubric").partition("{{ Rubric }}")
    for call in provider.calls:
        system = call.body["messages"][0]["content"]
        assert system.startswith(before) and system.endswith(after)
        assert "- tejun (手順の正しさ) [1, 2, 3]" in system
        assert list(asked(call)) == ["question", "model_output"]
    for row in rows:
        assert list(row["output"]) == ["meta", "scores", "failure_tags", "notes"]
        assert row["output"]["meta"]["run_id"] == "r1"
        assert [fix["code"] for fix in row["fixes"]] == ["unwrapped", "meta"]


async def test_the_copy_of_meta_is_verified_where_it_is_exposed(tmp_path):
    exposed = {"settings": {"expose_meta": True}}
    provider, rows = await run_example("rubric", tmp_path / "copied", **exposed)
    assert {tuple(asked(call)) for call in provider.calls} == {("meta", "question", "model_output")}
    assert all([fix["code"] for fix in row["fixes"]] == ["unwrapped"] for row in rows)
    place = example("rubric", tmp_path / "changed")

    def changed(messages):
        return as_output(messages).replace('"r1"', '"r2"')

    async with p.Provider(answering(changed)) as provider:
        summary = await judged(prepared(place, judges=[at(provider.url)], **exposed))
    assert summary.counts.failures == {"meta_changed": 2}
    assert len(provider.calls) == 6


async def test_a_chinese_prompt_that_inserts_everything(tmp_path):
    provider, rows = await run_example("weighted", tmp_path)
    messages = [call.body["messages"] for call in provider.calls]
    assert [[message["role"] for message in one] for one in messages] == [["user"]] * 2
    texts = "\n".join(one[0]["content"] for one in messages)
    assert (EXAMPLES / "weighted" / "zhongqiu.md").read_text(encoding="utf-8") in texts
    assert "{{" not in texts
    by_unit = {row["unit"]: row for row in rows}
    graded = by_unit["zh-zhongqiu/model-a"]
    assert graded["output"]["total_score"] == 54.5
    assert graded["output"]["weights"]["logic_and_fact"] == 60
    assert {fix["code"] for fix in graded["fixes"]} == {"unwrapped", "meta", "weights", "total"}
    assert graded["flags"] == ["low_confidence"]
    assert by_unit["zh-zhongqiu/model-b"]["flags"] == ["decided_by_code"]
    assert by_unit["zh-wudeng/model-a"]["output"]["inferred_task_type"] == "speculative"


@pytest.mark.model
@pytest.mark.parametrize("kind", PROMPTS)
@pytest.mark.usefixtures("small_model")
def test_the_embedded_judge_runs_them_too(tmp_path, kind, long):
    place = example(kind, tmp_path)
    if not long:  # a model reads a short prompt in half the time
        (place / PROMPTS[kind]).write_text(SHORT_PROMPTS[kind], encoding="utf-8")
    judge = ("--judge", f"embedded/{SMALL_MODEL}", "--limit", "1")
    done = ok_here("run", *judge, "--json", cwd=place)
    summary = json.loads(done.stdout)
    assert (summary["planned"], summary["verdicts"], summary["reasks"]) == (1, 1, 0)
    (row,) = stored(place)
    assert row["output"] is not None
    data = next(place.glob("*.jsonl")).read_text(encoding="utf-8").splitlines()[0]
    (place / "unit.jsonl").write_text(data, encoding="utf-8")
    reply = {"unit": row["unit"], "reply": row["output"]}
    (place / "reply.jsonl").write_text(
        json.dumps(row["output"] if kind == "pairwise" else reply), encoding="utf-8"
    )
    rubric = ("--rubric", "rubric.toml") if kind == "rubric" else ()
    files = ("--units", "unit.jsonl", "--replies", "reply.jsonl", *rubric)
    checked = evenhand_here(f"check --protocol {kind}", *files, cwd=place)
    assert checked.returncode == 0, checked.stdout


def test_show_says_which_prompt_judged(tmp_path):
    (tmp_path / "mine.md").write_text("Grade by {{rubric}}.")
    for prompt in ("mine.md", None):
        write_suite(tmp_path, 1, **({"prompt": prompt} if prompt else {}))
        evenhand_here("run", cwd=tmp_path)
        about = json_here("show", cwd=tmp_path)
        assert about["prompt"] == prompt
        text = evenhand_here("show", cwd=tmp_path).stdout
        assert (f"\n{'prompt':17} mine.md {about['protocol_version']}\n" in text) is bool(prompt)


BAD = {
    "missing": (None, "files.unreadable"),
    "empty": (b"", "files.empty_prompt"),
    "blank": (b" \n\t\n", "files.empty_prompt"),
    "a byte order mark alone": (b"\xef\xbb\xbf", "files.empty_prompt"),
    "not UTF-8": ("Оцените.".encode("cp1251"), "files.unreadable"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_prompt_that_cannot_be_used_is_told_and_nothing_is_sent(tmp_path, name):
    content, key = BAD[name]
    if content is not None:
        (tmp_path / "mine.md").write_bytes(content)
    for write in (write_suite, write_pairs, write_answers):
        write(tmp_path, 1, prompt="mine.md")
        done = evenhand_here("run", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert "mine.md: " in done.stderr and is_told(done.stderr, key), done.stderr


@cases
def test_a_protocol_folder_that_cannot_be_used_is_told_and_nothing_is_sent(
    tmp_path, protocol, place, key
):
    texts = {
        "foreign": "kind = 'rubric' # критерии".encode("cp1251"),
        "unkind": b'kind = "poetry"',
        "mute": b'kind = "rubric"',
    }
    if protocol != "none":
        (tmp_path / protocol).mkdir()
    if text := texts.get(protocol):
        (tmp_path / protocol / "protocol.toml").write_bytes(text)
    write_suite(tmp_path, 1, protocol=protocol)
    done = evenhand_here("run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert place in done.stderr and is_told(done.stderr, key), done.stderr


GERMAN = """<!-- user -->
{{question}}
{{model_output}}
{{rubric}}
{{shape}}
<!-- again -->
Falsch: {{problems}}
"""


async def test_a_protocol_folder_in_another_language_with_its_own_phrase(tmp_path):
    files = {
        "protocol.toml": 'kind = "rubric"\n',
        "words/de.toml": 'no_evidence = "kein Beleg gefunden"\n',
        "prompts/de.md": GERMAN,
    }
    for name, text in files.items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script = [saying("no evidence found"), saying("Es wurde KEIN BELEG gefunden.")]
    async with p.Provider(script) as provider:
        write_suite(tmp_path, 1, at(provider.url), protocol="mine", language="de")
        summary = await judged(tmp_path)
    assert (summary.counts.verdicts, len(provider.calls)) == (1, 2)
    again = provider.calls[1].body["messages"][-1]["content"]
    assert again.startswith("Falsch: ") and "kein Beleg gefunden" in again
    # Units keep their own language beside a custom prompt.
    (tmp_path / "mine.md").write_text("Judge.")
    async with p.Provider(saying("該当する根拠なし")) as provider:
        rows = [row | {"language": "ja"} for row in samples(1)]
        write_suite(tmp_path, rows, at(provider.url), prompt="mine.md", language="de")
        assert (await judged(tmp_path)).counts.verdicts == 1


@pytest.mark.parametrize("kind", ["pairwise", "weighted"])
async def test_an_own_prompt_needs_no_prompt_and_no_texts_of_its_protocol(tmp_path, kind):
    """A folder that changes the criteria alone, beside a prompt in another language."""
    tables = {
        "pairwise": 'priority = ["geschmack"]\n[[criteria]]\nid = "geschmack"\n',
        "weighted": '[[dimensions]]\nid = "geschmack"\n[[types]]\nid = "suppe"\n'
        "weights = { geschmack = 100 }\n",
    }
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "protocol.toml").write_text(f'kind = "{kind}"\n{tables[kind]}')
    (tmp_path / "urteil.md").write_text("Urteile.")
    replies = {
        "pairwise": "1 | tie | tie | gleich",
        "weighted": json.dumps(
            {
                "inferred_task_type": "suppe",
                "critical_fail": False,
                "critical_fail_reason": None,
                "reasoning": {"geschmack": "gut"},
                "score": {"geschmack": 70},
                "confidence": "high",
            }
        ),
    }
    own = {"protocol": "mine", "prompt": "urteil.md", "language": "de"}
    async with p.Provider([p.saying("Hm."), p.saying(replies[kind])]) as provider:
        if kind == "pairwise":
            write_pairs(tmp_path, pairs(1), at(provider.url), **own)
        else:
            row = {"task_name": "t", "prompt": "p", "answer": "a", "rubric": "- lecker\n"}
            write_answers(tmp_path, [row], at(provider.url), **own)
        summary = await judged(tmp_path)
    assert summary.counts.verdicts == 1
    (row,) = stored(tmp_path)
    output = row["output"]
    found = output["winner"] if kind == "pairwise" else output["total_score"]
    assert found == ("tie" if kind == "pairwise" else 70)


@pytest.mark.parametrize("kind", PROMPTS)
async def test_nothing_of_ids_models_and_meta_is_in_any_request(tmp_path, kind):
    provider, _ = await run_example(kind, tmp_path)
    for call in provider.calls:
        told = json.dumps(call.body, ensure_ascii=False)
        assert not [secret for secret in SECRETS if secret in told]


def saying(rationale):
    given = {"evidence": [], "rationale": rationale, "score": 1}
    value = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    return p.saying(json.dumps(value))
