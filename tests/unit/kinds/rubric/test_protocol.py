"""The rubric protocol as a conversation: what is asked, asked again, and settled."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.exchange import Message, Question, Reply
from evenhand.judgment import Fix, Pass
from evenhand.kinds import evidence
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.evidence import SearchText
from evenhand.kinds.rubric.rubric import build_rubric
from evenhand.limits import PROBLEMS_SHOWN
from evenhand.units import Sample
from tests.unit.kinds.material import (
    META,
    PHRASES,
    RUBRIC,
    RUBRIC_TEXT,
    SAMPLE,
    Scripted,
    good,
    protocol,
)
from tests.work import calls_of

GOOD = json.dumps(good())
OFF = GOOD.replace('"score": 5', '"score": 4')
STYLES = ("full", "compact")
OUTPUT = {"full": "model_output", "compact": "answer"}
"""What the block of the output is called."""


def asked(
    language: str = "en", sample: Sample = SAMPLE, style: Any = "full", **more: Any
) -> Question:
    judged = protocol(language, **more)
    return judged.question(sample, judged.rubric_of(sample), style)


def prompt(question: Question) -> str:
    return "\n".join(message.content for message in question.messages)


async def test_a_good_reply_settles_at_once():
    ask = Scripted([GOOD])
    judgment = await protocol().judge(SAMPLE, JudgingContext(ask=ask))
    assert judgment.status == "verdict"
    assert jsontext.same(judgment.output["meta"], META)
    assert judgment.passes == (Pass(reask=0, problems=()),)
    assert len(ask.asked) == 1


@pytest.mark.parametrize("language", PHRASES)
@pytest.mark.parametrize("style", STYLES)
async def test_a_problem_is_asked_about_in_the_same_conversation(language, style):
    ask = Scripted([OFF, GOOD])
    judged = protocol(language)
    judgment = await judged.judge(SAMPLE, JudgingContext(ask=ask, styles=(style,)))
    first, second = ask.asked
    [problem] = judged.check(OFF, SAMPLE).problems
    complaint = second.messages[-1]
    assert second.messages[:-2] == first.messages
    assert second.messages[-2] == Message("assistant", OFF)
    assert complaint.role == "user"
    assert f"- {problem.wording}\n" in complaint.content
    assert (second.schema, second.unit) == (first.schema, first.unit)
    assert (first.reask, second.reask) == (0, 1)
    assert judgment.status == "verdict"
    assert [len(one.problems) for one in judgment.passes] == [1, 0]


def test_an_output_is_folded_once_for_all_quotes_of_all_replies():
    """Three replies with three quotes each, none of which stands in the output word for word."""
    sample = replace(SAMPLE, model_output="и\u0306 “short  waves”… " * 500)
    wrong = good()
    quotes = ['й "short waves"... й', "short waves", "nowhere at all"]
    wrong["scores"]["correct"] |= {"evidence": quotes}
    ask = Scripted([json.dumps(wrong)] * 3)

    def judge():
        judgment = asyncio.run(protocol(repairs=2).judge(sample, JudgingContext(ask=ask)))
        assert (judgment.reason, len(judgment.passes)) == ("evidence_missing", 3)

    once = calls_of(SearchText(sample.model_output).locate, "nowhere", of=evidence._joins)
    assert 500 <= once <= calls_of(judge, of=evidence._joins) < 1.5 * once


@pytest.mark.parametrize("repairs", [0, 1, 2, 5])
async def test_it_is_asked_again_at_most_so_often_and_fails_with_the_last_reason(repairs):
    ask = Scripted([OFF] * repairs + ["", GOOD])
    judgment = await protocol(repairs=repairs).judge(SAMPLE, JudgingContext(ask=ask))
    assert len(ask.asked) == repairs + 1
    assert (judgment.status, judgment.reason, judgment.output) == ("failure", "empty", None)
    assert len(judgment.passes) == repairs + 1
    assert judgment.passes[-1].problems[0].code == "empty"


@pytest.mark.parametrize("finish", ["length", "filtered", "refused"])
async def test_a_reply_that_did_not_end_by_itself_fails_with_its_reason(finish):
    ask = Scripted([Reply(text=GOOD, finish=finish)])
    judgment = await protocol(repairs=0).judge(SAMPLE, JudgingContext(ask=ask))
    assert judgment.reason == {"length": "truncated"}.get(finish, finish)


async def test_of_very_many_problems_only_some_are_told_and_kept():
    many = json.dumps(good() | {f"k{n}": n for n in range(1000)})
    ask = Scripted([many, GOOD])
    judgment = await protocol().judge(SAMPLE, JudgingContext(ask=ask))
    assert ask.asked[1].messages[-1].content.count("\n- ") == PROBLEMS_SHOWN
    assert len(judgment.passes[0].problems) == PROBLEMS_SHOWN


async def test_fixes_and_flags_come_with_the_verdict():
    sample = replace(SAMPLE, question="Why\u200b?")
    ask = Scripted([f"```\n{GOOD}\n```"])
    judgment = await protocol().judge(sample, JudgingContext(ask=ask))
    assert judgment.fixes == (Fix("unwrapped", ""),)
    assert judgment.flags == ("hidden_characters:zero_width",)


@pytest.mark.parametrize("language", PHRASES)
@pytest.mark.parametrize("style", STYLES)
def test_a_prompt_holds_question_output_and_rubric_and_nothing_unfilled(language, style):
    text = prompt(asked(language, style=style))
    for part in (SAMPLE.question, SAMPLE.model_output, RUBRIC.text):
        assert text.count(part) == 1
    assert "{{" not in text
    if style == "full":
        assert text.count('"failure_tags":[],"notes":""}') == 1


MARKERS = st.text("qxzj0123456789", min_size=12, max_size=12).map("mk{}".format)


@given(st.lists(MARKERS, min_size=4, max_size=4, unique=True), st.sampled_from(STYLES))
def test_meta_and_id_never_reach_the_judge(markers, style):
    key, model, nested, ident = markers
    meta = {"model": model, key: {"deep": [nested]}}
    sample = replace(SAMPLE, id=ident, meta=meta)
    question = asked(sample=sample, style=style)
    again = question.again(OFF, prompt(question))
    seen = repr((again.messages, again.schema, again.neutral))
    assert not any(marker in seen for marker in markers)
    exposed = repr(asked(sample=sample, style=style, expose_meta=True).messages)
    assert all(marker in exposed for marker in (key, model, nested))
    assert ident not in exposed


@pytest.mark.parametrize("language", PHRASES)
async def test_an_exposed_meta_is_shown_as_it_is_spelled_and_asked_back(language):
    judged = protocol(language, expose_meta=True)
    copy = f'{{"meta":{jsontext.dump(META)},{GOOD[1:]}'
    ask = Scripted([copy])
    judgment = await judged.judge(SAMPLE, JudgingContext(ask=ask))
    assert judgment.status == "verdict"
    text = prompt(ask.asked[0])
    assert f"\n{jsontext.dump(META)}\n[[/meta " in text
    assert judged.words.phrases["copy_meta"] in text
    assert next(iter(ask.asked[0].schema.value["properties"])) == "meta"


def test_a_judge_that_fills_a_form_need_not_copy_an_exposed_meta_itself():
    schema = asked(style="compact", expose_meta=True).schema.value
    assert schema["properties"]["meta"] == {"const": META}
    assert schema["required"] == ["meta", "scores", "failure_tags", "notes"]
    assert "meta" not in asked(style="compact").schema.value["properties"]


EXTRAS = {"reference": "the truth", "context": "the source", "messages": [{"role": "user"}]}


@pytest.mark.parametrize("use", [(), ("reference",), ("messages", "context"), tuple(EXTRAS)])
@pytest.mark.parametrize("style", STYLES)
def test_extras_are_shown_only_when_asked_for_each_in_a_fence_of_its_own(use, style):
    text = prompt(asked(sample=replace(SAMPLE, extras=EXTRAS), use=use, style=style))
    shown = {"reference": "the truth", "context": "the source", "messages": '[{"role":"user"}]'}
    names = {"reference": "reference", "context": "context", "messages": "earlier"}
    for name, content in shown.items():
        assert (f"\n{content}\n[[/{names[name]} " in text) == (name in use)
        assert (content in text) == (name in use)


def test_an_extra_that_a_sample_lacks_leaves_no_trace():
    assert prompt(asked(use=("reference",))) == prompt(asked())


@pytest.mark.parametrize("text", ["{{question}}", "{{rubric}} {{7*7}}", "{% x %}", "${PATH} %s {}"])
@pytest.mark.parametrize("style", STYLES)
def test_judged_text_is_not_evaluated(text, style):
    sample = replace(SAMPLE, question=f"Q {text}", model_output=f"A {text}")
    said = prompt(asked(sample=sample, style=style))
    output = f"\nA {text}\n[[/{OUTPUT[style]} "
    assert said.count(f"\nQ {text}\n[[/question ") == said.count(output) == 1


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from(STYLES))
def test_no_output_closes_its_fence(output, style):
    said = prompt(asked(sample=replace(SAMPLE, model_output=output), style=style))
    name = OUTPUT[style]
    opening = said.index(f"[[{name} ", 0 if style == "compact" else said.index("[[question "))
    number = said[opening + len(name) + 3 : said.index("]]", opening)]
    assert said[opening:].startswith(f"[[{name} {number}]]\n{output}\n[[/{name} {number}]]")
    assert said.count(number) == 2


def test_the_schema_asks_for_evidence_then_rationale_then_score():
    schema = asked().schema.value
    assert list(schema["properties"]) == schema["required"] == ["scores", "failure_tags", "notes"]
    inner = schema["properties"]["scores"]["properties"]["brief"]
    assert list(inner["properties"]) == inner["required"] == ["evidence", "rationale", "score"]
    assert inner["properties"]["score"]["enum"] == [0, 2.5]


def test_questions_under_one_rubric_share_one_schema():
    judged = protocol(rubric=None)
    rows = [replace(SAMPLE, id=n, rubric=json.loads(RUBRIC_TEXT)) for n in ("a", "b")]
    one, other = (judged.question(row, judged.rubric_of(row), "full") for row in rows)
    assert one.schema is other.schema


def test_many_rubrics_do_not_mix_up_their_schemas():
    judged = protocol(rubric=None)
    for number in range(200):
        value = json.loads(RUBRIC_TEXT.replace('"correct"', f'"d{number}"'))
        question = judged.question(SAMPLE, build_rubric(value), "full")
        scores = question.schema.value["properties"]["scores"]["properties"]
        assert next(iter(scores)) == f"d{number}"


@pytest.mark.parametrize("language", PHRASES)
def test_a_judge_that_fills_a_form_chooses_among_quotes_and_bands(language):
    question = asked(language, style="compact")
    inner = question.schema.value["properties"]["scores"]["properties"]["correct"]["properties"]
    quotes = inner["evidence"]["items"]["enum"]
    assert quotes
    assert all(quote in SAMPLE.model_output for quote in quotes)
    assert inner["score"]["enum"] == [1, 3, 5]
    assert list(inner["score"]["x-labels"]) == ["1", "3", "5"]


@pytest.mark.parametrize("language", PHRASES)
def test_a_form_about_nothing_admits_that_there_is_no_evidence(language):
    question = asked(language, replace(SAMPLE, model_output=" \n"), "compact")
    inner = question.schema.value["properties"]["scores"]["properties"]["correct"]["properties"]
    assert (inner["evidence"], inner["rationale"]) == ({"const": []}, {"const": PHRASES[language]})


@pytest.mark.parametrize("language", PHRASES)
def test_the_neutral_prompt_has_the_rubric_and_no_text_of_the_unit(language):
    extras = {"reference": "the truth"}
    more: dict[str, Any] = {"use": ("reference",), "expose_meta": True}
    question = asked(language, replace(SAMPLE, extras=extras), "compact", **more)
    neutral = "\n".join(message.content for message in question.neutral)
    assert RUBRIC.text in neutral
    for text in (SAMPLE.question, "Rayleigh", "the truth", "m-7"):
        assert text in prompt(question)
        assert text not in neutral
    assert asked(language).neutral is None
