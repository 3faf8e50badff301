"""A comparison as text for a terminal: the answer first, then figures, then what to beware of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.html.answer import (
    SMALL,
    comparison_answers,
    decision_answer,
    is_of_hundred,
)
from evenhand.report.html.ranking import rank_variants
from evenhand.report.terminal.answer import note_lines, ranking_table, sentence_lines, trust_lines
from evenhand.report.terminal.console import TextTable, paragraph, table, titles
from evenhand.report.terminal.tables import safe
from evenhand.stats.comparison import OVERALL, Comparison, Row, SequentialTest
from evenhand.stats.stability import Repeats
from evenhand.words import Words

APART = 3
"""Up to so many variants have a table each; more stand in a table a dimension, as candidates do."""
STYLES = {"better": "green", "worse": "red", "same": "cyan", "not enough evidence": ""}
"""The colour of each outcome."""


def comparison_lines(
    comparison: Comparison, trust: Iterable[str], say: Words, *, verbose: bool = False
) -> Iterator[RenderableType]:
    """Yield all that is to be printed of a comparison, from top to bottom; with `verbose`, every
    note."""
    rows = rows_shown(comparison)
    yield from _headlines(comparison, say)
    level = say("answer.level", level=say.percent(comparison.level))
    yield from trust_lines([level, *trust], say)
    yield from _ranking(comparison, say)
    variants = list(dict.fromkeys(row.variant for row in rows))
    if len(variants) <= APART and not comparison.is_duel:
        for name in variants:
            of_variant = [row for row in rows if row.variant == name]
            yield from _variant_lines(comparison, of_variant, say, verbose=verbose)
    else:
        for dimension in dict.fromkeys(row.dimension for row in rows):
            of_dimension = [row for row in rows if row.dimension == dimension]
            yield from _dimension_lines(comparison, of_dimension, say)
    for key, shares in (("passes", comparison.passes), ("tags", comparison.tags)):
        if shares:
            yield Text("\n" + say(f"terminal.{key}"))
            yield _shares_table(shares, say)
    yield from _missing(comparison, say)
    if comparison.repeats:
        yield from _repeats(comparison.repeats, say)
    yield from note_lines(comparison.notes, say, None if verbose else "--verbose")


def _headlines(comparison: Comparison, say: Words) -> Iterator[RenderableType]:
    """The answer to each variant's question, once: by the run's own sequential test where it has
    one, else by the test with a fixed number of units."""
    test = comparison.sequential
    tested = {decision.variant for decision in test.comparisons} if test else set[str]()
    noun = "task" if "task_name" in comparison.pair_by else "question"
    if test:
        yield from decision_lines(test, noun, say)
        yield paragraph(say("terminal.descriptive"))
    elif not any(row.n for row in (*comparison.rows, *comparison.passes)):
        yield paragraph(_nothing(comparison, say), style="bold")
        return
    rest = tuple(row for row in comparison.rows if row.variant not in tested)
    yield from sentence_lines(comparison_answers(replace(comparison, rows=rest), noun, say))


def _ranking(comparison: Comparison, say: Words) -> Iterator[RenderableType]:
    """Yield the ranked table where there are several variants."""
    if comparison.is_duel or len({row.variant for row in comparison.rows}) < 2:
        return
    if ranking := rank_variants(comparison, say):
        yield ""
        yield ranking_table(ranking, say)


def _nothing(comparison: Comparison, say: Words) -> str:
    """Why there is no answer."""
    variants = list(dict.fromkeys(row.variant for row in comparison.rows))
    about = {"baseline": comparison.baseline, "n": len(variants)}
    if not variants:
        return say("terminal.nothing_to_compare", **about)
    if len(variants) > 1:
        return say("terminal.nothing_shared_by_all", **about)
    return say("terminal.nothing_shared", variant=variants[0], **about)


def rows_shown(comparison: Comparison) -> list[Row]:
    """The rows worth printing, overall first: of one dimension alone the overall figure says the
    same again."""
    rows = sorted(comparison.rows, key=lambda row: row.dimension != OVERALL)
    if not comparison.is_one_dimension:
        return rows
    return [row for row in rows if row.dimension != OVERALL]


def _size(comparison: Comparison, rows: Sequence[Row], say: Words) -> str:
    """Return the number of units and questions that the rows rest on."""
    unit, question = ("pair", "topic") if comparison.is_duel else ("unit", "question")
    (least, _), (n, clusters) = min(sizes := {(r.n, r.clusters) for r in rows}), max(sizes)
    size = say.counted(question, n)
    if n != clusters:
        counts = {"units": say.counted(unit, n), "questions": say.counted(question, clusters)}
        size = say("terminal.size", **counts)
    return size if least == n else say("terminal.size_from", least=least, size=size)


def _variant_lines(
    comparison: Comparison, rows: Sequence[Row], say: Words, *, verbose: bool
) -> Iterator[RenderableType]:
    """One variant, dimension by dimension."""
    about = {"variant": rows[0].variant, "baseline": comparison.baseline}
    size = _size(comparison, rows, say)
    yield Text()
    yield paragraph(say("terminal.against", by=comparison.by, size=size, **about))
    named = [(say.dimension(row.dimension), row) for row in rows]
    yield _rows_table(comparison, "dimension", named, say)
    effects = [f"{name} {say.number(row.effect)}" for name, row in named if row.effect is not None]
    if effects and verbose:
        yield paragraph(say("terminal.effects", effects=say.join(effects)), style="dim")


def _dimension_lines(
    comparison: Comparison, rows: Sequence[Row], say: Words
) -> Iterator[RenderableType]:
    """One dimension, variant by variant."""
    about = {"dimension": rows[0].dimension, "baseline": comparison.baseline}
    yield Text()
    yield paragraph(say("terminal.against_on", size=_size(comparison, rows, say), **about))
    ranked = sorted(rows, key=lambda row: -(row.difference or 0.0))
    column = "candidate" if comparison.is_duel else "variant"
    yield _rows_table(comparison, column, [(row.variant, row) for row in ranked], say)


def _rows_table(
    comparison: Comparison, column: str, rows: Sequence[tuple[str, Row]], say: Words
) -> TextTable:
    level, is_duel = say.percent(comparison.level), comparison.is_duel
    if is_duel:
        heads = [say("terminal.win_rate_level", level=level)]
    else:
        heads = [*titles(say, "base", "mean"), gap_heading(comparison.level, say)]
    ends = [p_heading((row for _, row in rows), say), say("terminal.outcome")]
    place = len(heads)
    right = [*range(1, place), place + 1]
    grid = table(say(f"terminal.{column}"), *heads, *ends, right=right, whole=[place])
    for name, row in rows:
        if is_duel:
            figures = [say.share(row.mean, row.mean_low, row.mean_high)]
        else:
            figures = row_cells(row, say)
        test = row.decided_by if comparison.sequential else ""
        cells = [*figures, say.p_value(row.p_adjusted)]
        grid.add_row(safe(name), *cells, outcome_text(row.outcome, say, test))
    return grid


def row_cells(row: Row, say: Words) -> list[str]:
    """Return both means of a row and their difference with its interval."""
    places = places_of(row)
    means = [say.number(value, places) for value in (row.baseline_mean, row.mean)]
    return [*means, gap_text(row, say)]


def outcome_text(outcome: str, say: Words, test: str = "") -> Text:
    """Return an outcome in its colour, with the test it is from where there are two."""
    told = say.gloss("short_outcome", outcome)
    if test:
        told = say(f"terminal.by_{test}", outcome=told)
    return Text(told, style=STYLES.get(outcome, ""))


def _shares_table(rows: Sequence[Row], say: Words) -> TextTable:
    """Return a table of shares of units: of those that pass, or have a tag."""
    heads = titles(say, "measure", "variant", "base", "rate", "points")
    grid = table(*heads, p_heading(rows, say), say("terminal.outcome"), right=(2, 3, 5), whole=[4])
    for row in rows:
        rates = [say.percent(value) for value in (row.baseline_mean, row.mean)]
        gap, low, high = (
            None if end is None else 100 * end for end in (row.difference, row.low, row.high)
        )
        grid.add_row(
            safe(say.gloss("tag", say.dimension(row.dimension))),
            safe(row.variant),
            *rates,
            f"{say.signed(gap, 0)} {say.interval(low, high, 0)}".strip(),
            say.p_value(row.p_adjusted),
            outcome_text(row.outcome, say),
        )
    return grid


def _missing(comparison: Comparison, say: Words) -> Iterator[RenderableType]:
    """Yield the judgments missing from each variant, and how far they could move the difference."""
    counts = comparison.missing
    lacking = sum(count.failed + count.pending for count in counts.values())
    yield Text()
    silent = [
        with_figure(name, say.join(f"{say.dimension(d)} {n}" for d, n in scores.items()), say)
        for name, count in counts.items()
        if (scores := count.missing_scores)
    ]
    alone = [
        with_figure(name, say.counted("unit", count.unpaired), say)
        for name, count in counts.items()
        if count.unpaired
    ]
    if alone:
        yield paragraph(say("terminal.unpaired", variants=say.join(alone)))
    if silent:
        yield paragraph(say("terminal.silent", variants=say.join(silent)))
    if not lacking and not silent:
        planned = sum(count.planned for count in counts.values())
        yield paragraph(say("terminal.all_scored", n=planned))
        return
    columns = ("variant", "units", "planned", "scored", "failed", "pending", "could_differ")
    grid = table(*titles(say, *columns), right=range(1, 6), whole=[6])
    ranges = {row.variant: _range(row, say) for row in reversed(rows_shown(comparison))}
    for name, count in counts.items():
        figures = (count.units, count.planned, count.scored, count.failed, count.pending)
        grid.add_row(safe(name), *map(say.integer, figures), ranges.get(name, ""))
    yield grid
    if any(ranges.values()):
        yield paragraph(say("terminal.last_column"), style="dim")


def with_figure(name: str, figure: str, say: Words) -> str:
    """Return a name with a figure in brackets."""
    return say("answer.rate", candidate=name, rate=figure)


def _range(row: Row, say: Words) -> str:
    if row.bounds is None:
        return ""
    low, high = (say.signed(end, places_of(row)) for end in row.bounds)
    return say("terminal.from_to", low=low, high=high)


def _repeats(repeats: Repeats, say: Words) -> Iterator[RenderableType]:
    yield Text()
    yield paragraph(say("terminal.repeats", n=repeats.most))
    heads = titles(say, "dimension", "units", "within", "between", "share_within")
    grid = table(*heads, right=range(1, 5))
    for component in repeats.components:
        figures = [say.number(value, 3) for value in (component.within, component.between)]
        grid.add_row(
            safe(say.dimension(component.dimension)),
            say.integer(component.units),
            *figures,
            say.percent(component.share),
        )
    yield grid


def places_of(row: Row) -> int:
    """Decimals that suit the scale, as the sentences have them; three where a difference would read
    like none."""
    if is_of_hundred(row.scale):
        return 1
    most = max(abs(row.mean or 0), abs(row.baseline_mean or 0))
    return 3 if most <= 1 or 0 < abs(row.difference or 0) < SMALL else 2


def gap_heading(level: float, say: Words) -> str:
    """Return the heading of a column of differences with their intervals."""
    return say("terminal.difference_level", level=say.percent(level))


def gap_text(row: Row, say: Words) -> str:
    """A difference with its interval."""
    places = places_of(row)
    return f"{say.signed(row.difference, places)} {say.interval(row.low, row.high, places)}".strip()


class Tested(Protocol):
    """A row with a p-value, alone and corrected for the tests beside it."""

    @property
    def p(self) -> float | None: ...

    @property
    def p_adjusted(self) -> float | None: ...


def p_heading(rows: Iterable[Tested], say: Words) -> str:
    """The name of a column of p values; it says so where they are corrected for their number."""
    is_adjusted = any(row.p_adjusted != row.p for row in rows)
    return say("chart.p_adjusted" if is_adjusted else "chart.p")


def decision_lines(test: SequentialTest, noun: str, say: Words) -> Iterator[Text]:
    """Yield a sentence for each comparison of a sequential test, and what was saved in all."""
    yield from sentence_lines(decision_answer(each, noun, say) for each in test.comparisons)
    saved = "saved" if test.saved_units else "nothing_saved"
    values = {"alpha": test.alpha, "n": test.saved_units, "of": test.of}
    yield paragraph(say(f"terminal.{saved}", **values))
    yield from note_lines(test.notes, say, None)
