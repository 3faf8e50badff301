"""The kind `pairwise`: which of two answers to one topic is better, asked in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenhand.exchange import Question
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.custom_prompt import CustomForm
from evenhand.kinds.kind import ExampleSuite, Kind, ReplyLength, Terms, VerdictTable, Voting
from evenhand.kinds.pairwise.present import present
from evenhand.kinds.pairwise.protocol import (
    ALIASES,
    PairwiseProtocol,
    asks_for_table,
    read_max_rounds,
    read_priority,
)
from evenhand.kinds.pairwise.table import header, line, read_lines
from evenhand.kinds.pairwise.unit import (
    FIELDS,
    gather,
    ids_of_pairs,
    is_one_text,
    load_pair,
    pair_text,
    read_pairs,
)
from evenhand.kinds.pairwise.verdict import READER, measure_judgment, measure_pair
from evenhand.kinds.phrases import asks_both_orders
from evenhand.kinds.protocol import Protocol, ProtocolForm, require_same_ids
from evenhand.kinds.rows import TableForm
from evenhand.limits import REPAIRS
from evenhand.units import TOPIC_ID, Pair, named_pair_id, topic_id


def _prepare(protocol: Protocol, language: str, terms: Terms) -> PairwiseProtocol:
    settings, criteria = terms.settings, protocol.read_table("criteria", language)
    priority = read_priority(protocol)
    prepared = PairwiseProtocol(
        **protocol.prepare(language, settings),
        criteria=criteria,
        priority=tuple(settings.get("priority", priority)),
        told_priority=priority,
        max_rounds=settings["max_rounds"] or read_max_rounds(protocol),
        blind=settings["blind"],
        no_self_judging=settings["no_self_judging"],
        seed=terms.seed,
        tables=asks_for_table(protocol),
    )
    custom_prompt = prepared.custom_prompt
    if custom_prompt is None or not asks_both_orders(custom_prompt.text):
        return prepared
    one_order = prepared.words.phrases["one_order"]
    return replace(prepared, custom_prompt=custom_prompt.after(one_order))


def _check_protocol(protocol: Protocol, language: str) -> None:
    protocol.read_table("criteria", language)
    read_priority(protocol)
    read_max_rounds(protocol)
    asks_for_table(protocol)


def _resettle_settings(protocol: Protocol, asked: Protocol) -> dict[str, Any]:
    require_same_ids(protocol, asked, "criteria")
    return {"priority": list(read_priority(protocol)), "max_rounds": read_max_rounds(protocol)}


def _first_questions(
    protocol: PairwiseProtocol, pair: Pair, context: JudgingContext
) -> list[Question]:
    visible, judges = protocol.mask(pair), protocol.eligible_judges(pair, context.judges)
    if not judges or is_one_text(visible):
        return []
    return protocol.questions(visible, context, judge_index=judges[0])


def _unit_keys(pair: Pair) -> list[str]:
    """Return the id of a pair, and the one that names its candidates, as a topic with more of them
    or an import of votes has it, unless `A` would be the other one there."""
    named = named_pair_id(pair.row, (pair.first.id, pair.second.id))
    return [pair.id] if pair.second.id < pair.first.id else [pair.id, named]


def _output_key(output: Mapping[str, Any]) -> str | None:
    return str(output["pair_id"]) if "pair_id" in output else None


KIND = Kind(
    name="pairwise",
    noun="pair",
    question_noun="topic",
    settings={
        "repairs": REPAIRS,
        "max_rounds": None,
        "blind": "flag",
        "no_self_judging": False,
        "panel": "each",
    },
    form=ProtocolForm(
        keys=("criteria", "priority", "max_rounds", "reply"),
        tables=("criteria",),
        must=frozenset({"topic", "candidate_1", "candidate_2"}),
        may=frozenset({"criteria", "rule", "extras", "shape"}),
        custom_prompt=CustomForm(
            parts=("topic", "candidate_1", "candidate_2"),
            aliases=ALIASES,
            offered=("criteria", "rule", "shape"),
            marks=("winner", "pair_id", "tie", "candidate_1", "candidate_2", "A+", "B+"),
            asks_both_orders=asks_both_orders,
        ),
    ),
    table_form=TableForm(
        question="topic",
        answer="answer",
        fields=FIELDS,
        id_of=topic_id,
        ids=("id", "pair_id"),
        gather=gather,
        several="candidates",
        unit_ids=ids_of_pairs,
        number=TOPIC_ID,
        row_noun="topic",
    ),
    table=VerdictTable(header, line, read_lines),
    example=ExampleSuite("pairs.jsonl"),
    reply_length=ReplyLength(form=15, prose=80, form_each=22, prose_each=20),
    imports="votes",
    read=lambda _, row: read_pairs(row),
    dump=pair_text,
    load=load_pair,
    unit_keys=_unit_keys,
    output_key=_output_key,
    prepare=_prepare,
    check_protocol=_check_protocol,
    resettle_settings=_resettle_settings,
    dimensions=lambda protocol: list(protocol.criteria),
    rounds=lambda protocol: int(protocol.max_rounds),
    first_questions=_first_questions,
    judge=PairwiseProtocol.judge,
    check_external_reply=PairwiseProtocol.check_external_reply,
    check_output=lambda protocol, _, output: protocol.check_verdict(output),
    read_judgment=READER.read,
    present=present,
    measure=Voting(lambda text: measure_pair(load_pair(text)), measure_judgment),
)
