"""What a person is shown of a sample and of verdicts about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

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
    Notice,
    Number,
    Reason,
    ShownJudgment,
    ShownUnit,
    Summary,
    Table,
    Text,
    about_unit,
    cells,
    labels,
    score_table,
)
from evenhand.kinds.rubric.verdict import DimensionScore, RubricVerdict, measure_sample
from evenhand.units import Sample

_MATCHES = {"exact": ""}


def present(sample: Sample, judgments: Sequence[Judgment]) -> ShownUnit:
    """A sample, its output with every quote of every judgment marked and numbered."""
    marks = _marks(judgments)
    return ShownUnit(
        unit=list(_unit(sample, marks)),
        measured=measure_sample(sample),
        about=about_unit(sample.extras, sample.meta),
        judgments=list(_judgments(judgments)),
    )


def _marks(judgments: Iterable[Judgment]) -> list[Mark]:
    quotes = [quote for judgment in judgments for quote in judgment.evidence]
    return [
        Mark(quote.start, quote.end, number, f"{number} {quote.dimension}")
        for number, quote in enumerate(quotes, 1)
    ]


def _unit(sample: Sample, marks: Sequence[Mark]) -> Iterator[Block]:
    # There are no texts of what was judged elsewhere.
    if sample.question:
        yield Text(label=Label("unit.question"), text=sample.question, short="Q")
    if sample.model_output:
        label = Label("unit.output")
        yield Text(label=label, text=sample.model_output, marks=marks, short="A")


def _judgments(judgments: Sequence[Judgment]) -> Iterator[ShownJudgment]:
    first = 1
    for judgment in judgments:
        if isinstance(judgment, Verdict):
            assert isinstance(judgment.value, RubricVerdict)
            yield _shown(judgment, judgment.value, first)
        else:
            yield ShownJudgment()
        first += len(judgment.evidence)


def _shown(judgment: Verdict, verdict: RubricVerdict, first: int) -> ShownJudgment:
    scores = verdict.scores.items()
    line = " ".join(f"{name}{NO_BREAK}{jsontext.dump(score.score)}" for name, score in scores)
    return ShownJudgment(
        line=[Cell(line)],
        brief=[_brief(judgment, verdict)],
        full=list(_full(judgment, verdict, first)),
        reasons=[
            Reason(name, jsontext.dump(score.score), score.rationale, score.evidence)
            for name, score in scores
        ],
    )


def _full(judgment: Verdict, verdict: RubricVerdict, first: int) -> Iterator[Block]:
    """Scores with reasons and numbered quotes, then tags and notes."""
    numbered = list(enumerate(judgment.evidence, first))
    rows = [
        cells(
            [
                Named(name),
                Cell(Number(float(score.score)), "strong"),
                score.rationale,
                Joined(list(_quotes(name, score, numbered)), "\n"),
            ]
        )
        for name, score in verdict.scores.items()
    ]
    head = labels("dimension", "score", "rationale", "evidence")
    yield Table(label=Label("unit.scores"), head=head, rows=rows)
    if verdict.failure_tags:
        tags = [Joined([tag, Gloss("tag", tag)]) for tag in verdict.failure_tags]
        yield Items(label=Label("unit.tags"), items=tags, tone="warn")
    if verdict.notes:
        yield Text(label=Label("unit.notes"), text=verdict.notes)


def _quotes(
    name: str, score: DimensionScore, numbered: Sequence[tuple[int, Evidence]]
) -> Iterator[Joined]:
    places = [(number, place) for number, place in numbered if place.dimension == name]
    for quote, (number, place) in zip(score.evidence, places, strict=False):
        where = f"[{place.start}:{place.end}"
        exact = place.match == "exact"
        how = [f"{number} “{quote}” {where}"] if exact else [f"{number} “{quote}” {where}, "]
        yield Joined([*how, *([] if exact else [Gloss("match", place.match)]), "]"], "")


def _brief(judgment: Verdict, verdict: RubricVerdict) -> Table:
    """Scores with their quotes, where those stand, and the reasons."""
    means, rows = _means(judgment), list[list[Cell]]()
    for name, scored in verdict.scores.items():
        places = [place for place in judgment.evidence if place.dimension == name]
        quotes = [
            f"“{quote}” [{place.start}:{place.end}{'' if place.match == 'exact' else ', '}"
            f"{_MATCHES.get(place.match, place.match)}]"
            for quote, place in zip(scored.evidence, places, strict=False)
        ]
        mean = [f"~{means[name]:.1f}"] if name in means else []
        score = Joined([jsontext.dump(scored.score), *mean], "\n")
        rows.append(cells([name, score, Joined([*quotes, scored.rationale], "\n")]))
    return Table(head=["dimension", "score", "evidence [where], reason"], rows=rows)


def _means(judgment: Verdict) -> dict[str, float]:
    """The mean of each score under the odds of a judge that decides by probabilities."""
    means: dict[str, float] = {}
    for path, odds in (judgment.passes[-1].odds if judgment.passes else {}).items():
        likely = {float(score): math.exp(value) for score, value in odds.items()}
        mean = sum(score * share for score, share in likely.items()) / sum(likely.values())
        means[path.removeprefix("scores.").removesuffix(".score")] = mean
    return means


def summary(verdicts: Iterable[tuple[str, Verdict]]) -> Summary:
    """Mean and spread of each dimension, by prompt variant; how many verdicts have notes."""
    values: dict[tuple[str, str], list[float]] = {}
    noted = 0
    for _, judgment in verdicts:
        assert isinstance(judgment.value, RubricVerdict)
        variant = str(judgment.value.meta.get("prompt_variant", ""))
        noted += bool(judgment.value.notes.strip())
        for name, score in judgment.value.scores.items():
            values.setdefault((variant, name), []).append(float(score.score))
    blocks: list[Block] = [score_table(values)] if values else []
    if noted:
        verb = "verdict has" if noted == 1 else "verdicts have"
        blocks.append(Notice(f"\n{noted} {verb} notes: list them with show --only notes"))
    return Summary(blocks, {"notes": noted})
