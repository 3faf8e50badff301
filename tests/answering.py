"""Suites that make the answers they judge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.suites import GOOD, JUDGE, RUBRIC, write_tables

PROMPTS = {
    "v1": "Be brief. {{question}}",
    "v2": "<!-- system -->\nBe kind.\n<!-- user -->\n{{ question }} ({{topic}})",
}
PRICE = {"input": 1, "output": 1}
BOT = """
async def answer(messages, schema, params):
    return "So: " + messages[-1]["content"]
"""


def write_answering(
    folder: Path,
    questions: int | Sequence[Mapping[str, Any]] = 3,
    model: Mapping[str, Any] | str = "python/judge:answer",
    *judges: Mapping[str, Any] | str,
    prompts: Mapping[str, str] = PROMPTS,
    judge: str = JUDGE,
    answers: Mapping[str, Any] | None = None,
    **rest: Any,
) -> None:
    """Write a suite of questions and prompts that a model answers; `answers` are further keys."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(questions, int):
        questions = [{"question": f"What is {n}?", "topic": f"no. {n}"} for n in range(questions)]
    text = "".join(json.dumps(row) + "\n" for row in questions)
    (folder / "questions.jsonl").write_text(text)
    for name, prompt in prompts.items():
        (folder / f"{name}.md").write_text(prompt)
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    spec = {"questions": "questions.jsonl", "prompts": [f"{name}.md" for name in prompts]}
    top = {"name": "test", "protocol": "rubric", "rubric": "rubric.json"}
    tables = {"answers": {**spec, "models": [model], **(answers or {})}, **rest}
    write_tables(folder, top, judges or (GOOD,), judge + BOT, tables)


def made_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the answers that a suite has made."""
    return [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
