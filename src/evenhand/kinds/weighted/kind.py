"""The kind `weighted`: one answer graded out of 100, with weights by type of task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.exchange import Question
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.custom_prompt import CustomForm
from evenhand.kinds.kind import ExampleSuite, Kind, ReplyLength, Scoring, Terms
from evenhand.kinds.protocol import Protocol, ProtocolForm, require_same_ids
from evenhand.kinds.rows import TableForm
from evenhand.kinds.weighted.form import FULL_MARKS, read_dimensions, read_types, read_weights
from evenhand.kinds.weighted.present import present, summary
from evenhand.kinds.weighted.protocol import ALIASES, WeightedProtocol
from evenhand.kinds.weighted.task_rubric import TaskForm
from evenhand.kinds.weighted.unit import FIELDS, answer_text, load_answer, read_answer
from evenhand.kinds.weighted.verdict import READER, measure_answer, measure_judgment
from evenhand.measures import Ends
from evenhand.units import Answer, answer_id


def _prepare(protocol: Protocol, language: str, terms: Terms) -> WeightedProtocol:
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


def _check_protocol(protocol: Protocol, language: str) -> None:
    read_types(protocol, language, read_dimensions(protocol, language))


def _resettle_settings(protocol: Protocol, asked: Protocol) -> dict[str, Any]:
    for table in ("dimensions", "types"):
        require_same_ids(protocol, asked, table)
    return {"weights": read_weights(protocol)}


def _ends(protocol: WeightedProtocol) -> Ends:
    """Return 0 and the most points that a type of task has, of each dimension."""
    return {
        part.id: (0.0, max(float(kind.weights[part.id]) for kind in protocol.settled_types))
        for part in protocol.dimensions
    }


def _read(protocol: WeightedProtocol, row: Mapping[str, Any]) -> list[Answer]:
    types = tuple(task_type.id for task_type in protocol.types)
    return [read_answer(row, types, has_rubric=protocol.rubric is not None)]


def _first_questions(
    protocol: WeightedProtocol, answer: Answer, context: JudgingContext
) -> list[Question]:
    return [] if protocol.decided(answer) else [protocol.question(answer, context.styles[0])]


def _output_key(output: Mapping[str, Any]) -> str | None:
    return str(output["task_name"]) if "task_name" in output else None


KIND = Kind(
    name="weighted",
    question_noun="task",
    form=ProtocolForm(
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
    ),
    table_form=TableForm(
        "prompt",
        "answer",
        FIELDS,
        answer_id,
        topic="task_name",
        row_noun="answer",
        own_field="task_name",
    ),
    rubric_form=TaskForm(),
    example=ExampleSuite("answers.jsonl", by="model"),
    reply_length=ReplyLength(form=45, prose=0, form_each=12, prose_each=35),
    read=_read,
    dump=answer_text,
    load=load_answer,
    unit_keys=lambda answer: [answer.task_name],
    output_key=_output_key,
    prepare=_prepare,
    check_protocol=_check_protocol,
    resettle_settings=_resettle_settings,
    dimensions=lambda protocol: [dimension.id for dimension in protocol.dimensions],
    ends=_ends,
    first_questions=_first_questions,
    judge=WeightedProtocol.judge,
    check_external_reply=WeightedProtocol.check_external_reply,
    read_judgment=READER.read,
    present=present,
    measure=Scoring(
        lambda text: measure_answer(load_answer(text)),
        measure_judgment,
        summary,
        full_marks=FULL_MARKS,
        has_critical_fails=True,
        has_confidence=True,
    ),
)
