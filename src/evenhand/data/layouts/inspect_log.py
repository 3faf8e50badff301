"""Inspect: `.eval` logs (a zip of JSON) and `.json` logs.

A sample is a unit, the model under test a variant, an epoch a repeat, and every scorer a dimension
(`scorer/key` where its value is an object). C, I, P and N are 1, 0, 0.5 and 0, as the tool itself
counts them. A sample that ended in an error failed. The arguments of a task and of its solver are
fields; logs that differ in them hold different variants, not repeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.data.files import decode, require_file
from evenhand.data.layouts.archive import Archive
from evenhand.data.layouts.rows import (
    JudgmentFile,
    NoScore,
    TidyRow,
    begin,
    list_of,
    non_null,
    object_of,
    short_hash,
    text_of,
)
from evenhand.data.read import read_array, read_object
from evenhand.errors import DataError
from evenhand.jsontext import dump

JUDGE = "inspect"
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
SETTING_CHARS = 200
_HEADERS = ("header.json", "_journal/start.json")
_NOT_A_LOG = "Is it an Inspect log? They end in .eval or .json."

Sample = tuple[Mapping[str, Any], Mapping[str, Any], str]
"""What the log says of the whole evaluation, one sample, and where that stands."""


def read(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the scores of every sample."""
    path = file.require_path("inspect")
    require_file(path)
    any_sample = False
    for about, sample, where in _archived(path) if path.suffix == ".eval" else _plain(path):
        any_sample = True
        unit = _unit(about, sample)
        for dimension, score in _scores(sample):
            yield TidyRow("scores", unit | {"dimension": dimension, "score": score}, where)
    if not any_sample:
        raise DataError("there are no samples in it", where=str(path), advice=_NOT_A_LOG)


def settings(paths: Sequence[Path]) -> list[str]:
    """Return the fields of tasks and solvers in which logs differ."""
    logs = [_settings(_header(path)) for path in paths]
    names = dict.fromkeys(name for log in logs for name in log)
    return [name for name in names if len({text_of(log.get(name)) for log in logs}) > 1]


def _settings(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the task and of its solver as fields."""
    fields = {"solver": about.get("solver")} if about.get("solver") else {}
    for group in ("task_args", "solver_args"):
        for name, value in object_of(about.get(group)).items():
            text = dump(value)
            is_short = len(text) <= SETTING_CHARS
            short = text if is_short else f"{begin(text, SETTING_CHARS)} {short_hash(text)}"
            fields[f"{group}.{name}"] = value if _is_plain(value) else short
    return fields


def _header(path: Path) -> Mapping[str, Any]:
    """Return what a log says of the whole evaluation."""
    if path.suffix == ".eval":
        with Archive(path) as archive:
            return _about(archive)
    return object_of(read_object(path).get("eval"))


def _plain(path: Path) -> Iterator[Sample]:
    """Yield the samples of a .json log, in which the header comes before them."""
    log = read_object(path)
    about = object_of(log.get("eval"))
    for number, sample in enumerate(list_of(log.get("samples")), 1):
        yield about, object_of(sample), f"{path} sample {number}"


def _archived(path: Path) -> Iterator[Sample]:
    """Yield the samples of an .eval log: from its summaries, which are small, else from themselves;
    of one that was cut short, from its journal."""
    with Archive(path) as archive:
        about = _about(archive)
        for name in _sample_files(archive.names):
            for sample, where in _entries(archive, name):
                yield about, sample, where


def _about(archive: Archive) -> Mapping[str, Any]:
    header = next((name for name in _HEADERS if name in archive.names), None)
    if header is None:
        where = str(archive.path)
        raise DataError("there is no header.json in it", where=where, advice=_NOT_A_LOG)
    return object_of(next(_entries(archive, header))[0].get("eval"))


def _sample_files(names: list[str]) -> list[str]:
    if "summaries.json" in names:
        return ["summaries.json"]
    samples = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
    journal = [name for name in names if name.startswith("_journal/summaries/")]
    return samples or sorted(journal, key=lambda name: (len(name), name))


def _entries(archive: Archive, name: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    where = f"{archive.path}/{name}"
    yield from read_array(decode(archive.read(name), None, where), where)


def _unit(about: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    text = sample.get("input")
    metadata = {f"metadata.{k}": v for k, v in object_of(sample.get("metadata")).items()}
    return non_null(
        unit=sample.get("id"),
        judge=JUDGE,
        model=about.get("model"),
        task=about.get("task"),
        **_settings(about),
        repeat=sample.get("epoch"),
        input=begin(text) if isinstance(text, str) else None,
        **{name: value for name, value in metadata.items() if _is_plain(value)},
    )


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and len(str(value)) <= SETTING_CHARS


def _scores(sample: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
    if error := sample.get("error"):
        said = text_of(object_of(error).get("message") or error)
        yield None, NoScore("schema", f"error: {said}")
        return
    for scorer, score in object_of(sample.get("scores")).items():
        value = object_of(score).get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from (
                (f"{scorer}/{key}", _number(part)) for key, part in object_of(value).items()
            )
        else:
            yield scorer, _number(value)
    if not sample.get("scores"):
        yield None, None


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        return _GRADES.get(value, _GRADES.get(value.lower(), value))
    return value
