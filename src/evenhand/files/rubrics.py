"""Rubrics from their files, checked, every error with file and line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import jsontext
from evenhand.errors import DataError, UsageError, quoted
from evenhand.folders import is_within, read_text
from evenhand.kinds import KINDS
from evenhand.kinds.shared.load import Protocol, ProtocolError
from evenhand.kinds.shared.rubric_form import RubricForm, RubricTextError
from evenhand.suite import find_line

if TYPE_CHECKING:
    from evenhand.data.read import Row


def read_rubric(path: Path, protocol: Protocol, root: Path | None = None) -> Any:
    """The rubric of a file in the form of a protocol's kind; raises UsageError with file:line. With
    a root, it must lie in that folder."""
    form = KINDS[protocol.kind].rubric_form
    if form is None:
        raise UsageError(f"the protocol {protocol.name} takes no rubric", where=str(path))
    if path.suffix.lower() not in form.endings:
        names = " or ".join(form.endings)
        raise UsageError(form.about, where=str(path), advice=f"Name it {names}.")
    return _parsed(path, read_text(path, "the rubric", root), form, protocol)


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


def with_rubric_text(
    row: Row, data: Path, protocol: Protocol, root: Path | None = None
) -> Mapping[str, Any]:
    """A row of a data file whose rubric, where it is the name of a file beside that one, is what it
    holds; raises DataError. A row comes from anyone, so the file must lie in the root, or else
    beside the data."""
    form, rubric = KINDS[protocol.kind].rubric_form, row.value.get("rubric")
    if form is None or not form.is_file(rubric):
        return row.value
    path = data.parent / str(rubric)
    within = root if root and is_within(data, root) else data.parent
    if not is_within(path, within):
        raise DataError(
            f'"rubric" {quoted(rubric)} leads out of the folder {quoted(within)}',
            where=row.where,
            advice="Put the file into that folder, or write the rubric into the row.",
        )
    try:
        return {**row.value, "rubric": read_rubric(path, protocol, within)}
    except UsageError as error:
        raise DataError(error.what, where=error.where or row.where) from None
