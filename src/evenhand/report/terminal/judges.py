"""Judges beside each other, as text for a terminal: which is closer to the labels, and which leans
to a position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.terminal.console import TextTable, table
from evenhand.report.terminal.figures import STYLES, p_heading, p_text
from evenhand.report.terminal.tables import safe
from evenhand.stats.agreement.closer import WHOLE, JudgeContrast
from evenhand.stats.agreement.coefficient import Coefficient
from evenhand.stats.agreement.position import PositionLean
from evenhand.stats.agreement.table import Agreement
from evenhand.stats.proportion import Proportion

TOLD = 3
"""So many pairs of judges have a sentence; the table has all."""
CHANCE = ("kappa_quadratic", "kappa")
"""What corrects agreement for chance: of scores, of votes."""
FIGURES = {"agreement": "agreement", "mae": "mean absolute error"}
LEANS = {"first": "shown first", "second": "shown second"}


def trust_sentences(agreement: Agreement, labels: str | None) -> Iterator[str]:
    """Can these judges be trusted? Agreement beyond chance, who is closer, and who leans."""
    if labels is not None and agreement.matched:
        yield from _agreeing(agreement, labels)
    for contrast in _whole(agreement.judges)[:TOLD]:
        yield closer_sentence(contrast, labels or "the labels")
    if agreement.positions:
        yield lean_sentence(agreement.positions)


def _agreeing(agreement: Agreement, labels: str) -> Iterator[str]:
    row = next((row for row in agreement.rows if row.dimension in WHOLE), agreement.rows[0])
    share = row.figures["agreement"]
    name = next((name for name in CHANCE if name in row.figures), "")
    beyond = row.figures.get(name)
    parts: list[str] = []
    if share.value is not None:
        parts.append(f"the same as {labels} in {100 * share.value:.0f} %")
    if beyond is not None and beyond.value is not None:
        partly = ", a near miss counted in part" if name == "kappa_quadratic" else ""
        parts.append(f"{beyond.value:z.2f}{_interval(beyond)} corrected for chance{partly}")
    if parts:
        yield f"On {row.dimension}: {', '.join(parts)}, {row.units} units."


def _interval(figure: Coefficient) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" [{figure.low:z.2f}, {figure.high:z.2f}]"


def _whole(contrasts: Sequence[JudgeContrast]) -> list[JudgeContrast]:
    """What is told in words: the whole by the first figure, or the first dimension."""
    if not contrasts:
        return []
    dimension = next((c.dimension for c in contrasts if c.dimension in WHOLE), None)
    dimension = dimension or contrasts[0].dimension
    of_dimension = [c for c in contrasts if c.dimension == dimension]
    return [c for c in of_dimension if c.figure == of_dimension[0].figure]


def closer_sentence(contrast: JudgeContrast, labels: str) -> str:
    """Which of two judges is closer to the labels, in one sentence."""
    first, second = contrast.judge, contrast.other
    claim = f"Not enough evidence that {first} or {second} is closer to {labels}"
    if contrast.outcome != "not enough evidence":
        near, far = (first, second) if contrast.outcome == "better" else (second, first)
        claim = f"{near} is closer to {labels} than {far}"
    values = f"{contrast.value:z.3f} against {contrast.other_value:z.3f}"
    gap = f"{_gap(contrast)}, p {p_text(contrast.p_adjusted)}"
    return f"{claim}: {FIGURES[contrast.figure]} {values} ({gap}), {contrast.n} units."


def _gap(contrast: JudgeContrast) -> str:
    if contrast.low is None or contrast.high is None:
        return f"{contrast.difference:+z.3f}"
    return f"{contrast.difference:+z.3f} [{contrast.low:z.3f}, {contrast.high:z.3f}]"


def lean_sentence(leans: Sequence[PositionLean]) -> str:
    """Which judges lean to a position, in one sentence."""
    leaning = [
        f"{lean.judge} leans to the answer {LEANS[lean.outcome]} ({_slot(lean)} first)"
        for lean in leans
        if lean.outcome != "not enough evidence"
    ]
    rest = [lean.judge for lean in leans if lean.outcome == "not enough evidence"]
    if rest:
        leaning.append(f"not enough evidence of a lean of {', '.join(rest)}")
    return f"Position: {'; '.join(leaning)}."


def judge_tables(agreement: Agreement, level: float) -> Iterator[RenderableType]:
    """Every two judges on the same labels, and each judge's lean."""
    if agreement.judges:
        yield Text("\nJudge against judge, on the same labels", style="bold")
        yield _contrasts(agreement.judges, level)
    if agreement.positions:
        yield Text("\nPosition, in first rounds asked in both orders", style="bold")
        yield _leans(agreement.positions, level)


def _contrasts(contrasts: Sequence[JudgeContrast], level: float) -> TextTable:
    gap = f"difference [{100 * level:g} %]"
    headers = ("on", "judges", "n", gap, p_heading(contrasts), "first is")
    grid = table(*headers, right=(2, 4), whole=[3])
    for contrast in contrasts:
        of = "" if contrast.figure == "agreement" else " (error)"
        judges = f"{safe(contrast.judge)}\n{safe(contrast.other)}"
        grid.add_row(
            f"{safe(contrast.dimension)}{of}",
            judges,
            str(contrast.n),
            f"{contrast.value:z.3f} - {contrast.other_value:z.3f} =\n{_gap(contrast)}",
            p_text(contrast.p_adjusted),
            Text(contrast.outcome, style=STYLES[contrast.outcome]),
        )
    return grid


def _leans(leans: Sequence[PositionLean], level: float) -> TextTable:
    slot = f"first slot [{100 * level:g} %]"
    headers = ("judge", "rounds", "consistent", slot, p_heading(leans), "leans to")
    grid = table(*headers, right=(1, 4), whole=(2, 3))
    for lean in leans:
        grid.add_row(
            safe(lean.judge),
            str(lean.first_rounds),
            _share(lean.consistency),
            _slot(lean),
            p_text(lean.p_adjusted),
            LEANS.get(lean.outcome, lean.outcome),
        )
    return grid


def _slot(lean: PositionLean) -> str:
    """The share of the first slot, with a decimal where a claimed lean would read like none."""
    ends = (100 * lean.first_slot.low, 100 * lean.first_slot.high)
    is_close = lean.outcome != "not enough evidence" and 50 in map(round, ends)
    return _share(lean.first_slot, 1 if is_close else 0)


def _share(share: Proportion, digits: int = 0) -> str:
    if share.value is None:
        return "-"
    value, low, high = (f"{100 * x:.{digits}f}" for x in (share.value, share.low, share.high))
    return f"{value} % [{low}, {high}]"
