"""Ready rubrics: what is often asked about an answer, in each language, with two examples each.

A file holds `about`, a line for a list; `needs`, the columns without which it cannot be applied;
`dimensions` in the form of the contract; and `examples`, rows with the scores `expected` of them.
`judged` says what it is about where there are tool calls, if that is not the last turn.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from evenhand import jsontext
from evenhand.errors import UsageError
from evenhand.kinds.rows import EXTRAS
from evenhand.transcript import Judged
from evenhand.words import Code, Sentence

_EXPECTED = "expected"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRubric:
    """One of the rubrics, in one language."""

    name: str
    about: str
    needs: Sequence[str]
    dimensions: Sequence[Mapping[str, Any]]
    examples: Sequence[Mapping[str, Any]]
    judged: Judged = "last"
    """Of a conversation with tool calls: what it is about."""


@cache
def ready_names() -> tuple[str, ...]:
    """Return the names of all ready rubrics."""
    files = (resources.files("evenhand.examples") / "rubrics" / "en").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files))


def ready_rubrics(names: Iterable[str], language: str) -> list[ReadyRubric]:
    """Return the rubrics of these names, each once; raise UsageError where there is none."""
    return [_read(name, language) for name in dict.fromkeys(names)]


def _read(name: str, language: str) -> ReadyRubric:
    if name not in ready_names():
        names = Code(", ".join(ready_names()))
        raise UsageError(Sentence("files.no_ready_rubric", name=name, names=names))
    path = resources.files("evenhand.examples") / "rubrics" / language / f"{name}.toml"
    return ReadyRubric(name=name, **tomllib.loads(path.read_text(encoding="utf-8")))


def needs_of(rubrics: Iterable[ReadyRubric]) -> list[str]:
    """Return the columns that any of the rubrics needs."""
    needs = {need for rubric in rubrics for need in rubric.needs}
    return [name for name in EXTRAS if name in needs]


def join_rubrics(rubrics: Iterable[ReadyRubric]) -> str:
    """Return the text of one rubric with the dimensions of all."""
    dimensions = [dimension for rubric in rubrics for dimension in rubric.dimensions]
    return json.dumps({"dimensions": dimensions}, ensure_ascii=False, indent=2) + "\n"


def join_examples(rubrics: Sequence[ReadyRubric]) -> str:
    """Return the examples as JSON lines: those with every column that is needed, if there are."""
    needs = needs_of(rubrics)
    rows = [_row(rubric, example) for rubric in rubrics for example in rubric.examples]
    whole = [row for row in rows if row.keys() >= set(needs)]
    return "".join(f"{jsontext.dump(row)}\n" for row in whole or rows)


def _row(rubric: ReadyRubric, example: Mapping[str, Any]) -> dict[str, Any]:
    row = {key: value for key, value in example.items() if key != _EXPECTED}
    return row | {"id": f"{rubric.name}-{example['id']}"}
