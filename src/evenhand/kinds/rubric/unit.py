"""The sample of an input row, or the sentence that says what is wrong with the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec import UNSET, Raw, UnsetType

from evenhand import jsontext
from evenhand.jsontext import StoredText
from evenhand.kinds.kind import RubricTextError
from evenhand.kinds.rows import (
    EXTRAS,
    RowError,
    UnitBody,
    common_fields,
    filled_text_of,
    raw_object,
    text_of,
    unit_text,
    without_empty,
)
from evenhand.kinds.rubric.rubric import parse_rubric
from evenhand.units import Sample, sample_id

_TEXTS = ("question", "model_output")
FIELDS = ("id", "question", "model_output", "meta", "rubric", "language", *EXTRAS)


def read_sample(row: Mapping[str, Any], *, has_rubric: bool) -> Sample:
    """Return the sample of a row; raise RowError. `has_rubric` says that the suite brings one."""
    row = without_empty(row, _TEXTS)
    return Sample(
        id=sample_id(row),
        question=filled_text_of(row, "question"),
        model_output=text_of(row, "model_output"),
        rubric=_rubric(row, has_rubric),
        **common_fields(row),
    )


def sample_text(sample: Sample) -> str:
    """Return a sample as one line of JSON: what the store keeps; `load_sample` reads it back."""
    return unit_text(
        sample,
        question=sample.question,
        model_output=sample.model_output,
        meta=sample.meta,
        rubric=sample.rubric,
    )


class _SampleBody(UnitBody, frozen=True, kw_only=True):
    question: str
    model_output: str
    rubric: Raw | UnsetType = UNSET


_body: StoredText[_SampleBody] = StoredText(_SampleBody, "a sample")


def load_sample(text: str) -> Sample:
    """Return the sample of a line that `sample_text` wrote."""
    body = _body.read(text)
    rubric = None if body.rubric is UNSET else raw_object(body.rubric)
    question, output = body.question, body.model_output
    return Sample(question=question, model_output=output, rubric=rubric, **body.fields)


def _rubric(row: Mapping[str, Any], has_rubric: bool) -> Mapping[str, Any] | None:
    rubric = row.get("rubric")
    if rubric is None:
        if not has_rubric:
            raise RowError('there is no "rubric", neither in this row nor in the suite')
        return None
    if isinstance(rubric, str):
        try:
            rubric = jsontext.parse(rubric)
        except ValueError as error:
            raise RowError(f'"rubric" is a text that is not JSON: {error}') from None
    try:
        parse_rubric(jsontext.dump(rubric))
    except RubricTextError as error:
        path = ".".join(map(str, ("rubric", *error.path)))
        raise RowError(f"{path}: {error}") from None
    return cast("Mapping[str, Any]", rubric)
