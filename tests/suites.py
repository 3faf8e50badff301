"""Suites written into a folder, and the ways to judge them: in process, or as a user would."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from msgspec.structs import replace

from evenhand.cli.main import main
from evenhand.exchange import Reply, Style, Usage
from evenhand.results.units import full_rows
from evenhand.runs.judge import Options, judge_run
from evenhand.runs.plan import Plan
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive, open_store
from evenhand.suite import load_suite
from tests.waiting import PATIENCE

EVENHAND = str(Path(sys.executable).with_name("evenhand"))
GOOD = {"model": "python/judge:good"}
RUBRIC = {
    "dimensions": [
        {
            "id": name,
            "name": name.title(),
            "scale": "1, 3, 5",
            "definition": f"Is it {name}?",
            "bands": [{"score": s, "criteria": f"{name} to degree {s}"} for s in (1, 3, 5)],
        }
        for name in ("correct", "clear")
    ]
}
JUDGE = """
import json, re
ANSWER = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

def reply(messages):
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    given = {"evidence": [text[:20]], "rationale": "fits", "score": 3}
    return json.dumps(
        {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    )

async def good(messages, schema, params):
    return reply(messages)

async def bad(messages, schema, params):
    return "{}"

async def crash(messages, schema, params):
    raise RuntimeError("no luck")
"""

PAIR_JUDGE = """
import hashlib, json, random, re
BLOCK = re.compile(r"\\[\\[(\\w+) ([0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1 \\2\\]\\]", re.DOTALL)
CRITERIA = ("C1", "C2", "C3", "C4", "C5")

def blocks(messages):
    return {name: text for name, _, text in BLOCK.findall(messages[-1]["content"])}

def said(marks, winner, **more):
    criteria = {
        c: {"first_meets": True, "second_meets": False, "comment": "so", "mark": mark}
        for c, mark in marks.items()
    }
    return json.dumps({"criteria": criteria, "explanation": "by the criteria", "winner": winner})

def alike(winner):
    mark = {"A": "A+", "B": "B+", "tie": "tie"}[winner]
    return said(dict.fromkeys(CRITERIA, mark), winner)

def better(messages):
    "Which slot holds the greater number."
    shown = blocks(messages)
    first, second = (int(re.search(r"\\d+", shown[f"candidate_{i}"])[0]) for i in (1, 2))
    return "tie" if first == second else "A" if first > second else "B"

async def content(messages, schema, params):
    return alike(better(messages))

async def other(messages, schema, params):
    return alike({"A": "B", "B": "A", "tie": "tie"}[better(messages)])

async def first(messages, schema, params):
    return alike("A")

async def tie(messages, schema, params):
    return alike("tie")

async def coin(messages, schema, params):
    told = json.dumps([messages, params["round"], params["seed"]])
    chance = random.Random(hashlib.blake2b(told.encode()).digest())
    marks = {c: chance.choice(["A+", "B+", "tie"]) for c in CRITERIA}
    return said(marks, chance.choice(["A", "B", "tie"]))

async def late(messages, schema, params):
    return alike("A") if params["round"] == 1 else alike(better(messages))

async def bad(messages, schema, params):
    return "{}"

async def crash(messages, schema, params):
    raise RuntimeError("no luck")
"""
GRADE_JUDGE = """
import json

def said(schema, **changes):
    "Seven points a dimension; the first type where one is to be inferred."
    parts = schema["properties"]
    dimensions = parts["score"]["properties"]
    reply = {
        "inferred_task_type": parts["inferred_task_type"].get("enum", [None])[0],
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": dict.fromkeys(dimensions, "so it is"),
        "score": dict.fromkeys(dimensions, 7),
        "confidence": "high",
    }
    return json.dumps(reply | changes)

async def good(messages, schema, params):
    return said(schema)

async def unsure(messages, schema, params):
    "Hesitates over every answer that says perhaps."
    perhaps = "perhaps" in messages[-1]["content"]
    return said(schema, confidence="low" if perhaps else "medium")

async def strict(messages, schema, params):
    return said(schema, critical_fail=True, critical_fail_reason="It lies.")

async def bad(messages, schema, params):
    return "{}"

async def crash(messages, schema, params):
    raise RuntimeError("no luck")
"""
TASK = """task_type: fact

- +60 if it is right

## Critical Fail Conditions

- It lies.
- must_not_match: /forbidden/i
"""
TICK_JUDGE = """
import json, re
ANSWER = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

def reply(messages, schema, met):
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    text = text.rpartition(", judged:\\n")[2]
    names = schema["properties"]["criteria"]["properties"]
    answers = {}
    for place, name in enumerate(names):
        said = met(text, place)
        answers[name] = {"evidence": [text[:20]] if said else [], "reason": "so it is", "met": said}
    return json.dumps({"criteria": answers, "notes": ""})

async def good(messages, schema, params):
    return reply(messages, schema, lambda text, place: place < 2)

async def picky(messages, schema, params):
    "Of what is poor nothing is met; to a void nothing applies; what is broken has no verdict."
    if any("broken" in message["content"] for message in messages):
        return "{}"
    void = any("void" in message["content"] for message in messages)
    met = lambda text, place: None if void else place < 2 and "poor" not in text
    return reply(messages, schema, met)

async def varied(messages, schema, params):
    "By the text; what is broken never gets a verdict, what is none of it no answer."
    if any("broken" in message["content"] for message in messages):
        return "{}"
    return reply(messages, schema, lambda text, place: (None, True, False)[(len(text) + place) % 3])

async def bad(messages, schema, params):
    return "{}"
"""
CHECKLIST = [
    "Right?",
    {"id": "clear", "text": "Clear enough?", "points": 2, "must": True},
    {"id": "rude", "text": "Rude.", "points": -1},
]
CRITERIA = ("C1", "C2", "C3", "C4", "C5")
CONTENT = {"model": "python/judge:content"}


def samples(number, start=0):
    """Rows that differ from each other."""
    return [
        {"id": f"u{i}", "meta": {"model": "m", "n": i}, "question": f"Question {i}?"}
        | {"model_output": f"Answer number {i} is long enough to be quoted."}
        for i in range(start, start + number)
    ]


def pairs(number, start=0):
    """Rows of two candidates of different worth, the number in its text: A, B, and ties in turn."""
    worths = [(9, 2), (1, 7), (4, 4)]
    return [
        pair_row(f"p{i}", *worths[i % 3], topic=f"Topic {i}?") for i in range(start, start + number)
    ]


def pair_row(ident, *worths, topic="Which?", **rest):
    """A row of candidates, each with a number for its worth."""
    candidates = [
        {"id": f"c{i}", "text": f"{'An answer' if i % 2 else 'A reply'} worth {worth}."}
        for i, worth in enumerate(worths, 1)
    ]
    return {"pair_id": ident, "topic": topic, "candidates": candidates, **rest}


def answers(number, start=0):
    """Answers to as many tasks; every third one is failed by code, every other is unsure."""
    texts = ("It is certain.", "It is perhaps so.", "It is Forbidden.")
    return [
        {"task_name": f"t{i}", "prompt": f"Task {i}?", "answer": texts[i % 3]}
        | {"rubric": TASK, "meta": {"model": "m"}}
        for i in range(start, start + number)
    ]


def write_rows(folder, rows, name="samples.jsonl"):
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_suite(
    folder,
    units=3,
    *judges,
    judge=JUDGE,
    **rest,
):
    """A suite with its data, rubric and `judge.py`. A judge is its table, or the name of a function
    of `judge.py`; `rest` are keys of the file and its tables."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder, samples(units) if isinstance(units, int) else units)
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    top = {"name": "test", "protocol": "rubric", "data": ["samples.jsonl"], "rubric": "rubric.json"}
    return write_tables(folder, top, judges or (GOOD,), judge, rest)


def write_pairs(
    folder,
    units=3,
    *judges,
    judge=PAIR_JUDGE,
    **rest,
):
    """The same for pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder, pairs(units) if isinstance(units, int) else units, "pairs.jsonl")
    top = {"name": "test", "protocol": "pairwise", "data": ["pairs.jsonl"]}
    return write_tables(folder, top, judges or (CONTENT,), judge, rest)


def write_answers(
    folder,
    units=3,
    *judges,
    judge=GRADE_JUDGE,
    **rest,
):
    """The same for answers."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder, answers(units) if isinstance(units, int) else units, "answers.jsonl")
    top = {"name": "test", "protocol": "weighted", "data": ["answers.jsonl"]}
    return write_tables(folder, top, judges or (GOOD,), judge, rest)


def passing(**variants):
    """A row a question and variant that `picky` passes (+), fails (-) or cannot judge (?), or to
    which nothing applies (0)."""
    worth = {"+": "good", "-": "poor", "?": "broken", "0": "void"}
    return [
        {"id": f"{variant}-{n}", "meta": {"prompt_variant": variant, "question_id": f"q{n}"}}
        | {"question": f"Question {n}?"}
        | {"model_output": f"A {worth[mark]} answer of {variant} to {n}."}
        for variant, marks in variants.items()
        for n, mark in enumerate(marks)
    ]


def write_checklist(
    folder,
    units=3,
    *judges,
    judge=TICK_JUDGE,
    **rest,
):
    """The same for a checklist."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder, samples(units) if isinstance(units, int) else units)
    (folder / "criteria.json").write_text(json.dumps(CHECKLIST))
    top = {"name": "test", "protocol": "checklist", "data": ["samples.jsonl"]}
    top |= {"criteria": "criteria.json"}
    return write_tables(folder, top, judges or (GOOD,), judge, rest)


def write_tables(folder, top, judges, judge, rest):
    """Write `evenhand.toml` of keys and tables, and the code of a judge."""
    (folder / "judge.py").write_text(judge)
    tables = {k: v for k, v in rest.items() if isinstance(v, dict)}
    text = _table({**top, **{k: v for k, v in rest.items() if k not in tables}})
    for one in judges:
        keys = {"model": f"python/judge:{one}"} if isinstance(one, str) else one
        text += f"[[judges]]\n{_table(keys)}"
    for name, values in tables.items():
        text += f"[{name}]\n{_table(values)}"
    (folder / "evenhand.toml").write_text(text)
    return folder


def _table(values):
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in values.items())


def _key(name):
    return f'"{name}"' if "." in name else name


def _value(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


def at(url, **rest):
    """A judge at the loopback provider."""
    return {"model": "openai/test-model", "base_url": url, "max_tokens": 256, **rest}


def prepared(folder, environ=None, **overrides):
    env = dict(environ or {})
    return prepare(load_suite(folder, env, overrides), env, lambda said: None)


async def judged(folder, environ=None, **options):
    """Judge a suite in this process, on the store it names."""
    ready = folder if isinstance(folder, Plan) else prepared(folder, environ)
    store = open_store(ready.suite.file.store.url, ready.suite.folder)
    try:
        return await judge_run(ready, store, Options(**{"backoff_first": 0.001, **options}))
    finally:
        store.close()


def stored(folder, run="latest"):
    """All that the store has about the judgments of a run."""
    archive = open_archive("sqlite:evenhand.db", folder)
    try:
        return list(full_rows(archive, find_run(archive, run)))
    finally:
        archive.close()


def evenhand(*arguments, cwd, env=None):
    """The command as a user calls it, in a process of its own. The first argument is the command
    line as it is typed; more are words of their own, with their blanks."""
    return subprocess.run(
        [EVENHAND, *_words(arguments)],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def evenhand_here(*arguments, cwd, env=None):
    """The same without a process of its own, for tests of what a command says and does: its `main`
    in a thread of this one, which may have an event loop."""
    ended = Future()

    def work():
        try:
            ended.set_result(_main(_words(arguments), cwd, environment(env)))
        except BaseException as error:
            ended.set_exception(error)

    # A daemon: a command that does not end must fail its test, not hold up all others.
    threading.Thread(target=work, daemon=True).start()
    return ended.result(PATIENCE)


def _words(arguments):
    line, *more = arguments
    return [*shlex.split(line), *more]


def ok_here(*arguments, cwd, env=None):
    """The same for a command that must work."""
    done = evenhand_here(*arguments, cwd=cwd, env=env)
    assert done.returncode == 0, done.stderr
    return done


def json_here(*arguments, cwd, env=None):
    """The answer as JSON of a command that must work."""
    return json.loads(ok_here(*arguments, "--json", cwd=cwd, env=env).stdout)


def _main(arguments, cwd, environ):
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name in os.environ.keys() - environ.keys():
            patch.delenv(name)
        for name, value in environ.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["evenhand", *arguments])
        patch.setattr(sys, "path", [*sys.path])  # a judge's folder is there for this command alone
        patch.delitem(sys.modules, "judge", raising=False)  # a new process reads it anew
        patch.chdir(cwd)
        with pytest.raises(SystemExit) as left:
            main()
    code = left.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def started(*arguments, cwd):
    """The command, under way."""
    return subprocess.Popen(
        [EVENHAND, *_words(arguments)],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def environment(more=None):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("EVENHAND_", "OPENAI_"))}
    return kept | {"COLUMNS": "120"} | dict(more or {})


class Scripted:
    """A judge in this process: `answer` decides, `asked` holds every question."""

    name, caveat, slots, account, unavailable_reason = "scripted", "", None, "scripted", None
    style: Style = "full"

    def __init__(self, answer):
        self.identity = {"provider": "scripted"}
        self.asked = []
        self._answer = answer

    async def answer(self, question):
        self.asked.append(question)
        return await self._answer(question)

    def load(self):
        """Nothing to bring in."""

    async def close(self):
        """Nothing to give back."""


def with_judges(ready, *judges):
    """The suite with these in the places of its first judges."""
    setups = [
        replace(setup, judge=judge) for setup, judge in zip(ready.setups, judges, strict=False)
    ]
    return replace(ready, setups=(*setups, *ready.setups[len(setups) :]))


def good_reply(question, usage=None):
    """What the contract asks for, without evidence."""
    given = {"evidence": [], "rationale": "no evidence found", "score": 3}
    scores = {"correct": given, "clear": given}
    text = json.dumps({"scores": scores, "failure_tags": [], "notes": ""})
    return Reply(text=text, usage=usage or Usage(input_tokens=50, output_tokens=10))


def pair_reply(marks, winner=None, explanation="so it is"):
    """A reply of the shape that a pairwise prompt asks for; one mark stands for all criteria."""
    given = dict.fromkeys(CRITERIA, marks) if isinstance(marks, str) else marks
    value = {"first_meets": True, "second_meets": True, "comment": "so"}
    criteria = {name: {**value, "mark": mark} for name, mark in given.items()}
    said = winner or {"A+": "A", "B+": "B"}.get(next(iter(given.values())), "tie")
    return json.dumps({"criteria": criteria, "explanation": explanation, "winner": said})
