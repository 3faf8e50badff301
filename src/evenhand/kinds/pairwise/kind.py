"""The kind `pairwise` as the registry has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.judgment import Judgment, JudgmentText
from evenhand.kinds.kind import Terms, Voting
from evenhand.kinds.pairwise.form import read_criteria, read_max_rounds, read_priority
from evenhand.kinds.pairwise.judging import PairwiseJudging
from evenhand.kinds.pairwise.measure import voted, voted_unit
from evenhand.kinds.pairwise.protocol import PairwiseProtocol
from evenhand.kinds.pairwise.verdict import READER
from evenhand.kinds.shared.load import Protocol
from evenhand.limits import REPAIRS


class PairwiseKind:
    """Which of two answers to one topic is better, asked in both orders."""

    name = "pairwise"
    settings: Mapping[str, Any] = {
        "repairs": REPAIRS,
        "max_rounds": None,
        "blind": "flag",
        "no_self_judging": False,
        "panel": "each",
    }
    measure = Voting(voted_unit, voted)

    def judging(self, protocol: Protocol, terms: Terms) -> PairwiseJudging:
        languages = {name: self._protocol(protocol, name, terms) for name in terms.languages}
        return PairwiseJudging(languages, terms.language)

    def _protocol(self, protocol: Protocol, language: str, terms: Terms) -> PairwiseProtocol:
        settings, criteria = terms.settings, read_criteria(protocol, language)
        return PairwiseProtocol(
            prompts=protocol.judge_prompts(language),
            words=protocol.words(language),
            criteria=criteria,
            priority=read_priority(protocol, criteria),
            max_rounds=settings["max_rounds"] or read_max_rounds(protocol),
            repairs=settings["repairs"],
            use=tuple(settings["use"]),
            blind=settings["blind"],
            no_self_judging=settings["no_self_judging"],
            seed=terms.seed,
            tables=protocol.given.get("reply") == "table",
            own=protocol.own,
        )

    def read_judgment(self, text: JudgmentText) -> Judgment:
        return READER.read(text)
