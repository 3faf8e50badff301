"""Counts that are kept while judgments come in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.data.layouts.tidy import begin
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.pairwise.verdict import PairVerdict

VALUES_COUNTED, VALUE_SHOWN = 1000, 30
"""Of values that cannot be read: how many different ones are counted, and how long they may be."""


@dataclass(slots=True, kw_only=True)
class ImportTally:
    """Counts of one import. Every judgment is a verdict or a failure; nothing is pending."""

    rows: int = 0
    units: int = 0
    verdicts: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    details: dict[str, str] = field(default_factory=dict[str, str])
    """What the first failure of each reason says."""
    varied: set[str] = field(default_factory=set[str])
    """Reasons of which the failures say different things."""
    unreadable: Counter[str] = field(default_factory=Counter[str])
    """What stands where a winner or a score belongs and is none, the first `VALUES_COUNTED`."""
    judges: dict[str, int] = field(default_factory=dict[str, int])
    """By name of a judge its number."""
    repeats: Counter[int] = field(default_factory=Counter[int])
    """By number of a judge, the most judgments of one unit."""
    settled: Counter[str] = field(default_factory=Counter[str])
    candidates: set[str] = field(default_factory=set[str])
    names: dict[str, None] = field(default_factory=dict[str, None])
    """The criteria of votes, or the dimensions of scores."""
    missing: Counter[str] = field(default_factory=Counter[str])
    """By dimension, the scores that are missing from judgments that have others."""
    quotes: int = 0
    """What judges quoted from the answers; `quotes_found` stand there."""
    quotes_found: int = 0
    differs: Counter[str] = field(default_factory=Counter[str])
    """By column of meta, the rows that say otherwise than the first one of their unit."""

    def judge(self, name: str) -> int:
        """Return the number of a judge."""
        return self.judges.setdefault(name, len(self.judges))

    def count(self, judge: int, judgments: Sequence[Judgment]) -> None:
        """Count the judgments of one judge on one unit."""
        self.repeats[judge] = max(self.repeats[judge], len(judgments))
        for judgment in judgments:
            if judgment.reason is None:
                self.verdicts += 1
            else:
                self.failures[judgment.reason] += 1
                if self.details.setdefault(judgment.reason, judgment.detail) != judgment.detail:
                    self.varied.add(judgment.reason)
            if isinstance(judgment, Verdict) and isinstance(judgment.value, PairVerdict):
                self.settled[judgment.value.settled] += 1

    def count_unreadable(self, cell: str) -> None:
        """Count a value that nobody can read; a file may hold any number of different ones."""
        value = begin(cell, VALUE_SHOWN)
        if value and (value in self.unreadable or len(self.unreadable) < VALUES_COUNTED):
            self.unreadable[value] += 1

    def compare(
        self, meta: Mapping[str, Any], first: Mapping[str, Any], key: Collection[str]
    ) -> None:
        """Count where the meta of a row is not that of the first row of its unit, which the unit
        keeps. A row that leaves a column out says nothing of it."""
        for name, value in meta.items():
            if name not in key and first.get(name) != value:
                self.differs[name] += 1
