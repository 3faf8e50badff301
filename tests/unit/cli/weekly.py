"""The questions of every week, as data: 240 samples of 2 prompt variants x 2 models x 2 evaluation
sets x 10 questions x 3 run ids, with the scores that a judge will read off each of them."""

from __future__ import annotations

import asyncio
import random
from itertools import product
from typing import NamedTuple

from evenhand.runs.judge import judge_run
from evenhand.runs.prepare import prepare
from evenhand.runs.stores import open_store
from evenhand.suite import load_suite
from tests.suites import write_suite

JUDGE = """
import json, re
ANSWER = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

async def read(messages, schema, params):
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    correct, clear = re.search(r"worth (\\d) and (\\d)", text).groups()
    scores = {
        name: {"evidence": [text[:9]], "rationale": f"{name}: {text}", "score": int(score)}
        for name, score in (("correct", correct), ("clear", clear))
    }
    return json.dumps({"scores": scores, "failure_tags": [], "notes": ""})
"""
READ = {"model": "python/judge:read"}
MODELS, SETS, QUESTIONS, RUNS = ("big", "small"), ("easy", "hard"), range(10), ("r1", "r2", "r3")


class Scored(NamedTuple):
    """A sample and the scores that it is worth."""

    variant: str
    model: str
    eval_set: str
    question: int
    run_id: str
    correct: int
    clear: int

    @property
    def overall(self):
        """On the scale from 0 to 1: both dimensions go from 1 over 3 to 5."""
        return ((self.correct - 1) / 4 + (self.clear - 1) / 4) / 2

    @property
    def id(self):
        fields = (self.run_id, self.model, self.variant, self.eval_set, f"q{self.question}")
        return "/".join(fields)

    @property
    def row(self):
        """As it stands in the data."""
        meta = {
            "run_id": self.run_id,
            "model": self.model,
            "prompt_variant": self.variant,
            "eval_set_variant": self.eval_set,
            "question_id": f"q{self.question}",
        }
        text = f"Answered: {self.variant} of {self.model}, worth {self.correct} and {self.clear}."
        question = f"What is {self.question}, {self.eval_set}?"
        return {"meta": meta, "question": question, "model_output": text}


def samples(seed=7, gain=0):
    """All 240: v2 is better than v1 with the big model, and its scores waver from run to run.
    `gain` is what v1 wins of some questions."""
    chance = random.Random(seed)
    rows = []
    for model, eval_set, question in product(MODELS, SETS, QUESTIONS):
        base = chance.choice((1, 3, 3, 5))
        for variant, run_id in product(("v1", "v2"), RUNS):
            lift = 2 if variant == "v2" and model == "big" else 0
            lift += 2 * gain * (variant == "v1" and question % 3 == 0)
            noise = chance.choice((-2, 0, 2)) if variant == "v2" else chance.choice((0, 0, 0, 2))
            correct = min(5, max(1, base + lift + noise))
            clear = chance.choice((3, 3, 5))
            rows.append(Scored(variant, model, eval_set, question, run_id, correct, clear))
    return rows


LAST, ROWS = samples(), samples(gain=1)
BY = "--by prompt_variant --baseline v1"


def judged_folder(folder, *weeks):
    """A folder with a suite, its data judged week after week."""
    for rows in weeks:
        suite = load_suite(write_suite(folder, [row.row for row in rows], READ, judge=JUDGE), {})
        store = open_store(suite.store_url, folder)
        try:
            asyncio.run(judge_run(prepare(suite, {}, lambda line: None), store))
        finally:
            store.close()
    return folder


def mean(values):
    return sum(values) / len(values)


def paired(rows, value=lambda row: row.overall):
    """Each sample of v1, that of v2 which answers the same, and the difference."""
    places = {row[1:5]: row for row in rows if row.variant == "v2"}
    for row in rows:
        if row.variant == "v1":
            partner = places[row[1:5]]
            yield row, partner, value(partner) - value(row)


def by_question(gaps):
    """The differences, by question."""
    questions = {}
    for row, _, gap in gaps:
        questions.setdefault(row.question, []).append(gap)
    return questions
