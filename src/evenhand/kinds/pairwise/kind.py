"""The kind `pairwise` as the registry has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.judgment import Judgment, JudgmentText
from evenhand.kinds.blocks import ShownUnit
from evenhand.kinds.custom_prompt import CustomForm, CustomPrompt
from evenhand.kinds.kind import ExampleSuite, Terms, Voting
from evenhand.kinds.pairwise.both_orders import asks_both_orders
from evenhand.kinds.pairwise.form import (
    asks_for_table,
    read_criteria,
    read_max_rounds,
    read_priority,
)
from evenhand.kinds.pairwise.judging import PairwiseJudging
from evenhand.kinds.pairwise.long_table import gather
from evenhand.kinds.pairwise.measure import voted, voted_unit
from evenhand.kinds.pairwise.protocol import ALIASES, PairwiseProtocol
from evenhand.kinds.pairwise.shown import shown
from evenhand.kinds.pairwise.table import PairTable
from evenhand.kinds.pairwise.unit import FIELDS, ids_of_pairs
from evenhand.kinds.pairwise.verdict import READER
from evenhand.kinds.protocol import Protocol, ProtocolForm, Words, require_same_ids
from evenhand.kinds.shared.table_form import TableForm
from evenhand.limits import REPAIRS
from evenhand.units import TOPIC_ID, topic_id


class PairwiseKind:
    """Which of two answers to one topic is better, asked in both orders."""

    name = "pairwise"
    noun, question_noun = "pair", "topic"
    settings: Mapping[str, Any] = {
        "repairs": REPAIRS,
        "max_rounds": None,
        "blind": "flag",
        "no_self_judging": False,
        "panel": "each",
    }
    measure = Voting(voted_unit, voted)
    form = ProtocolForm(
        keys=("criteria", "priority", "max_rounds", "reply"),
        tables=("criteria",),
        must=frozenset({"topic", "candidate_1", "candidate_2"}),
        may=frozenset({"criteria", "rule", "extras", "shape"}),
        own=CustomForm(
            parts=("topic", "candidate_1", "candidate_2"),
            aliases=ALIASES,
            offered=("criteria", "rule", "shape"),
            marks=("winner", "pair_id", "tie", "candidate_1", "candidate_2", "A+", "B+"),
            asks_both_orders=asks_both_orders,
        ),
    )
    table_form = TableForm(
        question="topic",
        answer="answer",
        fields=FIELDS,
        id_of=topic_id,
        ids=("id", "pair_id"),
        gather=gather,
        several="candidates",
        unit_ids=ids_of_pairs,
        number=TOPIC_ID,
    )
    rubric_form = None
    table = PairTable()
    example = ExampleSuite(
        "pairs.jsonl",
    )

    def judging(self, protocol: Protocol, terms: Terms) -> PairwiseJudging:
        languages = {name: self._protocol(protocol, name, terms) for name in terms.languages}
        return PairwiseJudging(languages, terms.language)

    def _protocol(self, protocol: Protocol, language: str, terms: Terms) -> PairwiseProtocol:
        settings, criteria = terms.settings, read_criteria(protocol, language)
        words, priority = protocol.words(language), read_priority(protocol)
        return PairwiseProtocol(
            prompts=protocol.judge_prompts(language),
            words=words,
            criteria=criteria,
            priority=tuple(settings.get("priority", priority)),
            told_priority=priority,
            max_rounds=settings["max_rounds"] or read_max_rounds(protocol),
            repairs=settings["repairs"],
            use=tuple(settings["use"]),
            blind=settings["blind"],
            no_self_judging=settings["no_self_judging"],
            seed=terms.seed,
            tables=asks_for_table(protocol),
            own=_told_one_order(protocol.own, words),
        )

    def check_protocol(self, protocol: Protocol, language: str) -> None:
        read_criteria(protocol, language)
        read_priority(protocol)
        read_max_rounds(protocol)
        asks_for_table(protocol)

    def rules(self, protocol: Protocol, asked: Protocol) -> dict[str, Any]:
        require_same_ids(protocol, asked, "criteria")
        return {
            "priority": list(read_priority(protocol)),
            "max_rounds": read_max_rounds(protocol),
        }

    def shown(self, body: str, judgments: Sequence[Judgment]) -> ShownUnit:
        return shown(body, judgments)

    def read_judgment(self, text: JudgmentText) -> Judgment:
        return READER.read(text)


def _told_one_order(own: CustomPrompt | None, words: Words) -> CustomPrompt | None:
    """A prompt that demands both orders, after the sentence that one is wanted. What a run recorded
    before there was such a sentence is asked as it was."""
    sentence = words.phrases.get("one_order")
    if own is None or sentence is None or not asks_both_orders(own.text):
        return own
    return own.after(sentence)
