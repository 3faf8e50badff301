"""The answer of a run on a terminal: the sentences and the ranked table of a report, in English."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.html.answer import Sentence, answers, comparison_answers
from evenhand.report.html.build import Difference, Report
from evenhand.report.html.page import Words, words
from evenhand.report.html.ranks import Ranking, ranking
from evenhand.report.terminal.tables import cut, safe, table
from evenhand.stats.comparison.comparison import Comparison

NAME = 28
RANKED_FROM = 2
"""Of two a sentence says all that a table would."""
_PLAIN = str.maketrans({"→": "->", "−": "-", "–": "-", "\u00a0": " "})
_STYLES = {"good": "green", "bad": "red"}


def english() -> Words:
    """The words of a terminal."""
    return words("en")


def plain_text(text: str) -> str:
    """A text of a page in the characters that terminals are used to."""
    return safe(text.translate(_PLAIN))


def sentence_lines(sentences: Iterable[Sentence]) -> Iterator[Text]:
    """Sentences one below the other; what is about dimensions is no headline."""
    for sentence in sentences:
        yield Text(plain_text(sentence.text), style="" if sentence.tone == "dimensions" else "bold")


def comparison_sentences(
    comparison: Comparison, differences: Sequence[Difference]
) -> Iterator[Text]:
    """What a comparison says, as a report says it."""
    noun = "task" if "task_name" in comparison.pair_by else "question"
    answers = comparison_answers(differences, noun, english(), is_duel=comparison.is_duel)
    yield from sentence_lines(answers)


def criteria_line(names: Mapping[str, str]) -> Iterator[Text]:
    """What the short names of criteria stand for, where somebody says."""
    told = [f"{name} {text}" for name, text in names.items() if text]
    if told:
        yield Text(plain_text(f"{'; '.join(told)}."), style="dim")


def report_lines(report: Report) -> Iterator[RenderableType]:
    """The answer of a run, and its ranked table where more than two are ranked."""
    yield from sentence_lines(answers(report, english()))
    table_of = ranking(report, english())
    if table_of is not None and len(table_of.rows) > RANKED_FROM:
        yield ""
        yield ranking_table(table_of)


def ranking_table(ranked: Ranking) -> Table:
    """The ranked table in the width of a terminal: without the outcomes, which colour what they
    are about, and the intervals of means, which the tables below have."""
    places = [place for place in range(1, len(ranked.head)) if place != ranked.outcome]
    heads = [plain_text(ranked.head[place]) for place in places]
    grid = table(*heads, right=range(1, len(heads)))
    for cells, tone in zip(ranked.rows, ranked.tones, strict=True):
        texts = [plain_text(cells[place]) for place in places]
        texts[0] = cut(cells[1], NAME)
        if ranked.outcome is not None:
            texts[1] = texts[1].partition(" ")[0]
        grid.add_row(*(Text(text, _STYLES.get(tone, "")) for text in texts))
    grid.columns[0].min_width = 10
    for column in grid.columns[1:3]:
        column.no_wrap = True
    if ranked.more:
        grid.add_row(f"and {ranked.more} more")
    return grid
