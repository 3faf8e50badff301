"""The rubric kind: rows, questions, what is asked of a judge and what settles."""

import asyncio
import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.files.protocols import find_protocol
from evenhand.judgment import Fix
from evenhand.kinds import evidence
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.evidence import SearchText
from evenhand.kinds.kind import ReadyKind, Terms
from evenhand.kinds.rows import RowError
from evenhand.kinds.rubric.kind import KIND
from evenhand.kinds.rubric.kind import read_row as read_sample
from evenhand.kinds.rubric.rubric import build_rubric
from evenhand.kinds.samples import load_sample, sample_text
from evenhand.limits import PROBLEMS_SHOWN
from tests.cases import cases
from tests.sentences import refused
from tests.unit.kinds.contracts import assert_told, change
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
from tests.unit.kinds.tables import cells
from tests.work import calls_of

GOOD = json.dumps(good())
OFF = GOOD.replace('"score": 5', '"score": 4')
STYLES = ("full", "compact")
OUTPUT = {"full": "model_output", "compact": "answer"}
"""What the block of the output is called."""


def asked(language="en", sample=SAMPLE, style="full", **more):
    judged = protocol(language, **more)
    return judged.question(sample, judged.rubric_of(sample), style)


def prompt(question):
    return "\n".join(message.content for message in question.messages)


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
    more = {"use": ("reference",), "expose_meta": True}
    question = asked(language, replace(SAMPLE, extras=extras), "compact", **more)
    neutral = "\n".join(message.content for message in question.neutral)
    assert RUBRIC.text in neutral
    for text in (SAMPLE.question, "Rayleigh", "the truth", "m-7"):
        assert text in prompt(question)
        assert text not in neutral
    assert asked(language).neutral is None


IN_ROW = json.loads(RUBRIC_TEXT)
ROW = {
    "meta": dict(
        cells("""
run_id => r1
model => m
prompt_variant => v1
eval_set_variant => e
question_id => q1
""")
    ),
    "question": "Why?",
    "model_output": "Because.",
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def row(**changes):
    return copy.deepcopy(ROW) | changes


def test_a_row_of_the_contract_is_a_sample():
    sample = read_sample(row(rubric=IN_ROW), has_rubric=False)
    assert sample.id == "r1/m/v1/e/q1"
    assert (sample.question, sample.model_output) == ("Why?", "Because.")
    assert (sample.meta, sample.rubric) == (ROW["meta"], IN_ROW)
    assert (sample.language, sample.extras) == (None, {})


@cases
def test_the_id_is_given_or_made_of_the_meta_fields_that_are_there(changes, ident):
    assert read_sample(json.loads(change(ROW, changes)), has_rubric=True).id == ident


@cases
def test_a_wrong_row_is_refused_with_its_field(changes, told):
    with pytest.raises(RowError) as caught:
        read_sample(json.loads(change(ROW, changes)), has_rubric=True)
    assert_told(caught.value, told)


def test_a_field_that_is_missing_is_told_with_the_columns_that_there_are():
    with refused(RowError, "kinds.missing_field", '"model_output".*"question", "output"') as caught:
        read_sample({"question": "Why?", "output": "Because."}, has_rubric=True)
    assert '[columns] model_output = "COLUMN"' in caught.value.args[0].advice


def test_of_very_many_columns_a_few_are_listed():
    with refused(RowError, "kinds.missing_field", '"c19"[^"]*480'):
        read_sample({f"c{number}": number for number in range(500)}, has_rubric=True)


def test_a_rubric_stands_in_the_row_or_in_the_suite():
    assert read_sample(row(), has_rubric=True).rubric is None
    assert read_sample(row(rubric=RUBRIC_TEXT), has_rubric=False).rubric == IN_ROW
    with refused(RowError, "kinds.no_rubric"):
        read_sample(row(), has_rubric=False)


def test_an_empty_cell_is_absent_but_an_empty_output_is_judged():
    cells = row(meta="", rubric="", language="", reference="", model_output="")
    sample = read_sample(cells, has_rubric=True)
    assert (sample.meta, sample.rubric, sample.language, sample.extras) == ({}, None, None, {})
    assert sample.model_output == ""


def test_extras_are_kept_and_null_ones_are_not():
    sample = read_sample(
        row(reference="r", context=None, messages=[{"role": "user"}]), has_rubric=True
    )
    assert sample.extras == {"reference": "r", "messages": [{"role": "user"}]}


@given(TEXTS.filter(str.strip), TEXTS, st.dictionaries(TEXTS, TEXTS | st.integers()))
def test_what_the_store_keeps_reads_back_as_the_same_sample(question, output, meta):
    given_row = row(question=question, model_output=output, meta=meta, rubric=IN_ROW, context="c")
    sample = read_sample(given_row, has_rubric=False)
    assert load_sample(sample_text(sample)) == sample


def test_the_store_keeps_the_spelling_of_numbers_in_meta():
    spelled = '{"b":1.50,"a":[1e3,-0]}'
    sample = read_sample(row(meta=jsontext.parse(spelled)), has_rubric=True)
    assert jsontext.dump(load_sample(sample_text(sample)).meta) == spelled


def ready(*languages):
    settings = {"expose_meta": False, "repairs": 0, "use": []}
    terms = Terms("en", languages, 0, IN_ROW, settings)
    return ReadyKind(KIND, find_protocol("rubric"), terms)


async def test_a_unit_is_judged_in_its_own_language():
    judging = ready("en", "ja")
    for language, phrase in (("ja", "該当する根拠なし"), (None, "no evidence found")):
        [unit] = judging.read(row(language=language))
        reply = good()
        for scored in reply["scores"].values():
            scored |= {"evidence": [], "rationale": phrase}
        judgment = await judging.judge(
            judging.load(unit.body), JudgingContext(ask=Scripted([json.dumps(reply)]))
        )
        assert (unit.id, judgment.status) == ("r1/m/v1/e/q1", "verdict")


def test_a_language_that_the_protocol_does_not_speak_is_told_at_once():
    with refused(RowError, "kinds.unknown_language", "ja.* en"):
        ready("en").read(row(language="ja"))


@pytest.mark.parametrize("language", ["en", "ru", "zh", "ja"])
def test_a_judge_is_told_of_a_scale_on_which_more_is_worse(language):
    worse = copy.deepcopy(IN_ROW)
    worse["dimensions"][0]["higher_is"] = "worse"
    told = protocol(language).words.phrases["higher_is_worse"]
    assert told not in prompt(asked(language))
    sample = replace(SAMPLE, rubric=worse)
    assert prompt(asked(language, sample)).count(told) == 1
