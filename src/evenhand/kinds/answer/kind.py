"""The kind `answer`: a model's answer to a question, kept as it came.

Nothing is judged here. Answers are made by the engine that judges them later, so that they are
calls in the ledger like any other: durable, priced, resumed, never paid for twice. A unit is a
question under one prompt, its judges are the models that answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, to_builtins

from evenhand import jsontext
from evenhand.errors import CallError
from evenhand.exchange import Finish, Message, Question, Reply
from evenhand.jsontext import StoredText
from evenhand.judgment import Failure, Judgment, JudgmentReader, Pass, Verdict
from evenhand.kinds.answer.templates import QUESTION, ROW_KEYS, AnswerTemplate
from evenhand.kinds.blocks import (
    Cell,
    Gloss,
    Label,
    ShownJudgment,
    ShownUnit,
    Text,
    about_unit,
)
from evenhand.kinds.conversation import JudgingContext, PreparedProtocol
from evenhand.kinds.kind import ExampleSuite, Kind, Scoring, Terms
from evenhand.kinds.messages import is_conversation, read_turns
from evenhand.kinds.protocol import JudgeWords, Protocol, ProtocolForm
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import RowError, TableForm
from evenhand.observation import Scored, ScoredUnit

NAME = "answer"
TEMPLATES = "templates/"
"""The folder of the prompts under test, among the texts of the protocol."""
VARIANT = "prompt_variant"
_OWN_CODE = "python/"
_NO_WORDS = JudgeWords(problems={}, types={}, neutral={}, english={}, english_types={})


class Asked(Struct, frozen=True, kw_only=True):
    """A question under one prompt."""

    id: str
    variant: str
    """The name of the prompt; empty where the question is sent as it is."""
    row: dict[str, Any]
    """The columns of the question."""
    turns: list[dict[str, str]]
    """All that the model is told."""
    language: str | None = None

    @property
    def question(self) -> str:
        return jsontext.as_text(self.row[QUESTION])


load_asked = StoredText[Asked](Asked, "a question").read


class MadeAnswer(Struct, frozen=True, kw_only=True):
    """An answer as it came, also one that was cut off, filtered or refused."""

    answer: str
    finish: Finish
    messages: list[Any] = []
    """The whole conversation, where a program of the user's own returns one."""

    @property
    def output(self) -> dict[str, Any]:
        fields: dict[str, Any] = to_builtins(self)
        return {name: value for name, value in fields.items() if value or name == "answer"}


READER = JudgmentReader(MadeAnswer, Pass)


@dataclass(frozen=True, kw_only=True)
class AnswerProtocol(PreparedProtocol):
    """The prompts under test; the question is sent as it is where there are none."""

    templates: Mapping[str, AnswerTemplate]

    def read(self, row: Mapping[str, Any]) -> Sequence[Asked]:
        """Return the question of a row under each prompt; `id` and `question` are there."""
        columns = {name: value for name, value in row.items() if name not in ROW_KEYS}
        return [
            Asked(
                id=f"{row['id']}/{variant}" if variant else str(row["id"]),
                variant=variant,
                row=columns,
                turns=[message.json() for message in _fill(template, row)],
            )
            for variant, template in self.templates.items()
        ]

    def first_questions(self, asked: Asked, context: JudgingContext) -> list[Question]:
        turns = [Message(turn["role"], turn["content"]) for turn in asked.turns]  # type: ignore[arg-type]
        return [Question(messages=tuple(turns), unit=asked.id, wants_answer=True)]

    async def judge(self, asked: Asked, context: JudgingContext) -> Judgment:
        """Return the answer; a failure where no reply could be had."""
        try:
            reply = await context.ask(self.first_questions(asked, context)[0])
        except CallError as error:
            if error.reason == "filtered":
                return Verdict(value=MadeAnswer(answer="", finish="filtered"))
            return Failure(reason=error.reason, detail=str(error))
        record = Pass(reask=0, problems=(), sampling=dict(reply.sampling))
        return Verdict(value=_read_reply(asked, reply), passes=(record,))

    def check_external_reply(
        self, asked: Asked, text: str, finish: str = "stop"
    ) -> Checked[MadeAnswer]:
        raise NotImplementedError("answers are not checked")


def _fill(template: AnswerTemplate, row: Mapping[str, Any]) -> tuple[Message, ...]:
    try:
        return template.fill_row(row)
    except ValueError as error:
        raise RowError(error.args[0]) from None


def _read_reply(asked: Asked, reply: Reply) -> MadeAnswer:
    """Return the answer of a reply. A function of the user's own may return a conversation: of that
    the question is kept, and not the prompt, which the judge must not see."""
    if reply.model.startswith(_OWN_CODE) and reply.text.startswith("[{"):
        with suppress(ValueError):
            messages = jsontext.parse(reply.text)
            if is_conversation(messages) and read_turns(messages):
                kept = _without_prompt(asked, messages)
                return MadeAnswer(answer="", finish=reply.finish, messages=kept)
    return MadeAnswer(answer=reply.text, finish=reply.finish)


def _without_prompt(asked: Asked, messages: list[Any]) -> list[Any]:
    """Return a conversation that begins with the question instead of what was sent."""
    sent = len(asked.turns)
    begins_as_sent = messages[:sent] == asked.turns
    rest = messages[sent:] if begins_as_sent else messages
    if begins_as_sent or all(message.get("role") != "user" for message in messages):
        rest = [{"role": "user", "content": asked.question}, *rest]
    return rest


def _prepare(protocol: Protocol, language: str, terms: Terms) -> AnswerProtocol:
    templates = {
        file.removeprefix(TEMPLATES): AnswerTemplate.parse(text)
        for file, text in protocol.texts.items()
        if file.startswith(TEMPLATES)
    }
    return AnswerProtocol(
        prompts={}, words=_NO_WORDS, templates=templates or {"": AnswerTemplate.parse("")}
    )


def _measure(asked: Asked) -> ScoredUnit:
    fields = {name: value for name, value in asked.row.items() if name != QUESTION}
    return ScoredUnit(fields | {VARIANT: asked.variant or None}, {}, 0)


def _present(asked: Asked, judgments: Sequence[Judgment]) -> ShownUnit:
    turns = [Text(label=turn["role"], text=turn["content"]) for turn in asked.turns]
    return ShownUnit(
        unit=turns,
        measured=_measure(asked),
        about=about_unit({}, _measure(asked).fields),
        judgments=list(map(_present_answer, judgments)),
    )


def _present_answer(judgment: Judgment) -> ShownJudgment:
    if not isinstance(judgment, Verdict):
        return ShownJudgment()
    made = judgment.value
    assert isinstance(made, MadeAnswer)
    text = made.answer or (jsontext.dump(made.messages) if made.messages else "")
    blocks = [Text(label=Label("unit.answer"), text=text)]
    return ShownJudgment(line=[Cell(Gloss("finish", made.finish))], blocks=blocks)


KIND = Kind(
    name=NAME,
    settings={},
    form=ProtocolForm(must=frozenset()),
    table_form=TableForm(QUESTION, "", (QUESTION,), lambda row: str(row["id"])),
    example=ExampleSuite(""),
    dump=lambda asked: jsontext.dump(to_builtins(asked)),
    load=load_asked,
    unit_keys=lambda asked: [asked.id],
    output_key=lambda output: None,
    prepare=_prepare,
    read_judgment=READER.read,
    present=_present,
    measure=Scoring(
        lambda text: _measure(load_asked(text)),
        lambda judgment: Scored({}) if isinstance(judgment, Verdict) else None,
    ),
)
