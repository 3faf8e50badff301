"""A leaderboard as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from evenhand.report.terminal.pairs import share
from evenhand.report.terminal.tables import cut, safe, table
from evenhand.stats.ranking.board import Board, Options, Position, Row
from evenhand.stats.ranking.leaderboard import Leaderboard

LEVELS_SHOWN = 20
NAME = 28
RULES = {
    "tie": "a tie",
    "uncertain": "uncertain, half a win to each",
    "drop": "dropped",
    "split": "the mean of what the orders say",
}


def leaderboard_lines(found: Leaderboard) -> Iterator[RenderableType]:
    """Everything that is said on a terminal, top to bottom."""
    yield board_table(found.board, found.options)
    yield ""
    yield Grid(_figures(found))
    if found.criteria and found.criterion is None:
        yield ""
        yield criteria_table(found.criteria)
    for number, (level, one) in enumerate(found.levels.items()):
        yield ""
        if number == LEVELS_SHOWN:
            yield f"and {len(found.levels) - LEVELS_SHOWN} more values of {found.by}: --json"
            break
        yield Text(safe(f"{found.by} = {level}, {_votes(one)}"), style="bold")
        yield board_table(one, found.options)
        own = (note for note in one.notes if note not in found.board.notes)
        yield from (Text(safe(note), style="dim") for note in own)


def board_table(found: Board, options: Options) -> Table:
    """A row a candidate."""
    more = [name for name, asked in _columns(options) if asked]
    headers = ("rank", "candidate", "n", "win rate, %", "rating", *more)
    made = table(*headers, right=range(2, len(headers)))
    for index in (0, 2, 3, 4):
        made.columns[index].no_wrap = True
    last = None
    for row in found.rows:
        if last is not None and row.set != last:
            made.add_section()
        last = row.set
        cells = [
            _rank(row),
            cut(row.candidate, NAME),
            str(row.n),
            _rate(row),
            _rating(row, options),
        ]
        made.add_row(*cells, *_further(row, options))
    return made


def _columns(options: Options) -> tuple[tuple[str, bool], ...]:
    return (("at equal length, %", options.length_controlled), ("Elo", options.elo))


def _further(row: Row, options: Options) -> list[str]:
    controlled = _percent(row.length_controlled) if options.length_controlled else None
    elo = ("-" if row.elo is None else f"{row.elo:.0f}") if options.elo else None
    return [one for one in (controlled, elo) if one is not None]


def _rank(row: Row) -> str:
    """The places that the candidate may have."""
    if row.rank is None:
        return "-"
    alone = row.rank_low == row.rank_high
    return str(row.rank) if alone else f"{row.rank_low}-{row.rank_high}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _rate(row: Row) -> str:
    if row.low is None or row.high is None:
        return _percent(row.win_rate)
    return f"{_percent(row.win_rate)} [{_percent(row.low)}, {_percent(row.high)}]"


def _rating(row: Row, options: Options) -> str:
    if row.rating is None:
        return "-"
    form = ".0f" if options.scale == "elo" else "+.2f"
    sign = "~" if row.regularised else ""
    if row.rating_low is None and row.rating_high is None:
        return f"{sign}{row.rating:{form}}"
    low = "open" if row.rating_low is None else f"{row.rating_low:{form}}"
    high = "open" if row.rating_high is None else f"{row.rating_high:{form}}"
    return f"{sign}{row.rating:{form}} [{low}, {high}]"


class Grid:
    """Names with what is said of each beside them. Unlike a table it pads no line with blanks."""

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        self._lines = list(lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        left = max((len(name) for name, _ in self._lines), default=0) + 2
        for name, said in self._lines:
            wrapped = Text(safe(said)).wrap(console, max(options.max_width - left, 1))
            for number, line in enumerate(wrapped):
                opening = (name if number == 0 else "").ljust(left)
                made = Text.assemble((opening, "bold"), line)
                made.rstrip()
                yield made


def _figures(found: Leaderboard) -> Iterator[tuple[str, str]]:
    made, orders, options = found.board, found.orders, found.options
    yield "votes", _votes(made) + _of(found)
    if options.ties == "half":
        yield "ties", "half a win to each side"
    else:
        known = made.tie_parameter
        yield "ties", "Davidson" + ("" if known is None else f", parameter {known:.2f}")
    rule = RULES[found.rule]
    yield (
        "conflicts",
        f"{_counted(found.conflicts, 'verdict')} that the orders left open; rule: {rule}",
    )
    if orders.first_rounds:
        yield "consistency", share(orders.consistency, "first rounds agree")
        yield "first slot", share(orders.first_slot, "passes with a winner")
    else:
        yield "consistency", "not known: no pair was judged in both orders"
    if made.position:
        yield "position", _position(made.position)
    if found.fronts:
        yield "fronts", _fronts(found)
    for number, note in enumerate(made.notes):
        yield ("notes" if number == 0 else ""), note


def _position(found: Position) -> str:
    known = found.low is not None and found.high is not None
    limits = f" [{found.low:+.2f}, {found.high:+.2f}]" if known else ""
    return f"being shown first is worth {found.term:+.2f}{limits} in log odds"


def _votes(made: Board) -> str:
    said = _counted(made.n, "vote")
    said += f", {made.failed} failed" if made.failed else ""
    return said + (f", {made.dropped} dropped" if made.dropped else "")


def _of(found: Leaderboard) -> str:
    judge = f" by {found.judge}" if found.judge else ""
    return judge + (f", on {found.criterion} alone" if found.criterion else "")


def _fronts(found: Leaderboard) -> str:
    """How often each candidate is in the front of a topic."""
    inside = Counter(name for one in found.fronts.values() for name in one.front)
    first = ", ".join(f"{name} {number}" for name, number in inside.most_common(5))
    return f"{first} of {_counted(len(found.fronts), 'topic')} with more than two candidates"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def criteria_table(criteria: dict[str, Board]) -> Table:
    """Win rates by criterion, in percent."""
    made = table("win rate, %", *map(safe, criteria), right=range(1, len(criteria) + 1))
    rates = {
        name: {row.candidate: row.win_rate for row in one.rows} for name, one in criteria.items()
    }
    for candidate in next(iter(rates.values())):
        made.add_row(
            cut(candidate, NAME), *(_percent(one.get(candidate)) for one in rates.values())
        )
    return made
