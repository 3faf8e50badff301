"""The weighted kind: rows, types and weights, what code decides, what is asked and settled."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from evenhand.judgment import Fix, Verdict
from evenhand.kinds import load_protocol
from evenhand.kinds.blocks import Label, Notice, Number
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.protocol import LANGUAGES, ProtocolError
from evenhand.kinds.rows import RowError
from evenhand.kinds.weighted.kind import KIND, answer_text, load_answer, read_answer, read_types
from evenhand.kinds.weighted.verdict import compact_schema
from tests.cases import cases
from tests.sentences import refused
from tests.unit.kinds.contracts import assert_told, change
from tests.unit.kinds.grading import (
    ANSWER,
    DIMENSIONS,
    FACT,
    KEYS,
    PLAIN,
    WEIGHTS,
    protocol,
    said,
    under,
)
from tests.unit.kinds.material import Scripted

STYLES = ("full", "compact")
CONDITIONS = {
    "must_match": ("- must_match: /Berlin/", "/Berlin/"),
    "must_not_match": ("- must_not_match: /paris/i", "Paris"),
    "max_chars": ("- max_chars: 5", "12"),
    "min_chars": ("- min_chars: 500", "500"),
}
TITLES = {
    "ru": "Условия критического провала",
    "zh": "致命错误条件",
    "ja": "致命的失格条件",
    "en": "Critical Fail Conditions",
}
HOSTILE = "## Critical Fail Conditions\n\n- must_match: /(a|aa)+$/\n"


def prompt(question):
    return "\n".join(message.content for message in question.messages)


async def test_what_the_check_flags_is_flagged_in_the_verdict():
    ask = Scripted([said(27, 15, 30, task_type="creative", confidence="low")])
    judgment = await protocol().judge(ANSWER, JudgingContext(ask=ask))
    assert judgment.flags == ("other_type", "low_confidence")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", CONDITIONS)
@pytest.mark.parametrize("type_line", ["task_type: creative\n\n", ""])
async def test_what_code_can_decide_costs_no_call(language, kind, type_line):
    condition, told = CONDITIONS[kind]
    rubric = f"{type_line}- a point\n\n## {TITLES[language]}\n\n- It lies.\n{condition}\n"
    ask = Scripted([])
    judgment = await protocol(language).judge(under(rubric), JudgingContext(ask=ask))
    assert (ask.asked, judgment.status, judgment.passes) == ([], "verdict", ())
    assert judgment.flags == ("decided_by_code",)
    output = judgment.output
    assert list(output) == KEYS
    given = "creative" if type_line else None
    assert (output["task_type"], output["inferred_task_type"]) == (given, None)
    assert output["weights"] == (WEIGHTS["creative"] if type_line else None)
    assert output["score"] == dict.fromkeys(DIMENSIONS, 0)
    assert (output["total_score"], output["critical_fail"]) == (0, True)
    assert told in output["critical_fail_reason"]
    assert all(len(text) <= 200 for text in output["reasoning"].values())
    assert output["confidence"] == "high"


async def test_the_reason_is_worded_in_the_protocols_language():
    rubric = under(f"## Critical Fail Conditions\n\n{CONDITIONS['max_chars'][0]}\n")
    reasons, ungraded = set(), set()
    for language in LANGUAGES:
        output = (await protocol(language).judge(rubric, JudgingContext(ask=Scripted([])))).output
        reasons.add(output["critical_fail_reason"])
        ungraded.add(output["reasoning"][DIMENSIONS[0]])
    assert len(reasons) == len(ungraded) == 4


async def test_what_holds_not_is_the_judges_to_decide():
    conditions = "- max_chars: 500\n- must_match: /Paris/\n- must_not_match: /Berlin/"
    answer = under(FACT + conditions + "\n")
    failed = said(0, 0, 0, critical_fail=True, critical_fail_reason="It lies.")
    ask = Scripted([failed])
    judgment = await protocol().judge(answer, JudgingContext(ask=ask))
    assert judgment.output["critical_fail_reason"] == "It lies."
    assert "decided_by_code" not in judgment.flags
    assert "It lies." in prompt(ask.asked[0])
    assert "max_chars" not in prompt(ask.asked[0])


async def test_a_pattern_that_does_not_end_is_a_failure_and_no_call():
    ask = Scripted([])
    judgment = await protocol().judge(under(HOSTILE, "a" * 400 + "!"), JudgingContext(ask=ask))
    assert (judgment.status, judgment.reason) == ("failure", "timeout")
    assert "line 3" in judgment.detail
    assert ask.asked == []


async def test_what_was_found_cannot_run_away_with_the_reason():
    rubric = "## Critical Fail Conditions\n\n- must_not_match: /x.*/s\n"
    answer = under(rubric, "x{0}{limit}%s\x1b[31m" + "y" * 5000)
    judgment = await protocol().judge(answer, JudgingContext(ask=Scripted([])))
    reason = judgment.output["critical_fail_reason"]
    assert "x{0}{limit}%s" in reason
    assert "\x1b" not in reason
    assert len(reason) < 500


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_maxima_stand_in_the_prompt_by_the_type(language):
    judged = protocol(language)
    for name, weights in WEIGHTS.items():
        text = prompt(judged.question(under(FACT.replace("fact", name, 1)), "full"))
        assert all(str(most) in text for most in weights.values())
        schema = judged.question(under(FACT.replace("fact", name, 1)), "full").schema
        assert schema.value["properties"]["inferred_task_type"] == {"type": "null"}
    text = prompt(judged.question(under(PLAIN), "full"))
    assert all(name in text for name in WEIGHTS)
    schema = judged.question(under(PLAIN), "full").schema
    assert schema.value["properties"]["inferred_task_type"]["enum"] == list(WEIGHTS)


def test_a_form_offers_steps_of_each_weight_and_the_check_rescales_them():
    judged = protocol()
    given = judged.question(ANSWER, "compact").schema
    steps = given.value["properties"]["score"]["properties"]
    assert steps[DIMENSIONS[0]]["enum"] == [0, 15, 30, 45, 60]
    open_type = under(PLAIN)
    offered = judged.question(open_type, "compact").schema
    assert offered.value["properties"]["score"]["properties"] == steps
    text = said(60, 15, 5, inferred_task_type="creative")
    checked = judged.check(text, open_type, "compact")
    assert list(checked.output["score"].values()) == [30, 15, 20]
    rescaled = {
        Fix("rescaled", f"score.{DIMENSIONS[0]}"),
        Fix("rescaled", f"score.{DIMENSIONS[2]}"),
    }
    assert set(checked.fixes) == rescaled
    over = judged.check(said(61, 0, 0, inferred_task_type="creative"), open_type, "compact")
    assert [one.code for one in over.problems] == ["out_of_range"]


def test_facts_and_conditions_are_shown_apart_and_their_absence_is_said():
    facts = FACT + "\n## Facts for the grader\n\n- Paris is the capital.\n"
    with_facts = prompt(protocol().question(under(facts), "full"))
    assert "Paris is the capital." in with_facts.partition("[[facts ")[2].partition("[[/facts")[0]
    bare = prompt(protocol().question(under(PLAIN), "full"))
    say = protocol().words.phrases
    assert say["no_facts"] in bare
    assert say["no_critical"] in bare
    assert say["no_facts"] not in with_facts


def test_no_name_and_no_meta_enter_the_prompt():
    answer = replace(ANSWER, id="id-1x", task_name="name-2x", meta={"model": "model-3x"})
    for language in LANGUAGES:
        for style in STYLES:
            text = prompt(protocol(language).question(answer, style))
            assert not [secret for secret in ("id-1x", "name-2x", "model-3x") if secret in text]


def test_hidden_characters_are_flagged_also_where_code_decides():
    import asyncio

    answer = under(FACT, "It is Paris.\u202e")
    ask = Scripted([said()])
    judgment = asyncio.run(protocol().judge(answer, JudgingContext(ask=ask)))
    assert judgment.flags == ("hidden_characters:bidi",)
    decided = under("## Critical Fail Conditions\n\n- max_chars: 3\n", answer.answer)
    judgment = asyncio.run(protocol().judge(decided, JudgingContext(ask=Scripted([]))))
    assert judgment.flags == ("decided_by_code", "hidden_characters:bidi")


@given(st.text(min_size=1), st.text(), st.text(alphabet="{}%$ \n[]prompta_1", max_size=40))
def test_any_text_stands_in_the_prompt_as_it_is(task, text, odd):
    answer = replace(ANSWER, prompt=task + odd, answer=text + odd)
    shown = prompt(protocol().question(answer, "full"))
    assert f"]]\n{task + odd}\n[[/prompt " in shown
    assert f"]]\n{text + odd}\n[[/answer " in shown


def test_the_suites_rubric_is_for_answers_that_bring_none():
    judged = protocol(rubric=PLAIN)
    assert judged.rubric_of(replace(ANSWER, rubric=None)).task_type is None
    assert judged.rubric_of(ANSWER).task_type == "fact"


@cases
def test_a_reply_made_elsewhere_is_held_to_what_code_decides(changes, problems, fixes):
    answer = under("## Critical Fail Conditions\n\n- max_chars: 5\n")
    checked = protocol().check_external_reply(answer, said(**changes))
    assert [one.code for one in checked.problems] == problems
    assert [f"{one.code} {one.path}" for one in checked.fixes] == fixes
    if checked.output is not None:
        assert (checked.output["total_score"], checked.output["critical_fail"]) == (0, True)
        assert checked.output["critical_fail_reason"]


async def test_an_output_that_code_decided_passes_its_own_check():
    for rubric in ("- max_chars: 5\n", "- max_chars: 5\n- It lies.\n"):
        for kind in ("", "task_type: fact\n\n"):
            answer = under(f"{kind}## Critical Fail Conditions\n\n{rubric}")
            output = (await protocol().judge(answer, JudgingContext(ask=Scripted([])))).output
            checked = protocol().check_external_reply(answer, json.dumps(output))
            assert (checked.output, checked.problems, checked.fixes) == (output, (), ())


TYPES = tuple(WEIGHTS)
ROW = {
    "task_name": "capital",
    "prompt": "Which?",
    "answer": "Paris.",
    "rubric": FACT,
}


def read(row, *, has_rubric=False):
    return read_answer(row, TYPES, has_rubric=has_rubric)


def test_a_row_is_read_whole():
    row = ROW | {"meta": {"model": "m"}, "language": "ja", "reference": "R", "more": 1}
    answer = read(row)
    assert (answer.id, answer.task_name, answer.prompt) == ("capital/m", "capital", "Which?")
    assert (answer.answer, answer.rubric, answer.meta) == ("Paris.", FACT, {"model": "m"})
    assert (answer.language, answer.extras) == ("ja", {"reference": "R"})


def test_the_id_is_the_rows_own_else_the_tasks_with_the_model():
    assert read(ROW).id == "capital"
    assert read(ROW | {"id": 7}).id == "7"
    assert read(ROW | {"meta": {"model": "m"}, "id": "x"}).id == "x"


def test_an_answer_may_be_empty_and_other_empty_cells_are_absent():
    answer = read(
        ROW | {"answer": "", "id": "", "meta": "", "language": "", "rubric": ""}, has_rubric=True
    )
    assert (answer.answer, answer.id, answer.rubric, answer.language) == ("", "capital", None, None)


@cases
def test_a_wrong_row_is_refused_with_its_field(changes, told):
    with pytest.raises(RowError) as caught:
        read(json.loads(change(ROW, changes)))
    assert_told(caught.value, told)


def test_a_rubric_of_the_suite_will_do():
    row = {key: value for key, value in ROW.items() if key != "rubric"}
    assert read(row, has_rubric=True).rubric is None


def test_a_type_is_one_of_the_protocols():
    row = ROW | {"rubric": "task_type: soup\n\n- tasty\n"}
    assert read_answer(row, ("soup",), has_rubric=False).rubric == row["rubric"]
    with refused(RowError, "kinds.rubric_line", '"fact"'):
        read_answer(ROW, ("soup",), has_rubric=False)


@given(
    st.text(min_size=1).filter(str.strip),
    st.text(),
    st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none())),
)
def test_an_answer_comes_back_as_it_was_stored(prompt, text, meta):
    row = ROW | {"prompt": prompt, "answer": text, "meta": meta, "rubric": PLAIN, "context": "C"}
    answer = read(row)
    assert load_answer(answer_text(answer)) == answer


OWN = """
kind = "weighted"

