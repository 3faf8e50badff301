"""Logs of evaluation tools: Inspect and promptfoo.

Inspect: `.eval` logs (a zip of JSON) and `.json` logs. A sample is a unit, the model under test a
variant, an epoch a repeat, and every scorer a dimension (`scorer/key` where its value is an
object). C, I, P and N are 1, 0, 0.5 and 0, as the tool itself counts them. A sample that ended in
an error failed. The arguments of a task and of its solver are fields; logs that differ in them hold
different variants, not repeats. Logs are packed with Zstandard, which Python reads itself only from
3.14 on; before, the package backports.zstd does it. How much an archive may unpack to is bounded.

promptfoo: the results of `promptfoo eval --output results.json`, of any version. A test is a unit,
and provider and prompt are the variants. The dimensions are the test's `score`, its named scores,
and its assertions without a name, called after their type. An answer that could not be had
(`failureReason` 2) is a failed judgment, and so is one on which a grader failed, which the tool
itself counts as 0. An assertion that did not hold is a score. Scores run from 0 to 1.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from evenhand import limits
from evenhand.data.columns import Rows
from evenhand.data.files import decode, format_of, read_file, read_packed, require_file
from evenhand.data.layouts.tidy import (
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
from evenhand.data.read import read_array, read_object, read_rows
from evenhand.errors import DataError, UsageError
from evenhand.jsontext import dump
from evenhand.words import Sentence

_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
SETTING_CHARS = 200
PROMPTFOO_SCALE = (0.0, 1.0)
_LABELS = ("label", "display", "raw")
_PROVIDER_FAILED = 2
_GRADER_FAILED = re.compile(
    r"""\s*(?: could\ not\ (?:extract|parse)\ .*response | .{0,40}\ produced\ malformed\ response
    | no\ output\s*$ | error: | (?:\w+\ )?api\ (?:call\ )?error
    | (?:request|call)\ (?:failed|timed\ out)
    | custom\ function\ threw\ error | python\ code\ execution\ failed )""",
    re.IGNORECASE | re.VERBOSE,
)
"""How reasons begin that older versions give where a grader failed; newer ones mark it."""

Object = Mapping[str, Any]


def zip_module() -> Any:
    """Return the module of Python, with Zstandard where it or its backport is there."""
    try:
        return import_module("backports.zstd.zipfile")
    except ImportError:
        return import_module("zipfile")


class _Archive:
    """The JSON entries of a zip file."""

    def __init__(self, path: Path, root: Path | None) -> None:
        self._path, self._left, self._zipfile = path, limits.UNPACKED_BYTES, zip_module()
        try:
            self._zip = self._zipfile.ZipFile(BytesIO(read_file(path, root)))
        except (self._zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            raise self._damage_error(error) from None
        self.names: list[str] = self._zip.namelist()

    def read(self, name: str) -> Rows:
        """Return the objects of an entry; raises DataError where it unpacks to too much."""
        try:
            entry = self._zip.getinfo(name)
            with self._zip.open(entry) as stream:
                data = read_packed(stream, entry.compress_size, str(self._path))
        except NotImplementedError:
            raise UsageError(Sentence("data.needs_zstandard")) from None
        except (
            *(self._zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error),
            *(RuntimeError, ValueError),
        ) as error:
            raise self._damage_error(error) from None
        self._left -= len(data)
        if self._left < 0:
            raise DataError(
                Sentence("data.log_too_large", gigabytes=limits.UNPACKED_BYTES // 1024**3),
                where=str(self._path),
            )
        where = f"{self._path}/{name}"
        return read_array(decode(data, None, where), where)

    def _damage_error(self, error: Exception) -> DataError:
        return DataError(Sentence("data.bad_zip", error=error), where=str(self._path))


Log = tuple[Object, Iterator[tuple[Object, str]]]
"""What an Inspect log says of the whole evaluation, and its samples, each with its place."""


def _open_log(path: Path) -> Log:
    """Return a log, its samples as short as they are there."""
    require_file(path)
    return open_archive(path) if path.suffix == ".eval" else log_of(read_object(path), path)


def log_of(log: Object, path: Path) -> Log:
    """Return a log that is one object."""
    samples = enumerate(list_of(log.get("samples")), 1)
    placed = ((object_of(sample), f"{path} sample {number}") for number, sample in samples)
    return object_of(log.get("eval")), placed


def open_archive(path: Path, root: Path | None = None, *, is_whole: bool = False) -> Log:
    """Return the log that an archive holds, with whole samples or with their summaries, which are
    small; raise UsageError or DataError."""
    archive = _Archive(path, root)
    if "header.json" not in archive.names:
        raise DataError(Sentence("data.no_header_json"), where=str(path))
    header = next(archive.read("header.json").values(), {})
    names = [n for n in archive.names if n.startswith("samples/") and n.endswith(".json")]
    if not is_whole and "summaries.json" in archive.names:
        names = ["summaries.json"]
    rows = (row for name in names for row in archive.read(name))
    return object_of(header.get("eval")), ((row.value, row.where) for row in rows)


def read_inspect(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the scores of every sample."""
    path, unit = file.require_path("inspect"), None
    about, samples = _open_log(path)
    for sample, where in samples:
        unit = _inspect_unit(about, sample)
        for dimension, score in _inspect_scores(sample):
            yield TidyRow("scores", unit | {"dimension": dimension, "score": score}, where)
    if unit is None:
        raise DataError(Sentence("data.no_samples"), where=str(path))


