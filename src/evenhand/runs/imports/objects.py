"""Output objects in a contract's own form, and verdict tables, as teams have stored them.

An object of `rubric` has `scores`, one of `weighted` a `task_name`, one of `pairwise` a `pair_id`;
all of one import are of one kind. What an object says is taken as it is: it holds no texts, so that
quotes cannot be sought. One that is not of its contract's form is a failed judgment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

import msgspec

from evenhand import jsontext
from evenhand.data.columns import Row
from evenhand.data.files import decode, ending_of, read_file
from evenhand.data.layouts.tidy import JudgmentFile, Shape, TidyRow, judge_of, object_of, text_of
from evenhand.errors import DataError
from evenhand.judgment import Failure, Judgment, Verdict, VerdictValue, write_judgment
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Kind, TableError, Voting
from evenhand.kinds.pairwise.table import read_lines
from evenhand.kinds.pairwise.verdict import PairVerdict
from evenhand.kinds.rows import RowError
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.kinds.weighted.verdict import Grade
from evenhand.observation import (
    TASK_TYPE,
    Ends,
    Observation,
    Scored,
    describe_unit,
    observe_scores,
    observe_votes,
)
from evenhand.runs.imports.scores import TAGS
from evenhand.runs.imports.tally import ImportTally
from evenhand.store.ports import IncomingUnit
from evenhand.units import Answer, Candidate, Pair, Sample
from evenhand.words import Sentence

_TYPES: dict[str, type[VerdictValue]] = {
    "pairwise": PairVerdict,
    "rubric": RubricVerdict,
    "weighted": Grade,
}


def read_objects(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the objects of a file, those of a verdict table among them; raises DataError."""
    path = file.path
    rows = _table_rows(file) if path and ending_of(path) == ".txt" else file.table()
    for row in rows:
        kind = _kind_of(row)
        yield TidyRow(KINDS[kind].imports, row.value, row.where, kind)


def _table_rows(file: JudgmentFile) -> Iterator[Row]:
    assert file.path is not None
    text = decode(read_file(file.path), None, file.name)
    try:
        for line in read_lines(StringIO(text, newline="\n")):
            yield Row(line.output, f"{file.name}:{line.number}")
    except TableError as error:
        raise DataError(error.message, where=f"{file.name}:{error.line_number}") from None


def _kind_of(row: Row) -> str:
    marks = {"pair_id": "pairwise", "scores": "rubric", "task_name": "weighted"}
    for mark, kind in marks.items():
        if mark in row.value:
            return kind
    raise DataError(Sentence("runs.no_contract"), where=row.where)


class ObjectRows:
    """The objects of one import."""

    key = ("unit",)

    def __init__(self, kind: str, judge: str) -> None:
        self.ends: Ends = {}
        self.kind: Kind = KINDS[kind]
        self.shape: Shape = self.kind.imports
        self.tally = ImportTally()
        self._judge = judge
        self._units: dict[str, IncomingUnit] = {}
        self._judgments: dict[str, dict[int, list[Judgment]]] = {}

    def add(self, row: TidyRow) -> None:
        """Take in an object; raises DataError."""
        output, where = dict(row.value), row.where
        judge = self.tally.judge(judge_of(output, where, "objects", self._judge))
        try:
            ident = text_of(output.pop("unit", "")) or self.kind.output_key(output)
        except RowError as error:
            raise DataError(error.args[0], where=where) from None
        if not ident:
            raise DataError(Sentence("runs.no_unit_name"), where=where)
        names = _names_of(output, ident)
        judgment = self._read(output, ident, names)
        if ident not in self._units:
            self._units[ident] = self._unit(output, ident, names, where)
        self._judgments.setdefault(ident, {}).setdefault(judge, []).append(judgment)
        self.tally.rows += 1
        self.tally.candidates.update(names)

    def _read(self, output: dict[str, Any], ident: str, names: tuple[str, ...]) -> Judgment:
        """Return what an object says; a failure where it is not of its contract's form."""
        if self.kind.imports == "votes":
            is_open = output.get("winner") == "uncertain"
            given = {"candidates": names, "settled": "uncertain" if is_open else "stable"}
            more = {"rounds": 1, "criteria": {}, "unstable": [], "notes": "", "meta": {}}
            output = {**given, **more, **output, "pair_id": ident}
        try:
            text = jsontext.dump(output).encode()
            verdict = Verdict(value=msgspec.json.decode(text, type=_TYPES[self.kind.name]))
        except msgspec.ValidationError as error:
            return Failure(reason="schema", detail=str(error))
        measured = self.kind.measure.judgment(verdict)
        if isinstance(measured, Scored):
            self.tally.names.update(dict.fromkeys(measured.scores))
            for name, most in measured.most.items():
                if not 0 <= measured.scores.get(name, 0) <= most:
                    detail = f"{name}: {measured.scores[name]:g} is not from 0 to {most:g}"
                    return Failure(reason="out_of_range", detail=detail)
        elif measured is not None:
            self.tally.names.update(dict.fromkeys(measured.marks))
            if measured.preference is not None and not 0 <= measured.preference <= 1:
                detail = f"preference: {measured.preference:g} is not from 0 to 1"
                return Failure(reason="out_of_range", detail=detail)
        return verdict

    def _unit(
        self, output: Mapping[str, Any], ident: str, names: tuple[str, ...], where: str
    ) -> IncomingUnit:
        """Return the unit of an object, without its texts."""
        meta = object_of(output.get("meta"))
        unit: Pair | Sample | Answer
        if self.kind.imports == "votes":
            first, second = (Candidate(id=name, text="") for name in names)
            topic = ident.partition("#")[0]
            unit = Pair(id=ident, topic="", first=first, second=second, row=topic, meta=meta)
        elif self.kind.imports == "scores":
            unit = Sample(id=ident, question="", model_output="", meta=meta)
        else:
            name, task_type = text_of(output["task_name"]), text_of(output.get("task_type"))
            meta = {TASK_TYPE: task_type} if task_type else {}
            unit = Answer(id=ident, task_name=name, prompt="", answer="", meta=meta)
        return IncomingUnit(ident, where, self.kind.dump(unit))

    def finish(self) -> None:
        """Bring the counts up to date once all rows are there."""
        self.tally.units = len(self._units)

    def units(self, language: str) -> Iterator[IncomingUnit]:
        """Yield every unit with its judgments."""
        for ident, unit in self._units.items():
            judgments = []
            for judge, own in self._judgments[ident].items():
                self.tally.count(judge, own)
                judgments += [
                    (judge, repeat, write_judgment(judgment, (), self._observe(judgment)))
                    for repeat, judgment in enumerate(own)
                ]
            description = describe_unit(self.kind.measure.unit(unit.body), language)
            yield unit._replace(judgments=judgments, description=description)

    def _observe(self, judgment: Judgment) -> list[Observation]:
        measure = self.kind.measure
        if isinstance(measure, Voting):
            return list(observe_votes(measure.judgment(judgment)))
        scored = measure.judgment(judgment)
        if scored is None:
            return []
        tags = TAGS if self.kind.imports == "scores" else ""
        critical = measure.has_critical_fails
        return list(observe_scores(scored, {}, tags, has_critical_fails=critical))


def _names_of(output: Mapping[str, Any], ident: str) -> tuple[str, ...]:
    """Return the candidates of a pair as its object names them, else A and B."""
    if "pair_id" not in output:
        return ()
    given = output.get("candidates")
    if isinstance(given, list) and len(given) == 2 and all(isinstance(name, str) for name in given):
        return tuple(given)
    return ("A", "B")
