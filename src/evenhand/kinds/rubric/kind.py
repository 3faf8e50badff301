"""The kind `rubric` as the registry has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.judgment import Judgment, JudgmentText
from evenhand.kinds.kind import ExampleSuite, Scoring, Terms
from evenhand.kinds.rubric.check import TAGS
from evenhand.kinds.rubric.judging import RubricJudging
from evenhand.kinds.rubric.measure import scored, scored_unit
from evenhand.kinds.rubric.protocol import RubricProtocol
from evenhand.kinds.rubric.rubric import build_rubric
from evenhand.kinds.rubric.rubric_form import BandsForm
from evenhand.kinds.rubric.verdict import READER
from evenhand.kinds.shared.load import Protocol, ProtocolForm
from evenhand.limits import REPAIRS


class RubricKind:
    """One output scored on every dimension of a rubric, each score backed by a quote."""

    name = "rubric"
    settings: Mapping[str, Any] = {"repairs": REPAIRS, "expose_meta": False}
    measure = Scoring(scored_unit, scored, TAGS)
    form = ProtocolForm(
        keys=("no_evidence",),
        must=frozenset({"question", "model_output", "rubric"}),
        may=frozenset({"tags", "extras", "shape"}),
    )
    rubric_form = BandsForm()
    table = None
    example = ExampleSuite("samples.jsonl", "rubric.json", "prompt_variant", "v1")

    def judging(self, protocol: Protocol, terms: Terms) -> RubricJudging:
        rubric = None if terms.rubric is None else build_rubric(terms.rubric)
        languages = {
            language: RubricProtocol(
                prompts=protocol.judge_prompts(language),
                words=protocol.words(language),
                rubric=rubric,
                expose_meta=terms.settings["expose_meta"],
                repairs=terms.settings["repairs"],
                use=tuple(terms.settings["use"]),
                own=protocol.own,
            )
            for language in terms.languages
        }
        return RubricJudging(languages, terms.language)

    def check_protocol(self, protocol: Protocol, language: str) -> None:
        """There are no tables."""

    def read_judgment(self, text: JudgmentText) -> Judgment:
        return READER.read(text)
