"""Samples, for every kind that judges one output: from rows to units, to the text that a store
keeps and back; the question about one and its check; and what a person is shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec import field as stored

from evenhand import jsontext
from evenhand.exchange import Message, Question, Schema, Style
from evenhand.jsontext import StoredText
from evenhand.judgment import Evidence, Judgment
from evenhand.kinds.blocks import (
    Cell,
    Gloss,
    Joined,
    Label,
    Mark,
    Piece,
    ShownJudgment,
    ShownUnit,
    Text,
    about_unit,
    turn_blocks,
)
from evenhand.kinds.conversation import JudgingContext, PreparedProtocol, ShownTexts
from evenhand.kinds.kind import RubricTextError
from evenhand.kinds.messages import take_transcript
from evenhand.kinds.prompt import size_of
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import (
    RowError,
    UnitBody,
    common_fields,
    filled_text_of,
    read_raw_object,
    text_of,
    unit_text,
    without_empty,
)
from evenhand.kinds.sample_check import Sources
from evenhand.observation import Ends, ScoredUnit
from evenhand.transcript import Judged, Transcript, texts_of, to_plain
from evenhand.units import Sample, sample_id
from evenhand.words import Sentence

ALIASES = {"answer": "model_output", "output": "model_output"}
_TEXTS = ("question", "model_output")


# Rows and stored texts


def read_sample(
    row: Mapping[str, Any],
    field: str,
    build: Callable[[object], Mapping[str, Any]],
    *,
    has_rubric: bool,
    judged: Judged = "last",
) -> Sample:
    """Return the sample of a row; raise RowError.

    Args:
        field: that of the row's own rubric.
        build: makes the rubric as the sample keeps it; raises RubricTextError.
        has_rubric: the suite brings a rubric.
        judged: what is judged of messages in place of an output.
    """
    row, transcript = take_transcript(without_empty(row, _TEXTS), *_TEXTS, judged)
    rubric = row.get(field)
    if rubric is None and not has_rubric:
        raise RowError(Sentence("kinds.no_rubric", field=field))
    return Sample(
        id=sample_id(row),
        question=filled_text_of(row, "question"),
        model_output=text_of(row, "model_output"),
        transcript=transcript,
        rubric=None if rubric is None else _build(rubric, field, build),
        **common_fields(row),
    )


def _build(
    rubric: object, field: str, build: Callable[[object], Mapping[str, Any]]
) -> Mapping[str, Any]:
    try:
        return build(rubric)
    except RubricTextError as error:
        path = ".".join(map(str, (field, *error.path)))
        raise RowError(Sentence("kinds.rubric_at", path=path, error=error.args[0])) from None


def sample_text(sample: Sample) -> str:
    """Return a sample as one line of JSON: what the store keeps; `load_sample` reads it back."""
    turns = to_plain(sample.transcript)
    return unit_text(sample, "question", "model_output", "meta", "rubric", transcript=turns)


class _SampleBody(UnitBody, frozen=True, kw_only=True):
    question: str
    model_output: str
    rubric: Raw | UnsetType = UNSET
    transcript: Transcript | None = None


_body: StoredText[_SampleBody] = StoredText(_SampleBody, "a sample")


def load_sample(text: str) -> Sample:
    """Return the sample of a line that `sample_text` wrote."""
    body = _body.read(text)
    rubric = None if body.rubric is UNSET else read_raw_object(body.rubric)
    return Sample(
        question=body.question,
        model_output=body.model_output,
        transcript=body.transcript,
        rubric=rubric,
        **body.fields,
    )


def output_key(output: Mapping[str, Any], field: str) -> str | None:
    """Return the id that the meta of an output object makes; None where it lacks the field."""
    if field not in output:
        return None
    if not isinstance(output.get("meta"), Mapping):
        raise RowError(Sentence("kinds.no_meta"))
    return sample_id({"meta": output["meta"]})


class SampleVerdict(Struct, frozen=True, kw_only=True):
    """A verdict on a sample, whose `meta` is kept byte for byte."""

    meta_json: Raw = stored(name="meta")

    @property
    def meta(self) -> dict[str, Any]:
        """The sample's own, key order and the spelling of numbers as they were."""
        return read_raw_object(self.meta_json)


# Judging


class SampleRubric(Protocol):
    """What samples are held against: a rubric or a checklist."""

    @property
    def text(self) -> str:
        """As a judge reads it."""
        ...


class ReplyForm(NamedTuple):
    """The form of a reply, the same for every sample under one rubric."""

    shape: str
    schema: Schema


R = TypeVar("R", bound=SampleRubric)
V = TypeVar("V", bound=Any)


