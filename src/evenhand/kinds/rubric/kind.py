"""The kind `rubric`: one output scored on every dimension of a rubric, each score backed by a
quote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from evenhand.exchange import Question
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.custom_prompt import CustomForm
from evenhand.kinds.kind import ExampleSuite, Kind, Scoring, Terms
from evenhand.kinds.protocol import Protocol, ProtocolError, ProtocolForm
from evenhand.kinds.rows import RowError, TableForm
from evenhand.kinds.rubric.present import present, summary
from evenhand.kinds.rubric.protocol import ALIASES, RubricProtocol
from evenhand.kinds.rubric.rubric import BandsForm, build_rubric
from evenhand.kinds.rubric.unit import FIELDS, load_sample, read_sample, sample_text
from evenhand.kinds.rubric.verdict import READER, ends_of, measure_judgment, measure_sample
from evenhand.limits import REPAIRS
from evenhand.measures import Ends
from evenhand.units import Sample, sample_id


def tag_names(protocol: Protocol, languages: Sequence[str]) -> Mapping[str, str]:
    """Return the failure tags of a protocol with their names in the first of some languages that
    it has names in."""
    for language in languages:
        with suppress(ProtocolError):
            return protocol.words(language).tags
    return {}


def _prepare(protocol: Protocol, language: str, terms: Terms) -> RubricProtocol:
    settings = terms.settings
    if "no_evidence" in settings:
        protocol = _with_phrase(protocol, settings["no_evidence"])
    return RubricProtocol(
        **protocol.prepare(language, settings),
        rubric=None if terms.rubric is None else build_rubric(terms.rubric),
        expose_meta=settings["expose_meta"],
        allowed_tags=tuple(settings.get("tags", ())),
    )


def _with_phrase(protocol: Protocol, phrase: object) -> Protocol:
    """Return the protocol with another phrase for no evidence; None is that of its kind."""
    values = {name: value for name, value in protocol.given.items() if name != "no_evidence"}
    return replace(protocol, given=values | ({} if phrase is None else {"no_evidence": phrase}))


def _resettle_settings(protocol: Protocol, asked: Protocol) -> dict[str, Any]:
    tags = protocol.ids("tags") or list(protocol.words("en").tags)
    return {"no_evidence": protocol.given.get("no_evidence"), "tags": tags}


def _ends(protocol: RubricProtocol) -> Ends:
    return {} if protocol.rubric is None else ends_of(protocol.rubric)


def _read(protocol: RubricProtocol, row: Mapping[str, Any]) -> list[Sample]:
    return [read_sample(row, has_rubric=protocol.rubric is not None)]


def _first_questions(
    protocol: RubricProtocol, sample: Sample, context: JudgingContext
) -> list[Question]:
    return [protocol.question(sample, protocol.rubric_of(sample), context.styles[0])]


def _output_key(output: Mapping[str, Any]) -> str | None:
    """Return the id that the meta of an output object makes."""
    if "scores" not in output:
        return None
    if not isinstance(output.get("meta"), Mapping):
        raise RowError('"meta" must be an object: it names the unit')
    return sample_id({"meta": output["meta"]})


KIND = Kind(
    name="rubric",
    settings={"repairs": REPAIRS, "expose_meta": False},
    form=ProtocolForm(
        keys=("no_evidence", "tags"),
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
    rubric_form=BandsForm(),
    example=ExampleSuite("samples.jsonl", "rubric.json", by="prompt_variant", baseline="v1"),
    imports="scores",
    read=_read,
    dump=sample_text,
    load=load_sample,
    unit_keys=lambda sample: [sample_id({"meta": sample.meta})],
    output_key=_output_key,
    prepare=_prepare,
    check_protocol=lambda protocol, language: protocol.words(language),
    resettle_settings=_resettle_settings,
    dimensions=lambda protocol: list(_ends(protocol)),
    ends=_ends,
    first_questions=_first_questions,
    judge=RubricProtocol.judge,
    check_external_reply=RubricProtocol.check_external_reply,
    read_judgment=READER.read,
    present=present,
    measure=Scoring(
        lambda text: measure_sample(load_sample(text)),
        measure_judgment,
        summary,
        tag_names,
        has_notes=True,
    ),
)
