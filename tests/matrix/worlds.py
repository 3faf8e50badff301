"""Runs that are odd on purpose, one for each kind and each way in which a run comes to be.

Every unit is legal and unlike the examples: a task without a type, no evidence, three judges,
repeats, two candidates and three, ids in other scripts, a text of 200,000 characters, an answer
that code fails, a pair that stays uncertain, a judge that is left out, a reply that never keeps the
contract.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evenhand.data.write import write
from tests.provider import Provider, by_number, comparing
from tests.suites import (
    GRADE_JUDGE,
    JUDGE,
    PAIR_JUDGE,
    TASK,
    at,
    judged,
    pair_row,
    write_answers,
    write_checklist,
    write_pairs,
    write_suite,
)

LONG = "слово 単語 word, " * 13_000
"""Some 200,000 characters."""

SCORE_JUDGE = (
    JUDGE
    + '''
def varied(messages, salt):
    """Scores by the text; "broken" is never answered well, "bare" without evidence."""
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    if "broken" in text:
        return "{}"
    given = {"evidence": [text[:20]], "rationale": "fits"}
    if "bare" in text:
        given = {"evidence": [], "rationale": "no evidence found"}
    scores = {
        name: {**given, "score": (1, 3, 5)[(len(text) + salt + place) % 3]}
        for place, name in enumerate(("correct", "clear"))
    }
    tags = ["D", "B"] if "tagged" in text else []
    return json.dumps({"scores": scores, "failure_tags": tags, "notes": "unsure" if tags else ""})

async def mild(messages, schema, params):
    return varied(messages, 0)

async def stern(messages, schema, params):
    return varied(messages, 1)

async def odd(messages, schema, params):
    return varied(messages, 2)
'''
)

VOTE_JUDGE = (
    PAIR_JUDGE
    + """
async def broken(messages, schema, params):
    "As `content`, but of no use where a candidate says so."
    if any("broken" in message["content"] for message in messages):
        return "{}"
    return alike(better(messages))
"""
)

MARK_JUDGE = (
    GRADE_JUDGE
    + """
async def broken(messages, schema, params):
    "As `unsure`, but of no use where the answer says so."
    if any("broken" in message["content"] for message in messages):
        return "{}"
    return await unsure(messages, schema, params)
"""
)
UNTYPED = "- +60 if it is right\n\n## Critical Fail Conditions\n\n- must_not_match: /forbidden/i\n"
"""A rubric without a type: the judge infers one, and where code fails an answer there is none."""


@dataclass(frozen=True)
class World:
    """A folder with one run, and what can be asked of it."""

    kind: str
    origin: str
    by: tuple[str, ...]
    """What its variants are told apart by, as `compare` takes it."""
    build: Callable[[Path], None]

    @property
    def name(self):
        return f"{self.kind}-{self.origin}"


def _twice(*names):
    """Judges of these names, who judge everything twice."""
    return [{"model": f"python/judge:{name}", "repeats": 2} for name in names]


def _samples():
    texts = ("A plain answer.", "A tagged answer, longer.", "bare", "A broken answer.", LONG)
    rows = [
        {
            "id": f"вопрос-{i}/問{variant}",
            "meta": {"prompt_variant": variant, "question_id": f"問{i}", "n": 1.50},
            "question": f"Question {i}, {variant}?",
            "model_output": f"{texts[i % len(texts)]} {variant} {i}",
        }
        for i in range(7)
        for variant in ("v1", "v2")
    ]
    return [*rows, rows[0] | {"id": "alone", "meta": {}, "model_output": "Without any meta."}]


def _judged_samples(folder):
    _judge(write_suite(folder, _samples(), *_twice("mild", "stern", "odd"), judge=SCORE_JUDGE))


def _pairs():
    kin = {"id": "gpt-4o", "text": "An answer worth 3.", "model": "gpt-4o"}
    other = {"id": "c2", "text": "A reply worth 8."}
    return [
        pair_row("пара/一", 9, 2, topic="Тема?", meta={"area": "x"}),
        pair_row("three", 1, 7, 4, topic="Three?"),
        pair_row("same", 4, 4, topic="Same?"),
        {"pair_id": "kin", "topic": "Kin?", "candidates": [kin, other]},
        _told("broken", "It is broken, worth 1.", "It is broken, worth 2."),
        _told("long", f"{LONG} worth 5.", f"{LONG} is worth 6."),
    ]


def _told(ident, *texts):
    candidates = [{"id": f"c{i}", "text": text} for i, text in enumerate(texts, 1)]
    return {"pair_id": ident, "topic": f"{ident}?", "candidates": candidates}


def _judged_pairs(folder):
    asyncio.run(_judge_beside_a_provider(folder))


async def _judge_beside_a_provider(folder):
    """Two judges in this process, and one on the loopback that is of a candidate's family."""
    judges, settings = _twice("broken", "first"), {"no_self_judging": True, "max_rounds": 2}
    async with Provider(comparing(by_number)) as provider:
        kin = at(provider.url, model="openai/gpt-4.1-mini", repeats=2)
        write_pairs(folder, _pairs(), *judges, kin, judge=VOTE_JUDGE, settings=settings)
        await judged(folder)


