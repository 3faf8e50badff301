"""The kind `checklist`: criteria that one output meets or does not, each answer backed by quotes.

The judge answers every criterion with yes, no, or not applicable. It never sees points, `must` or
`meta`: score and pass are worked out by code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evenhand import jsontext
from evenhand.exchange import Message, Schema, Style
from evenhand.kinds.checklist.criteria import (
    RUBRIC_FORM,
    Checklist,
    build_checklist,
    parse_checklist,
    read_given,
)
from evenhand.kinds.checklist.present import present
from evenhand.kinds.checklist.verdict import (
    READER,
    ChecklistCheck,
    ChecklistVerdict,
    compact_schema,
    ends_of,
    measure,
    measure_judgment,
    reply_schema,
    reply_shape,
)
from evenhand.kinds.evidence import fragments
from evenhand.kinds.kind import ExampleSuite, Kind, Scoring, Terms
from evenhand.kinds.prompt import CustomForm, extra_blocks
from evenhand.kinds.protocol import Protocol, ProtocolForm, read_pass_mark
from evenhand.kinds.reply import Checked
from evenhand.kinds.rows import EXTRAS, TableForm
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
from evenhand.observation import Ends
from evenhand.units import Sample, sample_id

FIELDS = ("id", "question", "model_output", "meta", "criteria", "language", *EXTRAS)


@lru_cache(maxsize=64)
def _form_of(checklist: Checklist) -> ReplyForm:
    """Return the form of a reply under a checklist: rows often repeat one."""
    return ReplyForm(jsontext.dump(reply_shape(checklist)), Schema(reply_schema(checklist)))


@dataclass(frozen=True, kw_only=True)
class ChecklistProtocol(SampleProtocol[Checklist, ChecklistVerdict]):
    """A checklist protocol in one language, with the settings that can change a verdict."""

    pass_share: float | None = None
    """The lowest score that passes."""

    @property
    def ends(self) -> Ends:
        return {} if self.rubric is None else ends_of(self.rubric)

    def read(self, row: Mapping[str, Any]) -> list[Sample]:
        has_rubric, judged = self.rubric is not None, self.judged
        return [read_sample(row, "criteria", read_given, has_rubric=has_rubric, judged=judged)]

    def parse(self, text: str) -> Checklist:
        return parse_checklist(text)

    def check_against(
        self,
        text: str,
        sample: Sample,
        rubric: Checklist,
        finish: str,
        *,
        sources: Sources,
        is_compact: bool,
    ) -> Checked[ChecklistVerdict]:
        check = ChecklistCheck(self.words, sample, sources, needs_reasons=not is_compact)
        return check.check_reply(text, rubric, finish, self.pass_share)

    def reply_form(self, sample: Sample, rubric: Checklist, style: Style) -> ReplyForm:
        form = _form_of(rubric)
        if style == "full":
            return form
        quotes = fragments(sample.model_output)
        return ReplyForm(form.shape, Schema(compact_schema(rubric, quotes, self.words.no_evidence)))

    def messages(
        self, sample: Sample, rubric: Checklist, shape: str, style: Style
    ) -> tuple[Message, ...]:
        told = rubric.tell(self.words.phrases["fault"])
        parts, turns = self.show(sample)
        parts, texts = {**parts, "criteria": told}, {"shape": shape, **turns}
        if self.custom_prompt is not None:
            return self.fill_custom_prompt(self.custom_prompt, parts, sample.extras, texts)
        extras = extra_blocks(sample.extras, self.use)
        shared = ("criteria", "shape") if sample.rubric is None else ()
        return self.fill_prompt(style, parts, extras, texts, shared)


# The record


def read_pass_share(protocol: Protocol) -> float | None:
    """Return the lowest score that passes, where a protocol says one; raise ProtocolError."""
    return read_pass_mark(protocol, "pass_share", 1)


def _prepare(protocol: Protocol, language: str, terms: Terms) -> ChecklistProtocol:
    share = terms.settings.get("pass_share")
    return ChecklistProtocol(
        **protocol.prepare(language, terms.settings),
        rubric=None if terms.rubric is None else build_checklist(terms.rubric),
        pass_share=read_pass_share(protocol) if share is None else share,
    )


KIND = Kind(
    name="checklist",
    settings={"repairs": REPAIRS, "pass_share": None},
    form=ProtocolForm(
        keys=("pass_share",),
        must=frozenset({"question", "model_output", "criteria"}),
        may=frozenset({"extras", "shape"}),
        custom_prompt=CustomForm(
            parts=("question", "model_output", "criteria"),
            aliases=ALIASES,
            offered=("shape",),
            marks=("met", "criteria", "model_output", "evidence", "reason"),
        ),
    ),
    table_form=TableForm("question", "model_output", FIELDS, sample_id, own_field="criteria"),
    rubric_form=RUBRIC_FORM,
    example=ExampleSuite("samples.jsonl", "criteria.json", by="prompt_variant", baseline="v1"),
    judged_text=lambda sample: sample.model_output,
    dump=sample_text,
    load=load_sample,
    unit_keys=lambda sample: [sample_id({"meta": sample.meta})],
    output_key=lambda output: output_key(output, "criteria"),
    prepare=_prepare,
    check_protocol=lambda protocol, language: read_pass_share(protocol),
    resettle_settings=lambda protocol, asked: {"pass_share": read_pass_share(protocol)},
    read_judgment=READER.read,
    present=present,
    measure=Scoring(
        lambda text: measure(load_sample(text)),
        measure_judgment,
        full_marks=1,
        has_notes=True,
        has_pass=True,
        ends=lambda rubric: ends_of(build_checklist(rubric)),
    ),
)
