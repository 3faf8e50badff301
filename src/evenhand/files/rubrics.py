"""Rubrics from their files, checked, every error with file and line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand import jsontext
from evenhand.errors import DataError, UsageError
from evenhand.kinds.rubric.rubric import RubricError, build_rubric
from evenhand.kinds.weighted.tasks.read import TaskRubricError
from evenhand.kinds.weighted.unit import TOML_MARK, task_rubric
from evenhand.suite import find_line

TASK_ENDINGS = (".md", ".markdown", ".toml")
# One word with an ending is a file's name, be it mistyped; a rubric says more.
_FILE = re.compile(r"\S+\.[A-Za-z]\w{0,8}")


def read_rubric_file(path: Path) -> object:
    """The value of a .json or .toml rubric that parses; raises UsageError with file:line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the rubric cannot be read: {error}", where=str(path)) from None
    value = _parsed(path, text)
    try:
        build_rubric(value)
    except RubricError as error:
        line = _line(path, text, error.path)
        raise UsageError(str(error), where=f"{path}:{line}" if line else str(path)) from None
    return value


def _parsed(path: Path, text: str) -> object:
    import tomllib

    try:
        return tomllib.loads(text) if path.suffix == ".toml" else jsontext.parse(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        where = f"{path}:{line}" if line else str(path)
        raise UsageError(f"not {path.suffix[1:].upper()}: {error}", where=where) from None
    except RecursionError:
        raise UsageError("not TOML: nested too deeply", where=str(path)) from None


def _line(path: Path, text: str, loc: tuple[str | int, ...]) -> int | None:
    return find_line(text, loc) if path.suffix == ".toml" else jsontext.find_line(text, loc)


def read_task_file(path: Path, types: tuple[str, ...]) -> str:
    """The text of a task rubric that can be read; raises UsageError with file:line."""
    if path.suffix.lower() not in TASK_ENDINGS:
        raise UsageError(
            "a task's rubric is Markdown or TOML", where=str(path), advice="Name it .md or .toml."
        )
    text = _task_text(path)
    try:
        task_rubric(text, types)
    except TaskRubricError as error:
        raise UsageError(str(error), where=f"{path}:{error.line}") from None
    return text


def _task_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the rubric cannot be read: {error}", where=str(path)) from None
    return TOML_MARK + text if path.suffix.lower() == ".toml" else text


def is_task_file(rubric: object) -> bool:
    """Whether what stands as a task's rubric is the name of a file."""
    if not isinstance(rubric, str) or "\n" in rubric:
        return False
    return rubric.lower().endswith(TASK_ENDINGS) or _FILE.fullmatch(rubric) is not None


def with_task_text(row: Mapping[str, Any], folder: Path, types: tuple[str, ...]) -> dict[str, Any]:
    """A row whose rubric, where it is the name of a file, is that file's text; raises DataError."""
    rubric = row.get("rubric")
    if not is_task_file(rubric):
        return dict(row)
    try:
        return {**row, "rubric": read_task_file(folder / str(rubric), types)}
    except UsageError as error:
        raise DataError(error.what, where=error.where) from None