@dataclass(frozen=True, kw_only=True)
class SampleProtocol(PreparedProtocol, Generic[R, V]):
    """A protocol that asks one question about each sample."""

    aliases = ALIASES
    compact_names: ClassVar = {"model_output": "answer"}

    rubric: R | None = None
    """The suite's; None where each row brings its own."""

    @abstractmethod
    def parse(self, text: str) -> R:
        """Return the rubric of a JSON text that was checked."""

    @abstractmethod
    def check_against(
        self,
        text: str,
        sample: Sample,
        rubric: R,
        finish: str,
        *,
        sources: Sources,
        is_compact: bool,
    ) -> Checked[V]:
        """Return the verdict of one reply, or its problems; `is_compact` if the judge fills a form,
        and need not give reasons."""

    @abstractmethod
    def reply_form(self, sample: Sample, rubric: R, style: Style) -> ReplyForm:
        """Return the form of a reply about a sample."""

    @abstractmethod
    def messages(self, sample: Sample, rubric: R, shape: str, style: Style) -> tuple[Message, ...]:
        """Return the opening of the conversation about a sample."""

    def show(self, sample: Sample) -> ShownTexts:
        """Return question and output as a judge is shown them."""
        parts = {"question": sample.question, "model_output": sample.model_output}
        return self.show_turns(parts, sample.transcript)

    def check(
        self,
        text: str,
        sample: Sample,
        style: Style = "full",
        *,
        finish: str = "stop",
        sources: Sources | None = None,
    ) -> Checked[V]:
        """Return the verdict of one reply, or its problems; `sources` are the sample's, where they
        are at hand already."""
        rubric = self.rubric_of(sample)
        sources = sources or Sources(sample, rubric.text)
        is_compact = style == "compact"
        return self.check_against(
            text, sample, rubric, finish, sources=sources, is_compact=is_compact
        )

    def question(self, sample: Sample, rubric: R, style: Style) -> Question:
        """Return the question about one sample."""
        form, neutral = self.reply_form(sample, rubric, style), None
        if style == "compact":
            unknown = self.words.neutral
            blank = Sample(id="", question=unknown["question"], model_output=unknown["answer"])
            neutral = self.messages(blank, rubric, form.shape, style)
        return Question(
            messages=self.messages(sample, rubric, form.shape, style),
            schema=None if self.custom_prompt and style == "full" else form.schema,
            neutral=neutral,
            unit=sample.id,
        )

    def first_questions(self, sample: Sample, context: JudgingContext) -> list[Question]:
        return [self.question(sample, self.rubric_of(sample), context.styles[0])]

    async def judge(self, sample: Sample, context: JudgingContext) -> Judgment:
        """Return the verdict on a sample, or why there is none."""
        rubric, style = self.rubric_of(sample), context.styles[0]
        sources = Sources(sample, rubric.text)
        turns = texts_of(sample.transcript)
        size = size_of(sample.question, sample.model_output, sample.extras, *turns)
        conversation = await self.converse(
            context,
            await context.offload(partial(self.question, sample, rubric, style), size),
            lambda reply: self.check(
                reply.text, sample, style, finish=reply.finish, sources=sources
            ),
            style,
            size,
        )
        return conversation.to_judgment()

    def check_external_reply(self, sample: Sample, text: str, finish: str = "stop") -> Checked[V]:
        """Check a reply from another tool."""
        return self.check(text, sample, finish=finish)

    def rubric_of(self, sample: Sample) -> R:
        """Return the sample's own rubric, else the suite's."""
        if sample.rubric is not None:
            return self.parse(jsontext.dump(sample.rubric))
        assert self.rubric is not None, "a sample without a rubric passed the loader"
        return self.rubric


# Statistics and presentation


def measure_sample(sample: Sample, ends: Callable[[str], Ends]) -> ScoredUnit:
    """Return the fields of a sample, the ends of its own rubric, of its JSON text, and its
    length."""
    own = {} if sample.rubric is None else ends(jsontext.dump(sample.rubric))
    return ScoredUnit(sample.meta, own, len(sample.model_output))


Quotes = Sequence[tuple[int, Evidence]]
"""The quotes of a judgment, each with its number among those of all judgments of the unit."""


def present_sample(
    sample: Sample,
    measured: ScoredUnit,
    judgments: Sequence[Judgment],
    present: Callable[[Judgment, Quotes], ShownJudgment],
) -> ShownUnit:
    """Return a sample, its output with every quote of every judgment marked and numbered."""
    numbers = count(1)
    quotes = [[(next(numbers), quote) for quote in judgment.evidence] for judgment in judgments]
    marks: dict[int | None, list[Mark]] = {}
    for number, quote in chain.from_iterable(quotes):
        mark = Mark(quote.start, quote.end, number, f"{number} {quote.dimension}")
        marks.setdefault(quote.turn, []).append(mark)
    whole = marks.get(None, ())
    texts = [
        Text(label=Label("unit.question"), text=sample.question, short="Q"),
        Text(label=Label("unit.output"), text=sample.model_output, marks=whole, short="A"),
    ]
    by_turn = {turn: several for turn, several in marks.items() if turn is not None}
    return ShownUnit(
        # There are no texts of what was judged elsewhere.
        unit=turn_blocks(sample.transcript, marks=by_turn)
        if sample.transcript
        else [text for text in texts if text.text],
        measured=measured,
        about=about_unit(sample.extras, sample.meta),
        judgments=list(map(present, judgments, quotes)),
    )


def quote_cell(name: str, evidence: Sequence[str], quotes: Quotes) -> Cell:
    """Return the numbered quotes for a dimension or criterion."""
    located = [quote for quote in quotes if quote[1].dimension == name]
    # What was judged elsewhere may have quotes that stand nowhere.
    return Cell(Joined(list(map(_present_quote, evidence, located)), "\n"))


def _name_turn(number: int) -> Label:
    return Label("unit.turn", {"number": str(number)})


def _present_quote(text: str, numbered: tuple[int, Evidence]) -> Piece:
    number, quote = numbered
    offsets: list[Piece] = [] if quote.turn is None else [_name_turn(quote.turn)]
    offsets.append(f"{quote.start}:{quote.end}")
    offsets += [] if quote.match == "exact" else [Gloss("match", quote.match)]
    return Joined([f"{number} “{text}” [", Joined(offsets, ", "), "]"], "")
