"""Rubrics from their files, checked, every error with file and line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import jsontext
from evenhand.data.files import did_you_mean
from evenhand.errors import DataError, UsageError, quoted
from evenhand.files.sentences import is_rubric_text, sentence_rubric
from evenhand.folders import is_within, read_text
from evenhand.kinds import KINDS
from evenhand.kinds.kind import RubricForm, RubricTextError
from evenhand.kinds.protocol import Protocol, ProtocolError
from evenhand.suite import FILE
from evenhand.tomltext import find_line

if TYPE_CHECKING:
    from evenhand.data.columns import Row


def read_rubric(path: Path, protocol: Protocol, root: Path | None = None) -> Any:
    """The rubric of a file in the form of a protocol's kind; raises UsageError with file:line. With
    a root, it must lie in that folder."""
    form = KINDS[protocol.kind].rubric_form
    if form is None:
        raise UsageError(f"the protocol {protocol.name} takes no rubric", where=str(path))
    if path.suffix.lower() not in form.endings:
        names = " or ".join(form.endings)
        raise UsageError(form.about, where=str(path), advice=f"Name it {names}.")
    if not path.exists():
        raise _no_file(path, form)
    return rubric_in(path, read_text(path, "the rubric", root), protocol)


def rubric_in(path: Path, text: str, protocol: Protocol) -> Any:
    """The rubric of a text that stands in a file, or is to; raises UsageError with file:line."""
    form = KINDS[protocol.kind].rubric_form
    assert form is not None
    return _parsed(str(path), text, path.suffix.lower(), form, protocol)


def _no_file(path: Path, form: RubricForm) -> UsageError:
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    names = sorted(
        file.name for file in beside if file.suffix.lower() in form.endings and file.name != FILE
    )
    near = did_you_mean(path.name, names)
    there = f"There are: {', '.join(names[:8])}." if names and not near else ""
    return UsageError(
        f"there is no rubric file {quoted(path)}",
        advice=" ".join(filter(None, (near, there, "A rubric may also be one sentence."))),
    )


def rubric_of_value(value: Mapping[str, Any], protocol: Protocol) -> Any:
    """A rubric of dimensions that is a value already, checked; raises UsageError."""
    form = KINDS[protocol.kind].rubric_form
    if form is None or not form.has_bands:
        raise UsageError(f"the protocol {protocol.name} takes no rubric of dimensions")
    try:
        text = jsontext.dump(value)
    except ValueError as error:
        raise UsageError(f"the rubric is no JSON: {error}") from None
    return _parsed("rubric", text, ".json", form, protocol)


def rubric_of_text(text: str, protocol: Protocol, language: str, where: str) -> Any:
    """The rubric that a text is in the form of a protocol's kind, where it stands in place of a
    file: a sentence becomes one dimension with bands in the language. Raises UsageError."""
    form = KINDS[protocol.kind].rubric_form
    if form is None:
        raise UsageError(f"the protocol {protocol.name} takes no rubric", where=where)
    if form.has_bands:
        return sentence_rubric(text, language)
    return _parsed(f"{where}: rubric", text, form.endings[0], form, protocol)


def _parsed(where: str, text: str, ending: str, form: RubricForm, protocol: Protocol) -> Any:
    try:
        return form.parse(text, ending, protocol)
    except RubricTextError as fault:
        line = fault.line
        if line is None and fault.path:
            find = find_line if ending == ".toml" else jsontext.find_line
            line = find(text, fault.path)
        raise UsageError(str(fault), where=f"{where}:{line}" if line else where) from None
    except ProtocolError as error:
        raise UsageError(str(error), where=f"{protocol.name}/{error.file}") from None


def with_rubric_text(
    row: Row, data: Path, protocol: Protocol, root: Path | None = None, language: str = "en"
) -> Mapping[str, Any]:
    """A row of a data file whose rubric, where it is the name of a file beside that one, is what it
    holds, and where it is a sentence, what that makes; raises DataError. A row comes from anyone,
    so the file must lie in the root, or else beside the data."""
    form, rubric = KINDS[protocol.kind].rubric_form, row.value.get("rubric")
    if form is None:
        return row.value
    if form.has_bands and _is_sentence(rubric):
        row_language = str(row.value.get("language") or language)
        return {**row.value, "rubric": sentence_rubric(str(rubric), row_language)}
    if not form.is_file(rubric):
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


def _is_sentence(rubric: object) -> bool:
    """Return True if the rubric of a row is neither JSON nor a name."""
    if not isinstance(rubric, str) or rubric.lstrip()[:1] in ("{", "["):
        return False
    return is_rubric_text(rubric)
