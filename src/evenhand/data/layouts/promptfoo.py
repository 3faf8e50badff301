"""promptfoo: the results of `promptfoo eval --output results.json`, of any version.

A test is a unit, and provider and prompt are the variants. The dimensions are the test's `score`,
its named scores, and its assertions without a name, called after their type. An answer that could
not be had (`failureReason` 2) is a failed judgment, and so is one on which a grader failed, which
the tool itself counts as 0. An assertion that did not hold is a score. Scores run from 0 to 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.data.files import format_of
from evenhand.data.layouts.rows import (
    JudgmentFile,
    NoScore,
    TidyRow,
    begin,
    list_of,
    non_null,
    object_of,
    on_scale,
    short_hash,
    text_of,
)
from evenhand.data.read import read_object, read_rows
from evenhand.errors import DataError
from evenhand.jsontext import dump

JUDGE = "promptfoo"
_ERROR = 2
SCALE = (0.0, 1.0)
_GRADER_FAILED = re.compile(
    r"""\s*(?: could\ not\ (?:extract|parse)\ .*response | .{0,40}\ produced\ malformed\ response
    | no\ output\s*$ | error: | (?:\w+\ )?api\ (?:call\ )?error
    | (?:request|call)\ (?:failed|timed\ out)
    | custom\ function\ threw\ error | python\ code\ execution\ failed )""",
    re.IGNORECASE | re.VERBOSE,
)
"""How reasons begin that older versions give where a grader failed; newer ones mark it."""


def read(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the scores of every result."""
    path, any_result = file.require_path("promptfoo"), False
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
        yield from ((row.value, row.where) for row in read_rows(path, lenient=True))
        return
    results = read_object(path).get("results")
    if isinstance(results, dict):
        results = results.get("results")
    for number, result in enumerate(list_of(results), 1):
        yield object_of(result), f"{path} result {number}"


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
    """Return a prompt by its label; a long one by how it begins."""
    label = text_of(prompt.get("label")) or text_of(prompt.get("raw"))
    short = begin(label, 60)
    return (short if short == label else f"{short} {short_hash(label)}") or None


def _scores(result: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """Yield the scores of a result. Where a grader failed, or a score is off the scale, there are
    none: the score of the whole is made of those of its assertions."""
    grading = object_of(result.get("gradingResult"))
    components = [object_of(part) for part in list_of(grading.get("componentResults"))]
    if error := _error(result, grading, components):
        yield None, NoScore("schema", f"error: {error}")
        return
    asserted = dict(_asserted(components))
    named = object_of(result.get("namedScores")) or object_of(grading.get("namedScores"))
    scores = {
        "score": _value(result.get("score", grading.get("score")), result.get("success")),
        **({} if components else named),
        **asserted,
    }
    scores = {name: on_scale(score, *SCALE, name) for name, score in scores.items()}
    for score in scores.values():
        if isinstance(score, NoScore):
            yield None, score
            return
    yield from scores.items()
    # What is worked out of other figures, say a number of words, need not be on the scale.
    for name, score in named.items():
        if name not in scores:
            yield name, on_scale(score, *SCALE, name)


def _error(
    result: Mapping[str, Any], grading: Mapping[str, Any], components: Sequence[Mapping[str, Any]]
) -> str:
    """Return what went wrong where there is no verdict on a result; empty where there is one. A
    grader that failed is noted as an assertion that did not hold, with 0."""
    reason, error = result.get("failureReason"), text_of(result.get("error"))
    if reason == _ERROR or (reason is None and error and not grading):
        return error or "without a message"
    whole = {"pass": result.get("success"), "score": result.get("score"), "reason": error}
    for part in components or [{**whole, **grading}]:
        said = text_of(part.get("error")) or text_of(part.get("reason"))
        is_known = bool(part.get("error")) or object_of(part.get("metadata")).get("graderError")
        is_failed = part.get("pass") is False and not part.get("score")
        if is_known or (is_failed and _GRADER_FAILED.match(said)):
            return said or "a grader failed"
    return ""


def _asserted(components: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the scores of assertions: the mean of those that share a metric, each of the others."""
    metrics: dict[str, list[Any]] = {}
    counts: dict[str, int] = {}
    for component in components:
        assertion = object_of(component.get("assertion"))
        if not assertion:
            continue
        name, score = _name(assertion), _value(component.get("score"), component.get("pass"))
        if assertion.get("metric"):
            metrics.setdefault(name, []).append(score)
            continue
        counts[name] = counts.get(name, 0) + 1
        yield name + (f" {counts[name]}" if counts[name] > 1 else ""), score
    for name, scores in metrics.items():
        are_numbers = all(isinstance(score, int | float) for score in scores)
        yield name, sum(scores) / len(scores) if are_numbers else scores[0]


def _name(assertion: Mapping[str, Any]) -> str:
    return re.sub(r"\s+", " ", text_of(assertion.get("metric") or assertion.get("type"))) or "?"


def _value(score: Any, passed: Any) -> Any:
    """Return the score; where there is none, 1 if it passed, else 0."""
    return float(passed) if score is None and isinstance(passed, bool) else score
