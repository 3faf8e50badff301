"""Judges beside each other, as text for a terminal: which is closer to the labels, and which leans
to a position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.terminal.figures import STYLES, p_text
from evenhand.report.terminal.tables import cut, table
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
    beyond = next((row.figures[name] for name in CHANCE if name in row.figures), None)
    parts: list[str] = []
    if share.value is not None:
        parts.append(f"the same as {labels} in {100 * share.value:.0f} %")
    if beyond is not None and beyond.value is not None:
        parts.append(f"{beyond.value:.2f}{_interval(beyond)} corrected for chance")
    if parts:
        yield f"On {row.dimension}: {', '.join(parts)}, {row.units} units."


def _interval(figure: Coefficient) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" [{figure.low:.2f}, {figure.high:.2f}]"


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
    values = f"{contrast.value:.3f} against {contrast.other_value:.3f}"
    gap = f"{_gap(contrast)}, p {p_text(contrast.p_adjusted)}"
    return f"{claim}: {FIGURES[contrast.figure]} {values} ({gap}), {contrast.n} units."


def _gap(contrast: JudgeContrast) -> str:
    if contrast.low is None or contrast.high is None:
        return f"{contrast.difference:+.3f}"
    return f"{contrast.difference:+.3f} [{contrast.low:.3f}, {contrast.high:.3f}]"


def lean_sentence(leans: Sequence[PositionLean]) -> str:
    """Which judges lean to a position, in one sentence."""
    leaning = [
        f"{lean.judge} leans to the answer {LEANS[lean.outcome]} ({_share(lean.first_slot)} first)"
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


def _contrasts(contrasts: Sequence[JudgeContrast], level: float) -> Table:
    gap = f"difference [{100 * level:g} %]"
    grid = table("on", "judges", "n", gap, "p", "first is", right=(2, 4))
    for contrast in contrasts:
        of = "" if contrast.figure == "agreement" else " (error)"
        judges = f"{cut(contrast.judge, 20)}\n{cut(contrast.other, 20)}"
        grid.add_row(
            f"{cut(contrast.dimension, 10)}{of}",
            judges,
            str(contrast.n),
            f"{contrast.value:.3f} - {contrast.other_value:.3f} =\n{_gap(contrast)}",
            p_text(contrast.p_adjusted),
            Text(contrast.outcome, style=STYLES[contrast.outcome]),
        )
    return grid


def _leans(leans: Sequence[PositionLean], level: float) -> Table:
    slot = f"first slot [{100 * level:g} %]"
    grid = table("judge", "rounds", "consistent", slot, "p", "leans to", right=(1, 4))
    for lean in leans:
        grid.add_row(
            cut(lean.judge, 24),
            str(lean.first_rounds),
            _share(lean.consistency),
            _share(lean.first_slot),
            p_text(lean.p_adjusted),
            LEANS.get(lean.outcome, lean.outcome),
        )
    return grid


def _share(share: Proportion) -> str:
    if share.value is None:
        return "-"
    return f"{100 * share.value:.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]"
