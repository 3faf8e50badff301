"""The kind `rubric`: one output scored on every dimension, each score backed by a quote.

The judge sees question, output and rubric, never `meta`: code copies that into the result. What
code knows it repairs and logs as a fix; what only the judge knows it asks again, with the exact
list of what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evenhand import jsontext
from evenhand.exchange import Message, Schema, Style
from evenhand.kinds.evidence import fragments
from evenhand.kinds.kind import ExampleSuite, Kind, Scoring, Terms
from evenhand.kinds.prompt import CustomForm, extra_blocks
from evenhand.kinds.protocol import Protocol, ProtocolError, ProtocolForm
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import EXTRAS, RowError, TableForm
from evenhand.kinds.rubric.present import present
from evenhand.kinds.rubric.rubric import RUBRIC_FORM, Rubric, build_rubric, parse_rubric
from evenhand.kinds.rubric.verdict import (
    READER,
    RubricVerdict,
    check_reply,
    compact_schema,
    ends_of,
    measure,
    measure_judgment,
    reply_schema,
    reply_shape,
    with_meta,
)
from evenhand.kinds.sample_check import Sources
from evenhand.kinds.samples import (
    ALIASES,
    ReplyForm,
    SampleProtocol,
    load_sample,
    output_key,
    read_sample,
    sample_text,
)
from evenhand.limits import REPAIRS
from evenhand.observation import Ends, PassMarks
from evenhand.transcript import Judged
from evenhand.units import Sample, sample_id
from evenhand.words import Sentence

FIELDS = ("id", "question", "model_output", "meta", "rubric", "language", *EXTRAS)


def read_row(row: Mapping[str, Any], *, has_rubric: bool, judged: Judged = "last") -> Sample:
    """Return the sample of a row; raise RowError. `has_rubric` says that the suite brings one."""
    return read_sample(row, "rubric", _read_rubric, has_rubric=has_rubric, judged=judged)


def _read_rubric(rubric: object) -> Mapping[str, Any]:
    if isinstance(rubric, str):
        try:
            rubric = jsontext.parse(rubric)
        except ValueError as error:
            raise RowError(Sentence("kinds.rubric_not_json", error=error)) from None
    return parse_rubric(jsontext.dump(rubric)).value


# Judging


@lru_cache(maxsize=64)
def _form_of(rubric: Rubric, tags: tuple[str, ...]) -> ReplyForm:
    """Return the form of a reply under a rubric: rows often repeat one rubric."""
    return ReplyForm(jsontext.dump(reply_shape(rubric)), Schema(reply_schema(rubric, tags)))


@dataclass(frozen=True, kw_only=True)
class RubricProtocol(SampleProtocol[Rubric, RubricVerdict]):
    """A rubric protocol in one language, with the settings that can change a verdict."""

    expose_meta: bool = False
    allowed_tags: tuple[str, ...] = ()
    """The failure tags that a verdict may have, where they are others than the judge was told."""

    @property
    def ends(self) -> Ends:
        return {} if self.rubric is None else ends_of(self.rubric)

    @property
    def pass_marks(self) -> PassMarks:
        return PassMarks({} if self.rubric is None else self.rubric.pass_scores)

    def read(self, row: Mapping[str, Any]) -> list[Sample]:
        return [read_row(row, has_rubric=self.rubric is not None, judged=self.judged)]

    def parse(self, text: str) -> Rubric:
        return parse_rubric(text)

    def check_against(
        self,
        text: str,
        sample: Sample,
        rubric: Rubric,
        finish: str,
        *,
        sources: Sources,
        is_compact: bool,
    ) -> Checked[RubricVerdict]:
        return check_reply(
            text,
            sample,
            rubric,
            self.words,
            finish,
            exposed=self.expose_meta,
            asked_meta=self.custom_prompt is not None and self.custom_prompt.says("meta"),
            is_compact=is_compact,
            sources=sources,
            tags=self.allowed_tags,
        )

    def reply_form(self, sample: Sample, rubric: Rubric, style: Style) -> ReplyForm:
        meta = dict(sample.meta) if self.expose_meta else None
        shape, schema = _form_of(rubric, tuple(self.words.tags))
        if style == "compact":
            compact = compact_schema(rubric, fragments(sample.model_output), self.words.no_evidence)
            schema = Schema(compact if meta is None else with_meta(compact, {"const": meta}))
        elif meta is not None:
            schema = Schema(with_meta(schema.value, {"type": "object"}))
        if meta is not None:
            shape = jsontext.dump({"meta": meta, **reply_shape(rubric)})
        return ReplyForm(shape, schema)

    def messages(
        self, sample: Sample, rubric: Rubric, shape: str, style: Style
    ) -> tuple[Message, ...]:
        parts, turns = self.show(sample)
        texts = {"shape": shape, "tags": self._list_tags(), **turns}
        told = rubric.tell(self.words.phrases["higher_is_worse"])
        if self.custom_prompt is not None:
            meta = {"meta": sample.meta} if self.expose_meta else {}
            blind: dict[str, Any] = {**meta, **parts, "rubric": rubric.told_value}
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
    judged_text=lambda sample: sample.model_output,
    dump=sample_text,
    load=load_sample,
    unit_keys=lambda sample: [sample_id({"meta": sample.meta})],
    output_key=lambda output: output_key(output, "scores"),
    prepare=_prepare,
    check_protocol=lambda protocol, language: protocol.words(language),
    resettle_settings=_resettle_settings,
    read_judgment=READER.read,
    present=present,
    measure=Scoring(
        lambda text: measure(load_sample(text)),
        measure_judgment,
        tag_names,
        has_notes=True,
        ends=lambda rubric: ends_of(parse_rubric(jsontext.dump(rubric))),
    ),
)
