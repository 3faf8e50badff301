"""A conversation with a judge, the same in every kind: what is asked, asked again, and given up."""

import json

import pytest
from msgspec.structs import replace

from evenhand.exchange import Message, Reply
from evenhand.judgment import Pass
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.protocol import LANGUAGES
from tests.unit.kinds import checking, grading, material, pairing
from tests.unit.kinds.contracts import GOOD, KINDS, change, check
from tests.unit.kinds.pairing import Judge

BROKEN = {
    "pairwise": 'criteria.C1.mark = "A++"',
    "rubric": "scores.correct.score = 4",
    "weighted": "score.logic_and_fact = 61",
    "checklist": 'criteria.brief.met = "no"',
}
PROTOCOLS = {
    "pairwise": pairing.protocol,
    "rubric": material.protocol,
    "weighted": grading.protocol,
    "checklist": checking.protocol,
}
EXTRAS = {
    "reference": "the {{truth}}",
    "context": "the source",
    "messages": [{"role": "user", "model": "gpt-4"}],
}
SHOWN = {"reference": "the {{truth}}", "context": "the source", "earlier": '[{"role":"user"}]'}
UNSAFE = "{{7*7}} {{topic}} {{question}} {{ shape }} {% if 1 %} ${HOME} %s %(x)s {0}{x}{{}}"

each_kind = pytest.mark.parametrize("kind", KINDS)
each_style = pytest.mark.parametrize("style", ["full", "compact"])


def unit_of(kind, text="", **changes):
    """Return the unit of a kind, with this text wherever the user wrote some."""
    if kind == "pairwise":
        pair = replace(pairing.PAIR, **changes)
        return pair.with_texts(f"{text} one", f"{text} two") if text else pair
    unit = grading.ANSWER if kind == "weighted" else material.SAMPLE
    sample = ("question", "model_output")
    names = ("prompt", "answer", "rubric") if kind == "weighted" else sample
    return replace(unit, **changes, **dict.fromkeys(names if text else (), text))


async def judge(kind, ask, language="en", style="full", **settings):
    context = JudgingContext(ask=ask, styles=(style,))
    return await PROTOCOLS[kind](language, **settings).judge(unit_of(kind), context)


def questions(kind, unit, language="en", style="full", **settings):
    """Yield the text of each first question about a unit."""
    protocol = PROTOCOLS[kind](language, **settings)
    context = JudgingContext(ask=Judge(str), styles=(style,))
    asked = (
        protocol.questions(unit, context)
        if kind == "pairwise"
        else [protocol.question(unit, protocol.rubric_of(unit), style)]
        if kind in ("rubric", "checklist")
        else [protocol.question(unit, style)]
    )
    for question in asked:
        yield "\n".join(message.content for message in question.messages)


@each_style
@pytest.mark.parametrize("language", LANGUAGES)
@each_kind
async def test_a_problem_is_asked_about_in_the_same_conversation(kind, language, style):
    broken, good = change(GOOD[kind], BROKEN[kind]), json.dumps(GOOD[kind])
    ask = Judge(lambda question: good if question.reask else broken)
    judgment = await judge(kind, ask, language, style)
    [problem] = check(kind, broken, language).problems
    for order in {one.order for one in ask.asked}:
        first, second = (one for one in ask.asked if (one.order, one.round) == (order, 1))
        complaint = second.messages[-1]
        assert second.messages[:-2] == first.messages
        assert second.messages[-2] == Message("assistant", broken)
        assert complaint.role == "user" and f"- {problem.wording}\n" in complaint.content
        assert (second.schema, second.unit) == (first.schema, first.unit)
        assert (first.reask, second.reask) == (0, 1)
    assert judgment.status == "verdict"
    assert [len(one.problems) for one in judgment.passes[:2]] == [1, 0]


@each_kind
async def test_after_an_empty_reply_the_roles_still_alternate(kind):
    good, broken = json.dumps(GOOD[kind]), change(GOOD[kind], BROKEN[kind])
    ask = Judge(lambda question: ("", broken, " \n", good)[question.reask])
    judgment = await judge(kind, ask, repairs=3)
    assert judgment.status == "verdict"
    for question in ask.asked:
        roles = [message.role for message in question.messages]
        turns = ["user", *["assistant", "user"] * (question.reask > 1)]
        assert roles[roles.index("user") :] == turns


@pytest.mark.parametrize("repairs", [0, 1, 2, 5])
@each_kind
async def test_it_is_asked_again_at_most_so_often_and_fails_with_the_last_reason(kind, repairs):
    broken = change(GOOD[kind], BROKEN[kind])
    ask = Judge(lambda question: "" if question.reask == repairs else broken)
    judgment = await judge(kind, ask, repairs=repairs)
    assert (judgment.status, judgment.reason, judgment.output) == ("failure", "empty", None)
    for order in {one.order for one in ask.asked}:
        assert [one.reask for one in ask.asked if one.order == order] == [*range(repairs + 1)]
    assert len(judgment.passes) == len(ask.asked)
    assert judgment.passes[-1].problems[0].code == "empty"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "truncated"), ("filtered", "filtered"), ("refused", "refused")],
)
@each_kind
async def test_a_reply_that_did_not_end_by_itself_is_not_read(kind, finish, reason):
    ask = Judge(lambda question: Reply(text=json.dumps(GOOD[kind]), finish=finish))
    judgment = await judge(kind, ask, repairs=0)
    assert (judgment.reason, judgment.output) == (reason, None)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pairwise"])
async def test_a_good_reply_settles_at_once(kind):
    ask = Judge(lambda question: json.dumps(GOOD[kind]))
    judgment = await judge(kind, ask)
    assert (judgment.status, judgment.fixes, judgment.flags) == ("verdict", (), ())
    assert (len(ask.asked), judgment.passes) == (1, (Pass(reask=0, problems=()),))


@pytest.mark.parametrize("use", [(), ("reference",), ("messages", "context"), tuple(EXTRAS)])
@each_style
@each_kind
def test_extras_are_shown_only_when_asked_for_each_in_a_fence_of_its_own(kind, style, use):
    unit = unit_of(kind, extras=EXTRAS)
    for text in questions(kind, unit, style=style, use=use):
        for name, content in SHOWN.items():
            is_used = name in use or (name == "earlier" and "messages" in use)
            assert (f"\n{content}\n[[/{name} " in text) == (content in text) == is_used


@each_kind
def test_an_extra_that_a_unit_lacks_leaves_no_trace(kind):
    unit = unit_of(kind)
    assert [*questions(kind, unit, use=("reference",))] == [*questions(kind, unit)]


@each_style
@pytest.mark.parametrize("language", LANGUAGES)
@each_kind
def test_inserted_text_is_never_evaluated(kind, language, style):
    for text in questions(kind, unit_of(kind, UNSAFE), language, style):
        assert text.count(UNSAFE) >= 2
        assert "{{" not in text.replace(UNSAFE, "")
