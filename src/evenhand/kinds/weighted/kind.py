"""The kind `weighted` as the registry has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.judgment import Judgment, JudgmentText
from evenhand.kinds.blocks import ShownUnit
from evenhand.kinds.custom_prompt import CustomForm
from evenhand.kinds.kind import ExampleSuite, Scoring, Terms
from evenhand.kinds.protocol import Protocol, ProtocolForm, require_same_ids
from evenhand.kinds.shared.table_form import TableForm
from evenhand.kinds.weighted.form import FULL_MARKS, read_dimensions, read_types, read_weights
from evenhand.kinds.weighted.judging import WeightedJudging
from evenhand.kinds.weighted.measure import scored, scored_unit
from evenhand.kinds.weighted.protocol import ALIASES, WeightedProtocol
from evenhand.kinds.weighted.rubric_form import TaskForm
from evenhand.kinds.weighted.shown import shown, summary
from evenhand.kinds.weighted.unit import FIELDS
from evenhand.kinds.weighted.verdict import READER
from evenhand.limits import REPAIRS
from evenhand.units import answer_id


class WeightedKind:
    """One answer graded out of 100, with weights by type of task."""

    name = "weighted"
    noun, question_noun = "sample", "task"
    settings: Mapping[str, Any] = {"repairs": REPAIRS}
    measure = Scoring(
        scored_unit,
        scored,
        summary,
        full_marks=FULL_MARKS,
        has_critical_fails=True,
        has_confidence=True,
    )
    form = ProtocolForm(
        keys=("dimensions", "types"),
        tables=("dimensions", "types"),
        must=frozenset({"prompt", "answer", "rubric"}),
        may=frozenset({"critical", "facts", "extras", "types", "shape"}),
        own=CustomForm(
            parts=("prompt", "answer", "rubric"),
            aliases=ALIASES,
            offered=("types", "shape"),
            marks=(
                "task_type",
                "inferred_task_type",
                "critical_fail",
                "critical_fail_reason",
                "total_score",
                "Task_Specific_Rubric",
            ),
        ),
    )
    table_form = TableForm("prompt", "answer", FIELDS, answer_id, topic="task_name")
    rubric_form = TaskForm()
    table = None
    example = ExampleSuite(
        "answers.jsonl",
        by="model",
    )

    def judging(self, protocol: Protocol, terms: Terms) -> WeightedJudging:
        languages = {name: self._protocol(protocol, name, terms) for name in terms.languages}
        return WeightedJudging(languages, terms.language)

    def _protocol(self, protocol: Protocol, language: str, terms: Terms) -> WeightedProtocol:
        dimensions = read_dimensions(protocol, language)
        return WeightedProtocol(
            prompts=protocol.judge_prompts(language),
            words=protocol.words(language),
            dimensions=dimensions,
            types=read_types(protocol, language, dimensions),
            new_weights=terms.settings.get("weights"),
            rubric=terms.rubric,
            repairs=terms.settings["repairs"],
            use=tuple(terms.settings["use"]),
            own=protocol.own,
        )

    def check_protocol(self, protocol: Protocol, language: str) -> None:
        read_types(protocol, language, read_dimensions(protocol, language))

    def rules(self, protocol: Protocol, asked: Protocol) -> dict[str, Any]:
        for table in ("dimensions", "types"):
            require_same_ids(protocol, asked, table)
        return {"weights": read_weights(protocol)}

    def shown(self, body: str, judgments: Sequence[Judgment]) -> ShownUnit:
        return shown(body, judgments)

    def read_judgment(self, text: JudgmentText) -> Judgment:
        return READER.read(text)
