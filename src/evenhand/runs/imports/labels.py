"""Labels that people gave to units which a run already knows: the unit, who labelled it, and which
candidate is better or what it scores. They become votes or scores on the very units of that run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Raw

from evenhand.data.layouts.tidy import (
    ORDER_UNKNOWN,
    JudgmentFile,
    TidyRow,
    missing,
    on_scale,
    text_of,
)
from evenhand.data.recognise import fold
from evenhand.errors import DataError
from evenhand.kinds.kind import Kind, Scoring
from evenhand.kinds.pairwise.table import read_cell
from evenhand.kinds.rows import raw_json
from evenhand.kinds.samples import sample_text
from evenhand.observation import Ends, VotedUnit, describe_unit
from evenhand.runs.recorded import LABELS, Recorded
from evenhand.store.archive import Archive
from evenhand.store.ports import IncomingUnit
from evenhand.units import META_FIELDS, Sample, named_pair_id, question_hash
from evenhand.words import Code, Sentence, few

HUMAN = "human"
_JOINED = ("unit", "question", *META_FIELDS, "task_name")
"""Columns that may name a unit, in the order in which they are believed."""
_SIDES = {"1": "first", "2": "second", "1.5": "tie"}
_WORDS = {"A": "first", "B": "second", "tie": "tie"}
_NAMED = 3


class KnownUnit(NamedTuple):
    """A unit of a run as its labels take it over: its meta as JSON, the names of the candidates of
    a pair, the ends of its own rubric."""

    unit: IncomingUnit
    meta: Raw
    names: tuple[str, ...]
    ends: Ends


class LabelledRun:
    """The units of a run, found by whatever names them: their id, the question, model, variant, the
    candidates' names."""

    def __init__(self, archive: Archive, run: Recorded) -> None:
        self.run, self.language = run.id, run.manifest.judging.language
        self.has_votes = run.has_votes
        self.left_out = 0
        """Rows about units that the run does not have."""
        self.units: dict[str, KnownUnit] = {}
        self.ends: Ends = {} if run.imported else run.judging.ends
        self._index: dict[tuple[str, str], set[str]] = {}
        """By column and value, the ids of the units that have it."""
        for stored in archive.units(run.scope):
            self._add(run.kind, stored.id, stored.body)
        self._dimensions = [] if self.has_votes else self._find_dimensions(archive, run)

    def _add(self, kind: Kind, ident: str, body: str) -> None:
        unit, measured, form = kind.load(body), kind.measure.unit(body), kind.table_form
        question, fields = getattr(unit, form.question), measured.fields
        names: tuple[str, ...] = ()
        ends: Ends = {}
        places = [("unit", ident), ("question", question_hash(question))]
        places += [(name, text_of(value)) for name, value in fields.items()]
        places += [("unit", text_of(fields["question_id"]))] if "question_id" in fields else []
        if isinstance(measured, VotedUnit):
            names = measured.candidates
            places += [("unit", unit.row), ("unit", named_pair_id(unit.row, names))]
        else:
            ends = measured.ends
            if not isinstance(unit, Sample):
                # Scores that people give are those of samples, whatever the judge gave.
                texts = {"question": question, "model_output": getattr(unit, form.answer)}
                unit = Sample(id=ident, **texts, meta=fields, language=unit.language)
                body = sample_text(unit)
        for place in places:
            self._index.setdefault(place, set()).add(ident)
        description = describe_unit(measured, unit.language or self.language)
        incoming = IncomingUnit(ident, ident, body, description=description)
        meta = raw_json(unit.meta)
        self.units[ident] = KnownUnit(incoming, meta, names, ends)

    def _find_dimensions(self, archive: Archive, run: Recorded) -> list[str]:
        """Return the dimensions of a run: as its protocol, its units or its verdicts have them."""
        measure = run.kind.measure
        assert isinstance(measure, Scoring)
        found = dict.fromkeys([] if run.imported else run.judging.dimensions)
        found |= dict.fromkeys(name for known in self.units.values() for name in known.ends)
        if not found:
            for _, stored in archive.judgments(run.scope):
                scored = measure.judgment(run.judgment(stored))
                found |= dict.fromkeys(scored.scores if scored else ())
        return list(found)

    def read(self, file: JudgmentFile) -> Iterator[TidyRow]:
        """Yield the labels of a file as votes or scores; raises DataError. Those of units that the
        run does not have are counted and left out."""
        verdicts = ("winner",) if self.has_votes else ("dimension", "score")
        for row in file.table(("unit", "question", "model", "prompt_variant", "judge", *verdicts)):
            ident = self._find(row.value, row.where)
            if ident is None:
                self.left_out += 1
                continue
            annotator = text_of(row.value.get("judge"))
            about = {
                "unit": ident,
                "judge": annotator if "/" in annotator else f"{HUMAN}/{annotator}".rstrip("/"),
            }
            if self.has_votes:
                yield self._vote(about, row.value, row.where)
            else:
                yield from self._scores(about, row.value, row.where)

    def _find(self, row: Mapping[str, Any], where: str) -> str | None:
        """Return the one unit that a row names; None where the run has none. Raises DataError where
        it names several."""
        cells = [(name, text_of(row.get(name))) for name in _JOINED]
        named = [(name, cell) for name, cell in cells if cell]
        shown = {text_of(row.get(name)) for name in ("first", "second")} - {""}
        if not named and not shown:
            raise missing("unit", row, where, LABELS)
        found = set(self.units) if not named else set[str]()
        for number, (name, cell) in enumerate(named):
            value = question_hash(cell) if name == "question" else cell
            fitting = self._index.get((name, value), set())
            found = found & fitting if number else fitting
            if len(found) < 2:
                break
        if len(found) > 1:
            found = {ident for ident in found if shown and shown <= set(self.units[ident].names)}
            if len(found) != 1:
                raise self._several(row, where)
        return next(iter(found), None)

    def _several(self, row: Mapping[str, Any], where: str) -> DataError:
        names = [name for name in (*_JOINED, "first", "second") if text_of(row.get(name))]
        cells = few([f"{name}={row[name]}" for name in names], _NAMED)
        columns = Code("first, second" if self.has_votes else "model, prompt_variant, unit")
        message = Sentence("runs.several_units", run=self.run, cells=cells, columns=columns)
        return DataError(message, where=where)

    def none_known(self) -> DataError:
        """Return the error for labels of which none is about a unit of the run."""
        ids = few(list(self.units), _NAMED)
        return DataError(Sentence("runs.no_labelled_unit", run=self.run, ids=ids))

    def _vote(self, about: dict[str, Any], row: Mapping[str, Any], where: str) -> TidyRow:
        """Return a label as a vote on its pair, in the order in which the candidates were shown,
        where the row says who stood first; raises DataError for another candidate."""
        first, second = self.units[about["unit"]].names
        for name in ("first", "second"):
            shown = text_of(row.get(name))
            if shown and shown not in (first, second):
                raise DataError(
                    Sentence(
                        "runs.no_candidate",
                        column=name,
                        name=shown,
                        unit=about["unit"],
                        first=first,
                        second=second,
                    ),
                    where=where,
                )
        if "winner" not in row and "preference" not in row:
            raise missing("winner", row, where, LABELS)
        shown_first = text_of(row.get("first"))
        is_turned = shown_first == second
        if not shown_first and text_of(row.get("unit")).endswith(
            named_pair_id("", (first, second))
        ):
            is_turned = second < first  # the first that its id names is meant
        if is_turned:
            first, second = second, first
        verdict = text_of(row.get("winner")) or text_of(row.get("preference"))
        vote = about | {
            "first": first,
            "second": second,
            "winner": _winner(verdict, first, second),
            "explanation": _reason(row),
        }
        return TidyRow("votes", vote, where, "" if shown_first else ORDER_UNKNOWN)

    def _scores(
        self, about: dict[str, Any], row: Mapping[str, Any], where: str
    ) -> Iterator[TidyRow]:
        """Yield the scores of a row: of the column `score`, or of a column per dimension."""
        ends = {**self.ends, **self.units[about["unit"]].ends}
        columns = {fold(name): name for name in row}
        scored = {
            name: row[columns[fold(name)]] for name in self._dimensions if fold(name) in columns
        }
        if "score" in row and "score" not in scored:
            dimension = text_of(row.get("dimension"))
            if not dimension and len(self._dimensions) == 1:
                dimension = self._dimensions[0]
            scored = {dimension or "score": row["score"]}
        if not scored:
            raise missing(self._dimensions[0] if self._dimensions else "score", row, where, LABELS)
        for name, score in scored.items():
            value = on_scale(score, *ends[name], "the score") if name in ends else score
            label = {"dimension": name, "score": value, "rationale": _reason(row)}
            yield TidyRow("scores", about | label, where)


def _reason(row: Mapping[str, Any]) -> str:
    return text_of(row.get("explanation")) or text_of(row.get("comment"))


def _winner(verdict: str, first: str, second: str) -> str:
    """Return what a label says in the words of votes; as it is where nobody can tell."""
    if not verdict or verdict in (first, second):
        return verdict
    if side := _SIDES.get(verdict.removesuffix(".0")):
        return side
    reading = read_cell(verdict, tuple(_WORDS))
    return verdict if reading is None else _WORDS[reading]
