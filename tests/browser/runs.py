"""Runs to look at: judged once, with everything a page has to show."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from evenhand.runs.judge import Options, judge_run
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive, open_store
from evenhand.suite import load_suite
from tests.suites import pair_row, write_answers, write_pairs, write_suite

T = TypeVar("T")
STORE = "looked.db"

JUDGE = '''
import json, re, zlib
ANSWER = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

async def varied(messages, schema, params):
    """Likes v2 better, quotes from the middle, fails now and then, and once breaks the contract
    before it keeps it."""
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    chance = zlib.crc32(text.encode())
    if "hopeless" in text:
        return "I would rather not say."
    if "clumsy" in text and len(messages) < 3:
        return '{"scores": {}}'
    middle = len(text) // 3
    def given(shift):
        score = min(5, (1, 3, 3)[(chance >> shift) % 3] + (2 if "second" in text else 0))
        quotes = [text[middle + shift : middle + shift + 9], text[-12:-2]]
        return {"evidence": quotes, "rationale": f"Band {score} fits best.", "score": score}
    tags = ["B"] if chance % 5 == 0 else []
    scores = {"correct": given(0), "clear": given(4)}
    return json.dumps({"scores": scores, "failure_tags": tags, "notes": "unsure" if tags else ""})
'''


def sample_rows(number):
    """Two variants of answers to each question, in several scripts."""
    texts = ("Ответ про кошек и собак.", "答えは猫と犬です。", "🙂🙂 An emoji first, then words.")
    special = {2: "A clumsy case.", 5: "A hopeless case."}
    return [
        {"meta": {"model": "m", "prompt_variant": variant, "question_id": f"q{i}"}}
        | {"question": f"Question {i}: what about it?"}
        | {
            "model_output": f"{special.get(i, texts[i % 3])} This is the {word} answer, number {i}."
            + " It goes on for a while." * (i % 7) ** 2
        }
        for i in range(number)
        for variant, word in (("v1", "first"), ("v2", "second"))
    ]


def rubric_suite(folder, number=20, **rest):
    judge = {"model": "python/judge:varied"}
    return write_suite(folder, sample_rows(number), judge, judge=JUDGE, **rest)


def pairs_suite(folder, number=12, **rest):
    """Three candidates a topic, by two judges, one of which prefers the first slot."""
    rows = [pair_row(f"p{i}", 1 + i % 5, 3, 5 - i % 4, topic=f"Topic {i}?") for i in range(number)]
    judges = [{"model": "python/judge:coin"}, {"model": "python/judge:first"}]
    return write_pairs(folder, rows, *judges, **rest)


def answers_suite(folder, number=9, **rest):
    return write_answers(folder, number, {"model": "python/judge:unsure"}, **rest)


SUITES = {
    "rubric": rubric_suite,
    "pairwise": pairs_suite,
    "weighted": answers_suite,
}


def aside(work):
    """What work gives that needs an event loop of its own: in another thread, since this one may
    be driving a browser."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()


def judge(suite, limit=None):
    """Judge a suite into a store beside it, and return its folder."""
    folder = suite if suite.is_dir() else suite.parent

    async def work():
        store = open_store(f"sqlite:{STORE}", folder)
        try:
            prepared = prepare(load_suite(suite, {}), {}, lambda said: None)
            await judge_run(prepared, store, Options(limit=limit))
        finally:
            store.close()

    aside(lambda: asyncio.run(work()))
    return folder


@contextmanager
def opened(folder):
    """The store of a judged suite, and its run."""
    store = open_archive(f"sqlite:{STORE}", folder)
    try:
        yield store, find_run(store, "latest")
    finally:
        store.close()
