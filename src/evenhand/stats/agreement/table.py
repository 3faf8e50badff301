"""How far judges agree, as a table of coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evenhand.stats.agreement.closer import JudgeContrast
from evenhand.stats.agreement.coefficient import Coefficient
from evenhand.stats.agreement.position import PositionLean
from evenhand.stats.agreement.ppi import Corrected


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How often each value of one side (rows) met each value of the other (columns)."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def json(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "counts": [list(row) for row in self.counts]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The coefficients of one dimension, of all judges or of some, of all units or a variant."""

    dimension: str
    judge: str | None = None
    other: str | None = None
    variant: str | None = None
    units: int
    clusters: int
    figures: Mapping[str, Coefficient]
    confusion: Confusion | None = None
    is_fragile: bool = False
    """Whether one unit more, rated as far apart as any two ratings here, would take a figure out of
    its interval: an error that is rare and gross may not have shown yet."""

    @property
    def n(self) -> int:
        """How many pairs of ratings were compared."""
        return self.figures["agreement"].n

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        about = {"dimension": self.dimension, "judge": self.judge, "other": self.other}
        counted = {"n": self.n, "units": self.units, "clusters": self.clusters}
        figures = {name: figure.json() for name, figure in self.figures.items()}
        confusion = self.confusion and self.confusion.json()
        return about | {"variant": self.variant} | counted | figures | {"confusion": confusion}


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRow:
    """A mean score on a dimension, or the win rate of a candidate, corrected by labels."""

    of: Literal["dimension", "candidate"]
    name: str
    variant: str | None
    judged: int
    labelled: int
    estimate: Corrected

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        naive, alone, corrected = self.estimate.naive, self.estimate.labels, self.estimate.corrected
        return {
            self.of: self.name,
            "variant": self.variant,
            "naive": naive.value,
            "naive_low": naive.low,
            "naive_high": naive.high,
            "corrected": corrected.value,
            "low": corrected.low,
            "high": corrected.high,
            "labels_alone": alone.value,
            "labels_low": alone.low,
            "labels_high": alone.high,
            "labels": self.labelled,
            "judged": self.judged,
            "weight": self.estimate.weight,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two sides, or the judges of one, agree."""

    matched: int
    """Units rated by both sides, or by two judges of the one."""
    only_run: int
    only_other: int
    failed_run: int
    """Judgments without a verdict."""
    failed_other: int
    rows: tuple[Row, ...]
    corrected: tuple[CorrectedRow, ...]
    notes: tuple[str, ...]
    judges: tuple[JudgeContrast, ...] = ()
    """Every two judges on the same labels, where there are labels."""
    positions: tuple[PositionLean, ...] = ()
    """Of each judge of pairs that was asked in both orders."""

    def row(
        self,
        dimension: str | None = None,
        *,
        judge: str | None = None,
        other: str | None = None,
        variant: str | None = None,
    ) -> Row:
        """One row; without a dimension the first that fits. Raises KeyError."""
        for row in self.rows:
            is_match = (row.judge, row.other, row.variant) == (judge, other, variant)
            if is_match and dimension in (None, row.dimension):
                return row
        raise KeyError((dimension, judge, other, variant))

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        units = {"matched": self.matched, "only_run": self.only_run}
        return {
            "units": units | {"only_against": self.only_other},
            "failures": {"run": self.failed_run, "against": self.failed_other},
            "rows": [row.json() for row in self.rows],
            "corrected": [row.json() for row in self.corrected],
            "judges": [contrast.json() for contrast in self.judges],
            "positions": [lean.json() for lean in self.positions],
            "notes": list(self.notes),
        }
