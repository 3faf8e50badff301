"""Agreement as text for a terminal: what was compared, the coefficients, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.terminal.console import TextTable, paragraph, table
from evenhand.report.terminal.judges import judge_tables, trust_sentences
from evenhand.report.terminal.tables import safe
from evenhand.stats.agreement.coefficient import Coefficient
from evenhand.stats.agreement.table import Agreement, Confusion, CorrectedRow, Row

NAMES = {
    "agreement": "agreement",
    "with_others": "vote with the others' majority",
    "kappa": "Cohen's kappa",
    "kappa_linear": "  linear weights",
    "kappa_quadratic": "  quadratic weights",
    "alpha": "Krippendorff's alpha",
    "alpha_ordinal": "  ordinal",
    "alpha_nominal": "  nominal",
    "ac1": "Gwet's AC1",
    "ac2": "Gwet's AC2",
    "precision": "macro precision",
    "recall": "macro recall",
    "f1": "macro F1",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall's tau-b",
    "mse": "mean squared error",
    "rmse": "  its root",
    "mae": "mean absolute error",
    "bias": "mean difference",
}
VOTES, SCORES = ("agreement", "kappa", "alpha"), ("kappa_quadratic", "spearman", "bias")
"""What is shown where a row of coefficients has one line."""
TITLES = {
    "kappa_quadratic": "quadratic kappa",
    "bias": "difference",
    "alpha": "alpha",
    "kappa": "kappa",
}
ROWS_SHOWN = 24
BLOCKS_SHOWN = 3
"""Dimensions up to which each has all its coefficients shown."""
CONFUSION_SHOWN = 8
"""Categories up to which the confusion table is shown."""
ALONE = (
    "There is nothing to hold these judgments against: no unit was rated twice. It takes labels"
    " that people gave (import them, then --against), another run (--against RUN), a second judge,"
    " or repeats = 2 under [[judges]]."
)


class Sides(NamedTuple):
    """What a person calls the run, and what it is held against, if anything."""

    run: str
    labels: str | None


def agreement_lines(
    about: Mapping[str, Any], agreement: Agreement, sides: Sides
) -> Iterator[RenderableType]:
    """All that is to be printed, from top to bottom."""
    yield _heading(about, agreement, sides)
    for sentence in trust_sentences(agreement, sides.labels):
        yield paragraph(sentence)
    if not agreement.matched:
        yield paragraph(ALONE, style="yellow")
        yield from judge_tables(agreement, about["level"])
        return
    full, brief = _arranged(agreement.rows)
    for row in full:
        yield Text(f"\n{safe(row.dimension)}{_between(row)}", style="bold")
        yield _figures(row, about["level"])
        if row.confusion and len(row.confusion.labels) <= CONFUSION_SHOWN:
            yield ""
            yield _confusion(row.confusion, row)
    yield from _brief_tables(brief)
    yield from judge_tables(agreement, about["level"])
    if agreement.corrected:
        what = "win rates" if agreement.corrected[0].of == "candidate" else "means"
        yield Text(f"\n{what} by the judge, corrected by labels, by labels alone", style="bold")
        yield _corrected(agreement.corrected, about["level"])
    if agreement.notes:
        yield ""
    for note in agreement.notes:
        yield paragraph(f"Note: {note}")


def _arranged(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that are shown in full, and those that have one line: variants before judges."""
    whole: dict[str, Row] = {}
    for row in rows:
        whole.setdefault(row.dimension, row)
    full = list(whole.values()) if len(whole) <= BLOCKS_SHOWN else []
    rest = [row for row in rows if not any(row is full_row for full_row in full)]
    order = sorted(rest, key=lambda row: (row.variant is None, row.judge is not None))
    return full, order if full else sorted(order, key=lambda row: bool(row.judge or row.variant))


def _heading(about: Mapping[str, Any], agreement: Agreement, sides: Sides) -> Text:
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


def _between(row: Row) -> str:
    who = f" of {safe(row.judge)} and {safe(row.other)}" if row.judge and row.other else ""
    among = "" if row.clusters == row.units else f" on {row.clusters} topics or questions"
    return f"{who}: {_units(row.units)}{among}"


def _percent(level: float) -> str:
    return f"{100 * level:g} % interval"