def inspect_settings(paths: Sequence[Path]) -> list[str]:
    """Return the fields of tasks and solvers in which logs differ."""
    logs = [_settings(_open_log(path)[0]) for path in paths]
    names = dict.fromkeys(name for log in logs for name in log)
    return [name for name in names if len({text_of(log.get(name)) for log in logs}) > 1]


def _settings(about: Object) -> dict[str, Any]:
    """Return the arguments of the task and of its solver as fields."""
    fields = {"solver": about.get("solver")} if about.get("solver") else {}
    for group in ("task_args", "solver_args"):
        for name, value in object_of(about.get(group)).items():
            fields[f"{group}.{name}"] = value if _is_plain(value) else _cut_text(dump(value))
    return fields


def _cut_text(text: str, most: int = SETTING_CHARS) -> str:
    """Return a text, or how it begins and its hash."""
    short = begin(text, most)
    return short if short == text else f"{short} {short_hash(text)}"


def _inspect_unit(about: Object, sample: Object) -> dict[str, Any]:
    text = sample.get("input")
    return non_null(
        unit=sample.get("id"),
        judge="inspect",
        repeat=sample.get("epoch"),
        input=begin(text) if isinstance(text, str) else None,
        **inspect_fields(about, sample),
    )


def inspect_fields(about: Object, sample: Object) -> dict[str, Any]:
    """Return what a sample is called by beside its id and its epoch."""
    metadata = object_of(sample.get("metadata"))
    return non_null(
        model=about.get("model"),
        task=about.get("task"),
        **_settings(about),
        **{f"metadata.{name}": value for name, value in metadata.items() if _is_plain(value)},
    )


def error_of(sample: Object) -> str:
    """Return the error that a sample ended in; empty without one."""
    error = sample.get("error")
    return text_of(object_of(error).get("message") or error)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and len(str(value)) <= SETTING_CHARS


def _inspect_scores(sample: Object) -> Iterator[tuple[str | None, Any]]:
    if error := error_of(sample):
        yield None, NoScore("schema", f"error: {error}")
        return
    scores = object_of(sample.get("scores"))
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ((f"{scorer}/{key}", _read_grade(part)) for key, part in value.items())
        else:
            yield scorer, _read_grade(value)
    if not scores:
        yield None, None


def _read_grade(value: Any) -> Any:
    return (
        _GRADES.get(value, _GRADES.get(value.lower(), value)) if isinstance(value, str) else value
    )


