"""The answer of a run on a terminal: sentences and ranked table of a report, in English; and
the leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.html.answer import AnswerLine, answers, board_answers
from evenhand.report.html.ranking import Ranking, rank
from evenhand.report.model import Report
from evenhand.report.terminal.console import TextTable, legend, paragraph, table
from evenhand.report.terminal.pairs import RANKED_FROM, share
from evenhand.report.terminal.tables import count_noun, safe
from evenhand.stats.leaderboard import Board, BoardOptions, BoardRow, Leaderboard
from evenhand.stats.leans import Orders
from evenhand.words import Words, words

LEVELS_SHOWN = 20
TOP, BOTTOM = 40, 20
"""The number of rows of a long table that are shown, from its beginning and from its end."""
RULES = {
    "tie": "a tie",
    "uncertain": "uncertain, half a win to each",
    "drop": "dropped",
    "split": "the mean of what the orders say",
}
_PLAIN = str.maketrans({"→": "->", "−": "-", "–": "-"})
_SENTENCE_STYLES = {"dimensions": "", "statistics": "dim"}
_STYLES = {"good": "green", "bad": "red"}


def english() -> Words:
    """The words of a terminal."""
    return words("en")


def plain_text(text: str) -> str:
    """A text of a page in the characters that terminals are used to."""
    return safe(text.translate(_PLAIN).replace(NO_BREAK, " "))


def sentence_lines(sentences: Iterable[AnswerLine]) -> Iterator[Text]:
    """Sentences one below the other; what is about dimensions or tests is no headline."""
    for sentence in sentences:
        style = _SENTENCE_STYLES.get(sentence.tone, "bold")
        yield paragraph(sentence.text.translate(_PLAIN), style=style)


def report_lines(report: Report) -> Iterator[RenderableType]:
    """The answer of a run, what speaks against it, and its ranked table where more than two are
    ranked."""
    yield from sentence_lines(answers(report, english()))
    yield from (paragraph(warning, style="yellow") for warning in report.warnings)
    table_of = rank(report, english())
    if table_of is not None and len(table_of.rows) > RANKED_FROM:
        yield ""
        yield ranking_table(table_of)


def ranking_table(ranked: Ranking) -> TextTable:
    """The ranked table in the width of a terminal: without the outcomes, which colour what they
    are about, and the intervals of means, which the tables below have."""
    columns = range(ranked.name, len(ranked.head))
    places = [place for place in columns if place != ranked.outcome]
    heads = [plain_text(ranked.head[place]) for place in places]
    grid = table(*heads, right=range(1, len(heads)))
    for cells, tone in zip(ranked.rows, ranked.tones, strict=True):
        texts = [plain_text(cells[place]) for place in places]
        if ranked.outcome is not None:
            texts[1] = texts[1].partition(" ")[0]
        grid.add_row(*(Text(text, _STYLES.get(tone, "")) for text in texts))
    if ranked.more:
        grid.add_row(f"and {ranked.more} more")
    return grid


def leaderboard_lines(leaderboard: Leaderboard) -> Iterator[RenderableType]:
    """Everything that is said on a terminal, top to bottom: the answer, then the figures."""
    board = leaderboard.board
    yield from sentence_lines(board_answers(board, english()))
    yield ""
    yield board_table(leaderboard.board, leaderboard.options)
    yield ""
    yield legend(_board_figures(leaderboard))
    if leaderboard.criteria and leaderboard.criterion is None:
        yield ""
        yield criteria_table(leaderboard.criteria)
    for number, (name, level) in enumerate(leaderboard.levels.items()):
        yield ""
        if number == LEVELS_SHOWN:
            rest = len(leaderboard.levels) - LEVELS_SHOWN
            yield f"and {rest} more values of {leaderboard.by}: --json"
            break
        yield Text(safe(f"{leaderboard.by} = {name}, {_votes(level.board)}"), style="bold")
        yield board_table(level.board, leaderboard.options)
        if level.orders.first_rounds:
            yield legend(_orders(level.orders))
        notes = (note for note in level.board.notes if note not in leaderboard.board.notes)
        yield from (Text(safe(note), style="dim") for note in notes)


def board_table(board: Board, options: BoardOptions) -> TextTable:
    """A row a candidate. Win rates at equal length take the place of the number of pairs: both
    would not fit on 80 columns."""
    headers = ["rank", "candidate", "pairs", "win rate, %", "rating"]
    if options.length_controlled:
        headers = ["rank", "candidate", "win rate, %", "rating", "equal length, %"]
    grid = table(*headers, right=range(2, len(headers)), whole=[0])
    last, hidden = None, _find_hidden(board.rows)
    for place, row in enumerate(board.rows):
        if place == hidden.start:
            grid.add_row("", f"... {len(hidden):,} more: --json")
        if place in hidden:
            continue
        if last is not None and row.set != last:
            grid.add_section()
        last = row.set
        cells = [_rank(row), safe(row.candidate), _rate(row), _rating(row, options)]
        if options.length_controlled:
            ends = row.length_controlled_low, row.length_controlled_high
            cells.append(_with_ends(row.length_controlled, *ends, digits=0))
        else:
            cells.insert(2, str(row.n))
        grid.add_row(*cells)
    return grid


def _find_hidden(rows: Sequence[BoardRow]) -> range:
    """Which rows of a long table stand for themselves in JSON alone: those between the first and
    the last."""
    return range(TOP, len(rows) - BOTTOM) if len(rows) > TOP + BOTTOM + 1 else range(-1, -1)


def _rank(row: BoardRow) -> str:
    """The places that the candidate may have."""
    if row.rank is None:
        return "-"
    alone = row.rank_low == row.rank_high
    return str(row.rank) if alone else f"{row.rank_low}-{row.rank_high}"


def _to_percent(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f}"


def _rate(row: BoardRow) -> str:
    return _with_ends(row.win_rate, row.low, row.high)


def _with_ends(
    value: float | None, low: float | None, high: float | None, *, digits: int = 1
) -> str:
    if low is None or high is None:
        return _to_percent(value, digits)
    return f"{_to_percent(value, digits)} [{_to_percent(low, digits)}, {_to_percent(high, digits)}]"


def _rating(row: BoardRow, options: BoardOptions) -> str:
    if row.rating is None:
        return "-"
    form = "z.0f" if options.scale == "elo" else "+z.2f"
    if row.rating_low is None or row.rating_high is None:
        return f"{row.rating:{form}}"
    return f"{row.rating:{form}} [{row.rating_low:{form}}, {row.rating_high:{form}}]"


def _board_figures(leaderboard: Leaderboard) -> Iterator[tuple[str, str]]:
    board, orders, options = leaderboard.board, leaderboard.orders, leaderboard.options
    yield "votes", _votes(board) + _of(leaderboard)
    if options.ties == "half":
        yield "ties", "half a win to each side"
    else:
        parameter = board.tie_parameter
        yield "ties", "Davidson" + ("" if parameter is None else f", parameter {parameter:.2f}")
    rule = RULES[leaderboard.rule]
    yield (
        "conflicts",
        f"{count_noun(leaderboard.conflicts, 'verdict')} that the orders left open; rule: {rule}",
    )
    if orders.first_rounds:
        yield from _orders(orders)
    else:
        yield "consistency", "not known: no pair was judged in both orders"
    if leaderboard.fronts:
        yield "fronts", _fronts(leaderboard)
    for number, note in enumerate(board.notes):
        yield ("notes" if number == 0 else ""), note


def _orders(orders: Orders) -> Iterator[tuple[str, str]]:
    """Yield the consistency and first-slot share of the two orders, each with its label."""
    yield "consistency", share(orders.consistency, "first rounds agree")
    yield "first slot", share(orders.first_slot, "passes with a winner")


def _votes(board: Board) -> str:
    votes = f"{count_noun(board.votes, 'vote')} on "
    if board.votes != board.n:
        votes += f"{count_noun(board.n, 'pair')} of "
    votes += count_noun(board.topics, "topic")
    votes += f", {board.failed} failed" if board.failed else ""
    return votes + (f", {board.dropped} dropped" if board.dropped else "")


def _of(leaderboard: Leaderboard) -> str:
    judge = f" by {leaderboard.judge}" if leaderboard.judge else ""
    return judge + (f", on {leaderboard.criterion} alone" if leaderboard.criterion else "")


def _fronts(leaderboard: Leaderboard) -> str:
    """Return the candidates most often in the front of a topic, with their counts."""
    inside = Counter(name for sets in leaderboard.fronts.values() for name in sets.front)
    first = ", ".join(f"{name} {number}" for name, number in inside.most_common(5))
    return f"{first} of {count_noun(len(leaderboard.fronts), 'topic')}"


def criteria_table(criteria: dict[str, Board]) -> TextTable:
    """Win rates by criterion, in percent."""
    grid = table("win rate, %", *map(safe, criteria), right=range(1, len(criteria) + 1))
    rates = {
        name: {row.candidate: row.win_rate for row in board.rows}
        for name, board in criteria.items()
    }
    for candidate in next(iter(rates.values())):
        grid.add_row(
            safe(candidate), *(_to_percent(column.get(candidate), 1) for column in rates.values())
        )
    return grid
