"""The result of an agreement: rows of coefficients, verdicts, corrected means, leans of judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from evenhand.notebook import Shown, ShownTable
from evenhand.observation import OVERALL, WINNER
from evenhand.stats.coefficients import Coefficient
from evenhand.stats.leans import LengthLean, PositionLean
from evenhand.stats.ppi import CorrectedRow

BANDS = ((0.2, "chance"), (0.4, "weak"), (0.6, "fair"), (0.8, "good"))
"""The upper ends of kappa with the names of the bands of Landis and Koch (1977) in plain words."""


FIGURES_SHOWN = 3
"""Of a row, where there is room for the first of its figures only."""


def band(kappa: float) -> str:
    """Return the name of what an agreement beyond chance means, from the table `band`."""
    return next((name for end, name in BANDS if kappa < end), "very good")


@dataclass(frozen=True, slots=True)
class Usability:
    """The use that a judge is fit for, with the reason."""

    outcome: Literal["usable", "usable corrected", "not usable"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementRow:
    """The coefficients of one dimension, of all judges or of some, of all units or a variant."""

    dimension: str
    judge: str | None = None
    other: str | None = None
    variant: str | None = None
    n: int
    """The number of pairs of ratings compared."""
    units: int
    clusters: int
    figures: Mapping[str, Coefficient]
    confusion: Mapping[str, Any] | None = None
    """The count of each rating of the run (rows) with each of the other side (columns)."""
    verdict: Usability | None = None

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        about = asdict(self)
        figures: dict[str, Any] = about.pop("figures")
        return about | figures


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Agreement(Shown):
    """The agreement between two sides, or among the judges of one."""

    matched: int
    """Units rated by both sides, or by two judges of the one."""
    only_run: int
    only_other: int
    failed_run: int
    """Judgments without a verdict."""
    failed_other: int
    rows: tuple[AgreementRow, ...]
    corrected: tuple[CorrectedRow, ...]
    positions: tuple[PositionLean, ...]
    """Of each judge of pairs that was asked in both orders."""
    lengths: tuple[LengthLean, ...]
    notes: tuple[str, ...]
    """The most important first."""

    @property
    def judges(self) -> int:
        """Return how many judges have rows of their own."""
        return len({row.judge for row in self.rows if row.judge and not row.other})

    def row(
        self,
        dimension: str | None = None,
        *,
        judge: str | None = None,
        other: str | None = None,
        variant: str | None = None,
    ) -> AgreementRow:
        """Return one row; without a dimension the first that fits. Raise KeyError."""
        for row in self.rows:
            is_match = (row.judge, row.other, row.variant) == (judge, other, variant)
            if is_match and dimension in (None, row.dimension):
                return row
        raise KeyError((dimension, judge, other, variant))

    @property
    def main(self) -> AgreementRow:
        """Return the row of the whole: that of the winner, or of the overall score."""
        whole = [row for row in self.rows if row.dimension in (WINNER, OVERALL)]
        return (whole or list(self.rows))[0]

    def _tables(self) -> Iterator[ShownTable]:
        every = dict.fromkeys(name for row in self.rows for name in row.figures)
        names = list(every)[:FIGURES_SHOWN]
        rows = [
            (
                *(row.dimension, row.variant, row.judge, row.other, row.n),
                *(row.figures[name].value if name in row.figures else None for name in names),
                row.verdict and row.verdict.outcome,
            )
            for row in self.rows
        ]
        header = ("dimension", "variant", "judge", "other", "n", *names, "verdict")
        yield ShownTable(header, rows, notes=self.notes)

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            "units": {
                "matched": self.matched,
                "only_run": self.only_run,
                "only_against": self.only_other,
            },
            "failures": {"run": self.failed_run, "against": self.failed_other},
            "rows": [row.json() for row in self.rows],
            "corrected": [row.json() for row in self.corrected],
            "positions": [asdict(lean) for lean in self.positions],
            "lengths": [asdict(lean) for lean in self.lengths],
            "notes": list(self.notes),
        }
