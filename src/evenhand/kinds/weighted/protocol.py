"""The protocol kind `weighted`: one answer graded out of 100, with weights by type of task.

Critical-fail conditions come first: those that code can decide cost no call, the others are the
judge's. Facts of the rubric are the truth to grade by. Code knows the type, the weights and the
total; the judge is asked for reasons and scores alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace as changed

from evenhand import jsontext
from evenhand.errors import quoted
from evenhand.exchange import Message, Question, Schema, Style
from evenhand.judgment import Failure, Judgment, Verdict
from evenhand.kinds.check import Checked
from evenhand.kinds.conversation import JudgingContext, converse
from evenhand.kinds.custom_prompt import CustomPrompt, Unit, unit_of
from evenhand.kinds.prompt import (
    Prompt,
    extra_blocks,
    fenced,
    shown_extras,
    size_of,
)
from evenhand.kinds.protocol import Words
from evenhand.kinds.weighted.check import Task, check_reply, failed_grade, under_weights
from evenhand.kinds.weighted.conditions import Hit, TimedOut, decide
from evenhand.kinds.weighted.form import (
    Dimension,
    TaskType,
    compact_schema_of,
    schema_of,
    shape_of,
)
from evenhand.kinds.weighted.task_rubric import TaskRubric, read_task
from evenhand.kinds.weighted.verdict import Grade
from evenhand.limits import REPAIRS
from evenhand.text import hidden_characters
from evenhand.units import Answer

ALIASES = {"task_specific_rubric": "rubric", "task": "prompt", "question": "prompt"}
"""Other names that a prompt of the user's own may use."""


