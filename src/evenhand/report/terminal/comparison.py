"""A comparison as text for a terminal: the answer first, then figures, then what to beware of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from rich.console import RenderableType
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.html.answer import SMALL, comparison_answers, is_of_hundred
from evenhand.report.html.ranking import rank_variants
from evenhand.report.terminal.answer import english, ranking_table, sentence_lines
from evenhand.report.terminal.console import TextTable, paragraph, table
from evenhand.report.terminal.tables import count_noun, safe
from evenhand.stats.comparison import OVERALL, Comparison, Decision, Row, SequentialTest
from evenhand.stats.stability import Repeats

APART = 3
"""Up to so many variants have a sentence and a table each; more stand in a table a dimension."""
NOTES = 2
"""So many notes are shown unless all are asked for."""
DESCRIPTIVE = (
    "The figures below are those of a number of units fixed before. This run was to stop once it"
    " was decided, so they only describe what was judged; what is decided stands above."
)
TESTS = {"fixed": "fixed n", "sequential": "sequential"}
"""The names of the tests, for outcomes of both in one table."""
STYLES = {"better": "green", "worse": "red", "same": "cyan", "not enough evidence": ""}
"""The colour of each outcome."""
_DECIDED = {"better": "is better than", "worse": "is worse than"}


def comparison_lines(comparison: Comparison, *, verbose: bool = False) -> Iterator[RenderableType]:
    """Yield all that is to be printed of a comparison, from top to bottom; with `verbose`, every
    note."""
    rows = rows_shown(comparison)
    yield from _headlines(comparison)
    variants = list(dict.fromkeys(row.variant for row in rows))
    if len(variants) <= APART:
        for name in variants:
            yield from _variant_lines(comparison, [row for row in rows if row.variant == name])
    else:
        for dimension in dict.fromkeys(row.dimension for row in rows):
            yield from _dimension(comparison, [row for row in rows if row.dimension == dimension])
    if comparison.tags:
        yield Text("\nShare of units with a failure tag or a critical fail")
        yield _tags_table(comparison)
    yield from _missing(comparison)
    if comparison.repeats:
        yield from _repeats(comparison.repeats)
    shown = comparison.notes if verbose else comparison.notes[:NOTES]
    for note in shown:
        yield paragraph(f"Note: {note}")
    if rest := len(comparison.notes) - len(shown):
        yield Text(f"{count_noun(rest, 'more note')}: --verbose", style="dim")


def _headlines(comparison: Comparison) -> Iterator[RenderableType]:
    """The answer to each variant's question, once: by the run's own sequential test where it has
    one, else by the test with a fixed number of units."""
    test = comparison.sequential
    tested = {decision.variant for decision in test.comparisons} if test else set[str]()
    if test:
        yield Text(decision_text(test), style="bold")
        yield Text(f"\n{DESCRIPTIVE}")
    elif not any(row.n for row in comparison.rows):
        yield paragraph(_nothing(comparison), style="bold")
        return
    noun = "task" if "task_name" in comparison.pair_by else "question"
    rest = tuple(row for row in comparison.rows if row.variant not in tested)
    yield from sentence_lines(comparison_answers(replace(comparison, rows=rest), noun, english()))
    ranking = None
    if not comparison.is_duel and len({row.variant for row in comparison.rows}) > 1:
        ranking = rank_variants(comparison, english())
    if ranking is not None:
        yield ""
        yield ranking_table(ranking)


def _nothing(comparison: Comparison) -> str:
    """Why there is no answer."""
    baseline, noun = comparison.baseline, "topic" if comparison.is_duel else "question"
    variants = list(dict.fromkeys(row.variant for row in comparison.rows))
    if not variants:
        return f"There is nothing to compare {baseline} with."
    if len(variants) > 1:
        return f"None of {len(variants)} variants shares a scored {noun} with {baseline}."
    return f"{variants[0]} and {baseline} share no scored {noun}: there is nothing to compare."


def rows_shown(comparison: Comparison) -> list[Row]:
    """The rows worth printing, overall first: of one dimension alone the overall figure says the
    same again."""
    rows = sorted(comparison.rows, key=lambda row: row.dimension != OVERALL)
    if not comparison.is_one_dimension:
        return rows
    return [row for row in rows if row.dimension != OVERALL]


def _size(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return the number of units and questions that the rows rest on."""
    unit, question = ("pair", "topic") if comparison.is_duel else ("unit", "question")
    (least, _), (n, clusters) = min(sizes := {(r.n, r.clusters) for r in rows}), max(sizes)
    size = count_noun(n, question)
    if n != clusters:
        size = f"{count_noun(n, unit)} on {count_noun(clusters, question)}"
    return size if least == n else f"{least} to {size}"


