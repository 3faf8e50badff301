"""The kind `weighted`: one answer graded out of 100, with weights by type of task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.exchange import Question
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.custom_prompt import CustomForm
from evenhand.kinds.kind import ExampleSuite, Kind, ReplyLength, Scoring, Terms, Understood
from evenhand.kinds.protocol import Protocol, ProtocolForm, require_same_ids
from evenhand.kinds.rows import TableForm
from evenhand.kinds.weighted.present import present, summary
from evenhand.kinds.weighted.protocol import (
    ALIASES,
    WeightedProtocol,
    read_types,
    read_weights,
)
from evenhand.kinds.weighted.task_rubric import TaskRubric, read_task
from evenhand.kinds.weighted.unit import FIELDS, answer_text, load_answer, read_answer
from evenhand.kinds.weighted.verdict import FULL_MARKS, READER, measure_answer, measure_judgment
from evenhand.measures import Ends
from evenhand.units import Answer, answer_id


def _prepare(protocol: Protocol, language: str, terms: Terms) -> WeightedProtocol:
    return WeightedProtocol(
        **protocol.prepare(language, terms.settings),
        dimensions=protocol.read_table("dimensions", language),
        types=read_types(protocol, language),
        new_weights=terms.settings.get("weights"),
        rubric=terms.rubric,
    )


def _check_protocol(protocol: Protocol, language: str) -> None:
    protocol.read_table("dimensions", language)
    read_types(protocol, language)


def _resettle_settings(protocol: Protocol, asked: Protocol) -> dict[str, Any]:
    for table in ("dimensions", "types"):
        require_same_ids(protocol, asked, table)
    return {"weights": read_weights(protocol)}


def _ends(protocol: WeightedProtocol) -> Ends:
    """Return 0 and the most points that a type of task has, of each dimension."""
    return {
        name: (0.0, max(float(each.weights[name]) for each in protocol.settled_types))
        for name in protocol.dimensions
    }


def _read(protocol: WeightedProtocol, row: Mapping[str, Any]) -> list[Answer]:
    types = tuple(task_type.id for task_type in protocol.types)
    return [read_answer(row, types, has_rubric=protocol.rubric is not None)]


def _first_questions(
    protocol: WeightedProtocol, answer: Answer, context: JudgingContext
) -> list[Question]:
    return [] if protocol.decide(answer) else [protocol.question(answer, context.styles[0])]


def _output_key(output: Mapping[str, Any]) -> str | None:
    return str(output["task_name"]) if "task_name" in output else None


# One word with an ending is a file's name, be it mistyped; a rubric says more.
_FILE = re.compile(r"\S+\.[A-Za-z]\w{0,8}")


class TaskRubricForm:
    """The rubric of a task: its type, conditions, facts, and points to add and deduct."""

    endings = (".md", ".markdown")
    about = "a task's rubric is Markdown"
    beside = ()
    has_bands = False

    def parse(self, text: str, ending: str, protocol: Protocol) -> str:
        return read_task(text, _type_ids(protocol)).text

    def is_file(self, rubric: object) -> bool:
        if not isinstance(rubric, str) or "\n" in rubric:
            return False
        return rubric.lower().endswith(self.endings) or _FILE.fullmatch(rubric) is not None

    def understood(self, rubric: Any, protocol: Protocol) -> Understood:
        task = read_task(rubric, _type_ids(protocol))
        return Understood(describe_task(task), list(_list_task(task)))


def _type_ids(protocol: Protocol) -> tuple[str, ...]:
    """Return the types of task that a rubric may name; raise ProtocolError."""
    language = next(iter(protocol.languages), "en")
    return tuple(task_type.id for task_type in read_types(protocol, language))


def describe_task(rubric: TaskRubric) -> dict[str, Any]:
    """Return what was read from a rubric, as `check --rubric --json` shows it."""
    return {
        "task_type": rubric.task_type,
        "critical": list(rubric.critical),
        "conditions": [
            {"kind": each.kind, "pattern": each.pattern, "flags": each.flags, "line": each.line}
            if each.pattern
            else {"kind": each.kind, "limit": each.limit, "line": each.line}
            for each in rubric.conditions
        ],
        "facts": rubric.facts,
        "points": rubric.points,
    }


def _list_task(rubric: TaskRubric) -> Iterator[str]:
    """Yield what was read from a rubric in lines for a person."""
    yield f"task_type: {rubric.task_type or 'not given; the judge infers it'}"
    yield f"critical-fail conditions for the judge: {len(rubric.critical)}"
    yield from (f"  - {condition}" for condition in rubric.critical)
    yield f"critical-fail conditions for code: {len(rubric.conditions)}"
    for condition in rubric.conditions:
        yield f"  - {condition.kind}: {condition.written}  (line {condition.line})"
    yield "facts for the grader:" if rubric.facts else "facts for the grader: none"
    yield from (f"  {line}" for line in (rubric.facts or "").splitlines())
    yield "points to add and deduct:"
    yield from (f"  {line}" for line in rubric.points.strip().splitlines())


KIND = Kind(
    name="weighted",
    question_noun="task",
    form=ProtocolForm(
        keys=("dimensions", "types"),
        tables=("dimensions", "types"),
        must=frozenset({"prompt", "answer", "rubric"}),
        may=frozenset({"critical", "facts", "extras", "types", "shape"}),
        custom_prompt=CustomForm(
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
    rubric_form=TaskRubricForm(),
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
    dimensions=lambda protocol: list(protocol.dimensions),
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
