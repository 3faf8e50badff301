"""promptfoo: the results of `promptfoo eval --output results.json`, of any version.

A test is a unit, and provider and prompt are the variants. The dimensions are the test's `score`,
its named scores, and its assertions without a name, called after their type. An answer that could
not be had (`failureReason` 2) is a failed judgment; an assertion that did not hold is a score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenhand.data.files import format_of
from evenhand.data.foreign.rows import (
    TidyRow,
    begin,
    list_of,
    no_table,
    non_null,
    object_of,
    short_hash,
    table,
)
from evenhand.data.foreign.shaping import Shaping
from evenhand.data.foreign.tidy import text_of
from evenhand.data.read import members
from evenhand.errors import DataError
from evenhand.jsontext import dump, parse_lenient

JUDGE = "promptfoo"
_ERROR = 2
_RESULTS = (("results", "results"), ("results",))


def read(path: Path, shaping: Shaping) -> Iterator[TidyRow]:
    """The scores of every result."""
    no_table(shaping, "promptfoo")
    any_result = False
    for result, where in _results(path):
        any_result = True
        about = _about(result)
        for dimension, score in _scores(result):
            yield TidyRow("scores", about | {"dimension": dimension, "score": score}, where)
    if not any_result:
        raise DataError(
            "there are no results in it",
            where=str(path),
            advice="Write them with: promptfoo eval --output results.json",
        )


def _results(path: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    if format_of(path) != "json":
        yield from ((row.value, row.where) for row in table(path, Shaping()))
        return
    for _, row in members(path, _RESULTS, parse_lenient):
        yield row.value, row.where


def _about(result: Mapping[str, Any]) -> dict[str, Any]:
    variables = object_of(result.get("vars")) or object_of(
        object_of(result.get("testCase")).get("vars")
    )
    test = result.get("testIdx")
    provider = object_of(result.get("provider"))
    model = provider.get("label") or provider.get("id") or text_of(result.get("provider"))
    return non_null(
        unit=short_hash(dump(variables)) if test is None else test,
        judge=JUDGE,
        model=model or None,
        prompt=_prompt(object_of(result.get("prompt"))),
        description=result.get("description")
        or object_of(result.get("testCase")).get("description")
        or None,
        vars=begin(dump(variables), 200) if variables else None,
    )


def _prompt(prompt: Mapping[str, Any]) -> str | None:
    """A prompt by its label; a long one by how it begins."""
    label = text_of(prompt.get("label")) or text_of(prompt.get("raw"))
    short = begin(label, 60)
    return (short if short == label else f"{short} {short_hash(label)}") or None


def _scores(result: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
    grading = object_of(result.get("gradingResult"))
    reason, error = result.get("failureReason"), text_of(result.get("error"))
    if reason == _ERROR or (reason is None and error and not grading):
        yield None, f"error: {error}"
        return
    yield "score", _value(result.get("score", grading.get("score")), result.get("success"))
    named_scores = object_of(result.get("namedScores")) or object_of(grading.get("namedScores"))
    yield from named_scores.items()
    counts: dict[str, int] = {}
    for component in map(object_of, list_of(grading.get("componentResults"))):
        assertion = object_of(component.get("assertion"))
        if assertion.get("metric") in named_scores or not assertion:
            continue
        name = _name(assertion)
        counts[name] = counts.get(name, 0) + 1
        number = f" {counts[name]}" if counts[name] > 1 else ""
        yield name + number, _value(component.get("score"), component.get("pass"))


def _name(assertion: Mapping[str, Any]) -> str:
    return re.sub(r"\s+", " ", text_of(assertion.get("metric") or assertion.get("type"))) or "?"


def _value(score: Any, passed: Any) -> Any:
    """The score; where there is none, whether it passed."""
    return float(passed) if score is None and isinstance(passed, bool) else score
