"""The units that changed most, with what a person needs to see why: the question, both outputs, the
scores, and the judge's reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any, NamedTuple

from evenhand import jsontext
from evenhand.errors import UsageError
from evenhand.kinds.blocks import ShownUnit
from evenhand.observation import ScoredUnit
from evenhand.report.html.units import UnitOutcome, unit_outcome
from evenhand.report.model import ChangedPair, ChangedSide, ChangedUnits, JudgeReason
from evenhand.results.units import judge_name, letter_texts, question_of
from evenhand.runs.recorded import Recorded
from evenhand.stats.compare import Change, Changes
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope
from evenhand.words import Sentence


class Sides(NamedTuple):
    """The sources of the two answers of a pair: the runs, and the name of the baseline."""

    store: Archive
    variant: Recorded
    baseline: Recorded
    name: str


def changed_units(sides: Sides, changes: Changes) -> ChangedUnits:
    """Return the pairs that changed most, read from the store."""
    return ChangedUnits(
        dimension=changes.dimension,
        n=changes.n,
        worse=changes.worse,
        better=changes.better,
        worst=tuple(changed_pair(sides, change) for change in changes.worst),
        best=tuple(changed_pair(sides, change) for change in changes.best),
    )


class _Read(NamedTuple):
    """A unit as it is shown, with who judged it and the means of its scores."""

    shown: ShownUnit
    judges: Sequence[str]
    outcome: UnitOutcome
    failures: tuple[str, ...]

    @property
    def winner(self) -> str:
        """Return the candidate of a pair that won, or the code of what came out; empty without
        either."""
        code, names = self.outcome.winner, dict(zip("AB", self.outcome.candidates, strict=False))
        return "" if code is None else names.get(code, code)


def changed_pair(sides: Sides, change: Change) -> ChangedPair:
    """Return a question with both of its answers, read from the store."""
    store = sides.store
    here = _read(store, sides.variant, change.units[0])
    is_same = sides.baseline is sides.variant and change.units == change.baseline_units
    there = here if is_same else _read(store, sides.baseline, change.baseline_units[0])
    ours, theirs = _fields(here), _fields(there)
    # Of one pair of candidates each side has its own text, and the reasons are those of both.
    names = (change.variant, sides.name) if is_same else ("", "")
    return ChangedPair(
        question=question_of(here.shown.unit),
        fields={name: ours[name] for name in ours if theirs.get(name) == ours[name]},
        difference=_none_if_nan(change.difference),
        variant=ChangedSide(
            name=change.variant,
            run=sides.variant.id,
            unit=change.units[0],
            units=len(change.units),
            value=_none_if_nan(change.value),
            **_side_values(here, names[0]),
        ),
        baseline=ChangedSide(
            name=sides.name,
            run=sides.baseline.id,
            unit=change.baseline_units[0],
            units=len(change.baseline_units),
            value=_none_if_nan(change.baseline_value),
            **_side_values(there, names[1]) | ({"reasons": ()} if is_same else {}),
        ),
    )


def _side_values(read: _Read, candidate: str) -> dict[str, Any]:
    """Return what came out of a unit, and why."""
    return {
        "winner": read.winner,
        "failures": read.failures,
        "output": _output(read.shown, candidate),
        "scores": read.outcome.scores,
        "reasons": tuple(_reasons(read)),
    }


def _none_if_nan(value: float) -> float | None:
    return None if isnan(value) else value


def _read(store: Archive, run: Recorded, name: str) -> _Read:
    unit = next(store.units(Scope(run.id), name), None)
    if unit is None:
        raise UsageError(Sentence("compare.no_unit", run=run.id, unit=name))
    stored = [judgment for _, judgment in store.judgments(Scope(run.id), name)]
    judgments = [run.judgment(judgment) for judgment in stored]
    judges = [judge_name(run, judgment) for judgment in stored]
    shown = run.kind.present(run.kind.load(unit.body), judgments)
    judged = list(zip(judges, judgments, strict=True))
    reasons = [str(judgment.reason) for judgment in judgments if judgment.reason]
    outcome = unit_outcome(run.kind, shown.measured, judged)
    return _Read(shown, judges, outcome, tuple(dict.fromkeys(reasons)))


def _fields(read: _Read) -> dict[str, str]:
    """Return the fields of a unit, as text."""
    fields = read.shown.measured.fields.items()
    return {name: jsontext.as_text(value) for name, value in fields if value is not None}


def _output(shown: ShownUnit, candidate: str) -> str:
    """Return the text that was answered; of a pair, that of this candidate, or both if it is
    empty."""
    texts = letter_texts(shown.unit)
    outputs = {short: text for short, text in texts.items() if short not in ("", "Q")}
    measured = shown.measured
    if isinstance(measured, ScoredUnit):
        return next(iter(outputs.values()), "")
    sides = dict(zip(measured.candidates, "AB", strict=True))
    side = sides.get(candidate)
    return "\n\n".join(text for short, text in outputs.items() if not candidate or short == side)


def _reasons(read: _Read) -> Iterator[JudgeReason]:
    """Yield what judges say of a unit, with the names of candidates where they have letters."""
    names = dict(zip("AB", read.outcome.candidates, strict=False))
    names |= {f"{letter}+": f"{name} +" for letter, name in names.items()}
    for judge, judgment in zip(read.judges, read.shown.judgments, strict=True):
        for reason in judgment.reasons:
            score = names.get(reason.score, reason.score)
            yield JudgeReason(judge, reason.about, score, reason.text)
