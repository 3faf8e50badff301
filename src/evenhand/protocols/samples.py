"""From an input row to a Sample, or the sentence that says what is wrong with the row."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

from evenhand import jsontext
from evenhand.protocols.load import LANGUAGES
from evenhand.protocols.rubrics import RubricError, parse_rubric
from evenhand.units import Sample, sample_id

EXTRAS = ("reference", "context", "messages")
_TEXTS = ("question", "model_output")
_FIELDS = ("id", "question", "model_output", "meta", "rubric", "language", *EXTRAS)


class RowError(ValueError):
    """What is wrong with an input row."""


def read_sample(row: Mapping[str, Any], *, has_rubric: bool) -> Sample:
    """The sample of a row; raises RowError. `has_rubric` says that the suite brings one.

    An empty cell of a table counts as absent, but for the texts that are judged.
    """
    row = {key: value for key, value in row.items() if value != "" or key in _TEXTS}
    question = _text(row, "question")
    if not question.strip():
        raise RowError('"question" is empty')
    output = _text(row, "model_output")
    meta = row.get("meta")
    if meta is not None and not isinstance(meta, Mapping):
        raise RowError(f'"meta" must be an object, and is {_named(meta)}')
    ident = row.get("id")
    if ident is not None and (isinstance(ident, bool) or not isinstance(ident, str | int)):
        raise RowError(f'"id" must be a text, and is {_named(ident)}')
    return Sample(
        id=sample_id(row),
        question=question,
        model_output=output,
        meta=cast("Mapping[str, Any]", meta or {}),
        rubric=_rubric(row, has_rubric),
        language=_language(row.get("language")),
        extras={name: row[name] for name in EXTRAS if row.get(name) is not None},
    )


def sample_text(sample: Sample) -> str:
    """A sample as one line of JSON: what the store keeps; `load_sample` reads it back."""
    body: dict[str, Any] = {"id": sample.id, "question": sample.question}
    body |= {"model_output": sample.model_output, "meta": sample.meta}
    body |= {"rubric": sample.rubric, "language": sample.language}
    return jsontext.dump({k: v for k, v in (body | dict(sample.extras)).items() if v is not None})


def load_sample(text: str) -> Sample:
    """The sample of a line that `sample_text` wrote."""
    body = jsontext.parse(text)
    return Sample(
        id=body["id"],
        question=body["question"],
        model_output=body["model_output"],
        meta=body["meta"],
        rubric=body.get("rubric"),
        language=body.get("language"),
        extras={name: body[name] for name in EXTRAS if name in body},
    )


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, str):
        return value
    if name in row:
        raise RowError(f'"{name}" must be a text, and is {_named(value)}')
    close = get_close_matches(name, [key for key in row if key not in _FIELDS], n=1, cutoff=0.5)
    hint = f'; did you mean "{close[0]}"? Map it: [columns] {name} = "{close[0]}"' if close else ""
    raise RowError(f'"{name}" is missing{hint}')


def _rubric(row: Mapping[str, Any], has_rubric: bool) -> Mapping[str, Any] | None:
    given = row.get("rubric")
    if given is None:
        if not has_rubric:
            raise RowError('there is no "rubric", neither in this row nor in the suite')
        return None
    if isinstance(given, str):
        try:
            given = jsontext.parse(given)
        except ValueError as error:
            raise RowError(f'"rubric" is a text that is not JSON: {error}') from None
    try:
        parse_rubric(jsontext.dump(given))
    except RubricError as error:
        path = ".".join(map(str, ("rubric", *error.path)))
        raise RowError(f"{path}: {error}") from None
    return cast("Mapping[str, Any]", given)


def _language(value: object) -> str | None:
    if value is None or (isinstance(value, str) and value in LANGUAGES):
        return value
    raise RowError(f'"language" must be one of {", ".join(LANGUAGES)}, and is {value!r}')


def _named(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", str: "a text"}
    return "null" if value is None else names.get(type(value), "a number")
