"""Agreement as text for a terminal: the figures, notes, and whether the judge can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.terminal.comparison import p_text
from evenhand.report.terminal.console import TextTable, paragraph, table
from evenhand.report.terminal.tables import safe
from evenhand.stats.agreement_result import Agreement, AgreementRow
from evenhand.stats.coefficients import Coefficient
from evenhand.stats.leans import LengthLean, PositionLean
from evenhand.stats.ppi import CorrectedRow

NAMES = {
    "agreement": "agreement",
    "kappa": "Cohen's kappa",
    "kappa_quadratic": "quadratic kappa",
    "alpha": "Krippendorff's alpha",
    "alpha_nominal": "nominal alpha",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall's tau-b",
    "bias": "mean difference",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "bad_passed": "bad ones passed",
    "good_failed": "good ones failed",
}
CHANCE = ("kappa_quadratic", "kappa")
"""The coefficients that correct agreement for chance: of scores, of votes."""
BRIEF = ("kappa_quadratic", "kappa", "spearman", "alpha", "bias")
"""Which figures have a column where a row has one line: the first three of these that it has."""
VERDICTS = {
    "usable": "Usable",
    "usable corrected": "Usable if its means are corrected by labels",
    "not usable": "Not usable",
}
STYLES = {"usable": "green", "usable corrected": "yellow", "not usable": "red"}
LEANS = {"first": "shown first", "second": "shown second"}
ROWS_SHOWN = 24
BLOCKS_SHOWN = 3
"""Dimensions up to which each has all its coefficients shown."""
CONFUSION_SHOWN = 8
"""Categories up to which the confusion table is shown."""
NOTES_SHOWN = 4
ALONE = (
    "There is nothing to hold these judgments against: no unit was rated twice. It takes labels"
    " that people gave (import them, then --against), another run (--against RUN), a second judge,"
    " or repeats = 2 under [[judges]]."
)


class SideNames(NamedTuple):
    """The readable names of the run and of what it is compared with, if anything."""

    run: str
    labels: str | None


def agreement_lines(
    about: Mapping[str, Any], agreement: Agreement, sides: SideNames, *, every: bool = False
) -> Iterator[RenderableType]:
    """Return all that is to be printed, from top to bottom."""
    yield _heading(about, agreement, sides)
    if agreement.matched:
        yield from _verdicts(agreement, sides.labels)
    yield from map(paragraph, _lean_sentences(agreement))
    if not agreement.matched:
        yield paragraph(ALONE, style="yellow")
        return
    full, brief = _arrange(agreement.rows)
    for row in full:
        yield Text(f"\n{safe(row.dimension)}{_about_row(row)}", style="bold")
        yield _figures(row, about["level"])
        if row.confusion and len(row.confusion["labels"]) <= CONFUSION_SHOWN:
            yield ""
            yield _confusion(row)
    yield from _brief_tables(brief)
    if agreement.corrected:
        what = "win rates" if agreement.corrected[0].of == "candidate" else "means"
        yield Text(f"\n{what} by the judge, corrected by labels, by labels alone", style="bold")
        yield _corrected_table(agreement.corrected, about["level"])
    yield ""
    notes = agreement.notes if every else agreement.notes[:NOTES_SHOWN]
    for note in notes:
        yield paragraph(f"Note: {note}")
    if len(notes) < len(agreement.notes):
        yield Text(f"{len(agreement.notes) - len(notes)} more notes with --all", style="dim")


def _verdicts(agreement: Agreement, labels: str | None) -> Iterator[Text]:
    """Return of each judge, or of all, whether it can be used."""
    if labels is None:
        return
    main = agreement.main
    judges = [
        row for row in agreement.rows if row.judge is not None and row.dimension == main.dimension
    ]
    for row in judges[:ROWS_SHOWN] or [main]:
        who = f"{row.judge}: " if row.judge else ""
        if row.verdict is not None:
            outcome = row.verdict.outcome
            yield paragraph(
                f"{who}{VERDICTS[outcome]}: {row.verdict.reason}.", style=STYLES[outcome]
            )
        yield paragraph(f"{who}{_agreeing(row, labels)}")


def _agreeing(row: AgreementRow, labels: str) -> str:
    """Return a sentence on how far a judge agrees with the labels, of pass and fail in counts."""
    parts: list[str] = []
    figures = row.figures
    if {"bad_passed", "good_failed"} <= figures.keys():
        bad, good = figures["bad_passed"], figures["good_failed"]
        parts.append(f"of {bad.n} bad answers {_count(bad)} passed ({_share(bad)})")
        parts.append(f"of {good.n} good ones {_count(good)} failed ({_share(good)})")
    elif (same := figures["agreement"]).value is not None:
        parts.append(f"the same as {labels} in {_share(same)}")
    beyond = next((figures[name] for name in CHANCE if name in figures), None)
    if beyond is not None and beyond.value is not None:
        parts.append(f"{beyond.value:z.2f}{_interval(beyond, _short)} corrected for chance")
    return f"On {row.dimension}, {_units(row.units)}: {'; '.join(parts) or 'nothing to tell by'}."


def _count(figure: Coefficient) -> int:
    return round((figure.value or 0.0) * figure.n)


def _share(figure: Coefficient) -> str:
    return f"{_to_percent(figure.value)}{_interval(figure, _to_percent)}"


def _lean_sentences(agreement: Agreement) -> Iterator[str]:
    if agreement.positions:
        yield f"Position: {'; '.join(map(_position, agreement.positions))}."
    if agreement.lengths:
        yield f"Length: {'; '.join(map(_length, agreement.lengths))}."


def _position(lean: PositionLean) -> str:
    shown = f"{_share(lean.first_slot)} first"
    alike = (
        f"the same in both orders in {_to_percent(lean.consistency.value)} of {lean.first_rounds}"
    )
    if lean.outcome == "not enough evidence":
        return f"not enough evidence of a lean of {lean.judge} ({shown}), {alike}"
    p = f"p {p_text(lean.p_adjusted)}"
    return f"{lean.judge} leans to the answer {LEANS[lean.outcome]} ({shown}, {p}), {alike}"


def _length(lean: LengthLean) -> str:
    def tell(figure: Coefficient) -> str:
        if figure.value is None:
            return "nothing"
        if lean.figure == "longer_won":
            return _share(figure)
        return f"{_short(figure.value)}{_interval(figure, _short)}"

    what = "the longer answer won" if lean.figure == "longer_won" else "scores go with length by"
    labels = "" if lean.labels is None else f", with the labels {tell(lean.labels)}"
    return f"with {lean.judge} {what} {tell(lean.value)}{labels}"


def _heading(about: Mapping[str, Any], agreement: Agreement, sides: SideNames) -> Text:
    text = Text(f"run {about['run']} {safe(sides.run)}", style="bold")
    if about["against"] is None:
        text.append(" among its judges", style="bold")
        rest = f"; {agreement.only_run} by one alone" if agreement.only_run else ""
        text.append(f"\n{_units(agreement.matched)} rated by at least two{rest}", style="not bold")
    else:
        name = "" if about["against"].endswith(f":{sides.labels}") else f" {safe(sides.labels)}"
        text.append(f" against {safe(about['against'])}{name}", style="bold")
        matched = f"\n{_units(agreement.matched)} matched, {agreement.only_run} only in the run,"
        text.append(f"{matched} {agreement.only_other} only in the other", style="not bold")
    if agreement.failed_run or agreement.failed_other:
        more = f" and {agreement.failed_other} of the other" if about["against"] else ""
        failed = f"\nwithout a verdict: {agreement.failed_run} judgments of the run{more}"
        text.append(failed, style="yellow")
    return text


def _units(number: int) -> str:
    return f"{number} unit{'' if number == 1 else 's'}"


def _about_row(row: AgreementRow) -> str:
    who = f" of {safe(row.judge)} and {safe(row.other)}" if row.judge and row.other else ""
    on = "" if row.clusters == row.units else f" on {row.clusters} questions"
    return f"{who}: {_units(row.units)}{on}"


def _arrange(rows: Sequence[AgreementRow]) -> tuple[list[AgreementRow], list[AgreementRow]]:
    """Return the rows that are shown in full, and those that have one line."""
    whole: dict[str, AgreementRow] = {}
    for row in rows:
        whole.setdefault(row.dimension, row)
    full = list(whole.values()) if len(whole) <= BLOCKS_SHOWN else []
    rest = [row for row in rows if not any(row is shown for shown in full)]
    return full, rest


def _figures(row: AgreementRow, level: float) -> TextTable:
    """Return every coefficient with its interval and what it rests on."""
    grid = table("", "value", f"{100 * level:g} % interval", "n", right=(1, 2, 3))
    for name, figure in row.figures.items():
        value = "undefined" if figure.value is None else _number(figure.value)
        ends = _interval(figure, _number).strip(" []").replace(", ", " to ") or "none"
        grid.add_row(NAMES[name], value, ends, str(figure.n))
    return grid


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:z.3f}"


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:z.2f}"


def _to_percent(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.0f} %"


def _interval(figure: Coefficient, tell: Callable[[float | None], str]) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f" [{tell(figure.low).removesuffix(' %')}, {tell(figure.high).removesuffix(' %')}]"


def _confusion(row: AgreementRow) -> TextTable:
    assert row.confusion is not None
    corner = f"{row.judge} \\ {row.other}" if row.other else "run \\ other"
    names = list(map(safe, row.confusion["labels"]))
    grid = table(corner, *names, right=range(1, len(names) + 1))
    for name, counts in zip(names, row.confusion["counts"], strict=True):
        grid.add_row(name, *map(str, counts))
    return grid


def _brief_tables(rows: Sequence[AgreementRow]) -> Iterator[RenderableType]:
    """Return a table of each dimension as a whole, then one per dimension of its judges, pairs of
    judges or variants."""
    telling = [row for row in rows if any(figure.value is not None for figure in _brief(row))]
    whole = [row for row in telling if not _who(row)]
    parts = [row for row in telling if _who(row)]
    if whole:
        yield ""
        yield _brief_table(whole, "dimension", [row.dimension for row in whole])
    for dimension in dict.fromkeys(row.dimension for row in parts[:ROWS_SHOWN]):
        of_dimension = [row for row in parts[:ROWS_SHOWN] if row.dimension == dimension]
        yield Text(f"\n{safe(dimension)}", style="bold")
        yield _brief_table(of_dimension, "", map(_who, of_dimension))
    if len(parts) > ROWS_SHOWN:
        yield Text(f"and {len(parts) - ROWS_SHOWN} more; all with --json", style="dim")


def _brief(row: AgreementRow) -> list[Coefficient]:
    """Return the figures that a line has room for."""
    return [row.figures[name] for name in BRIEF if name in row.figures][:3]


def _brief_table(rows: Sequence[AgreementRow], title: str, subjects: Iterable[str]) -> TextTable:
    names = [name for name in BRIEF if name in rows[0].figures][:3]
    grid = table(title, "n", *(NAMES[name] for name in names), right=range(1, 2 + len(names)))
    for row, subject in zip(rows, subjects, strict=True):
        cells = (row.figures.get(name) for name in names)
        tell = ("none" if c is None else f"{_short(c.value)}{_interval(c, _short)}" for c in cells)
        grid.add_row(safe(subject), str(row.n), *tell)
    return grid


def _who(row: AgreementRow) -> str:
    """Return of whom or what a row is; empty where it is of all."""
    if row.variant is not None:
        return row.variant
    return "\n".join(name for name in (row.judge, row.other) if name)


def _corrected_table(rows: Sequence[CorrectedRow], level: float) -> TextTable:
    """Return the judge's mean, the corrected one with its interval, and that of labels alone."""
    several = any(row.variant is not None for row in rows)
    heads = [rows[0].of, *(["variant"] if several else [])]
    numbers = ["judge", "corrected", f"{100 * level:g} % interval", "labels", "labelled"]
    grid = table(*heads, *numbers, right=range(len(heads), len(heads) + len(numbers)))
    for row in rows[:ROWS_SHOWN]:
        naive, alone, corrected = row.estimate.naive, row.estimate.labels, row.estimate.corrected
        grid.add_row(
            safe(row.name),
            *([safe(row.variant or "all")] if several else []),
            _number(naive.value),
            _number(corrected.value),
            _interval(corrected, _number).strip(" []").replace(", ", " to ") or "none",
            _number(alone.value),
            f"{row.labelled} of {row.judged}",
        )
    return grid
