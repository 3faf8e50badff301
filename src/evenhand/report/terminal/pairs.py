"""Judged pairs as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.terminal.console import TextTable, legend, paragraph, table
from evenhand.report.terminal.tables import count_noun, cut, safe
from evenhand.stats.pairwise import PairFigures, Proportion

if TYPE_CHECKING:
    from evenhand.stats.estimate import Estimate

TOPICS_SHOWN = 20
JUDGES_SHOWN = 20
TITLE = 40
"""Columns for what a topic is called."""
RANKED_FROM = 2
"""Of two candidates a sentence says all that a ranked table would."""


def pair_tables(
    figures: PairFigures, titles: Mapping[str, str], *, with_standings: bool = True
) -> Iterator[RenderableType]:
    """All that is said of judged pairs, top to bottom; `titles` are what topics are called."""
    if figures.standings:
        if with_standings:
            yield standings_table(figures)
            yield ""
        yield figures_table(figures)
    if figures.judges:
        yield ""
        yield judges_table(figures)
    if any(len(sets.candidates) > 2 for sets in figures.fronts.values()):
        yield ""
        yield fronts_table(figures, titles)


def standings_table(figures: PairFigures) -> TextTable:
    """Return the table of wins, losses, ties and uncertain pairs of every candidate."""
    grid = table("candidate", "wins", "losses", "ties", "uncertain", right=range(1, 5))
    ranked = sorted(figures.standings.items(), key=lambda item: (-item[1].wins, item[1].losses))
    for name, standing in ranked:
        grid.add_row(
            safe(name),
            *map(str, (standing.wins, standing.losses, standing.ties, standing.uncertain)),
        )
    return grid


def figures_table(figures: PairFigures) -> Table:
    """Return the table of verdicts, rounds and consistency of the two orders."""
    return legend(_figures(figures))


def _figures(figures: PairFigures) -> Iterator[tuple[str, str]]:
    outcomes = figures.outcomes
    won = f"{outcomes['A']} for A, {outcomes['B']} for B, {outcomes['tie']} tie"
    yield "verdicts", f"{won}, {outcomes['uncertain']} uncertain"
    endings = figures.settled
    once = f", {endings['one_order']} in one order only" if endings["one_order"] else ""
    yield "settled", f"{endings['stable']} at once, {endings['resolved']} in a later round{once}"
    if figures.first_rounds:
        yield "position consistency", share(figures.consistency, "first rounds")
        yield "first slot preferred", share(figures.first_slot, "passes with a winner")
        differ = ", ".join(f"{safe(c)} {n}" for c, n in figures.contradictions.most_common())
        yield "orders contradict", differ or "on no criterion"
    if figures.self_contradictions:
        count = f"{figures.self_contradictions} of {figures.passes} passes"
        yield "judge against itself", f"{count} name a winner that their marks do not give"
    if sets_of_two := [sets for sets in figures.fronts.values() if len(sets.candidates) == 2]:
        kept_two = sum(len(sets.front) == 2 for sets in sets_of_two)
        yield (
            "kept",
            f"both candidates on {kept_two} of {count_noun(len(sets_of_two), 'topic')} of two",
        )
    if figures.extra_calls:
        yield "later rounds took", f"{figures.extra_calls} calls"
    if figures.agreement.n:
        yield "judges agree", share(figures.agreement, "pairs of verdicts")
    if figures.outcomes.total() > figures.panel.total():
        panel = ", ".join(f"{n} {winner}" for winner, n in figures.panel.most_common())
        yield "majority", panel


def judges_table(figures: PairFigures) -> TextTable:
    """The judges of a panel side by side."""
    grid = table(
        "judge", "A", "B", "tie", "uncertain", "consistent", "first slot", right=range(1, 7)
    )
    for name, behaviour in list(figures.judges.items())[:JUDGES_SHOWN]:
        counts = [str(behaviour.outcomes[outcome]) for outcome in ("A", "B", "tie", "uncertain")]
        grid.add_row(
            safe(name),
            *counts,
            _to_percent(behaviour.consistency),
            _to_percent(behaviour.first_slot),
        )
    if len(figures.judges) > JUDGES_SHOWN:
        grid.add_row(f"and {len(figures.judges) - JUDGES_SHOWN} more", style="dim")
    return grid


def criteria_line(names: Mapping[str, str]) -> Iterator[Text]:
    """Yield a line with the meanings of the short names of criteria, if any are known."""
    texts = [f"{name}{NO_BREAK}{text}" for name, text in names.items() if text]
    if texts:
        yield paragraph(f"{'; '.join(texts)}.", style="dim")


def _to_percent(proportion: Proportion) -> str:
    return "-" if proportion.value is None else f"{100 * proportion.value:.0f} %"


def share(proportion: Proportion | Estimate, of: str) -> str:
    """Return a share with its interval, in percent."""
    if proportion.value is None or proportion.low is None or proportion.high is None:
        return f"no {of}"
    low, high = round(100 * proportion.low), round(100 * proportion.high)
    return f"{100 * proportion.value:.0f} % [{low}, {high}] of {proportion.n:g} {of}"


def fronts_table(figures: PairFigures, titles: Mapping[str, str]) -> TextTable:
    """Which candidates of each topic with more than two stay."""
    grid = table("topic", "front", "pareto")
    fronts = {topic: sets for topic, sets in figures.fronts.items() if len(sets.candidates) > 2}
    for topic, sets in list(fronts.items())[:TOPICS_SHOWN]:
        front, best = (safe(", ".join(names)) or "none" for names in (sets.front, sets.pareto))
        title = cut(titles.get(topic, topic), TITLE)
        grid.add_row(title + ("" if sets.complete else " (incomplete)"), front, best)
    if len(fronts) > TOPICS_SHOWN:
        rest = len(fronts) - TOPICS_SHOWN
        grid.add_row(f"and {rest} more", "evenhand show --json", "", style="dim")
    return grid
