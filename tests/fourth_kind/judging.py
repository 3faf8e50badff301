"""The kind made ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand import jsontext
from evenhand.exchange import Question, Reply, Schema, Style
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.check import Checked
from evenhand.kinds.kind import UnitText
from evenhand.kinds.prompt import Prompt, fenced
from evenhand.kinds.protocol import Words
from evenhand.kinds.shared.asking import Asking, converse
from evenhand.kinds.shared.schemas import object_of
from evenhand.measures import Ends
from tests.fourth_kind.unit import Claim, claim_text, load_claim, read_claim
from tests.fourth_kind.verdict import ClaimVerdict, check_reply

SCHEMA = Schema(object_of(why={"type": "string"}, supported={"type": "boolean"}))


@dataclass(frozen=True, slots=True)
class ClaimJudging:
    kind: ClassVar[str] = "claim"
    prompts: Mapping[Style, Prompt]
    words: Words
    repairs: int
    rounds: int = 1

    @property
    def dimensions(self) -> list[str]:
        return ["supported"]

    @property
    def ends(self) -> Ends:
        return {"supported": (0.0, 1.0)}

    def read(self, row: Mapping[str, Any]) -> list[UnitText]:
        claim = read_claim(row)
        return [UnitText(claim.id, claim_text(claim))]

    def opening(self, body: str, asking: Asking) -> list[Question]:
        return [self._question(load_claim(body), asking.styles[0])]

    def _question(self, claim: Claim, style: Style) -> Question:
        values = fenced({"claim": claim.claim, "text": claim.text})
        return Question(messages=self.prompts[style].messages(values), schema=SCHEMA, unit=claim.id)

    async def judge(self, body: str, asking: Asking) -> Judgment:
        claim, style = load_claim(body), asking.styles[0]

        def check(reply: Reply) -> Checked[ClaimVerdict]:
            return check_reply(reply.text, claim, self.words, reply.finish)

        conversation = await converse(
            asking,
            self._question(claim, style),
            check,
            self.prompts[style],
            self.words,
            self.repairs,
        )
        if failed := conversation.failure:
            return failed
        value = conversation.tries[-1].checked.value
        assert value is not None
        return Verdict(value=value, passes=conversation.passes)

    def unit_keys(self, body: str) -> Sequence[str]:
        return [load_claim(body).claim]

    def output_key(self, output: Mapping[str, Any]) -> str | None:
        return output.get("claim")

    def check_elsewhere(self, body: str, text: str, finish: str) -> Checked[ClaimVerdict]:
        return check_reply(text, load_claim(body), self.words, finish)

    def check_output(self, body: str, output: dict[str, Any]) -> Checked[ClaimVerdict]:
        return self.check_elsewhere(body, jsontext.dump(output), "stop")
