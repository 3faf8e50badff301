"""The contract applied to replies made elsewhere."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from gzip import BadGzipFile
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Protocol

from evenhand import jsontext
from evenhand.data.files import TABLE_TOO, format_of, is_text, opened, require_file
from evenhand.data.read import Row, rows
from evenhand.errors import DataError, UsageError, quoted
from evenhand.files.protocols import find_protocol, judging_of, task_types
from evenhand.files.rubrics import read_rubric_file, read_task_file, with_task_text
from evenhand.kinds.kind import Judging
from evenhand.kinds.pairwise.judging import PairwiseJudging
from evenhand.kinds.pairwise.table import TableError, TableRow, read_table
from evenhand.kinds.pairwise.unit import load_pair
from evenhand.kinds.rubric.judging import RubricJudging
from evenhand.kinds.rubric.unit import load_sample
from evenhand.kinds.shared.check import Checked
from evenhand.kinds.shared.load import Protocol as Loaded
from evenhand.kinds.shared.rows import RowError
from evenhand.kinds.weighted.judging import WeightedJudging
from evenhand.kinds.weighted.unit import load_answer
from evenhand.limits import REPAIRS
from evenhand.manifest import JudgingRecord, rubric_json
from evenhand.units import sample_id


@dataclass(slots=True)
class Findings:
    """What a check of many replies found."""

    units: int = 0
    ok: int = 0
    problems: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    fixes: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    flags: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def add(self, unit: str, checked: Checked[Any]) -> None:
        self.units += 1
        self.ok += not checked.problems
        self.problems += [
            {"unit": unit, "code": one.code, "path": one.path, "message": one.message}
            for one in checked.problems
        ]
        self.fixes += [{"unit": unit, "code": one.code, "path": one.path} for one in checked.fixes]
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
    found = find_protocol(protocol)
    settings = {"expose_meta": expose_meta, "repairs": REPAIRS, "use": []}
    settings |= {"max_rounds": None, "blind": "flag", "no_self_judging": False}
    record = JudgingRecord(
        language=language,
        rubric_json=rubric_json(None if rubric is None else _rubric_value(found, rubric)),
        settings=settings,
    )
    kind = judging_of(found, record)
    known = _Units(kind, units)
    if isinstance(kind, PairwiseJudging):
        return _findings(_PairReplies(kind, known), _pair_rows(replies, kind))
    if isinstance(kind, WeightedJudging):
        return _findings(_AnswerReplies(kind, known), rows(replies))
    assert isinstance(kind, RubricJudging)
    return _findings(_SampleReplies(kind, known), rows(replies))


def _rubric_value(protocol: Loaded, path: Path) -> object:
    if protocol.kind == "weighted":
        return read_task_file(path, task_types(protocol))
    return read_rubric_file(path)


def _findings(replies: _Replies, given: Iterator[Row]) -> Findings:
    found = Findings()
    for row in given:
        unit, checked = replies.checked(row)
        found.add(unit, checked)
    return found


class _Replies(Protocol):
    """How the replies of one kind are checked."""

    def checked(self, row: Row) -> tuple[str, Checked[Any]]:
        """The unit that a row is about, and what the contract says of it."""
        ...


class _Units:
    """The units by id."""

    def __init__(self, kind: Judging, path: Path) -> None:
        self._bodies: dict[str, str] = {}
        self.by_meta: dict[str, list[str]] = {}
        self.by_task: dict[str, list[str]] = {}
        for row in rows(path):
            value = row.value
            if isinstance(kind, WeightedJudging):
                value = with_task_text(value, path.parent, kind.types)
            try:
                units = kind.read(value)
            except RowError as error:
                raise DataError(str(error), where=row.where) from None
            for unit in units:
                if unit.id in self._bodies:
                    raise DataError(f"two units have the id {quoted(unit.id)}", where=row.where)
                self._bodies[unit.id] = unit.body
                self.by_meta.setdefault(_meta_id(row.value), []).append(unit.id)
                self.by_task.setdefault(str(row.value.get("task_name")), []).append(unit.id)

    def body(self, unit: str, where: str) -> str:
        if unit not in self._bodies:
            raise DataError(f"there is no unit {quoted(unit)}", where=where)
        return self._bodies[unit]


@dataclass(frozen=True, slots=True)
class _SampleReplies:
    """Replies about samples: raw texts, or output objects, known by their meta alone."""

    kind: RubricJudging
    units: _Units

    def checked(self, row: Row) -> tuple[str, Checked[Any]]:
        unit, text, finish = _told(row, "scores", self._unit_of)
        sample = load_sample(self.units.body(unit, row.where))
        return unit, self.kind.of(sample).check(text, sample, finish=finish)

    def _unit_of(self, row: Row) -> str:
        """The one unit with the meta of an output object, else the id that meta makes."""
        if not isinstance(row.value.get("meta"), dict):
            raise DataError('"meta" must be an object: it names the unit', where=row.where)
        ident = _meta_id(row.value)
        found = self.units.by_meta.get(ident, [])
        return found[0] if len(found) == 1 else ident


@dataclass(frozen=True, slots=True)
class _PairReplies:
    """Replies about pairs: raw texts, settled verdicts, or lines of a verdict table."""

    kind: PairwiseJudging
    units: _Units

    def checked(self, row: Row) -> tuple[str, Checked[Any]]:
        raw = _raw(row)
        if raw is None and "pair_id" not in row.value:
            raise _neither(row)
        unit = raw[0] if raw else str(row.value["pair_id"])
        pair = load_pair(self.units.body(unit, row.where))
        protocol = self.kind.of(pair)
        if raw is None:
            return unit, protocol.check_verdict(row.value)
        return unit, protocol.check_elsewhere(raw[1], pair, finish=raw[2])


@dataclass(frozen=True, slots=True)
class _AnswerReplies:
    """Replies about answers: raw texts, or output objects, known by their task's name alone."""

    kind: WeightedJudging
    units: _Units

    def checked(self, row: Row) -> tuple[str, Checked[Any]]:
        unit, text, finish = _told(row, "task_name", self._unit_of)
        answer = load_answer(self.units.body(unit, row.where))
        return unit, self.kind.of(answer).check_elsewhere(text, answer, finish=finish)

    def _unit_of(self, row: Row) -> str:
        name = str(row.value["task_name"])
        found = self.units.by_task.get(name, [])
        if len(found) > 1:
            raise DataError(
                f"{len(found)} units are of the task {quoted(name)}",
                where=row.where,
                advice='Say which: {"unit": "...", "reply": {...}}',
            )
        return found[0] if found else name


