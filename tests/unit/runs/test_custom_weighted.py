"""A weighted protocol of the user, and where the rubrics of a suite may stand."""

from __future__ import annotations

import asyncio
import json
import shutil

from tests import provider as p
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import TASK, answers, at, evenhand_here, judged, ok_here, stored, write_answers

PROTOCOL = """
kind = "weighted"
about = "Recipes."

[[dimensions]]
id = "taste"
en = "Does it sound tasty?"

[[dimensions]]
id = "safety"
en = "Is it safe to eat?"

[[types]]
id = "soup"
weights = { taste = 49.5, safety = 50.5 }
en = "Something to spoon."

[[types]]
id = "cake"
weights = { taste = 90, safety = 10 }
en = "Something sweet."
"""


PROMPT = """<!-- user -->
{{types}}
{{critical}}
{{facts}}
{{rubric}}
{{prompt}}
{{answer}}
{{shape}}
<!-- again -->
Wrong: {{problems}}
"""


SOUP = "task_type: soup\n\n- +50 if it is hot\n"


def folder_of(path, protocol=PROTOCOL, prompt=PROMPT):
    mine = path / "recipes"
    (mine / "prompts").mkdir(parents=True, exist_ok=True)
    (mine / "protocol.toml").write_text(protocol)
    (mine / "prompts" / "en.md").write_text(prompt)
    return "recipes"


def rows(*rubrics):
    made = [
        row | {"rubric": rubric} for row, rubric in zip(answers(len(rubrics)), rubrics, strict=True)
    ]
    return [{k: v for k, v in row.items() if v is not None} for row in made]


async def test_its_dimensions_types_and_weights_count(tmp_path):
    folder_of(tmp_path)
    (tmp_path / "soup.md").write_text(SOUP)
    async with p.Provider(p.valid()) as provider:
        write_answers(tmp_path, rows("soup.md", "- sweet\n"), at(provider.url), protocol="recipes")
        run = (await judged(tmp_path)).run
        assert (await judged(tmp_path)).run == run
    before = stored(tmp_path)
    first, second = (row["output"] for row in before)
    assert (first["task_type"], first["inferred_task_type"]) == ("soup", None)
    assert first["weights"] == {"taste": 49.5, "safety": 50.5}
    assert (second["task_type"], second["inferred_task_type"]) == ("cake", "cake")
    assert list(second["score"]) == ["taste", "safety"]
    asked = "\n".join(call.body["messages"][-1]["content"] for call in provider.calls)
    assert "- taste: from 0 to 49.5. Does it sound tasty?" in asked
    assert "soup (taste up to 49.5, safety up to 50.5)" in asked
    # A run needs its folder and rubrics no more.
    shutil.rmtree(tmp_path / "recipes")
    (tmp_path / "soup.md").unlink()
    settled = await asyncio.to_thread(evenhand_here, "settle", "latest", "--json", cwd=tmp_path)
    assert json.loads(settled.stdout)["verdicts"] == 2 and stored(tmp_path) == before


async def test_its_maxima_are_held_to(tmp_path):
    folder_of(tmp_path)
    reply = {
        "inferred_task_type": None,
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": {"taste": "a", "safety": "b"},
        "score": {"taste": 49.5, "safety": 50.4},
        "confidence": "medium",
    }
    over = reply | {"score": {"taste": 49.6, "safety": 50.4}}
    async with p.Provider([p.saying(json.dumps(over)), p.saying(json.dumps(reply))]) as provider:
        write_answers(tmp_path, rows(SOUP), at(provider.url), protocol="recipes")
        summary = await judged(tmp_path)
    assert (summary.counts.verdicts, len(provider.calls)) == (1, 2)
    assert "outside the range from 0 to 49.5" in provider.calls[1].body["messages"][-1]["content"]
    assert stored(tmp_path)[0]["output"]["total_score"] == 99.9


OFF = PROTOCOL.replace("safety = 10", "safety = 11")


@cases
def test_what_is_wrong_is_told_with_its_place_and_nothing_is_sent(
    tmp_path, given, rubrics, code, place, key, language
):
    data = rows(*(rubric or None for rubric in rubrics))
    if language:
        data[0]["language"] = language
    folder_of(tmp_path)
    shutil.copytree(tmp_path / "recipes", tmp_path / "off")
    (tmp_path / "off" / "protocol.toml").write_text(OFF)
    (tmp_path / "fact.md").write_text("\ntask_type: fact\n")
    write_answers(tmp_path, data, **given)
    done = evenhand_here("run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert place in done.stderr and is_told(done.stderr, key), done.stderr


@cases
def test_a_rubric_may_stand_in_the_row_beside_the_data_or_in_the_suite(tmp_path, given, file):
    data = tmp_path / "data"
    data.mkdir()
    (data / "task.md").write_text(TASK)
    rubric = None if file is None else file.removeprefix("data/") or TASK
    write_answers(tmp_path, rows(rubric), **given | {"data": ["data/answers.jsonl"]})
    (tmp_path / "answers.jsonl").rename(data / "answers.jsonl")
    ok_here("run --json", cwd=tmp_path)
    assert stored(tmp_path)[0]["output"]["task_type"] == "fact"


async def test_what_code_decides_sends_nothing_in_any_language(tmp_path):
    data = [
        row | {"task_name": language, "answer": "forbidden", "language": language}
        for language, row in zip(("ru", "zh", "ja", "en"), answers(4), strict=True)
    ]
    async with p.Provider(p.valid()) as provider:
        write_answers(tmp_path, data, at(provider.url))
        summary = await judged(tmp_path)
        assert provider.calls == []
    assert summary.counts.verdicts == 4
    reasons = {row["output"]["critical_fail_reason"] for row in stored(tmp_path)}
    assert len(reasons) == 4
    assert all("forbidden" in reason for reason in reasons)
