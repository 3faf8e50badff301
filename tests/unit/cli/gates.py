"""What tests of gates judge: samples worth what they say, and pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.suites import pair_row, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand

JUDGE = """
import json, re

def reply(messages):
    text = re.search(r"worth (\\\\d)", messages[-1]["content"])
    given = {"evidence": [], "rationale": "no evidence found", "score": int(text[1])}
    said = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    return json.dumps(said)

async def good(messages, schema, params):
    return reply(messages)
""".replace("\\\\", "\\")
AGAINST = ("--by", "prompt_variant", "--baseline", "v1")


def samples(**variants: str) -> list[dict[str, Any]]:
    """A row a question and variant; `x` is worth nothing that a judge may give."""
    return [
        {
            "meta": {"prompt_variant": variant, "question_id": f"q{place}"},
            "question": f"Question {place}?",
            "model_output": f"An answer worth {worth}.",
        }
        for variant, worths in variants.items()
        for place, worth in enumerate(worths)
    ]


def judged(call: CallCommand, folder: Path, rest: dict[str, Any] | None = None, **v: str) -> None:
    write_suite(folder, samples(**v), judge=JUDGE, **rest or {})
    said = call("run", "--json")
    assert said.code == 0, said.err


def pairs(call: CallCommand, folder: Path, *judges: dict[str, Any]) -> None:
    worths = [(2, 9)] * 14 + [(9, 2)] * 3 + [(4, 4)] * 3
    rows = [pair_row(f"p{i}", *one, topic=f"T{i}?") for i, one in enumerate(worths)]
    write_pairs(folder, rows, *judges)
    assert call("run").code == 0
