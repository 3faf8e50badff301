"""Suites whose comparison is to be decided: questions answered by variants of known quality."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.suites import judged, stored, write_suite

MARKING = """
import asyncio, json, pathlib, random, re

def scored(messages):
    text = "\\n".join(m["content"] for m in messages)
    mark = int(re.search(r"has mark (\\d)", text)[1])
    given = {"evidence": [], "rationale": "no evidence found", "score": mark}
    scores = {"correct": given, "clear": given | {"score": 3}}
    return json.dumps({"scores": scores, "failure_tags": [], "notes": ""})

async def marks(messages, schema, params):
    return scored(messages)

async def unsteady(messages, schema, params):
    for _ in range(random.randrange(20)):
        await asyncio.sleep(0)
    return scored(messages)

async def slow(messages, schema, params):
    await asyncio.sleep(0.01)
    return scored(messages)

def is_odd(messages):
    text = "\\n".join(m["content"] for m in messages)
    return re.search(r"Question \\d*[37]\\?", text)

async def failing(messages, schema, params):
    return "{}" if is_odd(messages) else scored(messages)

async def crashing(messages, schema, params):
    if is_odd(messages) and not pathlib.Path("mended").exists():
        raise RuntimeError("no luck")
    return scored(messages)
"""
COMPARE = {"by": "prompt_variant", "baseline": "v1"}
BETTER = {"v1": [4, 4, 2], "v2": [1, 3, 6]}
EQUAL = {"v1": [3, 4, 3], "v2": [3, 4, 3]}
QUESTIONS = 150
KEPT = ("outcome", "questions", "units", "low", "high", "estimate", "skipped")
"""What a decision says whatever else was judged beside its questions."""


def rows(odds: Mapping[str, Sequence[int]], number: int = QUESTIONS, start: int = 0) -> list[Any]:
    """Questions, each answered by every variant; the mark of an answer stands in its text."""
    chance, made = random.Random(start), []
    for i in range(start, start + number):
        for variant, weights in odds.items():
            mark = chance.choices((1, 3, 5), weights)[0]
            meta = {"model": "m", "prompt_variant": variant, "question_id": f"q{i}"}
            text = f"The answer of {variant} has mark {mark}."
            made.append({"meta": meta, "question": f"Question {i}?", "model_output": text})
    return made


def write(folder: Path, given: list[Any], judge: str = "marks", **rest: Any) -> Path:
    limits = {"concurrency": 4} | rest.pop("limits", {})
    judges = [{"model": f"python/judge:{judge}", "repeats": rest.pop("repeats", 1)}]
    top = {"compare": COMPARE, "limits": limits} | rest
    return write_suite(folder, given, *judges, judge=MARKING, **top)


def judged_units(folder: Path) -> set[str]:
    return {row["unit"] for row in stored(folder)}


def decided_in(folder: Path) -> dict[str, Any]:
    """What a run in a folder decides, as it is printed."""
    test = asyncio.run(judged(folder)).decided
    assert test is not None
    return test.json()
