"""The kind `weighted`: one answer graded out of 100, with weights by type of task.

Critical-fail conditions come first: those that code can decide cost no call, the others are the
judge's. Facts of the rubric are the truth to grade by. Code knows the type, the weights and the
total; the judge is asked for reasons and scores alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace as replace_fields

from evenhand import jsontext
from evenhand.errors import quoted
from evenhand.exchange import Message, Question, Schema, Style
from evenhand.judgment import Failure, Judgment, Verdict
from evenhand.kinds.conversation import JudgingContext, PreparedProtocol
from evenhand.kinds.kind import (
    ExampleSuite,
    Kind,
    ReplyLength,
    RubricForm,
    Scoring,
    Terms,
    Understood,
)
from evenhand.kinds.prompt import CustomForm, extra_blocks, size_of
from evenhand.kinds.protocol import (
    PROTOCOL_FILE,
    Protocol,
    ProtocolError,
    ProtocolForm,
    require_same_ids,
)
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import TableForm
from evenhand.kinds.weighted.conditions import Hit, TimedOut, decide
from evenhand.kinds.weighted.present import present
from evenhand.kinds.weighted.task_rubric import TaskRubric, read_task
from evenhand.kinds.weighted.unit import FIELDS, answer_text, load_answer, read_answer
from evenhand.kinds.weighted.verdict import (
    FULL_MARKS,
    READER,
    Grade,
    Task,
    TaskType,
    check_reply,
    compact_schema,
    failed_grade,
    measure_answer,
    measure_judgment,
    reply_schema,
    reply_shape,
    under_weights,
)
from evenhand.observation import Ends
from evenhand.text import hidden_characters
from evenhand.units import Answer, answer_id

ALIASES = {"task_specific_rubric": "rubric", "task": "prompt", "question": "prompt"}


def read_types(protocol: Protocol, language: str) -> tuple[TaskType, ...]:
    """Return the task types of a protocol, each with weights that add up; raise ProtocolError."""
    texts, weights = protocol.read_table("types", language), read_weights(protocol)
    return tuple(TaskType(name, text, weights[name]) for name, text in texts.items())


def read_weights(protocol: Protocol) -> dict[str, dict[str, float]]:
    """Return the weights of each task type, whatever the languages of the protocol are; raise
    ProtocolError."""
    dimensions = protocol.ids("dimensions")
    return {
        str(row["id"]): _read_weights(str(row["id"]), row.get("weights"), dimensions)
        for row in protocol.rows("types")
    }


def _read_weights(name: str, weights: object, dimensions: list[str]) -> dict[str, float]:
    if not isinstance(weights, dict) or set(weights) != set(dimensions):
        listed = ", ".join(dimensions)
        raise ProtocolError(PROTOCOL_FILE, f"the weights of type {name} must name each of {listed}")
    for dimension, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            message = f"type {name}: the weight of {dimension} must be a number from 0 to 100"
            raise ProtocolError(PROTOCOL_FILE, message)
    total = sum(Decimal(str(weight)) for weight in weights.values())
    if total != FULL_MARKS:
        message = f"the weights of type {name} add up to {total}, not to 100"
        raise ProtocolError(PROTOCOL_FILE, message)
    return {dimension: weights[dimension] for dimension in dimensions}


class TaskForm(NamedTuple):
    """The parts that every question about tasks of one type shares."""

    types: str
    shape: str
    schema: Schema
    neutral: tuple[Message, ...] | None


@dataclass(frozen=True, kw_only=True)
class WeightedProtocol(PreparedProtocol):
    """A weighted protocol in one language, with the settings that can change a verdict."""

    aliases = ALIASES

    dimensions: Mapping[str, str]
    """The id of each, and its text."""
    types: tuple[TaskType, ...]
    new_weights: Mapping[str, Mapping[str, float]] | None = None
    """By task type, where replies are settled by other weights than the judges were told."""
    rubric: str | None = None
    """The rubric for rows that bring none."""
    forms: dict[tuple[str | None, Style], TaskForm] = field(
        default_factory=dict[tuple[str | None, Style], TaskForm], compare=False
    )

    @property
    def ends(self) -> Ends:
        """0 and the most points that a type of task has, of each dimension."""
        return {
            name: (0.0, max(float(each.weights[name]) for each in self.settled_types))
            for name in self.dimensions
        }

    def read(self, row: Mapping[str, Any]) -> list[Answer]:
        types = tuple(task_type.id for task_type in self.types)
        return [read_answer(row, types, has_rubric=self.rubric is not None)]

    def given_type(self, answer: Answer) -> str | None:
        return self.rubric_of(answer).task_type

    def first_questions(self, answer: Answer, context: JudgingContext) -> list[Question]:
        return [] if self.decide(answer) else [self.question(answer, context.styles[0])]

    async def judge(self, answer: Answer, context: JudgingContext) -> Judgment:
        """Return the grade of an answer, or why there is none. A grade under new weights is
        rescaled and flagged; what they cannot be applied to is asked under them."""
        judgment = await self._judge(answer, context)
        if self.new_weights is None or not isinstance(judgment, Verdict):
            return judgment
        assert isinstance(judgment.value, Grade)
        task_type = judgment.value.task_type
        if task_type is None:
            return judgment
        reweighed = under_weights(judgment.value, self.new_weights[task_type])
        if reweighed is None:
            renewed = replace(self, types=self.settled_types, new_weights=None, forms={})
            return await renewed.judge(answer, context)
        grade, fixes = reweighed
        is_new = grade.weights != judgment.value.weights
        flags = (*judgment.flags, *["new_weights"] * is_new)
        return replace(judgment, value=grade, fixes=(*judgment.fixes, *fixes), flags=flags)

    @property
    def settled_types(self) -> tuple[TaskType, ...]:
        """The types with the weights that grades have in the end."""
        weights = self.new_weights
        if weights is None:
            return self.types
        return tuple(replace(each, weights=weights[each.id]) for each in self.types)

    async def _judge(self, answer: Answer, context: JudgingContext) -> Judgment:
        style, size = context.styles[0], size_of(answer.prompt, answer.answer, answer.extras)
        hidden = await context.offload(
            partial(hidden_characters, answer.prompt, answer.answer), size
        )
        flags = [f"hidden_characters:{kind}" for kind in hidden]
        decision = await context.offload(partial(self.decide, answer), size)
        if isinstance(decision, Hit):
            ungraded = self.words.phrases["ungraded"]
            grade = failed_grade(self.task(answer, style), self._explain(decision), ungraded)
            return Verdict(value=grade, flags=("decided_by_code", *flags))
        if decision is not None:
            line = decision.condition.line
            detail = f"the pattern on line {line} of the rubric did not end in time"
            return Failure(reason="timeout", detail=detail)
        conversation = await self.converse(
            context,
            await context.offload(partial(self.question, answer, style), size),
            lambda reply: self.check(reply.text, answer, style, finish=reply.finish),
            style,
        )
        return conversation.to_judgment(flags)

    def decide(self, answer: Answer) -> Hit | TimedOut | None:
        """Return what code decides of the critical-fail conditions, at no cost."""
        return decide(self.rubric_of(answer).conditions, answer.answer)

    def rubric_of(self, answer: Answer) -> TaskRubric:
        """Return the answer's own rubric, else the suite's."""
        text = self.rubric if answer.rubric is None else answer.rubric
        assert text is not None, "an answer without a rubric passed the loader"
        return self._read_rubric(text)

    def _read_rubric(self, text: str) -> TaskRubric:
        return read_task(text, tuple(task_type.id for task_type in self.types))

    def task(self, answer: Answer, style: Style) -> Task:
        """Return what code knows before the judge is asked."""
        rubric = self.rubric_of(answer)
        given = next((each for each in self.types if each.id == rubric.task_type), None)
        scale = self.types[0] if style == "compact" and given is None else None
        has_conditions = bool(rubric.critical)
        return Task(answer.task_name, given, self.types, has_conditions, scale, answer.answer)

    def check(
        self, text: str, answer: Answer, style: Style = "full", *, finish: str = "stop"
    ) -> Checked[Grade]:
        """Return the grade of one reply, or its problems."""
        return self._check(text, self.task(answer, style), style, finish)

    def check_external_reply(
        self, answer: Answer, text: str, finish: str = "stop"
    ) -> Checked[Grade]:
        """Check a reply from another tool, about an answer that code may have failed."""
        decision, task = self.decide(answer), self.task(answer, "full")
        if isinstance(decision, Hit):
            task = task._replace(failed=self._explain(decision))
        return self._check(text, task, "full", finish)

    def _check(self, text: str, task: Task, style: Style, finish: str) -> Checked[Grade]:
        checked = check_reply(text, task, self.words, finish, is_compact=style == "compact")
        if checked.value is None or not checked.value.is_unsure:
            return checked
        return replace_fields(checked, flags=(*checked.flags, "low_confidence"))

    def question(self, answer: Answer, style: Style) -> Question:
        """Return the question about one answer."""
        form = self._form(self.task(answer, style).given, style)
        return Question(
            messages=self._messages(answer, self.rubric_of(answer), form, style),
            schema=None if self.custom_prompt and style == "full" else form.schema,
            neutral=form.neutral,
            unit=answer.id,
        )

    def _form(self, given: TaskType | None, style: Style) -> TaskForm:
        key = (given.id if given else None, style)
        if key not in self.forms:
            names, is_compact = list(self.dimensions), style == "compact"
            schema = (compact_schema if is_compact else reply_schema)(names, self.types, given)
            shape = jsontext.dump(reply_shape(names))
            form = TaskForm(self._describe_types(given), shape, Schema(schema), None)
            if is_compact:
                form = form._replace(neutral=self._neutral(form, style))
            self.forms[key] = form
        return self.forms[key]

    def _describe_types(self, given: TaskType | None) -> str:
        """Return the given type with the most points of each dimension; else all types."""
        phrases, dimensions = self.words.phrases, self.dimensions.items()
        if given is not None:
            lines = [
                phrases["dimension_line"].format(
                    dimension=name, most=jsontext.dump(given.weights[name]), text=text
                )
                for name, text in dimensions
            ]
            return "\n".join([phrases["type_given"].format(type=given.id), *lines])
        types = [
            phrases["type_line"].format(type=each.id, maxima=self._maxima(each), text=each.text)
            for each in self.types
        ]
        lines = [phrases["dimension_text"].format(dimension=n, text=text) for n, text in dimensions]
        return "\n".join([phrases["type_asked"], *types, phrases["dimensions_asked"], *lines])

    def _maxima(self, task_type: TaskType) -> str:
        phrases = self.words.phrases
        return phrases["maxima_join"].join(
            phrases["maximum"].format(dimension=name, most=jsontext.dump(most))
            for name, most in task_type.weights.items()
        )

    def _neutral(self, form: TaskForm, style: Style) -> tuple[Message, ...]:
        unknown = self.words.neutral
        blank = Answer(id="", task_name="", prompt=unknown["prompt"], answer=unknown["answer"])
        return self._messages(blank, self._read_rubric(unknown["rubric"]), form, style)

    def _messages(
        self, answer: Answer, rubric: TaskRubric, form: TaskForm, style: Style
    ) -> tuple[Message, ...]:
        parts = {"prompt": answer.prompt, "answer": answer.answer}
        texts = {"types": form.types, "shape": form.shape}
        if self.custom_prompt is not None:
            blind = {**parts, "rubric": rubric.text}
            return self.fill_custom_prompt(self.custom_prompt, blind, answer.extras, texts)
        phrases, blocks = self.words.phrases, {**parts, "rubric": rubric.points}
        texts |= {"critical": phrases["no_critical"], "facts": phrases["no_facts"]}
        if rubric.critical:
            blocks["critical"] = "\n".join(f"- {condition}" for condition in rubric.critical)
        if rubric.facts:
            blocks["facts"] = rubric.facts
        shared = ("shape", "types", *(("critical", "facts", "rubric") * (answer.rubric is None)))
        extras = extra_blocks(answer.extras, self.use)
        return self.fill_prompt(style, blocks, extras, texts, shared)

    def _explain(self, hit: Hit) -> str:
        """Return why code failed an answer, in the protocol's language."""
        phrase = self.words.phrases[f"critical_by_code.{hit.condition.kind}"]
        return phrase.format_map({name: quoted(value)[1:-1] for name, value in hit.about.items()})


