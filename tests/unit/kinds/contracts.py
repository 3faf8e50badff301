"""A good reply of each kind, and the contract of each held against one."""

import json
from functools import reduce
from pathlib import Path

from msgspec.structs import replace

from evenhand.units import Candidate
from evenhand.words import Names, Sentence
from tests.suites import pair_reply
from tests.unit.kinds import checking, grading, material, pairing

GOOD = {
    "pairwise": json.loads(pair_reply("A+")),
    "rubric": material.good(),
    "weighted": grading.reply(),
    "checklist": checking.good(),
}
KINDS = tuple(GOOD)
BROKEN = Path(__file__).parent / "broken"


def check(kind, reply, language="en", text=""):
    """Hold a reply against the contract of a kind, where the judged text holds this as well."""
    if kind == "pairwise":
        judged = pairing.protocol(language)
        if not text:
            return judged.check(reply)
        pair = replace(pairing.PAIR, second=Candidate(id="x", text=text))
        return judged.check_external_reply(pair, reply)
    if kind == "weighted":
        answer = grading.under(grading.FACT, text or grading.ANSWER.answer)
        return grading.protocol(language).check(reply, answer)
    output = f"{material.SAMPLE.model_output}\n{text}".rstrip("\n")
    sample = replace(material.SAMPLE, model_output=output)
    judged = checking if kind == "checklist" else material
    return judged.protocol(language).check(reply, sample)


def change(good, changes):
    """Return a reply with `PATH = JSON` or `PATH gone` applied, or a JSON text around it."""
    dumped = json.dumps(good, ensure_ascii=False)
    if changes.startswith('"'):
        text = json.loads(changes)
        return dumped[:-9] if text.endswith("<cut>") else text.replace("¤", dumped)
    copy = json.loads(dumped)
    for part in changes.split(" & "):
        path, _, value = part.partition(" = ")
        *way, last = (
            int(key) if key.isdigit() else key for key in path.removesuffix(" gone").split(".")
        )
        holder = reduce(lambda inner, key: inner[key], way, copy)
        if value:
            value, _, times = value.partition(" * ")
            holder[last] = json.loads(value) * int(times) if times else json.loads(value)
        else:
            del holder[last]
    return json.dumps(copy, ensure_ascii=False)


def read_table(name):
    """Return the changes of a table, and the fixes, problems and flags that come of each."""
    rows = (BROKEN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    parts = (row.rpartition(" ->") for row in rows)
    return [
        (changes, outcome.strip().split("; ") if outcome else []) for changes, _, outcome in parts
    ]


def outcome_of(checked):
    """Return what a check found in the words of the tables, in their order."""
    problems = [f"{problem.code} {problem.path}".strip() for problem in checked.problems]
    fixes = [f"fix {fix.code} {fix.path}".strip() for fix in checked.fixes]
    return sorted([*problems, *fixes, *(f"flag {flag}" for flag in checked.flags)])


def assert_told(error, told):
    """The message of an error has a key of kinds; among its values are these words."""
    key, *values = told.split()
    assert error.args[0].key == f"kinds.{key}"
    assert set(values) <= set(_told(error.args[0]))
    str(error).encode()


def _told(sentence):
    for value in sentence.values.values():
        if isinstance(value, Sentence):
            yield value.key.removeprefix("kinds.")
            yield from _told(value)
        else:
            yield from value.names if isinstance(value, Names) else str(value).split(", ")
