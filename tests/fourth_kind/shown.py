"""What a person is shown of a claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.blocks import (
    Cell,
    Label,
    Notice,
    ShownJudgment,
    ShownUnit,
    Text,
    about_unit,
)
from evenhand.kinds.shared.summary import Summary, score_table
from evenhand.measures import Scored, ScoredUnit
from tests.fourth_kind.unit import Claim, load_claim
from tests.fourth_kind.verdict import ClaimVerdict


def scored_unit(body: str) -> ScoredUnit:
    return measured(load_claim(body))


def measured(claim: Claim) -> ScoredUnit:
    return ScoredUnit(claim.meta, {}, len(claim.text))


def scored(judgment: Judgment) -> Scored | None:
    if not isinstance(judgment, Verdict):
        return None
    assert isinstance(judgment.value, ClaimVerdict)
    return Scored({"supported": float(judgment.value.supported)})


def summary(verdicts: Iterable[tuple[str, Verdict]]) -> Summary:
    values: dict[tuple[str, str], list[float]] = {}
    for body, judgment in verdicts:
        given = scored(judgment)
        variant = str(load_claim(body).meta.get("prompt_variant", ""))
        values.setdefault((variant, "supported"), []).append(
            given.scores["supported"] if given else 0
        )
    return Summary([score_table(values)], {"supported": int(sum(map(sum, values.values())))})


def shown(body: str, judgments: Sequence[Judgment]) -> ShownUnit:
    claim = load_claim(body)
    return ShownUnit(
        unit=[
            Text(label=Label("unit.question"), text=claim.claim, short="Q"),
            Text(label=Label("unit.answer"), text=claim.text, short="A"),
        ],
        measured=measured(claim),
        about=about_unit({}, claim.meta),
        judgments=[_judgment(judgment) for judgment in judgments],
    )


def _judgment(judgment: Judgment) -> ShownJudgment:
    if not isinstance(judgment, Verdict):
        return ShownJudgment()
    verdict = judgment.value
    assert isinstance(verdict, ClaimVerdict)
    said = "supported" if verdict.supported else "not supported"
    blocks = [Notice(f"{said}: {verdict.why}")]
    return ShownJudgment(line=[Cell(said, "strong")], brief=blocks, full=blocks)
