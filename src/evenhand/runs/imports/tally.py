"""What is counted while judgments come in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from pydantic_core import from_json

from evenhand.data.foreign.rows import begin
from evenhand.errors import DataError
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.pairwise.verdict import PairVerdict

NUMBER = re.compile(r"-?[0-9]{1,9}")
VALUES_COUNTED, VALUE_SHOWN = 1000, 30
"""Of values that cannot be read: how many different ones are counted, and how long they may be."""


@dataclass(slots=True, kw_only=True)
class Tally:
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
    repeats: list[int] = field(default_factory=list[int])
    """Of each judge, the most judgments of one unit."""
    spelled: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """What was read as it is usually meant: how it is spelled, and as what it was read."""
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

    def count(self, judge: int, judgments: list[Judgment], times: int = 1) -> None:
        """Note the judgments of one judge on one unit, or on so many that come to the same."""
        self.repeats[judge] = max(self.repeats[judge], len(judgments))
        for judgment in judgments:
            if judgment.reason is None:
                self.verdicts += times
            else:
                self.failures[judgment.reason] += times
                if self.details.setdefault(judgment.reason, judgment.detail) != judgment.detail:
                    self.varied.add(judgment.reason)
            if isinstance(judgment, Verdict) and isinstance(judgment.value, PairVerdict):
                self.settled[judgment.value.settled] += times

    def note_unreadable(self, value: str) -> None:
        """Count a value that nobody can read; a file may hold any number of different ones."""
        value = begin(value, VALUE_SHOWN)
        if value and (value in self.unreadable or len(self.unreadable) < VALUES_COUNTED):
            self.unreadable[value] += 1

    def require_one_coding(self) -> None:
        """Refuse winners that are numbers of which some are none of 1, 2 and 3: 1 is the second
        where counting begins with 0, and the better of two where it begins with -1."""
        usual = {spelled for spelled, _ in self.spelled if NUMBER.fullmatch(spelled)}
        others = {value for value in self.unreadable if NUMBER.fullmatch(value)}
        if usual and others:
            numbers = sorted(usual | others, key=int)
            raise DataError(
                f"winners are numbers that may mean several things: {', '.join(numbers)}",
                advice="Say what they mean, for instance: --value winner:0=first,1=second,2=tie;"
                " or which of them stands for none: --missing NUMBER",
            )

    def compare(self, meta: str, first: str, key: Collection[str], rows: int = 1) -> None:
        """Note where the meta of rows, as JSON, is not that of the first row of their unit, which
        the unit keeps. A row that leaves a column out says nothing of it."""
        if meta == first:
            return
        fields = from_json(first)
        for name, value in from_json(meta).items():
            if name not in key and fields.get(name) != value:
                self.differs[name] += rows
