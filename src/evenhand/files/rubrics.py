"""Rubrics, checked: from their files, every error with file and line, or written where a file would
be named, as one sentence or the text itself; and the units of tables, whose rows may bring theirs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import jsontext
from evenhand.data.files import advise
from evenhand.errors import DataError, UsageError
from evenhand.files.ready_rubrics import needs_of, ready_names, ready_rubrics
from evenhand.folders import is_within, read_text
from evenhand.kinds import KINDS
from evenhand.kinds.kind import ReadyKind, RubricForm, RubricTextError
from evenhand.kinds.protocol import Protocol, ProtocolError
from evenhand.kinds.rows import RowError
from evenhand.limits import ROWS_A_NOTICE
from evenhand.store.ports import IncomingUnit
from evenhand.suite import FILE
from evenhand.tomltext import find_line
from evenhand.words import LANGUAGES, Code, Sentence

if TYPE_CHECKING:
    from evenhand.data.columns import Row
    from evenhand.data.tables import Tables
    from evenhand.suite import Suite


DIMENSION = "criterion"
"""The id of the one dimension that one sentence makes."""
NAME_CHARS = 60
_FILE = re.compile(
    r"\S+\.[A-Za-z]\w{0,8}|.*\.(?:json|toml|md|markdown|txt|ya?ml|csv|docx?|pdf)", re.I
)
_ONE_NAME = re.compile(r"[\w./\\~-]+", re.ASCII)


def read_rubric(path: Path, protocol: Protocol, root: Path | None = None) -> Any:
    """The rubric of a file in the form of a protocol's kind; raises UsageError with file:line. With
    a root, it must lie in that folder."""
    form = KINDS[protocol.kind].rubric_form
    if form is None:
        raise UsageError(Sentence("files.takes_no_rubric", protocol=protocol.name), where=str(path))
    if path.suffix.lower() not in form.endings:
        endings = Code(" ".join(form.endings))
        raise UsageError(Sentence("files.rubric_ending", endings=endings), where=str(path))
    if not path.exists():
        raise _no_file(path, form)
    return rubric_in(path, read_text(path, root), protocol)


def rubric_in(path: Path, text: str, protocol: Protocol) -> Any:
    """The rubric of a text that stands in a file, or is to; raises UsageError with file:line."""
    form = KINDS[protocol.kind].rubric_form
    assert form is not None
    return _parse(str(path), text, path.suffix.lower(), form, protocol)


def _no_file(path: Path, form: RubricForm) -> UsageError:
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    names = sorted(
        file.name for file in beside if file.suffix.lower() in form.endings and file.name != FILE
    )
    what = Sentence("files.no_rubric", path=path)
    return UsageError(what, advice=advise(path.name, names) or what.advice)


def suite_rubric(suite: Suite, protocol: Protocol) -> Any:
    """The rubric or the criteria that a suite names or holds, checked; None if the rows bring their
    own. Raises UsageError, also for a kind that has no such key."""
    file, kind, where = suite.file, KINDS[protocol.kind], str(suite.path or "")
    key = "rubric" if file.criteria is None else "criteria"
    given = file.rubric if file.criteria is None else file.criteria
    if given is None:
        return None
    if kind.rubric_form is None:
        raise UsageError(Sentence("runs.no_rubric", kind=protocol.kind), where=where)
    if key == "criteria" and (file.rubric is not None or key not in kind.table_form.fields):
        raise UsageError(Sentence("files.criteria_elsewhere"), where=where)
    check_needs(given, file.use)
    if not isinstance(given, str):
        return rubric_of_value(given, protocol, file.language, key, where)
    if is_rubric_text(given):
        return rubric_of_text(given, protocol, file.language, where or key)
    path, root = suite.locate(key, given)
    return read_rubric(path, protocol, root)


def rubric_of_value(
    value: Mapping[str, Any] | Sequence[Any],
    protocol: Protocol,
    language: str = "en",
    key: str = "rubric",
    where: str = "",
) -> Any:
    """A rubric that is a value already, or a list of sentences, checked; raises UsageError with the
    path from the key of the value."""
    form = KINDS[protocol.kind].rubric_form
    if form is None or ".json" not in form.endings:
        raise UsageError(Sentence("files.takes_no_dimensions", protocol=protocol.name))
    if form.has_bands and not isinstance(value, Mapping):
        value = sentence_rubric(*map(str, value), language=language)
    try:
        text = jsontext.dump(value)
    except ValueError as error:
        raise UsageError(Sentence("files.rubric_not_json", problem=error.args[0])) from None
    try:
        return form.parse(text, ".json", protocol)
    except RubricTextError as fault:
        path = ".".join(map(str, (key, *fault.path)))
        message = Sentence("kinds.rubric_at", path=path, error=fault.args[0])
        raise UsageError(message, where=where) from None


def rubric_of_text(text: str, protocol: Protocol, language: str, where: str) -> Any:
    """The rubric that a text is in the form of a protocol's kind, where it stands in place of a
    file: a sentence becomes one dimension with bands in the language. Raises UsageError."""
    form = KINDS[protocol.kind].rubric_form
    if form is None:
        raise UsageError(Sentence("files.takes_no_rubric", protocol=protocol.name), where=where)
    if form.has_bands:
        return sentence_rubric(text, language=language)
    if text in ready_names():
        raise UsageError(Sentence("files.ready_is_scored", name=text), where=where)
    return _parse(f"{where}: rubric", text, form.endings[0], form, protocol)


def _parse(where: str, text: str, ending: str, form: RubricForm, protocol: Protocol) -> Any:
    try:
        return form.parse(text, ending, protocol)
    except RubricTextError as fault:
        line = fault.line
        if line is None and fault.path:
            find = find_line if ending == ".toml" else jsontext.find_line
            line = find(text, fault.path)
        raise UsageError(fault.args[0], where=f"{where}:{line}" if line else where) from None
    except ProtocolError as error:
        raise UsageError(error.args[0], where=f"{protocol.name}/{error.file}") from None


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
        return {**row.value, "rubric": sentence_rubric(str(rubric), language=row_language)}
    if not form.is_file(rubric):
        return row.value
    path = data.parent / str(rubric)
    within = root if root and is_within(data, root) else data.parent
    if not is_within(path, within):
        raise DataError(
            Sentence("files.rubric_outside", rubric=rubric, folder=within), where=row.where
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


def is_rubric_text(rubric: str) -> bool:
    """Return True if this is a rubric itself and not the name of a file: it has several lines, is
    the name of a ready rubric, or is no single name and has no file's ending."""
    text = rubric.strip()
    if text[:1] in ("{", "["):
        return False
    if "\n" in text or text in ready_names():
        return True
    return bool(text) and not _FILE.fullmatch(text) and not _ONE_NAME.fullmatch(text)


