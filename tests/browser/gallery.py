"""A store with a run of every sort that a page may have to show: odd on purpose. Long names, many
candidates, several judges, failures, texts of great length, judgments made elsewhere."""

from __future__ import annotations

import asyncio
import csv
from concurrent.futures import ThreadPoolExecutor

from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_store
from evenhand.store.batches import BatchItem, NewBatch
from evenhand.store.rows import CALL_TAG
from tests.browser.runs import JUDGE, pairs_suite, rubric_suite
from tests.suites import (
    TASK,
    ok_here,
    pair_row,
    pairs,
    passing,
    write_answers,
    write_checklist,
    write_pairs,
    write_suite,
)
from tests.unit.web.serving import judge_all

STORE = "gallery.db"
LONG_NAMES = (
    "gpt-4.1-mini-2025-04-14-with-tools-and-a-very-long-name",
    "Модель с длинным русским названием, версия вторая",
    "名前がとても長い日本語のモデル第二版",
    "claude-sonnet",
    "тройка",
    "Llama-3.3-70B-Instruct-Turbo",
    "Llama-3.3-70B-Instruct-Turbo-Free",
)
QUESTIONS = (
    "Explain to a child why the sky is blue, and why it turns red in the evening.",
    "Почему море солёное, а реки, которые в него впадают, нет? Ответьте в трёх предложениях.",
    "为什么天空是蓝色的？请用三句话向一个孩子解释。",
    "なぜ空は青いのですか。子どもに分かるように三つの文で説明してください。",
    "Write a function that reverses a linked list, and say what it costs.",
)
GRADER = """
import json, zlib

async def graded(messages, schema, params):
    "Points by chance; a lie fails, and now and then a reply is of no use."
    text = "\\n".join(m["content"] for m in messages)
    chance = zlib.crc32(text.encode())
    dimensions = schema["properties"]["score"]["properties"]
    if "useless" in text:
        return "No."
    better = 3 if "better" in text else 0
    lies = "It is a lie" in text
    reply = {
        "inferred_task_type": schema["properties"]["inferred_task_type"].get("enum", [None])[0],
        "critical_fail": lies,
        "critical_fail_reason": "It says what is not so." if lies else None,
        "reasoning": dict.fromkeys(dimensions, "Right in the main point, but the reason is thin."),
        "score": {d: 0 if lies else 4 + better + (chance >> i) % 4
                  for i, d in enumerate(dimensions)},
        "confidence": ("high", "medium", "low")[chance % 3],
    }
    return json.dumps(reply)
"""


def question(place):
    """A question in one of four languages."""
    return f"{QUESTIONS[place % len(QUESTIONS)]} ({place})"


def _samples(variants, number, **meta):
    """Answers of every variant to each question; the more places back, the more often good."""
    return [
        {"meta": {"model": "m", "prompt_variant": variant, "question_id": f"q{i:02}", **meta}}
        | {"question": question(i)}
        | {
            "model_output": f"An answer to question {i}, {'second' if (i + place) % 3 else 'first'}"
            f" draft of {place}. {question(i)} It goes on for a while. "
            + "And on. "
            * ((i * 7) % 23)
        }
        for i in range(number)
        for place, variant in enumerate(variants)
    ]


def _odd_samples():
    """Units without fields, with a text of 200,000 characters, a name without a space, and hidden
    characters."""
    return [
        {"id": "plain", "question": "?", "model_output": "Nothing was asked, and this is said."},
        {"id": "endless", "question": "Write on.", "model_output": "On and on, second. " * 10_000},
        {"id": "x" * 180, "question": "W" * 400, "model_output": "An answer " + "ё" * 500},
        {
            "id": "hidden",
            "question": "a\u202eb\u200bc",
            "model_output": "<b>bold</b> & \u0007 bell",
        },
        {"id": "right", "question": "ما لون السماء؟", "model_output": "السماء زرقاء في النهار."},
    ]


def _answers(number):
    """Two models' answers to as many tasks, some of them lies, one of no use to any judge."""
    return [
        {"task_name": f"task {i:02}", "prompt": question(i), "rubric": TASK}
        | {"meta": {"model": model}}
        | {
            "answer": f"{'It is a lie' if (i + place) % 6 == 0 else 'It is so'}, {word}, {i}."
            + (" It is useless." if i == 7 else "")
        }
        for i in range(number)
        for place, (model, word) in enumerate((("before", "plain"), ("after", "better")))
    ]


def _matches(number):
    """Topics on which all of the long-named candidates meet."""
    rows = []
    for i in range(number):
        row = pair_row(f"topic {i}", *(1 + (i * 3 + j * 5) % 9 for j in range(len(LONG_NAMES))))
        row["topic"] = question(i)
        for candidate, name in zip(row["candidates"], LONG_NAMES, strict=True):
            candidate["id"] = name
        rows.append(row)
    return rows


FORMATTED = """## In short

The order **left on Monday**; it takes *two* days. It is worth {worth}.

1. Ask `find(7)` again on Wednesday.
2. Then call.

| day | place |
|---|---|
| Monday | the store |
| Tuesday | on a lorry somewhere between the two of them, as far as anybody knows |

```python
find(order=7, with_a_name_that_is_very_long="and goes on", and_on="beyond the edge of any phone")
```
"""


