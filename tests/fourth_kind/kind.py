"""The entry of the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.judgment import Judgment, JudgmentText
from evenhand.kinds.blocks import ShownUnit
from evenhand.kinds.kind import ExampleSuite, Scoring, Terms
from evenhand.kinds.protocol import Protocol, ProtocolForm
from evenhand.kinds.shared.table_form import TableForm
from tests.fourth_kind.judging import ClaimJudging
from tests.fourth_kind.shown import scored, scored_unit, shown, summary
from tests.fourth_kind.unit import FIELDS
from tests.fourth_kind.verdict import READER


class ClaimKind:
    name = "claim"
    noun, question_noun = "sample", "question"
    settings: Mapping[str, Any] = {"repairs": 2}
    form = ProtocolForm(must=frozenset({"claim", "text"}))
    table_form = TableForm("claim", "text", FIELDS, lambda row: str(row.get("id") or row["claim"]))
    rubric_form = None
    table = None
    example = ExampleSuite("claims.jsonl")
    measure = Scoring(scored_unit, scored, summary)

    def judging(self, protocol: Protocol, terms: Terms) -> ClaimJudging:
        language = terms.language
        prompts, words = protocol.judge_prompts(language), protocol.words(language)
        return ClaimJudging(prompts, words, terms.settings["repairs"])

    def check_protocol(self, protocol: Protocol, language: str) -> None:
        """There are no tables."""

    def rules(self, protocol: Protocol, asked: Protocol) -> dict[str, Any]:
        return {}

    def shown(self, body: str, judgments: Sequence[Judgment]) -> ShownUnit:
        return shown(body, judgments)

    def read_judgment(self, text: JudgmentText) -> Judgment:
        return READER.read(text)
