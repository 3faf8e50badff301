"""Judged pairs as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.terminal.console import TextTable, legend, paragraph, table, titles
from evenhand.report.terminal.tables import cut, safe
from evenhand.stats.votes import OUTCOMES
from evenhand.words import Words

if TYPE_CHECKING:
    from evenhand.stats.estimate import Estimate
    from evenhand.stats.pairwise import PairSummary

TOPICS_SHOWN = 20
JUDGES_SHOWN = 20
TITLE = 40
"""Columns for what a topic is called."""
RANKED_FROM = 2
"""Of two candidates a sentence says all that a ranked table would."""


def pair_tables(
    figures: PairSummary, questions: Mapping[str, str], say: Words, *, with_standings: bool = True
) -> Iterator[RenderableType]:
    """All that is said of judged pairs, top to bottom; `questions` are what topics are called."""
    if figures.standings:
        if with_standings:
            yield standings_table(figures, say)
            yield ""
        yield legend(_figures(figures, say))
    if figures.judges:
        yield ""
        yield judges_table(figures, say)
    if any(len(sets.candidates) > 2 for sets in figures.fronts.values()):
        yield ""
        yield fronts_table(figures, questions, say)


def standings_table(figures: PairSummary, say: Words) -> TextTable:
    """Return the table of wins, losses, ties and uncertain pairs of every candidate."""
    heads = titles(say, "candidate", "wins", "losses", "tied", "uncertain")
    grid = table(*heads, right=range(1, 5))
    ranked = sorted(figures.standings.items(), key=lambda item: (-item[1].wins, item[1].losses))
    for name, standing in ranked:
        counts = standing.wins, standing.losses, standing.ties, standing.uncertain
        grid.add_row(safe(name), *map(say.integer, counts))
    return grid


def _figures(figures: PairSummary, say: Words) -> Iterator[tuple[str, str]]:
    """Yield verdicts, rounds and consistency of the two orders, each with its label."""

    def line(name: str, **values: object) -> tuple[str, str]:
        return say(f"terminal.{name}"), say(f"terminal.{name}_told", **values)

    votes = figures.votes
    outcomes, endings = votes.outcomes, votes.settled
    a, b, tie = outcomes["A"], outcomes["B"], outcomes["tie"]
    yield line("verdicts", a=a, b=b, tie=tie, uncertain=outcomes["uncertain"])
    if endings:
        yield line("settled", stable=endings["stable"], resolved=endings["resolved"])
    if endings["one_order"]:
        yield line("one_order", n=endings["one_order"])
    if votes.orders.first_rounds:
        yield say("terminal.consistency"), share(votes.orders.consistency, say)
        yield say("terminal.first_slot"), share(votes.orders.first_slot, say)
    if sets_of_two := [sets for sets in figures.fronts.values() if len(sets.candidates) == 2]:
        kept_two = sum(len(sets.front) == 2 for sets in sets_of_two)
        yield line("kept", n=kept_two, of=len(sets_of_two))
    if votes.extra_calls:
        yield line("later_rounds", n=votes.extra_calls)
    if outcomes.total() > figures.panel.total():
        panel = (f"{say.gloss('verdict', name)} {n}" for name, n in figures.panel.most_common())
        yield say("terminal.majority"), say.join(panel)


def judges_table(figures: PairSummary, say: Words) -> TextTable:
    """The judges of a panel side by side."""
    heads = titles(say, "judge", "tied", "uncertain", "same_both", "first")
    grid = table(heads[0], "A", "B", *heads[1:], right=range(1, 7))
    for name, votes in list(figures.judges.items())[:JUDGES_SHOWN]:
        counts = [votes.outcomes[outcome] for outcome in OUTCOMES]
        shares = votes.orders.consistency.value, votes.orders.first_slot.value
        grid.add_row(safe(name), *map(say.integer, counts), *map(say.percent, shares))
    if len(figures.judges) > JUDGES_SHOWN:
        more = say("terminal.and_more", n=len(figures.judges) - JUDGES_SHOWN)
        grid.add_row(more, style="dim")
    return grid


def criteria_line(names: Mapping[str, str]) -> Iterator[Text]:
    """Yield a line with the meanings of the short names of criteria, if any are known."""
    texts = [f"{name}{NO_BREAK}{text}" for name, text in names.items() if text]
    if texts:
        yield paragraph("; ".join(texts), style="dim")


def share(estimate: Estimate, say: Words) -> str:
    """Return a share with its interval, in percent, and of how many."""
    told = say.share(estimate.value, estimate.low, estimate.high)
    return say("terminal.share_of", share=told, n=f"{estimate.n:g}")


def fronts_table(figures: PairSummary, questions: Mapping[str, str], say: Words) -> TextTable:
    """Which candidates of each topic with more than two stay."""
    grid = table(*titles(say, "topic", "front", "pareto"))
    fronts = {topic: sets for topic, sets in figures.fronts.items() if len(sets.candidates) > 2}
    for topic, sets in list(fronts.items())[:TOPICS_SHOWN]:
        front, best = (safe(say.join(names)) for names in (sets.front, sets.pareto))
        title = cut(questions.get(topic, topic), TITLE)
        told = title if sets.complete else say("terminal.incomplete", topic=title)
        grid.add_row(told, front, best)
    if len(fronts) > TOPICS_SHOWN:
        more = say("terminal.and_more", n=len(fronts) - TOPICS_SHOWN)
        grid.add_row(more, "evenhand show --json", "", style="dim")
    return grid
