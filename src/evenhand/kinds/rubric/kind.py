"""The kind `rubric` as the registry has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from evenhand.judgment import Judgment, JudgmentText
from evenhand.kinds.blocks import ShownUnit
from evenhand.kinds.custom_prompt import CustomForm
from evenhand.kinds.kind import ExampleSuite, Scoring, Terms
from evenhand.kinds.protocol import Protocol, ProtocolError, ProtocolForm
from evenhand.kinds.rubric.judging import RubricJudging
from evenhand.kinds.rubric.measure import scored, scored_unit, scored_units, stored_scores
from evenhand.kinds.rubric.protocol import ALIASES, RubricProtocol
from evenhand.kinds.rubric.rubric import build_rubric
from evenhand.kinds.rubric.rubric_form import BandsForm
from evenhand.kinds.rubric.shown import shown, summary
from evenhand.kinds.rubric.unit import FIELDS
from evenhand.kinds.rubric.verdict import READER
from evenhand.kinds.shared.table_form import TableForm
from evenhand.limits import REPAIRS
from evenhand.units import sample_id


def tag_names(protocol: Protocol, languages: Sequence[str]) -> Mapping[str, str]:
    """The failure tags of a protocol, named in the first of some languages that it has names in."""
    for language in languages:
        with suppress(ProtocolError):
            return protocol.words(language).tags
    return {}


class RubricKind:
    """One output scored on every dimension of a rubric, each score backed by a quote."""

    name = "rubric"
    noun, question_noun = "sample", "question"
    settings: Mapping[str, Any] = {"repairs": REPAIRS, "expose_meta": False}
    measure = Scoring(
        scored_unit,
        scored,
        summary,
        tag_names,
        has_notes=True,
        units=scored_units,
        stored=stored_scores,
    )
    form = ProtocolForm(
        keys=("no_evidence", "tags"),
        tables=("tags",),
        must=frozenset({"question", "model_output", "rubric"}),
        may=frozenset({"tags", "extras", "shape"}),
        own=CustomForm(
            parts=("question", "model_output", "rubric"),
            aliases=ALIASES,
            offered=("tags", "shape"),
            by_setting={"meta": "expose_meta"},
            marks=("model_output", "failure_tags", "evidence", "rationale", "dimensions"),
        ),
    )
    table_form = TableForm("question", "model_output", FIELDS, sample_id)
    rubric_form = BandsForm()
    table = None
    example = ExampleSuite(
        "samples.jsonl",
        "rubric.json",
        by="prompt_variant",
        baseline="v1",
    )

    def judging(self, protocol: Protocol, terms: Terms) -> RubricJudging:
        rubric = None if terms.rubric is None else build_rubric(terms.rubric)
        if "no_evidence" in terms.settings:
            protocol = _with_phrase(protocol, terms.settings["no_evidence"])
        languages = {
            language: RubricProtocol(
                prompts=protocol.judge_prompts(language),
                words=protocol.words(language),
                rubric=rubric,
                expose_meta=terms.settings["expose_meta"],
                repairs=terms.settings["repairs"],
                use=tuple(terms.settings["use"]),
                own=protocol.own,
                allowed_tags=tuple(terms.settings.get("tags", ())),
            )
            for language in terms.languages
        }
        return RubricJudging(languages, terms.language)

    def check_protocol(self, protocol: Protocol, language: str) -> None:
        protocol.words(language)

    def rules(self, protocol: Protocol, asked: Protocol) -> dict[str, Any]:
        tags = protocol.ids("tags") or list(protocol.words("en").tags)
        return {"no_evidence": protocol.given.get("no_evidence"), "tags": tags}

    def shown(self, body: str, judgments: Sequence[Judgment]) -> ShownUnit:
        return shown(body, judgments)

    def read_judgment(self, text: JudgmentText) -> Judgment:
        return READER.read(text)


def _with_phrase(protocol: Protocol, phrase: object) -> Protocol:
    """The protocol with another phrase for no evidence; None is that of its kind."""
    values = {name: value for name, value in protocol.given.items() if name != "no_evidence"}
    return replace(protocol, given=values | ({} if phrase is None else {"no_evidence": phrase}))
