"""What is counted while judgments come in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from evenhand.judgment import Judgment


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

    def count(self, judge: int, made: list[Judgment]) -> None:
        """Note the judgments of one judge on one unit."""
        self.repeats[judge] = max(self.repeats[judge], len(made))
        for one in made:
            if one.reason is None:
                self.verdicts += 1
            else:
                self.failures[one.reason] += 1
                self.details.setdefault(one.reason, one.detail)
