"""Replies as strong judges write them, each with what it is read as, or that it is asked again.

A case is `LANGUAGE REPLY ==> VERDICT`, with `~` before a verdict that code had to mend. A reply
stands in full, `⏎` for a line break, or as changes to a good one (`contracts.change`).
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from evenhand import jsontext
from evenhand.kinds.pairwise.verdict import derive_winner
from evenhand.kinds.rubric.rubric import parse_rubric
from evenhand.units import Answer, Sample
from tests.unit.kinds import grading, material, pairing
from tests.unit.kinds.contracts import change
from tests.users_prompts.running import HERE

FOLDER = Path(__file__).parent / "realistic"
RUBRIC = parse_rubric((HERE / "rubric_zh.json").read_text(encoding="utf-8"))
META = {"run_id": "r1", "model": "m-7"}
MARKS = {"A": "A+", "B": "B+", "=": "tie"}
FLAGS = ("compares", "guesses_source", "has_notes")


def cases(name):
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        text, expected = line.split(" ==> ")
        language, text = text.split(" ", 1)
        yield language, text.replace("⏎", "\n"), expected


def materials(name):
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def pair_verdict(checked):
    marks = {mark: letter for letter, mark in MARKS.items()}
    given = checked.value.marks
    winner = derive_winner(given, pairing.protocol().priority)
    return f"{winner} {''.join(marks[mark] for mark in given.values())}"


def whole_pair():
    marks = dict(zip(("C1", "C2", "C3", "C4", "C5"), "A=AB=", strict=True))
    meets = {"A": (True, False), "B": (False, True), "=": (True, True)}
    criteria = {
        name: {
            "first_meets": meets[mark][0],
            "second_meets": meets[mark][1],
            "comment": "так и есть",
            "mark": MARKS[mark],
        }
        for name, mark in marks.items()
    }
    return {"criteria": criteria, "explanation": "Решает C1.", "winner": "A"}


def read_line(language, text):
    return pairing.protocol(language).check_external_reply(pairing.PAIR, text), pair_verdict


def read_pair(language, text):
    reply = change(whole_pair(), text)
    return pairing.protocol(language).check_external_reply(pairing.PAIR, reply), pair_verdict


def read_sample(language, text):
    given = materials("rubric")[language]
    sample = Sample(
        id="s",
        question=given["question"],
        model_output=given["output"],
        meta=jsontext.parse(json.dumps(META)),
    )
    scores = {
        name: {"score": score, "evidence": [evidence], "rationale": rationale}
        for name, score, evidence, rationale in zip(
            ("accuracy", "instruction"), (5, 3), given["evidence"], given["rationale"], strict=True
        )
    }
    good = {"meta": META, "scores": scores, "failure_tags": [], "notes": ""}
    judged = material.protocol(language, rubric=RUBRIC)

    def verdict(checked):
        output = checked.output
        scores = [f"{part['score']:g}" for part in output["scores"].values()]
        flags = [flag for flag in FLAGS if flag in checked.flags]
        return " ".join([*scores, *output["failure_tags"], *flags])

    return judged.check_external_reply(sample, change(good, text)), verdict


def read_answer(language, text):
    name, text = text.split(" ", 1)
    given = materials("weighted")[name]
    good = json.loads(given.pop("reply"))
    answer = Answer(id="a", meta={}, **given)

    def verdict(checked):
        output = checked.output
        first = "fail" if output["critical_fail"] else output["task_type"]
        return " ".join([first, *(f"{score:g}" for score in output["score"].values())])

    return grading.protocol(language).check_external_reply(answer, change(good, text)), verdict


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("pairwise", read_line),
        ("pairwise_objects", read_pair),
        ("rubric", read_sample),
        ("weighted", read_answer),
    ],
)
def test_none_is_asked_again_without_need_and_none_is_read_as_another(name, read):
    different: list[str] = []
    for language, text, expected in cases(name):
        checked, verdict = read(language, text)
        fixed = "~" if checked.fixes else ""
        outcome = "ask" if checked.problems else f"{fixed}{verdict(checked)}"
        if outcome != expected:
            codes = [f"{each.code} {each.path}" for each in checked.problems]
            different.append(f"{language} {text}: {outcome} {codes}")
    assert different == []
