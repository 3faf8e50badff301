"""Ids of rows: what the column `id` of tables holds (ids of rows, of questions, or numbers of
nothing), and an id for every row that has none.

Whatever an `id` is taken for, other than a row's own, is said in one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.kinds.rows import TableForm
from evenhand.units import META_FIELDS, question_hash
from evenhand.words import Sentence, few

if TYPE_CHECKING:
    from evenhand.data.tables import DataTable


def name_rows(tables: Sequence[DataTable], form: TableForm) -> list[str]:
    """Give every row of these tables an id of its own, in place; return remarks for the user."""
    remarks = [*_move_ids(tables, form)]
    # Rows that hold several answers are called by their question as it is.
    needs_question = form.gather is None and any(_are_alike(table, form) for table in tables)
    for table in tables:
        names: set[str] = set()
        for number, (row, _) in table.rows:
            has_id, question = _has_id(row, form), question_hash(row.get(form.question))
            # A `meta` that somebody laid out is left as it is where it need not be touched.
            if needs_question and (table.recognition.is_flat or not has_id):
                _add_question_id(row, question)
            if has_id:
                continue
            name = form.id_of(row)
            ids = [name] if form.unit_ids is None else form.unit_ids(row)
            if not names.isdisjoint(ids):
                row[form.number] = name = f"{name}#{number}"
            names.update(ids)
            if form.gather is not None and name != question:
                _add_question_id(row, question)
    return remarks


def _move_ids(tables: Sequence[DataTable], form: TableForm) -> Iterator[str]:
    """Take what is no id of a row out of the column `id`; yield what was done. Ids that repeat, in
    one file or from file to file, are the questions' where the meta fields tell all rows apart."""
    holders = [table for table in tables if table.may_hold_question_ids]
    sound = [table for table in holders if _are_told_apart([table])]
    for table in holders:
        if table not in sound and table.are_ids_guessed:
            _take_ids([table])
            yield Sentence("data.ids_repeat", column=table.column_of("id"), file=table.name)
    # A row of several answers is called by its question alone: its meta fields do not help.
    is_shared = form.gather is None and _are_told_apart(sound)
    for group in [sound] if is_shared else [[table] for table in sound]:
        yield from _move_question_ids(group, form.question)


def _move_question_ids(tables: Sequence[DataTable], question: str) -> Iterator[str]:
    questions: dict[str, list[str]] = {}
    """By id the questions of its rows."""
    for row in _rows_with_ids(tables):
        questions.setdefault(str(row["id"]), []).append(question_hash(row.get(question)))
    repeated = [texts for texts in questions.values() if len(texts) > 1]
    if not repeated:
        return
    reworded = [texts for texts in repeated if len(set(texts)) > 1]
    ids = Counter(text for texts in questions.values() for text in set(texts))
    # A question with one id here and another one there: these are numbers of rows.
    are_numbers = any(ids[text] > 1 for texts in reworded for text in texts)
    _take_ids(tables, keeps_question=not are_numbers)
    yield Sentence(
        "data.ids_of_rows"
        if are_numbers
        else "data.ids_reworded"
        if reworded
        else "data.ids_of_questions",
        files=few([table.name for table in tables], 1),
        n=len(reworded),
        total=len(repeated),
    )


def _rows_with_ids(tables: Sequence[DataTable]) -> list[dict[str, Any]]:
    rows = [row.value for table in tables for _, row in table.rows]
    return [row for row in rows if row.get("id") not in (None, "")]


def _are_told_apart(tables: Sequence[DataTable]) -> bool:
    """Return True if no two rows have the same id and the same meta fields."""
    rows = _rows_with_ids(tables)
    metas = [meta if isinstance(meta := row.get("meta"), dict) else {} for row in rows]
    wholes = {
        (str(row["id"]), *(str(meta.get(name)) for name in META_FIELDS))
        for row, meta in zip(rows, metas, strict=True)
    }
    return len(wholes) == len(rows)


def _take_ids(tables: Sequence[DataTable], *, keeps_question: bool = False) -> None:
    for row in _rows_with_ids(tables):
        ident = row.pop("id")
        if keeps_question:
            _add_question_id(row, ident)


def _add_question_id(row: dict[str, Any], ident: object) -> None:
    meta = row.get("meta") or {}
    if isinstance(meta, dict) and meta.get("question_id") in (None, "") and ident not in (None, ""):
        row["meta"] = {**meta, "question_id": ident}


def _are_alike(table: DataTable, form: TableForm) -> bool:
    """Return True if rows that are called by their meta fields would be called the same, now or
    with another row: the questions of a table that has no `meta` and tells none apart have their
    ids from the start."""
    rows = [row.value for _, row in table.rows]
    if rows and table.recognition.is_flat and rows[0].get(form.topic) in (None, ""):
        return True
    names = [form.id_of(row) for row in rows if _is_nameless(row, form)]
    return len(set(names)) < len(names)


def _is_nameless(row: Mapping[str, Any], form: TableForm) -> bool:
    meta = row.get("meta")
    question = meta.get("question_id") if isinstance(meta, dict) else None
    return not _has_id(row, form) and question in (None, "")


def _has_id(row: Mapping[str, Any], form: TableForm) -> bool:
    return any(row.get(name) not in (None, "") for name in form.ids)
