"""A run as the store remembers it, which needs no file of the suite any more; and the run that a
command line names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evenhand.engine.run import JudgeGroup, group_names
from evenhand.errors import StoreError, UsageError
from evenhand.files.protocols import find_protocol, judging_of
from evenhand.judgment import Judgment
from evenhand.kinds import ANSWERS, KINDS, kind_of_import, load_protocol
from evenhand.kinds.kind import Kind, ReadyKind, Scoring, Voting
from evenhand.kinds.protocol import Protocol, ProtocolError
from evenhand.manifest import JudgeRecord, JudgingRecord, Manifest, plain
from evenhand.observation import Rule
from evenhand.runs.rules import RuleChange, changed_rules, rules_of
from evenhand.store.archive import Archive
from evenhand.store.ports import Counts, RunRow, Scope, StoredJudgment
from evenhand.text import visible
from evenhand.words import Code, Sentence

LATEST = "latest"
LABELS = "labels"
"""The kind of an import that labels the pairs of another run."""
_BEFORE = re.compile(r"(.+)~(\d+)")
_LISTED = 5
"""So many runs are listed where a name finds none, or several."""


class Selection(Struct, frozen=True, kw_only=True):
    """The units of a run that a command is about, where it is not about all of them."""

    where: Mapping[str, tuple[str, ...]]
    """By field, the values of which a unit has one."""
    without: Mapping[str, tuple[str, ...]] = {}
    """By field, the values of which a unit has none."""
    positions: tuple[int, ...]
    of: int
    """How many units the run has."""

    @property
    def condition(self) -> str:
        """Return the condition that units were selected by, on a line."""
        parts = [f"{name} = {' or '.join(values)}" for name, values in self.where.items()]
        parts += [f"{name} != {' or '.join(values)}" for name, values in self.without.items()]
        return ", ".join(parts)

    @property
    def text(self) -> Sentence:
        """Return a sentence with the condition and the number of units that it selects."""
        counts = {"n": len(self.positions), "of": self.of}
        return Sentence("notes.selected", condition=self.condition, **counts)

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        where, without = (
            {name: list(values) for name, values in conditions.items()}
            for conditions in (self.where, self.without)
        )
        return {
            "where": where,
            "without": without,
            "units": len(self.positions),
            "of": self.of,
        }


class Recorded:
    """A run as the store remembers it, or those of its units that were selected."""

    def __init__(self, row: RunRow, manifest: Manifest, selection: Selection | None = None) -> None:
        self.row, self.manifest, self.selection = row, manifest, selection

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def full_marks(self) -> int | None:
        """Return the highest total of its verdicts; None where they have no total of their own."""
        measure = self.kind.measure
        return measure.full_marks if isinstance(measure, Scoring) else None

    @property
    def scope(self) -> Scope:
        """Return the scope of all units of the run, or of those that were selected."""
        positions = None if self.selection is None else self.selection.positions
        return Scope(self.row.id, positions=positions)

    @property
    def judges(self) -> Sequence[JudgeRecord]:
        return self.manifest.judging.judges

    @property
    def imported(self) -> bool:
        """Return True if its judgments were made elsewhere: then it has no protocol and no
        calls."""
        return self.manifest.judging.source is not None

    @property
    def is_judged_here(self) -> bool:
        """Return True unless the run was imported, or copied from another store."""
        return not self.imported and not self.manifest.copied

    @property
    def kind_name(self) -> str:
        """Return the name of the kind of its judgments."""
        source = self.manifest.judging.source
        if source is not None:
            return kind_of_import(source.shape).name
        return self.protocol.kind

    @cached_property
    def protocol(self) -> Protocol:
        try:
            return load_protocol(self.manifest.protocol, self.manifest.judging.texts)
        except ProtocolError as error:
            what = Sentence(
                "runs.protocol_unreadable", run=self.row.id, file=error.file, reason=error.args[0]
            )
            raise StoreError(what) from None

    @property
    def kind(self) -> Kind:
        return KINDS[self.kind_name]

    @cached_property
    def judging(self) -> ReadyKind:
        """Return the kind as it was made ready to judge the units."""
        return judging_of(self.protocol, self.manifest.judging)

    @property
    def has_votes(self) -> bool:
        """Return True if its verdicts are votes between two; else they are scores."""
        return isinstance(self.kind.measure, Voting)

    @property
    def rule(self) -> Rule:
        """Return the rule for orders of a pair that contradict each other, where nobody names
        another."""
        source = self.manifest.judging.source
        return source.on_conflict if source else "uncertain"

    @property
    def faults(self) -> frozenset[str]:
        """Return the dimensions of its rubric that figures turn round: on which more is worse."""
        measure = self.kind.measure
        return measure.faults(self.rubric) if isinstance(measure, Scoring) else frozenset()

    def tag_names(self, language: str = "en") -> Mapping[str, str]:
        """Return the failure tags that its verdicts may have, each with its name: in a language
        where the protocol has it there, else in that of the run."""
        measure = self.kind.measure
        if not isinstance(measure, Scoring):
            return {}
        protocol = find_protocol(self.kind_name) if self.imported else self.protocol
        return measure.tags(protocol, (language, self.manifest.judging.language, "en"))

    def judgment(self, stored: StoredJudgment) -> Judgment:
        """Return a judgment of the run as it was kept."""
        return self.kind.read_judgment(stored.text)

    @cached_property
    def rubric(self) -> Any:
        """Return the rubric of the suite; None where the units bring their own."""
        return self.manifest.judging.rubric

    @cached_property
    def rule_changes(self) -> list[RuleChange]:
        """Return the rules it was settled by that are not those its judges were told."""
        if self.imported:
            return []
        used = KINDS[self.kind_name].resettle_settings(self.protocol, self.protocol)
        return changed_rules(used, rules_of(self.protocol, self.manifest.judging))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the run, as they are printed."""
        source = self.manifest.judging.source
        if source is not None:
            value = plain(source)
            chosen = {name: value[name] for name in ("on_conflict", "key", "map")}
            return chosen | {"source": source.content}
        return self.manifest.judging.settings

    @property
    def criteria(self) -> list[str]:
        """Return the criteria by which pairs were compared."""
        if self.manifest.imported is not None:
            return list(self.manifest.imported.criteria)
        return list(self.judging.dimensions)

    def counts(self, archive: Archive, scope: Scope | None = None) -> Counts:
        """Return the counts of the run, or of a part of it. Nobody knows what was planned of
        judgments made elsewhere, so what came in is all there is."""
        counts = archive.counts(scope or self.scope, self.judgments_per_unit)
        if not self.imported:
            return counts
        return replace(counts, planned=counts.verdicts + sum(counts.failures.values()))

    @cached_property
    def judge_groups(self) -> list[JudgeGroup]:
        return judge_groups(self.manifest.judging)

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the judge groups."""
        return group_names(self.judge_groups)

    @property
    def judgments_per_unit(self) -> int:
        return sum(group.repeats for group in self.judge_groups)


def judge_groups(record: JudgingRecord) -> list[JudgeGroup]:
    """Return the groups that judge each unit: every judge on its own, or all of them as one
    relay."""
    judges = record.judges
    groups: list[JudgeGroup] = []
    turn = 0
    for members in [list(judges)] if record.is_relay else [[judge] for judge in judges]:
        group = JudgeGroup(
            index=len(groups),
            names=tuple(judge.name for judge in members),
            styles=tuple(judge.style for judge in members),
            caveat="\n".join(sorted({judge.caveat for judge in members} - {""})),
            repeats=members[0].repeats,
            turn=turn,
        )
        groups.append(group)
        turn += group.repeats
    return groups


T = TypeVar("T")


def split_by_group(
    judge_groups: Sequence[JudgeGroup], judges: Sequence[T]
) -> Iterator[tuple[JudgeGroup, Sequence[T]]]:
    """Yield each group with its judges."""
    start = 0
    for group in judge_groups:
        yield group, judges[start : start + len(group.names)]
        start += len(group.names)


def recorded_run(archive: Archive, row: RunRow) -> Recorded:
    """Return a run of the list of runs with its manifest."""
    return Recorded(row, archive.manifest(row.id))


def find_run(archive: Archive, name: str) -> Recorded:
    """Return the run that a command line names, see `named_run`; raise UsageError."""

    def is_judged_here(row: RunRow) -> bool:
        run = recorded_run(archive, row)
        return run.is_judged_here and run.kind_name != ANSWERS

    return recorded_run(archive, named_run(archive.runs(), name, is_judged_here))


def named_run(
    runs: Sequence[RunRow], name: str, is_judged_here: Callable[[RunRow], bool]
) -> RunRow:
    """Return the run that a name stands for.

    A name is an id, a unique prefix of one, a suite's name (its last run) or `latest` (the run
    judged last); `~1` behind it is the run of the same name before it. `runs` begin with the one
    started last. Imported and copied runs, and those that only made answers, are never `latest`,
    and a suite's name means one of them only where no run of that name was judged here. Raises
    UsageError.
    """
    if not runs:
        raise UsageError(Sentence("runs.no_run"))
    rows = _matching(runs, name, is_judged_here)
    if not rows and (match := _BEFORE.fullmatch(name)):
        name = match[1]
        rows = _matching(runs, name, is_judged_here)
        if len(rows) == 1:
            same = [run for run in runs if run.name == rows[0].name]
            if is_judged_here(rows[0]):
                same = list(filter(is_judged_here, same))
            return _before(same, rows[0], int(match[2]))
    if len(rows) == 1:
        return rows[0]
    if name == LATEST:
        raise UsageError(Sentence("runs.no_latest"), advice=_there_are(runs))
    key = "several_runs" if rows else "unknown_run"
    raise UsageError(Sentence(f"runs.{key}", name=name), advice=_there_are(rows or runs))


def _matching(
    runs: Sequence[RunRow], name: str, is_judged_here: Callable[[RunRow], bool]
) -> Sequence[RunRow]:
    if name == LATEST:
        return list(islice(filter(is_judged_here, runs), 1))
    exact = [row for row in runs if row.id == name]
    if not exact and (named := [row for row in runs if row.name == name]):
        exact = [next(filter(is_judged_here, named), named[0])]
    return exact or [row for row in runs if row.id.startswith(name)]


def _before(runs: Sequence[RunRow], row: RunRow, steps: int) -> RunRow:
    same = [run for run in runs if run.starts <= row.starts]
    if steps < len(same):
        return same[steps]
    what = Sentence("runs.no_run_before", steps=steps, name=row.name, run=row.id)
    raise UsageError(what, advice=_there_are(same))


def _there_are(rows: Sequence[RunRow]) -> Sentence:
    """Return the advice that lists the runs that are there."""
    listed = ", ".join(f"{row.id} ({row.name})" for row in rows[:_LISTED])
    key = "runs.there_are_more" if len(rows) > _LISTED else "runs.there_are"
    return Sentence(key, runs=Code(visible(listed)), n=len(rows) - _LISTED)