def _figures(row: Row, level: float) -> TextTable:
    """Every coefficient with its interval and what it rests on."""
    grid = table("", "value", _percent(level), "n", right=(1, 2, 3))
    for name, figure in row.figures.items():
        if figure.value is None and name in {"kappa", "with_others"} and not figure.n:
            continue
        value = "undefined" if figure.value is None else _number(figure.value)
        grid.add_row(NAMES[name], value, _interval(figure), str(figure.n))
    return grid


def _number(value: float) -> str:
    return f"{value:z.3f}"


def _interval(figure: Coefficient) -> str:
    if figure.value is None or (figure.low is None and figure.high is None):
        return "none"
    low, high = ("?" if end is None else _number(end) for end in (figure.low, figure.high))
    return f"{low} to {high}"


def _confusion(confusion: Confusion, row: Row) -> TextTable:
    corner = f"{row.judge} \\ {row.other}" if row.other else "run \\ other"
    names = list(map(safe, confusion.labels))
    grid = table(corner, *names, right=range(1, len(names) + 1))
    for name, counts in zip(names, confusion.counts, strict=True):
        grid.add_row(name, *map(str, counts))
    return grid


def _brief_tables(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """The rows that have one line: each dimension as a whole, then each judge, every two judges or
    each variant, in a table per dimension."""
    telling = [row for row in rows if any(_is_figure(row.figures.get(n)) for n in _names(row))]
    parts = [row for row in telling if _who(row)]
    if whole := [row for row in telling if not _who(row)]:
        yield ""
        yield _brief(whole, "dimension", [row.dimension for row in whole])
    several = len({row.dimension for row in rows}) > 1
    first_rows = parts[:ROWS_SHOWN]
    for dimension in dict.fromkeys(row.dimension for row in first_rows):
        of_dimension = [row for row in first_rows if row.dimension == dimension]
        yield Text(f"\n{safe(dimension)}" if several else "", style="bold")
        yield _brief(of_dimension, _title(of_dimension[0]), map(_who, of_dimension))
    if len(parts) > ROWS_SHOWN:
        yield Text(f"and {len(parts) - ROWS_SHOWN} more; all with --json", style="dim")


def _brief(rows: Sequence[Row], title: str, about: Iterable[str]) -> TextTable:
    """A line per row, under a title of what each is about."""
    names = _names(rows[0])
    titles = ["n", *(TITLES.get(name, NAMES[name]) for name in names)]
    grid = table(title, *titles, right=range(1, 1 + len(titles)))
    for row, subject in zip(rows, about, strict=True):
        *cells, last = (row.figures.get(name) for name in names)
        grid.add_row(safe(subject), str(row.n), *map(_cell, cells), _value(last))
    return grid


def _names(row: Row) -> Sequence[str]:
    """The figures that a line has room for."""
    return SCORES if "mae" in row.figures else VOTES


def _title(row: Row) -> str:
    if row.variant is not None:
        return "variant"
    return "judges" if row.other else "judge"


def _who(row: Row) -> str:
    """Of whom or what a row is; empty where it is of all."""
    if row.variant is not None:
        return row.variant
    return "\n".join(name for name in (row.judge, row.other) if name)


def _is_figure(figure: Coefficient | None) -> bool:
    return figure is not None and figure.value is not None


def _cell(figure: Coefficient | None) -> str:
    if figure is None or figure.value is None:
        return "none"
    if figure.low is None or figure.high is None:
        return f"{figure.value:z.2f}"
    return f"{figure.value:z.2f} [{figure.low:z.2f}, {figure.high:z.2f}]"


def _corrected(rows: Sequence[CorrectedRow], level: float) -> TextTable:
    """The judge's mean, the corrected one with its interval, and that of the labels alone."""
    several = any(row.variant is not None for row in rows)
    heads = [rows[0].of, *(["variant"] if several else [])]
    numbers = ["judge", "corrected", _percent(level), "labels", "labelled"]
    grid = table(*heads, *numbers, right=range(len(heads), len(heads) + len(numbers)))
    for row in rows[:ROWS_SHOWN]:
        estimate = row.estimate
        variant = [safe(row.variant or "all")] if several else []
        grid.add_row(
            safe(row.name),
            *variant,
            _value(estimate.naive),
            _value(estimate.corrected),
            _interval(estimate.corrected),
            _value(estimate.labels),
            f"{row.labelled} of {row.judged}",
        )
    return grid


def _value(figure: Coefficient | None) -> str:
    return "none" if figure is None or figure.value is None else _number(figure.value)
