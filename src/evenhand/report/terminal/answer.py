"""The answer of a run on a terminal: the sentences and the ranked table of a report, in English."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from evenhand.kinds.blocks import NO_BREAK
from evenhand.report.html.answer import Sentence, answers, comparison_answers
from evenhand.report.html.build import Difference, Report
from evenhand.report.html.page import Words, words
from evenhand.report.html.ranks import Ranking, ranking
from evenhand.report.terminal.console import TextTable, paragraph, table
from evenhand.report.terminal.pairs import RANKED_FROM
from evenhand.report.terminal.tables import safe
from evenhand.stats.comparison import Comparison

_PLAIN = str.maketrans({"→": "->", "−": "-", "–": "-"})
_SENTENCE_STYLES = {"dimensions": "", "statistics": "dim"}
_STYLES = {"good": "green", "bad": "red"}


def english() -> Words:
    """The words of a terminal."""
    return words("en")


def plain_text(text: str) -> str:
    """A text of a page in the characters that terminals are used to."""
    return safe(text.translate(_PLAIN).replace(NO_BREAK, " "))


def sentence_lines(sentences: Iterable[Sentence]) -> Iterator[Text]:
    """Sentences one below the other; what is about dimensions or tests is no headline."""
    for sentence in sentences:
        style = _SENTENCE_STYLES.get(sentence.tone, "bold")
        yield paragraph(sentence.text.translate(_PLAIN), style=style)


def comparison_sentences(
    comparison: Comparison, differences: Sequence[Difference]
) -> Iterator[Text]:
    """Yield the sentences on a comparison, as a report has them."""
    noun = "task" if "task_name" in comparison.pair_by else "question"
    answers = comparison_answers(differences, noun, english(), is_duel=comparison.is_duel)
    yield from sentence_lines(answers)


def report_lines(report: Report) -> Iterator[RenderableType]:
    """The answer of a run, what speaks against it, and its ranked table where more than two are
    ranked."""
    yield from sentence_lines(answers(report, english()))
    yield from (paragraph(warning, style="yellow") for warning in report.warnings)
    table_of = ranking(report, english())
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