def _variant_lines(comparison: Comparison, rows: Sequence[Row]) -> Iterator[RenderableType]:
    """One variant, dimension by dimension."""
    against = f"{safe(rows[0].variant)} against {safe(comparison.baseline)}"
    yield Text(f"\n{against}, by {safe(comparison.by)}, {_size(comparison, rows)}")
    yield _rows_table(comparison, "dimension", [(row.dimension, row) for row in rows])
    yield from _more([(row.dimension, row) for row in rows])


def _dimension(comparison: Comparison, rows: Sequence[Row]) -> Iterator[RenderableType]:
    """One dimension, variant by variant."""
    against = f"{safe(rows[0].dimension)}, against {safe(comparison.baseline)}"
    yield Text(f"\n{against}, {_size(comparison, rows)}")
    ranked = sorted(rows, key=lambda row: -(row.difference or 0.0))
    yield _rows_table(comparison, "variant", [(row.variant, row) for row in ranked])


def _rows_table(comparison: Comparison, what: str, rows: Sequence[tuple[str, Row]]) -> TextTable:
    gap = f"difference [{100 * comparison.level:g} %]"
    chance = p_heading(row for _, row in rows)
    grid = table(what, "base", "mean", gap, chance, "outcome", right=(1, 2, 4), whole=[3])
    for name, row in rows:
        figures = [number_text(value, places_of(row)) for value in (row.baseline_mean, row.mean)]
        test = f" ({TESTS[row.decided_by]})" if comparison.sequential else ""
        outcome = Text(f"{row.outcome}{test}", style=STYLES[row.outcome])
        grid.add_row(safe(name), *figures, gap_text(row), p_text(row.p_adjusted), outcome)
    return grid


def _more(rows: Sequence[tuple[str, Row]]) -> Iterator[Text]:
    """Yield the effects of the rows."""
    effects = [f"{name}{NO_BREAK}{row.effect:z.2f}" for name, row in rows if row.effect is not None]
    if effects:
        yield paragraph(f"Effect: {', '.join(effects)}", style="dim")


def _tags_table(comparison: Comparison) -> TextTable:
    headers = ("tag", "variant", "base", "rate", "difference", p_heading(comparison.tags), "")
    grid = table(*headers, right=(2, 3, 5), whole=[4])
    for row in comparison.tags:
        rates = [number_text(value, 3) for value in (row.baseline_mean, row.mean)]
        outcome = "" if row.outcome == "not enough evidence" else row.outcome
        grid.add_row(
            safe(row.dimension),
            safe(row.variant),
            *rates,
            gap_text(row),
            p_text(row.p_adjusted),
            Text(outcome, style=STYLES[row.outcome]),
        )
    return grid


