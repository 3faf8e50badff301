"""Judged pairs read back from the store: figures, fronts and the verdict table, of every kind whose
verdicts are votes between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from evenhand import jsontext
from evenhand.engine.run import JudgeGroup, group_names
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.kind import Kind, Voting
from evenhand.observation import QUESTIONS, Rule, VotedUnit
from evenhand.runs.recorded import Recorded
from evenhand.stats.pairwise import (
    Judged,
    PairFigures,
    pair_figures,
    panel_marks,
    panel_winner,
    under,
)
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope

_NO_SIZES: Mapping[str, int] = MappingProxyType({})


class JudgedPair(NamedTuple):
    """A pair with its id, its judgments, and what they say as votes."""

    id: str
    judgments: Sequence[Judgment]
    votes: Judged


def _voting(kind: Kind) -> Voting:
    measure = kind.measure
    assert isinstance(measure, Voting), f"the kind {kind.name} has no votes"
    return measure


def judged_pairs(
    kind: Kind,
    store: Archive,
    scope: Scope,
    judge_groups: Sequence[JudgeGroup],
    rule: Rule,
    unit: str | None = None,
    sizes: Mapping[str, int] = _NO_SIZES,
) -> Iterator[JudgedPair]:
    """Yield every pair of a scope with all its judgments, its votes under the rule for conflicts;
    one of them, if it is named. `sizes` are those of the topics, for whoever needs them."""
    voting, names = _voting(kind), group_names(judge_groups)
    for _, group in groupby(store.judgments(scope, unit), key=lambda row: row[0].no):
        units, texts = zip(*group, strict=True)
        pair = voting.unit(units[0].body)
        judgments = [kind.read_judgment(stored.text) for stored in texts]
        votes = [
            (names[stored.judge], under(rule, voting.judgment(judgment)))
            for stored, judgment in zip(texts, judgments, strict=True)
        ]
        size = sizes.get(pair.topic, 2)
        about = pair_question(pair)
        judged = Judged(pair.topic, size, pair.candidates, votes, about)
        yield JudgedPair(units[0].id, judgments, judged)


def pair_question(unit: VotedUnit) -> str:
    """Return the question of a pair: the one that its meta names, else its row of the data."""
    fields = unit.fields
    value = next((fields[name] for name in QUESTIONS if name in fields), None) if fields else None
    return unit.topic if value is None else jsontext.as_text(value)


def figures_of_pairs(
    kind: Kind,
    store: Archive,
    scope: Scope,
    judge_groups: Sequence[JudgeGroup],
    rule: Rule = "uncertain",
) -> PairFigures:
    """Wins, consistency and fronts of a scope of pairs, under the rule for conflicts."""
    sizes = row_sizes(kind, store, scope.run)
    pairs = judged_pairs(kind, store, scope, judge_groups, rule, sizes=sizes)
    return pair_figures((pair.votes for pair in pairs), by_judge=len(judge_groups) > 1)


def row_sizes(kind: Kind, store: Archive, run: str) -> dict[str, int]:
    """Return the number of candidates of each topic of a run of pairs that has more than two,
    judged or not."""
    voting, candidates = _voting(kind), CandidatesOfTopics()
    for stored in store.units(Scope(run)):
        candidates.add(voting.unit(stored.body))
    return candidates.sizes


class CandidatesOfTopics:
    """The candidates that are compared on each topic."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, str] | set[str]] = {}
        """Most topics have two, and there may be millions of these."""

    def add(self, unit: VotedUnit) -> None:
        """Take a pair into account; a candidate beside itself is none."""
        first, second = unit.candidates
        if first == second:
            return
        names = self._names.setdefault(unit.topic, unit.candidates)
        if first in names and second in names:
            return
        if isinstance(names, tuple):
            names = self._names[unit.topic] = set(names)
        names.update(unit.candidates)

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of candidates of each topic that has more than two."""
        return {topic: len(names) for topic, names in self._names.items() if len(names) > 2}


def verdict_lines(store: Archive, recorded: Recorded) -> Iterator[str]:
    """Yield the verdict table, one line per pair: what the majority says where several judged
    it. Before a line whose candidates are others than those above it, they are named."""
    table, criteria = recorded.kind.table, recorded.criteria
    assert table is not None, f"the kind {recorded.kind_name} has no verdict table"
    yield table.header(criteria)
    groups, scope, named = recorded.judge_groups, recorded.scope, ""
    for pair in judged_pairs(recorded.kind, store, scope, groups, "uncertain"):
        verdicts = [judgment for judgment in pair.judgments if isinstance(judgment, Verdict)]
        if verdicts:
            sides = table.sides(*verdicts[0].output["candidates"])
            winner, marks = panel_winner(pair.votes), panel_marks(pair.votes, criteria)
            row = table.line(pair.id, winner, marks, _panel_notes(pair, winner))
            yield row if sides == named else f"{sides}\n{row}"
            named = sides


def _panel_notes(pair: JudgedPair, winner: str) -> str:
    """Return the notes of the first verdict that says what the panel says; where that is uncertain
    because verdicts differ, those of each side, after what it says."""
    sides: dict[str, str] = {}
    for judgment, (_, vote) in zip(pair.judgments, pair.votes.judgments, strict=True):
        if isinstance(judgment, Verdict) and vote.winner is not None:
            sides.setdefault(vote.winner, str(judgment.output.get("notes", "")))
    if winner != "uncertain" or len(sides) == 1:
        return sides.get(winner, "")
    opposed = [side for side in ("A", "B") if side in sides]
    shown = opposed if len(opposed) == 2 else sides
    return " ".join(f"{side}: {sides[side]}" for side in shown if sides[side])
