"""A sample and the verdicts about it, as a person is shown them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from evenhand import jsontext
from evenhand.judgment import Evidence, Judgment, Verdict
from evenhand.kinds.blocks import (
    NO_BREAK,
    Block,
    Cell,
    Gloss,
    Items,
    Joined,
    Label,
    Mark,
    Named,
    Number,
    Piece,
    Reason,
    ShownJudgment,
    ShownUnit,
    Table,
    Text,
    about_unit,
    cells,
    labels,
)
from evenhand.kinds.rubric.verdict import RubricVerdict, measure_sample
from evenhand.units import Sample

Quotes = Sequence[tuple[int, Evidence]]
"""The quotes of a judgment, each with its number among those of all judgments of the unit."""


def present(sample: Sample, judgments: Sequence[Judgment]) -> ShownUnit:
    """Return a sample, its output with every quote of every judgment marked and numbered."""
    numbers = count(1)
    quotes = [[(next(numbers), quote) for quote in judgment.evidence] for judgment in judgments]
    marks = [
        Mark(quote.start, quote.end, number, f"{number} {quote.dimension}")
        for each in quotes
        for number, quote in each
    ]
    texts = [
        Text(label=Label("unit.question"), text=sample.question, short="Q"),
        Text(label=Label("unit.output"), text=sample.model_output, marks=marks, short="A"),
    ]
    return ShownUnit(
        # There are no texts of what was judged elsewhere.
        unit=[text for text in texts if text.text],
        measured=measure_sample(sample),
        about=about_unit(sample.extras, sample.meta),
        judgments=list(map(_present_judgment, judgments, quotes)),
    )


def _present_judgment(judgment: Judgment, quotes: Quotes) -> ShownJudgment:
    if not isinstance(judgment, Verdict):
        return ShownJudgment()
    verdict = judgment.value
    assert isinstance(verdict, RubricVerdict)
    scores = [(name, jsontext.dump(each.score), each) for name, each in verdict.scores.items()]
    return ShownJudgment(
        line=[Cell(" ".join(f"{name}{NO_BREAK}{score}" for name, score, _ in scores))],
        blocks=list(_present_verdict(verdict, quotes)),
        reasons=[
            Reason(name, score, each.rationale, each.evidence) for name, score, each in scores
        ],
    )


def _present_verdict(verdict: RubricVerdict, quotes: Quotes) -> Iterator[Block]:
    """Yield scores with reasons and numbered quotes, then tags and notes."""
    rows: list[list[Cell]] = []
    for name, each in verdict.scores.items():
        located = [quote for quote in quotes if quote[1].dimension == name]
        # What was judged elsewhere may have quotes that stand nowhere.
        evidence = list(map(_present_quote, each.evidence, located))
        score = Cell(Number(float(each.score)), "strong")
        rows.append(cells([Named(name), score, each.rationale, Joined(evidence, "\n")]))
    head = labels("dimension", "score", "rationale", "evidence")
    yield Table(label=Label("unit.scores"), head=head, rows=rows)
    if verdict.failure_tags:
        tags = [Joined([tag, Gloss("tag", tag)]) for tag in verdict.failure_tags]
        yield Items(label=Label("unit.tags"), items=tags, tone="warn")
    if verdict.notes:
        yield Text(label=Label("unit.notes"), text=verdict.notes)


def _present_quote(text: str, numbered: tuple[int, Evidence]) -> Piece:
    number, quote = numbered
    offsets: list[Piece] = [f"{quote.start}:{quote.end}"]
    offsets += [] if quote.match == "exact" else [Gloss("match", quote.match)]
    return Joined([f"{number} “{text}” [", Joined(offsets, ", "), "]"], "")