def _missing(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the judgments missing from each variant, and how far they could move the difference."""
    counts = comparison.missing
    lacking = sum(count.failed + count.pending for count in counts.values())
    yield Text()
    silent = [
        f"{safe(name)} {', '.join(f'{safe(d)} {n}' for d, n in count.missing_scores.items())}"
        for name, count in counts.items()
        if count.missing_scores
    ]
    alone = [
        f"{safe(name)} {count_noun(count.unpaired, 'unit')}"
        for name, count in counts.items()
        if count.unpaired
    ]
    if alone:
        yield paragraph(f"Without a partner, so not in the difference: {', '.join(alone)}.")
    if silent:
        yield Text(f"Judgments that give no score on a dimension: {'; '.join(silent)}.")
    if not lacking and not silent:
        planned = sum(count.planned for count in counts.values())
        all_of = f"All {planned} judgments have" if planned != 1 else "The one judgment has"
        yield Text(f"{all_of} a score.")
        return
    headers = ("variant", "units", "planned", "scored", "failed", "pending", "could differ by")
    grid = table(*headers, right=range(1, 6), whole=[6])
    ranges = {row.variant: _range(row) for row in reversed(rows_shown(comparison))}
    for name, count in counts.items():
        figures = (count.units, count.planned, count.scored, count.failed, count.pending)
        grid.add_row(safe(name), *map(str, figures), ranges.get(name, ""))
    yield grid
    for row in rows_shown(comparison)[:1]:
        condition = "if all that is missing lay at the ends of its scale."
        yield Text(f"The last column: {safe(row.dimension)}, {condition}", style="dim")


def _range(row: Row) -> str:
    if row.bounds is None:
        return ""
    low, high = (f"{end:+z.{places_of(row)}f}" for end in row.bounds)
    return f"{low} to {high}"


def _repeats(repeats: Repeats) -> Iterator[RenderableType]:
    yield Text(f"\nRepeats: up to {repeats.most} judgments of a unit by one judge")
    grid = table("dimension", "units", "within", "between", "share within", right=range(1, 5))
    for component in repeats.components:
        share = "-" if component.share is None else f"{100 * component.share:.0f} %"
        figures = [number_text(value, 3) for value in (component.within, component.between)]
        grid.add_row(safe(component.dimension), str(component.units), *figures, share)
    yield grid


def places_of(row: Row) -> int:
    """Decimals that suit the scale, as the sentences have them; three where a difference would read
    like none."""
    if is_of_hundred(row.scale):
        return 1
    most = max(abs(row.mean or 0), abs(row.baseline_mean or 0))
    return 3 if most <= 1 or 0 < abs(row.difference or 0) < SMALL else 2


def gap_text(row: Row) -> str:
    """A difference with its interval."""
    places = places_of(row)
    if row.difference is None:
        return "-"
    difference = f"{row.difference:+z.{places}f}"
    if row.low is None or row.high is None:
        return f"{difference} [no interval]"
    return f"{difference} [{number_text(row.low, places)}, {number_text(row.high, places)}]"


def number_text(value: float | None, places: int) -> str:
    """With so many decimals; nothing is neither above nor below nothing, so there is no -0.000."""
    return "-" if value is None else f"{value:z.{places}f}"


class Tested(Protocol):
    """A row with a p-value, alone and corrected for the tests beside it."""

    @property
    def p(self) -> float | None: ...

    @property
    def p_adjusted(self) -> float | None: ...


def p_heading(rows: Iterable[Tested]) -> str:
    """The name of a column of p values; it says so where they are corrected for their number."""
    return "p (Holm)" if any(row.p_adjusted != row.p for row in rows) else "p"


def p_text(value: float | None) -> str:
    if value is None:
        return "-"
    return "<.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.001 else f"{value:.3f}"


def decision_text(test: SequentialTest) -> str:
    """A paragraph for each comparison, and what was saved in all."""
    lines = [line for decision in test.comparisons for line in _decision_lines(decision)]
    lines += [
        f"Sequential test, looked at after every question; error at most {test.alpha:g}.",
        f"Saved: {test.saved_units} of {test.of} units were not judged; `run --to-the-end` judges"
        " them."
        if test.saved_units
        else "Nothing was saved: every unit is judged.",
    ]
    return "\n".join([*lines, *(f"Note: {safe(note)}" for note in test.notes)])


def _decision_lines(decision: Decision) -> list[str]:
    variant, baseline = safe(decision.variant), safe(decision.baseline)
    dimension = "" if decision.dimension == "overall" else f" on {safe(decision.dimension)}"
    words = _DECIDED.get(decision.outcome)
    headline = (
        f"Decided: {variant} {words} {baseline}{dimension}"
        if words
        else f"Not enough evidence: {variant} against {baseline}{dimension}"
    )
    count_noun = f"{decision.questions} of {decision.of_questions} questions"
    return [
        f"{headline},",
        f"  after {count_noun} ({decision.units} of {decision.of} units)",
        f"  {_sequence_text(decision)}",
    ]


def _sequence_text(decision: Decision) -> str:
    low, high, level = decision.low, decision.high, 100 * (1 - decision.alpha)
    if decision.measure == "win_rate":
        return f"win rate between {low:.1%} and {high:.1%} ({level:g} % confidence sequence)"
    return f"difference between {low:+z.3f} and {high:+z.3f} ({level:g} % confidence sequence)"
