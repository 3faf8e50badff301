"""The package from Python: score, grade, prefer and run, sync and async."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path

import pytest

import evenhand
from evenhand.errors import UsageError
from tests import provider as p
from tests.cases import cases
from tests.sentences import refused
from tests.suites import (
    GRADE_JUDGE,
    JUDGE,
    PAIR_JUDGE,
    RUBRIC,
    TASK,
    at,
    samples,
    write_suite,
)


@pytest.fixture(autouse=True)
def judges(tmp_path, monkeypatch):
    """Judges of each kind in the working folder."""
    for name, text in (("judge", JUDGE), ("pairs", PAIR_JUDGE), ("grades", GRADE_JUDGE)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)


QUESTION, OUTPUT = "How many?", "There are exactly seven of them."


def settings(provider):
    return {"judge": at(provider.url), "rubric": RUBRIC}


async def test_score_gives_a_judgment_with_evidence():
    async with p.Provider() as provider:
        found = await evenhand.score_async(QUESTION, OUTPUT, meta={"n": 1}, **settings(provider))
    assert found.status == "verdict"
    assert found.output["meta"] == {"n": 1}
    quote = found.output["scores"]["correct"]["evidence"][0]
    assert OUTPUT[found.evidence[0].start : found.evidence[0].end] == quote


async def test_a_failure_is_a_value():
    async with p.Provider(p.saying("{}")) as provider:
        found = await evenhand.score_async(QUESTION, OUTPUT, **settings(provider))
    assert (found.status, found.reason, found.output) == ("failure", "schema", None)


async def test_a_refusal_is_raised():
    async with p.Provider(p.failing(401)) as provider:
        with refused(evenhand.EvenhandError, "judges.key_wanted"):
            await evenhand.score_async(QUESTION, OUTPUT, **settings(provider))


async def test_a_store_that_is_a_file_is_asked_first(tmp_path):
    """Also by those that come at the same time."""
    store = f"sqlite:{tmp_path / 'scores.db'}"
    async with p.Provider() as provider:
        for _ in range(2):
            asked = [
                evenhand.score_async(
                    QUESTION,
                    f"{OUTPUT} {n}",
                    rubric=RUBRIC,
                    judge={**at(provider.url), "repeats": 2},
                    store=store,
                )
                for n in range(3)
            ]
            found = await asyncio.gather(*asked)
            assert [one.status for one in found] == ["verdict"] * 3
    assert len(provider.calls) == 6


@pytest.mark.parametrize("name", ["score", "prefer", "grade", "checklist"])
async def test_the_judge_sees_what_is_given_beside_the_answer(name):
    texts = ("Which?", *(["one 1", "two 2"] if name == "prefer" else ["one 1"]))
    rubric = {"score": {"rubric": RUBRIC}, "grade": {"rubric": TASK}}
    more = {**rubric, "checklist": {"criteria": "Is it right?"}}.get(name, {})
    behaviour = p.comparing(p.by_number) if name == "prefer" else p.valid()
    async with p.Provider(behaviour) as provider:
        function = getattr(evenhand, f"{name}_async")
        for context in ("First passage.", ["First passage.", "Second passage."]):
            given = {"context": context, "reference": "The right one."}
            found = await function(*texts, judge=at(provider.url), **given, **more)
            assert found.status == "verdict"
            blocks = p.shown(provider.calls[-1].body)
            assert (
                "First passage." in blocks["context"] and blocks["reference"] == given["reference"]
            )
    assert "Second passage." in blocks["context"]


TALK = [
    {"role": "user", "content": "Find a room."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "1", "function": {"name": "search", "arguments": '{"beds": 2}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "Room 7 is free."},
    {"role": "assistant", "content": "Room 9 is yours."},
]


@pytest.mark.parametrize("name", ["score", "grade", "checklist"])
async def test_a_transcript_takes_the_place_of_question_and_answer(name):
    rubric = {"score": {"rubric": RUBRIC}, "grade": {"rubric": TASK}}
    more = rubric.get(name, {"criteria": "Is it right?"})
    async with p.Provider(p.valid(p.quoting("Room 9 is yours."))) as provider:
        function, given = getattr(evenhand, f"{name}_async"), {"judge": at(provider.url), **more}
        whole = await function(messages=TALK, judged="conversation", **given)
        last = await function(messages=TALK, **given)
        prompts = [str(call.body) for call in provider.calls]
    assert whole.status == last.status == "verdict" and prompts[0] != prompts[-1]
    assert all("Room 7 is free." in prompt and "Room 9" in prompt for prompt in prompts)
    if name != "checklist":  # whose criterion the provider calls not applicable
        with pytest.raises(AssertionError, match=r"^Overall .*Room 9 is yours\."):
            evenhand.assert_passes(last, at_least=1)


async def test_transcripts_are_preferred_and_answers_may_go_on_from_one():
    other = [*TALK[:-1], {"role": "assistant", "content": "Room 7 is yours."}]
    async with p.Provider(p.comparing(p.by_number)) as provider:
        judge = at(provider.url)
        found = await evenhand.prefer_async(None, TALK, other, judge=judge)
        assert found.status == "verdict" and "Room 7 is free." in str(provider.calls[-1].body)
        found = await evenhand.prefer_async(None, NINE, TWO, messages=TALK[:1], judge=judge)
        assert found.winner == "A" and "Find a room." in str(provider.calls[-1].body)


async def test_a_rubric_may_be_the_name_of_a_ready_one_or_a_list():
    async with p.Provider() as provider:
        given = {"judge": at(provider.url), "language": "ja", "context": "Seven stand there."}
        for rubric, names in (
            ("faithfulness", {"faithfulness"}),
            (["faithfulness", "Is it polite?"], {"faithfulness", "criterion"}),
            (["Is it polite?", "Is it short?"], {"c1", "c2"}),
        ):
            found = await evenhand.score_async(QUESTION, OUTPUT, rubric=rubric, **given)
            assert found.scores.keys() == names
    for name, rubric in (
        ("faithfulness", "faithfulness"),
        ("correctness", ["tone", "correctness"]),
    ):
        with refused(UsageError, "files.ready_needs", name):
            evenhand.score(QUESTION, OUTPUT, rubric=rubric)
        with refused(UsageError, "files.ready_needs", name):
            evenhand.run(
                [{"question": QUESTION, "answer": OUTPUT}], rubric=rubric, judge="openai/m"
            )
    with refused(UsageError, "files.ready_is_scored", "tone"):
        evenhand.checklist(QUESTION, OUTPUT, criteria="tone")


@pytest.mark.parametrize("name", ["score", "prefer", "grade", "checklist"])
def test_an_editor_sees_every_parameter_and_what_it_means(name):
    wait, asynchronous = getattr(evenhand, name), getattr(evenhand, f"{name}_async")
    signature = inspect.signature(wait)
    assert signature == inspect.signature(asynchronous)
    assert inspect.iscoroutinefunction(asynchronous) and not inspect.iscoroutinefunction(wait)
    for parameter in signature.parameters.values():
        assert parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        assert re.search(rf"^ {{8,}}(\w+, )*{parameter.name}(,|: )", wait.__doc__, re.MULTILINE)
    for part in ("Args", "Returns", "Raises", "Example"):
        assert f"    {part}:\n" in wait.__doc__


@cases
async def test_what_is_wrong_is_told(wrong):
    given = {"judge": "openai/m", "rubric": RUBRIC, **wrong}
    with pytest.raises(evenhand.EvenhandError) as told:
        await evenhand.score_async(QUESTION, OUTPUT, **given)
    assert "sk-secret" not in str(told.value)


def test_the_sync_forms_wait(tmp_path):
    write_suite(tmp_path, 3)
    run = evenhand.run(tmp_path, limit=2, rubric=RUBRIC)
    assert run.summary["verdicts"] == 2
    assert [row["unit"] for row in run.judgments()] == ["u0", "u1"]
    assert run.judgments()[0]["output"]["scores"].keys() == {"correct", "clear"}
    found = evenhand.score(QUESTION, OUTPUT, rubric="rubric.json", judge="python/judge:good")
    assert found.status == "verdict"


async def test_run_async_takes_keys_of_the_suite(tmp_path):
    write_suite(tmp_path, 2)
    first = await evenhand.run_async(tmp_path / "evenhand.toml")
    other = await evenhand.run_async(tmp_path, seed=3)
    assert first.id != other.id
    assert first.stopped is None
    assert {row["status"] for row in first.judgments()} == {"verdict"}


async def test_inside_a_running_loop_the_sync_forms_wait_too(tmp_path):
    write_suite(tmp_path, 2)
    loop = asyncio.get_running_loop()
    assert evenhand.run(tmp_path).summary["verdicts"] == 2
    judgment = evenhand.score(QUESTION, OUTPUT, rubric="rubric.json", judge="python/judge:good")
    assert judgment.status == "verdict"
    assert asyncio.get_running_loop() is loop
    with refused(evenhand.EvenhandError, "judges.no_judge_near"):
        evenhand.score(QUESTION, OUTPUT, rubric=RUBRIC, judge="nobody/m")


async def test_a_reply_that_was_not_recorded_is_named(tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text('{"unit": "elsewhere", "reply": "{}"}\n')
    with refused(evenhand.EvenhandError, "api.no_reply", "r1") as caught:
        await evenhand.score_async(
            QUESTION, OUTPUT, rubric=RUBRIC, judge=f"replay/{path}", meta={"run_id": "r1"}
        )
    assert "replies.jsonl" in str(caught.value)


def test_a_run_says_what_may_be_concluded(tmp_path):
    rows = samples(6)
    for i, row in enumerate(rows):
        del row["id"]
        row["meta"] = {"prompt_variant": f"v{i % 2 + 1}", "question_id": f"q{i // 2}"}
    run = evenhand.run(write_suite(tmp_path, rows))
    found = run.compare("prompt_variant", "v1")
    assert [(row.dimension, row.n, row.difference) for row in found.rows] == [
        ("correct", 3, 0.0),
        ("clear", 3, 0.0),
        ("overall", 3, 0.0),
    ]
    with refused(UsageError, "compare.no_votes"):
        run.leaderboard()


PROMPT, ANSWER = "Which city is the capital of France?", "It is Paris."


GOOD = "python/grades:good"


def test_grade_gives_a_total_with_reasons():
    Path("task.md").write_text(TASK)
    for rubric in (TASK, "task.md", Path("task.md")):
        found = evenhand.grade(PROMPT, ANSWER, rubric=rubric, judge=GOOD, task_name="capital")
        assert found.status == "verdict"
        assert (found.output["task_name"], found.output["task_type"]) == ("capital", "fact")
        assert (found.output["total_score"], found.output["confidence"]) == (21, "high")


async def test_grade_async_infers_a_type_where_none_is_given():
    for language in ("ru", "zh", "ja", "en"):
        given = {"rubric": "- +60 if right\n", "judge": GOOD, "language": language}
        found = await evenhand.grade_async(PROMPT, ANSWER, **given)
        assert found.output["inferred_task_type"] == found.output["task_type"] == "fact"


def test_what_code_decides_needs_no_judge_and_a_failure_is_a_value():
    failed = evenhand.grade(PROMPT, "It is forbidden.", rubric=TASK, judge="python/grades:crash")
    assert (failed.output["critical_fail"], failed.flags) == (True, ("decided_by_code",))
    spoilt = evenhand.grade(PROMPT, ANSWER, rubric=TASK, judge="python/grades:bad")
    assert (spoilt.status, spoilt.reason, spoilt.output) == ("failure", "schema", None)


@pytest.mark.parametrize(
    ("prompt", "settings", "key", "said"),
    [
        ("", {}, "kinds.empty_field", '"prompt"'),
        (PROMPT, {"rubric": "none.md"}, "files.no_rubric", "none.md"),
        (PROMPT, {"rubric": Path("none.txt")}, "files.rubric_ending", "none.txt"),
        (PROMPT, {"rubric": "\ntask_type: poem\n"}, "kinds.rubric_line", "2.*poem"),
        (PROMPT, {"rubric": "bad.md"}, "kinds.unknown_type", "bad.md:2: "),
        (PROMPT, {"rubric": {"dimensions": []}}, "kinds.no_rubric_text", '"rubric"'),
    ],
)
def test_what_is_wrong_with_a_grade_is_raised(prompt, settings, key, said):
    Path("bad.md").write_text("\ntask_type: poem\n")
    with refused(evenhand.EvenhandError, key, said):
        evenhand.grade(
            prompt, ANSWER, **{"rubric": TASK, "judge": "python/grades:crash"} | settings
        )


TOPIC, NINE, TWO = "Which is greater?", "It is 9.", "It is 2."


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_prefer_says_which_is_better(seed):
    for first, second, winner in ((NINE, TWO, "A"), (TWO, NINE, "B"), (NINE, "9 it is", "tie")):
        found = evenhand.prefer(TOPIC, first, second, judge="python/pairs:content", seed=seed)
        assert found.status == "verdict"
        assert (found.output["winner"], found.output["settled"]) == (winner, "stable")
        assert found.output["candidates"] == ["first", "second"]
        assert sorted(one.order for one in found.passes) == ["12", "21"]


async def test_prefer_async_takes_settings_names_and_a_language():
    found = await evenhand.prefer_async(
        TOPIC,
        "As GPT-4 I say 9.",
        TWO,
        judge="python/pairs:first",
        language="ja",
        names=("gpt-4o", "mine"),
        settings={"max_rounds": 2, "blind": "mask"},
    )
    assert (found.output["winner"], found.output["rounds"]) == ("uncertain", 2)
    assert found.output["candidates"] == ["gpt-4o", "mine"]
    assert "masked:A" in found.flags


def test_a_failure_is_a_value_and_equal_texts_need_no_judge():
    failed = evenhand.prefer(TOPIC, NINE, TWO, judge="python/pairs:bad")
    assert (failed.status, failed.reason, failed.output) == ("failure", "schema", None)
    equal = evenhand.prefer(TOPIC, NINE, NINE, judge="python/pairs:crash")
    assert (equal.output["winner"], equal.flags) == ("tie", ("equal_text",))


@cases
def test_what_is_wrong_with_a_preference_is_raised(arguments, settings, key, said):
    with refused(evenhand.EvenhandError, key, said):
        evenhand.prefer(*arguments, judge="python/pairs:crash", **settings)


async def test_a_pair_is_the_same_two_questions_the_other_way_round(tmp_path):
    store = f"sqlite:{tmp_path / 'pairs.db'}"
    async with p.Provider(p.comparing(p.by_number)) as provider:
        rest = {"judge": at(provider.url), "store": store}
        for _ in range(2):
            found = await evenhand.prefer_async(TOPIC, NINE, TWO, **rest)
        # The other way round these are the same two questions.
        turned = await evenhand.prefer_async(TOPIC, TWO, NINE, **rest)
    assert (found.output["winner"], turned.output["winner"]) == ("A", "B")
    assert len(provider.calls) == 2


async def test_a_judge_of_a_candidate_s_family_may_be_left_out():
    async with p.Provider(p.comparing(p.by_number)) as provider:
        found = await evenhand.prefer_async(
            TOPIC,
            NINE,
            TWO,
            judge={"model": "openai/gpt-4.1", "base_url": provider.url},
            names=("gpt-4o", "mine"),
            settings={"no_self_judging": True},
        )
        assert provider.calls == []
    assert (found.status, found.output) == ("left_out", None)
