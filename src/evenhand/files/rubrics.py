"""Rubrics from their files, checked, every error with file and line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand import jsontext
from evenhand.errors import DataError, UsageError
from evenhand.kinds import KINDS
from evenhand.kinds.shared.load import Protocol, ProtocolError
from evenhand.kinds.shared.rubric_form import RubricForm, RubricTextError
from evenhand.suite import find_line


def read_rubric(path: Path, protocol: Protocol) -> Any:
    """The rubric of a file in the form of a protocol's kind; raises UsageError with file:line."""
    form = KINDS[protocol.kind].rubric_form
    if form is None:
        raise UsageError(f"the protocol {protocol.name} takes no rubric", where=str(path))
    if path.suffix.lower() not in form.endings:
        names = " or ".join(form.endings)
        raise UsageError(form.about, where=str(path), advice=f"Name it {names}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the rubric cannot be read: {error}", where=str(path)) from None
    return _parsed(path, text, form, protocol)


def _parsed(path: Path, text: str, form: RubricForm, protocol: Protocol) -> Any:
    ending = path.suffix.lower()
    try:
        return form.parse(text, ending, protocol)
    except RubricTextError as fault:
        line = fault.line
        if line is None and fault.path:
            find = find_line if ending == ".toml" else jsontext.find_line
            line = find(text, fault.path)
        raise UsageError(str(fault), where=f"{path}:{line}" if line else str(path)) from None
    except ProtocolError as error:
        raise UsageError(str(error), where=f"{protocol.name}/{error.file}") from None


def with_rubric_text(row: Mapping[str, Any], folder: Path, protocol: Protocol) -> Mapping[str, Any]:
    """A row whose rubric, where it is the name of a file, is what that file holds; raises
    DataError."""
    form, rubric = KINDS[protocol.kind].rubric_form, row.get("rubric")
    if form is None or not form.is_file(rubric):
        return row
    try:
        return {**row, "rubric": read_rubric(folder / str(rubric), protocol)}
    except UsageError as error:
        raise DataError(error.what, where=error.where) from None
