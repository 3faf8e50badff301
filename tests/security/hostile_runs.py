"""Runs whose every field holds a hostile text: ids, names, meta, what was judged, what judges said,
what went wrong."""

from __future__ import annotations

import json

import pytest

from tests.security.hostile import HOSTILE
from tests.suites import (
    PAIR_JUDGE,
    TICK_JUDGE,
    write_answers,
    write_checklist,
    write_pairs,
    write_suite,
)
from tests.unit.web.serving import judge_all

SAMPLE_JUDGE = '''
import json, re
ANSWER = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

async def echo(messages, schema, params):
    """Says what it was shown; of every fifth answer, it breaks down with it, or says it raw."""
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    number = int(text.rsplit(" ", 1)[1])
    if number % 10 == 3:
        raise RuntimeError(text)
    if number % 10 == 7:
        return text
    given = {"evidence": [text[:300]], "rationale": text, "score": 1 + 2 * (len(text) % 3)}
    scores = {name: given for name in schema["properties"]["scores"]["properties"]}
    return json.dumps({"scores": scores, "failure_tags": ["E"], "notes": text[:200]})
'''
_ECHO_PAIR = """
async def echo(messages, schema, params):
    shown = blocks(messages)
    text = shown["candidate_1"]
    criteria = {
        c: {"first_meets": True, "second_meets": False, "comment": text, "mark": "A+"}
        for c in CRITERIA
    }
    return json.dumps({"criteria": criteria, "explanation": text, "winner": "B"})
"""
_ECHO_GRADE = """
import json, re
ANSWER = re.compile(r"\\[\\[(answer [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

async def echo(messages, schema, params):
    found = ANSWER.search("\\n".join(m["content"] for m in messages))
    text = found[2] if found else "none"
    parts = schema["properties"]
    dimensions = parts["score"]["properties"]
    return json.dumps({
        "inferred_task_type": None,
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": dict.fromkeys(dimensions, text[:180]),
        "score": dict.fromkeys(dimensions, 7),
        "confidence": "low",
    })
"""
_ECHO_TICKS = """
async def echo(messages, schema, params):
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    text = text.rpartition(", judged:\\n")[2][-300:]
    answers = schema["properties"]["criteria"]["properties"]
    said = {"evidence": [text[-40:]], "reason": text, "met": True}
    return json.dumps({"criteria": dict.fromkeys(answers, said), "notes": text})
"""


def _conversation(text, ending):
    """Everybody says the text, names a tool by it and sends it to the tool."""
    call = {"id": "c", "type": "function", "function": {"name": f"tool {text}", "arguments": text}}
    return [
        {"role": "system", "content": text},
        {"role": "user", "content": f"{text}?"},
        {"role": "assistant", "content": f"{text} one", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "name": text, "content": text},
        {"role": "assistant", "content": ending},
    ]


def _one_line(text):
    """A text that stays one item of a list in Markdown."""
    return " ".join(text.replace("`", "").split())


def hostile_suites(folder, texts=HOSTILE, **keep):
    """Suites of the four kinds, a unit for every hostile text, with hostile names of fields,
    variants and candidates that come up often enough to be compared."""
    names = [*texts[:8], *(text for text in texts if "\x1b" in text or "\x00" in text)][:12]
    samples = []
    pairs = []
    answers = []
    talks = []
    for i, text in enumerate(texts):
        meta = {"model": texts[i % 3], f"key {text}"[:200]: text, "area": text}
        given = {"prompt_variant": texts[i % 2], "question_id": f"q{i // 2}", **meta}
        ident, asked = f"{text} {i}", f"{text}?"
        samples.append({"id": ident, "meta": given, "question": asked, "model_output": ident})
        samples[-1]["reference"] = text
        candidates = [
            {"id": names[i % len(names)], "text": f"{text} one"},
            {"id": "plain", "text": f"{text} two"},
        ]
        pairs.append({"pair_id": ident, "topic": asked, "candidates": candidates, "meta": meta})
        rubric = f"task_type: fact\n\n- +60 {_one_line(text)}\n"
        task = {"task_name": ident, "prompt": asked, "answer": ident, "rubric": rubric}
        answers.append({**task, "meta": meta})
        talks.append({"id": ident, "messages": _conversation(text, ident), "meta": meta})
        talks[-1]["context"] = text
    echo = {"model": "python/judge:echo"}
    name = "<img src=x onerror=struck(1)>\u202e</title><script>struck(1)</script>"
    scored = write_suite(folder / "a", samples, echo, judge=SAMPLE_JUDGE, name=name, **keep)
    rubric = json.loads((scored / "rubric.json").read_text())
    for dimension, text in zip(rubric["dimensions"], HOSTILE, strict=False):
        dimension |= {"name": text, "definition": text}
    (scored / "rubric.json").write_text(json.dumps(rubric))
    keep_ticks = keep | {"judged": "conversation", "name": f"{name} d"}
    ticked = write_checklist(
        folder / "d", talks, echo, judge=TICK_JUDGE + _ECHO_TICKS, **keep_ticks
    )
    criteria = [
        {"id": f"c{i}", "text": text} for i, text in enumerate(filter(str.strip, texts[:9]))
    ]
    (ticked / "criteria.json").write_text(json.dumps(criteria))
    return [
        scored,
        write_pairs(
            folder / "b", pairs, echo, judge=PAIR_JUDGE + _ECHO_PAIR, name=f"{name} b", **keep
        ),
        write_answers(folder / "c", answers, echo, judge=_ECHO_GRADE, name=f"{name} c", **keep),
        ticked,
    ]


def judge_hostile(*suites):
    """Judge suites, with hostile names of who began them, notes and tags."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVENHAND_AUTHOR", '"><script>struck(1)</script>\u202e')
        judge_all(*suites, note=" ".join(HOSTILE)[:9000], tags=tuple(HOSTILE))
