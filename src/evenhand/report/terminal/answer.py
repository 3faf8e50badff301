"""The answer of a run on a terminal: its sentences and ranked table; and the leaderboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from evenhand.report.html.answer import AnswerLine, answers, board_answers
from evenhand.report.html.ranking import Ranking, rank
from evenhand.report.model import WARNINGS, Report
from evenhand.report.terminal.console import TextTable, legend, paragraph, table, titles
from evenhand.report.terminal.pairs import RANKED_FROM, share
from evenhand.report.terminal.tables import safe
from evenhand.stats.leaderboard import Board, BoardOptions, BoardRow, Leaderboard
from evenhand.stats.leans import Orders
from evenhand.words import Words

LEVELS_SHOWN = 20
NOTES = 2
"""So many notes are shown unless all are asked for."""
TOP, BOTTOM = 40, 20
"""The number of rows of a long table that are shown, from its beginning and from its end."""
_SENTENCE_STYLES = {"dimensions": "", "statistics": "dim"}
_STYLES = {"good": "green", "bad": "red"}


def sentence_lines(sentences: Iterable[AnswerLine]) -> Iterator[Text]:
    """Sentences one below the other; what is about dimensions or tests is no headline."""
    for sentence in sentences:
        yield paragraph(sentence.text, style=_SENTENCE_STYLES.get(sentence.tone, "bold"))


def note_lines(notes: Sequence[str], say: Words, flag: str | None) -> Iterator[Text]:
    """Yield notes; the first few and how many there are more where `flag` shows all of them."""
    shown = notes if flag is None else notes[:NOTES]
    for note in shown:
        yield paragraph(say("terminal.note", text=say.message(note)))
    if rest := len(notes) - len(shown):
        yield Text(say("terminal.more_notes", n=rest, flag=flag), style="dim")


def trust_lines(sentences: Iterable[str], say: Words) -> Iterator[Text]:
    """Yield how far the judges may be trusted: first a warning, if there is one, then the rest as
    one paragraph."""
    rest = []
    for sentence in sentences:
        if getattr(sentence, "key", "") in WARNINGS:
            yield paragraph(say.message(sentence), style="yellow")
        else:
            rest.append(say.message(sentence))
    yield paragraph(say.join(rest, between="sentence"), style="dim")


def report_lines(report: Report, say: Words) -> Iterator[RenderableType]:
    """The answer of a run, what speaks against it, and its ranked table where more than two are
    ranked."""
    yield from sentence_lines(answers(report, say))
    yield from (paragraph(say.message(warning), style="yellow") for warning in report.warnings)
    table_of = rank(report, say)
    if table_of is not None and len(table_of.rows) > RANKED_FROM:
        yield ""
        yield ranking_table(table_of, say)


def ranking_table(ranked: Ranking, say: Words) -> TextTable:
    """The ranked table in the width of a terminal: without the outcomes, which colour what they
    are about, and the intervals of means, which the tables below have."""
    columns = range(ranked.name, len(ranked.head))
    places = [place for place in columns if place != ranked.outcome]
    heads = [ranked.head[place] for place in places]
    grid = table(*heads, right=range(1, len(heads)))
    for cells, tone in zip(ranked.rows, ranked.tones, strict=True):
        texts = [safe(cells[place]) for place in places]
        if ranked.outcome is not None:
            texts[1] = texts[1].partition(" ")[0]
        grid.add_row(*(Text(text, _STYLES.get(tone, "")) for text in texts))
    if ranked.more:
        grid.add_row(say("terminal.and_more", n=ranked.more))
    return grid


def leaderboard_lines(
    leaderboard: Leaderboard, say: Words, *, every: bool = False
) -> Iterator[RenderableType]:
    """Everything that is said on a terminal, top to bottom: the answer, then the figures; with
    `every` all notes and figures."""
    board = leaderboard.board
    yield from sentence_lines(board_answers(board, say))
    brackets = say("answer.level", level=say.percent(leaderboard.options.level))
    yield from trust_lines([brackets, *leaderboard.trust], say)
    yield ""
    yield board_table(board, leaderboard.options, say)
    yield ""
    yield legend(_board_figures(leaderboard, say, every=every))
    yield from note_lines(board.notes, say, None if every else "--verbose")
    if leaderboard.criteria and leaderboard.criterion is None:
        yield ""
        yield criteria_table(leaderboard.criteria, say)
    for number, (name, level) in enumerate(leaderboard.levels.items()):
        yield ""
        if number == LEVELS_SHOWN:
            rest = len(leaderboard.levels) - LEVELS_SHOWN
            yield say("terminal.more_values", n=rest, field=safe(leaderboard.by))
            break
        about = {"field": leaderboard.by, "value": name, "votes": _votes(level.board, say)}
        yield paragraph(say("terminal.level", **about), style="bold")
        yield board_table(level.board, leaderboard.options, say)
        if level.orders.first_rounds:
            yield legend(_orders(level.orders, say))
        notes = (note for note in level.board.notes if note not in board.notes)
        yield from (paragraph(say.message(note), style="dim") for note in notes)


def board_table(board: Board, options: BoardOptions, say: Words) -> TextTable:
    """A row a candidate. Win rates at equal length take the place of the number of pairs: both
    would not fit on 80 columns."""
    columns = ["rank", "candidate", "pairs", "win_rate", "rating"]
    if options.length_controlled:
        columns = ["rank", "candidate", "win_rate", "rating", "equal_length"]
    grid = table(*titles(say, *columns), right=range(2, len(columns)), whole=[0])
    last, hidden = None, _find_hidden(board.rows)
    for place, row in enumerate(board.rows):
        if place == hidden.start:
            grid.add_row("", say("terminal.more_rows", n=len(hidden)))
        if place in hidden:
            continue
        if last is not None and row.set != last:
            grid.add_section()
        last = row.set
        cells = [_rank(row), safe(row.candidate), _rate(row, say), _rating(row, options, say)]
        if options.length_controlled:
            ends = row.length_controlled_low, row.length_controlled_high
            cells.append(_with_ends(row.length_controlled, *ends, say, digits=0))
        else:
            cells.insert(2, say.integer(row.n))
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


def _rate(row: BoardRow, say: Words) -> str:
    return _with_ends(row.win_rate, row.low, row.high, say)


def _with_ends(
    value: float | None, low: float | None, high: float | None, say: Words, *, digits: int = 1
) -> str:
    """Return a share in percent with its interval."""
    value, low, high = (None if end is None else 100 * end for end in (value, low, high))
    ends = "" if low is None or high is None else say.interval(low, high, digits)
    return f"{say.number(value, digits)} {ends}".rstrip()


def _rating(row: BoardRow, options: BoardOptions, say: Words) -> str:
    tell, digits = (say.number, 0) if options.scale == "elo" else (say.signed, 2)
    value = tell(row.rating, digits)
    if row.rating_low is None or row.rating_high is None:
        return value
    return f"{value} {say.interval(row.rating_low, row.rating_high, digits)}"


def _board_figures(
    leaderboard: Leaderboard, say: Words, *, every: bool
) -> Iterator[tuple[str, str]]:
    board, orders, options = leaderboard.board, leaderboard.orders, leaderboard.options
    yield say("terminal.votes"), _votes(board, say)
    if leaderboard.judge:
        yield say("terminal.judge"), leaderboard.judge
    if leaderboard.criterion:
        yield say("terminal.criterion"), leaderboard.criterion
    rule = {"n": leaderboard.conflicts, "rule": leaderboard.rule}
    yield say("terminal.conflicts"), say("terminal.conflicts_told", **rule)
    if not every:
        return
    ties = "half" if options.ties == "half" else "davidson"
    yield say("terminal.ties"), say(f"terminal.ties_{ties}", parameter=board.tie_parameter)
    if orders.first_rounds:
        yield from _orders(orders, say)
    if leaderboard.fronts:
        yield say("terminal.fronts"), _fronts(leaderboard, say)


def _orders(orders: Orders, say: Words) -> Iterator[tuple[str, str]]:
    """Yield the consistency and first-slot share of the two orders, each with its label."""
    yield say("terminal.consistency"), share(orders.consistency, say)
    yield say("terminal.first_slot"), share(orders.first_slot, say)


def _votes(board: Board, say: Words) -> str:
    counts = {"n": board.votes, "pairs": board.n, "topics": board.topics}
    told = [say("terminal.votes_told" if board.votes == board.n else "terminal.votes_of", **counts)]
    told += [say("terminal.votes_failed", n=board.failed)] if board.failed else []
    told += [say("terminal.votes_dropped", n=board.dropped)] if board.dropped else []
    return say.join(told)


def _fronts(leaderboard: Leaderboard, say: Words) -> str:
    """Return the candidates most often in the front of a topic, with their counts."""
    inside = Counter(name for sets in leaderboard.fronts.values() for name in sets.front)
    first = say.join(f"{name} {number}" for name, number in inside.most_common(5))
    return say("terminal.fronts_told", candidates=first, n=len(leaderboard.fronts))


def criteria_table(criteria: dict[str, Board], say: Words) -> TextTable:
    """Win rates by criterion, in percent."""
    heads = (safe(say.dimension(name)) for name in criteria)
    grid = table(say("terminal.win_rate"), *heads, right=range(1, len(criteria) + 1))
    rates = {
        name: {row.candidate: row.win_rate for row in board.rows}
        for name, board in criteria.items()
    }
    for candidate in next(iter(rates.values())):
        values = (column.get(candidate) for column in rates.values())
        grid.add_row(safe(candidate), *(_with_ends(rate, None, None, say) for rate in values))
    return grid
