"""What is counted while judgments come in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from pydantic_core import from_json

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.pairwise.verdict import PairVerdict


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of one import. Every judgment is a verdict or a failure; nothing is pending."""

    rows: int = 0
    units: int = 0
    verdicts: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    details: dict[str, str] = field(default_factory=dict[str, str])
    """What the first failure of each reason says."""
    repeats: list[int] = field(default_factory=list[int])
    """Of each judge, the most judgments of one unit."""
    settled: Counter[str] = field(default_factory=Counter[str])
    candidates: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])
    """The criteria of votes, or the dimensions of scores."""
    missing: Counter[str] = field(default_factory=Counter[str])
    """By dimension, the scores that are missing from judgments that have others."""
    quotes: int = 0
    """What judges quoted from the answers; `quotes_found` stand there."""
    quotes_found: int = 0
    differs: Counter[str] = field(default_factory=Counter[str])
    """By column of meta, the rows that say otherwise than the first one of their unit."""

    def count(self, judge: int, judgments: list[Judgment]) -> None:
        """Note the judgments of one judge on one unit."""
        self.repeats[judge] = max(self.repeats[judge], len(judgments))
        for judgment in judgments:
            if judgment.reason is None:
                self.verdicts += 1
            else:
                self.failures[judgment.reason] += 1
                self.details.setdefault(judgment.reason, judgment.detail)
            if isinstance(judgment, Verdict) and isinstance(judgment.value, PairVerdict):
                self.settled[judgment.value.settled] += 1

    def compare(self, meta: str, first: str, key: Collection[str]) -> None:
        """Note where the meta of a row, as JSON, is not that of the first row of its unit, which
        the unit keeps. A row that leaves a column out says nothing of it."""
        if meta == first:
            return
        fields = from_json(first)
        for name, value in from_json(meta).items():
            if name not in key and fields.get(name) != value:
                self.differs[name] += 1
