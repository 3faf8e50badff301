"""Judged pairs as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from evenhand.report.terminal import cut, safe, table
from evenhand.stats.pairwise import PairFigures
from evenhand.stats.proportion import Proportion

TOPICS_SHOWN = 20


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
    won = f"{outcomes['A']} for A, {outcomes['B']} for B, {outcomes['tie']} ties"
    yield "verdicts", f"{won}, {outcomes['uncertain']} uncertain"
    settled = figures.settled
    yield "settled", f"{settled['stable']} at once, {settled['resolved']} in a later round"
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
        panel = ", ".join(f"{n} {winner}" for winner, n in figures.panel.most_common())
        yield "judges agree", share(figures.agreement, "pairs of verdicts")
        yield "majority", panel


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
        made.add_row(safe(row), safe(", ".join(one.front)), safe(", ".join(one.pareto)))
    return made


def pair_result(output: Mapping[str, Any]) -> Text:
    """A verdict on one line."""
    winner, settled = output["winner"], output["settled"]
    names = dict(zip("AB", output["candidates"], strict=True))
    text = Text(f"{winner} {safe(names[winner])}" if winner in names else winner, style="bold")
    how = "" if settled == winner else f" {settled}"
    marks = " ".join(f"{safe(c)} {mark}" for c, mark in output["criteria"].items())
    return text.append(f"{how}  {marks}", style="not bold")


def pair_block(unit: Mapping[str, Any]) -> Table:
    """The topic and both answers."""
    block = Table.grid(padding=(0, 1))
    block.add_column(style="bold")
    block.add_column(overflow="fold")
    block.add_row("Q", Text(safe(unit["topic"])))
    for side, one in zip("AB", unit["candidates"], strict=True):
        block.add_row(side, Text(safe(one["text"])).append(f"  ({safe(one['id'])})", style="dim"))
    return block


def passes_table(row: Mapping[str, Any]) -> Table:
    """Every pass and what the rounds come to; `row` is a full export row with a verdict."""
    output = row["output"]
    made = table("round", "order", "winner", *(safe(c) for c in output["criteria"]), "")
    for one in row["passes"]:
        if "winner" in one:
            marks = [mark or "" for mark in one["marks"].values()]
            flags = " ".join([*map(safe, one["flags"]), _sampled(one)])
            made.add_row(str(one["round"]), one["order"], one["winner"], *marks, flags)
    marks = [f"{m}{'*' if c in output['unstable'] else ''}" for c, m in output["criteria"].items()]
    made.add_row("", output["settled"], output["winner"], *marks, "", style="bold")
    return made


def _sampled(one: Mapping[str, Any]) -> str:
    """How a later round was drawn."""
    if one["round"] == 1:
        return ""
    drawn = one.get("sampling", {})
    return cut(" ".join(f"{name} {value:g}" for name, value in drawn.items()), 60)
