"""Bundled suites, one a protocol and language: what `init` writes and `demo` judges."""

from __future__ import annotations

from importlib import resources
from typing import Any

from evenhand import jsontext
from evenhand.kinds import KINDS
from evenhand.kinds.kind import ExampleSuite

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


def example_files(protocol: str, language: str) -> dict[str, str]:
    """The files of a bundled suite, by name."""
    folder, example = resources.files("evenhand.examples") / protocol / language, _example(protocol)
    suite = SUITE.format(
        name=f"example-{protocol}-{language}",
        protocol=protocol,
        language=language,
        data=_data(example),
        question=_question(example),
    )
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    return {"evenhand.toml": suite} | dict(sorted(texts.items()))


def _example(protocol: str) -> ExampleSuite:
    return KINDS[protocol].example


def _data(example: ExampleSuite) -> str:
    rubric = f'rubric = "{example.rubric}"\n' if example.rubric else ""
    return f'data = ["{example.data}"]\n{rubric}'


def _question(example: ExampleSuite) -> str:
    """What the suite is compared by."""
    if example.by is None:
        return ""
    baseline = f'baseline = "{example.baseline}"\n' if example.baseline else ""
    return f'[compare]                       # evenhand compare\nby = "{example.by}"\n{baseline}\n'


def example_rows(protocol: str, language: str) -> tuple[list[dict[str, Any]], object]:
    """The rows of a bundled suite, and its rubric; in English where there is none."""
    folder = resources.files("evenhand.examples") / protocol / language
    files = example_files(protocol, language if folder.is_dir() else "en")
    (data,) = (text for name, text in files.items() if name.endswith(".jsonl"))
    rows = [jsontext.parse(line) for line in data.splitlines()]
    for row in rows:
        if "rubric" in row:
            row["rubric"] = files[row["rubric"]]
    return rows, jsontext.parse(files["rubric.json"]) if "rubric.json" in files else None
