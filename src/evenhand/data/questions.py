"""Tables of questions, to be answered under prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.data.read import read_rows
from evenhand.data.recognise import fold, usual_names
from evenhand.errors import DataError
from evenhand.kinds.answer.templates import QUESTION, QUESTION_COLUMN
from evenhand.kinds.rows import PlacedRow
from evenhand.units import question_hash
from evenhand.words import Sentence

QUESTION_ID = "question_id"
_COSTS = ("input_tokens", "output_tokens", "cost_usd", "latency_s")
_OURS = frozenset(
    {"answer", "model_output", "model", "prompt_variant", "repeat", "finish", *_COSTS}
)
"""Columns of a table of answers that one of questions may not bring."""


def read_questions(path: Path, root: Path | None = None) -> list[PlacedRow]:
    """Return the rows of a table of questions, each with its question and an id; raise DataError.
    A table without a question is one whose columns fill prompts: the judge is shown all of them."""
    rows = list(read_rows(path, root=root))
    names = list(dict.fromkeys(name for row in rows for name in row.value))
    if taken := next((name for name in names if fold(name) in _OURS), ""):
        raise DataError(Sentence("data.taken_column", column=taken), where=str(path))
    asked, ident = (_column(names, key) for key in ("question", "question_id"))
    ident = ident or _column(names, "ident")
    seen: dict[str, str] = {}
    placed: list[PlacedRow] = []
    for row in rows:
        value = dict(row.value)
        question = value.pop(asked, None) if asked else _list_columns(value)
        if question in (None, ""):
            raise DataError(Sentence("data.empty_question", column=asked), where=row.where)
        own = value.pop(ident, None) if ident else None
        known = str(question_hash(str(question)) if own is None else own)
        if known in seen:
            raise DataError(Sentence("data.same_question", other=seen[known]), where=row.where)
        seen[known] = row.where
        ids = {"id": known, QUESTION_COLUMN: asked}
        more = {} if own is None else {QUESTION_ID: own}
        placed.append(PlacedRow({**ids, QUESTION: question, **more, **value}, row.where))
    return placed


def _column(names: Sequence[str], key: str) -> str:
    """Return the column that is usually called so; empty where none is."""
    folded = {fold(name): name for name in names}
    return next((folded[name] for name in usual_names(key) if name in folded), "")


def _list_columns(value: Mapping[str, Any]) -> str:
    return "\n".join(f"{name}: {cell}" for name, cell in value.items())
