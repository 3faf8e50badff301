"""Agreement as text for a terminal: whether the judge can be used, then figures and notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.terminal.answer import note_lines
from evenhand.report.terminal.console import TextTable, paragraph, table
from evenhand.report.terminal.tables import safe
from evenhand.stats.agreement_result import Agreement, AgreementRow, band
from evenhand.stats.coefficients import Coefficient
from evenhand.stats.leans import LengthLean, PositionLean
from evenhand.stats.ppi import CorrectedRow
from evenhand.words import Words

CHANCE = ("kappa_quadratic", "kappa", "alpha")
"""The coefficients that correct agreement for chance: of scores, of votes, of panels."""
BRIEF = ("kappa_quadratic", "kappa", "spearman", "alpha", "bias")
"""Which figures have a column where a row has one line: the first three of these that it has."""
STYLES = {"usable": "green", "usable corrected": "yellow", "not usable": "red"}
LEANS = {"first": "lean_first", "second": "lean_second"}
ROWS_SHOWN = 24
BLOCKS_SHOWN = 3
"""Dimensions up to which each has all its coefficients shown."""
CONFUSION_SHOWN = 8
"""Categories up to which the confusion table is shown."""


class SideNames(NamedTuple):
    """The readable names of the run and of what it is compared with, if anything."""

    run: str
    labels: str | None


def agreement_lines(
    about: Mapping[str, Any],
    agreement: Agreement,
    sides: SideNames,
    say: Words,
    *,
    every: bool = False,
) -> Iterator[RenderableType]:
    """Return all that is to be printed, from top to bottom."""
    yield from _heading(about, agreement, sides, say)
    if agreement.matched:
        yield from _verdicts(agreement, sides.labels, say)
    yield from (paragraph(_position(lean, say)) for lean in agreement.positions)
    yield from (paragraph(_length(lean, say)) for lean in agreement.lengths)
    if not agreement.matched:
        yield paragraph(say("agreement.alone"), style="yellow")
        return
    full, brief = _arrange(agreement.rows)
    for row in full:
        yield Text()
        yield paragraph(_row_title(row, about, agreement.judges, say), style="bold")
        yield _figures(row, about["level"], say)
        if row.confusion and len(row.confusion["labels"]) <= CONFUSION_SHOWN:
            yield ""
            yield _confusion(row, say)
    yield from _brief_tables(brief, say)
    if agreement.corrected:
        of = agreement.corrected[0].of
        yield Text()
        yield paragraph(say(f"agreement.corrected_{of}"), style="bold")
        yield _corrected_table(agreement.corrected, about["level"], say)
    yield ""
    yield from note_lines(agreement.notes, say, None if every else "--all")


def _verdicts(agreement: Agreement, labels: str | None, say: Words) -> Iterator[Text]:
    """Return of each judge, or of all, whether it can be used."""
    main = agreement.main
    if labels is None:
        yield paragraph(_agreeing(main, None, say))
        yield paragraph(say("agreement.no_labels"), style="yellow")
        return
    judges = [
        row for row in agreement.rows if row.judge is not None and row.dimension == main.dimension
    ]
    for row in judges[:ROWS_SHOWN] or [main]:
        told = [(_agreeing(row, labels, say), "")]
        if row.verdict is not None:
            outcome, reason = row.verdict.outcome, say.message(row.verdict.reason)
            verdict = say("agreement.verdict", outcome=outcome, reason=reason)
            told.insert(0, (verdict, f"bold {STYLES[outcome]}"))
        for text, style in told:
            named = say("agreement.of_judge", judge=row.judge, text=text) if row.judge else text
            yield paragraph(named, style=style)


def _agreeing(row: AgreementRow, labels: str | None, say: Words) -> str:
    """Return how far a judge agrees with the labels, of pass and fail in counts, and what that
    means."""
    told: list[str] = []
    figures = row.figures
    about = {"dimension": row.dimension, "labels": labels, "n": row.units}
    if {"bad_passed", "good_failed"} <= figures.keys():
        bad, good = figures["bad_passed"], figures["good_failed"]
        counts = {"bad": bad.n, "passed": _count(bad), "good": good.n, "failed": _count(good)}
        shares = {"bad_share": _share(bad, say), "good_share": _share(good, say)}
        told.append(say("agreement.passes", **counts, **shares))
    elif (same := figures["agreement"]).value is not None:
        key = "same" if labels is not None else "same_among"
        told.append(say(f"agreement.{key}", share=_share(same, say), **about))
    beyond = next((figures[name] for name in CHANCE if name in figures), None)
    if beyond is not None and beyond.value is not None:
        values = {"value": _number(beyond, say), "band": band(beyond.value)}
        told.append(say("agreement.beyond_chance", **values))
    return say.join(told, between="sentence") if told else say("agreement.nothing", **about)


def _count(figure: Coefficient) -> int:
    return round((figure.value or 0.0) * figure.n)


def _share(figure: Coefficient, say: Words) -> str:
    return say.share(figure.value, figure.low, figure.high)


def _number(figure: Coefficient, say: Words) -> str:
    return f"{say.number(figure.value)} {say.interval(figure.low, figure.high)}".strip()


def _position(lean: PositionLean, say: Words) -> str:
    return say(
        f"agreement.{LEANS.get(lean.outcome, 'lean_open')}",
        judge=lean.judge,
        share=_share(lean.first_slot, say),
        consistency=lean.consistency.value,
        n=lean.first_rounds,
    )


def _length(lean: LengthLean, say: Words) -> str:
    tell = _share if lean.figure == "longer_won" else _number
    about = {"judge": lean.judge, "value": tell(lean.value, say)}
    if lean.labels is None:
        return say(f"agreement.length_{lean.figure}", **about)
    return say(f"agreement.lengths_{lean.figure}", labels=tell(lean.labels, say), **about)


def _heading(
    about: Mapping[str, Any], agreement: Agreement, sides: SideNames, say: Words
) -> Iterator[Text]:
    """Yield which sides these are and how much they share; the title first."""
    names = {"run": about["run"], "name": sides.run, "against": about["against"]}
    counts = {"n": agreement.matched, "alone": agreement.only_run, "other": agreement.only_other}
    key = "among" if about["against"] is None else "against"
    yield paragraph(say(f"agreement.title_{key}", **names), style="bold")
    is_all = key == "against" and not agreement.only_run and not agreement.only_other
    yield paragraph(
        say("agreement.matched_all" if is_all else f"agreement.matched_{key}", **counts)
    )
    if agreement.failed_run or agreement.failed_other:
        failed = {"n": agreement.failed_run, "other": agreement.failed_other}
        yield paragraph(say(f"agreement.failed_{key}", **failed), style="yellow")


def _row_title(row: AgreementRow, asked: Mapping[str, Any], judges: int, say: Words) -> str:
    size = say.counted("unit", row.units)
    if row.clusters != row.units:
        counts = {"units": size, "questions": say.counted("question", row.clusters)}
        size = say("terminal.size", **counts)
    about = {"dimension": row.dimension, "size": size}
    if row.judge and row.other:
        return say("agreement.row_of_two", judge=row.judge, other=row.other, **about)
    if row.judge is None and asked["against"] is not None and judges > 1:
        joined = "mean" if "kappa_quadratic" in row.figures else "majority"
        key = f"row_{joined}" if asked["majority"] else "row_together"
        return say(f"agreement.{key}", judges=judges, **about)
    return say("agreement.row", **about)


def _arrange(rows: Sequence[AgreementRow]) -> tuple[list[AgreementRow], list[AgreementRow]]:
    """Return the rows that are shown in full, and those that have one line."""
    whole: dict[str, AgreementRow] = {}
    for row in rows:
        whole.setdefault(row.dimension, row)
    full = list(whole.values()) if len(whole) <= BLOCKS_SHOWN else []
    rest = [row for row in rows if not any(row is shown for shown in full)]
    return full, rest


def _figures(row: AgreementRow, level: float, say: Words) -> TextTable:
    """Return every coefficient with its interval and what it rests on."""
    heads = [say("agreement.value"), say("agreement.interval", level=say.percent(level)), "n"]
    grid = table("", *heads, right=(1, 2, 3))
    for name, figure in row.figures.items():
        ends = say.interval(figure.low, figure.high, 3)
        cells = [say.number(figure.value, 3), ends, say.integer(figure.n)]
        grid.add_row(say.gloss("coefficient", name), *cells)
    return grid


def _confusion(row: AgreementRow, say: Words) -> TextTable:
    assert row.confusion is not None
    corner = f"{row.judge} \\ {row.other}" if row.other else say("agreement.corner")
    names = [safe(say.gloss("rating", name)) for name in row.confusion["labels"]]
    grid = table(corner, *names, right=range(1, len(names) + 1))
    for name, counts in zip(names, row.confusion["counts"], strict=True):
        grid.add_row(name, *map(say.integer, counts))
    return grid


def _brief_tables(rows: Sequence[AgreementRow], say: Words) -> Iterator[RenderableType]:
    """Return a table of each dimension as a whole, then one per dimension of its judges, pairs of
    judges or variants."""
    telling = [row for row in rows if any(figure.value is not None for figure in _brief(row))]
    whole = [row for row in telling if not _who(row)]
    parts = [row for row in telling if _who(row)]
    if whole:
        yield ""
        dimensions = [say.dimension(row.dimension) for row in whole]
        yield _brief_table(whole, say("terminal.dimension"), dimensions, say)
    for dimension in dict.fromkeys(row.dimension for row in parts[:ROWS_SHOWN]):
        of_dimension = [row for row in parts[:ROWS_SHOWN] if row.dimension == dimension]
        yield Text()
        yield paragraph(say.dimension(dimension), style="bold")
        yield _brief_table(of_dimension, "", map(_who, of_dimension), say)
    if len(parts) > ROWS_SHOWN:
        yield Text(say("terminal.more_rows", n=len(parts) - ROWS_SHOWN), style="dim")


def _brief(row: AgreementRow) -> list[Coefficient]:
    """Return the figures that a line has room for."""
    return [row.figures[name] for name in BRIEF if name in row.figures][:3]


def _brief_table(
    rows: Sequence[AgreementRow], title: str, subjects: Iterable[str], say: Words
) -> TextTable:
    names = [name for name in BRIEF if name in rows[0].figures][:3]
    heads = (say.gloss("coefficient", name) for name in names)
    grid = table(title, "n", *heads, right=range(1, 2 + len(names)))
    for row, subject in zip(rows, subjects, strict=True):
        cells = (row.figures.get(name) for name in names)
        told = (say.number(None) if cell is None else _number(cell, say) for cell in cells)
        grid.add_row(safe(subject), say.integer(row.n), *told)
    return grid


def _who(row: AgreementRow) -> str:
    """Return of whom or what a row is; empty where it is of all."""
    if row.variant is not None:
        return row.variant
    return "\n".join(name for name in (row.judge, row.other) if name)


def _corrected_table(rows: Sequence[CorrectedRow], level: float, say: Words) -> TextTable:
    """Return the judge's mean, the corrected one with its interval, and that of labels alone."""
    several = any(row.variant is not None for row in rows)
    heads = [say(f"terminal.{rows[0].of}"), *([say("terminal.variant")] if several else [])]
    numbers = [say("agreement.by_judge"), say("agreement.corrected")]
    numbers += [say("agreement.interval", level=say.percent(level))]
    numbers += [say("agreement.by_labels"), say("agreement.labelled")]
    grid = table(*heads, *numbers, right=range(len(heads), len(heads) + len(numbers)))
    for row in rows[:ROWS_SHOWN]:
        naive, alone, corrected = row.estimate.naive, row.estimate.labels, row.estimate.corrected
        is_rate = row.of == "candidate"
        tell = say.percent if is_rate else say.number
        ends = corrected.low, corrected.high
        grid.add_row(
            safe(row.name if is_rate else say.dimension(row.name)),
            *([safe(row.variant or say("agreement.all"))] if several else []),
            tell(naive.value),
            tell(corrected.value),
            say.percents(*ends) if is_rate else say.interval(*ends),
            tell(alone.value),
            say("agreement.labelled_of", n=row.labelled, of=row.judged),
        )
    return grid