class Form(NamedTuple):
    """What every question about tasks of one type shares, made once."""

    types: str
    shape: str
    schema: Schema
    neutral: tuple[Message, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedProtocol:
    """A weighted protocol in one language, with the settings that can change a verdict."""

    prompts: Mapping[Style, Prompt]
    words: Words
    dimensions: tuple[Dimension, ...]
    types: tuple[TaskType, ...]
    new_weights: Mapping[str, Mapping[str, float]] | None = None
    """By task type, where replies are settled by other weights than the judges were told."""
    rubric: str | None = None
    """The rubric for rows that bring none."""
    repairs: int = REPAIRS
    use: tuple[str, ...] = ()
    own: CustomPrompt | None = None
    forms: dict[tuple[str | None, Style], Form] = field(
        default_factory=dict[tuple[str | None, Style], Form], compare=False
    )

    async def judge(self, answer: Answer, context: JudgingContext) -> Judgment:
        """Critical fails by code, then ask, check, ask again; settle or fail. A grade under new
        weights is rescaled and flagged; what they cannot be applied to is asked under them."""
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
        if self.new_weights is None:
            return self.types
        weights = self.new_weights
        return tuple(replace(kind, weights=weights[kind.id]) for kind in self.types)

    async def _judge(self, answer: Answer, context: JudgingContext) -> Judgment:
        style, size = context.styles[0], size_of(answer.prompt, answer.answer, answer.extras)
        hidden = await context.offload(partial(_hidden, answer), size)
        flags = [f"hidden_characters:{kind}" for kind in hidden]
        decision = await context.offload(partial(self.decided, answer), size)
        if isinstance(decision, Hit):
            ungraded = self.words.phrases["ungraded"]
            grade = failed_grade(self.task(answer, style), self._reason(decision), ungraded)
            return Verdict(value=grade, flags=("decided_by_code", *flags))
        if decision is not None:
            line = decision.condition.line
            detail = f"the pattern on line {line} of the rubric did not end in time"
            return Failure(reason="timeout", detail=detail)
        conversation = await converse(
            context,
            await context.offload(partial(self.question, answer, style), size),
            lambda reply: self.check(reply.text, answer, style, finish=reply.finish),
            self.prompts[style],
            self.words,
            self.repairs,
        )
        if failed := conversation.failure:
            return failed
        last = conversation.tries[-1].checked
        assert last.value is not None
        if last.value.is_unsure:
            flags.append("low_confidence")
        return Verdict(
            value=last.value,
            fixes=last.fixes,
            flags=(*last.flags, *flags),
            passes=conversation.passes,
        )

    def decided(self, answer: Answer) -> Hit | TimedOut | None:
        """What code decides of the critical-fail conditions, at no cost."""
        return decide(self.rubric_of(answer).conditions, answer.answer)

    def rubric_of(self, answer: Answer) -> TaskRubric:
        """The answer's own rubric, else the suite's; the loader saw to it that there is one."""
        text = self.rubric if answer.rubric is None else answer.rubric
        assert text is not None, "an answer without a rubric passed the loader"
        return read_task(text, tuple(task_type.id for task_type in self.types))

    def task(self, answer: Answer, style: Style) -> Task:
        """What code knows before the judge is asked."""
        rubric = self.rubric_of(answer)
        task_type = next((kind for kind in self.types if kind.id == rubric.task_type), None)
        scale = self.types[0] if style == "compact" and task_type is None else None
        return Task(
            answer.task_name, task_type, self.types, bool(rubric.critical), scale, answer.answer
        )

    def check(
        self, text: str | bytes, answer: Answer, style: Style = "full", *, finish: str = "stop"
    ) -> Checked[Grade]:
        """The contract applied to one reply."""
        compact = style == "compact"
        return check_reply(text, self.task(answer, style), self.words, finish, is_compact=compact)

    def check_external_reply(
        self, answer: Answer, text: str, finish: str = "stop"
    ) -> Checked[Grade]:
        """The same for a reply made elsewhere, about an answer that code may have failed."""
        decision, task = self.decided(answer), self.task(answer, "full")
        if isinstance(decision, Hit):
            task = task._replace(failed=self._reason(decision))
        checked = check_reply(text, task, self.words, finish)
        if checked.value is None or not checked.value.is_unsure:
            return checked
        return changed(checked, flags=(*checked.flags, "low_confidence"))

    def question(self, answer: Answer, style: Style) -> Question:
        """What the judge is asked about one answer."""
        form = self._form(self.task(answer, style).given, style)
        return Question(
            messages=self._messages(answer, self.rubric_of(answer), form, style),
            schema=None if self.own and style == "full" else form.schema,
            neutral=form.neutral,
            unit=answer.id,
        )

    def _form(self, task_type: TaskType | None, style: Style) -> Form:
        place = (task_type.id if task_type else None, style)
        if place not in self.forms:
            make = compact_schema_of if style == "compact" else schema_of
            shape = jsontext.dump(shape_of(self.dimensions))
            schema = Schema(make(self.dimensions, self.types, task_type))
            form = Form(self._types(task_type), shape, schema, None)
            if style == "compact":
                form = form._replace(neutral=self._neutral(form, style))
            self.forms[place] = form
        return self.forms[place]

    def _types(self, task_type: TaskType | None) -> str:
        """The type with the most points of each dimension; where none is given, all types."""
        say = self.words.phrases
        if task_type is not None:
            ranged = [
                say["dimension_line"].format(
                    dimension=part.id, most=_number(task_type.weights[part.id]), text=part.text
                )
                for part in self.dimensions
            ]
            return "\n".join([say["type_given"].format(type=task_type.id), *ranged])
        named = [
            say["type_line"].format(type=part.id, maxima=self._maxima(part), text=part.text)
            for part in self.types
        ]
        described = [
            say["dimension_text"].format(dimension=part.id, text=part.text)
            for part in self.dimensions
        ]
        return "\n".join([say["type_asked"], *named, say["dimensions_asked"], *described])

    def _maxima(self, kind: TaskType) -> str:
        say = self.words.phrases
        return say["maxima_join"].join(
            say["maximum"].format(dimension=name, most=_number(most))
            for name, most in kind.weights.items()
        )

    def _neutral(self, form: Form, style: Style) -> tuple[Message, ...]:
        unknown = self.words.neutral
        blank = Answer(id="", task_name="", prompt=unknown["prompt"], answer=unknown["answer"])
        rubric = read_task(unknown["rubric"], tuple(task_type.id for task_type in self.types))
        return self._messages(blank, rubric, form, style)

    def _messages(
        self, answer: Answer, rubric: TaskRubric, form: Form, style: Style
    ) -> tuple[Message, ...]:
        if self.own is not None:
            return self.own.messages(self._own_unit(answer, rubric, form))
        texts = {"prompt": answer.prompt, "answer": answer.answer, "rubric": rubric.points}
        if rubric.critical:
            texts["critical"] = "\n".join(f"- {condition}" for condition in rubric.critical)
        if rubric.facts:
            texts["facts"] = rubric.facts
        extras = extra_blocks(answer.extras, self.use)
        phrases, values = self.words.phrases, fenced(texts | extras)
        values.setdefault("critical", phrases["no_critical"])
        values.setdefault("facts", phrases["no_facts"])
        values["extras"] = "\n".join(values[name] for name in extras)
        values |= {"types": form.types, "shape": form.shape}
        shared = ("critical", "facts", "rubric") if answer.rubric is None else ()
        return self.prompts[style].messages(values, ("shape", "types", *shared))

    def _own_unit(self, answer: Answer, rubric: TaskRubric, form: Form) -> Unit:
        blind: dict[str, Any] = {"prompt": answer.prompt, "answer": answer.answer}
        blind["rubric"] = rubric.text
        blind |= shown_extras(answer.extras, self.use)
        return unit_of(blind, ALIASES, {"types": form.types, "shape": form.shape})

    def _reason(self, hit: Hit) -> str:
        """Why code failed an answer, in the protocol's language."""
        phrase = self.words.phrases[f"critical_by_code.{hit.condition.kind}"]
        return phrase.format_map({name: quoted(value)[1:-1] for name, value in hit.about.items()})


def _number(weight: float) -> str:
    return jsontext.dump(weight)


def _hidden(answer: Answer) -> list[str]:
    return hidden_characters(answer.prompt, answer.answer)
