"""An open run ready to be judged by a worker, from what the store says of it: no file of its suite
is needed. Keys are the worker's own, under the rules that hold for every suite: an address that the
store brings has not come from where the key stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import EvenhandError, UsageError, quoted
from evenhand.folders import is_within
from evenhand.jsontext import canonical
from evenhand.judges import split_name
from evenhand.judges.replay import UnavailableJudge
from evenhand.judges.trust import Trust
from evenhand.kinds.kind import Judging
from evenhand.ledger.ports import IncomingUnit
from evenhand.manifest import JudgeRecord
from evenhand.runs.plan import Plan, Seat
from evenhand.runs.prepare import open_seat
from evenhand.runs.recorded import Recorded, seated
from evenhand.runs.terms import Terms
from evenhand.suite import Suite
from evenhand.suite_file import JudgeSpec, SuiteFile

STORE = "the store"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where a worker is: its folder, its environment, what the user says about keys there."""

    folder: Path
    environment: Mapping[str, str]
    trust: Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPlan:
    """A plan of an open run, the groups that can judge here, and by the names of the other judges
    why they cannot."""

    plan: Plan
    groups: frozenset[int]
    absent: Mapping[str, str]

    @property
    def is_whole(self) -> bool:
        """Whether all of the run can be judged here."""
        return not self.absent


def open_plan(run: Recorded, terms: Terms, here: Surroundings) -> OpenPlan:
    """The plan of an open run; raises UsageError and StoreError where the store says what cannot
    be read."""
    suite = _suite(run, terms, here.folder)
    absent: dict[str, str] = {}
    seats: list[Seat] = []
    for spec, record in zip(suite.file.judges, run.judges, strict=True):
        try:
            seats.append(_seat(suite, spec, record, here))
        except EvenhandError as error:
            absent[record.name] = str(error)
            judge = UnavailableJudge(record.name, record.identity, record.style, record.caveat)
            seats.append(Seat(spec=spec, judge=judge, price=None))
    plan = Plan(
        suite=suite,
        protocol=run.protocol,
        settings=run.manifest.judging.settings,
        rubric=run.rubric,
        seats=tuple(seats),
        units=_no_units,
        recorded=run.manifest,
    )
    groups = frozenset(
        group.index
        for group, members in seated(run.judge_groups, seats)
        if not any(isinstance(seat.judge, UnavailableJudge) for seat in members)
    )
    return OpenPlan(plan=plan, groups=groups, absent=absent)


def _suite(run: Recorded, terms: Terms, folder: Path) -> Suite:
    file = SuiteFile(
        name=run.row.name,
        protocol=run.manifest.protocol or run.kind_name,
        language=run.manifest.judging.language,
        data=[STORE],
        seed=run.manifest.judging.seed,
        judges=list(terms.judges),
        limits=terms.limits,
    )
    addresses = {spec.base_url: STORE for spec in file.judges if spec.base_url}
    return Suite(file, folder, addresses=addresses)


def _seat(suite: Suite, spec: JudgeSpec, record: JudgeRecord, here: Surroundings) -> Seat:
    """A judge of the run as it is here; raises an error that says why it cannot judge."""
    provider, model = split_name(spec.model)
    if provider.is_file(model) and not is_within(here.folder / model, here.folder):
        raise UsageError(f"{quoted(model)} leads out of the folder of this worker")
    seat = open_seat(suite, spec, here.environment, lambda line: None, here.trust)
    if canonical(dict(seat.judge.identity)) != canonical(dict(record.identity)):
        raise UsageError(_difference(seat, record))
    if seat.judge.unavailable_reason is not None:
        raise seat.judge.unavailable_reason
    seat.judge.load()
    return seat


def _difference(seat: Seat, record: JudgeRecord) -> str:
    """What a judge is here, and what it is in the run."""
    mine, theirs = seat.judge.identity, record.identity
    names = sorted(
        name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)
    )
    parts = [
        f"{name} is {quoted(mine.get(name))} here, and {quoted(theirs.get(name))} in the run"
        for name in names
    ]
    return "; ".join(parts)


def _no_units(judging: Judging) -> Iterator[IncomingUnit]:
    raise AssertionError("the units of an open run are in the store")
