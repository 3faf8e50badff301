"""Bundled suites, one a protocol and language: what `init` writes and `demo` judges."""

from __future__ import annotations

from importlib import resources
from typing import Any

from evenhand import jsontext

SUITE = """\
# What is judged, by whom, and how. Every key: docs/suite.md, or your editor with the schema.
name = "{name}"
protocol = "{protocol}"
language = "{language}"         # ru | zh | ja | en
{data}seed = 7

# A local model: no key, no network, for obvious cases and for trying things out.
# For real decisions name a strong judge, e.g. "openai/gpt-4.1-mini" with OPENAI_API_KEY set.
[[judges]]
model = "embedded"

[limits]
concurrency = 16
# budget_usd = "5.00"

{question}[store]
url = "sqlite:evenhand.db"
"""


DATA = {
    "pairwise": 'data = ["pairs.jsonl"]\n',
    "weighted": 'data = ["answers.jsonl"]\n',
    "rubric": 'data = ["samples.jsonl"]\nrubric = "rubric.json"\n',
}


QUESTION = {
    "pairwise": "",
    "weighted": '[compare]                       # evenhand compare\nby = "model"\n\n',
    "rubric": '[compare]                       # evenhand compare\nby = "prompt_variant"\n'
    'baseline = "v1"\n\n',
}


def example_files(protocol: str, language: str) -> dict[str, str]:
    """The files of a bundled suite, by name."""
    folder = resources.files("evenhand.examples") / protocol / language
    suite = SUITE.format(
        name=f"example-{protocol}-{language}",
        protocol=protocol,
        language=language,
        data=DATA[protocol],
        question=QUESTION[protocol],
    )
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    return {"evenhand.toml": suite} | dict(sorted(texts.items()))


def example_rows(protocol: str, language: str) -> tuple[list[dict[str, Any]], object]:
    """The rows of a bundled suite, and its rubric; in English where there is none."""
    known = resources.files("evenhand.examples") / protocol / language
    files = example_files(protocol, language if known.is_dir() else "en")
    (data,) = (text for name, text in files.items() if name.endswith(".jsonl"))
    rows = [jsontext.parse(line) for line in data.splitlines()]
    for row in rows:
        if "rubric" in row:
            row["rubric"] = files[row["rubric"]]
    return rows, jsontext.parse(files["rubric.json"]) if "rubric.json" in files else None