def _conversation(worth):
    """A talk with an assistant that calls a tool, whose result is long, and answers in Markdown."""
    call = {"name": "find", "arguments": '{"order": 7}'}
    return [
        {"role": "system", "content": "Be brief and be polite to whoever asks. " * 40},
        {"role": "user", "content": "Where is order 7?"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [{"function": call}]},
        {"role": "tool", "content": '{"status": "sent", "steps": [1, 2, 3]} ' * 40},
        {"role": "user", "content": f"And when did it leave, {worth}?"},
        {"role": "assistant", "content": FORMATTED.format(worth=worth)},
    ]


def _talks():
    """Conversations of two variants, and pairs of them."""
    variants = (("v1", 0), ("v2", 10))
    samples = [
        {"id": f"{variant}/{i}", "messages": _conversation(i + more)}
        | {"meta": {"prompt_variant": variant, "question_id": f"q{i}"}}
        for i in range(4)
        for variant, more in variants
    ]
    both = [
        {"id": f"c{i}"}
        | {"candidates": [{"id": v, "messages": _conversation(i + more)} for v, more in variants]}
        for i in range(3)
    ]
    return samples, both


def _write_csv(file, rows):
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _import(folder, store):
    """Scores and votes that were made elsewhere, some of them missing."""
    scores = [
        {"unit": f"{variant}/q{i}", "judge": judge, "dimension": dimension, "variant": variant}
        | {"question_id": f"q{i}", "score": "" if i == 4 else 1 + (i * 3 + place + shift) % 5}
        for i in range(12)
        for place, variant in enumerate(("old", "new"))
        for shift, judge in enumerate(("anna", "boris"))
        for dimension in ("accuracy", "style")
    ]
    votes = [
        {"unit": f"p{i}", "judge": "crowd", "topic": f"t{i % 9}", "first": first, "second": second}
        | {"winner": ("first", "second", "tie", "")[(i * 7 + place) % 4]}
        for place, (first, second) in enumerate((("red", "green"), ("green", "blue")))
        for i in range(place * 20, place * 20 + 20)
    ]
    for name, rows in (("scores", scores), ("votes", votes)):
        _write_csv(folder / f"{name}.csv", rows)
        ok_here(f"import {name}.csv --kind {name} --store {store}", cwd=folder)


def fill(folder):
    """The store, with its runs judged."""
    folder.mkdir(parents=True, exist_ok=True)
    url = f"sqlite:{folder / STORE}"
    keep = {"store": {"url": url}}
    varied = {"model": "python/judge:varied"}
    samples, both = _talks()
    ticked = passing(old="+-+-+?", new="+++-++")
    (folder / "none").mkdir()
    (folder / "none" / "none.jsonl").touch()
    many = _samples([*LONG_NAMES, "v8"], 9)
    judge_all(
        rubric_suite(folder / "two", name="two variants", **keep),
        rubric_suite(folder / "before", name="two variants, again", seed=6, **keep),
        rubric_suite(folder / "again", name="two variants, again", seed=7, **keep),
        write_suite(folder / "many", many, varied, judge=JUDGE, name="many variants", **keep),
        write_suite(folder / "odd", _odd_samples(), varied, judge=JUDGE, name="odd units", **keep),
        write_suite(folder / "failing", 8, {"model": "python/judge:bad"}, name="failing", **keep),
        pairs_suite(folder / "pairs", name="pairs by two judges", **keep),
        write_pairs(folder / "duel", pairs(9), name="two candidates", **keep),
        write_checklist(folder / "ticked", ticked, "picky", name="checklist", **keep),
        write_suite(folder / "talks", samples, varied, judge=JUDGE, name="conversations", **keep),
        write_pairs(folder / "both", both, name="pairs of conversations", **keep),
        write_suite(folder / "none", 2, {"model": "replay/none.jsonl"}, name="not judged", **keep),
        write_pairs(folder / "league", _matches(6), name="league of seven", **keep),
        write_answers(
            folder / "graded",
            _answers(16),
            {"model": "python/judge:graded"},
            judge=GRADER,
            name="graded answers",
            **keep,
        ),
    )
    _import(folder, url)
    with ThreadPoolExecutor(1) as pool:  # a browser's thread has an event loop already
        pool.submit(asyncio.run, _note_batch(url)).result()
    return folder / STORE


async def _note_batch(url):
    """Have a batch of the run of two variants under way."""
    store = open_store(url)
    run = find_run(store.archive, "two variants").id
    items = [BatchItem(f"{CALL_TAG}{n:040x}", 5, 0, "{}") for n in range(1200)]
    batch = NewBatch(name="b", run=run, judge=f"openai/{LONG_NAMES[0]}", place="p", items=items)
    async with store.batches() as book:
        await book.prepare(batch)
        await book.attach("b", "batch_6744f2f0e2ac8190a3c1d0b7c7c8f9a1", "in_progress")
    store.close()