def read_promptfoo(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the scores of every result."""
    path, about = file.require_path("promptfoo"), None
    for result, where in _results(path):
        about = _promptfoo_unit(result)
        for dimension, score in _promptfoo_scores(result):
            yield TidyRow("scores", about | {"dimension": dimension, "score": score}, where)
    if about is None:
        raise DataError(Sentence("data.no_results"), where=str(path))


def _results(path: Path) -> Iterator[tuple[Object, str]]:
    if format_of(path) != "json":
        yield from read_rows(path, lenient=True)
        return
    for number, result in enumerate(results_in(read_object(path)), 1):
        yield object_of(result), f"{path} result {number}"


def results_in(whole: Object) -> list[Any]:
    """Return the results in a file of one object, of any version; none in another object."""
    results = whole.get("results")
    return list_of(results.get("results") if isinstance(results, dict) else results)


def _promptfoo_unit(result: Object) -> dict[str, Any]:
    about, test = promptfoo_fields(result), result.get("testIdx")
    variables = dump(variables_of(result))
    return non_null(
        unit=short_hash(variables) if test is None else test,
        judge="promptfoo",
        **about,
        vars=begin(variables, 200) if variables != "{}" else None,
    )


def variables_of(result: Object) -> Object:
    """Return the variables of a test."""
    return object_of(result.get("vars")) or object_of(object_of(result.get("testCase")).get("vars"))


def promptfoo_fields(result: Object) -> dict[str, Any]:
    """Return the model, the prompt and the description of a result."""
    case, provider = object_of(result.get("testCase")), object_of(result.get("provider"))
    prompt = object_of(result.get("prompt"))
    model = provider.get("label") or provider.get("id") or text_of(result.get("provider"))
    label = next((text_of(prompt[name]) for name in _LABELS if prompt.get(name)), "")
    return non_null(
        model=model or None,
        prompt=_cut_text(label, 60) or None,
        description=result.get("description") or case.get("description") or None,
    )


def _promptfoo_scores(result: Object) -> Iterator[tuple[str | None, Any]]:
    """Yield the scores of a result. Where a grader failed, or a score is off the scale, there are
    none: the score of the whole is made of those of its assertions."""
    grading = object_of(result.get("gradingResult"))
    components = [object_of(part) for part in list_of(grading.get("componentResults"))]
    if error := _find_error(result, grading, components):
        yield None, NoScore("schema", f"error: {error}")
        return
    named = object_of(result.get("namedScores")) or object_of(grading.get("namedScores"))
    whole = _score(result.get("score", grading.get("score")), result.get("success"))
    given = {"score": whole, **({} if components else named), **_asserted_scores(components)}
    # What is worked out of other figures, say a number of words, need not be on the scale.
    worked_out = {name: score for name, score in named.items() if name not in given}
    scores = {n: on_scale(s, *PROMPTFOO_SCALE, n) for n, s in (given | worked_out).items()}
    off = [scores[name] for name in given if isinstance(scores[name], NoScore)]
    yield from [(None, off[0])] if off else scores.items()


def _find_error(result: Object, grading: Object, components: Sequence[Object]) -> str:
    """Return what went wrong where there is no verdict on a result; empty where there is one. A
    grader that failed is noted as an assertion that did not hold, with 0."""
    if failed := provider_error(result):
        return failed
    error = text_of(result.get("error"))
    whole = {"pass": result.get("success"), "score": result.get("score"), "reason": error}
    for part in components or [{**whole, **grading}]:
        said = text_of(part.get("error")) or text_of(part.get("reason"))
        is_known = bool(part.get("error")) or object_of(part.get("metadata")).get("graderError")
        is_failed = part.get("pass") is False and not part.get("score")
        if is_known or (is_failed and _GRADER_FAILED.match(said)):
            return said or "a grader failed"
    return ""


def provider_error(result: Object) -> str:
    """Return why there is no answer; empty where there is one."""
    reason, error = result.get("failureReason"), text_of(result.get("error"))
    is_graded = bool(object_of(result.get("gradingResult")))
    if reason == _PROVIDER_FAILED or (reason is None and error and not is_graded):
        return error or "without a message"
    return ""


def _asserted_scores(components: Sequence[Object]) -> dict[str, Any]:
    """Return the scores of assertions: a mean of those that share a metric, each of the rest."""
    metrics: dict[str, list[Any]] = {}
    found: dict[str, Any] = {}
    counts = Counter[str]()
    for component in components:
        assertion = object_of(component.get("assertion"))
        score = _score(component.get("score"), component.get("pass"))
        name = " ".join(text_of(assertion.get("metric") or assertion.get("type")).split()) or "?"
        if assertion.get("metric"):
            metrics.setdefault(name, []).append(score)
        elif assertion:
            counts[name] += 1
            found[f"{name} {counts[name]}" if counts[name] > 1 else name] = score
    for name, scores in metrics.items():
        are_numbers = all(isinstance(score, int | float) for score in scores)
        found[name] = sum(scores) / len(scores) if are_numbers else scores[0]
    return found


def _score(score: Any, passed: Any) -> Any:
    """Return the score; where there is none, 1 if it passed, else 0."""
    return float(passed) if score is None and isinstance(passed, bool) else score
