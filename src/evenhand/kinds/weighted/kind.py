"""The kind `weighted`: one answer graded out of 100, with weights by type of task.

Critical-fail conditions come first: those that code can decide cost no call, the others are the
judge's. Facts of the rubric are the truth to grade by. Code knows the type, the weights and the
total; the judge is asked for reasons and scores alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace as replace_fields

from evenhand import jsontext
from evenhand.errors import quote
from evenhand.exchange import Message, Question, Schema, Style
from evenhand.jsontext import StoredText
from evenhand.judgment import Failure, Judgment, Verdict
from evenhand.kinds.conditions import Hit, TimedOut, decide
from evenhand.kinds.conversation import JudgingContext, PreparedProtocol
from evenhand.kinds.kind import (
    ExampleSuite,
    Kind,
    ReplyLength,
    RubricTextError,
    Scoring,
    Terms,
)
from evenhand.kinds.messages import take_transcript
from evenhand.kinds.phrases import fold
from evenhand.kinds.prompt import CustomForm, extra_blocks, size_of
from evenhand.kinds.protocol import (
    PROTOCOL_FILE,
    Protocol,
    ProtocolError,
    ProtocolForm,
    read_pass_mark,
    require_same_ids,
)
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import (
    EXTRAS,
    RowError,
    TableForm,
    UnitBody,
    common_fields,
    filled_text_of,
    text_of,
    type_name,
    unit_text,
    without_empty,
)
from evenhand.kinds.weighted.present import present
from evenhand.kinds.weighted.task_rubric import RUBRIC_FORM, TYPES, TaskRubric, read_task
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
from evenhand.limits import REPAIRS
from evenhand.observation import Ends, PassMarks
from evenhand.text import hidden_characters
from evenhand.transcript import Judged, Transcript, texts_of, to_plain
from evenhand.units import Answer, answer_id, task_name_of
from evenhand.words import Names, Sentence

ALIASES = {"task_specific_rubric": "rubric", "task": "prompt", "question": "prompt"}


# Answers

_TEXTS = ("prompt", "answer")
FIELDS = ("id", "task_name", "prompt", "answer", "rubric", "meta", "language", *EXTRAS)


def read_answer(
    row: Mapping[str, Any], types: tuple[str, ...], *, has_rubric: bool, judged: Judged = "last"
) -> Answer:
    """Return the answer of a row; raise RowError. `has_rubric` says that the suite brings one."""
    row, transcript = take_transcript(without_empty(row, _TEXTS), *_TEXTS, judged)
    return Answer(
        id=answer_id(row),
        task_name=filled_text_of(row, "task_name") if "task_name" in row else task_name_of(row),
        prompt=filled_text_of(row, "prompt"),
        answer=text_of(row, "answer"),
        transcript=transcript,
        rubric=_read_rubric(row, types, has_rubric),
        **common_fields(row),
    )


def answer_text(answer: Answer) -> str:
    """Return an answer as one line of JSON: what the store keeps; `load_answer` reads it back."""
    turns = to_plain(answer.transcript)
    return unit_text(answer, "task_name", "prompt", "answer", "rubric", "meta", transcript=turns)


class _AnswerBody(UnitBody, frozen=True, kw_only=True):
    task_name: str
    prompt: str
    answer: str
    rubric: str | None = None
    transcript: Transcript | None = None


_body: StoredText[_AnswerBody] = StoredText(_AnswerBody, "an answer")


def _name_condition(rubric: str | None, verdict: Verdict) -> str:
    """Return the condition that the reason of a critical fail names, or the only one."""
    grade = verdict.value
    assert isinstance(grade, Grade)
    if rubric is None:
        return ""
    task = read_task(rubric, (grade.task_type,) if grade.task_type else TYPES)
    conditions = dict.fromkeys(task.critical) | {
        f"{each.kind}: {each.written}": each.written for each in task.conditions
    }
    reason = fold(grade.critical_fail_reason or "")
    named = [name for name, sought in conditions.items() if fold(sought or name) in reason]
    named = named or [*conditions]
    return named[0] if len(named) == 1 else ""


def load_answer(text: str) -> Answer:
    """Return the answer of a line that `answer_text` wrote."""
    body = _body.read(text)
    return Answer(
        task_name=body.task_name,
        prompt=body.prompt,
        answer=body.answer,
        transcript=body.transcript,
        rubric=body.rubric,
        **body.fields,
    )


def _read_rubric(row: Mapping[str, Any], types: tuple[str, ...], has_rubric: bool) -> str | None:
    rubric = row.get("rubric")
    if rubric is None:
        if not has_rubric:
            raise RowError(Sentence("kinds.no_rubric", field="rubric"))
        return None
    if not isinstance(rubric, str):
        raise RowError(Sentence("kinds.no_rubric_text", found=type_name(rubric)))
    try:
        read_task(rubric, types)
    except RubricTextError as error:
        message = Sentence("kinds.rubric_line", line=error.line, error=error.args[0])
        raise RowError(message) from None
    return rubric


# Judging


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
        message = Sentence("kinds.other_weights", type=name, dimensions=Names(dimensions))
        raise ProtocolError(PROTOCOL_FILE, message)
    for dimension, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            message = Sentence("kinds.no_weight", type=name, dimension=dimension)
            raise ProtocolError(PROTOCOL_FILE, message)
    total = sum(Decimal(str(weight)) for weight in weights.values())
    if total != FULL_MARKS:
        message = Sentence("kinds.weights_total", type=name, total=float(total))
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
    pass_score: float | None = None
    """The lowest total that passes."""
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

    @property
    def pass_marks(self) -> PassMarks:
        return PassMarks(overall=None if self.pass_score is None else self.pass_score / FULL_MARKS)

    def read(self, row: Mapping[str, Any]) -> list[Answer]:
        types = tuple(task_type.id for task_type in self.types)
        has_rubric = self.rubric is not None
        return [read_answer(row, types, has_rubric=has_rubric, judged=self.judged)]

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
        style, texts = context.styles[0], (answer.prompt, *_judged_texts(answer))
        size = size_of(*texts, answer.extras)
        hidden = await context.offload(partial(hidden_characters, *texts), size)
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
        judged = _judged_texts(answer)
        return Task(answer.task_name, given, self.types, has_conditions, scale, judged)

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
        told = {"prompt": answer.prompt, "answer": answer.answer}
        parts, turns = self.show_turns(told, answer.transcript)
        texts = {"types": form.types, "shape": form.shape, **turns}
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
        return phrase.format_map({name: quote(value)[1:-1] for name, value in hit.about.items()})


def _judged_texts(answer: Answer) -> tuple[str, ...]:
    """Return the answer, and all that is said in its transcript."""
    return (answer.answer, *texts_of(answer.transcript))


# The record


def read_pass_score(protocol: Protocol) -> float | None:
    """Return the lowest total that passes, where a protocol says one; raise ProtocolError."""
    return read_pass_mark(protocol, "pass_score", FULL_MARKS)


def _prepare(protocol: Protocol, language: str, terms: Terms) -> WeightedProtocol:
    pass_score = terms.settings.get("pass_score")
    return WeightedProtocol(
        **protocol.prepare(language, terms.settings),
        dimensions=protocol.read_table("dimensions", language),
        types=read_types(protocol, language),
        new_weights=terms.settings.get("weights"),
        rubric=terms.rubric,
        pass_score=read_pass_score(protocol) if pass_score is None else pass_score,
    )


def _check_protocol(protocol: Protocol, language: str) -> None:
    protocol.read_table("dimensions", language)
    read_types(protocol, language)
    read_pass_score(protocol)


def _resettle_settings(protocol: Protocol, asked: Protocol) -> dict[str, Any]:
    for table in ("dimensions", "types"):
        require_same_ids(protocol, asked, table)
    return {"weights": read_weights(protocol), "pass_score": read_pass_score(protocol)}


def _output_key(output: Mapping[str, Any]) -> str | None:
    return str(output["task_name"]) if "task_name" in output else None


KIND = Kind(
    name="weighted",
    question_noun="task",
    settings={"repairs": REPAIRS, "pass_score": None},
    form=ProtocolForm(
        keys=("dimensions", "types", "pass_score"),
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
    rubric_form=RUBRIC_FORM,
    example=ExampleSuite("answers.jsonl", by="model"),
    reply_length=ReplyLength(form=45, prose=0, form_each=12, prose_each=35),
    imports="grades",
    judged_text=lambda answer: answer.answer,
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
        condition=_name_condition,
        has_confidence=True,
    ),
)