def _answers():
    texts = ("It is certain.", "perhaps", "It is Forbidden.", "A broken one.", LONG)
    return [
        {
            "id": f"課題{i}/{model}",
            "task_name": f"課題{i}",
            "prompt": f"Task {i}?",
            "answer": f"{texts[i % len(texts)]} {model}",
            "rubric": UNTYPED if i % 2 == 0 else TASK,
            "meta": {"model": model},
        }
        for i in range(8)
        for model in ("m1", "m2")
    ]


def _judged_answers(folder):
    judges = [*_twice("broken", "good"), {"model": "python/judge:strict", "repeats": 1}]
    _judge(write_answers(folder, _answers(), *judges, judge=MARK_JUDGE))


def _judged_checklists(folder):
    own = {"id": "own", "criteria": "Short?", "model_output": "Its own question."}
    own["meta"] = {"question_id": "own"}
    rows = [row | {"model_output": row["model_output"][:100]} for row in _samples()]
    _judge(write_checklist(folder, [*rows, rows[0] | own], *_twice("varied", "good")))


def _failed(write, units):
    """Build a run of the first of some units, by a judge who never keeps the contract."""
    return lambda folder: _judge(write(folder, units()[:4], {"model": "python/judge:bad"}))


def _imported_scores(folder):
    rows = [
        {"unit": f"問{i}", "judge": judge, "dimension": dimension, "model": model}
        | {"score": "" if (i, judge) == (2, "j1") else (i + place) % 5 + 1, "repeat": repeat}
        for i in range(6)
        for place, model in enumerate(("m1", "m2"))
        for judge in ("j1", "j2", "люди")
        for repeat in (0, 1)
        for dimension in ("clear", "true")
    ]
    write(folder / "scores.jsonl", rows)


def _imported_votes(folder):
    winners = ("first", "second", "tie", "", "x")
    rows = [
        {"unit": f"題{i}", "judge": judge, "first": first, "second": second, "area": "y"}
        | {"winner": winners[(i + place) % len(winners)]}
        for i in range(8)
        for place, judge in enumerate(("j1", "j2", "люди"))
        for first, second in (("a", "b"), ("b", "a"))
    ]
    write(folder / "votes.csv", rows)


def _judge(folder):
    asyncio.run(judged(folder))


BY_VARIANT = ("--by", "prompt_variant", "--baseline", "v1")
BY_MODEL = ("--by", "model", "--baseline", "m1")
WORLDS = (
    World("rubric", "judged", BY_VARIANT, _judged_samples),
    World("rubric", "failed", BY_VARIANT, _failed(write_suite, _samples)),
    World("rubric", "imported", BY_MODEL, _imported_scores),
    World("pairwise", "judged", ("--baseline", "c1"), _judged_pairs),
    World("pairwise", "failed", ("--baseline", "c1"), _failed(write_pairs, _pairs)),
    World("pairwise", "imported", ("--baseline", "a"), _imported_votes),
    World("weighted", "judged", BY_MODEL, _judged_answers),
    World("weighted", "failed", BY_MODEL, _failed(write_answers, _answers)),
    World("checklist", "judged", BY_VARIANT, _judged_checklists),
    World("checklist", "failed", BY_VARIANT, _failed(write_checklist, _samples)),
)
IMPORTS = {"rubric": ("scores.jsonl", "scores"), "pairwise": ("votes.csv", "votes")}
