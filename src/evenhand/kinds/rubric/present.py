"""A sample and the verdicts about it, as a person is shown them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand import jsontext
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.blocks import (
    NO_BREAK,
    Block,
    Cell,
    Gloss,
    Items,
    Joined,
    Label,
    Named,
    Number,
    Reason,
    ShownJudgment,
    ShownUnit,
    Table,
    Text,
    cells,
    labels,
)
from evenhand.kinds.rubric.verdict import RubricVerdict, measure
from evenhand.kinds.samples import Quotes, present_sample, quote_cell
from evenhand.units import Sample


def present(sample: Sample, judgments: Sequence[Judgment]) -> ShownUnit:
    """Return a sample and its judgments."""
    return present_sample(sample, measure(sample), judgments, _present_judgment)


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
        score = Cell(Number(float(each.score)), "strong")
        quoted = quote_cell(name, each.evidence, quotes)
        rows.append(cells([Named(name), score, each.rationale, quoted]))
    head = labels("dimension", "score", "rationale", "evidence")
    yield Table(label=Label("unit.scores"), head=head, rows=rows)
    if verdict.failure_tags:
        tags = [Joined([tag, Gloss("tag", tag)]) for tag in verdict.failure_tags]
        yield Items(label=Label("unit.tags"), items=tags, tone="warn")
    if verdict.notes:
        yield Text(label=Label("unit.notes"), text=verdict.notes)
