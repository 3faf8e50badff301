"""The answer of a run on a terminal: the sentences and the ranked table of a report, in English."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from evenhand.report.html.answer import Sentence, comparison_answers
from evenhand.report.html.build import Difference
from evenhand.report.html.page import Words, words
from evenhand.report.html.ranks import Ranking
from evenhand.report.terminal.tables import cut, safe, table
from evenhand.stats.comparison.comparison import Comparison

NAME = 28
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


def ranking_table(ranking: Ranking) -> Table:
    """The ranked table in the width of a terminal: without the outcomes, which colour what they
    are about, and the intervals of means, which the tables below have."""
    places = [place for place in range(1, len(ranking.head)) if place != ranking.outcome]
    heads = [plain_text(ranking.head[place]) for place in places]
    grid = table(*heads, right=range(1, len(heads)))
    for cells, tone in zip(ranking.rows, ranking.tones, strict=True):
        texts = [plain_text(cells[place]) for place in places]
        texts[0] = cut(cells[1], NAME)
        if ranking.outcome is not None:
            texts[1] = texts[1].partition(" ")[0]
        grid.add_row(*(Text(text, _STYLES.get(tone, "")) for text in texts))
    grid.columns[0].min_width = 10
    for column in grid.columns[1:3]:
        column.no_wrap = True
    if ranking.more:
        grid.add_row(f"and {ranking.more} more")
    return grid