def _pair_rows(path: Path, kind: PairwiseJudging) -> Iterator[Row]:
    if is_text(path):
        require_file(path)
        return _table_rows(path, kind)
    format_of(path, TABLE_TOO)
    return rows(path)


def _table_rows(path: Path, kind: PairwiseJudging) -> Iterator[Row]:
    """The lines of a verdict table as settled verdicts."""
    try:
        with opened(path) as packed, TextIOWrapper(packed, "utf-8", newline="\n") as file:
            for one in _one_a_pair(read_table(file, kind.dimensions), path):
                value = {"pair_id": one.pair_id, "winner": one.winner, "notes": one.notes}
                where = f"{path}:{one.line_number}"
                yield Row(value | {"criteria": dict(one.marks)}, where)
    except (EOFError, BadGzipFile, zlib.error):
        raise DataError(
            "the gzip data cannot be read",
            where=str(path),
            advice="Pack the table again, or take .gz off its name if it is plain text.",
        ) from None
    except OSError as error:
        raise UsageError(f"{quoted(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError("the table is not UTF-8", where=str(path)) from None
    except TableError as error:
        raise DataError(error.message, where=f"{path}:{error.line_number}") from None


def _one_a_pair(table: Iterator[TableRow], path: Path) -> Iterator[TableRow]:
    """The rows of a table; raises DataError at a pair that has one already."""
    lines: dict[str, int] = {}
    for one in table:
        first = lines.setdefault(one.pair_id, one.line_number)
        if first != one.line_number:
            raise DataError(
                f"the pair {quoted(one.pair_id)} has a line already, line {first}",
                where=f"{path}:{one.line_number}",
                advice="A verdict table has one line a pair: take one of the two out.",
            )
        yield one


def _raw(row: Row) -> tuple[str, str, str] | None:
    """Unit, text and finish of a row that brings a raw reply."""
    value: Mapping[str, Any] = row.value
    if "reply" not in value:
        return None
    if "unit" not in value:
        raise DataError('"unit" is missing', where=row.where)
    text = jsontext.as_text(value["reply"])
    return str(value["unit"]), text, str(value.get("finish", "stop"))


def _told(row: Row, key: str, unit_of: Callable[[Row], str]) -> tuple[str, str, str]:
    """The same of a row that brings a raw reply, or an output object, which has the key."""
    raw = _raw(row)
    if raw is None and key not in row.value:
        raise _neither(row)
    return raw or (unit_of(row), jsontext.dump(row.value), "stop")


def _meta_id(row: Mapping[str, Any]) -> str:
    return sample_id({"meta": row.get("meta")})


def _neither(row: Row) -> DataError:
    return DataError(
        'neither {"unit", "reply"} nor an output object of the contract',
        where=row.where,
        advice='Write one JSON object a line: {"unit": "...", "reply": "the raw text"}',
    )
