"""No reply, however broken, makes a check raise; and what a check lets through keeps the contract.

The short form tries the same few thousand replies every time, the long form millions of new ones. A
failure names its seed: `mutant(GOODS[kind], seed)` is the reply again.
"""

import json
import math
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import jsontext
from evenhand.exchange import Reply
from evenhand.judgment import write_judgment
from evenhand.kinds import KINDS
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.pairwise.verdict import MARKS, WINNERS
from evenhand.kinds.prompt import CustomPrompt
from evenhand.kinds.protocol import LANGUAGES
from tests.suites import CRITERIA, pair_reply
from tests.unit.kinds import checking, grading, material, mutants, pairing

SHORT, LONG = 2_000, 1_500_000
"""Mutants of each kind."""

META = jsontext.dump(material.META)
RUBRIC_REPLIES = [
    material.good(),
    {"meta": json.loads(META), **material.good()},
    material.good() | {"failure_tags": ["E", "A", "A"], "notes": "n" * 400},
    material.good()
    | {
        "scores": {
            "correct": {"evidence": ['"short waves" scatter'], "rationale": "x", "score": 3.0},
            "brief": {"evidence": [], "rationale": "No evidence found.", "score": 0},
        }
    },
]
WEIGHTED_REPLIES = [
    grading.reply(),
    grading.reply(inferred_task_type="creative", confidence="low"),
    grading.reply(0, 0, 0, critical_fail=True, critical_fail_reason="It lies."),
    {**grading.reply(), "task_name": "capital", "task_type": "fact", "total_score": 75}
    | {"weights": grading.WEIGHTS["fact"]},
]
PAIRWISE_REPLIES = [
    json.loads(pair_reply("A+")),
    json.loads(pair_reply(dict(zip(CRITERIA, ("tie", "A+", "B+", "tie", "B+"), strict=True)))),
    {"pair_id": "p", "winner": "A", "criteria": dict.fromkeys(CRITERIA, "tie"), "notes": "n"},
    {"criteria": {c: {"mark": "tie"} for c in CRITERIA}, "explanation": "", "winner": "tie"},
]
CHECKLIST_REPLIES = [
    checking.good(),
    {"meta": json.loads(META), **checking.good(), "score": 0.5, "pass": True},
    checking.good()
    | {
        "criteria": dict.fromkeys(
            ("cause", "brief", "vague"), {"evidence": [], "reason": "so"} | {"met": None}
        )
    },
]
GOODS = {
    "rubric": RUBRIC_REPLIES,
    "weighted": WEIGHTED_REPLIES,
    "pairwise": PAIRWISE_REPLIES,
    "checklist": CHECKLIST_REPLIES,
}

RUBRIC = [
    *(material.protocol(language) for language in LANGUAGES),
    material.protocol(expose_meta=True),
    material.protocol(custom_prompt=CustomPrompt.parse("Copy meta.")),
]
WEIGHTED = [grading.protocol(language) for language in LANGUAGES]
CHECKLIST = [checking.protocol(language) for language in LANGUAGES]
PAIRWISE = [pairing.protocol("ru"), pairing.protocol(), pairing.protocol(tables=True)]
ANSWERS = [
    grading.ANSWER,
    grading.under(grading.PLAIN),
    grading.under("task_type: fact\n\n## Critical Fail Conditions\n\n- must_match: /London/\n"),
]
FINISHES = ("stop",) * 30 + ("length", "filtered", "refused", "?")


def checked_rubric(reply, seed):
    protocol, finish = RUBRIC[seed % len(RUBRIC)], FINISHES[seed % len(FINISHES)]
    checked = protocol.check(reply, material.SAMPLE, finish=finish)
    if (output := checked.output) is not None:
        assert list(output) == ["meta", "scores", "failure_tags", "notes"]
        assert jsontext.dump(output["meta"]) == META
        for dimension in material.RUBRIC.dimensions:
            assert output["scores"][dimension.id]["score"] in dimension.scores
        assert output["failure_tags"] == [tag for tag in "ABCDE" if tag in output["failure_tags"]]
    quoted = [material.SAMPLE.model_output[one.start : one.end] for one in checked.evidence]
    if output is not None:
        assert quoted == [quote for one in output["scores"].values() for quote in one["evidence"]]
    return checked


def checked_weighted(reply, seed):
    protocol, answer = WEIGHTED[seed % len(WEIGHTED)], ANSWERS[seed % len(ANSWERS)]
    finish = FINISHES[seed % len(FINISHES)]
    if seed % 5 == 0:
        checked = protocol.check_external_reply(answer, reply, finish=finish)
    else:
        style = "compact" if seed % 2 else "full"
        checked = protocol.check(reply, answer, style, finish=finish)
    if (output := checked.output) is not None:
        assert list(output) == grading.KEYS
        scores = output["score"]
        assert output["weights"] or output["critical_fail"]
        for dimension, most in (output["weights"] or {}).items():
            assert 0 <= scores[dimension] <= most
        assert math.isclose(float(output["total_score"]), math.fsum(scores.values()))
        assert all(len(reason) <= 200 for reason in output["reasoning"].values())
    return checked