def sentence_rubric(*sentences: str, language: str) -> dict[str, Any]:
    """The rubric with a dimension that asks what each sentence says, with bands in a language; in
    English where nobody has written them. The name of a ready rubric stands for its dimensions."""
    texts = [" ".join(sentence.split()) for sentence in sentences]
    if named := [text for text in texts if text in ready_names()]:
        ready = ready_rubrics(named, language if language in LANGUAGES else "en")
        rest = [text for text in texts if text not in named]
        own = sentence_rubric(*rest, language=language)["dimensions"] if rest else []
        return {"dimensions": [each for one in ready for each in one.dimensions] + own}
    ids = [f"c{number}" for number in range(1, len(texts) + 1)] if texts[1:] else [DIMENSION]
    bands = _bands().get(language) or _bands()["en"]
    scored = [{"score": int(score), "criteria": bands[score]} for score in sorted(bands)]
    return {
        "dimensions": [
            {
                "id": ident,
                "name": text if len(text) <= NAME_CHARS else text[: NAME_CHARS - 1].rstrip() + "…",
                "scale": "1-5",
                "definition": text,
                "bands": scored,
            }
            for ident, text in zip(ids, texts, strict=True)
        ]
    }


def check_needs(rubric: object, given: Collection[str]) -> None:
    """Raise UsageError if a ready rubric among these needs a column that the judge does not see."""
    names = [rubric] if isinstance(rubric, str) else rubric if isinstance(rubric, list) else []
    for name in ready_names():
        for need in needs_of(ready_rubrics([name], "en")) if name in names else ():
            if need not in given:
                raise UsageError(Sentence("files.ready_needs", name=name, column=need))


@cache
def _bands() -> dict[str, dict[str, str]]:
    text = (resources.files("evenhand.files") / "sentence.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


class TableUnits:
    """Tables to be read as the units of one protocol: what a run reads, and what whoever writes a
    suite or checks replies reads beforehand, so that no two of them refuse different rows.

    The rubric of a row may be a file in the folder, or else beside its table; of a table that is to
    be copied, in the folder `copied_to`. `notice` hears how far a long reading is."""

    def __init__(
        self,
        tables: Tables,
        protocol: Protocol,
        folder: Path | None = None,
        language: str = "en",
        *,
        copied_to: Path | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        self._tables, self._protocol, self._copied_to = tables, protocol, copied_to
        self._folder, self._language, self._notice = folder, language, notice
        self.rows = 0
        """The number of rows read so far."""

    def read(self, judging: ReadyKind) -> Iterator[IncomingUnit]:
        """The units, each with the place of its row; raises DataError with file:line."""
        self.rows = 0
        for path, row in self._tables.rows:
            self.rows += 1
            if self._notice and self.rows % ROWS_A_NOTICE == 0:
                self._notice(Sentence("files.rows_read", n=self.rows))
            data = self._copied_to / path.name if self._copied_to else path
            value = with_rubric_text(row, data, self._protocol, self._folder, self._language)
            try:
                texts = judging.read(value)
            except RowError as error:
                raise self._tables.row_error(error, row.where) from None
            for unit in texts:
                yield IncomingUnit(unit.id, row.where, unit.body, description=unit.description)
