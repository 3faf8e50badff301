"""The kind `rubric`: one output scored on every dimension, each score backed by a quote.

The judge sees question, output and rubric, never `meta`: code copies that into the result. What
code knows it repairs and logs as a fix; what only the judge knows it asks again, with the exact
list of what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple, cast

from msgspec import UNSET, Raw, UnsetType

from evenhand import jsontext
from evenhand.exchange import Message, Question, Schema, Style
from evenhand.jsontext import StoredText
from evenhand.judgment import Judgment
from evenhand.kinds.conversation import JudgingContext, PreparedProtocol
from evenhand.kinds.evidence import fragments
from evenhand.kinds.kind import ExampleSuite, Kind, RubricTextError, Scoring, Terms
from evenhand.kinds.prompt import CustomForm, extra_blocks, size_of
from evenhand.kinds.protocol import Protocol, ProtocolError, ProtocolForm
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import (
    EXTRAS,
    RowError,
    TableForm,
    UnitBody,
    common_fields,
    filled_text_of,
    read_raw_object,
    text_of,
    unit_text,
    without_empty,
)
from evenhand.kinds.rubric.present import present
from evenhand.kinds.rubric.rubric import RUBRIC_FORM, Rubric, build_rubric, parse_rubric
from evenhand.kinds.rubric.verdict import (
    READER,
    RubricVerdict,
    Sources,
    check_reply,
    compact_schema,
    ends_of,
    measure_judgment,
    measure_sample,
    reply_schema,
    reply_shape,
    with_meta,
)
from evenhand.limits import REPAIRS
from evenhand.observation import Ends
from evenhand.units import Sample, sample_id
from evenhand.words import Sentence

ALIASES = {"answer": "model_output", "output": "model_output"}


# Samples

_TEXTS = ("question", "model_output")
FIELDS = ("id", "question", "model_output", "meta", "rubric", "language", *EXTRAS)


def read_sample(row: Mapping[str, Any], *, has_rubric: bool) -> Sample:
    """Return the sample of a row; raise RowError. `has_rubric` says that the suite brings one."""
    row = without_empty(row, _TEXTS)
    return Sample(
        id=sample_id(row),
        question=filled_text_of(row, "question"),
        model_output=text_of(row, "model_output"),
        rubric=_read_rubric(row, has_rubric),
        **common_fields(row),
    )


def sample_text(sample: Sample) -> str:
    """Return a sample as one line of JSON: what the store keeps; `load_sample` reads it back."""
    return unit_text(sample, "question", "model_output", "meta", "rubric")


class _SampleBody(UnitBody, frozen=True, kw_only=True):
    question: str
    model_output: str
    rubric: Raw | UnsetType = UNSET


_body: StoredText[_SampleBody] = StoredText(_SampleBody, "a sample")


def load_sample(text: str) -> Sample:
    """Return the sample of a line that `sample_text` wrote."""
    body = _body.read(text)
    rubric = None if body.rubric is UNSET else read_raw_object(body.rubric)
    question, output = body.question, body.model_output
    return Sample(question=question, model_output=output, rubric=rubric, **body.fields)


def _read_rubric(row: Mapping[str, Any], has_rubric: bool) -> Mapping[str, Any] | None:
    rubric = row.get("rubric")
    if rubric is None:
        if not has_rubric:
            raise RowError(Sentence("kinds.no_rubric"))
        return None
    if isinstance(rubric, str):
        try:
            rubric = jsontext.parse(rubric)
        except ValueError as error:
            raise RowError(Sentence("kinds.rubric_not_json", error=error)) from None
    try:
        parse_rubric(jsontext.dump(rubric))
    except RubricTextError as error:
        path = ".".join(map(str, ("rubric", *error.path)))
        raise RowError(Sentence("kinds.rubric_at", path=path, error=error.args[0])) from None
    return cast("Mapping[str, Any]", rubric)


# Judging


class ReplyForm(NamedTuple):
    """The parts that every question under one rubric shares."""

    shape: str
    schema: Schema


@lru_cache(maxsize=64)
def _form_of(rubric: Rubric, tags: tuple[str, ...]) -> ReplyForm:
    """Return the form of a reply under a rubric: rows often repeat one rubric."""
    return ReplyForm(jsontext.dump(reply_shape(rubric)), Schema(reply_schema(rubric, tags)))


@dataclass(frozen=True, kw_only=True)
class RubricProtocol(PreparedProtocol):
    """A rubric protocol in one language, with the settings that can change a verdict."""

    aliases = ALIASES
    compact_names: ClassVar = {"model_output": "answer"}

    rubric: Rubric | None = None
    expose_meta: bool = False
    allowed_tags: tuple[str, ...] = ()
    """The failure tags that a verdict may have, where they are others than the judge was told."""

    @property
    def ends(self) -> Ends:
        return {} if self.rubric is None else ends_of(self.rubric)

    def read(self, row: Mapping[str, Any]) -> list[Sample]:
        return [read_sample(row, has_rubric=self.rubric is not None)]

    def first_questions(self, sample: Sample, context: JudgingContext) -> list[Question]:
        return [self.question(sample, self.rubric_of(sample), context.styles[0])]

    async def judge(self, sample: Sample, context: JudgingContext) -> Judgment:
        """Return the verdict on a sample, or why there is none."""
        rubric, style = self.rubric_of(sample), context.styles[0]
        sources = Sources(sample, rubric)
        size = size_of(sample.question, sample.model_output, sample.extras)
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

    def check(
        self,
        text: str,
        sample: Sample,
        style: Style = "full",
        *,
        finish: str = "stop",
        sources: Sources | None = None,
    ) -> Checked[RubricVerdict]:
        """Return the verdict of one reply, or its problems; `sources` are the sample's, where they
        are at hand already."""
        return check_reply(
            text,
            sample,
            self.rubric_of(sample),
            self.words,
            finish,
            exposed=self.expose_meta,
            asked_meta=self.custom_prompt is not None and self.custom_prompt.says("meta"),
            is_compact=style == "compact",
            sources=sources,
            tags=self.allowed_tags,
        )

    def check_external_reply(
        self, sample: Sample, text: str, finish: str = "stop"
    ) -> Checked[RubricVerdict]:
        """Check a reply from another tool."""
        return self.check(text, sample, finish=finish)

    def rubric_of(self, sample: Sample) -> Rubric:
        """Return the sample's own rubric, else the suite's."""
        if sample.rubric is not None:
            return parse_rubric(jsontext.dump(sample.rubric))
        assert self.rubric is not None, "a sample without a rubric passed the loader"
        return self.rubric

    def question(self, sample: Sample, rubric: Rubric, style: Style) -> Question:
        """Return the question about one sample."""
        meta = dict(sample.meta) if self.expose_meta else None
        shape, schema = _form_of(rubric, tuple(self.words.tags))
        neutral = None
        if style == "compact":
            unknown = self.words.neutral
            blank = Sample(id="", question=unknown["question"], model_output=unknown["answer"])
            neutral = self._messages(blank, rubric, shape, style)
            compact = compact_schema(rubric, fragments(sample.model_output), self.words.no_evidence)
            schema = Schema(compact if meta is None else with_meta(compact, {"const": meta}))
        elif meta is not None:
            schema = Schema(with_meta(schema.value, {"type": "object"}))
        if meta is not None:
            shape = jsontext.dump({"meta": meta, **reply_shape(rubric)})
        return Question(
            messages=self._messages(sample, rubric, shape, style),
            schema=None if self.custom_prompt and style == "full" else schema,
            neutral=neutral,
            unit=sample.id,
        )

    def _messages(
        self, sample: Sample, rubric: Rubric, shape: str, style: Style
    ) -> tuple[Message, ...]:
        texts = {"shape": shape, "tags": self._list_tags()}
        parts = {"question": sample.question, "model_output": sample.model_output}
        told = rubric.tell(self.words.phrases["higher_is_worse"])
        if self.custom_prompt is not None:
            meta = {"meta": sample.meta} if self.expose_meta else {}
            blind: dict[str, Any] = {**meta, **parts, "rubric": rubric.value}
            texts["rubric"] = told
            return self.fill_custom_prompt(self.custom_prompt, blind, sample.extras, texts)
        extras = extra_blocks(sample.extras, self.use)
        if self.expose_meta:
            extras["meta"] = jsontext.dump(sample.meta)
            texts["after_extras"] = self.words.phrases["copy_meta"]
        shared = ("rubric", "shape", "tags") if sample.rubric is None else ("tags",)
        return self.fill_prompt(style, {**parts, "rubric": told}, extras, texts, shared)

    def _list_tags(self) -> str:
        """Return the failure tags as a judge is told of them, one per line."""
        phrases = self.words.phrases
        return "\n".join(
            phrases["tag_line"]
            .format(tag=tag, name=name, meaning=phrases.get(f"tag_meanings.{tag}", ""))
            .rstrip(": ")
            for tag, name in self.words.tags.items()
        )


# The record


def tag_names(protocol: Protocol, languages: Sequence[str]) -> Mapping[str, str]:
    """Return the failure tags of a protocol with their names in the first of some languages that
    it has names in."""
    for language in languages:
        with suppress(ProtocolError):
            return protocol.words(language).tags
    return {}


def _prepare(protocol: Protocol, language: str, terms: Terms) -> RubricProtocol:
    settings = terms.settings
    return RubricProtocol(
        **protocol.prepare(language, settings),
        rubric=None if terms.rubric is None else build_rubric(terms.rubric),
        expose_meta=settings["expose_meta"],
        allowed_tags=tuple(settings.get("tags", ())),
    )


def _resettle_settings(protocol: Protocol, asked: Protocol) -> dict[str, Any]:
    return {"tags": protocol.ids("tags") or list(protocol.words("en").tags)}


def _output_key(output: Mapping[str, Any]) -> str | None:
    """Return the id that the meta of an output object makes."""
    if "scores" not in output:
        return None
    if not isinstance(output.get("meta"), Mapping):
        raise RowError(Sentence("kinds.no_meta"))
    return sample_id({"meta": output["meta"]})


KIND = Kind(
    name="rubric",
    settings={"repairs": REPAIRS, "expose_meta": False},
    form=ProtocolForm(
        keys=("tags",),
        tables=("tags",),
        must=frozenset({"question", "model_output", "rubric"}),
        may=frozenset({"tags", "extras", "shape"}),
        custom_prompt=CustomForm(
            parts=("question", "model_output", "rubric"),
            aliases=ALIASES,
            offered=("tags", "shape"),
            by_setting={"meta": "expose_meta"},
            marks=("model_output", "failure_tags", "evidence", "rationale", "dimensions"),
        ),
    ),
    table_form=TableForm("question", "model_output", FIELDS, sample_id),
    rubric_form=RUBRIC_FORM,
    example=ExampleSuite("samples.jsonl", "rubric.json", by="prompt_variant", baseline="v1"),
    imports="scores",
    dump=sample_text,
    load=load_sample,
    unit_keys=lambda sample: [sample_id({"meta": sample.meta})],
    output_key=_output_key,
    prepare=_prepare,
    check_protocol=lambda protocol, language: protocol.words(language),
    resettle_settings=_resettle_settings,
    read_judgment=READER.read,
    present=present,
    measure=Scoring(
        lambda text: measure_sample(load_sample(text)),
        measure_judgment,
        tag_names,
        has_notes=True,
    ),
)