def checked_checklist(reply, seed):
    protocol, finish = CHECKLIST[seed % len(CHECKLIST)], FINISHES[seed % len(FINISHES)]
    checked = protocol.check(reply, material.SAMPLE, finish=finish)
    if (output := checked.output) is not None:
        assert list(output) == ["meta", "criteria", "score", "pass", "notes"]
        assert list(output["criteria"]) == ["cause", "brief", "vague"]
        assert output["score"] is None or 0 <= output["score"] <= 1
        for name, one in output["criteria"].items():
            assert one["reason"] and (one["evidence"] or not one["met"] or name == "vague")
    return checked


def checked_pairwise(reply, seed):
    protocol, finish = PAIRWISE[seed % len(PAIRWISE)], FINISHES[seed % len(FINISHES)]
    style = "compact" if seed % 7 == 0 else "full"
    checked = protocol.check(reply, style, finish=finish)
    if (output := checked.output) is not None:
        assert list(output) == ["criteria", "explanation", "winner"]
        assert output["winner"] in (*WINNERS, None)
        assert list(output["criteria"]) == list(CRITERIA)
        assert {one["mark"] for one in output["criteria"].values()} <= {*MARKS, None}
    try:
        value = jsontext.parse(reply)
    except ValueError:
        value = None
    if isinstance(value, dict):
        protocol.check_output(pairing.PAIR, value)
    return checked


CHECKS = {
    "rubric": checked_rubric,
    "weighted": checked_weighted,
    "pairwise": checked_pairwise,
    "checklist": checked_checklist,
}


def sound(checked):
    """What a check says can be stored, shown to a person and told to a judge."""
    assert (checked.output is None) == bool(checked.problems)
    for problem in checked.problems:
        f"{problem.path} {problem.message} {problem.wording}".encode()
    if checked.output is not None:
        text = jsontext.dump(checked.output)
        text.encode()
        assert jsontext.same(jsontext.parse(text), checked.output)


@pytest.mark.parametrize("kind", GOODS)
def test_no_reply_makes_a_check_raise_or_passes_it_wrongly(kind, long):
    first = secrets.randbelow(2**40) if long else 0
    passed = 0
    for seed in range(first, first + (LONG if long else SHORT)):
        reply = mutant(GOODS[kind], seed)
        try:
            checked = CHECKS[kind](reply, seed)
            sound(checked)
            passed += checked.output is not None
        except Exception as error:
            error.add_note(f"{kind}, seed {seed}: {reply[:2000]!r}")
            raise
    assert passed > SHORT // 10, "nearly nothing passes: the mutants are not near the contract"


def mutant(goods, seed):
    """Return a broken reply, as a provider would hand it on."""
    reply = mutants.mutant(goods, seed)
    return reply if isinstance(reply, str) else reply.decode(errors="replace")


NAMES = sorted({name for goods in GOODS.values() for good in goods for name in good})
NAMES += ["mark", "correct", "evidence", "score", "met", *CRITERIA]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=20,
)
RAW = st.text(st.characters()) | st.text("AB+tie|C123 \n{}\"'`-", max_size=80)


@pytest.mark.parametrize("kind", GOODS)
@given(value=ANY, key=st.sampled_from(NAMES), raw=RAW, seed=st.integers(0, 99))
def test_whatever_a_judge_sends_gets_an_answer(kind, value, key, raw, seed):
    for reply in (raw, json.dumps(value), json.dumps(GOODS[kind][0] | {key: value})):
        sound(CHECKS[kind](reply, seed))


class Babbler:
    """An `ask` that answers with one mutant after the other."""

    def __init__(self, kind, seed):
        self.kind, self.seed = kind, seed

    async def __call__(self, question):
        self.seed += 1
        reply = mutant(GOODS[self.kind], self.seed)
        return Reply(text=reply)


async def judged(kind, ask):
    if kind in ("rubric", "checklist"):
        protocol = (RUBRIC if kind == "rubric" else CHECKLIST)[0]
        return await protocol.judge(material.SAMPLE, JudgingContext(ask=ask))
    if kind == "weighted":
        return await WEIGHTED[0].judge(
            grading.under(grading.PLAIN), JudgingContext(ask=ask, styles=("compact",))
        )
    return await PAIRWISE[0].judge(pairing.PAIR, JudgingContext(ask=ask))


@pytest.mark.parametrize("kind", GOODS)
async def test_every_conversation_of_such_replies_ends_in_a_judgment(kind, long):
    first = secrets.randbelow(2**40) if long else 0
    for seed in range(first, first + (20_000 if long else 200)):
        try:
            judgment = await judged(kind, Babbler(kind, seed * 50))
            assert KINDS[kind].read_judgment(write_judgment(judgment, ())) == judgment
        except Exception as error:
            error.add_note(f"{kind}, the seeds after {seed * 50}")
            raise


@pytest.mark.parametrize("kind", GOODS)
def test_a_reply_cut_at_any_place_is_a_failure_and_no_crash(kind):
    for good in GOODS[kind]:
        text = json.dumps(good, ensure_ascii=False)
        for end in range(len(text)):
            checked = CHECKS[kind](text[:end], 1)
            assert checked.problems[0].code in {"truncated", "empty"}, text[:end]
