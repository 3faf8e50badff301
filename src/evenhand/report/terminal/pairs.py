"""Judged pairs as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from evenhand.report.terminal.tables import safe, table
from evenhand.stats.pairwise import PairFigures
from evenhand.stats.proportion import Proportion

TOPICS_SHOWN = 20
JUDGES_SHOWN = 20


def pair_tables(figures: PairFigures) -> Iterator[RenderableType]:
    """All that is said of judged pairs, top to bottom."""
    if figures.standings:
        yield standings_table(figures)
        yield ""
        yield figures_table(figures)
    if figures.judges:
        yield ""
        yield judges_table(figures)
    if figures.fronts:
        yield ""
        yield fronts_table(figures)


def standings_table(figures: PairFigures) -> Table:
    """How every candidate fared."""
    made = table("candidate", "wins", "losses", "ties", "uncertain", right=range(1, 5))
    ranked = sorted(figures.standings.items(), key=lambda one: (-one[1].wins, one[1].losses))
    for name, one in ranked:
        made.add_row(safe(name), *map(str, (one.wins, one.losses, one.ties, one.uncertain)))
    return made


def figures_table(figures: PairFigures) -> Table:
    """What is known about the judge from its two orders."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, said in _figures(figures):
        made.add_row(name, said)
    return made


def _figures(figures: PairFigures) -> Iterator[tuple[str, str]]:
    outcomes = figures.outcomes
    won = f"{outcomes['A']} for A, {outcomes['B']} for B, {outcomes['tie']} tie"
    yield "verdicts", f"{won}, {outcomes['uncertain']} uncertain"
    settled = figures.settled
    once = f", {settled['one_order']} in one order only" if settled["one_order"] else ""
    yield "settled", f"{settled['stable']} at once, {settled['resolved']} in a later round{once}"
    if figures.first_rounds:
        yield "position consistency", share(figures.consistency, "first rounds")
        yield "first slot preferred", share(figures.first_slot, "passes with a winner")
        differ = ", ".join(f"{safe(c)} {n}" for c, n in figures.contradictions.most_common())
        yield "orders contradict", differ or "on no criterion"
    if figures.self_contradictions:
        count = f"{figures.self_contradictions} of {figures.passes} passes"
        yield "judge against itself", f"{count} name a winner that their marks do not give"
    if figures.extra_calls:
        yield "later rounds took", f"{figures.extra_calls} calls"
    if figures.agreement.n:
        yield "judges agree", share(figures.agreement, "pairs of verdicts")
    if figures.outcomes.total() > figures.panel.total():
        panel = ", ".join(f"{n} {winner}" for winner, n in figures.panel.most_common())
        yield "majority", panel


def judges_table(figures: PairFigures) -> Table:
    """The judges of a panel side by side."""
    made = table(
        "judge", "A", "B", "tie", "uncertain", "consistent", "first slot", right=range(1, 7)
    )
    for name, one in list(figures.judges.items())[:JUDGES_SHOWN]:
        counts = [str(one.outcomes[outcome]) for outcome in ("A", "B", "tie", "uncertain")]
        made.add_row(safe(name), *counts, _percent(one.consistency), _percent(one.first_slot))
    if len(figures.judges) > JUDGES_SHOWN:
        made.add_row(f"and {len(figures.judges) - JUDGES_SHOWN} more", style="dim")
    return made


def _percent(found: Proportion) -> str:
    return "-" if found.value is None else f"{100 * found.value:.0f} %"


def share(found: Proportion, of: str) -> str:
    """A proportion with its interval, in percent."""
    if found.value is None:
        return f"no {of}"
    low, high = round(100 * found.low), round(100 * found.high)
    return f"{100 * found.value:.0f} % [{low}, {high}] of {found.n:g} {of}"


def fronts_table(figures: PairFigures) -> Table:
    """Which candidates of each topic stay."""
    made = table("topic", "front", "pareto")
    for row, one in list(figures.fronts.items())[:TOPICS_SHOWN]:
        front, best = (safe(", ".join(names)) or "none" for names in (one.front, one.pareto))
        made.add_row(safe(row) + ("" if one.complete else " (incomplete)"), front, best)
    if len(figures.fronts) > TOPICS_SHOWN:
        rest = len(figures.fronts) - TOPICS_SHOWN
        made.add_row(f"and {rest} more", "evenhand export --fronts", "", style="dim")
    return made
