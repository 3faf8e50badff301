"""The contract applied to replies made elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from evenhand import jsontext
from evenhand.app import find_protocol, kind_of, read_rubric_file
from evenhand.data.read import rows
from evenhand.errors import DataError, quoted
from evenhand.limits import REPAIRS
from evenhand.protocols.kind import RubricKind
from evenhand.protocols.rubric_check import Checked
from evenhand.protocols.samples import RowError, load_sample
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
    identity = {
        "rubric": None if rubric is None else read_rubric_file(rubric),
        "language": language,
        "settings": {"expose_meta": expose_meta, "repairs": REPAIRS, "use": []},
    }
    kind = cast("RubricKind", kind_of(find_protocol(protocol), identity))
    known = _Known(kind, units)
    found = Findings()
    for row in rows(replies):
        unit, text = _reply(row.value, row.where, known)
        if unit not in known.bodies:
            raise DataError(f"there is no unit {quoted(unit)}", where=row.where)
        sample = load_sample(known.bodies[unit])
        finish = str(row.value.get("finish", "stop")) if "reply" in row.value else "stop"
        found.add(unit, kind.of(sample).check(text, sample, finish=finish))
    return found


class _Known:
    """The units by id, and their ids by meta: an output object carries nothing else of its unit."""

    def __init__(self, kind: RubricKind, units: Path) -> None:
        self.bodies: dict[str, str] = {}
        self._by_meta: dict[str, list[str]] = {}
        for row in rows(units):
            try:
                unit, body = kind.read(row.value)
            except RowError as error:
                raise DataError(str(error), where=row.where) from None
            if unit in self.bodies:
                raise DataError(f"two units have the id {quoted(unit)}", where=row.where)
            self.bodies[unit] = body
            self._by_meta.setdefault(_meta_id(row.value), []).append(unit)

    def unit_of(self, output: dict[str, Any]) -> str:
        """The one unit with the meta of an output object, else the id that meta makes."""
        ident = _meta_id(output)
        found = self._by_meta.get(ident, [])
        return found[0] if len(found) == 1 else ident


def _meta_id(row: dict[str, Any]) -> str:
    return sample_id({"meta": row.get("meta")})


def _reply(row: dict[str, Any], where: str, known: _Known) -> tuple[str, str]:
    """The unit and the raw text of a row: given as such, or as an output object of the contract."""
    if "reply" in row:
        if "unit" not in row:
            raise DataError('"unit" is missing', where=where)
        reply = row["reply"]
        return str(row["unit"]), reply if isinstance(reply, str) else jsontext.dump(reply)
    if "scores" in row:
        if not isinstance(row.get("meta"), dict):
            raise DataError('"meta" must be an object: it names the unit', where=where)
        return known.unit_of(row), jsontext.dump(row)
    raise DataError(
        'neither {"unit", "reply"} nor an output object of the contract',
        where=where,
        advice='Write one JSON object a line: {"unit": "...", "reply": "the raw text"}',
    )