[[dimensions]]
id = "taste"
en = "Is it tasty?"

[[dimensions]]
id = "cost"
en = "Is it cheap?"

[[types]]
id = "soup"
weights = { taste = 33.3, cost = 66.7 }
en = "Something to spoon."

[[types]]
id = "cake"
weights = { taste = 100, cost = 0 }
en = "Something sweet."
"""


def own(text=OWN):
    return load_protocol("mine", {"protocol.toml": text})


def test_weights_may_be_decimals_and_zero():
    dimensions = own().ids("dimensions")
    soup, cake = read_types(own(), "en")
    assert (soup.weights, cake.weights) == (
        {"taste": 33.3, "cost": 66.7},
        {"taste": 100, "cost": 0},
    )
    score = compact_schema(dimensions, (soup, cake), cake)["properties"]["score"]["properties"]
    assert score["cost"] == {"enum": [0]}
    score = compact_schema(dimensions, (soup, cake), soup)["properties"]["score"]["properties"]
    assert score["taste"] == {"enum": [0, 8.325, 16.65, 24.975, 33.3]}


@cases
def test_a_wrong_protocol_names_its_row(old, new, told):
    refuse_protocol(OWN.replace(old, new), told)


@cases
def test_a_protocol_has_tables_of_rows(text, told):
    refuse_protocol(text, told)


def refuse_protocol(text, told):
    with pytest.raises(ProtocolError) as caught:
        KIND.check_protocol(own(text), "en")
    assert_told(caught.value, told)
    assert caught.value.file == "protocol.toml"


def test_critical_fails_are_counted_by_the_condition_that_their_reason_names():
    conditions = "- It lies about Paris.\n- It is rude.\n- must_not_match: /Lyon/\n"
    rubric = f"task_type: fact\n\n- a point\n\n# Critical Fail Conditions\n\n{conditions}"

    def failed(reason):
        reply = said(critical_fail=True, critical_fail_reason=reason)
        return Verdict(value=protocol().check(reply, under(rubric)).value)

    reasons = ("It is rude: it swears.", "It is rude.", "Matches /Lyon/.", "It is bad.")
    verdicts = [(answer_text(under(rubric)), failed(reason)) for reason in reasons]
    summary = KIND.measure.summarise(verdicts)
    assert summary.blocks[-1] == Notice(Label("unit.critical_unnamed", {"n": Number(1)}))
    found = summary.json
    assert found["critical_fails"] == 4
    assert found["critical_conditions"] == {"It is rude.": 2, "must_not_match: /Lyon/": 1}
