"""The answer of an input row, or the sentence that says what is wrong with the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.jsontext import StoredText
from evenhand.kinds.kind import RubricTextError
from evenhand.kinds.rows import (
    EXTRAS,
    RowError,
    UnitBody,
    common_fields,
    filled_text_of,
    text_of,
    type_name,
    unit_text,
    without_empty,
)
from evenhand.kinds.weighted.task_rubric import read_task
from evenhand.units import Answer, answer_id, task_name_of

_TEXTS = ("prompt", "answer")
FIELDS = ("id", "task_name", "prompt", "answer", "rubric", "meta", "language", *EXTRAS)


def read_answer(row: Mapping[str, Any], types: tuple[str, ...], *, has_rubric: bool) -> Answer:
    """Return the answer of a row; raise RowError. `has_rubric` says that the suite brings one."""
    row = without_empty(row, _TEXTS)
    return Answer(
        id=answer_id(row),
        task_name=filled_text_of(row, "task_name") if "task_name" in row else task_name_of(row),
        prompt=filled_text_of(row, "prompt"),
        answer=text_of(row, "answer"),
        rubric=_rubric(row, types, has_rubric),
        **common_fields(row),
    )


def answer_text(answer: Answer) -> str:
    """Return an answer as one line of JSON: what the store keeps; `load_answer` reads it back."""
    return unit_text(
        answer,
        task_name=answer.task_name,
        prompt=answer.prompt,
        answer=answer.answer,
        rubric=answer.rubric,
        meta=answer.meta,
    )


class _AnswerBody(UnitBody, frozen=True, kw_only=True):
    task_name: str
    prompt: str
    answer: str
    rubric: str | None = None


_body: StoredText[_AnswerBody] = StoredText(_AnswerBody, "an answer")


def load_answer(text: str) -> Answer:
    """Return the answer of a line that `answer_text` wrote."""
    body = _body.read(text)
    return Answer(
        task_name=body.task_name,
        prompt=body.prompt,
        answer=body.answer,
        rubric=body.rubric,
        **body.fields,
    )


def _rubric(row: Mapping[str, Any], types: tuple[str, ...], has_rubric: bool) -> str | None:
    rubric = row.get("rubric")
    if rubric is None:
        if not has_rubric:
            raise RowError('there is no "rubric", neither in this row nor in the suite')
        return None
    if not isinstance(rubric, str):
        raise RowError(f'"rubric" must be a text or the name of a file, and is {type_name(rubric)}')
    try:
        read_task(rubric, types)
    except RubricTextError as error:
        raise RowError(f'"rubric", line {error.line}: {error}') from None
    return rubric
