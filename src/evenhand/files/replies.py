"""The contract applied to replies made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from evenhand import jsontext
from evenhand.data.columns import Row
from evenhand.data.files import decode, ending_of, read_file, require_file, written_format
from evenhand.data.read import rows
from evenhand.data.tables import Tables, TableSource
from evenhand.errors import DataError
from evenhand.files.protocols import find_protocol, judging_of
from evenhand.files.rubrics import TableUnits, read_rubric
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Kind, ReadyKind, TableError, TableLine, VerdictTable
from evenhand.kinds.protocol import Protocol
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import RowError
from evenhand.manifest import JudgingRecord, rubric_json
from evenhand.words import Sentence


@dataclass(slots=True)
class Findings:
    """The problems and fixes that a check of many replies found."""

    units: int = 0
    ok: int = 0
    problems: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    fixes: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    flags: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def add(self, unit: str, checked: Checked[Any]) -> None:
        self.units += 1
        self.ok += not checked.problems
        self.problems += [
            {"unit": unit, "code": remark.code, "path": remark.path, "message": remark.message}
            for remark in checked.problems
        ]
        self.fixes += [
            {"unit": unit, "code": remark.code, "path": remark.path} for remark in checked.fixes
        ]
        self.flags += [{"unit": unit, "flag": flag} for flag in dict.fromkeys(checked.flags)]

    def json(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "ok": self.ok,
            "problems": self.problems,
            "fixes": self.fixes,
            "flags": self.flags,
        }


def check_file(
    protocol: str,
    language: str,
    rubric: Path | None,
    units: Path,
    replies: Path,
    *,
    expose_meta: bool = False,
) -> Findings:
    """Check every reply of a file against the unit it is about; raises DataError."""
    loaded = find_protocol(protocol)
    kind = KINDS[loaded.kind]
    settings = {"expose_meta": expose_meta} if "expose_meta" in kind.settings else {}
    record = JudgingRecord(
        language=language,
        rubric_json=rubric_json(None if rubric is None else read_rubric(rubric, loaded)),
        settings={**kind.settings, **settings, "use": []},
    )
    judging = judging_of(loaded, record)
    judged_units, findings = _UnitFinder(judging, loaded, units), Findings()
    for row in _reply_rows(replies, kind, judging):
        unit, checked = judged_units.checked(row)
        findings.add(unit, checked)
    return findings


class _UnitFinder:
    """The units by id, and by what output objects name them by."""

    def __init__(self, judging: ReadyKind, protocol: Protocol, path: Path) -> None:
        self._judging = judging
        self._units: dict[str, Any] = {}
        self._ids: dict[str, list[str]] = {}
        form = KINDS[protocol.kind].table_form
        tables = Tables([TableSource(path=path)], {}, form, lambda line: None)
        for unit in TableUnits(tables, protocol).read(judging):
            if unit.id in self._units:
                raise DataError(Sentence("files.two_units", id=unit.id), where=unit.origin)
            self._units[unit.id] = loaded = judging.load(unit.body)
            for key in judging.kind.unit_keys(loaded):
                self._ids.setdefault(key, []).append(unit.id)

    def checked(self, row: Row) -> tuple[str, Checked[Any]]:
        """The unit that a row is about, and what the contract says of it; raises DataError."""
        raw = _raw(row)
        if raw is not None:
            loaded = self._unit(raw.unit, row.where)
            protocol = self._judging.protocol_of(loaded)
            return raw.unit, protocol.check_external_reply(loaded, raw.text, raw.finish)
        output = {name: value for name, value in row.value.items() if name != "unit"}
        unit = str(row.value["unit"]) if "unit" in row.value else self._unit_of(row)
        loaded = self._unit(unit, row.where)
        return unit, self._judging.protocol_of(loaded).check_output(loaded, output)

    def _unit_of(self, row: Row) -> str:
        """The one unit that an output object names."""
        try:
            key = self._judging.kind.output_key(row.value)
        except RowError as error:
            raise DataError(error.args[0], where=row.where) from None
        if key is None:
            raise _neither(row)
        ids = self._ids.get(key, [])
        if len(ids) > 1 and key not in ids:
            raise DataError(Sentence("files.several_units", n=len(ids), name=key), where=row.where)
        return ids[0] if len(ids) == 1 else key

    def _unit(self, unit: str, where: str) -> Any:
        if unit not in self._units:
            raise DataError(Sentence("files.no_unit", id=unit), where=where)
        return self._units[unit]


def _reply_rows(path: Path, kind: Kind, judging: ReadyKind) -> Iterable[Row]:
    if kind.table is None:
        return rows(path)
    if ending_of(path) == ".txt":
        require_file(path)
        return _table_rows(path, kind.table, judging.dimensions)
    written_format(path)
    return rows(path)


def _table_rows(path: Path, table: VerdictTable, dimensions: Sequence[str]) -> Iterator[Row]:
    """The lines of a verdict table as output objects."""
    text = decode(read_file(path), None, str(path))
    try:
        for line in _once_each(table.read(StringIO(text, newline="\n"), dimensions), path):
            yield Row(line.output, f"{path}:{line.number}")
    except TableError as error:
        raise DataError(error.message, where=f"{path}:{error.line_number}") from None


def _once_each(table: Iterator[TableLine], path: Path) -> Iterator[TableLine]:
    """The lines of a table; raises DataError at a unit that has one already."""
    numbers: dict[str, int] = {}
    for line in table:
        first = numbers.setdefault(line.unit, line.number)
        if first != line.number:
            raise DataError(
                Sentence("files.pair_twice", pair=line.unit, first=first),
                where=f"{path}:{line.number}",
            )
        yield line


class _RawReply(NamedTuple):
    unit: str
    text: str
    finish: str


def _raw(row: Row) -> _RawReply | None:
    """Return the raw reply that a row brings; None if it brings none."""
    value: Mapping[str, Any] = row.value
    if "reply" not in value:
        return None
    if "unit" not in value:
        raise DataError(Sentence("files.reply_without_unit"), where=row.where)
    text = jsontext.as_text(value["reply"])
    return _RawReply(str(value["unit"]), text, str(value.get("finish", "stop")))


def _neither(row: Row) -> DataError:
    return DataError(Sentence("files.no_reply"), where=row.where)
