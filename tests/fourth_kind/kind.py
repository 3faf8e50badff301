"""The kind: what is asked, what a person is shown, what statistics get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.exchange import Question, Schema
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.blocks import (
    Cell,
    Label,
    Notice,
    ShownJudgment,
    ShownUnit,
    Text,
)
from evenhand.kinds.conversation import JudgingContext, PreparedProtocol
from evenhand.kinds.kind import ExampleSuite, Kind, Scoring, Terms
from evenhand.kinds.protocol import Protocol, ProtocolForm
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import TableForm
from evenhand.observation import Ends, Scored, ScoredUnit
from tests.fourth_kind.unit import FIELDS, Claim, dump_claim, load_claim, read_claim
from tests.fourth_kind.verdict import FORM, READER, ClaimVerdict, check_reply


class ClaimProtocol(PreparedProtocol):
    @property
    def ends(self) -> Ends:
        return {"supported": (0.0, 1.0)}

    def read(self, row: Mapping[str, Any]) -> list[Claim]:
        return [read_claim(row)]

    def first_questions(self, claim: Claim, context: JudgingContext) -> list[Question]:
        blocks = {"claim": claim.claim, "text": claim.text}
        messages = self.fill_prompt("full", blocks, {}, {}, ())
        return [Question(messages=messages, schema=Schema(FORM), unit=claim.id)]

    async def judge(self, claim: Claim, context: JudgingContext) -> Judgment:
        conversation = await self.converse(
            context,
            self.first_questions(claim, context)[0],
            lambda reply: self.check_external_reply(claim, reply.text, reply.finish),
            "full",
        )
        return conversation.to_judgment()

    def check_external_reply(
        self, claim: Claim, text: str, finish: str = "stop"
    ) -> Checked[ClaimVerdict]:
        return check_reply(self.words, claim, text, finish)


def prepare(protocol: Protocol, language: str, terms: Terms) -> ClaimProtocol:
    return ClaimProtocol(**protocol.prepare(language, terms.settings))


def measure_claim(claim: Claim) -> ScoredUnit:
    return ScoredUnit(claim.meta, {}, len(claim.text))


def measure_judgment(judgment: Judgment) -> Scored | None:
    if not isinstance(judgment, Verdict):
        return None
    assert isinstance(judgment.value, ClaimVerdict)
    return Scored({"supported": float(judgment.value.supported)})


def present(claim: Claim, judgments: Sequence[Judgment]) -> ShownUnit:
    return ShownUnit(
        unit=[
            Text(label=Label("unit.question"), text=claim.claim, short="Q"),
            Text(label=Label("unit.answer"), text=claim.text, short="A"),
        ],
        measured=measure_claim(claim),
        about=[],
        judgments=list(map(present_judgment, judgments)),
    )


def present_judgment(judgment: Judgment) -> ShownJudgment:
    if not isinstance(judgment, Verdict):
        return ShownJudgment()
    assert isinstance(judgment.value, ClaimVerdict)
    said = "supported" if judgment.value.supported else "not supported"
    blocks = [Notice(f"{said}: {judgment.value.why}")]
    return ShownJudgment(line=[Cell(said, "strong")], blocks=blocks)


KIND = Kind(
    name="claim",
    form=ProtocolForm(must=frozenset({"claim", "text"})),
    table_form=TableForm("claim", "text", FIELDS, lambda row: str(row.get("id") or row["claim"])),
    example=ExampleSuite("claims.jsonl"),
    dump=dump_claim,
    load=load_claim,
    unit_keys=lambda claim: [claim.claim],
    output_key=lambda output: output.get("claim"),
    prepare=prepare,
    read_judgment=READER.read,
    present=present,
    measure=Scoring(lambda text: measure_claim(load_claim(text)), measure_judgment),
)
