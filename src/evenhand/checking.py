"""The contract applied to replies made elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand import jsontext
from evenhand.app import find_protocol, kind_of, read_rubric_file
from evenhand.data.read import Row, rows
from evenhand.errors import DataError, UsageError, quoted
from evenhand.limits import REPAIRS
from evenhand.protocols.check import Checked
from evenhand.protocols.kind import Kind, PairwiseKind, RubricKind
from evenhand.protocols.pairs import load_pair
from evenhand.protocols.rows import RowError
from evenhand.protocols.samples import load_sample
from evenhand.protocols.verdict_table import TableError, read_table
from evenhand.units import sample_id


@dataclass(slots=True)
class Findings:
    """What a check of many replies found."""

    units: int = 0
    ok: int = 0
    problems: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    fixes: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def add(self, unit: str, checked: Checked) -> None:
        self.units += 1
        self.ok += not checked.problems
        self.problems += [
            {"unit": unit, "code": one.code, "path": one.path, "message": one.message}
            for one in checked.problems
        ]
        self.fixes += [{"unit": unit, "code": one.code, "path": one.path} for one in checked.fixes]

    def json(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "ok": self.ok,
            "problems": self.problems,
            "fixes": self.fixes,
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
    identity = {
        "rubric": None if rubric is None else read_rubric_file(rubric),
        "language": language,
        "seed": 0,
        "settings": settings,
    }
    kind = kind_of(found, identity)
    known = _Units(kind, units)
    if isinstance(kind, PairwiseKind):
        is_table = replies.suffix == ".txt"
        given = _table_rows(replies, kind) if is_table else rows(replies)
        return _findings(_PairReplies(kind, known), given)
    assert isinstance(kind, RubricKind)
    return _findings(_SampleReplies(kind, known), rows(replies))


def _findings(replies: _SampleReplies | _PairReplies, given: Iterator[Row]) -> Findings:
    found = Findings()
    for row in given:
        unit, checked = replies.checked(row)
        found.add(unit, checked)
    return found


class _Units:
    """The units by id."""

    def __init__(self, kind: Kind, path: Path) -> None:
        self._bodies: dict[str, str] = {}
        self.by_meta: dict[str, list[str]] = {}
        for row in rows(path):
            try:
                units = kind.read(row.value, 0)
            except RowError as error:
                raise DataError(str(error), where=row.where) from None
            for unit in units:
                if unit.id in self._bodies:
                    raise DataError(f"two units have the id {quoted(unit.id)}", where=row.where)
                self._bodies[unit.id] = unit.body
                self.by_meta.setdefault(_meta_id(row.value), []).append(unit.id)

    def body(self, unit: str, where: str) -> str:
        if unit not in self._bodies:
            raise DataError(f"there is no unit {quoted(unit)}", where=where)
        return self._bodies[unit]


@dataclass(frozen=True, slots=True)
class _SampleReplies:
    """Replies about samples: raw texts, or output objects, known by their meta alone."""

    kind: RubricKind
    units: _Units

    def checked(self, row: Row) -> tuple[str, Checked]:
        raw = _raw(row)
        if raw is None and "scores" not in row.value:
            raise _neither(row)
        unit, text, finish = raw or (self._unit_of(row), jsontext.dump(row.value), "stop")
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

    kind: PairwiseKind
    units: _Units

    def checked(self, row: Row) -> tuple[str, Checked]:
        raw = _raw(row)
        if raw is None and "pair_id" not in row.value:
            raise _neither(row)
        unit = raw[0] if raw else str(row.value["pair_id"])
        spoken = self.kind.of(load_pair(self.units.body(unit, row.where)))
        if raw is None:
            return unit, spoken.check_verdict(row.value)
        return unit, spoken.check(raw[1], finish=raw[2], tables=True)


def _table_rows(path: Path, kind: PairwiseKind) -> Iterator[Row]:
    """The lines of a verdict table as settled verdicts."""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, one in enumerate(read_table(file, kind.criteria), 2):
                value = {"pair_id": one.pair_id, "winner": one.winner, "notes": one.notes}
                yield Row(value | {"criteria": dict(one.marks)}, f"{path}:{number}")
    except OSError as error:
        raise UsageError(f"{quoted(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError("the table is not UTF-8", where=str(path)) from None
    except TableError as error:
        raise DataError(str(error), where=f"{path}:{error.line_number}") from None


def _raw(row: Row) -> tuple[str, str, str] | None:
    """Unit, text and finish of a row that brings a raw reply."""
    value: Mapping[str, Any] = row.value
    if "reply" not in value:
        return None
    if "unit" not in value:
        raise DataError('"unit" is missing', where=row.where)
    reply = value["reply"]
    text = reply if isinstance(reply, str) else jsontext.dump(reply)
    return str(value["unit"]), text, str(value.get("finish", "stop"))


def _meta_id(row: Mapping[str, Any]) -> str:
    return sample_id({"meta": row.get("meta")})


def _neither(row: Row) -> DataError:
    return DataError(
        'neither {"unit", "reply"} nor an output object of the contract',
        where=row.where,
        advice='Write one JSON object a line: {"unit": "...", "reply": "the raw text"}',
    )
