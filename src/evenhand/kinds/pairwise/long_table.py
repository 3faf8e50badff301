"""One row per answer becomes one row per topic: the rows of a topic are its candidates.

A candidate is called by its model and its prompt variant, as far as these set answers apart. The
order of the rows says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.errors import quoted
from evenhand.jsontext import as_text
from evenhand.kinds.rows import (
    EXTRAS,
    FieldError,
    Gathered,
    PlacedRow,
    RowError,
    filled_text_of,
    is_given,
    named,
)
from evenhand.units import APART, TOPIC_ID, joined_id, question_hash

AUTHORS = ("model", "prompt_variant")
"""The meta fields that say whose answer it is."""
_SHARED = ("language", *EXTRAS)
_LISTED = ("reference", "context")
"""Where the answers to a topic differ in these, all of them belong to the topic."""


def gather(rows: Iterable[PlacedRow]) -> Gathered:
    """The topics of a long table, each with its candidates; raises RowError. Topics with a single
    answer, and answers that are empty, are left out, and counted in the remarks."""
    answers = list(rows)
    filled = [row for row in answers if _answer(row).strip()]
    names = _author_fields(filled)
    topics: dict[tuple[str, str], list[PlacedRow]] = {}
    for row in filled:
        topics.setdefault(_topic_key(row), []).append(row)
    paired = [group for group in topics.values() if len(group) > 1]
    if not paired:
        raise RowError(_no_pair(len(topics), len(answers) - len(filled)))
    remarks: list[str] = []
    if len(answers) > len(filled):
        empty = len(answers) - len(filled)
        verbs = "answer is empty and meets" if empty == 1 else "answers are empty and meet"
        remarks.append(f"{empty:,} {verbs} no other")
    if len(topics) > len(paired):
        lonely = len(topics) - len(paired)
        verbs = (
            "topic has one answer and makes" if lonely == 1 else "topics have one answer and make"
        )
        remarks.append(f"{lonely:,} {verbs} no pair")
    if any(_shared_id(group) for group in paired):
        remarks.append("An id that all answers to a topic share is the topic's")
    for name in _LISTED:
        if number := sum(_differs(group, name) for group in paired):
            remarks.append(
                f"{number:,} {'topic has' if number == 1 else 'topics have'} answers with different"
                f" values of {quoted(name)}: both answers are judged by all of them"
            )
    return Gathered([_row(group, names) for group in paired], remarks)


def _meta(row: PlacedRow) -> Mapping[str, Any]:
    meta = row.value.get("meta")
    return meta if isinstance(meta, Mapping) else {}


def _text(value: object) -> str:
    """A value as a text: empty where it is absent, which the number 0 is not."""
    return "" if value is None else str(value)


def _answer(row: PlacedRow) -> str:
    """The text of an answer, empty where there is none; raises RowError for what is no text."""
    answer = row.value.get("answer")
    if answer is None or isinstance(answer, str):
        return answer or ""
    raise FieldError("answer", f"must be a text, and is {named(answer)}", where=row.where)


def _author_fields(rows: Sequence[PlacedRow]) -> tuple[str, ...]:
    """Those of the fields that take more than one value; raises RowError where nothing says whose
    an answer is."""
    values = {name: {_text(_meta(row).get(name)) for row in rows} for name in AUTHORS}
    varying = tuple(name for name in AUTHORS if len(values[name]) > 1)
    if not varying and rows and not any(values[name] - {""} for name in AUTHORS):
        raise RowError(
            "no column says whose answer it is, so that answers to one topic can be compared;"
            ' map one: [columns] meta.model = "COLUMN", or name a file per model:'
            ' data = [{ file = "a.csv", model = "a" }, ...]'
        )
    return varying or tuple(name for name in AUTHORS if values[name] - {""})


def _topic_key(row: PlacedRow) -> tuple[str, str]:
    try:
        topic = filled_text_of(row.value, "topic", tuple(row.value))
    except RowError as error:
        error.where = row.where
        raise
    meta = _meta(row)
    apart = joined_id(meta[name] for name in APART if meta.get(name) not in (None, ""))
    return apart, _text(meta.get("question_id")) or question_hash(topic)


def _no_pair(topics: int, empty: int) -> str:
    """Return the message for a table in which no two answers meet."""
    counted = (
        "1 topic with one answer" if topics == 1 else f"{topics:,} topics with one answer each"
    )
    left_out = f", and {empty:,} empty answer{'' if empty == 1 else 's'}" if empty else ""
    return (
        f"no topic has two answers: {counted}{left_out};"
        " answers to compare must have the same topic, letter by letter, or the same question_id"
    )


def _row(group: Sequence[PlacedRow], names: Sequence[str]) -> PlacedRow:
    apart, question = _topic_key(group[0])
    value: dict[str, Any] = {TOPIC_ID: f"{apart}/{_shared_id(group) or question}".lstrip("/")}
    value |= {"topic": _distinct(group, "topic")[0], "candidates": _candidates(group, names)}
    value["meta"] = meta = _common_meta(group)
    # Runs of one question are several rows: what they are about must be the same in all of them.
    if apart and meta.get("question_id") in (None, ""):
        meta["question_id"] = question
    for name in _SHARED:
        if filled := _distinct(group, name):
            value[name] = filled if name in _LISTED and filled[1:] else filled[0]
    return PlacedRow(value, group[0].where)


def _differs(group: Sequence[PlacedRow], name: str) -> bool:
    values = [row.value[name] for row in group if is_given(row.value.get(name))]
    return any(value != values[0] for value in values)


def _distinct(group: Sequence[PlacedRow], name: str) -> list[Any]:
    """Return the different values of a field in the rows of a topic, sorted; lists of them opened,
    where a judge may be shown several."""
    values = [row.value[name] for row in group if is_given(row.value.get(name))]
    if name in _LISTED and _differs(group, name):
        values = [item for each in values for item in (each if isinstance(each, list) else [each])]
    distinct = [value for at, value in enumerate(values) if value not in values[:at]]
    return sorted(distinct, key=as_text)


def _shared_id(group: Sequence[PlacedRow]) -> str:
    """The id that is the same in all rows of a topic, and so its own; empty where there is none."""
    ids = {_text(row.value.get("id")) for row in group}
    return ids.pop() if len(ids) == 1 else ""


def _candidates(group: Sequence[PlacedRow], names: Sequence[str]) -> list[dict[str, Any]]:
    candidates: list[dict[str, Any]] = []
    places: dict[str, str] = {}
    for row in group:
        meta = _meta(row)
        ident = _author(meta, names)
        if not ident:
            raise RowError("nothing says whose answer it is", where=row.where)
        if ident in places:
            raise RowError(
                f"{quoted(ident)} answers the same topic at {places[ident]} and {row.where};"
                ' tell them apart: [columns] meta.run_id = "COLUMN"'
            )
        places[ident] = row.where
        candidate = {"id": ident, "text": row.value["answer"]}
        model = meta.get("model")
        candidates.append(candidate | ({"model": model} if model and model != ident else {}))
    return candidates


def _author(meta: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the name of a candidate; empty where nothing names it."""
    values = [meta[name] for name in names if meta.get(name) not in (None, "")]
    # A name in one field is what people call it. Of several, what is joined must stay apart.
    return as_text(values[0]) if values and len(names) == 1 else joined_id(values)


def _common_meta(group: Sequence[PlacedRow]) -> dict[str, Any]:
    """Return the meta that all answers to a topic share, without their authors."""
    first, *others = (_meta(row) for row in group)
    return {
        name: value
        for name, value in first.items()
        if name not in AUTHORS and all(meta.get(name) == value for meta in others)
    }