# The record


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


def _output_key(output: Mapping[str, Any]) -> str | None:
    return str(output["task_name"]) if "task_name" in output else None


# One word with an ending is a file's name, be it mistyped; a rubric says more.
_FILE = re.compile(r"\S+\.[A-Za-z]\w{0,8}")


def _is_file(rubric: object) -> bool:
    if not isinstance(rubric, str) or "\n" in rubric:
        return False
    return rubric.lower().endswith((".md", ".markdown")) or _FILE.fullmatch(rubric) is not None


def _parse_file(text: str, ending: str, protocol: Protocol) -> str:
    return read_task(text, _type_ids(protocol)).text


def _explain(rubric: Any, protocol: Protocol) -> Understood:
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
    rubric_form=RubricForm(
        endings=(".md", ".markdown"),
        about="a task's rubric is Markdown",
        parse=_parse_file,
        explain=_explain,
        is_file=_is_file,
    ),
    example=ExampleSuite("answers.jsonl", by="model"),
    reply_length=ReplyLength(form=45, prose=0, form_each=12, prose_each=35),
    imports="grades",
    dump=answer_text,
    load=load_answer,
    unit_keys=lambda answer: [answer.task_name],
    output_key=_output_key,
    prepare=_prepare,
    check_protocol=_check_protocol,
    resettle_settings=_resettle_settings,
    read_judgment=READER.read,
    present=present,
    measure=Scoring(
        lambda text: measure_answer(load_answer(text)),
        measure_judgment,
        full_marks=FULL_MARKS,
        has_critical_fails=True,
        has_confidence=True,
    ),
)
