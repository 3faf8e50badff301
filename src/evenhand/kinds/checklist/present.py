"""A sample and the answers to its checklist, as a person is shown them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand import jsontext
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.blocks import (
    Block,
    Cell,
    Gloss,
    Items,
    Joined,
    Label,
    Named,
    Number,
    Piece,
    Reason,
    ShownJudgment,
    ShownUnit,
    Table,
    Text,
    cells,
    labels,
)
from evenhand.kinds.checklist.verdict import ChecklistVerdict, measure
from evenhand.kinds.samples import Quotes, present_sample, quote_cell
from evenhand.units import Sample


def present(sample: Sample, judgments: Sequence[Judgment]) -> ShownUnit:
    """Return a sample and its judgments."""
    return present_sample(sample, measure(sample), judgments, _present_judgment)


def _present_judgment(judgment: Judgment, quotes: Quotes) -> ShownJudgment:
    if not isinstance(judgment, Verdict):
        return ShownJudgment()
    verdict = judgment.value
    assert isinstance(verdict, ChecklistVerdict)
    return ShownJudgment(
        line=[Cell(Joined(list(_outcome(verdict))), "strong")],
        blocks=list(_present_verdict(verdict, quotes)),
        reasons=[
            Reason(name, jsontext.dump(each.met), each.reason, each.evidence)
            for name, each in verdict.criteria.items()
        ],
    )


def _outcome(verdict: ChecklistVerdict) -> Iterator[Piece]:
    """Yield the score and whether it passes, where any criterion is applicable."""
    if verdict.score is not None:
        yield Number(verdict.score)
    yield Gloss("pass", jsontext.dump(verdict.passed))


def _present_verdict(verdict: ChecklistVerdict, quotes: Quotes) -> Iterator[Block]:
    """Yield the outcome, answers with reasons and numbered quotes, then notes."""
    yield Items(label=Label("unit.score"), items=list(_outcome(verdict)))
    rows = [
        cells(
            [
                Named(name),
                Cell(Gloss("met", jsontext.dump(each.met)), "strong"),
                each.reason,
                quote_cell(name, each.evidence, quotes),
            ]
        )
        for name, each in verdict.criteria.items()
    ]
    head = labels("criterion", "met", "reason", "evidence")
    yield Table(label=Label("unit.criteria"), head=head, rows=rows)
    if verdict.notes:
        yield Text(label=Label("unit.notes"), text=verdict.notes)
